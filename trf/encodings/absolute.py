"""Absolute positions, added to the embeddings, and no positions at all."""

from __future__ import annotations

from trf.encodings.base import Encoding, Kind

NONE = Encoding(
    name="none",
    title="none (NoPE)",
    kind=Kind.NONE,
    formula="0",
    reference="Kazemnejad et al., arXiv 2305.19466",
    aliases=("nope",),
)

SINUSOIDAL = Encoding(
    name="sinusoidal",
    title="sinusoidal",
    kind=Kind.ABSOLUTE,
    formula=None,
    score="(W_q (x_i + s_i)).(W_k (x_j + s_j))/sqrt(d)",
    mechanism="sinusoidal",
    reference="Vaswani et al., arXiv 1706.03762, section 3.5",
    note="it is absolute, added to the embeddings, so the theorem does not apply",
)

LEARNED = Encoding(
    name="learned",
    title="learned absolute",
    kind=Kind.ABSOLUTE,
    formula=None,
    score="(W_q (x_i + e_i)).(W_k (x_j + e_j))/sqrt(d)",
    mechanism="learned",
    reference="Gehring et al., arXiv 1705.03122, section 3.1; compared in arXiv 1706.03762, "
    "section 3.5",
    aliases=("learned-absolute",),
    note="it is absolute and has no vector past the training length, so the theorem does not "
    "apply and longer inputs are refused",
)
