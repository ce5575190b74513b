"""The biases of Qin, Zhong and Deng (arXiv 2307.10156), in the form of their code.

Each is a function of y = k n with k the ALiBi slope of the head, so that heads differ in scale.
The paper's form of a series, without k, stands beside its code form where the two differ.
"""

from __future__ import annotations

from trf.encodings.alibi import slopes
from trf.encodings.base import Encoding, Kind

_SOURCE = "Qin, Zhong, Deng, arXiv 2307.10156"


def _scaled(name: str, title: str, formula: str, *aliases: str) -> Encoding:
    return Encoding(
        name=name,
        title=title,
        kind=Kind.ADDITIVE,
        formula=formula,
        fixed={"k": slopes},
        reference=f"{_SOURCE}, authors' code; k is the head's ALiBi slope",
        aliases=aliases,
    )


def _paper(name: str, title: str, formula: str) -> Encoding:
    return Encoding(
        name=name,
        title=f"{title} (paper's form)",
        kind=Kind.ADDITIVE,
        formula=formula,
        reference=f"{_SOURCE}, section on the choice of series",
        note="infinite at the token itself, so for theory only",
    )


TYPE1 = _scaled("type1", "Type 1 (1/n²)", "-log(1+(k*n)**2)", "1/n^2", "type-1")
TYPE2 = _scaled("type2", "Type 2 (exp(-ln² n))", "-log(3+k*n)**2", "exp(-ln^2 n)", "type-2")
INVERSE = _scaled("inverse-n", "1/n", "-log(1+k*n)", "1/n")
INVERSE_LOG = _scaled(
    "inverse-n-log-n", "1/(n ln n)", "-(log(3+k*n)+log(log(3+k*n)))", "1/(n ln n)"
)
GAUSSIAN = _scaled("gaussian", "exp(-y²)", "-(k*n)**2")
ROOT = _scaled("root", "exp(-√y)", "-sqrt(k*n)")
POWER_125 = _scaled("power-1.25", "exp(-y^1.25)", "-(k*n)**(5/4)")
POWER_075 = _scaled("power-0.75", "exp(-y^0.75/2)", "-(k*n)**(3/4)/2")
POWER_4 = _scaled("power-4", "exp(-y⁴)", "-(k*n)**4")
LOG_OVER_SQUARE = _scaled("log-over-square", "(1+ln(1+y))/(1+y)²", "log(1+log(1+k*n))-2*log(1+k*n)")

TYPE1_PAPER = _paper("type1-paper", "Type 1 (1/n²)", "-2*log(n)")
TYPE2_PAPER = _paper("type2-paper", "Type 2 (exp(-ln² n))", "-log(n)**2")
INVERSE_PAPER = _paper("inverse-n-paper", "1/n", "-log(n)")
INVERSE_LOG_PAPER = _paper("inverse-n-log-n-paper", "1/(n ln n)", "-log(n)-log(log(n))")
