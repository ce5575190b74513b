"""The catalogue: every entry is complete, readable and found; heads follow their papers."""

import json
import math

import pytest
import sympy

from trf import encodings
from trf.encodings import Encoding, Kind
from trf.encodings.alibi import slopes
from trf.encodings.sandwich import sandwich
from trf.encodings.t5 import STARTS, bucket
from trf.errors import ParameterError, UndecidedError, UnknownNameError
from trf.expression import distance
from trf.series.convergence import converges

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
            assert encoding.score
            return
        symbols = {symbol.name for symbol in encoding.bias.parameters}
        learnable = {parameter.name for parameter in encoding.learnable}
        assert set(encoding.fixed) | learnable <= symbols
        assert not set(encoding.fixed) & learnable
        for parameter in encoding.learnable:
            assert parameter.low < parameter.high
            real = encoding.assume.get(parameter.name) == "real"
            assert real == (parameter.minimum is None)

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

    def test_the_theory_answers(self, name):
        encoding = encodings.get(name)
        answer = encoding.answer()
        assert encoding.title in str(answer)
        assert encoding.title in answer.explanation
        json.dumps(answer.to_dict())
        if answer.status == "not applicable":
            assert answer.reason
            with pytest.raises(UndecidedError, match="does not apply"):
                bool(answer)
        else:
            assert answer.verdict is not None
            assert answer.status == answer.verdict.status.value != "undecided"


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


ANSWERS = {
    "converges": "alibi kerple-power type1 type2 window gaussian root power-1.25 power-0.75 "
    "power-4 log-over-square type1-paper type2-paper",
    "diverges": "none rope xpos xpos-shared rerope sandwich sandwich-absolute t5 tisa fire swin "
    "inverse-n inverse-n-log-n inverse-n-paper inverse-n-log-n-paper",
    "conditional": "kerple-log kerple-log3 decay permuteformer",
    "not applicable": "sinusoidal learned forgetting dape",
}


@pytest.mark.parametrize("status", ANSWERS)
def test_what_the_theory_says_of_the_catalogue(status):
    listed = [name for name in encodings.names() if encodings.get(name).answer().status == status]
    assert sorted(listed) == sorted(ANSWERS[status].split())


def test_the_conditions_are_those_of_the_field():
    conditions = {
        name: str(encodings.get(name).answer().verdict.condition)
        for name in ANSWERS["conditional"].split()
    }
    assert conditions == {
        "kerple-log": "r1 > 1",
        "kerple-log3": "r1*r3 > 1",
        "decay": "gamma < 1",
        "permuteformer": "r < 1",
    }


def test_a_constant_gate_is_decided_and_others_are_not():
    answer = encodings.get("forgetting").answer()
    assert str(answer.verdict.condition) == "f < 1"
    assert "close to 1" in answer.reason


def test_a_two_sided_window_converges():
    assert encodings.get("window").answer(bidirectional=True).verdict.bidirectional
    assert bool(encodings.get("window").answer(bidirectional=True))


def test_the_stand_in_of_tisa_is_borne_out_by_its_own_series():
    assert converges(encodings.get("tisa")).status == encodings.get("tisa").answer().status


def test_t5_buckets_are_those_of_the_rule():
    def rule(n):
        return n if n < 16 else min(31, 16 + int(16 * math.log(n / 16) / math.log(8) + 1e-9))

    assert [bucket(n) for n in range(2000)] == [rule(n) for n in range(2000)]
    assert STARTS[16:19] == (16, 19, 21)
    assert STARTS[-1] == 113


def test_t5_has_the_value_of_its_bucket():
    bias = encodings.get("t5").bias.substitute({f"b{k}": k for k in range(32)})
    assert [bias.expr.subs(n, d) for d in (0, 15, 18, 19, 112, 113, 10**6)] == [
        0, 15, 16, 17, 30, 31, 31,
    ]  # fmt: skip


def test_sandwich_takes_the_width_of_a_head():
    small = sandwich(32)
    assert small.name == "sandwich-32"
    (bias,) = small.head_biases(1)
    assert bias.expr.subs(n, 0).doit() == 0
    with pytest.raises(ParameterError, match="even"):
        sandwich(7)


@pytest.mark.parametrize(
    ("domain", "low", "high", "minimum", "maximum"),
    [
        (None, 0.01, 1, 0.01, None),
        ("real", -1, 1, None, None),
        ("nonnegative", 0, 1, 0, None),
        ("negative", -1, -0.01, None, -0.01),
        ("nonpositive", -1, 0, None, 0),
    ],
)
def test_the_range_of_a_learnable_parameter_follows_its_domain(domain, low, high, minimum, maximum):
    assume = {"r": domain} if domain else None
    (r,) = Encoding.from_expression("-r**2*n", assume=assume).learnable
    assert (r.low, r.high, r.minimum, r.maximum) == (low, high, minimum, maximum)


def test_an_integer_is_not_learned():
    assert not Encoding.from_expression("-n**k", assume={"k": "positive integer"}).learnable


def test_a_rule_for_no_parameter_is_refused():
    with pytest.raises(ParameterError, match="'s' is not a parameter"):
        Encoding.from_expression("-r*n", fixed={"s": slopes})
