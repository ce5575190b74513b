"""The catalogue of position encodings.

To add an encoding: write one file in this folder that builds an `Encoding` (formula, parameters,
rule over heads, reference), and add it to `REGISTRY` below. The command line, the theory, the
decoder and the parametrised tests then know it; nothing else needs to change.
"""

from __future__ import annotations

from types import MappingProxyType

from trf.encodings import alibi, decay, kerple, sandwich, series, unbiased, window
from trf.encodings.base import Encoding, Kind, Learnable
from trf.errors import unknown_name

_ENTRIES = (
    unbiased.NONE,
    unbiased.SINUSOIDAL,
    unbiased.ROPE,
    window.WINDOW,
    alibi.ALIBI,
    decay.DECAY,
    kerple.KERPLE_LOG,
    kerple.KERPLE_POWER,
    kerple.KERPLE_LOG3,
    sandwich.SANDWICH,
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


__all__ = ["REGISTRY", "Encoding", "Kind", "Learnable", "get", "names"]
