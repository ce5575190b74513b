"""The catalogue: every entry is complete, readable and found; heads follow their papers."""

import json

import pytest
import sympy

from trf import encodings
from trf.encodings import Encoding, Kind
from trf.encodings.alibi import slopes
from trf.errors import ParameterError, UnknownNameError
from trf.expression import distance

n = distance()


@pytest.mark.parametrize("name", encodings.names())
class TestEveryEncoding:
    """What holds for each entry of the registry: a new one is tested by being listed."""

    def test_it_is_described(self, name):
        encoding = encodings.get(name)
        assert encoding.name == name
        assert encoding.title
        assert encoding.reference
        json.dumps(encoding.to_dict())
        assert encoding.title in str(encoding)

    def test_every_parameter_is_accounted_for(self, name):
        encoding = encodings.get(name)
        if encoding.bias is None:
            assert encoding.formula is None
            assert encoding.note
            return
        symbols = {symbol.name for symbol in encoding.bias.parameters}
        learnable = {parameter.name for parameter in encoding.learnable}
        assert set(encoding.fixed) | learnable <= symbols
        assert not set(encoding.fixed) & learnable
        for parameter in encoding.learnable:
            assert parameter.low < parameter.high
            assert parameter.minimum is not None

    @pytest.mark.parametrize("n_head", [1, 3, 8])
    def test_every_head_has_its_bias(self, name, n_head):
        encoding = encodings.get(name)
        values = encoding.head_values(n_head)
        assert len(values) == n_head
        if encoding.bias is None:
            with pytest.raises(ParameterError, match="no additive bias"):
                encoding.head_biases(n_head)
            return
        for bias, fixed in zip(encoding.head_biases(n_head), values, strict=True):
            assert not {symbol.name for symbol in bias.parameters} & set(fixed)


def test_alibi_slopes_of_a_power_of_two():
    assert slopes(8) == tuple(sympy.Rational(1, 2**h) for h in range(1, 9))
    assert [float(m) for m in slopes(16)[:2]] == pytest.approx([2**-0.5, 0.5])


def test_alibi_slopes_otherwise_take_every_other_of_twice_as_many():
    # arXiv 2108.12409, authors' code: get_slopes(12) = get_slopes(8) + get_slopes(16)[0::2][:4]
    expected = [2.0**-h for h in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]
    assert [float(m) for m in slopes(12)] == pytest.approx(expected)
    assert len(slopes(66)) == 66


def test_alibi_is_zero_at_the_token_itself():
    assert all(bias.expr.subs(n, 0) == 0 for bias in encodings.get("alibi").head_biases(8))


def test_type2_does_not_start_at_one():
    (bias,) = encodings.get("type2").head_biases(1)
    assert float(sympy.exp(bias.expr.subs(n, 0))) == pytest.approx(0.299, abs=5e-4)


def test_sandwich_decays_by_its_known_exponent():
    # Least squares on a logarithmic grid over 8 <= n <= 2048 gives -6.935 / c at D = 128.
    numpy = pytest.importorskip("numpy")
    bias = encodings.get("sandwich").bias
    function = sympy.lambdify(n, bias.expr.subs(bias.parameters[0], 1).doit())
    grid = numpy.unique(numpy.geomspace(8, 2048, 400).round())
    slope = numpy.polyfit(numpy.log(grid), [function(x) for x in grid], 1)[0]
    assert slope == pytest.approx(-6.935, abs=0.02)


def test_names_are_found_in_any_case_and_by_alias():
    assert encodings.get("ALiBi").name == "alibi"
    assert encodings.get("kerple_log").name == "kerple-log"
    assert encodings.get("1/n").name == "inverse-n"
    assert encodings.get(encodings.get("alibi")) is encodings.get("alibi")


def test_an_unknown_name_lists_the_known_and_the_nearest():
    with pytest.raises(UnknownNameError, match=r"Did you mean 'alibi'\? Known: .*kerple-log"):
        encodings.get("alibbi")


@pytest.mark.parametrize("n_head", [0, -1, 2.0, True, "8"])
def test_a_number_of_heads_is_a_positive_integer(n_head):
    with pytest.raises(ParameterError, match="n_head"):
        encodings.get("alibi").head_values(n_head)


def test_learned_values_can_differ_by_head():
    kerple = encodings.get("kerple-log")
    heads = kerple.head_biases(2, [{"r1": 1.5, "r2": 1}, {"r1": "1/2", "r2": 2}])
    assert heads[0].expr == -sympy.Rational(3, 2) * sympy.log(1 + n)
    assert heads[1].expr == -sympy.log(1 + 2 * n) / 2
    with pytest.raises(ParameterError, match="2 heads"):
        kerple.head_biases(2, [{"r1": 1}])


def test_an_encoding_of_ones_own():
    mine = Encoding.from_expression("-r*sqrt(n)", name="mine")
    assert mine.kind is Kind.ADDITIVE
    assert [parameter.name for parameter in mine.learnable] == ["r"]
    assert mine.head_biases(1, {"r": 2})[0].expr == -2 * sympy.sqrt(n)
