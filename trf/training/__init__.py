"""Training the shipped decoder on a corpus: reproducible, logged, and resumable after a kill.

The windows of a step are a function of (seed, step) and nothing else, the learning rate one of the
step; no other random number is drawn. The state (weights, AdamW's moments, step) is written under a
temporary name and then renamed. A run killed at any moment and started again therefore goes on
along the very same curve, bit for bit on the same machine and number of threads.

Several processes share the windows of a step, so they train the same model as one process does, up
to rounding: ``torchrun --nproc-per-node 2 --no-python trf train ... --devices 2``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from trf import corpora, encodings
from trf.errors import ParameterError
from trf.recipe import Recipe
from trf.training.logs import COLUMNS, LOG
from trf.training.result import TrainResult
from trf.training.run import STATE, Run, draw_windows, initial_decoder, make_fabric

__all__ = [
    "COLUMNS", "LOG", "STATE", "Recipe", "TrainResult", "draw_windows", "initial_decoder", "train",
]  # fmt: skip


def train(
    encoding: str,
    out: str | Path,
    corpus: str = "code",
    *,
    threads: int | None = None,
    accelerator: str = "auto",
    devices: int | str = 1,
    precision: str = "32-true",
    accumulate: int = 1,
    compile: bool = False,
    checkpoints: Sequence[int] = (),
    save_every: int = 25,
    valid_every: int = 400,
    tensorboard: bool = True,
    progress: bool = True,
    **recipe: Any,
) -> TrainResult:
    """Train a decoder, or go on with a run that was interrupted.

    Args:
        encoding: name of a position encoding.
        out: folder of the run: `model.safetensors` in the end, `log.csv` (a row a step), and
            `state.safetensors` while it runs.
        corpus: a name in `corpora.corpus_names()`, `"hub:NAME"` or `"path:FILE_OR_FOLDER"`.
        threads: CPU threads for torch; its own choice if None.
        accelerator, devices, precision: as for Lightning Fabric; `"bf16-mixed"` on GPUs.
        accumulate: pieces that each process computes a step's gradient in, to save memory.
        compile: run the decoder through `torch.compile`; needs a C++ compiler on CPUs.
        checkpoints: numbers of tokens at which the model is also kept as it then is, in
            `model-TOKENS.safetensors`, at the first step that reaches them.
        save_every, valid_every: steps between states written, and between validations.
        tensorboard: log to TensorBoard too, in `out`, where it is installed.
        progress: show a progress bar.
        **recipe: any other field of `Recipe`: seed, tokens, batch, length, n_layer, ...

    Raises:
        ParameterError: an unknown or impossible setting, or `out` holds a run of another recipe.
        TextError: the corpus is unreadable or too short for one window.
        CheckpointError: `out` can't be written (a full disk, say); the last good state stays there.
        TRFError: the loss is no longer finite; the last good state stays in `out`.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = train("alibi", folder, tokens=64, batch=2, length=16, n_layer=1,
        ...                    n_head=2, n_embd=16, progress=False)
        >>> result.status, result.steps
        ('finished', 2)
    """
    known = {f.name for f in dataclasses.fields(Recipe)}
    for name in recipe:
        if name not in known:
            raise ParameterError(f"unknown setting {name!r}; known: {', '.join(sorted(known))}")
    plan = Recipe(encoding=encodings.get(encoding).name, corpus=corpus, **recipe)
    if min(save_every, valid_every, accumulate, threads or 1) < 1:
        raise ParameterError("save_every, valid_every, accumulate and threads must be positive")
    if any(not isinstance(n, int) or not 0 < n <= plan.tokens for n in checkpoints):
        raise ParameterError(
            f"checkpoints are numbers of tokens in 1 ... {plan.tokens}, got {list(checkpoints)}"
        )
    run = Run(plan, corpora.load(corpus), Path(out))
    finished = run.finished()
    if finished is not None:
        return finished
    threads_before = torch.get_num_threads()
    torch.set_num_threads(threads or threads_before)
    try:
        fabric = make_fabric(accelerator, devices, precision)
        fabric.launch()
        return run.train(
            fabric,
            accumulate=accumulate,
            compile=compile,
            checkpoints=sorted(set(checkpoints)),
            save_every=save_every,
            valid_every=valid_every,
            tensorboard=tensorboard,
            progress=progress,
        )
    finally:
        torch.set_num_threads(threads_before)
