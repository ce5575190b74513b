"""From a symbolic bias p(n) to numbers: one row of p(0) ... p(N-1) for each head.

Nothing here knows a formula. The expression of the encoding is compiled to torch by sympy, its
constants and the heads' parameters become float64 tensors, and the result is cast at the end, so
what the theory proves is what the decoder adds to its attention logits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy
import torch
from sympy.concrete.expr_with_limits import ExprWithLimits
from torch import Tensor, nn

from trf.encodings import Encoding
from trf.errors import ParameterError
from trf.expression import distance

MAX_TERMS = 10_000  # of a sum that is written out


def compile_expression(expr: sympy.Expr, names: tuple[sympy.Symbol, ...]) -> Callable[..., Tensor]:
    """The function of float64 tensors that evaluates `expr` at values of the symbols `names`.

    Every constant in the expression (2, log(2), -oo) is evaluated by sympy and enters as a
    float64 tensor: torch's functions refuse plain numbers, and float32 would creep in otherwise.

    Raises:
        ParameterError: the expression uses a function that torch lacks.

    Example:
        >>> import sympy, torch
        >>> n = sympy.Symbol("n")
        >>> f = compile_expression(-sympy.log(2) * n, (n,))
        >>> round(f(torch.tensor(1.0, dtype=torch.float64)).item(), 6)
        -0.693147
    """
    constants: dict[sympy.Dummy, float] = {}

    def hoist(node: Any) -> Any:
        if isinstance(node, sympy.Expr) and not node.free_symbols:
            symbol = sympy.Dummy()
            constants[symbol] = float(node.evalf(30))
            return symbol
        return node.func(*map(hoist, node.args)) if node.args else node

    try:
        for node in expr.atoms(ExprWithLimits):
            _check_range(node)
        expr = expr.doit()  # a Sum with a fixed range becomes its terms
        if expr.has(ExprWithLimits):
            raise NotImplementedError("a sum or integral without a fixed range")
        hoisted = hoist(expr)
        function = sympy.lambdify([*names, *constants], hoisted, modules="torch", dummify=True)
    except NotImplementedError as error:
        reason = str(error).splitlines()[0]
        raise ParameterError(
            f"p(n) = {expr} can't be evaluated in torch ({reason}); write it with functions "
            "that torch has (log, exp, sqrt, cos, ...)"
        ) from error

    def evaluate(*values: Tensor) -> Tensor:
        like = values[0]
        numbers = [like.new_tensor(c, dtype=torch.float64) for c in constants.values()]
        return function(*(v.double() for v in values), *numbers)

    return evaluate


def _check_range(node: Any) -> None:
    """Refuse a sum whose terms can't be written out one by one."""
    terms = sympy.Integer(1)
    for _, low, high in node.limits:
        terms *= high - low + 1
    if not terms.is_Integer or terms > MAX_TERMS:
        raise NotImplementedError(f"a sum or integral without a fixed range of {MAX_TERMS} terms")


class AdditiveBias(nn.Module):
    """The bias p(n) of every head, derived from the encoding's symbolic expression.

        forward(N)[h, n] = p(n; parameters of head h),   0 <= n < N

    Fixed parameters (the slopes of ALiBi) come from `encoding.head_values`; learnable ones
    (KERPLE) are `nn.Parameter`s of shape (H,), drawn from U(low, high) and shared by all layers.
    They stay in their domain whatever an optimiser does: every use first projects them onto it
    (`clamp_`), as the KERPLE authors' code does.

    Args:
        encoding: an encoding with a bias (additive, none or window).
        n_head: number of heads H.

    Raises:
        ParameterError: a parameter of the bias has neither a value a head nor an initial value.

    Reference: ALiBi, arXiv 2108.12409; KERPLE, arXiv 2205.09921, section 4.

    Example:
        >>> import trf.encodings
        >>> AdditiveBias(trf.encodings.get("alibi"), n_head=2)(17)[:, 16]  # slopes 1/16, 1/256
        tensor([-1.0000, -0.0625])
    """

    def __init__(self, encoding: Encoding, n_head: int):
        super().__init__()
        if encoding.bias is None:
            raise ParameterError(f"the encoding {encoding.name!r} has no additive bias p(n)")
        self.encoding = encoding
        self.n_head = n_head
        self.formula = encoding.bias.expr
        symbols = encoding.bias.parameters
        self.names = tuple(symbol.name for symbol in symbols)
        self._evaluate = compile_expression(self.formula, (distance(), *symbols))
        self._cached: Tensor | None = None

        self.ranges = {r.name: r for r in encoding.learnable if r.name in self.names}
        heads = encoding.head_values(n_head)
        missing = {
            name
            for name in self.names
            if name not in self.ranges
            for head in heads
            if name not in head
        }
        if missing:
            raise ParameterError(
                f"the bias of {encoding.name!r} has no value for {', '.join(sorted(missing))}; "
                "give it a value a head or make it learnable"
            )
        self.fixed = {
            name: [float(head[name]) for head in heads]
            for name in self.names
            if name not in self.ranges
        }
        self.learnable = nn.ParameterDict(
            {
                name: nn.Parameter(torch.empty(n_head).uniform_(float(r.low), float(r.high)))
                for name, r in self.ranges.items()
            }
        )
        self.clamp_()

    def forward(self, length: int) -> Tensor:
        """p(n) for n = 0 ... length-1, (H, length), float32, on the CPU.

        `-inf` (weight 0) is allowed beyond n = 0.

        Raises:
            ParameterError: p is infinite at n = 0, or undefined or +inf anywhere.
        """
        cached = self._cached
        if cached is not None and cached.shape[1] >= length:
            return cached[:, :length]
        self.clamp_()
        n = torch.arange(length, dtype=torch.float64)
        columns = [
            self.learnable[name].cpu().unsqueeze(1)
            if name in self.ranges
            else n.new_tensor(self.fixed[name]).unsqueeze(1)
            for name in self.names
        ]  # (H, 1) each
        bias = self._evaluate(n, *columns).broadcast_to(self.n_head, length)
        self._check(bias.detach())
        bias = bias.to(torch.float32)
        if not self.ranges:
            with torch.inference_mode(False):
                self._cached = bias.clone()  # one that later calls may differentiate past
        return bias  # (H, N)

    @torch.no_grad()
    def clamp_(self) -> None:
        """Put every learnable parameter back into [minimum, maximum], in place.

        One that is there already is not touched, so that graphs which hold it stay valid.
        """
        for name, r in self.ranges.items():
            value = self.learnable[name]
            inside = value.clamp(
                -torch.inf if r.minimum is None else float(r.minimum),
                torch.inf if r.maximum is None else float(r.maximum),
            )
            if not torch.equal(value, inside):
                value.copy_(inside)

    def values(self) -> list[dict[str, float]]:
        """The parameters of every head as they stand, fixed and learned, for the theory side."""
        self.clamp_()
        rows = {**self.fixed, **{name: p.tolist() for name, p in self.learnable.items()}}
        return [{name: rows[name][head] for name in self.names} for head in range(self.n_head)]

    def _check(self, bias: Tensor) -> None:
        name = f"the bias of {self.encoding.name!r}, p(n) = {self.formula},"
        if not bool(torch.isfinite(bias[:, 0]).all()):
            raise ParameterError(
                f"{name} is {bias[:, 0].tolist()[0]} at n = 0, the token itself: a decoder needs "
                "it finite; shift the distance, for example log(1 + n) for log(n)"
            )
        bad = torch.isnan(bias) | (bias == torch.inf)
        if bool(bad.any()):
            head, n = (int(i) for i in bad.nonzero()[0])
            raise ParameterError(f"{name} is {bias[head, n].item()} at n = {n}, head {head + 1}")
