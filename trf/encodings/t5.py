"""T5: a learned bias for each of 32 buckets of distances (Raffel et al., arXiv 1910.10683)."""

from __future__ import annotations

from trf.encodings.base import Encoding, Kind, Learnable

BUCKETS = 32
FARTHEST = 128


def bucket(n: int) -> int:
    """The causal bucket of the distance n, exactly.

    n below 16; from there 16 + floor(16 ln(n/16) / ln 8), at most 31. The floor is found in
    integers: it is the largest k with n^16 >= 16^16 8^k.

    Example:
        >>> [bucket(n) for n in (0, 15, 16, 18, 19, 112, 113, 10**9)]
        [0, 15, 16, 16, 17, 30, 31, 31]
    """
    exact = BUCKETS // 2
    if n < exact:
        return n
    ratio = FARTHEST // exact
    k = exact - 1
    while k > 0 and n**exact < exact**exact * ratio**k:
        k -= 1
    return exact + k


STARTS = tuple(
    next(n for n in range(FARTHEST) if bucket(n) == wanted) for wanted in range(BUCKETS)
)  # the first distance of each bucket

_PIECES = ", ".join(f"(b{k}, n < {STARTS[k + 1]})" for k in range(BUCKETS - 1))

T5 = Encoding(
    name="t5",
    title="T5",
    kind=Kind.TABLE,
    formula=f"Piecewise({_PIECES}, (b{BUCKETS - 1}, True))",
    learnable=tuple(Learnable(f"b{k}", -0.1, 0.1, minimum=None) for k in range(BUCKETS)),
    assume={f"b{k}": "real" for k in range(BUCKETS)},
    reference="Raffel et al., arXiv 1910.10683, section 2.1; 32 buckets, causal, farthest 128",
    aliases=("t5-bias",),
    note="constant from n = 113 on, so its series diverges; b_k is the value of bucket k, one "
    "table shared by all layers; here the logits keep their 1/sqrt(d), which T5 itself leaves out; "
    "initial values U(-0.1, 0.1) are ours",
)
