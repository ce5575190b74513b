"""A check by numbers: what p does far out, against what a proof claims of it.

Nothing here uses the engine. p is evaluated with mpmath at 10^2, 10^3, ..., 10^1000, each value
at two precisions until they agree, and compared with the asymptotic term that the proof's last
step names. Numbers can't prove a limit; they can show that a claim is wrong.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportCallIssue=false, reportInvalidTypeForm=false

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from time import process_time

import mpmath
import sympy
from mpmath import mp
from sympy import S

from trf.series.far_out import CannotEvaluate, agreeing, attempt, stable
from trf.series.proof import Claim

_EXPONENTS = (2, 3, 4, 6, 10, 30, 100, 1000)
_FAR = (50, 200, 500)  # log n = e^50, ... where p depends on n through log(n) alone
_SMALL = (30, 100, 300, 1000)  # n where p holds exponentials
_SECONDS = 2.0
_EXPENSIVE = (sympy.loggamma, sympy.digamma, sympy.harmonic)  # at thousands of digits
_MODERATE = 30  # the largest exponent of 10 at which those are evaluated
_CLOSE = 0.25
_SAMPLES = ("1/3", "1/2", "1", "3/2", "2", "5/2", "3", "7", "11/10", "-1", "-2", "0")


@dataclass(frozen=True)
class Check:
    """What the numbers say of a verdict.

    Attributes:
        agrees: True where every claim was seen to hold, False where one was seen to fail, None
            where p can't be evaluated or moves too slowly to tell.
        saw: one line for each claim.
        reason: where `agrees` is None, why.
    """

    agrees: bool | None
    saw: tuple[str, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        head = {True: "agrees", False: "disagrees", None: f"not checked: {self.reason}"}
        return "\n".join([head[self.agrees], *self.saw])


@dataclass(frozen=True)
class _Seen:
    agrees: bool | None
    text: str
    values: Mapping[str, str] = field(default_factory=dict)


def check(expr: sympy.Expr, n: sympy.Symbol, claims: tuple[Claim, ...]) -> Check:
    """Evaluate p far out and compare it with the claims of a proof."""
    if not claims:
        return Check(None, (), "the proof makes no claim on a single term of p far out")
    seen: list[_Seen] = []
    deadline = process_time() + _SECONDS
    try:
        seen.extend(_compare(expr, n, claim, deadline) for claim in claims)
    except CannotEvaluate as reason:
        return Check(None, tuple(s.text for s in seen), str(reason))
    lines = tuple(s.text for s in seen)
    if any(s.agrees is False for s in seen):
        return Check(False, lines)
    if any(s.agrees is None for s in seen):
        return Check(None, lines, "p turns too slowly to be told from its limit at such n")
    return Check(True, lines)


def _compare(expr: sympy.Expr, n: sympy.Symbol, claim: Claim, deadline: float) -> _Seen:
    values = _sample(expr, n, claim)
    p = stable(expr.subs(values))
    rest = -p - sum(claim.subtracted, S.Zero)
    lead = None if claim.lead is None else claim.lead.subs(values)
    target = rest if lead is None else rest / lead
    measured: list[tuple[str, mpmath.mpf]] = []
    reason = "too few points could be evaluated"
    for label, point, digits in _points(p, n):
        value = attempt(target, point, digits, deadline)
        if isinstance(value, CannotEvaluate):
            reason = str(value)
        else:
            measured.append((label, value))
    measured = measured[-3:]
    if len(measured) < 2:
        raise CannotEvaluate(reason)
    name = " - ".join(["-p", *(str(known) for known in claim.subtracted)])
    what = name if lead is None else f"({name}) / ({lead})"
    case = ", ".join(f"{s} = {v}" for s, v in values.items())
    points = ", ".join(f"{mpmath.nstr(v, 6)} at {label}" for label, v in measured)
    text = f"{what}{' with ' + case if case else ''}: {points}"
    if lead is None:
        return _Seen(_is_bounded(measured), text)
    agrees = _tends_to_one(measured)
    slow = agrees is False and _is_slow(lead, n, _has_exponentials(p, n))
    return _Seen(None if slow else agrees, text)


def _points(
    p: sympy.Expr, n: sympy.Symbol
) -> Iterator[tuple[str, dict[sympy.Basic, mpmath.mpf], int]]:
    """Where p is evaluated: a label, the values, and the digits that no cancellation exceeds."""
    if _has_exponentials(p, n):
        for size in _SMALL:
            yield f"n = {size}", {n: mpmath.mpf(size)}, 40 + 2 * size
        return
    largest = _MODERATE if p.has(*_EXPENSIVE) else _EXPONENTS[-1]
    for exponent in (e for e in _EXPONENTS if e <= largest):
        yield f"n = 10^{exponent}", {n: mpmath.mpf(10) ** exponent}, 40 + 2 * exponent
    log_n = sympy.log(n)
    if n not in p.xreplace({log_n: sympy.Dummy()}).free_symbols:
        for size in _FAR:
            yield f"n = exp(exp({size}))", {log_n: mp.exp(size)}, 40 + size


def _has_exponentials(p: sympy.Expr, n: sympy.Symbol) -> bool:
    """Whether terms that differ by exponentially little may cancel."""
    if p.has(sympy.sinh, sympy.cosh, sympy.tanh, sympy.coth):
        return True
    powers = [part for part in p.atoms(sympy.Pow, sympy.exp) if n in part.exp.free_symbols]
    return bool(powers)


def _is_slow(lead: sympy.Expr, n: sympy.Symbol, near_only: bool) -> bool:
    """Whether the claimed term hardly moves over the points: none is far out for it."""
    exponents = (2, 3) if near_only else (30, 1000)
    near, far = (
        abs(agreeing(lead, {n: mpmath.mpf(10) ** e}, 40 + 2 * e, mpmath.inf)) for e in exponents
    )
    return bool(far < 3 * near and near < 3 * far)


def _tends_to_one(measured: list[tuple[str, mpmath.mpf]]) -> bool | None:
    gaps = [abs(value - 1) for _, value in measured]
    if gaps[-1] < _CLOSE:
        return True
    return None if gaps[-1] < gaps[0] else False


def _is_bounded(measured: list[tuple[str, mpmath.mpf]]) -> bool:
    sizes = [abs(value) for _, value in measured]
    return bool(sizes[-1] <= 3 * max(sizes[:-1]) + 50)


def _sample(expr: sympy.Expr, n: sympy.Symbol, claim: Claim) -> dict[sympy.Symbol, sympy.Expr]:
    """Values of the parameters within their domains and within the claim's case."""
    equations = [r for r in claim.case if isinstance(r, sympy.Eq) and r.lhs.is_Symbol]
    solved = {r.lhs: r.rhs for r in equations}
    free = sorted(
        {s for s in _symbols(expr, claim) if s != n and s not in solved},
        key=lambda s: s.name,
    )
    for choice in _choices(free):
        values = dict(choice)
        for symbol, value in solved.items():
            values[symbol] = value.subs(choice)
        fits = all(_allowed(s, v) for s, v in values.items()) and all(
            r.subs(values) == S.true for r in claim.case
        )
        if fits and not expr.subs(values).has(S.NaN, S.ComplexInfinity):
            return values
    raise CannotEvaluate("no values of the parameters were found in one of the cases")


def _symbols(expr: sympy.Expr, claim: Claim) -> set[sympy.Symbol]:
    found = set(expr.free_symbols)
    for relation in claim.case:
        found |= relation.free_symbols
    return found  # type: ignore[return-value]


def _choices(free: list[sympy.Symbol]) -> Iterator[dict[sympy.Symbol, sympy.Expr]]:
    options = [[sympy.Rational(text) for text in _SAMPLES]] * len(free)
    for count, combination in enumerate(product(*options)):
        if count > 4_000:
            return
        yield dict(zip(free, combination, strict=True))


def _allowed(symbol: sympy.Symbol, value: sympy.Expr) -> bool:
    for assumption in ("positive", "negative", "nonnegative", "nonpositive", "integer", "even"):
        if getattr(symbol, f"is_{assumption}") and getattr(value, f"is_{assumption}") is False:
            return False
    return True
