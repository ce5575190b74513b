"""Masks: the window of the "super-strong baseline" (Su, kexue.fm 9431)."""

from __future__ import annotations

from trf.encodings.base import Encoding, Kind

WINDOW = Encoding(
    name="window",
    title="window",
    kind=Kind.WINDOW,
    formula="Piecewise((0, n < w), (-oo, True))",
    assume={"w": "positive integer"},
    reference="Su, kexue.fm 9431",
    note="a mask of the w newest tokens, applied at inference",
)
