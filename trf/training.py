"""Training the shipped decoder on a corpus: reproducible, logged, and resumable after a kill.

The windows of a step are a function of (seed, step) and nothing else, the learning rate one of the
step; no other random number is drawn. The state (weights, AdamW's moments, step) is written under a
temporary name and then renamed. A run killed at any moment and started again therefore goes on
along the very same curve, bit for bit on the same machine and number of threads.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm.auto import tqdm

from trf import corpora, encodings
from trf.errors import CheckpointError, ParameterError, TextError, TRFError, missing_extra
from trf.nn import checkpoint
from trf.nn.decoder import Decoder, DecoderConfig
from trf.recipe import Recipe

try:
    from lightning_fabric import Fabric
except ImportError as error:
    raise missing_extra("lightning-fabric", "nn") from error

STATE, LOG = "state.safetensors", "log.csv"
COLUMNS = ("step", "tokens", "loss", "valid_bits_per_byte", "learning_rate", "tokens_per_second")


@dataclass(frozen=True)
class TrainResult:
    """What a training run came to.

    Attributes:
        status: `"finished"`, or `"already finished"` when there was nothing left to do.
        recipe: what was trained.
        checkpoint, log: the files.
        steps, tokens: done in all, bytes for `tokens`.
        train_bits_per_byte: mean over the last tenth of the steps.
        valid_bits_per_byte: on held-out files, at the training length.
        resumed_from: the step at which this call took up an earlier one's work, or 0.
        seconds: spent training, over all calls.
    """

    status: str
    recipe: Recipe
    checkpoint: Path
    log: Path
    steps: int
    tokens: int
    train_bits_per_byte: float
    valid_bits_per_byte: float
    resumed_from: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        data = dataclasses.asdict(self)
        return {**data, "checkpoint": str(self.checkpoint), "log": str(self.log)}

    def __str__(self) -> str:
        return (
            f"{self.status}: {self.recipe.encoding} on {self.recipe.corpus}, {self.tokens:,} bytes "
            f"in {self.steps} steps, {self.valid_bits_per_byte:.3f} bits per byte on held-out "
            f"text; {self.checkpoint}"
        )


def train(
    encoding: str,
    out: str | Path,
    corpus: str = "code",
    *,
    threads: int | None = None,
    accelerator: str = "auto",
    devices: int | str = 1,
    precision: str = "32-true",
    save_every: int = 25,
    valid_every: int = 400,
    progress: bool = True,
    **recipe: Any,
) -> TrainResult:
    """Train a decoder, or go on with a run that was interrupted.

    Args:
        encoding: name of a position encoding.
        out: folder of the run: `model.safetensors` in the end, `log.csv` (a row a step), and
            `state.safetensors` while it runs.
        corpus: `"code"`, or `"path:FILE_OR_FOLDER"`.
        threads: CPU threads for torch; its own choice if None.
        accelerator, devices, precision: as for Lightning Fabric.
        save_every, valid_every: steps between states written, and between validations.
        progress: show a progress bar.
        **recipe: any other field of `Recipe`: seed, tokens, batch, length, n_layer, ...

    Raises:
        ParameterError: an unknown or impossible setting, or `out` holds a run of another recipe.
        TextError: the corpus is unreadable or too short for one window.
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
    if min(save_every, valid_every, threads or 1) < 1:
        raise ParameterError("save_every, valid_every and threads must be positive")
    run = _Run(plan, corpora.load(corpus), Path(out))
    finished = run.finished()
    if finished is not None:
        return finished
    threads_before = torch.get_num_threads()
    torch.set_num_threads(threads or threads_before)
    try:
        fabric = _fabric(accelerator, devices, precision)
        fabric.launch()
        return run.train(fabric, save_every, valid_every, progress)
    finally:
        torch.set_num_threads(threads_before)


def _fabric(accelerator: str, devices: int | str, precision: str) -> Fabric:
    try:
        return Fabric(accelerator=accelerator, devices=devices, precision=precision)  # type: ignore[arg-type]
    except (RuntimeError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ParameterError(
            f"accelerator {accelerator!r} with devices {devices!r} and precision {precision!r} "
            f"can't be used here: {reason}"
        ) from error


def draw_windows(data: Tensor, seed: int, step: int, batch: int, length: int) -> Tensor:
    """The windows of a step, (batch, length + 1): a function of (seed, step) alone."""
    starts = np.random.default_rng([seed, step]).integers(0, len(data) - length, size=batch)
    return torch.stack([data[s : s + length + 1] for s in starts.tolist()])


@torch.no_grad()
def bits_per_byte(model: Decoder, data: Tensor, n_windows: int) -> float:
    """Mean bits a byte on windows of the training length, spread evenly over `data`."""
    length = model.config.train_length
    starts = torch.arange(0, len(data) - length, length)
    if len(starts) > n_windows:
        starts = starts[torch.linspace(0, len(starts) - 1, n_windows).long()]
    device = next(model.parameters()).device
    total, count = 0.0, 0
    for chunk in starts.split(16):
        windows = torch.stack([data[s : s + length + 1] for s in chunk.tolist()]).to(device)
        losses = model.losses(windows[:, :-1], windows[:, 1:])
        total += losses.double().sum().item()
        count += losses.numel()
    return total / count / math.log(2)


class _Run:
    """One run: a recipe, its text, its folder."""

    def __init__(self, recipe: Recipe, text: corpora.Corpus, out: Path):
        self.recipe, self.text, self.out = recipe, text, out
        self.identity = {**dataclasses.asdict(recipe), "corpus_sha256": text.sha256}

    def finished(self) -> TrainResult | None:
        """The result of a run that is complete; refuses the folder of another one."""
        for name in (checkpoint.FILE_NAME, STATE):
            if (self.out / name).exists():
                provenance = checkpoint.read_header(self.out / name).get("provenance", {})
                self._check_same(provenance.get("recipe", {}))
                if name == checkpoint.FILE_NAME:
                    return self._result("already finished", provenance, resumed_from=0)
        return None

    def train(self, fabric: Fabric, save_every: int, valid_every: int, bar: bool) -> TrainResult:
        """The loop, from where the folder's state left off."""
        r = self.recipe
        if r.batch % fabric.world_size:
            raise ParameterError(
                f"batch {r.batch} does not divide over {fabric.world_size} processes"
            )
        data, valid = self._tokens("train"), self._tokens("valid")
        model, optimiser, start, seconds = self._begin()
        wrapped, stepper = fabric.setup(model, optimiser)
        master = fabric.is_global_zero
        per_step = r.batch * r.length
        began = last = time.perf_counter()
        with (
            self._open_log(start, master) as log,
            tqdm(
                total=r.steps * per_step,
                initial=start * per_step,
                unit="B",
                unit_scale=True,
                desc=r.encoding,
                disable=not (bar and master),
            ) as progress,
        ):
            for step in range(start, r.steps):
                rate = r.rate_at(step)
                for group in optimiser.param_groups:
                    group["lr"] = rate
                windows = draw_windows(data, r.seed, step, r.batch, r.length)  # (B, T+1)
                windows = windows[fabric.global_rank :: fabric.world_size].long().to(fabric.device)
                logits = wrapped(windows[:, :-1])  # (B, T, V)
                loss = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
                fabric.backward(loss)
                norm = fabric.clip_gradients(
                    wrapped, stepper, max_norm=r.clip, error_if_nonfinite=False
                )
                loss = fabric.all_reduce(loss.detach())
                if not bool(torch.isfinite(loss + norm)):  # type: ignore[operator]
                    raise self._diverged(step)
                stepper.step()
                stepper.zero_grad()
                if model.bias is not None:
                    model.bias.clamp_()

                done = step + 1
                held_out = None
                if done % valid_every == 0 and done < r.steps:
                    held_out = bits_per_byte(model, valid, 32)
                    progress.set_postfix(valid_bits_per_byte=f"{held_out:.3f}")
                speed, last = per_step / (time.perf_counter() - last), time.perf_counter()
                log.writerow(
                    [done, done * per_step, loss.item(), held_out, rate, round(speed)]  # type: ignore[union-attr]
                )
                progress.update(per_step)
                if done % save_every == 0 and done < r.steps and master:
                    header = {
                        "provenance": {"recipe": self.identity},
                        "step": done,
                        "seconds": seconds + last - began,
                    }
                    checkpoint.save_state(self.out / STATE, model, optimiser, header)
        seconds += time.perf_counter() - began
        model.eval()
        fabric.barrier()  # the log is whole
        model.provenance = self._provenance(model, valid, seconds)
        if master:
            checkpoint.save(model, self.out / checkpoint.FILE_NAME)
            (self.out / STATE).unlink(missing_ok=True)
        fabric.barrier()  # the checkpoint is there
        return self._result("finished", model.provenance, start)

    def _tokens(self, split: str) -> Tensor:
        text = self.text.split(split)
        if len(text) <= self.recipe.length:
            raise TextError(
                f"the {split} part of corpus {self.recipe.corpus!r} has {len(text)} bytes; windows "
                f"of length {self.recipe.length} need at least {self.recipe.length + 1}"
            )
        return torch.frombuffer(bytearray(text), dtype=torch.uint8)

    def _begin(self) -> tuple[Decoder, torch.optim.AdamW, int, float]:
        """Model and optimiser at the start, or as an earlier call left them; step and seconds."""
        r = self.recipe
        config = DecoderConfig(
            r.encoding, r.n_layer, r.n_head, r.n_embd, vocab_size=256, train_length=r.length
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(r.seed)
            model = Decoder(config)
        matrices = [p for p in model.parameters() if p.dim() > 1]
        vectors = [p for p in model.parameters() if p.dim() < 2]
        optimiser = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": r.weight_decay},
             {"params": vectors, "weight_decay": 0.0}],
            lr=r.learning_rate,
            betas=(0.9, 0.98),
        )  # fmt: skip
        path = self.out / STATE
        if not path.exists():
            return model, optimiser, 0, 0.0
        header = checkpoint.load_state(path, model, optimiser)
        return model, optimiser, int(header["step"]), float(header["seconds"])

    @contextlib.contextmanager
    def _open_log(self, start: int, master: bool) -> Iterator[Any]:
        """A CSV writer that goes on after the row of step `start`, line by line."""
        if not master:
            yield csv.writer(io.StringIO())
            return
        path = self.out / LOG
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            lines = path.read_text("utf-8").splitlines(True) if path.exists() and start else []
            kept = [",".join(COLUMNS) + "\n", *lines[1 : start + 1]]
            temporary = path.with_name(f".{LOG}.tmp")
            temporary.write_text("".join(kept), "utf-8")
            temporary.replace(path)
            with open(path, "a", encoding="utf-8", buffering=1, newline="") as file:
                yield csv.writer(file, lineterminator="\n")
        except OSError as error:
            raise CheckpointError(f"can't write {path}: {error.strerror or error}") from error

    def _provenance(self, model: Decoder, valid: Tensor, seconds: float) -> dict[str, Any]:
        with open(self.out / LOG, encoding="utf-8", newline="") as file:
            losses = [float(row["loss"]) for row in csv.DictReader(file)]
        last_tenth = losses[-max(1, len(losses) // 10) :]
        return {
            "recipe": self.identity,
            "command": self.recipe.command(),
            "steps": self.recipe.steps,
            "tokens": self.recipe.steps * self.recipe.batch * self.recipe.length,
            "train_bits_per_byte": sum(last_tenth) / len(last_tenth) / math.log(2),
            "valid_bits_per_byte": bits_per_byte(model, valid, 256),
            "corpus": {
                "name": self.text.name,
                "sha256": self.text.sha256,
                "documents": self.text.n_documents,
                "licence": self.text.licence,
            },
            "n_parameters": model.n_parameters(),
            "seconds": round(seconds, 1),
            "threads": torch.get_num_threads(),
            "versions": checkpoint.versions(),
        }

    def _result(self, status: str, provenance: dict[str, Any], resumed_from: int) -> TrainResult:
        return TrainResult(
            status=status,
            recipe=self.recipe,
            checkpoint=self.out / checkpoint.FILE_NAME,
            log=self.out / LOG,
            steps=provenance["steps"],
            tokens=provenance["tokens"],
            train_bits_per_byte=provenance["train_bits_per_byte"],
            valid_bits_per_byte=provenance["valid_bits_per_byte"],
            resumed_from=resumed_from,
            seconds=provenance["seconds"],
        )

    def _check_same(self, other: dict[str, Any]) -> None:
        differ = [
            f"{name} {other.get(name)!r} there, {value!r} here"
            for name, value in self.identity.items()
            if other.get(name) != value
        ]
        if differ:
            raise ParameterError(
                f"{self.out} holds a run of another recipe ({'; '.join(differ)}); choose another "
                "folder, or delete it"
            )

    def _diverged(self, step: int) -> TRFError:
        state = self.out / STATE
        kept = (
            f"the last good state stays in {state}" if state.exists() else "nothing was saved yet"
        )
        return TRFError(
            f"the loss or its gradient is not finite at step {step + 1}; {kept}. A lower "
            f"learning rate than {self.recipe.learning_rate} may help"
        )
