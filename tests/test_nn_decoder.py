"""The decoder: shapes, causality, paths, positions, and what it refuses."""

from __future__ import annotations

import pytest
import torch

from trf import encodings
from trf.encodings import Encoding
from trf.errors import ParameterError, UnknownNameError
from trf.nn import Decoder, DecoderConfig

RUNS = [
    "none", "sinusoidal", "alibi", "kerple-log", "kerple-power", "type1", "type2", "inverse-n",
    "inverse-n-log-n", "sandwich",
]  # fmt: skip


def small(name, seed=0, **changes):
    torch.manual_seed(seed)
    shape = {"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 50, "train_length": 32}
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


@pytest.mark.parametrize("name", RUNS)
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


def test_an_encoding_that_cannot_run_says_so():
    multiplicative = [n for n in encodings.names() if encodings.get(n).kind == "multiplicative"]
    with pytest.raises(ParameterError, match="can't run"):
        small(multiplicative[0])


@pytest.mark.parametrize(
    "wrong",
    [{"n_layer": 0}, {"n_head": 3}, {"n_embd": 15, "n_head": 1}, {"vocab_size": 2.5}],
)
def test_impossible_shapes_are_refused(wrong):
    with pytest.raises(ParameterError):
        small("alibi", **wrong)
