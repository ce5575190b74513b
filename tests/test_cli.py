"""The command line as a user meets it: answers, JSON, exit codes, one line for a mistake."""

import json
import subprocess
import sys

import pytest

from trf.cli import main


def run(capsys, *argv):
    code = main(list(argv))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_converges(capsys):
    code, out, _ = run(capsys, "converges", "-log(1+r2*n)")
    assert code == 0
    assert "diverges" in out
    assert len(out.splitlines()) == 1


def test_an_expression_may_begin_with_a_minus_and_options_may_follow(capsys):
    code, out, _ = run(capsys, "converges", "-r1*log(1+r2*n)", "--json")
    data = json.loads(out)
    assert code == 0
    assert data["status"] == "conditional"
    assert data["condition"] == "r1 > 1"


def test_values_and_domains(capsys):
    _, out, _ = run(capsys, "converges", "-r*n", "--assume", "r=real", "--json")
    assert json.loads(out)["condition"] == "r > 0"
    _, out, _ = run(capsys, "converges", "-r*log(1+n)", "--set", "r=1.5", "--json")
    assert json.loads(out)["status"] == "converges"


def test_proof(capsys):
    _, out, _ = run(capsys, "converges", "-2*log(1+n)", "--proof")
    assert len(out.splitlines()) > 1


def test_a_catalogue_name_stands_for_its_bias_but_an_alias_for_what_it_says(capsys):
    _, out, _ = run(capsys, "converges", "alibi", "--json")
    assert json.loads(out)["p"] == "-m*n"
    _, out, _ = run(capsys, "converges", "1/n^2", "--json")
    assert json.loads(out)["status"] == "diverges"


def test_an_encoding_without_a_bias_is_answered_all_the_same(capsys):
    code, out, _ = run(capsys, "converges", "rope")
    assert code == 0
    assert "diverges" in out
    _, out, _ = run(capsys, "converges", "sinusoidal", "--json")
    assert json.loads(out)["status"] == "not applicable"


def test_radius(capsys):
    _, out, _ = run(capsys, "radius", "-m*n", "--set", "m=1/16", "--json")
    assert json.loads(out)["radius"] == 74
    _, out, _ = run(capsys, "radius", "-2*log(1+n)", "--eps", "1/1000", "--json")
    assert json.loads(out)["radius"] == 608


def test_radius_of_each_head(capsys):
    _, out, _ = run(capsys, "radius", "alibi", "--heads", "8", "--eps", "0.1", "--json")
    radii = [head["radius"] for head in json.loads(out)["heads"]]
    assert radii[0] == 5
    assert radii[3] == 37
    assert radii[7] == 590


def test_radius_within_a_length_is_defined_for_a_divergent_bias(capsys):
    code, out, _ = run(capsys, "radius", "0", "--length", "512", "--eps", "0.5", "--json")
    assert code == 0
    assert json.loads(out)["radius"] == 257


def test_encodings(capsys):
    _, out, _ = run(capsys, "encodings")
    assert "kerple-log" in out
    _, out, _ = run(capsys, "encodings", "alibi", "--json")
    assert json.loads(out)[0]["formula"] == "-m*n"


@pytest.mark.parametrize(
    "argv",
    [
        ["converges", "__import__('os')"],
        ["converges", "9**9**9**9"],
        ["converges", "-n", "--assume", "r"],
        ["converges", "-n", "--assume", "q=real"],
        ["converges", "-r*n", "--set", "r=-1"],
        ["converges", "-r*n", "--set", "r=abc+"],
        ["radius", "-log(1+n)"],
        ["radius", "-r*n"],
        ["radius", "-n", "--eps", "0"],
        ["radius", "-n", "--eps", "1"],
        ["radius", "-n", "--eps", "x"],
        ["radius", "-n", "--length", "0"],
        ["radius", "alibi", "--heads", "0"],
        ["encodings", "alibbi"],
    ],
    ids=" ".join,
)
def test_a_mistake_is_one_message_and_exit_code_2(capsys, argv):
    code, out, err = run(capsys, *argv)
    assert code == 2
    assert out == ""
    assert err.startswith("trf: ")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "argv", [[], ["nothing"], ["converges"], ["train"], ["radius", "-n", "--epss", "1"]]
)
def test_wrong_usage_exits_with_2(argv):
    with pytest.raises(SystemExit) as info:
        main(argv)
    assert info.value.code == 2


def test_the_installed_command_and_a_broken_pipe():
    command = [sys.executable, "-c", "import sys; from trf.cli import main; sys.exit(main())"]
    done = subprocess.run(
        [*command, "converges", "-n"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert "converges" in done.stdout


@pytest.mark.slow
def test_a_grid_of_one_smallest_cell(capsys, tmp_path):
    code, out, _ = run(
        capsys, "grid", "--encodings", "alibi", "--preset", "smoke", "--out", str(tmp_path),
        "--jobs", "1", "--json",
    )  # fmt: skip
    assert code == 0
    assert len(json.loads(out)["done"]) == 1
    code, out, _ = run(capsys, "merge", str(tmp_path))
    assert code == 0
    assert out.strip().endswith("results.csv")
