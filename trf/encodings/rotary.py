"""Encodings that turn or scale queries and keys: RoPE, xPos, ReRoPE; and decay as a weight.

`theta_i = base^(-2i/d)` are the angles of the d/2 pairs of a head of width d.
"""

from __future__ import annotations

from trf.encodings.base import Encoding, Kind, StandIn

_BOUNDED = StandIn(
    "-U",
    "with queries and keys bounded, |q.k|/sqrt(d) <= U, a rotation keeps every logit above -U, so "
    "no weight is less than exp(-U)",
)
_FADING = StandIn(
    "-U/(1+s)**n",
    "with |q.k|/sqrt(d) <= U the factor xi^n, xi = 1/(1+s) < 1 the largest of the pairs', drives "
    "the logit to 0 and not to -oo, so no weight is less than exp(-U*xi^n), which tends to 1; "
    "hence its blockwise causal attention",
)

ROPE = Encoding(
    name="rope",
    title="RoPE",
    kind=Kind.MULTIPLICATIVE,
    formula=None,
    score="q^T R(n) k/sqrt(d), R(n) the rotation by the angles n*theta_i",
    mechanism="rotary",
    settings={"base": 10000.0},
    reference="Su et al., arXiv 2104.09864, equation 16",
    aliases=("rotary",),
    note="it rotates queries and keys and adds no decaying bias; the logits stay bounded and the "
    "weights don't tend to 0, so their series diverges",
    stand_in=_BOUNDED,
)

XPOS = Encoding(
    name="xpos",
    title="xPos",
    kind=Kind.MULTIPLICATIVE,
    formula=None,
    score="q^T R(n) diag(zeta_i^(n/512)) k/sqrt(d), zeta_i = (2*i + 0.4*d)/(1.4*d)",
    mechanism="rotary",
    settings={"base": 10000.0, "scale_base": 512.0, "gamma": 0.4},
    reference="Sun et al., arXiv 2212.10554, section 3; the exponent as in the authors' code",
    note="its decaying factor multiplies the logit, so the logit tends to 0 and the weight to 1",
    stand_in=_FADING,
)

XPOS_SHARED = Encoding(
    name="xpos-shared",
    title="xPos, one xi",
    kind=Kind.MULTIPLICATIVE,
    formula=None,
    score="q^T R(n) k xi^(n/512)/sqrt(d), xi = 9/14",
    mechanism="rotary",
    settings={"base": 10000.0, "scale_base": 512.0, "xi": 9 / 14},
    reference="Sun et al., arXiv 2212.10554; one xi for all pairs: Su, kexue.fm 9431; "
    "9/14 is the middle of the pairs' zeta_i",
    note="its decaying factor multiplies the logit, so the logit tends to 0 and the weight to 1",
    stand_in=_FADING,
)

REROPE = Encoding(
    name="rerope",
    title="ReRoPE",
    kind=Kind.MULTIPLICATIVE,
    formula=None,
    score="q^T R(min(n, w)) k/sqrt(d)",
    mechanism="rerope",
    settings={"base": 10000.0, "window": 256},
    reference="Su, kexue.fm 9708; w = 256, half of the usual training length",
    note="RoPE whose distance stops growing at w, so the logits stay bounded",
    stand_in=_BOUNDED,
)

PERMUTEFORMER = Encoding(
    name="permuteformer",
    title="PermuteFormer",
    kind=Kind.MULTIPLICATIVE,
    formula="n*log(r)",
    score="phi(q)^T r^n P^n phi(k), P a permutation",
    reference="Chen, arXiv 2109.02377",
    note="linear attention: r^n is itself the weight, so the series is geometric and converges for "
    "r < 1; for theory only, the decoder has softmax attention",
)
