"""Perplexity against length: does it hold past training where the series converges?

The evaluation of Qin, Zhong and Deng (arXiv 2307.10156): windows of growing length that don't
overlap, on the same segments of text. Beside it the two looks that Press, Smith and Lewis
(arXiv 2108.12409, analysis of the early token curse) ask for: sliding windows, in which every
scored token but the first few has a past, and the loss by position.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trf.study.cells import CellResult, Cells
from trf.study.markdown import MISSING, number, span, table
from trf.study.published import CORPORA, PERPLEXITY
from trf.study.scores import (
    FLAT,
    bits_by_position,
    count,
    overall_verdict,
    scores,
    sliding_mode,
    verdict,
    window_mode,
)
from trf.study.theory import rounded, unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "perplexity-by-length"
RISE = 0.005  # bits per byte past the train length that count as a cost, if two errors from zero

Curve = tuple[list[int], list[float]]  # last positions of bins, and the loss in them


def summarise(cells: Cells) -> dict[str, Any]:
    """Perplexity and loss by position of every cell, relative to its train length.

    Of each cell: perplexity, its ratio to that at the train length, bits per byte and standard
    error by length; the same at the train length with sliding windows; `positions` and `bits`, the
    loss by position; `excess`, what of it is due to the tokens past the train length: the loss
    less that of the same model on the same tokens behind a window mask of the train length. Where
    no mask applies (absolute positions) it is less the mean loss, behind the mask, of the other
    encodings of the corpus, put level within the train length. `past` is its mean beyond that, and
    `past_error` as if the bins of positions were independent of each other and of no trend.
    """
    main = cells.main
    references = {corpus: _reference(main.where(corpus=corpus)) for corpus in main.corpora}
    records = [
        record for cell in main if (record := _record(cell, references[cell.corpus])) is not None
    ]
    corpora = [c for c in main.corpora if any(r["corpus"] == c for r in records)]
    records.sort(key=lambda r: (main.encodings.index(r["encoding"]), corpora.index(r["corpus"])))
    shown = {(record["encoding"], record["corpus"]) for record in records}
    repeats = [
        repeat
        for cell in cells
        if (cell.encoding, cell.corpus) in shown and (repeat := _ratios(cell)) is not None
    ]
    return {
        "tokens": main[0].tokens if len(main) else None,
        "unit": unit(main),
        "corpora": corpora,
        "encodings": (names := list(dict.fromkeys(r["encoding"] for r in records))),
        "series": {e: overall_verdict([r for r in records if r["encoding"] == e]) for e in names},
        "records": records,
        "repeats": repeats,
    }


def _ratios(cell: CellResult) -> dict[str, Any] | None:
    """Perplexity by length of a cell; None if it has none at the train length."""
    by_length = scores(cell)
    if cell.train_length not in by_length:
        return None
    lengths = sorted(n for n in by_length if n >= cell.train_length)
    values = [by_length[n]["perplexity"] for n in lengths]
    return {
        "encoding": cell.encoding,
        "corpus": cell.corpus,
        "seed": cell.seed,
        "tokens": cell.tokens,
        "lengths": lengths,
        "perplexity": values,
        "ratio": [rounded(value / values[0]) for value in values],
    }


def _record(cell: CellResult, reference: Curve | None) -> dict[str, Any] | None:
    ratios = _ratios(cell)
    if ratios is None:
        return None
    by_length = scores(cell)
    sliding = scores(cell, sliding_mode(cell)).get(cell.train_length)
    return {
        **ratios,
        "title": cell.title,
        "train_length": cell.train_length,
        "stride": cell.data["cell"]["preset"]["stride"],
        "verdict": verdict(cell),
        "bits": [by_length[n]["bits"] for n in ratios["lengths"]],
        "nats": [by_length[n]["nats"] for n in ratios["lengths"]],
        "error": [by_length[n]["error"] for n in ratios["lengths"]],
        "sliding": sliding,
        "position": _by_position(cell, reference),
    }


def _reference(cells: Cells) -> Curve | None:
    """Loss by position that the text alone accounts for: the mean behind the window mask."""
    found = [curve for c in cells if (curve := bits_by_position(c, window_mode(c))) is not None]
    if not found:
        return None
    same = [bits for positions, bits in found if positions == found[0][0]]
    return found[0][0], [statistics.fmean(column) for column in zip(*same, strict=True)]


def _by_position(cell: CellResult, reference: Curve | None) -> dict[str, Any] | None:
    measured = bits_by_position(cell)
    if measured is None:
        return None
    positions, bits = measured
    starts = [0, *positions[:-1]]
    past = [i for i, start in enumerate(starts) if start >= cell.train_length]
    within = [i for i, end in enumerate(positions) if end <= cell.train_length]
    masked = bits_by_position(cell, window_mode(cell))
    excess = against = None
    if masked is not None and masked[0] == positions:
        against = "the same model behind the window mask"
        excess = [a - b for a, b in zip(bits, masked[1], strict=True)]
    elif reference is not None and reference[0] == positions and within:
        against = "other encodings behind the window mask"
        excess = [a - b for a, b in zip(bits, reference[1], strict=True)]
        level = statistics.fmean(excess[i] for i in within)
        excess = [value - level for value in excess]
    beyond = [excess[i] for i in past] if excess is not None else []
    return {
        "positions": positions,
        "bits": [rounded(value) for value in bits],
        "excess": None if excess is None else [rounded(value) for value in excess],
        "against": against,
        "past": rounded(statistics.fmean(beyond)) if beyond else None,
        "past_error": (
            rounded(statistics.stdev(beyond) / len(beyond) ** 0.5) if len(beyond) > 1 else None
        ),
    }


def words(result: dict[str, Any]) -> dict[str, str]:
    """Four tables, `length_table` first, and phrases of numbers.

    `length_ratio_*` are ratios at the longest length, for the encodings of the paper.
    """
    records = result["records"]
    return {
        **{f"length_ratio_{name.replace('-', '_')}": _ratio(records, name) for name in PERPLEXITY},
        "length_table": _table(result, _arrow),
        "length_bits_table": _table(result, _sliding),
        "length_past_table": _table(result, _past_cell),
        "length_paper_table": _paper(result),
        "length_flat": str(FLAT),
        "length_cells": str(len(records)),
        "length_convergent": _count(records, "converges", flat=True),
        "length_divergent": _count(records, "diverges", flat=False),
        "length_mixed": _count(records, "mixed", flat=True),
        "length_none": _count(records, "none", flat=False),
        "length_exceptions": _exceptions(records),
        "length_past_convergent": _past(records, "converges"),
        "length_past_divergent": _past(records, "diverges"),
        "length_past_none": _past(records, "none"),
        "length_early": _early(records),
        "length_sliding": _gain(records),
        "length_error": _error(records),
        "length_seeds": _repeats(result, "tokens", "seed"),
        "length_budgets": _repeats(result, "seed", "tokens"),
    }


def draw(result: dict[str, Any]) -> Figure:
    """The figure: a column a corpus; perplexity by length above, loss by position below."""
    from trf.plotting.extrapolation import extrapolation_figure

    return extrapolation_figure(result)


def _table(result: dict[str, Any], cell_text: Any) -> str:
    """Encodings down, corpora across; a dash where there is no cell."""
    rows = []
    for encoding in result["encodings"]:
        found = {r["corpus"]: r for r in result["records"] if r["encoding"] == encoding}
        texts = [cell_text(found[c]) if c in found else MISSING for c in result["corpora"]]
        title = next(iter(found.values()))["title"]
        rows.append([title, result["series"][encoding], *texts])
    return table(["encoding", "series", *result["corpora"]], rows)


def _arrow(record: dict[str, Any]) -> str:
    first, last = record["perplexity"][0], record["perplexity"][-1]
    return f"{first:.2f} → {last:.2f} (×{_times(record['ratio'][-1])})"


def _times(ratio: float) -> str:
    return f"{ratio:.3f}" if ratio < 2 else number(ratio)


def _ratio(records: Sequence[dict[str, Any]], encoding: str) -> str:
    """Perplexity at the longest length over that at the train length, over the corpora."""
    ratios = [r["ratio"][-1] for r in _longer(records) if r["encoding"] == encoding]
    return f"×{span(ratios, 4)}" if ratios else "not measured"


def _sliding(record: dict[str, Any]) -> str:
    ends = [record["bits"][0], (record["sliding"] or {}).get("bits"), record["bits"][-1]]
    return " / ".join(MISSING if value is None else f"{value:.3f}" for value in ends)


def _past_cell(record: dict[str, Any]) -> str:
    position = record["position"]
    if position is None or position["past"] is None:
        return MISSING
    error, digits = position["past_error"], 4 if abs(position["past"]) < 0.01 else 3
    spread = "" if error is None else f" ± {error:.{digits}f}"
    return f"{round(position['past'], digits) + 0.0:+.{digits}f}{spread}"


def _paper(result: dict[str, Any]) -> str:
    """The paper's perplexities beside the ratios measured here."""
    rows = []
    for encoding, theirs in PERPLEXITY.items():
        found = [r for r in result["records"] if r["encoding"] == encoding]
        if found:
            here = f"{_ratio(found, encoding)} ({count(len(found), 'corpus', 'corpora')})"
            rows.append([found[0]["title"], *(value or MISSING for value in theirs), here])
    return table(["encoding", *(f"{name} (theirs)" for name in CORPORA), "here"], rows)


def _longer(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those measured past the train length; learned absolute positions end there."""
    return [record for record in records if record["lengths"][-1] > record["train_length"]]


def _of(records: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [record for record in _longer(records) if record["verdict"]["kind"] == kind]


def _is_flat(record: dict[str, Any]) -> bool:
    return max(record["ratio"]) <= FLAT


def _count(records: Sequence[dict[str, Any]], kind: str, *, flat: bool) -> str:
    """How many cells of a kind are flat (or are not) at all lengths, and the span of the ratios."""
    found = _of(records, kind)
    if not found:
        return "0 of 0"
    counted = sum(_is_flat(record) is flat for record in found)
    ratios = [record["ratio"][-1] for record in found]
    return f"{counted} of {len(found)} (×{span(ratios, 4)} at {found[0]['lengths'][-1]} tokens)"


def _exceptions(records: Sequence[dict[str, Any]]) -> str:
    """Cells that go against the theory: convergent ones that rise, divergent ones that don't."""
    odd = [
        f"{r['title']} on {r['corpus']} ({r['verdict']['text']}, ×{_times(max(r['ratio']))})"
        for r in _longer(records)
        if (r["verdict"]["kind"] == "converges" and not _is_flat(r))
        or (r["verdict"]["kind"] == "diverges" and _is_flat(r))
    ]
    return "; ".join(odd) or "none"


def _past(records: Sequence[dict[str, Any]], kind: str) -> str:
    """What the tokens past the train length add to the loss there, in bits per byte."""
    found = [
        r["position"]
        for r in _of(records, kind)
        if r["position"] is not None and r["position"]["past"] is not None
    ]
    if not found:
        return "not measured"
    rises = sum(p["past"] > max(RISE, 2 * (p["past_error"] or 0.0)) for p in found)
    ends = (round(edge(p["past"] for p in found), 3) for edge in (min, max))
    low, high = (f"{end + 0.0:+.3f}" for end in ends)
    values = low if low == high else f"{low} to {high}"
    least = f"{RISE:g} and two errors"
    return f"{values} bits per byte, more than {least} in {rises} of {count(len(found), 'cell')}"


def _early(records: Sequence[dict[str, Any]]) -> str:
    """Of convergent cells: what longer windows gain, and what sliding gains at the train length."""
    found = [
        (record["bits"][0] - record["bits"][-1], record["bits"][0] - record["sliding"]["bits"])
        for record in _of(records, "converges")
        if record["sliding"] and record["bits"][0] and record["bits"][-1]
    ]
    if not found:
        return "not measured"
    longer, sliding = (statistics.fmean(column) for column in zip(*found, strict=True))
    at_least = sum(b >= 0.9 * a for a, b in found)
    return (
        f"{longer:.3f} bits per byte by longer windows, {sliding:.3f} by sliding at the train "
        f"length (means of {count(len(found), 'convergent cell')}; sliding gives at least nine "
        f"tenths of it in {at_least})"
    )


def _gain(records: Sequence[dict[str, Any]]) -> str:
    """Perplexity with sliding windows relative to those that don't overlap, at the train length."""
    found = [r["sliding"]["perplexity"] / r["perplexity"][0] for r in records if r["sliding"]]
    if not found:
        return "not measured"
    return f"×{span(found, 4)} ({sum(r < 1 for r in found)} of {count(len(found), 'cell')} lower)"


def _error(records: Sequence[dict[str, Any]]) -> str:
    """Standard errors of single values, from the spread over segments."""
    errors = [error for record in records for error in record["error"][:1] if error is not None]
    return f"{span(errors, 2)} nats per token" if errors else "not known"


def _repeats(result: dict[str, Any], fixed: str, varied: str) -> str:
    """Ratios at the longest length where only one thing differs from the cells shown."""
    phrases = []
    for record in result["records"]:
        same = [
            repeat
            for repeat in result["repeats"]
            if all(repeat[k] == record[k] for k in ("encoding", "corpus", fixed))
            and repeat["lengths"] == record["lengths"]
        ]
        if len(same) > 1:
            same.sort(key=lambda repeat: repeat[varied])
            values = ", ".join(
                f"×{_times(repeat['ratio'][-1])} ({varied} {repeat[varied]:,})" for repeat in same
            )
            phrases.append(f"{record['title']} on {record['corpus']}: {values}")
    return "; ".join(phrases) or "not measured"
