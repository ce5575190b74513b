"""Reading configs, one function a family of models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sympy
import torch

from trf.encodings.alibi import slopes
from trf.errors import ParameterError
from trf.expression import Bias, as_bias
from trf.huggingface.layer import LayerEncoding, window_bias

Layers = tuple[LayerEncoding, ...]
Weights = Mapping[str, Any]
_SEES_ALL = ("full_attention", "attention", "global")
_LEARNED = "learned absolute positions: no p(n)"


def read_layers(config: Any, weights: Weights) -> tuple[str, int, Layers]:
    """The model type, the number of heads and the layers of a config.

    Raises:
        ParameterError: a model type or a layer type that is not known.
    """
    model_type = getattr(config, "model_type", None)
    if not isinstance(model_type, str):
        raise ParameterError(
            f"a config of transformers has a model_type; got {type(config).__name__} without one"
        )
    reader = _READERS.get(model_type)
    if reader is None:
        if _rope_settings(config) is None:
            raise ParameterError(
                f"the position encoding of the model type {model_type!r} is not known. Known: "
                f"{', '.join(sorted(_READERS))}, and every one with rope_parameters"
            )
        reader = _rotary
    return (
        model_type,
        _first(config, "num_attention_heads", "n_heads", "num_heads"),
        reader(config, weights),
    )


def _first(config: Any, *names: str) -> Any:
    for name in names:
        if getattr(config, name, None) is not None:
            return getattr(config, name)
    raise ParameterError(f"the {config.model_type} config has none of {', '.join(names)}")


def _n_layer(config: Any) -> int:
    if config.model_type in ("t5", "mt5", "umt5"):
        return _first(config, "num_decoder_layers", "num_layers")
    return _first(config, "num_hidden_layers", "n_layer", "n_layers", "num_layers")


def _n_head(config: Any) -> int:
    return _first(config, "num_attention_heads", "n_heads", "num_heads")


def _alike(config: Any, encoding: str, biases: tuple[Bias, ...] | None, note: str = "") -> Layers:
    return tuple(LayerEncoding(i, encoding, biases, None, note) for i in range(_n_layer(config)))


def _linear(rates: tuple[sympy.Expr, ...]) -> tuple[Bias, ...]:
    return tuple(as_bias(-rate * sympy.Symbol("n")) for rate in rates)


def _bloom(config: Any, _: Weights) -> Layers:
    return _alike(config, "alibi", _linear(slopes(_n_head(config))))


def _mpt(config: Any, _: Weights) -> Layers:
    settings = config.attn_config
    if isinstance(settings, Mapping):
        alibi, steepest = settings.get("alibi", True), settings.get("alibi_bias_max", 8)
    else:
        alibi, steepest = settings.alibi, settings.alibi_bias_max
    note = "" if alibi else "transformers adds ALiBi to MPT whatever attn_config.alibi says"
    return _alike(config, "alibi", _linear(mpt_slopes(_n_head(config), steepest)), note)


def mpt_slopes(n_head: int, steepest: float = 8) -> tuple[sympy.Expr, ...]:
    """2^(-h M/c), h = 1 ... c, c the power of two from H up; if c > H the even h, then the odd.

    Example:
        >>> mpt_slopes(4) == slopes(4), mpt_slopes(3) == slopes(3)
        (True, True)
    """
    c = 1 << (n_head - 1).bit_length()
    exponent = sympy.nsimplify(steepest, rational=True) / c
    every = tuple(sympy.Integer(2) ** (-h * exponent) for h in range(1, c + 1))
    return every if c == n_head else (every[1::2] + every[::2])[:n_head]


def _falcon(config: Any, weights: Weights) -> Layers:
    if not config.alibi:
        return _rotary(config, weights)
    width = config.hidden_size // _n_head(config)
    rounded = [float(torch.tensor(float(m)).bfloat16()) for m in slopes(_n_head(config))]
    rates = tuple(sympy.Rational(m) / sympy.sqrt(width) for m in rounded)
    return _alike(config, "alibi", _linear(rates),
                  "slopes rounded to bfloat16 and divided by sqrt(d_head)")  # fmt: skip


def _t5(config: Any, weights: Weights) -> Layers:
    layers = []
    shared = config.model_type != "umt5"
    starts = bucket_starts(
        config.relative_attention_num_buckets, config.relative_attention_max_distance
    )
    tables: dict[int, tuple[Bias, ...]] = {}
    for i in range(_n_layer(config)):
        source = 0 if shared else i
        name = f"decoder.block.{source}.layer.0.SelfAttention.relative_attention_bias.weight"
        if name not in weights:
            layers.append(LayerEncoding(i, "t5", None, None, "its values are weights: give them"))
            continue
        if source not in tables:
            tables[source] = tuple(_table(row, starts) for row in weights[name].float().cpu().T)
        layers.append(LayerEncoding(i, "t5", tables[source], None, "causal self-attention"))
    return tuple(layers)


def bucket_starts(buckets: int = 32, farthest: int = 128) -> dict[int, int]:
    """The first distance of every causal bucket that has one: bucket -> n.

    n below E = buckets/2; from there E + floor((buckets - E) ln(n/E) / ln(farthest/E)), at most
    buckets - 1. Decided in integers: bucket E + k starts at the least n with
    n^(buckets-E) E^k >= farthest^k E^(buckets-E).

    Example:
        >>> starts = bucket_starts()
        >>> starts[15], starts[16], starts[17], starts[31]
        (15, 16, 19, 113)
    """
    E = buckets // 2
    steps = buckets - E
    starts = {n: n for n in range(E)}
    for k in range(steps):
        n = E
        while n**steps * E**k < farthest**k * E**steps:
            n += 1
        starts[E + k] = n
    by_distance = {n: bucket for bucket, n in sorted(starts.items())}  # of equal starts the last
    return {bucket: n for n, bucket in sorted(by_distance.items())}


def _table(values: torch.Tensor, starts: Mapping[int, int]) -> Bias:
    """The bias with a value a bucket."""
    edges = list(starts.items())
    pieces = [
        f"({values[bucket].item():.9g}, n < {edges[i + 1][1]})"
        for i, (bucket, _) in enumerate(edges[:-1])
    ]
    return as_bias(f"Piecewise({', '.join(pieces)}, ({values[edges[-1][0]].item():.9g}, True))")


def _learned(config: Any, _: Weights) -> Layers:
    return _alike(config, "learned", None, _LEARNED)


def _gpt_neo(config: Any, _: Weights) -> Layers:
    return tuple(
        LayerEncoding(i, "learned", None, config.window_size if kind == "local" else None, _LEARNED)
        for i, kind in enumerate(config.attention_layers)
    )


def _rope_settings(config: Any) -> Mapping[str, Any] | None:
    """What the config says of its rotation; None if it does not rotate."""
    settings = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None)
    if settings:
        return settings
    if getattr(config, "rope_theta", None) is not None:
        return {"rope_theta": config.rope_theta}
    if getattr(config, "rotary_dim", None) is not None:  # GPT-J
        return {"rope_theta": 10000.0}
    return None


def _rotary(config: Any, _: Weights) -> Layers:
    n_layer = _n_layer(config)
    rotates = _rotating(config, n_layer)
    widths = _windows(config, n_layer)
    settings = _rope_settings(config) or {}
    theta = settings.get("rope_theta", getattr(config, "rope_theta", None))
    note = "" if theta is None else f"base {theta:g}"
    kind = settings.get("rope_type", settings.get("type", "default"))
    if kind != "default":
        note += f"{', ' if note else ''}{kind} scaling"
    part = settings.get("partial_rotary_factor", 1.0)
    if part != 1.0:
        note += f"{', ' if note else ''}{part:.3g} of each head"
    layers = []
    for i in range(n_layer):
        if rotates[i]:
            layers.append(LayerEncoding(i, "rope", None, widths[i], note))
        else:
            width = widths[i]
            bias = as_bias("0") if width is None else window_bias(width)
            layers.append(LayerEncoding(i, "none", (bias,) * _n_head(config), width))
    return tuple(layers)


def _rotating(config: Any, n_layer: int) -> list[bool]:
    """Whether each layer rotates."""
    flags = getattr(config, "no_rope_layers", None)  # 1 where a layer rotates
    if flags:
        return [bool(flag) for flag in flags[:n_layer]]
    if config.model_type == "cohere2":  # its full layers have no positions
        return [kind == "sliding_attention" for kind in config.layer_types]
    return [True] * n_layer


def _windows(config: Any, n_layer: int) -> list[int | None]:
    """The window of each layer."""
    width = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None)
    if not kinds:
        used = width if getattr(config, "use_sliding_window", True) else None
        return [used] * n_layer
    widths: list[int | None] = []
    for kind in kinds[:n_layer]:
        if kind in _SEES_ALL:
            widths.append(None)
        elif kind == "sliding_attention":
            widths.append(width)
        elif kind == "chunked_attention":  # a query sees its own chunk only: at most its size
            widths.append(config.attention_chunk_size)
        else:
            raise ParameterError(
                f"layers of the type {kind!r} in {config.model_type} are no softmax attention "
                f"with a known window; known: {', '.join(_SEES_ALL)}, sliding_attention, "
                "chunked_attention"
            )
    return widths


_READERS: Mapping[str, Callable[[Any, Weights], Layers]] = {
    "bloom": _bloom,
    "mpt": _mpt,
    "falcon": _falcon,
    "t5": _t5,
    "mt5": _t5,
    "umt5": _t5,
    "gpt2": _learned,
    "gpt_bigcode": _learned,
    "openai-gpt": _learned,
    "opt": _learned,
    "gpt_neo": _gpt_neo,
}
