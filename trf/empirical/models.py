"""What the measurements need of a model, and how a name becomes one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from trf import tokenisers
from trf.corpora import Text, tokenise
from trf.errors import CheckpointError
from trf.nn.checkpoint import load
from trf.nn.decoder import Decoder

if TYPE_CHECKING:
    from trf.huggingface import HuggingFaceModel

Rows = Callable[[int, int], tuple[Tensor, "Tensor | None"]]
"""(a, b) -> attention weights of queries a ... b-1 to keys 0 ... b-1, (B, H, b-a, b), and their
logits without the position's part, q . k times the scale, of the same shape; None if unknown."""

Watch = Callable[[int, int, Rows], None]
"""Called with a layer's number, the number of tokens N, and its rows."""


class Model(Protocol):
    """A causal language model with an entrance at its embeddings: a decoder, or a wrapped one."""

    config: Any
    provenance: dict[str, Any]

    @property
    def blocks(self) -> Any:
        """The layers, in order."""

    def embed(self, tokens: Tensor) -> Tensor:
        """(B, T) to (B, T, C)."""
        ...

    def forward_embeddings(self, x: Tensor) -> Tensor:
        """Hidden states after the final norm, (B, T, C)."""
        ...

    def logits(self, hidden: Tensor) -> Tensor:
        """(..., C) to (..., V)."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]:
        """All weights."""
        ...


def as_model(source: Any) -> Model:
    """A model from a decoder, a checkpoint, or a Hugging Face model, folder or name.

    A folder with a ``config.json``, a name ``owner/name`` and ``hf:NAME`` are Hugging Face's; all
    else is a checkpoint of trf, as `trf.load` takes it.

    Raises:
        CheckpointError: nothing there, or no causal language model with access to its embeddings.
    """
    if isinstance(source, Decoder) or _is_wrapped(source):
        return source
    if isinstance(source, nn.Module):
        return _hugging_face(source)
    if not isinstance(source, (str, Path)):
        raise CheckpointError(
            "a model is a decoder, a Hugging Face model, or the name or path of one, got "
            f"{type(source).__name__}"
        )
    name, path = str(source), Path(source).expanduser()
    if (path / "config.json").is_file():
        return _hugging_face(path)
    if name.startswith("hf:"):
        return _hugging_face(name.removeprefix("hf:"))
    looks_like_one = name.count("/") == 1 and name[0] not in "./~"
    if looks_like_one and not path.exists() and not path.parent.exists():
        return _hugging_face(name)
    return load(source)


def _is_wrapped(source: Any) -> bool:
    return isinstance(source, nn.Module) and hasattr(source, "forward_embeddings")


def _hugging_face(source: Any) -> HuggingFaceModel:
    from trf import huggingface

    return huggingface.load(source)


def token_windows(model: Model, text: Text, length: int, n_windows: int, seed: int) -> Tensor:
    """Windows of `length` + 1 tokens, drawn without replacement, in the text's order; (W, N + 1).

    Raises:
        TextError: the text is too short (says how long it must be), or does not fit the vocabulary.
    """
    if isinstance(text, (str, bytes)) and hasattr(model, "encode"):
        written = text if isinstance(text, str) else text.decode("utf-8", errors="replace")
        text = model.encode(written)  # type: ignore[attr-defined]
    own = tokenisers.of(model.provenance)
    tokens = torch.from_numpy(tokenise(text, length + 1, model.config.vocab_size, own))
    starts = np.random.default_rng(seed).permutation(len(tokens) - length)[:n_windows]
    return torch.stack([tokens[s : s + length + 1] for s in np.sort(starts).tolist()])


@contextmanager
def frozen(model: Model) -> Iterator[None]:
    """Hold parameters fixed, so that a learned bias takes the lean path as a fixed one does."""
    before = [(p, p.requires_grad) for p in model.parameters()]
    for p, _ in before:
        p.requires_grad_(False)
    try:
        yield
    finally:
        for p, flag in before:
            p.requires_grad_(flag)


@contextmanager
def recorded(model: Model) -> Iterator[list[tuple[Tensor, Tensor]]]:
    """The input and the output of every layer, (B, T, C) each, in the order they are run."""
    states: list[tuple[Tensor, Tensor]] = []

    def keep(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        entered = args[0] if args else kwargs["hidden_states"]
        states.append((entered, output[0] if isinstance(output, tuple) else output))

    hooks = [block.register_forward_hook(keep, with_kwargs=True) for block in model.blocks]
    try:
        yield states
    finally:
        for hook in hooks:
            hook.remove()


def watched(model: Model, watch: Watch) -> AbstractContextManager[None]:
    """Call `watch` with every layer's attention while the model runs."""
    if isinstance(model, Decoder):
        from trf.empirical.rows import watched_decoder

        return watched_decoder(model, watch)
    return model.watched(watch)  # type: ignore[attr-defined]
