"""From an expression in n to one in the generators of a scale.

Every exp and log is resolved: what remains of them is taken of arguments that tend to a constant.
Piecewise functions are replaced by their branch for large n, which may depend on the parameters.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Callable, Mapping

import sympy
from sympy import S
from sympy.core.relational import Relational

from trf.series.asymptotics import Lead, Scale, exponent
from trf.series.germs import Germ
from trf.series.signs import Undecidable

_ONE_SIDED = (frozenset({0, 1}), frozenset({0, -1}))
_BRANCHING = (
    sympy.Min, sympy.Max, sympy.Abs, sympy.sign, sympy.Heaviside, sympy.Piecewise
)  # fmt: skip
_SEPARATE = 4  # so many growing terms of an exponent become generators of their own


class Rewriter:
    """Rewrites expressions in n in a scale; `handlers` adds functions
    to the built-in ones, `logarithms` rules for the logarithm of a positive function."""

    def __init__(
        self,
        scale: Scale,
        handlers: Mapping[type, Callable[..., sympy.Expr]],
        logarithms: Mapping[type, Callable[..., sympy.Expr]],
    ):
        self.scale = scale
        self.oracle = scale.oracle
        self.n = scale.meaning[scale.n]
        self.handlers = handlers
        self.logarithms = logarithms
        self._memo: dict[sympy.Basic, sympy.Expr] = {}

    def __call__(self, x: sympy.Expr) -> sympy.Expr:
        """`x`, an expression in n, in the generators of the scale."""
        if x == self.n:
            return self.scale.n
        if self.n not in x.free_symbols and not x.has(*_BRANCHING):
            self._require_real(x)
            return sympy.expand_log(x) if x.has(sympy.log) else x
        if x not in self._memo:
            self.oracle.budget.spend()
            self._memo[x] = self._rewrite(x)
        return self._memo[x]

    def _require_real(self, x: sympy.Expr) -> None:
        """That a constant has a real value in this case of the parameters."""
        unreal = x.has(S.ComplexInfinity, S.NaN, sympy.I) or (x.is_number and x.is_real is False)
        if unreal and x not in (S.Infinity, S.NegativeInfinity):
            raise Undecidable(f"{x} is not a real number")
        if not x.free_symbols:
            return
        for part in x.atoms(sympy.log, sympy.Pow):
            inner = part.args[0]
            negative = part.is_Pow and part.exp.is_negative
            if part.is_Pow and part.exp.is_integer and not negative:
                continue
            if not inner.free_symbols or self.oracle.signs(inner) == {1}:
                continue
            sign = self.oracle.sign(inner)
            whole = part.is_Pow and part.exp.is_integer
            if (sign < 0 and not whole) or (sign == 0 and (negative or not part.is_Pow)):
                raise Undecidable(f"{part} is not real, or not finite")

    def _rewrite(self, x: sympy.Expr) -> sympy.Expr:
        if isinstance(x, (sympy.Add, sympy.Mul)):
            return x.func(*(self(argument) for argument in x.args))
        if isinstance(x, sympy.exp):
            return self.exp(self(x.args[0]))
        if isinstance(x, sympy.Pow):
            return self._pow(x)
        if isinstance(x, sympy.log):
            return self._log_of(x.args[0])
        if isinstance(x, sympy.Abs):
            return self.absolute(self(x.args[0]))
        if isinstance(x, sympy.sign):
            return self._signum(self(x.args[0]))
        if isinstance(x, sympy.Heaviside):
            sign = self._signum(self(x.args[0]))
            if not sign.is_Integer:
                return (1 + sign) / 2
            return x.args[1] if sign == 0 else sympy.Integer((sign + 1) // 2)
        if isinstance(x, (sympy.Max, sympy.Min)):
            return self._extremum(x)
        if isinstance(x, sympy.Piecewise):
            return self._piecewise(x)
        handler = self.handlers.get(x.func)
        if handler is not None:
            return handler(self, x)
        raise Undecidable(f"the growth of {x.func.__name__} is not known: {x}")

    # -- signs ------------------------------------------------------------------------------

    def sign(self, x: sympy.Expr) -> int:
        """The sign of a rewritten expression for all large n."""
        if x in (S.Infinity, S.NegativeInfinity):
            return 1 if x is S.Infinity else -1
        return self.oracle.sign(self.scale.lead(x).coefficient)

    def limit(self, x: sympy.Expr) -> sympy.Expr:
        """The limit of a rewritten expression: a constant, oo or -oo."""
        lead = self.scale.lead(x, strict=False)
        growth = self.scale.growth(lead.monomial)
        if growth < 0 or lead.coefficient == 0:
            return S.Zero
        if growth == 0:
            return lead.coefficient
        lead = self.scale.lead(x)
        growth = self.scale.growth(lead.monomial)
        if growth <= 0:
            return lead.coefficient if growth == 0 else S.Zero
        return S.Infinity if self.oracle.sign(lead.coefficient) > 0 else S.NegativeInfinity

    def _is_positive(self, x: sympy.Expr) -> bool:
        settled, turning = self._turning_product(x)
        return self.sign(settled) > 0 and self.oracle.signs(turning) <= {0, 1}

    def turning(self, x: sympy.Expr) -> bool:
        """Whether x depends on bounded symbols only, beside the parameters."""
        return bool(x.free_symbols & set(self.oracle.ranges)) and self.scale.top(x) is None

    def _turning_product(self, x: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
        """x as (factors whose sign settles, a factor of bounded symbols)."""
        turning = [f for f in sympy.Mul.make_args(x) if self.turning(f)]
        settled = [f for f in sympy.Mul.make_args(x) if not self.turning(f)]
        return sympy.Mul(*settled), sympy.Mul(*turning)

    def absolute(self, x: sympy.Expr) -> sympy.Expr:
        """|x| for large n."""
        settled, turning = self._turning_product(x)
        if turning == 1:
            return -x if self.sign(x) < 0 else x
        if settled != 1:
            return self.absolute(settled) * self.absolute(turning)
        signs = self.oracle.signs(x)
        if signs <= {0, 1} or signs <= {0, -1}:
            return x if 1 in signs else -x
        return sympy.Abs(x)

    def _signum(self, x: sympy.Expr) -> sympy.Expr:
        settled, turning = self._turning_product(x)
        if turning == 1:
            return sympy.Integer(self.sign(x))
        signs = self.oracle.signs(turning)
        if len(signs) > 1 and isinstance(turning, sympy.Mul):
            odd = [f for f in turning.args if not (f.is_Pow and f.exp.is_even)]
            turning = sympy.Mul(*(f.base if f.is_Pow and f.exp.is_Integer else f for f in odd))
            sign = sympy.Mul(*(sympy.sign(f) for f in sympy.Mul.make_args(turning)))
            return sign if settled == 1 else sign * self.sign(settled)
        sign = sympy.sign(turning) if len(signs) > 1 else sympy.Integer(next(iter(signs)))
        return sign if settled == 1 else sign * self.sign(settled)

    def _extremum(self, x: sympy.Expr) -> sympy.Expr:
        wanted = 1 if isinstance(x, sympy.Max) else -1
        best = self(x.args[0])
        for argument in x.args[1:]:
            other = self(argument)
            settled, turning = self._turning_product(other - best)
            if turning == 1 or len(self.oracle.signs(turning)) == 1:
                if self.sign(other - best) == wanted:
                    best = other
            elif self.sign(settled) > 0:
                best = best + settled * x.func(turning, 0)
            else:
                best = best - settled * x.func(-turning, 0)
        return best

    def _piecewise(self, x: sympy.Piecewise) -> sympy.Expr:
        for place, (value, condition) in enumerate(x.args):  # type: ignore[misc]
            swing = self._swing(condition)
            if swing is not None:
                first, rest = self(value), self(x.func(*x.args[place + 1 :]))
                if first.has(S.Infinity, S.NegativeInfinity) or rest.has(
                    S.Infinity, S.NegativeInfinity
                ):
                    raise Undecidable(f"{condition} holds for some n and not for others")
                return rest + (first - rest) * (1 + swing) / 2
            if self.holds(condition):
                return self(value)
        raise Undecidable(f"{x} has no value for large n")

    def _swing(self, condition: sympy.Basic) -> sympy.Expr | None:
        """+1 where the condition holds and -1 where not, if that changes with n for ever."""
        if not isinstance(condition, Relational) or isinstance(condition, (sympy.Eq, sympy.Ne)):
            return None
        difference = self(condition.lhs) - self(condition.rhs)
        _, turning = self._turning_product(difference)
        if turning == 1:
            return None
        sign = self._signum(difference)
        above = isinstance(condition, (sympy.StrictGreaterThan, sympy.GreaterThan))
        return None if sign.is_Integer else (sign if above else -sign)

    def holds(self, condition: sympy.Basic) -> bool:
        """Whether a condition on n is true for all large n."""
        if condition in (S.true, S.false):
            return condition is S.true
        if isinstance(condition, sympy.And):
            return all(self.holds(part) for part in condition.args)
        if isinstance(condition, sympy.Or):
            return any(self.holds(part) for part in condition.args)
        if isinstance(condition, sympy.Not):
            return not self.holds(condition.args[0])
        if isinstance(condition, Relational):
            sign = self.sign(self(condition.lhs) - self(condition.rhs))
            return {
                sympy.StrictGreaterThan: sign > 0,
                sympy.GreaterThan: sign >= 0,
                sympy.StrictLessThan: sign < 0,
                sympy.LessThan: sign <= 0,
                sympy.Equality: sign == 0,
                sympy.Unequality: sign != 0,
            }[condition.func]
        raise Undecidable(f"the condition {condition} is not understood")

    def _log_of(self, x: sympy.Expr) -> sympy.Expr:
        """log x, where functions with a rule for their logarithm are never exponentiated."""
        if isinstance(x, sympy.Mul):
            direct = [f for f in x.args if _core(f).func in self.logarithms]
            rest = sympy.Mul(*(f for f in x.args if _core(f).func not in self.logarithms))
            if direct and (rest == 1 or self._is_positive(self(rest))):
                remaining = S.Zero if rest == 1 else self.log(self(rest))
                return sympy.Add(remaining, *(self._log_of(factor) for factor in direct))
        core = _core(x)
        rule = self.logarithms.get(core.func)
        if rule is not None and self.n in core.free_symbols:
            power = x.exp if core is not x else S.One
            return sympy.expand_mul(self(power) * rule(self, core), deep=False)
        return self.log(self(x))

    # -- exp, log, power --------------------------------------------------------------------

    def _pow(self, x: sympy.Pow) -> sympy.Expr:
        base, power = x.args
        if base == S.Exp1:
            return self.exp(self(power))
        if base == S.NegativeOne and isinstance(power, (sympy.floor, sympy.ceiling)):
            inner = power.args[0] if isinstance(power, sympy.floor) else -power.args[0]
            half = sympy.frac(inner / 2, evaluate=False)
            return 1 - 2 * sympy.floor(2 * self.scale.bounded(half, S.Zero, S.One))
        if self.n not in power.free_symbols:
            return self.power(self(base), self(power))
        if base.is_number and base.is_negative:
            raise Undecidable(f"the sign of {x} keeps changing with n")
        rewritten = self(base)
        if self.scale.top(rewritten) is None and self.oracle.sign(rewritten) == 0:
            if self.sign(self(power)) > 0:
                return S.Zero
            raise Undecidable(f"{x} is 0 to a power that is not positive")
        return self.exp(self(power) * self.log(rewritten))

    def power(self, base: sympy.Expr, p: sympy.Expr) -> sympy.Expr:
        """``base**p`` for a constant p, real for large n."""
        if p == 0:
            return S.One
        sine = self._sine_beside(base)
        if sine is not None and isinstance(p, sympy.Integer) and p > 0 and p % 2 == 0:
            return sympy.expand((1 - sine**2) ** (p // 2))
        if isinstance(base, sympy.Symbol) or p.is_integer:
            return base**p
        if self.turning(base) and self.oracle.signs(base) <= {0, 1}:
            return base**p
        if isinstance(base, sympy.Mul) and not _is_negated(base):
            return sympy.Mul(*(self.power(f, p) for f in self._positive_factors(base)))
        if isinstance(base, sympy.Pow) and base.exp.is_real:
            inner = base.base if self.sign(base.base) > 0 else self.absolute(base.base)
            return self.power(inner, exponent(base.exp * p))
        if isinstance(base, sympy.exp):
            return sympy.exp(sympy.expand_mul(p * base.args[0], deep=False))
        sign = self.sign(base)
        if sign < 0:
            raise Undecidable(f"{self.scale.show(base)} is negative for large n: p is not real")
        if sign == 0:
            if self.oracle.sign(p) > 0:
                return S.Zero
            raise Undecidable(f"{self.scale.show(base)}, which is 0, is raised to the power {p}")
        return base**p

    def _sine_beside(self, cosine: sympy.Expr) -> sympy.Symbol | None:
        """The symbol of sin(x), if `cosine` is the symbol of cos(x)."""
        meaning = self.scale.meaning.get(cosine)  # type: ignore[arg-type]
        if not isinstance(meaning, sympy.cos) or cosine not in self.oracle.ranges:
            return None
        wanted = sympy.sin(meaning.args[0], evaluate=False)
        return next((s for s, known in self.scale.meaning.items() if known == wanted), None)

    def _positive_factors(self, x: sympy.Mul) -> list[sympy.Expr]:
        factors = []
        negative = False
        for factor in x.args:
            if self.turning(factor) and (signs := self.oracle.signs(factor)) in _ONE_SIDED:
                sign = max(signs) + min(signs)
            else:
                sign = self.sign(factor)
            if sign == 0:
                return [S.Zero]
            factors.append(factor if sign > 0 else -factor)
            negative ^= sign < 0
        if negative:
            raise Undecidable(f"{self.scale.show(x)} is negative for large n: p(n) is not real")
        return factors

    def log(self, x: sympy.Expr) -> sympy.Expr:
        """log x for a rewritten x that is positive for large n."""
        scale = self.scale
        if isinstance(x, sympy.Mul) and not _is_negated(x):
            return sympy.Add(*(self.log(factor) for factor in self._positive_factors(x)))
        if x in scale.generators:
            return scale.log_of(x)  # type: ignore[arg-type]
        if isinstance(x, sympy.exp):
            return x.args[0]
        if isinstance(x, sympy.Pow) and x.exp.is_real:
            return sympy.expand_mul(x.exp * self.log(self.absolute(x.base)), deep=False)
        if x in (S.Infinity, S.Zero):
            return S.Infinity if x is S.Infinity else S.NegativeInfinity
        if scale.top(x) is None:
            if self.turning(x) and self.oracle.signs(x) <= {0, 1}:
                return sympy.log(x)
            sign = self.oracle.sign(x)
            if sign == 0:
                return S.NegativeInfinity
            if sign < 0:
                raise Undecidable(f"the logarithm of {scale.show(x)} < 0 is not real")
            return sympy.expand_log(sympy.log(x))
        lead = scale.lead(x)
        if lead.coefficient == 0:
            return S.NegativeInfinity
        if self.oracle.sign(lead.coefficient) < 0:
            raise Undecidable(f"{scale.show(x)} is negative for large n: its log is not real")
        logarithm = sympy.expand_log(sympy.log(lead.coefficient))
        for generator, power in lead.monomial.items():
            logarithm += sympy.expand_mul(power * scale.log_of(generator), deep=False)
        monomial = lead.coefficient * scale.value(lead.monomial)
        unit = sympy.expand_mul(x / monomial, deep=False)
        return logarithm + (S.Zero if unit == 1 else sympy.log(unit))

    def exp(self, x: sympy.Expr) -> sympy.Expr:
        """exp x for a rewritten x; what grows becomes a power of a generator."""
        scale = self.scale
        factor: sympy.Expr = S.One
        for attempt in range(3 * _SEPARATE):
            if x in (S.Infinity, S.NegativeInfinity):
                return S.Infinity if x is S.Infinity else S.Zero
            if scale.top(x) is None:
                return factor * sympy.exp(x)
            lead = scale.lead(x, strict=False)
            growth = scale.growth(lead.monomial)
            turning = bool(lead.coefficient.free_symbols & set(self.oracle.ranges))
            if turning and growth <= 0:
                return factor * sympy.exp(x)
            if turning and len(self.oracle.signs(lead.coefficient)) > 1:
                raise Undecidable(f"exp({scale.show(x)}) oscillates without bound")
            if growth < 0 or lead.coefficient == 0:
                return factor * sympy.exp(x)
            if growth == 0:
                rest = x - lead.coefficient
                return factor * sympy.exp(lead.coefficient) * sympy.exp(rest)
            generator, power = self._generator(x, lead, attempt)
            factor *= generator**power
            x = sympy.expand_mul(x, deep=False) - sympy.expand_mul(
                power * scale.logs[generator], deep=False
            )
        raise Undecidable(f"the exponent {scale.show(x)} has too many growing terms")

    def _generator(
        self, x: sympy.Expr, lead: Lead, attempt: int
    ) -> tuple[sympy.Symbol, sympy.Expr]:
        """A generator g and a constant c such that x - c log g is smaller than x."""
        scale = self.scale
        for generator in list(scale.generators):
            if generator not in scale.logs:
                continue
            known = scale.lead(scale.logs[generator])
            if _same(known.monomial, lead.monomial):
                return generator, exponent(lead.coefficient / known.coefficient)
        growing = scale.value(lead.monomial) if attempt < _SEPARATE else x
        generator = scale._exp_generator(growing)
        known = scale.lead(scale.logs[generator])
        return generator, exponent(lead.coefficient / known.coefficient)

    def split(self, x: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr, sympy.Expr]:
        """x as (what grows, a constant, what tends to 0)."""
        growing, constant, small = S.Zero, S.Zero, S.Zero
        for term in sympy.Add.make_args(sympy.expand_mul(x)):
            lead = self.scale.lead(term, strict=False)
            growth = self.scale.growth(lead.monomial)
            if growth > 0:
                growing += term
            elif growth < 0 or lead.coefficient == 0:
                small += term
            else:
                constant += lead.coefficient
                small += term - lead.coefficient
        return growing, constant, small

    def germ(self, kind: str, x: sympy.Expr, *data: sympy.Basic) -> sympy.Expr:
        """The germ `kind` at a rewritten infinitesimal."""
        return Germ.of(kind, x, *data)

    def analytic(self, function: sympy.Lambda, x: sympy.Expr) -> sympy.Expr:
        """f(x) for a rewritten x that tends to a constant at which f is analytic."""
        point = self.limit(x)
        rest = sympy.expand_mul(x - point, deep=False)
        if rest == 0:
            return function(point)
        return Germ.of("taylor", rest, function, point)


def _same(first, second) -> bool:
    keys = {*first, *second}
    return all(exponent(first.get(key, S.Zero) - second.get(key, S.Zero)) == 0 for key in keys)


def _is_negated(x: sympy.Mul) -> bool:
    return len(x.args) == 2 and x.args[0] == -1


def _core(x: sympy.Expr) -> sympy.Expr:
    return x.base if isinstance(x, sympy.Pow) else x
