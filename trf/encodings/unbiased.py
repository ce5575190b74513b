"""Encodings without an additive bias: nothing at all, absolute ones, rotations."""

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
    reference="Vaswani et al., arXiv 1706.03762, section 3.5",
    note="it is absolute, added to the embeddings, so the theorem does not apply",
)

ROPE = Encoding(
    name="rope",
    title="RoPE",
    kind=Kind.MULTIPLICATIVE,
    formula=None,
    reference="Su et al., arXiv 2104.09864, equation 16",
    aliases=("rotary",),
    note="it rotates queries and keys and adds no decaying bias; the logits stay bounded and the "
    "weights don't tend to 0, so their series diverges",
)
