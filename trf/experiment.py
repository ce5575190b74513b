"""From checkpoints to figures: measure each model once, keep the numbers, draw.

`make_figures` measures every checkpoint (empirical receptive field, perplexity against length),
sets the theory within the same length beside it, and writes ``trf-vs-erf`` and ``perplexity`` as
PDF, PNG and JSON. The JSON holds every number drawn, with seed, versions, the hash of the text
and of the checkpoint. Work is kept after each model, so an interrupted call goes on from there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

import trf
from trf import corpora, encodings
from trf.empirical import EmpiricalReceptiveField, empirical_receptive_field
from trf.errors import TextError
from trf.evaluation import perplexity
from trf.files import write_json
from trf.nn import Decoder, load, zoo_names
from trf.nn.checkpoint import find
from trf.series.convergence import converges
from trf.theory import mass_curve, stack_curve

MEASUREMENTS = ".measurements.json"  # every record so far, so that a call can go on


@dataclass(frozen=True)
class Plan:
    """What is measured of each model.

    Attributes:
        corpus: whose test split is the text.
        length: N of the receptive fields, theoretical and empirical; tokens.
        eps: the shares left out at which radii are given.
        n_windows: windows the empirical field is averaged over.
        residual: the share of the residual stream in the stack of layers.
        lengths: evaluation lengths of the perplexity; tokens.
        n_segments: segments, each as long as the longest length, that are scored.
        seed: of the windows drawn.
    """

    corpus: str = "code"
    length: int = 512
    eps: tuple[float, ...] = (0.5, 0.1, 0.05, 0.01)
    n_windows: int = 16
    residual: float = 0.5
    lengths: tuple[int, ...] = (512, 1024, 2048, 4096, 9216)
    n_segments: int = 4
    seed: int = 0


def make_figures(
    out: str | Path = "figures",
    *,
    models: Sequence[str | Path] | None = None,
    fresh: bool = False,
    plan: Plan | None = None,
    progress: bool = True,
) -> list[Path]:
    """Measure checkpoints and draw TRF against ERF, and perplexity against length.

    Args:
        out: folder to write to.
        models: checkpoints, or names of shipped ones; all shipped ones if None.
        fresh: measure again what an earlier call has measured with the same plan.
        plan: what to measure; the defaults of `Plan` if None.
        progress: show a progress bar.

    Returns:
        The files written: ``trf-vs-erf`` and ``perplexity``, each .json, .pdf and .png.

    Raises:
        CheckpointError: a model that is not a checkpoint.
        TextError: the corpus is shorter than the longest length.
    """
    plan = plan or Plan()
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    text = corpora.load(plan.corpus).test
    needed = max(plan.length, *plan.lengths) + 1
    if len(text) < needed:
        raise TextError(f"{plan.corpus} has {len(text)} bytes of test text; {needed} are needed")
    known = {} if fresh else _earlier(folder / MEASUREMENTS)
    records = []
    chosen = list(models or sorted(zoo_names(), key=encodings.names().index))
    bar = tqdm(chosen, desc="measuring", unit="model", disable=not progress)
    for model in bar:
        bar.set_postfix_str(Path(model).stem)
        record = _record(model, text, plan, known)
        known[json.dumps(record["key"], sort_keys=True)] = record
        records.append(record)
        write_json(folder / MEASUREMENTS, {"records": list(known.values())}, indent=1)
    return _draw(folder, plan, records)


def _record(
    model: str | Path, text: bytes, plan: Plan, known: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """One model's numbers: from `known` if the same were measured before, otherwise measured."""
    path = find(model)
    key = {
        "checkpoint_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "text_sha256": hashlib.sha256(text).hexdigest(),
        "plan": json.loads(json.dumps(asdict(plan))),
        "trf": trf.__version__,
    }
    earlier = known.get(json.dumps(key, sort_keys=True))
    if earlier is not None:
        return earlier
    decoder = load(path)
    measured = empirical_receptive_field(
        decoder, text, eps=plan.eps, length=plan.length, n_windows=plan.n_windows,
        seed=plan.seed, progress=False,
    )  # fmt: skip
    result = perplexity(
        decoder, text, plan.lengths, max_windows=plan.n_segments, seed=plan.seed, progress=False
    )
    return {
        "name": path.stem,
        "encoding": decoder.encoding.name,
        "title": decoder.encoding.title,
        "train_length": decoder.config.train_length,
        "n_layer": decoder.config.n_layer,
        "n_head": decoder.config.n_head,
        **_theory(decoder, plan),
        "length": plan.length,
        "measured": _empirical(measured, plan),
        "perplexity": [asdict(row) for row in result.rows],
        "key": key,
        "checkpoint": decoder.provenance,
        "versions": _versions(),
    }


def _theory(decoder: Decoder, plan: Plan) -> dict[str, Any]:
    """Verdict and fields within the plan's length; None where there is no bias p(n)."""
    heads = decoder.head_biases()
    if heads is None:
        return {"status": "no p(n)", "theory": None, "stack": None, "heads": None}
    values = [{}] * len(heads) if decoder.bias is None else decoder.bias.values()
    verdicts = [str(converges(head).status) for head in heads]
    one = mass_curve(heads, plan.length)
    stack = stack_curve(heads, plan.length, decoder.config.n_layer, plan.residual)
    return {
        "status": _status(verdicts),
        "theory": _curve(one, plan),
        "stack": {**_curve(stack, plan), "residual": plan.residual},
        "heads": values,
    }


def _status(verdicts: list[str]) -> str:
    if len(set(verdicts)) == 1:
        return verdicts[0]
    return f"{verdicts.count('converges')} of {len(verdicts)} heads converge"


def _curve(curve: np.ndarray, plan: Plan) -> dict[str, Any]:
    radius = {f"{eps:g}": int(np.argmax(curve > 1 - eps)) + 1 for eps in plan.eps}
    return {"curve": _rounded(curve), "radius": radius}


def _empirical(measured: EmpiricalReceptiveField, plan: Plan) -> dict[str, Any]:
    low, high = measured.band()
    return {
        "curve": _rounded(measured.curve),
        "low": _rounded(low),
        "high": _rounded(high),
        "radius": {f"{eps:g}": measured.radius_at(eps) for eps in plan.eps},
        "n_windows": measured.n_windows,
        "reduction": measured.reduction,
        "n_projections": measured.n_projections,
        "seed": measured.seed,
    }


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.7g}") for value in values]


def _draw(folder: Path, plan: Plan, records: list[dict[str, Any]]) -> list[Path]:
    import matplotlib as mpl

    with _backend("agg", mpl):
        from trf import plotting

        compared = [record for record in records if record["theory"] is not None]
        eps = [e for e in plan.eps if e != 0.05] or list(plan.eps)
        drawn = {"perplexity": (plotting.perplexity_figure(records), records)}
        if compared:
            drawn["trf-vs-erf"] = (plotting.overlay_figure(compared, eps=eps), compared)
        paths = []
        for name in sorted(drawn, reverse=True):
            figure, shown = drawn[name]
            results = _results(name, plan, shown)
            paths.append(write_json(folder / f"{name}.json", results, indent=1))
            paths += plotting.save(figure, folder / name)
            plotting.plt.close(figure)
    return paths


def _results(name: str, plan: Plan, records: list[dict[str, Any]]) -> dict[str, Any]:
    left_out = {"perplexity": ("theory", "stack", "measured"), "trf-vs-erf": ("perplexity",)}[name]
    return {
        "figure": name,
        "command": "trf figures",
        "plan": asdict(plan),
        "records": [
            {key: value for key, value in record.items() if key not in left_out}
            for record in records
        ],
    }


@contextlib.contextmanager
def _backend(name: str, mpl: Any) -> Iterator[None]:
    """Draw without a screen, and put the caller's backend back afterwards."""
    before = mpl.get_backend()
    mpl.use(name, force=True)
    try:
        yield
    finally:
        mpl.use(before, force=True)


def _earlier(path: Path) -> dict[str, dict[str, Any]]:
    """Records of an earlier call by key; none if the file is missing or is something else."""
    try:
        records = json.loads(path.read_text(encoding="utf-8"))["records"]
        return {json.dumps(record["key"], sort_keys=True): record for record in records}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _versions() -> dict[str, str]:
    import torch

    return {
        "trf": trf.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
