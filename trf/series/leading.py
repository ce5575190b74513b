"""How ``exp(p(n))`` behaves for large n, on the scale of powers and logarithms.

`leading` writes ``p(n) = log C - s*log(n) - b*log(log(n)) - c*log(n)^t - r*n^a + o(1)`` for sums of
the functions that biases are made of, with parameters left symbolic; `radius_for_small_eps` and
`growth_with_length` read the theoretical receptive field off that, by the tails

    sum_{n>=j} n^-s           ~ j^(1-s)/(s-1)              s > 1,
    sum_{n>=j} 1/(n log^b n)  ~ log(j)^(1-b)/(b-1)         b > 1,
    sum_{n<j}  n^-s           ~ j^(1-s)/(1-s)              s < 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy


@dataclass(frozen=True)
class Leading:
    """The coefficients of the module docstring; ``heavy`` is ``(kind, coefficient, exponent)``.

    ``kind`` is "power" for ``-r*n^a`` and "log" for ``-c*log(n)^t``; None if there is none.
    """

    constant: Any
    power: Any
    iterated: Any
    heavy: tuple[str, Any, Any] | None


def leading(p: Any, n: sympy.Symbol) -> Leading | None:
    """The leading behaviour, or None for an expression outside this small class.

    Examples:
        >>> n, r = sympy.symbols("n r", positive=True)
        >>> found = leading(-r * sympy.log(1 + 3 * n), n)
        >>> found.power, found.constant
        (r, 3**(-r))
    """
    constant, power, iterated = sympy.S.One, sympy.S.Zero, sympy.S.Zero
    heavy: dict[tuple[str, Any], Any] = {}
    for part in sympy.Add.make_args(sympy.expand_mul(p)):
        scale, core = part.as_independent(n, as_Add=False)
        if not part.has(n):
            constant *= sympy.exp(part)
            continue
        if isinstance(core, sympy.log):
            inner = core.args[0]
            monomial = leading_monomial(inner, n)
            if monomial is not None:
                constant *= monomial[0] ** scale
                power -= scale * monomial[1]
                continue
            exponent = _log_power(inner, n)
            if exponent is None:
                return None
            factor, times = exponent
            constant *= factor**scale
            iterated -= scale * times
            continue
        kind = _heavy(core, n)
        if kind is None:
            return None
        name, factor, exponent = kind
        heavy[name, exponent] = heavy.get((name, exponent), sympy.S.Zero) - scale * factor
    return _assembled(constant, power, iterated, heavy)


def _assembled(constant: Any, power: Any, iterated: Any, heavy: dict[Any, Any]) -> Leading | None:
    heavy = {key: value for key, value in heavy.items() if value != 0}
    if not heavy:
        return Leading(constant, power, iterated, None)
    powers = {key: value for key, value in heavy.items() if key[0] == "power"}
    pool = powers or heavy
    if len(pool) > 1 and not all(key[1].is_number for key in pool):
        return None
    name, exponent = (
        max(pool, key=lambda key: key[1].evalf()) if len(pool) > 1 else next(iter(pool))
    )
    return Leading(constant, power, iterated, (name, pool[name, exponent], exponent))


def leading_monomial(expr: Any, n: sympy.Symbol) -> tuple[Any, Any] | None:
    """``(c, d)`` with ``expr ~ c*n^d``, c, d > 0, for sums of powers of n."""
    terms: dict[Any, Any] = {}
    for part in sympy.Add.make_args(sympy.expand(expr)):
        scale, core = part.as_independent(n, as_Add=False)
        base, exponent = core.as_base_exp() if part.has(n) else (n, sympy.S.Zero)
        if base != n or exponent.has(n):
            return None
        terms[exponent] = terms.get(exponent, sympy.S.Zero) + scale
    positive = [exponent for exponent in terms if exponent.is_positive]
    if not positive:
        return None
    top = positive[0] if len(positive) == 1 else None
    if top is None:
        if not all(exponent.is_number for exponent in positive):
            return None
        top = max(positive, key=lambda exponent: exponent.evalf())
    return (terms[top], top) if terms[top].is_positive else None


def _log_power(expr: Any, n: sympy.Symbol) -> tuple[Any, Any] | None:
    """``(c, t)`` with ``expr ~ c*log(n)^t``: a logarithm to a power, plus what is smaller."""
    found = None
    for part in sympy.Add.make_args(sympy.expand_mul(expr)):
        if not part.has(n):
            continue
        scale, core = part.as_independent(n, as_Add=False)
        base, exponent = core.as_base_exp()
        if not isinstance(base, sympy.log) or found is not None or not scale.is_positive:
            return None
        monomial = leading_monomial(base.args[0], n)
        if monomial is None or not exponent.is_positive:
            return None
        found = scale * monomial[1] ** exponent, exponent
    return found


def _heavy(core: Any, n: sympy.Symbol) -> tuple[str, Any, Any] | None:
    base, exponent = core.as_base_exp()
    if exponent.has(n) or not exponent.is_positive:
        return None
    if isinstance(base, sympy.log):
        monomial = leading_monomial(base.args[0], n)
        return None if monomial is None else ("log", monomial[1] ** exponent, exponent)
    monomial = leading_monomial(base, n)
    if monomial is None:
        return None
    return "power", monomial[0] ** exponent, monomial[1] * exponent


def radius_for_small_eps(
    found: Leading, total: Any, eps: sympy.Symbol
) -> tuple[Any, bool, Any] | None:
    """The radius as eps -> 0; whether only its logarithm is asymptotic; the condition for it.

    None where the series diverges or the class has no rule.
    """
    if found.heavy is not None:
        return _heavy_radius(found, eps)
    excess = found.power - 1
    if excess.is_negative:
        return None
    if excess == 0:
        further = found.iterated - 1
        if further.is_nonpositive:
            return None
        inner = (found.constant / (further * eps * total)) ** (1 / further)
        return sympy.exp(inner), True, found.iterated > 1
    level = found.constant / (excess * eps * total)
    if found.iterated != 0:
        level *= (sympy.log(1 / eps) / excess) ** -found.iterated
    return level ** (1 / excess), False, found.power > 1


def _heavy_radius(found: Leading, eps: sympy.Symbol) -> tuple[Any, bool, Any] | None:
    assert found.heavy is not None
    kind, rate, exponent = found.heavy
    if rate.is_negative:
        return None
    if kind == "power":
        return (sympy.log(1 / eps) / rate) ** (1 / exponent), False, rate > 0
    law = sympy.exp((sympy.log(1 / eps) / rate) ** (1 / exponent))
    if found.power == 1 and (1 - exponent).is_positive:
        return law, True, rate > 0
    if (exponent - 1).is_nonpositive:
        return None
    return law, True, sympy.And(rate > 0, exponent > 1)


def growth_with_length(
    found: Leading, eps: sympy.Symbol, length: sympy.Symbol, limit: Any
) -> Any | None:
    """``TRF_N(eps)`` for large N; a Piecewise where a parameter decides, None without a rule.

    ``limit`` stands for the radius in the limit, where the series converges.
    """
    if found.heavy is not None:
        kind, rate, exponent = found.heavy
        decays = kind == "power" or (exponent - 1).is_positive or found.power == 1
        return limit if rate.is_positive and decays else None
    s, b = found.power, found.iterated
    spread = 1 - s
    if spread.is_positive:
        return length * (1 - eps) ** (1 / spread)
    if spread.is_negative:
        return limit
    if spread == 0:
        return _logarithmic_growth(b, eps, length, limit)
    if b != 0:
        return None
    return sympy.Piecewise(
        (length * (1 - eps) ** (1 / spread), s < 1),
        (length ** (1 - eps), sympy.Eq(s, 1)),
        (limit, True),
    )


def _logarithmic_growth(b: Any, eps: Any, length: Any, limit: Any) -> Any | None:
    """Weights ``C/(n log^b n)``."""
    if (b - 1).is_positive:
        return limit
    if b == 1:
        return sympy.exp(sympy.log(length) ** (1 - eps))
    slow = length ** ((1 - eps) ** (1 / (1 - b)))
    if (1 - b).is_positive:
        return slow
    return sympy.Piecewise(
        (slow, b < 1),
        (sympy.exp(sympy.log(length) ** (1 - eps)), sympy.Eq(b, 1)),
        (limit, True),
    )
