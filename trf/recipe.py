"""The recipe of a training run: all that decides which weights come out, apart from the machine."""

from __future__ import annotations

import dataclasses
import math
import shlex
from dataclasses import dataclass

from trf import tokenisers
from trf.errors import ParameterError, unknown_name

SCHEDULES = ("cosine", "inverse-sqrt")


@dataclass(frozen=True)
class Recipe:
    """All that decides the weights that come out, apart from the machine.

    Attributes:
        encoding, corpus: names.
        seed: of the initial weights and of the windows drawn.
        tokens: to train on; rounded up to whole steps.
        batch, length: windows a step, and tokens a window.
        n_layer, n_head, n_embd: the shape of the decoder.
        learning_rate: at its peak; linear warm-up over `warmup` of the steps, then `schedule`.
        weight_decay: of matrices; AdamW with betas 0.9, 0.98.
        clip: largest norm of the gradient.
        schedule: `"cosine"`, down to a tenth of the peak, or `"inverse-sqrt"`,
            peak * sqrt(w / (step + 1)) after w steps of warm-up.
        tokeniser: `"bytes"`, or `"bpe:SIZE"`, learned from the training text.
    """

    encoding: str
    corpus: str = "code"
    seed: int = 0
    tokens: int = 3_000_000
    batch: int = 2
    length: int = 512
    n_layer: int = 4
    n_head: int = 4
    n_embd: int = 128
    learning_rate: float = 2e-3
    warmup: float = 0.05
    weight_decay: float = 0.1
    clip: float = 1.0
    schedule: str = "cosine"
    tokeniser: str = "bytes"

    def __post_init__(self) -> None:
        for name in ("tokens", "batch", "length"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ParameterError(f"{name} must be a positive integer, got {value!r}")
        if not 0 <= self.warmup < 1:
            raise ParameterError(f"warmup is a share of the steps in [0, 1), got {self.warmup}")
        if not self.learning_rate > 0 or not self.clip > 0:
            raise ParameterError("learning_rate and clip must be positive")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**63:
            raise ParameterError(f"seed must be a nonnegative integer, got {self.seed!r}")
        if self.schedule not in SCHEDULES:
            raise unknown_name("schedule", str(self.schedule), SCHEDULES)
        tokenisers.check_name(self.tokeniser)

    @property
    def steps(self) -> int:
        """Number of optimiser steps."""
        return math.ceil(self.tokens / (self.batch * self.length))

    def rate_at(self, step: int) -> float:
        """The learning rate of step 0, 1, ..., steps - 1.

        Example:
            >>> recipe = Recipe("alibi", tokens=100 * 1024, warmup=0.1, learning_rate=1.0)
            >>> [round(recipe.rate_at(step), 2) for step in (0, 9, 10, 55, 99)]
            [0.1, 1.0, 1.0, 0.55, 0.1]
        """
        warm = max(1, round(self.warmup * self.steps))
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        if self.schedule == "inverse-sqrt":
            return self.learning_rate * math.sqrt(warm / (step + 1))
        done = (step - warm) / max(1, self.steps - warm)
        return self.learning_rate * (0.55 + 0.45 * math.cos(math.pi * done))

    def command(self) -> str:
        """The command line that trains this again."""
        words = ["trf", "train", "--encoding", self.encoding, "--corpus", self.corpus]
        for f in dataclasses.fields(self)[2:]:
            value = getattr(self, f.name)
            if value != f.default:
                words += [f"--{f.name.replace('_', '-')}", str(value)]
        return shlex.join([*words, "--out", "RUN"])
