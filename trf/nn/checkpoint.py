"""Checkpoints: safetensors with the configuration inside, and the shipped ones by name.

The header of a safetensors file maps strings to strings; ours holds one entry, `trf`, a JSON object
with the decoder's `config` and its `provenance` (recipe, corpus and its hash, versions, tokens
seen, bits per byte). Nothing is ever pickled, and a file appears under its name only when whole.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from trf.encodings import Encoding
from trf.errors import CheckpointError, TRFError
from trf.nn.decoder import Decoder, DecoderConfig

FORMAT = 1
FILE_NAME = "model.safetensors"  # in the folder of a training run
ZOO = Path(__file__).resolve().parents[1] / "zoo"


def save(model: Decoder, path: str | Path, *, half: bool = False) -> Path:
    """Write a decoder, its configuration and its provenance to one file.

    Args:
        model: the decoder; `model.provenance` must be JSON-able.
        path: the file, by custom `NAME.safetensors`.
        half: store matrices in float16. Vectors (norms, learned biases) stay in float32.

    Raises:
        CheckpointError: the file can't be written; nothing is left behind.

    Example:
        >>> import tempfile
        >>> model = Decoder(DecoderConfig("none", n_layer=1, n_head=1, n_embd=8))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     load(save(model, f"{folder}/tiny.safetensors")).config.n_embd
        8
    """
    tensors = {
        name: (t.half() if half and t.dim() > 1 else t.float())
        for name, t in model.state_dict().items()
    }
    header = {"config": model.config.to_dict(), "provenance": model.provenance}
    return write_tensors(path, tensors, header)


def load(source: str | Path | Decoder, encoding: Encoding | None = None) -> Decoder:
    """Read a decoder, in float32 on the CPU, ready for evaluation.

    Args:
        source: a file, the folder of a training run, or the name of a shipped checkpoint
            (`zoo_names()`); a decoder is handed back as it is.
        encoding: the encoding itself, in place of the one that the checkpoint names or defines.

    Raises:
        CheckpointError: nothing there, not a checkpoint of trf, or one that does not fit itself.

    Example:
        >>> load("no-such-file")
        Traceback (most recent call last):
            ...
        trf.errors.CheckpointError: no checkpoint 'no-such-file': neither a file nor ...
    """
    if isinstance(source, Decoder):
        return source
    path = find(source)
    tensors, header = read_tensors(path)
    try:
        config = DecoderConfig(**header["config"])
        _check_size(config, tensors)
        model = Decoder(config, encoding)
        model.load_state_dict({name: t.float() for name, t in tensors.items()})
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{path} has no usable configuration of a decoder") from error
    except RuntimeError as error:  # names or shapes of tensors
        reason = " ".join(str(error).split()[:40])
        raise CheckpointError(f"{path} does not fit its own configuration: {reason}") from error
    except CheckpointError as error:
        raise CheckpointError(f"{path} does not fit its own configuration: {error}") from error
    except TRFError as error:
        raise CheckpointError(f"{path} can't be run: {' '.join(str(error).split())}") from error
    model.provenance = dict(header.get("provenance", {}))
    return model.eval()


def zoo_names() -> list[str]:
    """Names of the checkpoints shipped with trf; `load(name)` reads one."""
    return sorted(path.stem for path in ZOO.glob("*.safetensors"))


def find(source: str | Path) -> Path:
    """The checkpoint file that `source` means: a file, a run's folder, or a name in the zoo.

    Raises:
        CheckpointError: there is none; the message names the nearest shipped checkpoint.
    """
    path = Path(source).expanduser()
    name, names = str(source), zoo_names()
    try:
        for candidate in (path, path / FILE_NAME):
            if candidate.is_file():
                return candidate
        if name in names:
            return ZOO / f"{name}.safetensors"
        if path.exists():
            raise CheckpointError(f"{path} is no file, nor a folder with a {FILE_NAME} in it")
    except OSError as error:
        raise CheckpointError(f"can't read {name[:80]}: {error.strerror or error}") from error
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise CheckpointError(
        f"no checkpoint {name!r}: neither a file nor the name of a shipped one."
        f"{hint} Shipped: {', '.join(names) or 'none'}."
    )


def read_header(source: str | Path) -> dict[str, Any]:
    """The `config` and `provenance` of a checkpoint, without reading its weights.

    Raises:
        CheckpointError: as `load`.
    """
    path = find(source)
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})["trf"])
    except (safetensors.SafetensorError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise CheckpointError(f"{path} is not a safetensors file ({reason})") from error
    except (KeyError, ValueError) as error:
        raise CheckpointError(
            f"{path} is a safetensors file without trf's configuration; only checkpoints written "
            "by trf can be read here"
        ) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise CheckpointError(f"{path} has another format than {FORMAT}, which this trf reads")
    return header


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], header: dict[str, Any]) -> Path:
    """Write tensors and a JSON header, under a temporary name first.

    Raises:
        CheckpointError: the file can't be written.
    """
    path = Path(path)
    contiguous = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    text = json.dumps({"format": FORMAT, **header})
    data = safetensors.torch.save(contiguous, metadata={"trf": text})
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise CheckpointError(f"can't write {path}: {error.strerror or error}") from error
    return path


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read back what `write_tensors` wrote.

    Raises:
        CheckpointError: as `read_header`.
    """
    header = read_header(path)
    return safetensors.torch.load_file(path), header


def save_state(
    path: str | Path, model: Decoder, optimiser: torch.optim.Optimizer, header: dict[str, Any]
) -> None:
    """Write weights and the optimiser's moments, with a JSON-able header, to go on from.

    Raises:
        CheckpointError: the file can't be written; one that was there stays.
    """
    tensors = {f"model.{name}": t for name, t in model.state_dict().items()}
    for name, p in model.named_parameters():
        for key, value in optimiser.state[p].items():
            tensors[f"optimiser.{name}.{key}"] = value
    write_tensors(path, tensors, header)


def load_state(path: Path, model: Decoder, optimiser: torch.optim.Optimizer) -> dict[str, Any]:
    """Put `model` and `optimiser` into the state that `save_state` wrote; returns its header.

    Raises:
        CheckpointError: not a state, or that of another model.
    """
    tensors, header = read_tensors(path)

    def under(prefix: str) -> dict[str, Tensor]:
        names = (name for name in tensors if name.startswith(prefix))
        return {name.removeprefix(prefix): tensors[name] for name in names}

    try:
        model.load_state_dict(under("model."))
    except RuntimeError as error:
        raise CheckpointError(f"{path} is the state of another model") from error
    for name, p in model.named_parameters():
        optimiser.state[p] = under(f"optimiser.{name}.")
    return header


def versions() -> dict[str, str]:
    """Versions of what a result depends on."""
    packages = ("trf", "torch", "numpy", "sympy")
    return {"python": platform.python_version(), **{p: metadata.version(p) for p in packages}}


def _check_size(config: DecoderConfig, tensors: dict[str, Tensor]) -> None:
    """Refuse a configuration of another size than the tensors, before anything is allocated."""
    embedding = tensors.get("embedding.weight", torch.empty(0))
    if tuple(embedding.shape) != (config.vocab_size, config.n_embd):
        raise CheckpointError(
            f"its embedding is {tuple(embedding.shape)}, the configuration says "
            f"({config.vocab_size}, {config.n_embd})"
        )
    layers = {name.split(".")[1] for name in tensors if name.startswith("blocks.")}
    if len(layers) != config.n_layer:
        raise CheckpointError(f"it has {len(layers)} layers, not {config.n_layer}")
