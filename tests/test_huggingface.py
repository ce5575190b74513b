"""Hugging Face models, small ones made from their config classes; no network is used."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

pytest.importorskip("transformers")
import torch
import transformers as hf

import trf
from trf.empirical import attention_field, empirical_receptive_field
from trf.errors import CheckpointError, ParameterError, TextError
from trf.huggingface import encoding_from_config, encoding_from_model, load
from trf.huggingface.families import bucket_starts, mpt_slopes
from trf.theory.stack import weights

V = 50
TOKENS = [(i * i + 3 * i) % V for i in range(300)]
ENDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
WIDE = {
    "vocab_size": V,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    **ENDS,
}
CONFIGS = {
    "bloom": lambda: hf.BloomConfig(vocab_size=V, hidden_size=32, n_layer=2, n_head=4, **ENDS),
    "mpt": lambda: hf.MptConfig(vocab_size=V, d_model=32, n_layers=2, n_heads=4, **ENDS),
    "falcon": lambda: hf.FalconConfig(
        vocab_size=V, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, alibi=True, **ENDS
    ),
    "gpt2": lambda: hf.GPT2Config(
        vocab_size=V, n_embd=32, n_layer=2, n_head=4, n_positions=64, **ENDS
    ),
    "gpt_neox": lambda: hf.GPTNeoXConfig(**{**WIDE, "num_hidden_layers": 2}),
    "llama": lambda: hf.LlamaConfig(**WIDE, num_hidden_layers=2),
    "mistral": lambda: hf.MistralConfig(**WIDE, num_hidden_layers=2, sliding_window=5),
    "qwen2": lambda: hf.Qwen2Config(
        **WIDE, num_hidden_layers=3, use_sliding_window=True, sliding_window=7, max_window_layers=1
    ),
    "smollm3": lambda: hf.SmolLM3Config(**WIDE, num_hidden_layers=4),
    "gemma2": lambda: hf.Gemma2Config(**WIDE, num_hidden_layers=2, head_dim=8, sliding_window=6),
}
ENCODINGS = {
    "bloom": ["alibi", "alibi"],
    "mpt": ["alibi", "alibi"],
    "falcon": ["alibi", "alibi"],
    "gpt2": ["learned", "learned"],
    "gpt_neox": ["rope", "rope"],
    "llama": ["rope", "rope"],
    "mistral": ["rope", "rope"],
    "qwen2": ["rope", "rope", "rope"],
    "smollm3": ["rope", "rope", "rope", "none"],
    "gemma2": ["rope", "rope"],
}
WINDOWS = {"mistral": [5, 5], "qwen2": [None, 7, 7], "gemma2": [6, None]}


def tiny(name, scale=1.0):
    torch.manual_seed(0)
    model = hf.AutoModelForCausalLM.from_config(CONFIGS[name]()).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(scale)
    return model


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_says_its_encoding(name):
    found = encoding_from_config(CONFIGS[name]())
    assert [layer.encoding for layer in found.layers] == ENCODINGS[name]
    assert [layer.window for layer in found.layers] == WINDOWS.get(name, [None] * len(found.layers))
    assert found.n_head == 4
    assert json.loads(json.dumps(found.to_dict()))["n_head"] == 4
    assert "layer" in str(found)


def test_windows_bound_what_is_within_reach():
    found = encoding_from_config(CONFIGS["mistral"]())
    assert found.reach == 2 * (5 - 1) + 1
    assert [layer.statuses for layer in found.layers] == [("converges",)] * 2
    assert found.radii(0.01)[0] == (5, 5, 5, 5)
    assert encoding_from_config(CONFIGS["gemma2"]()).reach is None
    assert encoding_from_config(CONFIGS["llama"]()).layers[0].statuses == ("diverges",)
    assert encoding_from_config(CONFIGS["smollm3"]()).layers[3].statuses == ("diverges",) * 4
    assert encoding_from_config(CONFIGS["gpt2"]()).layers[0].statuses == ("not applicable",)


def attention_of(model, layer, tokens):
    """The weights of one layer, (H, N, N), as the model itself computes them."""
    model.config._attn_implementation = "eager"
    with torch.no_grad():
        out = model(torch.tensor([tokens]), output_attentions=True)
    return out.attentions[layer][0]


@pytest.mark.parametrize("name", ["bloom", "mpt", "falcon"])
@pytest.mark.parametrize("n_head", [4, 6])
def test_the_bias_is_what_the_model_adds(name, n_head, monkeypatch):
    """With queries and keys of zero the weights are exp(p), normalised."""
    N = 30
    config = CONFIGS[name]()
    setattr(config, "n_heads" if name == "mpt" else "num_attention_heads", n_head)
    config.hidden_size = 8 * n_head
    torch.manual_seed(0)
    model = hf.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            if "query_key_value" in key or "Wqkv" in key:
                p.zero_()
    if name == "falcon":  # its eager path adds the bias twice; the default one is what it runs
        masks = []
        kernel = torch.nn.functional.scaled_dot_product_attention
        monkeypatch.setattr(
            torch.nn.functional,
            "scaled_dot_product_attention",
            lambda *args, **kw: (masks.append(kw["attn_mask"]), kernel(*args, **kw))[1],
        )
        model(torch.tensor([TOKENS[:N]]))
        rows = masks[0][0, :, -1].softmax(-1)
    else:
        rows = attention_of(model, 0, TOKENS[:N])[:, -1]
    got = rows.flip(-1).detach().double().numpy()
    biases = encoding_from_config(config).layers[0].biases
    expected = np.stack([weights(bias, N) for bias in biases])
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.allclose(got, expected, atol=1e-5)
    seen = attention_field(model, TOKENS, length=N, n_windows=1, progress=False)
    assert np.allclose(seen.density[0], expected, atol=1e-5)


def test_the_slopes_of_mpt_follow_its_own_maximum():
    slopes = [float(m) for m in mpt_slopes(4, 16)]
    assert slopes == [2.0**-4, 2.0**-8, 2.0**-12, 2.0**-16]
    config = hf.MptConfig(n_layers=1, n_heads=4, attn_config={"alibi_bias_max": 16})
    assert encoding_from_config(config).radii(0.01)[0][0] == math.floor(math.log(100) * 16) + 1


T5_SHAPE = {"d_model": 16, "d_kv": 4, "num_layers": 1, "num_decoder_layers": 2, "num_heads": 3,
            "d_ff": 16, "vocab_size": V}  # fmt: skip


@pytest.mark.parametrize("family", ["T5", "MT5", "UMT5"])
def test_values_of_t5_come_from_its_weights(family):
    torch.manual_seed(0)
    config = getattr(hf, f"{family}Config")(**T5_SHAPE)
    model = getattr(hf, f"{family}ForConditionalGeneration")(config)
    unknown = encoding_from_config(config)
    assert unknown.layers[0].biases is None
    assert "weights" in unknown.layers[0].note
    found = encoding_from_model(model)
    tables = [found.layers[i].biases for i in (0, 1)]
    assert (str(tables[0]) == str(tables[1])) == (family != "UMT5")
    attention = model.decoder.block[1 if family == "UMT5" else 0].layer[0].SelfAttention
    wanted = attention.compute_bias(200, 200)[0, :, -1].flip(-1)  # (H, N)
    layer = 1 if family == "UMT5" else 0
    for head, bias in enumerate(tables[layer]):
        expected = np.exp(wanted[head].detach().numpy() - wanted[head].max().item())
        assert np.allclose(weights(bias, 200), expected, atol=1e-6)
    radii = found.radii(0.1, length=64)
    assert all(1 <= r <= 64 for row in radii for r in row)
    assert set(found.layers[0].statuses) == {"diverges"}


@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (16, 64), (8, 9)])
def test_buckets_are_those_of_transformers(buckets, farthest):
    from transformers.models.t5.modeling_t5 import T5Attention

    n = torch.arange(300)
    wanted = T5Attention._relative_position_bucket(-n, False, buckets, farthest).tolist()
    starts = bucket_starts(buckets, farthest)
    got = [max(b for b, start in starts.items() if start <= d) for d in range(300)]
    assert got == wanted


@pytest.mark.parametrize("name", CONFIGS)
def test_any_causal_model_is_measured(name, tmp_path):
    path = tmp_path / name
    tiny(name, 3.0).save_pretrained(path)
    field = empirical_receptive_field(
        str(path), TOKENS, length=24, n_windows=2, layers=True, heads=True, progress=False
    )
    assert field.encoding == ENCODINGS[name][0]
    assert field.curve[-1] == pytest.approx(1)
    assert len(field.layers) == len(ENCODINGS[name])
    reach = encoding_from_model(hf.AutoModelForCausalLM.from_pretrained(path)).reach
    if reach is not None:
        assert (field.density[:reach] > 0).all()
        assert (field.density[reach:] == 0).all()
    assert field.heads.density.sum(-1) == pytest.approx(np.ones((len(field.layers), 4)), rel=1e-4)
    assert (field.heads.entropy[..., 1:] <= np.log(np.arange(2, 25)) + 1e-5).all()


@pytest.mark.parametrize("name", CONFIGS)
def test_heads_are_those_that_the_model_computes(name):
    model = tiny(name, 3.0)
    field = attention_field(model, TOKENS[:25], length=24, n_windows=1, progress=False)
    logits = model(torch.tensor([TOKENS[:24]])).logits[0]
    for layer in range(field.n_layer if name != "falcon" else 0):  # see the bias it adds twice
        wanted = attention_of(model, layer, TOKENS[:24])
        assert np.allclose(field.density[layer], wanted[:, -1].flip(-1).numpy(), atol=1e-5)
        late = wanted[:, 12:, 0].mean(1).numpy()
        assert np.allclose(field.sink[layer], late, atol=1e-5)
    known = name not in ("bloom", "mpt", "falcon")
    assert np.isfinite(field.logit_bound).all() == known
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(TOKENS[1:25]), reduction="none")
    assert np.allclose(field.loss, loss.detach().numpy(), atol=1e-4)


def test_text_goes_through_the_model_s_own_tokeniser(tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {chr(97 + i): i for i in range(26)} | {"?": 26}
    tokeniser = Tokenizer(models.WordLevel(words, unk_token="?"))
    tokeniser.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    hf.PreTrainedTokenizerFast(tokenizer_object=tokeniser, unk_token="?").save_pretrained(tmp_path)
    tiny("llama").save_pretrained(tmp_path)
    text = "thequickbrownfoxjumpsoverthelazydog" * 2
    by_text = empirical_receptive_field(tmp_path, text, length=16, n_windows=2, progress=False)
    ids = [words[c] for c in text]
    by_ids = empirical_receptive_field(tmp_path, ids, length=16, n_windows=2, progress=False)
    assert np.array_equal(by_text.curve, by_ids.curve)


def test_gradients_are_those_of_the_model():
    model = tiny("llama", 3.0)
    field = empirical_receptive_field(
        model, TOKENS[:17], length=16, n_windows=1, reduction="loss", progress=False
    )
    x = model.get_input_embeddings()(torch.tensor([TOKENS[:16]])).detach().requires_grad_()
    logits = model(inputs_embeds=x).logits[0, -1]
    torch.nn.functional.cross_entropy(logits, torch.tensor(TOKENS[16])).backward()
    s = x.grad[0].norm(dim=-1).flip(0).double().numpy()
    assert np.allclose(field.density, s / s.sum(), atol=1e-5)


def test_trained_parameters_of_a_checkpoint_are_read_back():
    found = encoding_from_model("kerple-log")
    model = trf.load("kerple-log")
    assert found.names == ("kerple-log",)
    for bias, values in zip(found.layers[0].biases, model.bias.values(), strict=True):
        wanted = -values["r1"] * np.log(1 + values["r2"] * np.arange(9))
        assert np.allclose(np.log(weights(bias, 9)), wanted, atol=1e-6)
        status = "converges" if values["r1"] > 1 else "diverges"
        assert found.layers[0].statuses[found.layers[0].biases.index(bias)] == status
    radii = found.radii(0.01, length=512)
    assert len(radii) == 4
    assert all(1 <= r <= 512 for r in radii[0])
    window = encoding_from_model(model.with_window(64))
    assert window.reach == 4 * 63 + 1


def test_learned_values_of_t5_in_a_decoder_are_read_back():
    from trf.nn import Decoder, DecoderConfig

    torch.manual_seed(0)
    model = Decoder(DecoderConfig("t5", n_layer=1, n_head=2, n_embd=8))
    found = encoding_from_model(model)
    assert set(found.layers[0].statuses) == {"diverges"}
    assert all(1 <= r <= 128 for r in found.radii(0.1, length=128)[0])


def test_a_name_that_is_not_there_offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(CheckpointError, match=r"nobody/nothing-there.*local cache"):
        empirical_receptive_field("nobody/nothing-there", TOKENS, progress=False)


def test_what_is_refused(tmp_path):
    bert = hf.BertLMHeadModel(
        hf.BertConfig(**{k: v for k, v in WIDE.items() if k != "num_key_value_heads"},
                      num_hidden_layers=1)
    )  # fmt: skip
    with pytest.raises(CheckpointError, match="depends on later tokens"):
        empirical_receptive_field(bert, TOKENS, length=20, progress=False)
    with pytest.raises(CheckpointError, match="encoder with a decoder"):
        load(hf.T5ForConditionalGeneration(hf.T5Config(**T5_SHAPE)))
    with pytest.raises(CheckpointError, match="no language-modelling head"):
        load(hf.LlamaModel(CONFIGS["llama"]()))
    with pytest.raises(CheckpointError, match="entered at its embeddings"):
        load(torch.nn.Linear(2, 2))
    gpt2 = tiny("gpt2")
    with pytest.raises(ParameterError, match="learned positions up to 64"):
        empirical_receptive_field(gpt2, TOKENS, length=100, progress=False)
    with pytest.raises(TextError, match=r"0 \.\.\. 49"):
        empirical_receptive_field(gpt2, [*TOKENS, V], length=20, progress=False)
    with pytest.raises(TextError, match="at least 61"):
        empirical_receptive_field(gpt2, TOKENS[:50], length=60, progress=False)
    gpt2.save_pretrained(tmp_path / "no-tokeniser")
    with pytest.raises(TextError, match="tokeniser"):
        empirical_receptive_field(str(tmp_path / "no-tokeniser"), "To be", progress=False)
    with pytest.raises(ParameterError, match="not known"):
        encoding_from_config(hf.BertConfig())
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(CheckpointError, match="broken"):
        empirical_receptive_field(str(tmp_path / "broken"), TOKENS, progress=False)
