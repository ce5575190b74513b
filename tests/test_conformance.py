"""Bias for bias equal to the originals, where their code can be installed."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from trf import encodings
from trf.encodings.alibi import falcon_slopes, slopes
from trf.encodings.t5 import bucket
from trf.nn import AdditiveBias, Decoder, DecoderConfig, Positions, attention
from trf.nn.mechanisms import Rotary

HEADS = [1, 3, 5, 6, 7, 8, 12, 40, 66]
ALIBI = encodings.get("alibi")


def differences(alibi, length):
    """Their bias of keys 0 ... N-1 for the last query, as a bias of the distance."""
    flat = alibi.reshape(-1, length)
    return (flat - flat[:, -1:]).flip(1)


@pytest.mark.parametrize("n_head", HEADS)
def test_alibi_of_bloom(n_head):
    bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
    theirs = bloom.build_alibi_tensor(torch.ones(1, 100), n_head, torch.float32)
    ours = AdditiveBias(ALIBI, n_head)(100)
    assert torch.allclose(differences(theirs, 100), ours, rtol=1e-6, atol=1e-5)
    assert (ours[:, 0] == 0).all()


@pytest.mark.parametrize("bias_max", [8, 16])
@pytest.mark.parametrize("n_head", HEADS)
def test_alibi_of_mpt(n_head, bias_max):
    mpt = pytest.importorskip("transformers.models.mpt.modeling_mpt")
    theirs = mpt.build_mpt_alibi_tensor(n_head, 100, bias_max)
    encoding = replace(ALIBI, fixed={"m": lambda heads: slopes(heads, bias_max)})
    ours = AdditiveBias(encoding, n_head)(100)
    assert torch.allclose(theirs.reshape(n_head, 100).flip(1), ours, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n_head", HEADS)
def test_alibi_of_falcon(n_head):
    falcon = pytest.importorskip("transformers.models.falcon.modeling_falcon")
    theirs = falcon.build_alibi_tensor(torch.ones(1, 100), n_head, torch.float32)
    theirs = theirs.reshape(n_head, 100) / math.sqrt(64)  # of key j, rounded to bfloat16
    ours = AdditiveBias(replace(ALIBI, fixed={"m": falcon_slopes(64)}), n_head)(100)
    assert torch.allclose(theirs[:, 1], -ours[:, 1], rtol=1e-7, atol=0)
    assert torch.allclose(theirs, -ours, rtol=2**-8, atol=0)


def test_t5_buckets():
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    n = torch.arange(3000)
    theirs = t5.T5Attention._relative_position_bucket(
        -n, bidirectional=False, num_buckets=32, max_distance=128
    )
    assert [bucket(int(d)) for d in n] == theirs.tolist()


def test_t5_bias():
    transformers = pytest.importorskip("transformers")
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    config = transformers.T5Config(num_heads=3, d_model=12, d_kv=4, is_decoder=True)
    layer = t5.T5Attention(config, has_relative_attention_bias=True)
    ours = AdditiveBias(encodings.get("t5"), 3)
    with torch.no_grad():
        for k, parameter in enumerate(ours.learnable[f"b{k}"] for k in range(32)):
            layer.relative_attention_bias.weight[k] = parameter
        theirs = layer.compute_bias(200, 200)[0, :, -1].flip(1)
    assert torch.equal(theirs, ours(200).detach())


def rotary(name, width):
    return Rotary(encodings.get(name), n_head=2, n_embd=2 * width, train_length=64)


def random_qkv(length, width):
    return torch.randn(3, 1, 2, length, width, generator=torch.Generator().manual_seed(2))


def test_rope_of_llama():
    transformers = pytest.importorskip("transformers")
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    config = transformers.LlamaConfig(hidden_size=32, num_attention_heads=2, head_dim=16)
    q, k, v = random_qkv(200, 16)
    cos, sin = llama.LlamaRotaryEmbedding(config)(v, torch.arange(200)[None])
    theirs = llama.apply_rotary_pos_emb(q, k, cos, sin)
    for ours, their in zip(rotary("rope", 16).turn(q, k), theirs, strict=True):
        assert torch.allclose(ours, their, atol=5e-5)  # their angles are in float32


def neighbours(x):
    """From pairs (i, i + D/2), as here, to pairs of neighbours, as in x-transformers."""
    return torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)


@pytest.mark.parametrize("name", ["rope", "xpos"])
def test_rope_and_xpos_of_x_transformers(name):
    x = pytest.importorskip("x_transformers.x_transformers")
    q, k, v = random_qkv(200, 16)
    freqs, scale = x.RotaryEmbedding(16, use_xpos=name == "xpos").forward_from_seq_len(200)
    inverse = 1.0 if name == "rope" else scale**-1
    their_q = x.apply_rotary_pos_emb(neighbours(q), freqs, scale)
    their_k = x.apply_rotary_pos_emb(neighbours(k), freqs, inverse)
    module = rotary(name, 16)
    ours = attention(*module.turn(q, k), v, Positions(rate=module.rate))
    theirs = torch.nn.functional.scaled_dot_product_attention(their_q, their_k, v, is_causal=True)
    assert torch.allclose(ours, theirs, atol=2e-5)


def test_a_causal_model_with_bloom_slopes_is_bloom():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BloomConfig(
        vocab_size=50, hidden_size=24, n_layer=1, n_head=3, attn_implementation="eager",
        hidden_dropout=0.0, attention_dropout=0.0,
    )  # fmt: skip
    bloom = transformers.BloomModel(config).eval()
    layer = bloom.h[0].self_attention
    torch.nn.init.normal_(layer.query_key_value.weight)
    x = torch.randn(1, 40, 24)
    mask = torch.full((40, 40), -torch.inf).triu(1)[None, None]
    alibi = bloom.build_alibi_tensor(torch.ones(1, 40), 3, torch.float32)
    with torch.no_grad():
        theirs = layer(x, torch.zeros_like(x), alibi, mask)[0]
        q, k, v = layer.query_key_value(x).view(1, 40, 3, 3, 8).permute(3, 0, 2, 1, 4)
        ours = attention(q, k, v, AdditiveBias(ALIBI, 3)(40))
        ours = layer.dense(ours.transpose(1, 2).reshape(1, 40, 24))
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_sandwich_partial_sums_are_those_of_the_field():
    # The mass of 512 and 9216 tokens for H = 8: h = 1, 6, 8.
    bias = AdditiveBias(encodings.get("sandwich"), 8)
    mass = bias(9216).double().exp().cumsum(1)
    assert mass[0, [511, 9215]].tolist() == pytest.approx([1.241, 1.241], abs=1e-3)
    assert mass[5, [511, 9215]].tolist() == pytest.approx([4.00, 4.61], abs=6e-3)
    assert mass[7, [511, 9215]].tolist() == pytest.approx([8.12, 14.1], abs=6e-2)


def test_sandwich_of_its_paper_is_a_product_of_sinusoids():
    # arXiv 2212.10356: p_i . p_j of sinusoids with D/2 frequencies is the sum of the cosines.
    model = Decoder(DecoderConfig("sandwich-absolute", n_layer=1, n_head=8, n_embd=64))
    q = torch.zeros(1, 8, 50, 8)
    wide, _ = model.mechanism.turn(q, q)
    product = (wide @ wide.mT)[0, :, -1].flip(1) / math.sqrt(8)
    bias = AdditiveBias(encodings.get("sandwich"), 8)(50)
    assert torch.allclose(product - product[:, :1], bias, atol=1e-4)
