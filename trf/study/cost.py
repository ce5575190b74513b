"""What sliding windows cost: words for the report from what `tests/bench/sliding_cost.py` wrote."""

from __future__ import annotations

import json
from pathlib import Path

from trf.study.markdown import MISSING, number, table

NAME = "cost"
PAPER = 44  # times slower, at least, by arXiv 2307.10156


def cost_words(path: str | Path) -> dict[str, str]:
    """Table `cost_table`, and how many times the cost without overlap: `cost_sliding`, `cost_pass`,
    `cost_window`; `cost_paper` is the paper's. All "not measured" without the file.

    Raises:
        ValueError, KeyError: the file is something else.
    """
    file = Path(path)
    names = ("cost_table", "cost_sliding", "cost_pass", "cost_window", "cost_how")
    if not file.exists():
        return {**dict.fromkeys(names, "not measured"), "cost_paper": str(PAPER)}
    record = json.loads(file.read_text("utf-8"))
    config, seconds, windows = record["config"], record["seconds"], record["windows"]
    base = seconds["non-overlapping"]
    times = {way: number(value / base) for way, value in seconds.items()}
    length, segment = config["length"], config["segment"]
    passes = {
        "sliding": f"{windows['sliding']} windows of {length}, stride {config['stride']}",
        "non-overlapping": f"{windows['non-overlapping']} windows of {length}",
        "one pass": f"1 window of {segment}",
        "one pass, window": f"1 window of {segment}, window mask {length}",
        "one pass, BCA": f"1 window of {segment}, blocks of {length}",
    }
    rows = [
        [passes[way], number(value), times[way],
         MISSING if record["perplexity"][way] is None else number(record["perplexity"][way])]
        for way, value in seconds.items()
    ]  # fmt: skip
    head = ["run as", "processor seconds", "times non-overlapping", "perplexity"]
    return {
        "cost_table": table(head, rows),
        "cost_sliding": times["sliding"],
        "cost_pass": times["one pass"],
        "cost_window": times["one pass, window"],
        "cost_how": (
            f"{config['model']} on {segment} tokens of {config['corpus']}, {config['threads']} "
            f"thread, least of {config['repeats']} repeats; sliding extrapolated from "
            f"{windows['sampled']} of {windows['sliding']} windows"
        ),
        "cost_paper": str(PAPER),
    }
