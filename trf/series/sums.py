"""Rewriting rules for sums, products and integrals whose upper end grows.

A sum of a monotone f is its integral up to a constant and O(f) (Euler and Maclaurin); the
integral is taken term by term over the logarithmic scale. What is only bounded becomes a symbol.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportAttributeAccessIssue=false
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

import sympy
from sympy import S

from trf.series.asymptotics import Lead, exponent
from trf.series.rewriting import Rewriter
from trf.series.signs import Undecidable

_MOST_TERMS = 300
_DEPTH = 6
_STEEP = 40  # terms beyond this power of n are summed by their last ratio


def rewrite_sum(r: Rewriter, x: sympy.Sum) -> sympy.Expr:
    """A sum over an index: written out, in closed form, or by its asymptotics."""
    if len(x.limits) != 1:
        raise Undecidable(f"the growth of the nested sum {x} is not known")
    index, low, high = x.limits[0]
    term = x.function
    if r.n not in low.free_symbols | high.free_symbols:
        return _fixed_range(r, term, index, low, high, x)
    if term.is_polynomial(index) and index not in (low.free_symbols | high.free_symbols):
        return r(x.doit())
    if r.n in low.free_symbols:
        raise Undecidable(f"the growth of {x}, whose lower end moves, is not known")
    if r.n in term.free_symbols:
        inner, outer = _separate(term, index, r.n)
        if r.n in inner.free_symbols:
            raise Undecidable(f"the growth of {x}, whose terms depend on n, is not known")
        return r(outer) * rewrite_sum(r, sympy.Sum(inner, x.limits[0]))
    total: sympy.Expr = S.Zero
    for part in sympy.Add.make_args(sympy.expand(term)):
        total += _growing_sum(r, part, index, low, high, x)
    return total


def _separate(
    term: sympy.Expr, index: sympy.Symbol, n: sympy.Symbol
) -> tuple[sympy.Expr, sympy.Expr]:
    outer, inner = term.as_independent(index, as_Add=False)
    return inner, outer


def _fixed_range(
    r: Rewriter,
    term: sympy.Expr,
    index: sympy.Symbol,
    low: sympy.Expr,
    high: sympy.Expr,
    x: sympy.Expr,
) -> sympy.Expr:
    count = high - low + 1
    if count.is_Integer and count <= _MOST_TERMS:
        terms = [term.subs(index, low + k) for k in range(max(0, int(count)))]
        waves = [t.as_independent(r.n, as_Add=False) for t in terms]
        if all(_is_wave(wave) for _, wave in waves):
            size = sympy.Add(*(sympy.Abs(c) for c, _ in waves))
            size = S.Infinity if size.free_symbols else size
            return r.scale.bounded(x, -size, size)
        return sympy.Add(*(r(t) for t in terms))
    if _is_wave(term):
        return sympy.Abs(count) * r.scale.bounded(x / count, S.NegativeOne, S.One)
    raise Undecidable(f"the growth of {x} is not known")


def _is_wave(term: sympy.Expr) -> bool:
    return isinstance(term, (sympy.sin, sympy.cos))


def _growing_sum(
    r: Rewriter,
    term: sympy.Expr,
    index: sympy.Symbol,
    low: sympy.Expr,
    high: sympy.Expr,
    x: sympy.Expr,
) -> sympy.Expr:
    factor, core = term.as_independent(index, as_Add=False)
    power = _pure_power(core, index)
    if power is not None and low.is_Integer and low >= 1:
        missing = sympy.Add(*(S(k) ** power for k in range(1, int(low))))
        return r(factor) * (r(sympy.harmonic(high, -power)) - missing)
    if core == sympy.log(index) and low == 1:
        return r(factor) * r(sympy.loggamma(high + 1))
    end = _at_end(r, core, index, high)
    x = sympy.Sum(core, (index, low, high))
    if end.free_symbols & set(r.oracle.ranges):
        raise Undecidable(f"the mean of the oscillating terms of {x} is not known")
    if r.limit(end / r.scale.n**_STEEP) is S.Infinity:
        before = r(core.subs(index, r.n - 1))
        # Stolz and Cesaro: the sum is f(n) / (1 - f(n-1)/f(n)) times a factor that tends to 1.
        near_one = r.scale.bounded(x, S.Half, S(2))
        return r(factor) * near_one * end / (1 - before / end)
    integral, error = integrate(r, end, r(high), core)
    return r(factor) * (integral + r.scale.bounded(x, S.NegativeInfinity, S.Infinity) * (1 + error))


def _pure_power(core: sympy.Expr, index: sympy.Symbol) -> sympy.Expr | None:
    if core == index:
        return S.One
    if core.is_Pow and core.base == index and index not in core.exp.free_symbols:
        return core.exp
    return None


def _at_end(r: Rewriter, core: sympy.Expr, index: sympy.Symbol, high: sympy.Expr) -> sympy.Expr:
    if high != r.n:
        raise Undecidable(f"the growth of a sum up to {high} is not known")
    return r(core.subs(index, r.n))


def integrate(
    r: Rewriter, f: sympy.Expr, upper: sympy.Expr, shown: sympy.Expr
) -> tuple[sympy.Expr, sympy.Expr]:
    """The integral of a rewritten f(n) as (leading terms, size of the error besides O(1)).

    The error covers the integral of what is left of f and, for a monotone f, the difference
    between sum and integral, which is O(f).
    """
    scale = r.scale
    total: sympy.Expr = S.Zero
    rest = f
    error: sympy.Expr = S.Zero
    for _ in range(_DEPTH):
        lead = scale.lead(rest)
        if lead.coefficient == 0 or _summable(r, lead):
            return total, error + _vanishing(r, f)
        primitive = _primitive(r, lead, shown)
        monomial = lead.coefficient * scale.value(lead.monomial)
        if primitive is None:
            leading, relative = _crude(r, lead)
            left = scale.lead(sympy.expand_mul(rest - monomial, deep=False))
            if left.coefficient != 0 and not _summable(r, left):
                error += _crude(r, left)[0]
            return total + leading, error + leading * relative + f
        total += primitive
        rest = sympy.expand_mul(rest - monomial, deep=False)
    return total, error + _crude(r, scale.lead(rest))[0] + f


def _vanishing(r: Rewriter, f: sympy.Expr) -> sympy.Expr:
    """O(f), if it is not O(1)."""
    return f if r.scale.growth(r.scale.lead(f).monomial) > 0 else S.Zero


def _summable(r: Rewriter, lead: Lead) -> bool:
    """Whether the integral of the monomial to infinity is finite."""
    scale = r.scale
    for generator in reversed(scale.generators):
        power = lead.monomial.get(generator, S.Zero)
        if generator in _iterated(r):
            power = exponent(power + 1)
        sign = r.oracle.sign(power)
        if sign != 0:
            return sign < 0
    return False


def _iterated(r: Rewriter) -> list[sympy.Symbol]:
    """n, log n, log log n, ..., as far as the scale holds them."""
    scale = r.scale
    found = [scale.n]
    while found[-1] in scale.logs and len(found) < _DEPTH:
        found.append(scale.log_of(found[-1]))  # type: ignore[arg-type]
    return found


def _primitive(r: Rewriter, lead: Lead, shown: sympy.Expr) -> sympy.Expr | None:
    """An exact primitive of ``c n^-1 log(n)^-1 ... log_k(n)^e``, or of ``c n^a``."""
    scale = r.scale
    monomial = {g: p for g, p in lead.monomial.items() if p != 0}
    power = monomial.pop(scale.n, S.Zero)
    if r.oracle.sign(power + 1) != 0:
        if monomial:
            return None
        return lead.coefficient * scale.n ** exponent(power + 1) / (power + 1)
    for depth in range(1, _DEPTH):
        generator = scale.iterated_log(depth)
        power = monomial.pop(generator, S.Zero)
        if r.oracle.sign(power + 1) != 0:
            if monomial:
                return None
            return lead.coefficient * generator ** exponent(power + 1) / (power + 1)
    raise Undecidable(f"the integral of {shown} is not known")


def _crude(r: Rewriter, lead: Lead) -> tuple[sympy.Expr, sympy.Expr]:
    """The integral of the leading monomial, and the order of its relative error."""
    scale = r.scale
    monomial = dict(lead.monomial)
    above = [
        g
        for g, p in monomial.items()
        if p != 0 and scale.generators.index(g) > scale.generators.index(scale.n)
    ]
    if above:
        raise Undecidable("the sum of terms that grow faster than any power is not expanded")
    value = lead.coefficient * scale.value(lead.monomial)
    power = monomial.pop(scale.n, S.Zero)
    sign = r.oracle.sign(power + 1)
    if sign != 0:
        return value * scale.n / (power + 1), 1 / scale.iterated_log(1)
    for depth in range(1, _DEPTH):
        generator = scale.iterated_log(depth)
        power = monomial.pop(generator, S.Zero)
        value = value * (scale.n if depth == 1 else scale.iterated_log(depth - 1))
        if r.oracle.sign(power + 1) != 0:
            return value * generator / (power + 1), 1 / scale.iterated_log(depth + 1)
    raise Undecidable("the integral of a product of logarithms is not known")


def log_product(r: Rewriter, x: sympy.Product) -> sympy.Expr:
    """The logarithm of a product is the sum of the logarithms."""
    if len(x.limits) != 1:
        raise Undecidable(f"the growth of the nested product {x} is not known")
    index, low, high = x.limits[0]
    factor = sympy.factor(sympy.together(x.function))
    total: sympy.Expr = S.Zero
    for base, power in _factors(factor):
        total += power * _log_factors(r, base, index, low, high)
    return total


def _factors(expr: sympy.Expr) -> list[tuple[sympy.Expr, sympy.Expr]]:
    return [factor.as_base_exp() for factor in sympy.Mul.make_args(expr)]


def _log_factors(
    r: Rewriter, base: sympy.Expr, index: sympy.Symbol, low: sympy.Expr, high: sympy.Expr
) -> sympy.Expr:
    """sum log(a k + b) by gamma functions, of other factors by their asymptotics."""
    if index not in base.free_symbols:
        return r(high - low + 1) * r.log(sympy.Abs(base))
    if base.is_polynomial(index) and sympy.degree(base, index) == 1:
        slope, offset = sympy.Poly(base, index).all_coeffs()
        start = low + offset / slope
        count = r(high - low + 1)
        head = sympy.loggamma(start) if start.is_positive else S.Zero
        if not slope.is_positive:
            raise Undecidable(f"the sign of {base} is not settled")
        if not start.is_positive and not (start.is_number and not start.is_integer):
            raise Undecidable(f"the product has a factor {base} that may vanish")
        return count * r.log(slope) + r(sympy.loggamma(high + 1 + offset / slope)) - head
    return rewrite_sum(r, sympy.Sum(sympy.log(base), (index, low, high)))


def rewrite_product(r: Rewriter, x: sympy.Product) -> sympy.Expr:
    """A product whose factors are positive."""
    return r.exp(log_product(r, x))


def rewrite_integral(r: Rewriter, x: sympy.Integral) -> sympy.Expr:
    """An integral from a constant to a growing end."""
    if len(x.limits) != 1 or len(x.limits[0]) != 3:
        raise Undecidable(f"the growth of {x} is not known")
    variable, low, high = x.limits[0]
    if r.n in x.function.free_symbols:
        raise Undecidable(f"the growth of {x} is not known")
    if r.n in low.free_symbols and high is S.Infinity:
        return _tail_integral(r, x.function, variable, low, x)
    if r.n in low.free_symbols:
        raise Undecidable(f"the growth of {x} is not known")
    if r.n not in high.free_symbols:
        return x
    end = r(x.function.subs(variable, r.n))
    if high != r.n:
        raise Undecidable(f"the growth of an integral up to {high} is not known")
    if end.free_symbols & set(r.oracle.ranges):
        raise Undecidable(f"the mean of the oscillating integrand of {x} is not known")
    if _may_be_singular(x.function, variable, low):
        raise Undecidable(f"{x} may have a pole in its range")
    integral, error = integrate(r, end, r(high), x.function)
    return integral + r.scale.bounded(x, S.NegativeInfinity, S.Infinity) * (1 + error)


def _may_be_singular(f: sympy.Expr, t: sympy.Symbol, low: sympy.Expr) -> bool:
    """Whether a denominator or a logarithm may vanish beyond the lower end."""
    for part in f.atoms(sympy.Pow, sympy.log):
        inner = part.args[0]
        if t not in inner.free_symbols or (part.is_Pow and not part.exp.is_negative):
            continue
        if inner in (t, sympy.log(t)):
            if (low > (0 if inner == t else 1)) == S.true:
                continue
            return True
        if inner.free_symbols != {t} or not inner.is_polynomial(t):
            return True
        roots = sympy.Poly(inner, t).nroots()
        if any(root.is_real and (root >= low) != S.false for root in roots):
            return True
    return False


def _tail_integral(
    r: Rewriter, f: sympy.Expr, t: sympy.Symbol, low: sympy.Expr, x: sympy.Expr
) -> sympy.Expr:
    """The integral of a positive f from a growing end to oo, up to a factor that tends to 1.

    With a the limit of t f'/f: it is t f/(-a-1) for -oo < a < -1, and -f^2/f' for a = -oo.
    """
    slope = r((sympy.diff(f, t) / f).subs(t, low))
    end, value = r(low), r(f.subs(t, low))
    near_one = r.scale.bounded(x, S.Half, S(2))
    power = r.limit(slope * end)
    if power is S.NegativeInfinity:
        return near_one * value / -slope
    if power is S.Infinity or r.oracle.sign(power + 1) >= 0:
        raise Undecidable(f"the growth of {x} is not known")
    return near_one * end * value / (-power - 1)
