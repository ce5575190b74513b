"""What a training run came to."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trf.recipe import Recipe


@dataclass(frozen=True)
class TrainResult:
    """What a training run came to.

    Attributes:
        status: `"finished"`, or `"already finished"` when there was nothing left to do.
        recipe: what was trained.
        checkpoint, log: the files.
        steps, tokens: done in all.
        train_bits_per_byte: mean over the last tenth of the steps.
        valid_bits_per_byte: on held-out files, at the training length.
        resumed_from: the step at which this call took up an earlier one's work, or 0.
        seconds: spent training, over all calls.
        kept: the models kept on the way, by tokens trained on.
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
    kept: dict[int, Path]

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        data = dataclasses.asdict(self)
        kept = {str(tokens): str(path) for tokens, path in self.kept.items()}
        return {**data, "checkpoint": str(self.checkpoint), "log": str(self.log), "kept": kept}

    def __str__(self) -> str:
        unit = "bytes" if self.recipe.tokeniser == "bytes" else "tokens"
        return (
            f"{self.status}: {self.recipe.encoding} on {self.recipe.corpus}, {self.tokens:,} "
            f"{unit} in {self.steps} steps, {self.valid_bits_per_byte:.3f} bits per byte on "
            f"held-out text; {self.checkpoint}"
        )
