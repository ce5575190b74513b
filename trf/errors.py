"""One small family of errors; a message says what was wrong, what was got, and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TRFError(Exception):
    """Base of every error that a user's input can cause."""


class ExpressionError(TRFError, ValueError):
    """The text or object can't be read as a bias p(n)."""


class ParameterError(TRFError, ValueError):
    """A parameter, eps or option is missing, unknown or outside its domain."""


class UnknownNameError(TRFError, ValueError):
    """A name (of an encoding, a corpus, a preset) that is not known."""


class DivergenceError(TRFError, ValueError):
    """A limit was asked of a series that diverges."""


class UndecidedError(TRFError, ValueError):
    """A yes or no was asked of a verdict that is neither."""


class CheckpointError(TRFError, ValueError):
    """A file that is not a usable checkpoint."""


class TextError(TRFError, ValueError):
    """A text that is empty, too short or unreadable."""


class MissingExtraError(TRFError, ImportError):
    """A part of trf whose packages are not installed."""


def unknown_name(what: str, got: str, known: Iterable[str]) -> UnknownNameError:
    """The error for an unknown name: the nearest known one, then all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(got.lower(), names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return UnknownNameError(f"unknown {what} {got!r}.{hint} Known: {', '.join(names)}.")


def missing_extra(package: str, extra: str) -> MissingExtraError:
    """The error for a package that an extra would have installed."""
    return MissingExtraError(
        f"this needs {package}, which is not installed: pip install 'trf[{extra}]'"
    )
