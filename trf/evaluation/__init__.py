"""Perplexity against length, and loss by position: does a model hold past training?

For each length N the text is cut into windows of N tokens. A window starts without any context,
and its N targets are the tokens that follow its N inputs. Longer windows have fewer such cold
starts, so part of a gain with length is the *early token curse* and no merit of the encoding
(Press, Smith, Lewis, arXiv 2108.12409, appendix B). Two things tell them apart: windows that slide
by a `stride` smaller than N, so that a token is scored with at least N - stride tokens before it,
and the loss at each position of a window.

A trained model can also be run in another way than it was trained, without retraining: behind a
`window` or in `blocks`, with or without the log-n scale (`Decoder.with_window`, `with_blocks`,
`with_log_scale`).
"""

from __future__ import annotations

from trf.evaluation.lengths import LengthPerplexity, Perplexity, perplexity
from trf.evaluation.positions import PositionLoss, loss_by_position

__all__ = ["LengthPerplexity", "Perplexity", "PositionLoss", "loss_by_position", "perplexity"]
