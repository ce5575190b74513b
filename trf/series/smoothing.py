"""Writing a bias so that the calculus of discs can follow it, or bounding it by one that it can.

`smoothed` rewrites: absolute values, maxima and minima become piecewise; hyperbolic functions and
their inverses become exponentials and logarithms; factorials become ``loggamma``; a logarithm of
a sum of exponentials has the largest one taken out, ``log(1+e^x) = x + log(1+e^-x)``.

`majorant` gives an exponent that is at least ``p`` from some n on, for what stays rough:
``floor(y) > y-1``, ``|sin| <= 1``, and ``e^g >= g^2/2`` for g >= 0.
"""

from __future__ import annotations

from typing import Any

import sympy

_PIECEWISE = (sympy.Abs, sympy.Max, sympy.Min, sympy.Heaviside, sympy.sign)
_HYPERBOLIC = (sympy.sinh, sympy.cosh, sympy.tanh, sympy.coth, sympy.sech, sympy.csch)


def with_pieces(p: Any, n: sympy.Symbol) -> Any:
    """``p`` with absolute values, maxima, minima and steps as piecewise expressions."""
    if not any(atom.has(n) for atom in p.atoms(*_PIECEWISE)):
        return p
    rewritten = p.replace(lambda e: isinstance(e, _PIECEWISE) and e.has(n), _as_piecewise)
    return sympy.piecewise_fold(rewritten)


def _as_piecewise(expr: Any) -> Any:
    if isinstance(expr, sympy.Max | sympy.Min):
        arguments: list[Any] = list(expr.args)
        result = arguments[0]
        for other in arguments[1:]:
            larger = result >= other
            pair = (result, other) if isinstance(expr, sympy.Max) else (other, result)
            result = sympy.Piecewise((pair[0], larger), (pair[1], True))
        return result
    inner = expr.args[0]
    if isinstance(expr, sympy.Abs):
        return sympy.Piecewise((inner, inner >= 0), (-inner, True))
    below = -1 if isinstance(expr, sympy.sign) else 0
    middle = expr.func(0)
    return sympy.Piecewise((1, inner > 0), (middle, sympy.Eq(inner, 0)), (below, True))


def smoothed(p: Any, x: sympy.Symbol) -> Any:
    """``p`` in powers, exponentials, logarithms and ``loggamma`` of a positive symbol."""
    if not p.atoms(sympy.exp, sympy.Function) - p.atoms(sympy.log):
        return p
    p = p.replace(
        lambda e: isinstance(e, (sympy.asinh, sympy.acosh)) and e.has(x),
        lambda e: e.rewrite(sympy.log),
    )
    p = p.replace(lambda e: isinstance(e, sympy.factorial), lambda e: sympy.gamma(e.args[0] + 1))
    p = p.replace(
        lambda e: isinstance(e, sympy.log) and isinstance(e.args[0], sympy.gamma),
        lambda e: sympy.loggamma(e.args[0].args[0]),
    )
    p = p.replace(
        lambda e: isinstance(e, _HYPERBOLIC) and e.has(x), lambda e: _decaying(e.args[0], e.func)
    )
    return sympy.expand_log(p, force=True).replace(
        lambda e: isinstance(e, sympy.log) and e.args[0].has(sympy.exp), lambda e: _log(e, x)
    )


def _decaying(y: Any, function: Any) -> Any:
    """A hyperbolic function of y > 0 in terms of ``e^-y``."""
    small = sympy.exp(-2 * y)
    plus, minus = 1 + small, 1 - small
    forms = {
        sympy.tanh: minus / plus,
        sympy.coth: plus / minus,
        sympy.sech: 2 * sympy.exp(-y) / plus,
        sympy.csch: 2 * sympy.exp(-y) / minus,
        sympy.cosh: sympy.exp(y) * plus / 2,
        sympy.sinh: sympy.exp(y) * minus / 2,
    }
    return forms[function]


def _log(expr: Any, x: sympy.Symbol) -> Any:
    """The logarithm of a sum of exponentials with the fastest growing one taken out."""
    terms = sympy.Add.make_args(sympy.powsimp(sympy.expand(expr.args[0])))
    rates = [_rate(term, x) for term in terms]
    known = [rate for rate in rates if rate is not None and rate.is_number]
    if not known or len(known) != len(rates):
        return expr
    top = max(known, key=lambda rate: rate.evalf())
    if not top.is_positive:
        return expr
    rest = sympy.Add(*[sympy.powsimp(sympy.expand(term * sympy.exp(-top * x))) for term in terms])
    return top * x + sympy.log(rest)


def _rate(term: Any, x: sympy.Symbol) -> Any:
    """``a`` for a term ``exp(a*x + c)`` times powers of x."""
    rate = sympy.S.Zero
    for factor in sympy.Mul.make_args(term):
        if isinstance(factor, sympy.exp):
            slope = sympy.diff(factor.args[0], x)
            if slope.has(x):
                return None
            rate += slope
    return rate


def majorant(p: Any, x: sympy.Symbol) -> Any | None:
    """An exponent that is at least ``p`` for large x, without the rough parts; None if none."""
    parts = []
    changed = False
    for part in sympy.Add.make_args(p):
        pair: Any = part.as_independent(x, as_Add=False)
        scale, core = pair
        if isinstance(core, sympy.floor | sympy.ceiling):
            parts.append(scale * core.args[0] + abs(scale))
        elif isinstance(core, sympy.sin | sympy.cos | sympy.frac):
            parts.append(abs(scale))
        elif isinstance(core, sympy.exp) and scale.is_negative and _rises(core.args[0], x):
            inner: Any = core.args[0]
            parts.append(scale * inner**2 / 2)
        else:
            parts.append(part)
            continue
        changed = True
    return sympy.Add(*parts) if changed else None


def _rises(g: Any, x: sympy.Symbol) -> bool:
    """Whether g is a polynomial with positive coefficients."""
    return bool(g.is_polynomial(x)) and all(c.is_nonnegative for c in sympy.Poly(g, x).all_coeffs())
