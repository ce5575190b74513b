"""What position encoding a model uses, layer by layer and head by head, and its theory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trf import encodings
from trf.expression import Bias, as_bias
from trf.huggingface.families import read_layers
from trf.huggingface.layer import LayerEncoding
from trf.nn.decoder import Decoder
from trf.nn.windows import Blocks, Window
from trf.theory import ReceptiveField, theoretical_receptive_field


@dataclass(frozen=True)
class ModelEncoding:
    """The position encoding of a whole model.

    Attributes:
        model_type: as the config calls it; `"trf"` for the shipped decoder.
        n_head: heads a layer.
        layers: one `LayerEncoding` a layer, in order.
    """

    model_type: str
    n_head: int
    layers: tuple[LayerEncoding, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The encodings of the catalogue that it uses, each once."""
        return tuple(dict.fromkeys(layer.encoding for layer in self.layers))

    @property
    def reach(self) -> int | None:
        """The farthest token that the last layer's output can depend on, itself included.

        sum over layers of (w - 1), plus 1, if every layer has a window w; None if one has not.
        """
        widths = [layer.window for layer in self.layers]
        if any(w is None for w in widths):
            return None
        return sum(w - 1 for w in widths if w is not None) + 1

    def fields(self, eps: Any = 0.01, length: int | None = None) -> tuple[Any, ...]:
        """The TRF of every layer and head: a tuple a layer, None where it has no p(n).

        Args:
            eps: the share of the mass left out.
            length: N, tokens; None for the limit, which a divergent bias does not have.

        Returns:
            A tuple of L entries, each a tuple of H `ReceptiveField` or None. Of a layer with a
            window and no p(n) (RoPE) it is the window's, which bounds what the layer can see.

        Raises:
            DivergenceError: in the limit, for a bias whose series diverges.
        """
        done: dict[tuple[str, ...], tuple[ReceptiveField, ...]] = {}
        result = []
        for layer in self.layers:
            biases = layer.bounding_biases(self.n_head)
            if biases is None:
                result.append(None)
                continue
            key = tuple(str(bias.expr) for bias in biases)
            if key not in done:
                known: dict[str, ReceptiveField] = {}
                for name, bias in zip(key, biases, strict=True):
                    if name not in known:
                        known[name] = theoretical_receptive_field(bias, eps, length=length)
                done[key] = tuple(known[name] for name in key)
            result.append(done[key])
        return tuple(result)

    def radii(self, eps: Any = 0.01, length: int | None = None) -> tuple[Any, ...]:
        """As `fields`, but the radii alone, in tokens."""
        return tuple(
            None if row is None else tuple(field.radius for field in row)
            for row in self.fields(eps, length)
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        return {
            "model_type": self.model_type,
            "n_head": self.n_head,
            "reach": self.reach,
            "layers": [layer.to_dict() for layer in self.layers],
        }

    def __str__(self) -> str:
        lines: list[str] = []
        first = 0
        for i, layer in enumerate(self.layers):
            following = self.layers[i + 1] if i + 1 < len(self.layers) else None
            if following is None or not layer.like(following):
                span = f"layer {i}" if first == i else f"layers {first} to {i}"
                lines.append(f"  {span}: {layer}")
                first = i + 1
        reach = "" if self.reach is None else f"; {self.reach} tokens within reach"
        head = f"{self.model_type}, {len(self.layers)} layers of {self.n_head} heads{reach}"
        return "\n".join([head, *lines])


def encoding_from_config(config: Any, weights: Mapping[str, Any] | None = None) -> ModelEncoding:
    """The position encoding that a Hugging Face config describes, and its theory.

    Args:
        config: a `transformers` config: BLOOM, MPT, Falcon, T5, mT5, UMT5, GPT-2, GPT-Neo, OPT, and
            all that rotate (`rope_parameters`: Llama, Mistral, Qwen, GPT-NeoX, SmolLM3, ...), with
            their sliding windows, layer types and layers without positions.
        weights: tensors by name, for T5 and its kin, whose biases are learned; without them the
            result says so and has no p(n). Theirs is the decoder's self-attention.

    Returns:
        A `ModelEncoding`. Its biases are what is added to the scaled scalar product:

        - BLOOM: ``-m n`` with the slopes of ALiBi; MPT: those for its own ``alibi_bias_max``.
        - Falcon: ``-m n/sqrt(d_head)``, m rounded to bfloat16. Its code rounds the product ``m j``
          to bfloat16 as well, which is no function of the distance and is left out here: up to
          0.4% of ``m j`` for the key at j, more than one slope from j = 256 on.
        - T5: one value a bucket of distances, one table for all layers; UMT5: one a layer.

    Raises:
        ParameterError: a model type or a layer type that is not known.

    Reference: Press, Smith, Lewis, arXiv 2108.12409; Raffel et al., arXiv 1910.10683; the
    modelling files of `transformers`.

    Example:
        >>> from types import SimpleNamespace
        >>> config = SimpleNamespace(model_type="bloom", num_hidden_layers=2, num_attention_heads=4)
        >>> encoding_from_config(config).radii(eps=0.01)[0]
        (19, 74, 295, 1179)
    """
    reader = getattr(config, "get_text_config", None)
    config = config if reader is None else reader(decoder=True)
    model_type, n_head, layers = read_layers(config, weights or {})
    return ModelEncoding(model_type, n_head, layers)


def encoding_from_model(model: Any) -> ModelEncoding:
    """The position encoding of a model, learned values included.

    Args:
        model: a decoder or the name or file of a checkpoint, whose trained parameters (KERPLE, T5,
            ...) are read back; or a loaded Hugging Face model, T5 and its kin included.

    Raises:
        CheckpointError: no such checkpoint.
        ParameterError: as `encoding_from_config`.

    Example:
        >>> encoding_from_model("kerple-log").names
        ('kerple-log',)
    """
    if hasattr(model, "get_input_embeddings"):
        return encoding_from_config(model.config, dict(model.state_dict()))
    wrapped = getattr(model, "model", None)
    if hasattr(wrapped, "get_input_embeddings"):
        return encoding_from_model(wrapped)
    from trf.nn.checkpoint import load

    return _of_decoder(load(model))


def _of_decoder(decoder: Decoder) -> ModelEncoding:
    encoding, config = decoder.encoding, decoder.config
    span = decoder.view.span
    width = span.width if isinstance(span, Window) else None
    if isinstance(span, Blocks):
        width = 2 * span.width
    biases = None
    if encoding.bias is not None and encoding.kind is not encodings.Kind.MULTIPLICATIVE:
        values: list[Mapping[str, Any]] = [{}] * config.n_head
        if decoder.bias is not None:
            names = [parameter.name for parameter in encoding.learnable]
            values = [{k: head[k] for k in names} for head in decoder.bias.values()]
        biases = tuple(
            _windowed(bias, width) for bias in encoding.head_biases(config.n_head, values)
        )
    note = encoding.note if biases is None else ""
    layers = tuple(
        LayerEncoding(i, encoding.name, biases, width, note) for i in range(config.n_layer)
    )
    return ModelEncoding("trf", config.n_head, layers)


def _windowed(bias: Bias, width: int | None) -> Bias:
    return bias if width is None else as_bias(f"Piecewise(({bias.expr}, n < {width}), (-oo, True))")
