"""Time and memory of the attention paths, and what a bias costs in training.

    python tests/bench/attention_speed.py [--threads 1] [--repeats 3] [--skip-reference]

Each measurement of a path is forward and backward of a decoder (4 layers, 4 heads, width 128,
batch 1) in a process of its own: the shortest processor time of the repeats (that of all threads
together, so that other work on the machine matters less), and the peak of the resident memory above
what the process held before the first long pass. The reference needs some 12 GB at 9216 tokens.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

LENGTH = 9216
WIDTH = 512


def one(path: str, length: int, width: int, threads: int, repeats: int) -> dict[str, float]:
    """Processor seconds and added megabytes of one forward and backward pass."""
    import torch

    from trf.nn import Decoder, DecoderConfig

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = Decoder(DecoderConfig("alibi"))
    model = (model.with_window(width) if width else model).use_path(path)

    def run(n: int) -> None:
        tokens = torch.arange(n)[None] % 256
        model.losses(tokens, tokens.roll(-1)).mean().backward()

    run(64)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run(length)
        times.append(time.process_time() - start)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": min(times), "megabytes": (after - before) / 1024}


def apart(path: str, length: int, width: int, threads: int, repeats: int) -> dict[str, float]:
    """`one`, in a process of its own."""
    arguments = [path, length, width, threads, repeats]
    command = [sys.executable, __file__, "--one", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    window = f" w={width}" if width else ""
    name = f"{path}{window} N={length}"
    print(f"{name:28} {result['seconds']:8.2f} s {result['megabytes']:9.0f} MB", flush=True)
    return result


def throughput(threads: int, rounds: int) -> dict[str, float]:
    """Tokens a second in training at length 512, batch 8, with ALiBi and with nothing."""
    import torch

    from trf.nn import Decoder, DecoderConfig

    torch.set_num_threads(threads)
    tokens = torch.randint(256, (8, 512), generator=torch.Generator().manual_seed(0))
    steps = {}
    for name in ("none", "alibi"):
        torch.manual_seed(0)
        model = Decoder(DecoderConfig(name))
        steps[name] = (model, torch.optim.AdamW(model.parameters()))
    best = dict.fromkeys(steps, float("inf"))
    for _ in range(rounds):
        for name, (model, optimiser) in steps.items():
            start = time.process_time()
            optimiser.zero_grad()
            model.losses(tokens, tokens.roll(-1, 1)).mean().backward()
            optimiser.step()
            best[name] = min(best[name], time.process_time() - start)
    return {name: tokens.numel() / seconds for name, seconds in best.items()}


def main() -> None:
    """Print the numbers and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--skip-reference", action="store_true")
    options = parser.parse_args()
    if options.one:
        path, *numbers = options.one
        print(json.dumps(one(path, *map(int, numbers))))
        return
    shared = (options.threads, options.repeats)
    lean = apart("lean", LENGTH, 0, *shared)
    windowed = apart("lean", LENGTH, WIDTH, *shared)
    short, long = (apart("lean", n, WIDTH, *shared) for n in (8192, 16384))
    print(f"windowed against lean: {lean['seconds'] / windowed['seconds']:.1f} times faster")
    print(f"windowed, 16384 against 8192: {long['seconds'] / short['seconds']:.2f} times the time, "
          f"{long['megabytes'] / short['megabytes']:.2f} times the memory")  # fmt: skip
    if not options.skip_reference:
        reference = apart("reference", LENGTH, 0, options.threads, 1)
        print(f"lean against reference: {reference['seconds'] / lean['seconds']:.1f} times faster, "
              f"{lean['megabytes'] / reference['megabytes']:.3f} of the memory")  # fmt: skip
    speed = throughput(options.threads, 10 * options.repeats)
    print(f"training at 512: {speed['alibi']:.0f} tokens/s with ALiBi, {speed['none']:.0f} without "
          f"bias: {speed['alibi'] / speed['none']:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
