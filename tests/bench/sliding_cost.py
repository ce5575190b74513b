"""What a prediction costs by sliding windows, by windows that don't overlap, and behind a mask.

    python tests/bench/sliding_cost.py [--out FILE] [--repeats 3] [--sample 160] [--threads 1]

A shipped checkpoint scores one segment of the test text in each way, through `trf.perplexity`.
Sliding with stride 1 runs a window for every token: `--sample` windows of as many tokens of text
are timed and the time of one is multiplied by their number. Windows are batched alike in both
(16 of 512 tokens at a time), and only the scored tokens are sent through the output layer. The
seconds are processor time of this process, the least of the repeats. Qin, Zhong and Deng
(arXiv 2307.10156) report that sliding is more than 44 times slower than windows without overlap;
their stride and batches are not known here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import time
from pathlib import Path
from typing import Any

LENGTH = 512
SEGMENT = 9216


def measure(model_name: str, corpus: str, repeats: int, sample: int, seed: int) -> dict[str, Any]:
    """Seconds a segment in each way; those of sliding as extrapolated."""
    import trf
    from trf import corpora

    model = trf.load(model_name)
    text = corpora.load(corpus).test
    common: dict[str, Any] = {"max_windows": 1, "seed": seed, "progress": False}
    windows = SEGMENT - LENGTH + 1
    sampled = {"segment_length": LENGTH + sample - 1, "stride": 1}
    whole = {"segment_length": SEGMENT}
    ways = {
        "sliding": ([LENGTH], sampled, windows / sample),
        "non-overlapping": ([LENGTH], whole, 1.0),
        "one pass": ([SEGMENT], whole, 1.0),
        "one pass, window": ([SEGMENT], {**whole, "window": LENGTH}, 1.0),
        "one pass, BCA": ([SEGMENT], {**whole, "blocks": LENGTH}, 1.0),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    perplexities = {}
    trf.perplexity(model, text, [LENGTH], **whole, **common)  # not timed: what is made only once
    for _ in range(repeats):
        for way, (lengths, view, factor) in ways.items():
            start = time.process_time()
            result = trf.perplexity(model, text, lengths, **view, **common)
            seconds[way].append(factor * (time.process_time() - start))
            perplexities[way] = None if way == "sliding" else result[lengths[0]].perplexity
    return {
        "seconds": {way: min(times) for way, times in seconds.items()},
        "all_seconds": seconds,
        "perplexity": perplexities,
        "windows": {"sliding": windows, "sampled": sample, "non-overlapping": SEGMENT // LENGTH},
        "text_sha256": hashlib.sha256(text).hexdigest(),
        "n_layer": model.config.n_layer,
        "n_embd": model.config.n_embd,
    }


def main() -> None:
    """Print the table; write it with `--out`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sample", type=int, default=160)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    import torch

    import trf

    torch.set_num_threads(options.threads)
    config = {
        "model": "type1", "corpus": "code", "length": LENGTH, "segment": SEGMENT, "stride": 1,
        "repeats": options.repeats, "sample": options.sample, "threads": options.threads, "seed": 0,
    }  # fmt: skip
    result = measure("type1", "code", options.repeats, options.sample, seed=0)
    base = result["seconds"]["non-overlapping"]
    for way, seconds in result["seconds"].items():
        note = f"  (extrapolated from {options.sample} windows)" if way == "sliding" else ""
        print(f"{way:18} {seconds:10.2f} s   {seconds / base:8.2f} times non-overlapping{note}")
    if options.out:
        record = {
            "command": "python tests/bench/sliding_cost.py",
            "config": config,
            **result,
            "versions": {
                "trf": trf.__version__, "torch": torch.__version__,
                "python": platform.python_version(),
            },
        }  # fmt: skip
        options.out.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
