"""The front door: what `import trf` loads, and that every public name is there."""

import importlib
import subprocess
import sys

import pytest

import trf


def test_importing_loads_no_heavy_package():
    code = (
        "import sys, trf; heavy = {'torch', 'matplotlib', 'sympy', 'numpy', 'flint', 'scipy'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_symbolic_side_loads_neither_torch_nor_matplotlib():
    code = (
        "import sys, trf; trf.converges('-n'); "
        "trf.theoretical_receptive_field('-n', eps=0.1); "
        "print(sorted({'torch', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", trf.__all__)
def test_every_public_name_loads(name):
    assert getattr(trf, name) is not None
    assert name in dir(trf)


def test_functions_stay_functions_after_their_modules_are_imported():
    importlib.import_module("trf.evaluation")
    importlib.import_module("trf.training")
    assert callable(trf.perplexity)
    assert callable(trf.converges)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_here"):
        _ = trf.nothing_here
