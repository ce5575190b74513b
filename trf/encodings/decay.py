"""Exponential decay gates: a weight gamma^n (RetNet, Sun et al., arXiv 2307.08621)."""

from __future__ import annotations

from trf.encodings.base import Encoding, Kind

DECAY = Encoding(
    name="decay",
    title="decay (RetNet)",
    kind=Kind.ADDITIVE,
    formula="n*log(gamma)",
    reference="Sun et al., arXiv 2307.08621, equation 5",
    aliases=("retnet",),
    note="geometric, for gamma < 1",
)
