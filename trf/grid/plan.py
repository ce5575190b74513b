"""What a grid of cells is: presets, budgets, and the cells of encodings, corpora and seeds."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from trf import corpora, encodings
from trf.errors import ParameterError
from trf.nn import Decoder, DecoderConfig
from trf.recipe import Recipe

_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
_FACTORS = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|k|M|G|)")


@dataclass(frozen=True)
class Preset:
    """The size of the models, and what is measured of each; lengths in tokens.

    Attributes:
        name: of the preset.
        tokens: to train on, unless a budget is given.
        training: fields of `Recipe` beside encoding, corpus, seed and tokens.
        precision: of training, as for Lightning Fabric.
        lengths: evaluation lengths, without overlap; the longest is a segment.
        n_segments: that are scored, the same ones in every mode.
        log_scale_lengths: at which the log-n scale is tried; it does nothing within training.
        stride, sliding_lengths: of the sliding evaluation.
        window: of the window mask and of the blocks.
        field_lengths: N of the empirical receptive fields and of the attention.
        n_windows: of the empirical field at the training length; fewer at longer ones, so that
            the number of tokens stays the same.
        entropy_length: N of the one window in which the entropy of attention is followed far past
            training, with the window mask and without.
        eps: at which radii are given.
        shares: of the budget, at which the empirical field is measured on the way; one that falls
            in the last step, such as 1, is the end itself and makes no record of its own.
    """

    name: str
    tokens: int
    training: Mapping[str, Any] = field(default_factory=dict)
    precision: str = "32-true"
    lengths: tuple[int, ...] = (512, 1024, 2048, 4096, 9216)
    n_segments: int = 4
    log_scale_lengths: tuple[int, ...] = (2048, 9216)
    stride: int = 256
    sliding_lengths: tuple[int, ...] = (512,)
    window: int = 512
    field_lengths: tuple[int, ...] = (256, 512, 1024, 2048)
    n_windows: int = 16
    entropy_length: int = 4096
    eps: tuple[float, ...] = (0.5, 0.1, 0.05, 0.01)
    shares: tuple[float, ...] = (0.25, 0.5)

    @property
    def train_length(self) -> int:
        """Tokens of a training window."""
        return self.training.get("length", Recipe.length)

    @property
    def tokens_per_step(self) -> int:
        """Tokens of an optimiser step."""
        return self.training.get("batch", Recipe.batch) * self.train_length


PRESETS: Mapping[str, Preset] = {
    "laptop": Preset("laptop", tokens=1_000_000, training={"batch": 1}),
    "paper": Preset(
        "paper",
        tokens=500_000_000,
        training={
            "n_layer": 6, "n_head": 8, "n_embd": 512, "batch": 128, "tokeniser": "bpe:50257",
            "learning_rate": 5e-4, "warmup": 0.08, "weight_decay": 0.0, "schedule": "inverse-sqrt",
        },
        precision="bf16-mixed",
        n_segments=8,
    ),
    "paper-12": Preset(
        "paper-12",
        tokens=500_000_000,
        training={
            "n_layer": 12, "n_head": 12, "n_embd": 768, "batch": 128, "tokeniser": "bpe:50257",
            "learning_rate": 5e-4, "warmup": 0.08, "weight_decay": 0.0, "schedule": "inverse-sqrt",
        },
        precision="bf16-mixed",
        n_segments=8,
    ),
    "smoke": Preset(
        "smoke",
        tokens=2048,
        training={"n_layer": 1, "n_head": 2, "n_embd": 16, "batch": 4, "length": 32},
        lengths=(32, 64, 128),
        n_segments=2,
        log_scale_lengths=(32, 128),
        stride=16,
        sliding_lengths=(32, 64),
        window=32,
        field_lengths=(32, 64),
        n_windows=4,
        entropy_length=64,
        shares=(0.5,),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One model of the grid: trained once, measured once, and then forgotten.

    Attributes:
        encoding, corpus, seed, tokens: what is trained.
        preset: how large it is and what is measured.
        texts: further texts to evaluate on, (name, file) each; never trained on.
    """

    encoding: str
    corpus: str
    seed: int
    tokens: int
    preset: Preset
    texts: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """A file name that tells this cell from the others of its folder."""
        corpus = re.sub(r"[^A-Za-z0-9]+", "-", self.corpus).strip("-")
        if corpus != self.corpus:
            corpus = f"{corpus[-24:]}-{hashlib.sha256(self.corpus.encode()).hexdigest()[:8]}"
        return f"{self.encoding}_{corpus}_s{self.seed}_{self.tokens}"

    @property
    def on_the_way(self) -> list[int]:
        """Numbers of tokens at which the field is measured before the end."""
        return sorted({max(1, round(share * self.tokens)) for share in self.preset.shares})

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        return dataclasses.asdict(self)


def cells_of(
    names: Sequence[str],
    corpus_names: Sequence[str],
    seeds: Sequence[int],
    tokens: int,
    preset: Preset,
    texts: Mapping[str, str],
) -> Iterator[Cell]:
    """Every encoding on every corpus with every seed; checked, so that it fails before it starts.

    Raises:
        UnknownNameError, ParameterError: an encoding or setting that can't be trained.
        TextError, MissingExtraError: a corpus or text that can't be read, or is too short.
    """
    for path in texts.values():
        corpora.read_text(path)
    for name in dict.fromkeys(corpus_names):
        corpora.load(name)
    for seed in dict.fromkeys(seeds):
        for corpus in dict.fromkeys(corpus_names):
            for name in dict.fromkeys(encodings.get(name).name for name in names):
                recipe = Recipe(name, corpus, seed=seed, tokens=tokens, **preset.training)
                with torch.random.fork_rng(devices=[]):  # refuses what can't run
                    Decoder(DecoderConfig(name, 1, recipe.n_head, recipe.n_embd))
                yield Cell(name, corpus, seed, tokens, preset, tuple(sorted(texts.items())))


@dataclass(frozen=True)
class Budget:
    """Of training: a number of tokens, or seconds where `tokens` is None."""

    tokens: int | None
    seconds: float = 0.0


def parse_budget(budget: int | str) -> Budget:
    """A budget from `3000000`, `"3M"`, `"90s"`, `"4min"` or `"1h"`.

    Raises:
        ParameterError: none of these.

    Example:
        >>> parse_budget("4min"), parse_budget("3M")
        (Budget(tokens=None, seconds=240.0), Budget(tokens=3000000, seconds=0.0))
    """
    match = _BUDGET.fullmatch(str(budget).strip())
    number = float(match[1]) if match else 0.0
    if match is None or not number:
        raise ParameterError(
            "a budget is a number of tokens such as 3000000 or 3M, or a time of training such as "
            f"90s, 4min or 1h; got {budget!r}"
        )
    if match[2] in _UNITS:
        return Budget(None, number * _UNITS[match[2]])
    return Budget(max(1, round(number * _FACTORS[match[2]])))
