"""The decoder: shapes, causality, paths, positions, and what it refuses."""

from __future__ import annotations

import math

import pytest
import torch

from trf import encodings
from trf.encodings import Encoding
from trf.errors import ParameterError, UnknownNameError
from trf.nn import Decoder, DecoderConfig, attention

# For theory only: no softmax attention, infinite at the token itself, or a width without a value.
THEORY_ONLY = {
    "permuteformer", "swin", "forgetting", "dape", "window",
    "type1-paper", "type2-paper", "inverse-n-paper", "inverse-n-log-n-paper",
}  # fmt: skip
RUNS = [name for name in encodings.names() if name not in THEORY_ONLY]
ABSOLUTE = [name for name in RUNS if encodings.get(name).kind == "absolute"]
RELATIVE = [name for name in RUNS if name not in ABSOLUTE]


def small(name, seed=0, **changes):
    torch.manual_seed(seed)
    shape = {"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 50, "train_length": 80}
    return Decoder(DecoderConfig(name, **{**shape, **changes}))


def some_tokens(length, batch=2, vocab=50):
    return torch.randint(vocab, (batch, length), generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("name", RUNS)
def test_paths_agree_on_logits_and_every_gradient(name):
    model, tokens = small(name), some_tokens(70)
    results = []
    for path in ("reference", "lean"):
        model.use_path(path).zero_grad()
        loss = model.losses(tokens[:, :-1], tokens[:, 1:]).mean()
        loss.backward()
        results.append([loss.detach(), *(p.grad.clone() for p in model.parameters())])
    for reference, lean in zip(*results, strict=True):
        assert torch.allclose(reference, lean, atol=1e-5)


@pytest.mark.parametrize("name", RUNS)
def test_no_gradient_reaches_a_later_token(name):
    model = small(name)
    x = model.embed(some_tokens(40)).detach().requires_grad_()
    model.forward_embeddings(x)[:, 20, 0].sum().backward()
    assert (x.grad[:, 21:] == 0).all()
    assert (x.grad[:, :21].norm(dim=-1) > 0).all()


@pytest.mark.parametrize("name", [name for name in RUNS if name != "learned"])
def test_runs_past_its_training_length(name):
    assert torch.isfinite(small(name)(some_tokens(400, batch=1))).all()


def test_without_encoding_order_is_seen_through_the_mask_alone():
    model, tokens = small("none", n_layer=1), some_tokens(9)
    swapped = tokens.clone()
    swapped[:, [2, 5]] = tokens[:, [5, 2]]
    assert torch.allclose(model(tokens)[:, -1], model(swapped)[:, -1], atol=1e-6)
    ordered = small("alibi", n_layer=1)
    assert not torch.allclose(ordered(tokens)[:, -1], ordered(swapped)[:, -1], atol=1e-4)


def test_embeddings_are_tied_and_parameters_few():
    model = Decoder(DecoderConfig("alibi"))
    assert model.n_parameters() == 4 * (12 * 128**2 + 2 * 128) + 256 * 128 + 128
    hidden = model.forward_embeddings(model.embed(some_tokens(3)))
    assert torch.equal(hidden @ model.embedding.weight.T, model.logits(hidden))


def test_learned_bias_is_shared_by_the_layers():
    names = [n for n, _ in small("kerple-log").named_parameters() if "learnable" in n]
    assert names == ["bias.learnable.r1", "bias.learnable.r2"]


def test_same_seed_same_model():
    a, b, c = small("kerple-log"), small("kerple-log"), small("kerple-log", seed=1)
    tokens = some_tokens(10)
    assert torch.equal(a(tokens), b(tokens))
    assert not torch.equal(a(tokens), c(tokens))


def test_an_encoding_of_ones_own():
    mine = Encoding.from_expression("-r*sqrt(n)")
    model = Decoder(DecoderConfig("custom", n_layer=1, n_head=2, n_embd=8), encoding=mine)
    model(some_tokens(12)).sum().backward()
    assert model.bias is not None
    assert (model.bias.learnable["r"].grad != 0).all()


def test_unknown_encoding_names_the_nearest():
    with pytest.raises(UnknownNameError, match="alibi"):
        small("alibbi")


@pytest.mark.parametrize("name", ["permuteformer", "swin", "forgetting", "dape"])
def test_an_encoding_that_cannot_run_says_so(name):
    with pytest.raises(ParameterError, match="can't run"):
        small(name)


@pytest.mark.parametrize("name", RUNS)
def test_every_parameter_learns(name):
    model, tokens = small(name), some_tokens(60)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    losses = []
    for _ in range(3):
        optimiser.zero_grad()
        loss = model.losses(tokens[:, :-1], tokens[:, 1:]).mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0], losses
    still = {key for key, p in model.named_parameters() if torch.equal(p, before[key])}
    # Values of buckets from n = 59 on are not met; a constant in the logits makes no difference.
    assert still <= {f"bias.learnable.b{k}" for k in range(26, 32)} | {"mechanism.mlp.2.bias"}


def test_learned_positions_end_with_the_training_length():
    model = small("learned", train_length=40)
    assert torch.isfinite(model(some_tokens(40))).all()
    with pytest.raises(ParameterError, match=r"training length 40, got 41 tokens"):
        model(some_tokens(41))


@pytest.mark.parametrize("name", RELATIVE)
def test_a_window_is_put_on_without_retraining(name):
    model, tokens = small(name), some_tokens(90, batch=1)
    whole = model(tokens)
    view = model.with_window(16)
    assert view.encoding is model.encoding
    assert all(a is b for a, b in zip(view.parameters(), model.parameters(), strict=True))
    for path in ("reference", "lean"):
        x = model.embed(tokens).detach().requires_grad_()
        view.use_path(path).forward_embeddings(x)[0, 60, 0].backward()
        reach = x.grad[0].norm(dim=-1) > 0
        assert reach.nonzero().min() == 60 - 2 * 15  # two layers of a window of 16
        assert reach.nonzero().max() == 60
    assert torch.allclose(view(tokens)[:, :16], whole[:, :16], atol=1e-4)
    assert torch.equal(model(tokens), whole)


@pytest.mark.parametrize("name", RELATIVE)
def test_blocks_are_put_on_without_retraining(name):
    model, tokens = small(name, n_layer=1), some_tokens(90, batch=1)
    x = model.embed(tokens).detach().requires_grad_()
    model.with_blocks(16).forward_embeddings(x)[0, 50, 0].backward()
    reach = (x.grad[0].norm(dim=-1) > 0).nonzero()
    assert (reach.min(), reach.max()) == (32, 50)


@pytest.mark.parametrize("span", ["with_window", "with_blocks"])
@pytest.mark.parametrize("name", RELATIVE)
def test_windowed_paths_agree_on_logits_and_every_gradient(name, span):
    model, tokens = small(name, n_layer=1), some_tokens(80, batch=1)
    view = getattr(model, span)(11).with_log_scale(4)
    results = []
    for path in ("reference", "lean"):
        view.use_path(path).zero_grad()
        loss = view.losses(tokens[:, :-1], tokens[:, 1:]).mean()
        loss.backward()
        grads = [p.grad if p.grad is None else p.grad.clone() for p in model.parameters()]
        results.append([loss.detach(), *(g for g in grads if g is not None)])
    for reference, lean in zip(*results, strict=True):
        assert torch.allclose(reference, lean, atol=1e-5)


@pytest.mark.parametrize("name", ABSOLUTE)
def test_absolute_positions_take_no_window(name):
    for span in ("with_window", "with_blocks"):
        with pytest.raises(ParameterError, match="absolute"):
            getattr(small(name), span)(16)


def test_the_log_scale_sharpens_late_queries_only():
    model, tokens = small("alibi", n_layer=1), some_tokens(60, batch=1)
    scaled = model.with_log_scale(20)
    assert torch.equal(scaled(tokens)[:, :20], model(tokens)[:, :20])
    assert not torch.allclose(scaled(tokens)[:, 30:], model(tokens)[:, 30:], atol=1e-4)
    gain = scaled.view.gain(60, torch.device("cpu"))
    assert gain[39].item() == pytest.approx(math.log(40) / math.log(20))
    behind = scaled.with_window(20).view.gain(60, torch.device("cpu"))
    assert (behind == 1).all()
    assert model.with_log_scale().view.log_scale == 80


@pytest.mark.parametrize("length", [0, 1, 2.0, True])
def test_the_log_scale_wants_a_length(length):
    with pytest.raises(ParameterError, match="train_length"):
        small("alibi").with_log_scale(length)


@pytest.mark.parametrize("name", ["xpos", "xpos-shared", "rope", "rerope"])
def test_rotations_do_not_overflow_at_length_65536(name):
    model = small(name, n_layer=1, n_head=1, n_embd=8)
    with torch.no_grad():
        assert torch.isfinite(model.with_window(64)(some_tokens(65_536, batch=1))).all()


def test_rerope_is_rope_within_its_window():
    rope, rerope = small("rope"), small("rerope")
    tokens = some_tokens(300, batch=1)
    assert torch.allclose(rope(tokens)[:, :257], rerope(tokens)[:, :257], atol=1e-5)
    assert not torch.allclose(rope(tokens)[:, 280:], rerope(tokens)[:, 280:], atol=1e-4)


def test_concatenated_sandwich_has_the_weights_of_the_bias():
    added, joined = small("sandwich"), small("sandwich-absolute")
    tokens = some_tokens(300)
    assert torch.allclose(added(tokens), joined(tokens), atol=1e-4)
    H, T, D = 2, 300, 8
    q, k = torch.randn(2, 1, H, T, D, generator=torch.Generator().manual_seed(3))
    v = torch.eye(T).expand(1, H, T, T)  # the output is the weights
    widened = joined.mechanism.turn(q, k)
    weights = attention(*widened, v, scale=D**-0.5)
    assert torch.allclose(weights, attention(q, k, v, added.bias(T)), atol=1e-5)


def test_positive_parameters_stay_positive_under_any_optimiser():
    mine = Encoding.from_expression("-r*sqrt(n)", n_head=2)
    model = Decoder(DecoderConfig("custom", n_layer=1, n_head=2, n_embd=8), encoding=mine)
    with torch.no_grad():
        model.bias.learnable["r"].fill_(-3.0)
    assert [head["r"] for head in model.bias.values()] == pytest.approx([0.01, 0.01])
    with torch.no_grad():
        model.bias.learnable["r"].fill_(-3.0)
    assert (model.bias(9)[:, 1:] < 0).all()


def test_two_passes_before_one_backward():
    model = small("kerple-log")
    (model(some_tokens(9)).sum() + model(some_tokens(12)).sum()).backward()


@pytest.mark.parametrize(
    "wrong",
    [{"n_layer": 0}, {"n_head": 3}, {"n_embd": 15, "n_head": 1}, {"vocab_size": 2.5}],
)
def test_impossible_shapes_are_refused(wrong):
    with pytest.raises(ParameterError):
        small("alibi", **wrong)
