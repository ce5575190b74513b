"""The torch bias against the symbolic one, and what may not be a bias."""

from __future__ import annotations

import math

import pytest
import sympy
import torch

from trf import encodings
from trf.encodings import Encoding
from trf.errors import ParameterError
from trf.expression import distance
from trf.nn import AdditiveBias, Decoder, DecoderConfig
from trf.nn.bias import compile_expression

# Every encoding with a p(n) that is finite at n = 0 and whose parameters have values.
DECODABLE = [
    name
    for name in encodings.names()
    if encodings.get(name).bias is not None
    and not name.endswith("-paper")
    and name not in ("window", "permuteformer")
]


@pytest.mark.parametrize("name", DECODABLE)
def test_bias_equals_the_symbolic_expression(name):
    bias = AdditiveBias(encodings.get(name), n_head=3)
    got = bias(40)
    assert got.shape == (3, 40)
    assert got.dtype == torch.float32
    for head, values in enumerate(bias.values()):
        at = {
            s: sympy.Float(values[str(s)], 30) for s in bias.formula.free_symbols if s != distance()
        }
        for n in (0, 7, 39):
            exact = float(bias.formula.subs(distance(), n).doit().subs(at))
            assert got[head, n].item() == pytest.approx(exact, rel=1e-6, abs=1e-7)


def test_alibi_is_exactly_zero_at_the_token_itself():
    assert (AdditiveBias(encodings.get("alibi"), 8)(5)[:, 0] == 0).all()


@pytest.mark.parametrize(
    "text",
    [
        "-log(2)*sqrt(3)*n",
        "-Max(n, 3)",
        "-Min(n, 3, 5)",
        "-sqrt(2)**(1/3)*n**(3/2)",
        "Piecewise((-log(3), n < 2), (-log(7)*n, True))",
        "Sum(cos(n/10**(k/4)), (k, 1, 4))",
        "-floor(n/2)",
        "-log(1+abs(n))",
    ],
)
def test_constants_and_functions_are_evaluated_in_float64(text):
    expr = Encoding.from_expression(text).bias.expr
    n = torch.arange(6, dtype=torch.float64)
    got = compile_expression(expr, (distance(),))(n)
    for i, value in enumerate(got):
        exact = float(expr.subs(distance(), i).doit())
        assert value.item() == pytest.approx(exact, rel=1e-14, abs=1e-14)


def test_a_longer_bias_extends_the_shorter_one():
    bias = AdditiveBias(encodings.get("type2"), 2)
    short = bias(10).clone()
    long = bias(100)
    assert torch.equal(long[:, :10], short)
    assert torch.equal(bias(10), short)


def test_a_bias_first_seen_in_inference_mode_can_be_trained_with():
    model = Decoder(DecoderConfig("alibi", n_layer=1, n_head=1, n_embd=4))
    tokens = torch.arange(6)[None]
    with torch.inference_mode():
        model(tokens)
    model(tokens).sum().backward()


def test_a_parameter_may_bear_a_python_keyword():
    encoding = Encoding.from_expression("-lambda*n")
    bias = AdditiveBias(encoding, 2)
    assert bias.names == ("lambda",)
    bias(4).sum().backward()
    grad = bias.learnable["lambda"].grad
    assert grad is not None
    assert torch.allclose(grad, torch.tensor([-6.0, -6.0]))


def test_learnable_parameters_start_and_stay_in_their_domain():
    torch.manual_seed(0)
    bias = AdditiveBias(encodings.get("kerple-power"), 64)
    r1, r2 = bias.learnable["r1"], bias.learnable["r2"]
    assert 0.01 <= r1.min() < 0.1 < 0.9 < r1.max() <= 1
    assert 1.8 < r2.max() <= 2
    with torch.no_grad():
        r1.fill_(-1)
        r2.fill_(3)
    bias.clamp_()
    assert (r1 == torch.tensor(0.01)).all()
    assert (r2 == 2).all()


def test_gradients_of_the_learned_power_are_finite_at_distance_zero():
    bias = AdditiveBias(encodings.get("kerple-power"), 2)
    bias(16).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in bias.learnable.values())


def test_minus_infinity_is_a_weight_of_zero():
    encoding = Encoding.from_expression("Piecewise((0, n < 3), (-oo, True))")
    assert AdditiveBias(encoding, 1)(5).tolist() == [[0, 0, 0, -math.inf, -math.inf]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-log(n)", "n = 0"),
        ("-2*log(n)**2", "n = 0"),
        ("log(3-n)", "at n = 4"),
        ("-zeta(n+2)", "can't be evaluated in torch"),
        ("-Sum(1/k, (k, 1, n+1))", "can't be evaluated in torch"),
    ],
)
def test_what_a_decoder_cannot_use_is_refused(text, message):
    with pytest.raises(ParameterError, match=message):
        AdditiveBias(Encoding.from_expression(text), 1)(8)


def test_a_missing_value_is_named():
    with pytest.raises(ParameterError, match="no value for w"):
        AdditiveBias(encodings.get("window"), 2)


def test_an_encoding_without_bias_is_refused():
    with pytest.raises(ParameterError, match="sinusoidal"):
        AdditiveBias(encodings.get("sinusoidal"), 2)
