"""A Hugging Face causal language model with the entrances that the measurements need."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trf.errors import CheckpointError, ParameterError, TextError, missing_extra
from trf.huggingface.encoding import encoding_from_config

_PROBE = 6  # tokens of the forward pass that a model is checked with


@dataclass(frozen=True)
class Shape:
    """The shape of a wrapped model, in the names of `trf.nn.DecoderConfig`.

    `train_length` is the longest length the config speaks of; None if it does not.
    """

    encoding: str
    n_layer: int
    n_head: int
    n_embd: int
    vocab_size: int
    train_length: int | None


class HuggingFaceModel(nn.Module):
    """A causal language model of `transformers` that is entered at its embeddings.

    It has the methods of `trf.nn.Decoder` that measurements use: `embed`, `forward_embeddings`,
    `logits`, `losses`, `blocks`, `config`, `provenance`.

    Args:
        model: a loaded `PreTrainedModel` with a language-modelling head; used as it is, in
            evaluation mode.
        source: where it came from, for its tokeniser and for messages.

    Raises:
        CheckpointError: an encoder, an encoder and decoder, no head, or no access to embeddings.

    Example:
        >>> from transformers import GPT2Config, GPT2LMHeadModel
        >>> tiny = GPT2Config(n_layer=1, n_head=2, n_embd=8, n_positions=16, vocab_size=10)
        >>> wrapped = HuggingFaceModel(GPT2LMHeadModel(tiny))
        >>> wrapped(torch.tensor([[1, 2, 3]])).shape
        torch.Size([1, 3, 10])
    """

    def __init__(self, model: Any, source: str = ""):
        super().__init__()
        settings = _text_config(model)
        self.source = source or type(model).__name__
        if getattr(settings, "is_encoder_decoder", False):
            raise CheckpointError(
                f"{self.source} is an encoder with a decoder ({settings.model_type}), not a causal "
                "language model; its position encoding can be read: trf.encoding_from_model"
            )
        head = getattr(model, "get_output_embeddings", lambda: None)()
        if head is None:
            raise CheckpointError(
                f"{self.source} ({type(model).__name__}) has no language-modelling head; load it "
                "as AutoModelForCausalLM"
            )
        base = getattr(model, model.base_model_prefix, None) if model.base_model_prefix else None
        if base is None or "inputs_embeds" not in inspect.signature(base.forward).parameters:
            raise CheckpointError(
                f"{self.source} ({type(model).__name__}) can't be entered at its embeddings: its "
                "forward takes no inputs_embeds"
            )
        self.model = model.eval()
        self.base, self.head = base, head
        self.config = _shape(settings)
        self.blocks = _blocks(base, self.config.n_layer, self.source)
        self.provenance: dict[str, Any] = {
            "source": self.source,
            "model_type": settings.model_type,
            "transformers": getattr(settings, "transformers_version", None),
        }
        self._limit = self.config.train_length if self.config.encoding == "learned" else None
        self._check()

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next token at every position: (B, T) integers to (B, T, V)."""
        return self.logits(self.forward_embeddings(self.embed(tokens)))

    def embed(self, tokens: Tensor) -> Tensor:
        """Token embeddings as the model is entered with: (B, T) to (B, T, C)."""
        return self.base.get_input_embeddings()(tokens.long())

    def forward_embeddings(self, x: Tensor) -> Tensor:
        """Hidden states that the head takes, (B, T, C), from token embeddings (B, T, C).

        Raises:
            ParameterError: longer than learned absolute positions go.
        """
        if self._limit is not None and x.shape[1] > self._limit:
            raise ParameterError(
                f"{self.source} has learned positions up to {self._limit} tokens, got "
                f"{x.shape[1]}; measure at length={self._limit} or less"
            )
        out = self.base(inputs_embeds=x, use_cache=False)
        return out.last_hidden_state

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits (..., V) from hidden states (..., C)."""
        return self._scale(self.head(hidden))

    def losses(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy of every target in nats, (B, T), from tokens and targets (B, T)."""
        logits = self(tokens).float()
        return F.cross_entropy(
            logits.flatten(0, 1), targets.long().flatten(), reduction="none"
        ).view(targets.shape)

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, by the model's own tokeniser, without special tokens.

        Raises:
            TextError: no tokeniser comes with the model.
        """
        from transformers import AutoTokenizer

        wanted = f"give token ids below {self.config.vocab_size} instead of text"
        try:
            tokeniser = AutoTokenizer.from_pretrained(self.source)
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise TextError(f"{self.source} has no usable tokeniser; {wanted}") from error
        ids = tokeniser(text, add_special_tokens=False, verbose=False)["input_ids"]
        if text and not ids:  # transformers makes an empty one up where the files are missing
            raise TextError(f"the tokeniser of {self.source} is empty; {wanted}")
        return ids

    def watched(self, watch: Callable[..., None]) -> AbstractContextManager[None]:
        """Call `watch(layer, N, rows)` with every layer's attention while the model runs."""
        from trf.huggingface.watching import watched

        return watched(self, watch)

    def _scale(self, logits: Tensor) -> Tensor:
        """What some models do to the logits after the head."""
        settings = _text_config(self.model)
        if getattr(settings, "logit_scale", None):  # Cohere
            logits = logits * settings.logit_scale
        if getattr(settings, "logits_scaling", None):  # Granite
            logits = logits / settings.logits_scaling
        cap = getattr(settings, "final_logit_softcapping", None)  # Gemma
        return logits if not cap else (logits / cap).tanh() * cap

    def _check(self) -> None:
        """That the parts make up the whole, and that no output depends on later tokens."""
        device = next(self.parameters()).device
        tokens = torch.arange(_PROBE, device=device)[None] % self.config.vocab_size
        x = self.embed(tokens).detach().requires_grad_()
        with torch.enable_grad():
            hidden = self.forward_embeddings(x)
            (gradient,) = torch.autograd.grad(hidden[:, 1].square().sum(), x)
        if bool((gradient[:, 2:] != 0).any()):
            raise CheckpointError(
                f"{self.source} ({type(self.model).__name__}) is no causal language model: an "
                "output depends on later tokens, as in an encoder (BERT)"
            )
        with torch.no_grad():
            whole = self.model(inputs_embeds=x.detach(), use_cache=False).logits
            parts = self.logits(hidden.detach())
        finite = torch.isfinite(whole).all() and torch.isfinite(parts).all()
        if bool(finite) and not torch.allclose(whole.float(), parts.float(), rtol=1e-2, atol=1e-3):
            raise CheckpointError(
                f"{self.source} ({type(self.model).__name__}) does more to its logits than its "
                "head; this architecture can't be measured"
            )


def load(source: Any) -> HuggingFaceModel:
    """A causal language model of Hugging Face, in float32, ready to measure.

    Args:
        source: a loaded model, a folder with its config and weights, or a name `owner/name`. A name
            is looked up in the local cache first, then on the network (which gives up after about
            half a minute; `HF_HUB_OFFLINE=1` at once). No code from there is ever run.

    Raises:
        CheckpointError: nothing there (or the network is out of reach), or not a causal language
            model with access to its embeddings.
        MissingExtraError: `transformers` is not installed.
    """
    if isinstance(source, HuggingFaceModel):
        return source
    if isinstance(source, nn.Module):
        if not hasattr(source, "get_input_embeddings"):
            raise CheckpointError(
                f"a {type(source).__name__} can't be entered at its embeddings: a model is a trf "
                "decoder or a causal language model of transformers (get_input_embeddings, "
                "inputs_embeds)"
            )
        return HuggingFaceModel(source, getattr(source, "name_or_path", ""))
    try:
        from transformers import AutoModelForCausalLM
    except ImportError as error:
        raise missing_extra("transformers", "hf") from error
    name = str(source)
    try:
        model = _read(AutoModelForCausalLM, name)
    except OSError as error:
        reason = _first_line(error)
        if Path(name).is_dir():
            raise CheckpointError(f"can't read the model in {name}: {reason}") from error
        raise CheckpointError(
            f"no Hugging Face model {name!r}: no such folder, nor in the local cache, and the hub "
            f"did not give it ({reason}); download it once with a network, or give a folder"
        ) from error
    except (ValueError, KeyError) as error:
        raise CheckpointError(
            f"{name} is no causal language model that transformers can load ({_first_line(error)})"
        ) from error
    return HuggingFaceModel(model, name)


def _read(auto: Any, name: str) -> Any:
    if Path(name).is_dir():
        return auto.from_pretrained(name, dtype=torch.float32, local_files_only=True)
    try:
        return auto.from_pretrained(name, dtype=torch.float32, local_files_only=True)
    except OSError:
        return auto.from_pretrained(name, dtype=torch.float32)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _text_config(model: Any) -> Any:
    reader = getattr(model.config, "get_text_config", None)
    return model.config if reader is None else reader()


def _shape(settings: Any) -> Shape:
    try:
        encoding = encoding_from_config(settings).layers[0].encoding
    except ParameterError:
        encoding = str(settings.model_type)  # not known: it can be measured all the same
    limits = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
    known = [getattr(settings, name, None) for name in limits]
    return Shape(
        encoding=encoding,
        n_layer=settings.num_hidden_layers,
        n_head=settings.num_attention_heads,
        n_embd=settings.hidden_size,
        vocab_size=settings.vocab_size,
        train_length=next((n for n in known if isinstance(n, int)), None),
    )


def _blocks(base: nn.Module, n_layer: int, source: str) -> nn.ModuleList:
    for module in base.modules():
        if isinstance(module, nn.ModuleList) and len(module) == n_layer:
            return module
    raise CheckpointError(f"{source}: no list of {n_layer} layers in it, as its config says")


def attention_modules(model: HuggingFaceModel) -> Iterator[nn.Module]:
    """The attention module of every layer: the outermost one whose name says so."""
    for block in model.blocks:
        for name, module in block.named_modules():
            last = name.rsplit(".", 1)[-1]
            named = ("attn" in last or "attention" in last) and "norm" not in last
            if named and list(module.children()):
                yield module
                break
