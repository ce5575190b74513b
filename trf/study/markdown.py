"""Tables and numbers in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MISSING = "–"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table, numbers to the right; a sentence instead of one without rows. Bars are escaped.

    Example:
        >>> print(table(["encoding", "tokens"], [["ALiBi", 31]]))
        | encoding | tokens |
        |---|--:|
        | ALiBi | 31 |
    """
    head, *body = (
        [MISSING if cell is None else str(cell).replace("|", "\\|") for cell in row]
        for row in (header, *rows)
    )
    if not body:
        return "*Nothing was measured.*"
    rules = ["---", *["--:"] * (len(header) - 1)]
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join(rules)}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in body)])


def number(value: float | None, digits: int = 3) -> str:
    """A number to so many significant digits; a dash for a missing one.

    Example:
        >>> number(0.12345), number(1234.5), number(None)
        ('0.123', '1234', '–')
    """
    if value is None:
        return MISSING
    if abs(value) >= 10**digits - 0.5:
        return f"{value:.0f}"
    return f"{value:#.{digits}g}".rstrip(".")


def span(values: Sequence[float], digits: int = 3) -> str:
    """The range of some numbers: one, or "least to greatest"; a dash if there are none.

    Example:
        >>> span([3, 1, 2]), span([2, 2])
        ('1 to 3', '2')
    """
    if not values:
        return MISSING
    low, high = (
        str(end) if isinstance(end, int) else number(end, digits)
        for end in (min(values), max(values))
    )
    return low if low == high else f"{low} to {high}"


def share(value: float | None) -> str:
    """A share between 0 and 1 to three places; what is less than a thousandth says only that.

    Example:
        >>> share(0.0339), share(1e-9), share(0.0), share(None)
        ('0.034', '< 0.001', '< 0.001', '–')
    """
    if value is None:
        return MISSING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def shares(values: Sequence[float]) -> str:
    """The range of some shares, as `span` for other numbers."""
    if not values:
        return MISSING
    low, high = share(min(values)), share(max(values))
    return low if low == high else f"{low} to {high}"
