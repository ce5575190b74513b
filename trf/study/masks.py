"""The window mask at inference, without training again, and its kin.

Su (kexue.fm 9431) calls the window mask of the train length a super-strong baseline: any relative
encoding, convergent or not, should hold its perplexity behind it. Beside it stand blockwise causal
attention (BCA, of xPos, arXiv 2212.10554), the log-n scale (Su, kexue.fm 8823), and both.

Behind the window no query sees more keys than in training, so the log-n scale is 1 there and the
window with it is the window without it. In blocks a query sees up to twice as many.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from trf.encodings import Kind
from trf.study.cells import CellResult, Cells
from trf.study.markdown import MISSING, number, span, table
from trf.study.scores import (
    FLAT,
    LOG_SCALE,
    PLAIN,
    blocks_mode,
    count,
    overall_verdict,
    scores,
    verdict,
    window_mode,
)
from trf.study.theory import rounded, unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "window-mask"
VIEWS = ("plain", "window", "BCA", "log-n scale", "BCA, log-n scale")


def summarise(cells: Cells) -> dict[str, Any]:
    """Every relative encoding run in each way, against the best encoding run as it was trained.

    Of each cell and way (`views`): perplexity by length, `held`, its ratio to the same model at the
    train length, and `best`, its ratio to the best plain perplexity at that length on that corpus,
    over all encodings. `entropy`: nats of attention against the number of tokens, the mean over
    layers and heads of one window, with all tokens before it and behind the window mask.
    """
    main = cells.main
    best: dict[str, dict[int, dict[str, Any]]] = {}
    for cell in main:
        for length, score in scores(cell).items():
            known = best.setdefault(cell.corpus, {}).get(length)
            if known is None or score["perplexity"] < known["perplexity"]:
                best[cell.corpus][length] = {
                    "perplexity": score["perplexity"], "encoding": cell.encoding,
                    "title": cell.title,
                }  # fmt: skip
    records = [
        _record(cell, best[cell.corpus])
        for cell in main
        if cell.entry.kind is not Kind.ABSOLUTE
        and cell.train_length in scores(cell)
        and scores(cell, window_mode(cell))
    ]
    corpora = [c for c in main.corpora if any(r["corpus"] == c for r in records)]
    records.sort(key=lambda r: (main.encodings.index(r["encoding"]), corpora.index(r["corpus"])))
    return {
        "unit": unit(main),
        "corpora": corpora,
        "encodings": [e for e in main.encodings if any(r["encoding"] == e for r in records)],
        "best": {
            corpus: [{"length": n, **best[corpus][n]} for n in sorted(best[corpus])]
            for corpus in corpora
        },
        "records": records,
    }


def _record(cell: CellResult, best: dict[int, dict[str, Any]]) -> dict[str, Any]:
    modes = (
        PLAIN, window_mode(cell), blocks_mode(cell), LOG_SCALE, f"{blocks_mode(cell)}, {LOG_SCALE}"
    )  # fmt: skip
    base = scores(cell)[cell.train_length]["perplexity"]
    views = {}
    for view, mode in zip(VIEWS, modes, strict=True):
        views[view] = [
            {
                "length": length,
                "perplexity": score["perplexity"],
                "bits": score["bits"],
                "held": rounded(score["perplexity"] / base),
                "best": rounded(score["perplexity"] / best[length]["perplexity"]),
            }
            for length, score in sorted(scores(cell, mode).items())
            if length >= cell.train_length and length in best
        ]
    return {
        "encoding": cell.encoding,
        "title": cell.title,
        "corpus": cell.corpus,
        "train_length": cell.train_length,
        "longest": max(scores(cell)),
        "window": cell.data["cell"]["preset"]["window"],
        "verdict": verdict(cell),
        "views": views,
        "entropy": {
            name: curve
            for name, mode in (("full", "full"), ("window", window_mode(cell)))
            if (curve := _entropy(cell, mode)) is not None
        },
    }


def _entropy(cell: CellResult, mode: str) -> dict[str, Any] | None:
    """Mean over layers and heads; None if it was not measured."""
    curve = cell.curve("entropy", mode=mode)
    if curve is None:
        return None
    heads = [head for layer in curve["nats"] for head in layer]
    if any(None in head for head in heads):
        return None
    nats = [rounded(statistics.fmean(column)) for column in zip(*heads, strict=True)]
    return {"tokens": curve["tokens"], "nats": nats}


def at_longest(record: dict[str, Any], view: str) -> dict[str, Any] | None:
    """The scores of a way at the longest length; None if it was not measured there."""
    found = [row for row in record["views"][view] if row["length"] == record["longest"]]
    return found[0] if found else None


def words(result: dict[str, Any]) -> dict[str, str]:
    """Four tables, `mask_table` the shortest of them, and phrases of numbers."""
    records = result["records"]
    convergent = [r for r in records if r["verdict"]["kind"] == "converges"]
    others = [r for r in records if r["verdict"]["kind"] != "converges"]
    phrases = {
        f"mask_{view}_{name}": _held(found, key)
        for view, key in (("plain", "plain"), ("window", "window"), ("bca", "BCA"),
                          ("log_n", "log-n scale"), ("bca_log_n", "BCA, log-n scale"))
        for name, found in (("convergent", convergent), ("others", others))
    }  # fmt: skip
    return {
        "mask_table": _table(result),
        "mask_lengths_table": _lengths_table(result),
        "mask_full_table": _full_table(result),
        "mask_entropy_table": _entropy_table(result),
        "mask_best": _best(result),
        "mask_plain_near": _near(records, "plain"),
        "mask_window_near": _near(records, "window"),
        "mask_bca_near": _near(records, "BCA"),
        "mask_cost_convergent": _change(convergent),
        "mask_log_n_lowers": _lowers(records, "plain", "log-n scale"),
        "mask_bca_log_n_lowers": _lowers(records, "BCA", "BCA, log-n scale"),
        "mask_xpos": _one(records, "xpos", "BCA"),
        "mask_rope": _one(records, "rope", "window"),
        "mask_failures": _failures(records),
        **phrases,
    }


def draw(result: dict[str, Any]) -> Figure:
    """The figure: a column a corpus; perplexity in each way above, entropy of attention below."""
    from trf.plotting.masks import masks_figure

    return masks_figure(result)


def _table(result: dict[str, Any]) -> str:
    """Every encoding at the longest length in each way, relative to the best; over the corpora."""
    rows = []
    for encoding in result["encodings"]:
        found = _of(result, encoding)
        bases = [record["views"]["plain"][0]["perplexity"] for record in found]
        spans = [_times(at_longest(record, view) for record in found) for view in VIEWS]
        rows.append([found[0]["title"], overall_verdict(found), span(bases), *spans])
    head = ["encoding", "series", "perplexity, train length", *(f"{v} / best" for v in VIEWS)]
    return table(head, rows)


def _times(found: Iterable[dict[str, Any] | None]) -> str:
    ratios = [row["best"] for row in found if row is not None]
    return f"×{span(ratios)}" if ratios else MISSING


def _full_table(result: dict[str, Any]) -> str:
    """Every encoding on every corpus at the longest length, in each way."""
    rows = []
    for record in result["records"]:
        base = record["views"]["plain"][0]["perplexity"]
        cells = [
            MISSING if row is None else f"{number(row['perplexity'])} (×{number(row['best'])})"
            for row in (at_longest(record, view) for view in VIEWS)
        ]
        rows.append([record["title"], record["corpus"], number(base), *cells])
    return table(["encoding", "corpus", "plain, train length", *VIEWS], rows)


def _lengths_table(result: dict[str, Any]) -> str:
    """Perplexity relative to the train length: plain, behind the window, in blocks; by length."""
    lengths = sorted({row["length"] for r in result["records"] for row in r["views"]["plain"]})[1:]
    rows = []
    for encoding in result["encodings"]:
        for view in VIEWS[:3]:
            measured = [row for r in _of(result, encoding) for row in r["views"][view]]
            spans = [span([row["held"] for row in measured if row["length"] == n]) for n in lengths]
            rows.append([_of(result, encoding)[0]["title"], view, *spans])
    return table(["encoding", "run as", *map(str, lengths)], rows)


def _entropy_table(result: dict[str, Any]) -> str:
    """Entropy at the train length, and far past it with and without the mask; over the corpora."""
    rows, head = [], ["encoding", "in training", "plain", "window"]
    for encoding in result["encodings"]:
        found = [r for r in _of(result, encoding) if {"full", "window"} <= set(r["entropy"])]
        if not found:
            continue
        tokens = found[0]["entropy"]["full"]["tokens"]
        # The last count within the train length: the counts are spread evenly on a log axis.
        at = max(i for i, n in enumerate(tokens) if n <= found[0]["train_length"])
        curves = [(r["entropy"]["full"]["nats"], r["entropy"]["window"]["nats"]) for r in found]
        ends = ([full[at] for full, _ in curves], [full[-1] for full, _ in curves],
                [masked[-1] for _, masked in curves])  # fmt: skip
        rows.append([found[0]["title"], *(span(nats) for nats in ends)])
        head = ["encoding", f"{tokens[at]} tokens", f"{tokens[-1]} tokens, plain",
                f"{tokens[-1]} tokens, window"]  # fmt: skip
    return table(head, rows)


def _of(result: dict[str, Any], encoding: str) -> list[dict[str, Any]]:
    return [record for record in result["records"] if record["encoding"] == encoding]


def _held(records: Sequence[dict[str, Any]], view: str) -> str:
    """In how many cells the perplexity at the longest length is that of the train length."""
    rows = [row for record in records if (row := at_longest(record, view)) is not None]
    if not rows:
        return "not measured"
    ratios = [row["held"] for row in rows]
    return f"{sum(r <= FLAT for r in ratios)} of {count(len(rows), 'cell')} (×{span(ratios)})"


def _near(records: Sequence[dict[str, Any]], view: str) -> str:
    """How near every encoding comes to the best plain perplexity of its corpus."""
    ratios = [row["best"] for record in records if (row := at_longest(record, view)) is not None]
    if not ratios:
        return "not measured"
    return (
        f"×{span(ratios)}, median ×{number(statistics.median(ratios))}; at or below it in "
        f"{sum(ratio <= 1 for ratio in ratios)} of {count(len(ratios), 'cell')}"
    )


def _change(records: Sequence[dict[str, Any]]) -> str:
    """Behind the window relative to plain, at the longest length."""
    both = [(at_longest(r, "plain"), at_longest(r, "window")) for r in records]
    ratios = [window["perplexity"] / plain["perplexity"] for plain, window in both
              if plain is not None and window is not None]  # fmt: skip
    return f"×{span(ratios, 4)}" if ratios else "not measured"


def _lowers(records: Sequence[dict[str, Any]], without: str, view: str) -> str:
    """In how many cells a way lowers the perplexity of another, at the longest length."""
    both = [(at_longest(r, without), at_longest(r, view)) for r in records]
    ratios = [b["perplexity"] / a["perplexity"] for a, b in both
              if a is not None and b is not None]  # fmt: skip
    if not ratios:
        return "not measured"
    return f"{sum(r < 1 for r in ratios)} of {count(len(ratios), 'cell')} (×{span(ratios, 4)})"


def _one(records: Sequence[dict[str, Any]], encoding: str, view: str) -> str:
    """An encoding, plain and in a way, corpus by corpus."""
    phrases = []
    for record in records:
        plain, seen = at_longest(record, "plain"), at_longest(record, view)
        if record["encoding"] == encoding and plain is not None and seen is not None:
            values = [record["views"]["plain"][0], plain, seen]
            train, long, masked = (number(row["perplexity"]) for row in values)
            phrases.append(
                f"{record['corpus']} {train} at the train length, {long} plain, {masked} {view}"
            )
    return "; ".join(phrases) or "not measured"


def _best(result: dict[str, Any]) -> str:
    """The best encoding of each corpus at the longest length."""
    last = [(corpus, rows[-1]) for corpus, rows in result["best"].items()]
    return "; ".join(
        f"{corpus}: {row['title']}, {number(row['perplexity'])} at {row['length']}"
        for corpus, row in last
    ) or "not measured"  # fmt: skip


def _failures(records: Sequence[dict[str, Any]]) -> str:
    """Cells whose perplexity rises behind the window too."""
    odd = [
        f"{record['title']} on {record['corpus']} (×{number(row['held'])})"
        for record in records
        if (row := at_longest(record, "window")) is not None and row["held"] > FLAT
    ]
    return "; ".join(odd) or "none"
