"""Biases that the tokens decide, and Swin's: for theory only."""

from __future__ import annotations

from trf.encodings.base import Encoding, Kind, StandIn

FORGETTING = Encoding(
    name="forgetting",
    title="Forgetting Transformer",
    kind=Kind.DATA_DEPENDENT,
    formula=None,
    score="q.k/sqrt(d) + sum_{l=j+1}^{i} log(sigmoid(g_l)), g_l a function of token l",
    reference="Lin et al., arXiv 2503.02130",
    aliases=("fox",),
    note="its bias is a sum of logarithms of gates that the tokens decide",
    stand_in=StandIn(
        "n*log(f)",
        "its gates depend on the tokens, so there is no p(n). A constant gate f is ALiBi with "
        "slope -ln f, and gates that never exceed some f < 1 are dominated by it, so these "
        "converge. Not decided are gates that come arbitrarily close to 1: the sum of -ln f_l may "
        "then stay bounded, and the series of such a text diverges",
        decides=False,
    ),
)

DAPE = Encoding(
    name="dape",
    title="DAPE",
    kind=Kind.DATA_DEPENDENT,
    formula=None,
    score="s + b(n) + MLP(s, b(n)) over the heads, s = q.k/sqrt(d)",
    reference="Zheng et al., arXiv 2405.14722; b(n) is KERPLE-log here",
    note="a perceptron corrects its bias by the scores of the tokens",
    stand_in=StandIn(
        "-r1*log(1+r2*n)",
        "its correction depends on the scores, so there is no p(n). While the correction stays "
        "within some C, every weight keeps within exp(-C) and exp(C) of the plain bias, so the "
        "series converges exactly when that of b(n) does, here KERPLE-log. Not decided is an "
        "unbounded correction: the perceptron sees b(n), which tends to -oo, and may undo it",
        decides=False,
    ),
)

SWIN = Encoding(
    name="swin",
    title="Swin log-CPB",
    kind=Kind.TABLE,
    formula=None,
    score="cos(q, k)/tau + 16*sigmoid(MLP(sign(n)*log(1+|n|)))",
    reference="Liu et al., arXiv 2111.09883, log-spaced continuous position bias; 16*sigmoid as in "
    "the authors' code",
    aliases=("log-cpb",),
    note="a bias between 0 and 16 that a perceptron computes; made for images, two-sided",
    stand_in=StandIn("0", "its bias lies between 0 and 16, so no weight is less than 1"),
)
