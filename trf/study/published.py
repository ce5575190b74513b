"""Perplexity at inference lengths 512 -> 9216 by Qin, Zhong and Deng (arXiv 2307.10156).

Of their decoders, corpora and tokeniser, to set a pattern beside one's own. Where a length is not
given, one value is reported for the encoding.
"""

from __future__ import annotations

PERPLEXITY = {
    "type1": ("21.9 ... 24.3, 21.90 at 9216", "6.99", "2.02", "16.28"),
    "sinusoidal": ("24.73 → 423.92", "7.49 at 512", "2.29 at 512", "17.98 at 512"),
    "inverse-n": ("24.67 → 58.46", "7.40 → 26.34", "2.28 → 76.78", "17.91 → 204.10"),
    "inverse-n-log-n": ("24.64 → 27.63", "7.35 → 10.65", "2.27 → 16.35", "17.90 → 133.36"),
    "alibi": ("22.12 at 9216", "", "", ""),
}
CORPORA = ("Wikitext-103", "Books", "Github", "WikiBook")
