"""The empirical field against a plain loop, and its memory at length 9216.

    python tests/bench/empirical_speed.py [--length 2048] [--windows 4] [--memory-length 9216]

The plain loop takes a window at a time, builds the N x N attention matrix of every layer, and runs
one backward pass to all gradients, as `loss.backward()` does; ours takes the largest logit too, so
both do one backward pass a window. The memory is the peak that a fresh process adds to what it
holds once the model is loaded.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from pathlib import Path

import numpy as np
import torch

from trf import corpora
from trf.empirical import attention_field, empirical_receptive_field
from trf.nn import load

MODEL = "alibi"


def plain(tokens: np.ndarray, length: int, starts: list[int]) -> np.ndarray:
    """The mean curve, one window at a time with explicit attention."""
    model = load(MODEL).use_path("reference")
    curves = []
    for start in starts:
        window = torch.from_numpy(tokens[start : start + length])[None]
        x = model.embed(window).detach().requires_grad_()
        model.logits(model.forward_embeddings(x)[:, -1]).amax().backward()
        assert x.grad is not None
        s = x.grad[0].norm(dim=-1).flip(0).double().numpy()
        curves.append(np.cumsum(s / s.sum()))
    return np.mean(curves, axis=0)


def speed(length: int, n_windows: int, repeats: int) -> dict[str, float]:
    """Seconds of processor time of both, and how far their curves lie apart."""
    text = corpora.load("code").test[: 4 * length]
    tokens = np.frombuffer(text, dtype=np.uint8).astype(np.int64)
    drawn = np.random.default_rng(0).permutation(len(tokens) - length)[:n_windows]
    starts = np.sort(drawn).tolist()
    slow, fast, difference = [], [], 0.0
    for _ in range(repeats):
        begin = time.process_time()
        wanted = plain(tokens, length, starts)
        middle = time.process_time()
        field = empirical_receptive_field(
            MODEL, text, length=length, n_windows=n_windows, reduction="logit", progress=False
        )
        slow.append(middle - begin)
        fast.append(time.process_time() - middle)
        difference = float(np.abs(field.curve - wanted).max())
    return {
        "length": length,
        "n_windows": n_windows,
        "plain_s": min(slow),
        "trf_s": min(fast),
        "times_faster": min(slow) / min(fast),
        "largest_difference": difference,
    }


def peak_kb() -> int:
    """The largest resident memory of this process so far, in kB."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def memory(what: str, length: int) -> dict[str, float | str]:
    """Peak megabytes that one measurement adds, and its seconds."""
    torch.set_num_threads(1)
    text = corpora.load("code").test[: length + 2]
    empirical_receptive_field(MODEL, text[:80], length=64, n_windows=1, progress=False)
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here (Linux)
    before = peak_kb()
    begin = time.process_time()
    if what == "gradient":
        empirical_receptive_field(MODEL, text, length=length, n_windows=1, progress=False)
    elif what == "layers":
        empirical_receptive_field(
            MODEL, text, length=length, n_windows=1, n_projections=1, layers=True, progress=False
        )
    else:
        attention_field(MODEL, text, length=length, n_windows=1, progress=False)
    after = peak_kb()
    return {
        "what": what,
        "length": length,
        "added_peak_mb": (after - before) / 1024,
        "seconds": time.process_time() - begin,
    }


def main() -> None:
    """Print one JSON object a line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--windows", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--memory-length", type=int, default=9216)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.repeats:
        result = speed(arguments.length, arguments.windows, arguments.repeats)
        print(json.dumps(result), flush=True)
    for what in ("gradient", "layers", "attention"):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            result = pool.apply(memory, (what, arguments.memory_length))
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
