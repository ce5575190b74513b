"""Growth of log-exp expressions: multiseries over an asymptotic scale, with parameters.

A *scale* is a list of generators b_1 < b_2 < ... < b_k, each positive and tending to infinity,
with log b_i = o(log b_{i+1}): iterated logarithms of n, n itself, and exponentials of what grows.
`Scale.rewrite` writes an expression in the generators so that every remaining exp, log or power
is taken of something that tends to a constant; `Scale.series` expands that in the largest
generator, with coefficients that are *exact* expressions in the smaller ones, and `Scale.lead`
follows the leading coefficients down to a constant. Coefficients and exponents may contain the
parameters; what depends on them is asked of the `Oracle`, which splits the cases.

Because the generators are asymptotically independent, an expression in them is zero for all
large n only if its multiseries is zero; a cancellation that goes on is settled by a proof or
reported, never assumed.

References: D. Gruntz, On computing limits in a symbolic manipulation system (ETH 1996);
D. Richardson, B. Salvy, J. Shackell, J. van der Hoeven, Asymptotic expansions of exp-log
functions (ISSAC 1996), whose notion of an asymptotic scale is used here.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sympy
from sympy import S

from trf.series.constants import NoBall, enclose, precision
from trf.series.germs import Germ
from trf.series.signs import Interval, Oracle, Undecidable

_ORDERS = (1, 2, 3, 5, 8, 12)
_PATIENT = 5  # from this order on, an undecided comparison with the remainder splits the cases
_MAX_TERMS = 400
Monomial = Mapping[sympy.Symbol, sympy.Expr]


@dataclass(frozen=True)
class Series:
    """``sum terms[e] g^e`` plus a remainder that is O(g^e) for the e in `errors`."""

    terms: Mapping[sympy.Expr, sympy.Expr]
    errors: tuple[sympy.Expr, ...] = ()


@dataclass(frozen=True)
class Lead:
    """The leading term: ``coefficient * prod g^monomial[g]``; zero if the coefficient is 0."""

    coefficient: sympy.Expr
    monomial: Monomial = field(default_factory=dict)


def exponent(e: sympy.Expr) -> sympy.Expr:
    """The canonical form of an exponent, so that equal ones meet in a dictionary."""
    return e if e.is_Rational or e.is_Symbol else sympy.expand(e)


class Scale:
    """An asymptotic scale that grows while expressions are rewritten in it."""

    def __init__(self, oracle: Oracle):
        self.oracle = oracle
        self.n = sympy.Symbol("<n>", positive=True)
        self.generators: list[sympy.Symbol] = [self.n]
        self.logs: dict[sympy.Symbol, sympy.Expr] = {}
        self.meaning: dict[sympy.Symbol, sympy.Expr] = {
            self.n: sympy.Symbol("n", integer=True, nonnegative=True)
        }
        self._series: dict[tuple, Series] = {}
        self._leads: dict[tuple, Lead] = {}

    # -- generators -------------------------------------------------------------------------

    def log_of(self, generator: sympy.Symbol) -> sympy.Expr:
        """The logarithm of a generator, in the smaller generators."""
        if generator not in self.logs:
            meaning = sympy.log(self.meaning[generator])
            smaller = sympy.Symbol(f"<{meaning}>", positive=True)
            self.meaning[smaller] = meaning
            self.generators.insert(0, smaller)
            self.logs[generator] = smaller
        return self.logs[generator]

    def iterated_log(self, depth: int) -> sympy.Symbol:
        """``log log ... log n``, `depth` logarithms."""
        generator: sympy.Expr = self.n
        for _ in range(depth):
            generator = self.log_of(generator)  # type: ignore[arg-type]
        return generator  # type: ignore[return-value]

    def bounded(self, meaning: sympy.Expr, low: sympy.Expr, high: sympy.Expr) -> sympy.Symbol:
        """A symbol for a bounded function of n whose values lie in [low, high]."""
        for symbol, known in self.meaning.items():
            if known == meaning and symbol in self.oracle.ranges:
                return symbol
        symbol = sympy.Symbol(f"<{meaning}>", real=True)
        self.meaning[symbol] = meaning
        self.oracle.ranges[symbol] = Interval(low, high)
        return symbol

    def show(self, x: sympy.Expr) -> sympy.Expr:
        """`x` with the generators written as functions of n."""
        return x.xreplace(self.meaning)

    def _exp_generator(self, growing: sympy.Expr) -> sympy.Symbol:
        """The generator exp(growing), put in its place in the scale."""
        meaning = sympy.exp(self.show(growing))
        generator = sympy.Symbol(f"<{meaning}>", positive=True)
        self.meaning[generator] = meaning
        monomial = self.lead(growing).monomial
        place = 0
        while place < len(self.generators):
            other = self.generators[place]
            if self.growth(_ratio(monomial, self.lead(self.log_of(other)).monomial)) < 0:
                break
            place = self.generators.index(other) + 1
        self.generators.insert(place, generator)
        self.logs[generator] = growing
        return generator

    def top(self, x: sympy.Expr) -> sympy.Symbol | None:
        """The largest generator in `x`."""
        free = x.free_symbols
        for generator in reversed(self.generators):
            if generator in free:
                return generator
        return None

    def growth(self, monomial: Monomial) -> int:
        """1 if the monomial tends to infinity, -1 if to 0, 0 if it is 1."""
        for generator in reversed(self.generators):
            power = monomial.get(generator)
            if power is not None and (sign := self.oracle.sign(power)) != 0:
                return sign
        return 0

    def value(self, monomial: Monomial) -> sympy.Expr:
        """The monomial as an expression."""
        return sympy.Mul(*(generator**power for generator, power in monomial.items()))

    # -- leading terms ----------------------------------------------------------------------

    def lead(self, x: sympy.Expr, strict: bool = True) -> Lead:
        """The leading term of a rewritten expression.

        With ``strict=False`` the coefficient may vanish at special values of the parameters, and
        x is then smaller than the monomial says; where cancellation goes on for ever, a zero
        coefficient then means no more than that x tends to 0.
        """
        key = (x, strict, len(self.generators))
        if key not in self._leads:
            self._leads[key] = self._lead(x, strict)
        return self._leads[key]

    def _lead(self, x: sympy.Expr, strict: bool) -> Lead:
        generator = self.top(x)
        if generator is None:
            if self._vanishes(x, strict):
                return Lead(S.Zero)
            return Lead(x)
        leading = self._leading(x, generator, strict)
        if leading is None:
            return Lead(S.Zero)
        power, _, lead, _ = leading
        return Lead(lead.coefficient, {**lead.monomial, generator: power})

    def _vanishes(self, constant: sympy.Expr, strict: bool) -> bool:
        if constant.is_Rational:
            return constant == 0
        if strict and not constant.free_symbols & set(self.oracle.ranges):
            return self.oracle.sign(constant) == 0
        return self.oracle.signs(constant) == {0}

    def _leading(
        self, x: sympy.Expr, generator: sympy.Symbol, strict: bool = True
    ) -> tuple[sympy.Expr, sympy.Expr, Lead, Series] | None:
        """Exponent, coefficient, the coefficient's own lead, and the series it was read from."""
        series = Series({})
        for order in _ORDERS:
            series = self.series(x, generator, order)
            terms = dict(series.terms)
            while terms:
                power = self._largest(terms, series.errors, order >= _PATIENT)
                if power is None:
                    break
                lead = self.lead(terms[power], strict)
                if lead.coefficient != 0:
                    return power, terms[power], lead, Series(terms, series.errors)
                del terms[power]
            if not terms and not series.errors:
                return None
        if (
            not strict
            and series.errors
            and all(self.oracle.signs(e) == {-1} for e in series.errors)
        ):
            return None
        if self._is_zero(x):
            return None
        raise Undecidable(f"the leading terms of {self.show(x)} cancel beyond order {_ORDERS[-1]}")

    def _largest(
        self, terms: dict[sympy.Expr, sympy.Expr], errors: tuple[sympy.Expr, ...], patient: bool
    ) -> sympy.Expr | None:
        """The largest exponent, or None if the remainder may be as large."""
        powers = self._maximal(list(terms))
        best = powers[0]
        for power in powers[1:]:
            sign = self.oracle.sign(power - best)
            if sign == 0:
                terms[best] += terms.pop(power)
            elif sign > 0:
                best = power
        for error in errors:
            signs = self.oracle.signs(best - error)
            if signs == {1}:
                continue
            if not (patient and 1 in signs) or self.oracle.sign(best - error) <= 0:
                return None
        return best

    def _maximal(self, powers: list[sympy.Expr]) -> list[sympy.Expr]:
        """The exponents that no other one certainly exceeds."""
        if all(power.is_Rational for power in powers):
            return [max(powers)]
        kept: list[sympy.Expr] = []
        for power in powers:
            if any(self.oracle.signs(other - power) <= {0, 1} for other in kept):
                continue
            kept = [other for other in kept if not self.oracle.signs(power - other) <= {0, 1}]
            kept.append(power)
        return kept

    def _is_zero(self, x: sympy.Expr) -> bool:
        """Whether x is the zero function, by evaluation at a point or by simplification.

        Raises:
            Undecidable: if neither proves it.
        """
        values = {}
        size = flint_start = 1_000_003
        for symbol in self.generators:
            values[symbol] = enclose(sympy.Integer(size))
            size *= flint_start + 2
        for number, symbol in enumerate(sorted(x.free_symbols - set(values), key=str)):
            values[symbol] = enclose(sympy.Rational(7 * number + 5, 2 * number + 3))
        with precision(2048):
            try:
                ball = enclose(x, values)
            except NoBall:
                ball = None
        if ball is not None and (ball > 0 or ball < 0):
            return False
        if sympy.simplify(x) == 0:
            return True
        raise Undecidable(f"no proof settles whether {self.show(x)} is identically 0")

    # -- series -----------------------------------------------------------------------------

    def series(self, x: sympy.Expr, g: sympy.Symbol, order: int) -> Series:
        """The expansion of `x` in the generator `g`, about `order` steps deep."""
        if g not in x.free_symbols:
            return Series({S.Zero: x})
        key = (x, g, order)
        if key not in self._series:
            self.oracle.budget.spend()
            self._series[key] = self._expand(x, g, order)
        return self._series[key]

    def _expand(self, x: sympy.Expr, g: sympy.Symbol, order: int) -> Series:
        if x == g:
            return Series({S.One: S.One})
        if isinstance(x, sympy.Add):
            total = Series({})
            constant, dependent = x.as_independent(g, as_Add=True)
            for term in sympy.Add.make_args(dependent):
                total = self._sum(total, self.series(term, g, order), order)
            if constant != 0:
                total = self._sum(total, Series({S.Zero: constant}), order)
            return total
        if isinstance(x, sympy.Mul):
            constant, dependent = x.as_independent(g, as_Add=False)
            product = Series({S.Zero: constant})
            for factor in sympy.Mul.make_args(dependent):
                product = self._product(product, self.series(factor, g, order), order)
            return product
        if isinstance(x, sympy.Pow) and x.base != S.Exp1:
            return self._power(x.base, x.exp, g, order)
        if isinstance(x, (sympy.exp, sympy.log, Germ)):
            return self._compose(x, g, order)
        raise Undecidable(f"no expansion of {self.show(x)} is known")

    def _trim(
        self, terms: dict[sympy.Expr, sympy.Expr], errors: list[sympy.Expr], order: int
    ) -> Series:
        errors = self._maximal(errors) if errors else []
        if errors:
            terms = {
                power: c
                for power, c in terms.items()
                if not any(self.oracle.signs(error - power) <= {0, 1} for error in errors)
            }
        room = 8 + 4 * order
        if len(terms) > room and all(power.is_Rational for power in terms):
            powers = sorted(terms, reverse=True)
            terms = {power: terms[power] for power in powers[:room]}
            errors = self._maximal([*errors, powers[room]])
        if len(terms) > _MAX_TERMS:
            raise Undecidable("the expansion has too many terms")
        return Series(terms, tuple(errors))

    def _sum(self, a: Series, b: Series, order: int) -> Series:
        terms = dict(a.terms)
        for power, coefficient in b.terms.items():
            _accumulate(terms, power, coefficient)
        return self._trim(terms, [*a.errors, *b.errors], order)

    def _product(self, a: Series, b: Series, order: int) -> Series:
        terms: dict[sympy.Expr, sympy.Expr] = {}
        for p, c in a.terms.items():
            for q, d in b.terms.items():
                _accumulate(terms, exponent(p + q), c * d)
        errors: list[sympy.Expr] = []
        if a.errors:
            tops = self._maximal([*b.terms, *b.errors])
            errors += [exponent(error + top) for error in a.errors for top in tops]
        if b.errors and a.terms:
            tops = self._maximal(list(a.terms))
            errors += [exponent(error + top) for error in b.errors for top in tops]
        return self._trim(terms, errors, order)

    def _power(self, base: sympy.Expr, p: sympy.Expr, g: sympy.Symbol, order: int) -> Series:
        if base == g:
            return Series({p: S.One})
        if isinstance(p, sympy.Integer) and 0 < p <= 4:
            factor = product = self.series(base, g, order)
            for _ in range(int(p) - 1):
                product = self._product(product, factor, order)
            return product
        leading = self._leading(base, g)
        if leading is None:
            raise Undecidable(f"{self.show(base)}, which is 0, is raised to the power {p}")
        power, coefficient, lead, _ = leading
        self._require_power(lead.coefficient, p, base)
        series = self.series(base, g, order)
        terms = {exponent(e - power): c / coefficient for e, c in series.terms.items()}
        terms.pop(S.Zero, None)
        rest = self._trim(terms, [exponent(e - power) for e in series.errors], order)

        def binomial(j: int) -> sympy.Expr:
            return sympy.Mul(*((p - i) for i in range(j))) / sympy.factorial(j)

        expanded = self._taylor(rest, binomial, order)
        scaled = coefficient**p
        shift = exponent(power * p)
        return Series(
            {exponent(e + shift): scaled * c for e, c in expanded.terms.items()},
            tuple(exponent(e + shift) for e in expanded.errors),
        )

    def _require_power(self, base: sympy.Expr, p: sympy.Expr, shown: sympy.Expr) -> None:
        if not p.is_integer and self.oracle.sign(base) < 0:
            raise Undecidable(f"{self.show(shown)} is negative for large n: p(n) is not real")

    def _compose(self, x: sympy.Expr, g: sympy.Symbol, order: int) -> Series:
        argument = x.args[2] if isinstance(x, Germ) else x.args[0]
        series = self.series(argument, g, order)
        terms = dict(series.terms)
        centre = terms.pop(S.Zero, S.Zero)
        for power in list(terms):
            if self.oracle.sign(power) > 0:
                if self.lead(terms[power]).coefficient == 0:
                    del terms[power]
                    continue
                raise Undecidable(f"{self.show(argument)} does not tend to a constant")
        if isinstance(x, sympy.log):
            terms = {e: c / centre for e, c in terms.items()}
            head = S.Zero if centre == 1 else sympy.log(centre)

            def coefficient(j: int) -> sympy.Expr:
                return head if j == 0 else S.NegativeOne ** (j + 1) / j

        elif isinstance(x, sympy.exp):
            factor = sympy.exp(centre)

            def coefficient(j: int) -> sympy.Expr:
                return factor / sympy.factorial(j)

        else:

            def coefficient(j: int) -> sympy.Expr:
                return x.taylor(centre, j)

        return self._taylor(Series(terms, series.errors), coefficient, order)

    def _taylor(self, rest: Series, coefficient, order: int) -> Series:
        """``sum_j coefficient(j) rest^j`` for an infinitesimal `rest`."""
        total = Series({S.Zero: coefficient(0)} if coefficient(0) != 0 else {})
        if not rest.terms and not rest.errors:
            return total
        power = Series({S.Zero: S.One})
        tops = self._maximal([*rest.terms, *rest.errors])
        remainder = [exponent((order + 1) * top) for top in tops]
        for j in range(1, order + 1):
            power = self._product(power, rest, order)
            c = coefficient(j)
            scaled = {e: c * d for e, d in power.terms.items()} if c != 0 else {}
            total = self._sum(total, self._trim(scaled, [*power.errors, *remainder], order), order)
        return total


def _accumulate(
    terms: dict[sympy.Expr, sympy.Expr], power: sympy.Expr, coefficient: sympy.Expr
) -> None:
    known = terms.get(power)
    if known is None:
        terms[power] = coefficient
        return
    both = known + coefficient
    if isinstance(both, sympy.Add) and not both.is_number:
        both = sympy.expand_mul(both)
    if both == 0:
        del terms[power]
    else:
        terms[power] = both


def _ratio(first: Monomial, second: Monomial) -> Monomial:
    quotient = dict(first)
    for generator, power in second.items():
        quotient[generator] = exponent(quotient.get(generator, S.Zero) - power)
    return {generator: power for generator, power in quotient.items() if power != 0}
