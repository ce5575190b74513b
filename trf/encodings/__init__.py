"""The catalogue of position encodings, as data.

To add one, write one file in this folder that builds an `Encoding` and one line in `_ENTRIES`:

* `formula` is p(n) as text. Parameters are positive reals unless `assume` says otherwise; `fixed`
  maps one to a rule over heads, `learnable` gives the range of its initial values and its limits.
* Without a p(n), `score` says what happens to the logits and `note` what the theory makes of it;
  `stand_in` is a bias whose series speaks for the encoding, decided by the same engine.
* `reference` names the paper and, where it is certain, the equation or section.

Nothing else changes: the theory decides the formula, the decoder compiles it, the command line
lists it, and the tests parametrised over `names()` check its description, its parameters, its
heads, its answer and, if it runs in a decoder, its gradients, causality and attention paths. Only
an encoding without p(n) that is to run as well needs code: a class in `trf.nn.mechanisms`, named
by `mechanism`.
"""

from __future__ import annotations

from types import MappingProxyType

from trf.encodings import (
    absolute,
    alibi,
    decay,
    fire,
    gated,
    kerple,
    rotary,
    sandwich,
    series,
    t5,
    tisa,
    window,
)
from trf.encodings.base import Encoding, Kind, Learnable, StandIn
from trf.errors import unknown_name

_ENTRIES = (
    absolute.NONE,
    absolute.SINUSOIDAL,
    absolute.LEARNED,
    rotary.ROPE,
    rotary.XPOS,
    rotary.XPOS_SHARED,
    rotary.REROPE,
    rotary.PERMUTEFORMER,
    window.WINDOW,
    alibi.ALIBI,
    decay.DECAY,
    kerple.KERPLE_LOG,
    kerple.KERPLE_POWER,
    kerple.KERPLE_LOG3,
    sandwich.SANDWICH,
    sandwich.SANDWICH_ABSOLUTE,
    t5.T5,
    tisa.TISA,
    fire.FIRE,
    gated.SWIN,
    gated.FORGETTING,
    gated.DAPE,
    series.TYPE1,
    series.TYPE2,
    series.INVERSE,
    series.INVERSE_LOG,
    series.GAUSSIAN,
    series.ROOT,
    series.POWER_125,
    series.POWER_075,
    series.POWER_4,
    series.LOG_OVER_SQUARE,
    series.TYPE1_PAPER,
    series.TYPE2_PAPER,
    series.INVERSE_PAPER,
    series.INVERSE_LOG_PAPER,
)
REGISTRY = MappingProxyType({encoding.name: encoding for encoding in _ENTRIES})
_ALIASES = {alias: encoding.name for encoding in _ENTRIES for alias in encoding.aliases}


def get(name: str | Encoding) -> Encoding:
    """The encoding called `name`, or one of its aliases; an `Encoding` is returned as it is.

    Raises:
        UnknownNameError: naming the nearest known encoding and all of them.

    Example:
        >>> get("alibi").formula
        '-m*n'
    """
    if isinstance(name, Encoding):
        return name
    key = _key(name)
    if key not in REGISTRY:
        raise unknown_name("encoding", name, [*REGISTRY, *_ALIASES])
    return REGISTRY[key]


def _key(name: str) -> str:
    key = name.strip().lower()
    return _ALIASES.get(key, key.replace("_", "-"))


def names() -> list[str]:
    """The names of all encodings, in catalogue order."""
    return list(REGISTRY)


__all__ = ["REGISTRY", "Encoding", "Kind", "Learnable", "StandIn", "get", "names"]
