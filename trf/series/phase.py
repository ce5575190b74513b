"""Oscillating exponents: D = A(n) + B(n) psi(phase), with B tending to infinity.

Where psi stays above the critical value the series converges by comparison; where it falls below
it on a recurrent set of n the series diverges. At the critical value Laplace's method decides:
if psi has a minimum m of order k, the mean over the phase of exp(-B psi) is of order
exp(-m B) B^(-1/k), so that p may be replaced by -(A + m B) - (1/k) log B.

For a linear phase w n this needs that n w is spread evenly on the scale B^(-1/k). That follows
from an irrationality measure of w/(2 pi): for pi, below 7.1033 (Zeilberger and Zudilin, 2020);
for an algebraic irrational, 2 (Roth). The discrepancy of the first N points is then
O(N^(-1/(mu-1)+e)) (Kuipers and Niederreiter, Uniform Distribution of Sequences, 2.3). For a
phase with theta' -> 0 the sum is an integral over the phase, and Laplace's method applies to each
of its peaks.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from dataclasses import dataclass

import sympy
from sympy import S

from trf.series.asymptotics import Lead, Scale
from trf.series.equidistribution import Kind, classify, divided, independent
from trf.series.minima import Minimum, Phase, minima, phases
from trf.series.rewriting import Rewriter
from trf.series.signs import Split, Undecidable


@dataclass(frozen=True)
class Envelope:
    """`psi` stays above (1) or falls below (-1) the critical value: that decides."""

    sign: int
    minimum: sympy.Expr


@dataclass(frozen=True)
class Averaged:
    """What -p may be replaced by, one candidate for each minimiser of the phase."""

    rests: tuple[sympy.Expr, ...]
    minimum: Minimum


@dataclass(frozen=True)
class Subsequence:
    """Infinitely many n come so close to the minimiser that the terms do not tend to 0."""

    minimum: Minimum


@dataclass(frozen=True)
class Best:
    """-p at the minimisers: if that converges, so does the series; else `reason` stands."""

    rests: tuple[sympy.Expr, ...]
    reason: str


def resolve(
    rewrite: Rewriter, rest: sympy.Expr, lead: Lead, critical: sympy.Expr
) -> Envelope | Averaged | Subsequence | Best:
    """What an oscillating leading coefficient means for ``sum exp(-rest)``."""
    scale, oracle = rewrite.scale, rewrite.oracle
    excess = lead.coefficient - critical
    signs = oracle.signs(excess)
    if signs == {1}:
        return Envelope(1, critical)
    if signs == {-1}:
        return Envelope(-1, critical)
    turning = phases(lead.coefficient, scale)
    if len(turning) > 1:
        return _several(rewrite, rest, lead, critical, turning)
    phase = _whole(turning[0], scale)
    found = [
        whole
        for minimum in minima(lead.coefficient, turning[0], oracle)
        for whole in _located(minimum, phase)
    ]
    sign = oracle.sign(found[0].value - critical)
    if sign > 0:
        return Envelope(1, found[0].value)
    kind = classify(rewrite, phase)
    origin = next((minimum for minimum in found if _at_origin(minimum, phase)), None)
    if not kind.recurrent and origin is None:
        raise Undecidable(
            f"whether the phase {phase.angle} is periodic depends on the parameters, and the "
            "answer with it"
        )
    if sign < 0:
        return Envelope(-1, found[0].value)
    if not kind.recurrent and origin is not None:
        _check_shift(rewrite, rest, lead, phase, origin)
        return _near(rewrite, rest, lead, phase, [origin])
    return _critical(rewrite, rest, lead, phase, found, kind)


def _whole(phase: Phase, scale: Scale) -> Phase:
    """The phase with both its sine and its cosine, where the scale holds them."""
    if phase.fraction is not None:
        return phase
    symbols = {meaning: symbol for symbol, meaning in scale.meaning.items()}
    return Phase(
        phase.angle,
        sine=symbols.get(sympy.sin(phase.angle, evaluate=False)),
        cosine=symbols.get(sympy.cos(phase.angle, evaluate=False)),
    )


def _located(minimum: Minimum, phase: Phase) -> list[Minimum]:
    """The minimiser as a point of the circle: sine and cosine both known."""
    sine, cosine = phase.sine, phase.cosine
    if sine is None or cosine is None or minimum.order is S.Infinity:
        return [minimum]
    known, missing = (sine, cosine) if sine in minimum.at else (cosine, sine)
    if missing in minimum.at or known not in minimum.at:
        return [minimum]
    other = sympy.sqrt(1 - minimum.at[known] ** 2)
    values = [other] if other == 0 else [other, -other]
    return [Minimum({**minimum.at, missing: v}, minimum.value, minimum.order) for v in values]


def _at_origin(minimum: Minimum, phase: Phase) -> bool:
    """Whether the minimum is at phase 0, to which n w returns for every w (Dirichlet)."""
    if phase.fraction is not None:
        return minimum.at.get(phase.fraction) == 0
    sine = minimum.at.get(phase.sine, S.Zero) if phase.sine is not None else S.Zero
    cosine = minimum.at.get(phase.cosine, S.One) if phase.cosine is not None else S.One
    return sine == 0 and cosine == 1


def _several(
    rewrite: Rewriter,
    whole: sympy.Expr,
    lead: Lead,
    critical: sympy.Expr,
    turning: list[Phase],
) -> Envelope | Averaged:
    """Several phases: the sum of the minima bounds from below, and is approached if independent."""
    scale = rewrite.scale
    total: sympy.Expr = S.Zero
    rest = sympy.expand(lead.coefficient)
    ratios = []
    each: list[tuple[Phase, list[Minimum]]] = []
    for phase in turning:
        symbols = _symbols(phase)
        own = sympy.Add(*(t for t in sympy.Add.make_args(rest) if t.free_symbols & symbols))
        rest -= own
        found = minima(own, phase, rewrite.oracle)
        total += found[0].value
        each.append((_whole(phase, scale), found))
        ratios.append(classify(rewrite, phase).ratio)  # None where it is not linear
    if rest.free_symbols & set(rewrite.oracle.ranges):
        raise Undecidable("several phases are multiplied")
    sign = rewrite.oracle.sign(total + rest - critical)
    if sign > 0:
        return Envelope(1, total + rest)
    if not independent(ratios):
        raise Undecidable("several phases are not known to be independent")
    if sign < 0:
        return Envelope(-1, total + rest)
    return _together(rewrite, whole, lead, each)


def _together(
    rewrite: Rewriter, rest: sympy.Expr, lead: Lead, each: list[tuple[Phase, list[Minimum]]]
) -> Averaged:
    """Independent phases at their minima together: the powers of B multiply.

    The phases are spread evenly enough because pi has a finite measure of transcendence
    (N. I. Feldman, 1960), if B grows slower than any power of n.
    """
    scale = rewrite.scale
    if _power_of_n(scale, lead) != 0:
        raise Undecidable("several phases reach the critical value together")
    rests = [rest]
    weight: sympy.Expr = S.Zero
    for phase, found in each:
        for minimum in found:
            _check_shift(rewrite, rest, lead, phase, minimum)
        rests = [r.subs(dict(minimum.at)) for r in rests for minimum in found]
        weight += 1 / max(minimum.order for minimum in found)
    log_size = sum(power * scale.log_of(g) for g, power in lead.monomial.items())
    rests = [sympy.expand_mul(r + weight * log_size, deep=False) for r in rests]
    if any(r.free_symbols & _symbols(phase) for r in rests for phase, _ in each):
        raise Undecidable("several phases reach the critical value together")
    return Averaged(tuple(rests), each[0][1][0])


def _symbols(phase: Phase) -> set[sympy.Symbol]:
    return {s for s in (phase.sine, phase.cosine, phase.fraction) if s is not None}


def _critical(
    rewrite: Rewriter,
    rest: sympy.Expr,
    lead: Lead,
    phase: Phase,
    found: list[Minimum],
    kind: Kind,
) -> Averaged | Subsequence | Envelope | Best:
    scale = rewrite.scale
    size = lead.monomial
    rests = []
    for minimum in found:
        _check_shift(rewrite, rest, lead, phase, minimum)
        at = rest.subs(dict(minimum.at))
        if at.free_symbols & {phase.sine, phase.cosine, phase.fraction}:
            raise Undecidable("two oscillating terms share a phase that is flat at its minimum")
        if minimum.order is not S.Infinity:
            at += sum(power * scale.log_of(g) for g, power in size.items()) / minimum.order
        rests.append(sympy.expand_mul(at, deep=False))
    if all(minimum.order is S.Infinity for minimum in found):
        return Averaged(tuple(rests), found[0])
    if kind.slow:
        _check_slow(rewrite, lead, phase, found)
        return Averaged(tuple(rests), found[0])
    if kind.ratio is None:
        raise Undecidable(f"how evenly the phase {phase.angle} is spread is not known")
    power = _power_of_n(scale, lead)
    order = min(m.order for m in found)
    if power == 0 and kind.finite_type:
        return Averaged(tuple(rests), found[0])
    if kind.measure is not None and power is not None:
        fine = power / order < 1 / (kind.measure - 1)
        if fine == S.true:
            return Averaged(tuple(rests), found[0])
        if _stays_far(rewrite, rests, power, order * (kind.measure - 1)):
            return Envelope(1, found[0].value)
    return _near(rewrite, rest, lead, phase, found)


def _stays_far(
    rewrite: Rewriter, rests: list[sympy.Expr], power: sympy.Expr, least: sympy.Expr
) -> bool:
    """Whether B times the least excess of the phase grows like a power of n.

    |n w - minimum| > n^(1 - mu - e), so that B psi is at least n^(power - least - e) with
    least = order (mu - 1).
    """
    scale = rewrite.scale
    if (power > least) != S.true:
        return False
    for rest in rests:
        lead = scale.lead(rest, strict=False)
        beyond = {g: p for g, p in lead.monomial.items() if g in _not_below(scale)}
        if scale.growth(beyond) > 0 and rewrite.sign(rest) < 0:
            return False
    return True


def _not_below(scale: Scale) -> list[sympy.Symbol]:
    return scale.generators[scale.generators.index(scale.n) :]


def _near(
    rewrite: Rewriter, rest: sympy.Expr, lead: Lead, phase: Phase, found: list[Minimum]
) -> Subsequence | Best:
    """Terms that do not tend to 0 because n comes within C/n of a minimiser again and again."""
    scale = rewrite.scale
    power = _power_of_n(scale, lead)
    for minimum in found if power is not None else ():
        bounded = _at_most_power(scale, lead, minimum.order)
        best = rest.subs(dict(minimum.at))
        ends = scale.lead(best, strict=False)
        stays = ends.coefficient == 0 or scale.growth(ends.monomial) <= 0
        if not stays:
            stays = rewrite.oracle.sign(scale.lead(best).coefficient) < 0
        if bounded and stays and _approached(minimum, phase):
            return Subsequence(minimum)
    best = tuple(sympy.expand_mul(rest.subs(dict(m.at)), deep=False) for m in found)
    return Best(best, _BY_FRACTIONS.format(phase.angle))


_BY_FRACTIONS = "the answer depends on how closely {} comes to the minimum along the integers"


def _power_of_n(scale: Scale, lead: Lead) -> sympy.Expr | None:
    """c, if the monomial is n^c up to smaller generators; None if it is larger than any power."""
    place = scale.generators.index(scale.n)
    for generator, power in lead.monomial.items():
        if scale.generators.index(generator) > place and power != 0:
            return None
    power = lead.monomial.get(scale.n, S.Zero)
    return power if power.is_number else None


def _at_most_power(scale: Scale, lead: Lead, order: sympy.Expr) -> bool:
    quotient = dict(lead.monomial)
    quotient[scale.n] = quotient.get(scale.n, S.Zero) - order
    return scale.growth(quotient) <= 0


def _approached(minimum: Minimum, phase: Phase) -> bool:
    """Whether infinitely many n come within C/n of the minimiser.

    For sin and cos by Minkowski's theorem on inhomogeneous approximation (Khinchin: for n > 0);
    for frac, where one side counts, by every second convergent.
    """
    if phase.fraction is None:
        return True
    return minimum.at.get(phase.fraction) in (S.Zero, S.One)


def _check_shift(
    rewrite: Rewriter, rest: sympy.Expr, lead: Lead, phase: Phase, minimum: Minimum
) -> None:
    """That the smaller terms do not move the minimum by more than O(1)."""
    scale = rewrite.scale
    symbols = _symbols(phase)
    other = rest - lead.coefficient * scale.value(lead.monomial)
    moving = sympy.expand_mul(other - other.subs(dict(minimum.at)))
    if not moving.free_symbols & symbols:
        return
    second = scale.lead(moving, strict=False)
    if second.coefficient == 0 or scale.growth(second.monomial) <= 0:
        return
    if minimum.order is S.Infinity:
        raise Undecidable("a second oscillating term acts where the first is flat")
    if (minimum.order <= 1) == S.true:
        return
    quotient = {g: minimum.order * power for g, power in second.monomial.items()}
    for generator, power in lead.monomial.items():
        quotient[generator] = quotient.get(generator, S.Zero) - power
    if scale.growth(quotient) > 0:
        raise Undecidable("two oscillating terms compete near the minimum of the phase")


def _check_slow(rewrite: Rewriter, lead: Lead, phase: Phase, found: list[Minimum]) -> None:
    """That each peak of a slow phase is wide enough to hold many integers."""
    scale = rewrite.scale
    speed = divided(scale.lead(rewrite(phase.angle)), scale.n)
    for minimum in found:
        if minimum.order is S.Infinity:
            continue
        width = {g: p / minimum.order for g, p in lead.monomial.items()}
        for generator, power in speed.items():
            width[generator] = width.get(generator, S.Zero) + power
        try:
            narrow = scale.growth({g: p for g, p in width.items() if p != 0}) >= 0
        except Split:
            raise Undecidable("how many integers a peak holds depends on the parameters") from None
        if narrow:
            raise Undecidable(f"the peaks of {phase.angle} are narrower than the integers")
