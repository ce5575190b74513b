"""The command line: ``trf converges``, ``radius``, ``encodings``, ``train``, ``measure``, ...

The only module that prints. Results go to stdout (``--json`` for programs), messages to stderr;
exit code 0 for an answer, 2 for bad input, 130 when interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trf import __version__
from trf.errors import ParameterError, TRFError

if TYPE_CHECKING:
    from trf.encodings import Encoding

FORMULA_WIDTH = 70
EXPRESSION_HELP = "a bias p(n) such as '-r1*log(1+r2*n)', LaTeX, or the name of an encoding"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = build_parser()
    arguments = parser.parse_args(_protect(sys.argv[1:] if argv is None else list(argv)))
    try:
        arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except TRFError as error:
        print(f"trf: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"trf: {error.filename or 'file'}: {error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("trf: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def _protect(argv: list[str]) -> list[str]:
    """Let an expression begin with a minus sign: ``trf converges -log(1+n)``."""
    return [f" {word}" if word[:1] == "-" and word[:2] not in ("--", "-h") else word
            for word in argv]  # fmt: skip


def build_parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    parser = argparse.ArgumentParser(
        prog="trf", description="Receptive fields of transformer position encodings."
    )
    parser.add_argument("--version", action="version", version=f"trf {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Any, text: str, *, as_json: bool = True) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        added.set_defaults(run=run)
        if as_json:
            added.add_argument("--json", action="store_true", help="print JSON")
        return added

    sub = command("converges", converges, "decide whether sum exp(p(n)) converges")
    sub.add_argument("bias", help=EXPRESSION_HELP)
    sub.add_argument(
        "--assume",
        action="append",
        default=[],
        metavar="NAME=DOMAIN",
        help="domain of a parameter, such as r1=real; positive real otherwise",
    )
    sub.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="value of a parameter"
    )
    sub.add_argument("--bidirectional", action="store_true", help="sum over all integers n")
    sub.add_argument("--proof", action="store_true", help="print the steps of the argument")

    sub = command("radius", radius, "the theoretical receptive field, in tokens")
    sub.add_argument("bias", help=EXPRESSION_HELP)
    sub.add_argument("--eps", default="0.01", help="share of the mass left out (default 0.01)")
    sub.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="value of a parameter"
    )
    sub.add_argument(
        "--assume",
        action="append",
        default=[],
        metavar="NAME=DOMAIN",
        help="domain of a parameter; positive real otherwise",
    )
    sub.add_argument("--length", type=int, help="normalise over this many tokens, not the limit")
    sub.add_argument("--heads", type=int, help="heads of an encoding of the catalogue (default 8)")
    sub.add_argument("--layers", type=int, default=1, help="layers of a stack (default 1)")
    sub.add_argument("--residual", default="0", help="share that passes a layer unmixed")
    sub.add_argument("--logit-bound", default="0", help="bound on |q.k|/sqrt(d)")
    sub.add_argument("--bidirectional", action="store_true", help="keys on both sides")

    sub = command("encodings", list_encodings, "the catalogue of encodings")
    sub.add_argument("name", nargs="?", help="one encoding, in detail")

    sub = command("train", train, "train a decoder; goes on if it was interrupted")
    sub.add_argument("--encoding", required=True, help="see: trf encodings")
    sub.add_argument("--corpus", default="code", help="code, or path:FILE_OR_FOLDER")
    sub.add_argument("--out", required=True, metavar="RUN", help="folder of the run")
    _add_recipe(sub)

    sub = command("measure", measure, "the empirical receptive field of a checkpoint")
    _add_model_and_text(sub)
    sub.add_argument("--eps", action="append", metavar="EPS", help="may be repeated; default 0.01")
    sub.add_argument("--length", type=int, default=512, help="tokens in a window (default 512)")
    sub.add_argument("--windows", type=int, default=32, help="windows sampled (default 32)")
    sub.add_argument("--seed", type=int, default=0)
    sub.add_argument(
        "--reduction", default="projection", help="projection (default), jacobian, logit or loss"
    )
    sub.add_argument("--layers", action="store_true", help="each layer's own field too")
    sub.add_argument("--heads", action="store_true", help="each head's attention too")

    sub = command("perplexity", perplexity, "perplexity against length, without overlap")
    _add_model_and_text(sub)
    sub.add_argument("--lengths", type=int, nargs="+", default=[512, 1024, 2048, 4096, 9216])
    sub.add_argument("--windows", type=int, help="at most so many windows of the longest length")
    sub.add_argument("--stride", type=int, help="sliding windows, so many tokens apart")
    sub.add_argument("--window", type=int, help="behind a window mask of this width")
    sub.add_argument("--blocks", type=int, help="with blockwise causal attention of this width")
    sub.add_argument("--log-scale", action="store_true", help="with the log-n scale on the logits")

    sub = command("grid", grid, "train and measure encodings by corpora by seeds; resumes")
    sub.add_argument("--encodings", nargs="+", required=True, help="see: trf encodings")
    sub.add_argument("--corpora", nargs="+", default=["code"], help="see the README (default code)")
    sub.add_argument("--out", default="grid", help="folder of the grid (default grid)")
    sub.add_argument("--preset", default="laptop", help="laptop, paper, paper-12 or smoke")
    sub.add_argument("--budget", help="training of a cell: tokens (3M) or a time (4min)")
    sub.add_argument("--seeds", nargs="+", type=int, default=[0])
    sub.add_argument(
        "--text",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="a further text to evaluate on",
    )
    sub.add_argument("--jobs", type=int, help="processes (default: as many as cores)")
    sub.add_argument("--threads", type=int, help="CPU threads a process")
    sub.add_argument("--keep", action="store_true", help="keep the checkpoints")
    sub.add_argument("--dask", metavar="ADDRESS", help="run on the workers of a Dask scheduler")

    sub = command("merge", merge, "one table of the cells of a grid")
    sub.add_argument("out", help="folder of the grid")

    sub = command("study", study, "tables, figures and a report of the cells of a grid",
                  as_json=False)  # fmt: skip
    sub.add_argument("folder", help="folder of the grid; the files are written there too")

    sub = command("figures", figures, "measure the shipped checkpoints and draw the figures; then "
                  "the experiment from its cells", as_json=False)  # fmt: skip
    sub.add_argument("--out", default="figures",
                     help="folder to write to (default figures); cells in its experiment/cells "
                     "are studied too")  # fmt: skip
    sub.add_argument("--fresh", action="store_true", help="measure again what is there already")
    sub.add_argument(
        "--models",
        nargs="+",
        metavar="CHECKPOINT",
        help="checkpoints to use (default: the shipped ones)",
    )
    return parser


def _add_model_and_text(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("checkpoint", help="a file, or the name of a shipped one such as alibi")
    sub.add_argument("--text", metavar="FILE", help="text to measure on (default: --corpus)")
    sub.add_argument("--corpus", default="code",
                     help="whose test split to measure on (default code)")  # fmt: skip


def _add_recipe(sub: argparse.ArgumentParser) -> None:
    """One option for each field of the training recipe; its default is the recipe's own."""
    for name, kind in (
        ("seed", int), ("tokens", int), ("batch", int), ("length", int), ("n_layer", int),
        ("n_head", int), ("n_embd", int), ("learning_rate", float), ("warmup", float),
        ("weight_decay", float), ("clip", float),
    ):  # fmt: skip
        sub.add_argument(f"--{name.replace('_', '-')}", type=kind, default=argparse.SUPPRESS)
    sub.add_argument("--schedule", default=argparse.SUPPRESS, help="cosine or inverse-sqrt")
    sub.add_argument("--tokeniser", default=argparse.SUPPRESS, help="bytes or bpe:SIZE")
    sub.add_argument("--accumulate", type=int, default=1, help="pieces a batch is computed in")
    sub.add_argument("--compile", action="store_true", help="use torch.compile")
    sub.add_argument(
        "--checkpoints",
        type=int,
        nargs="+",
        default=[],
        metavar="TOKENS",
        help="keep the model after so many tokens",
    )
    sub.add_argument("--threads", type=int, help="CPU threads (default: torch's choice)")
    sub.add_argument("--accelerator", default="auto", help="cpu, cuda, ... (default auto)")
    sub.add_argument("--devices", default="1", help="how many (default 1)")
    sub.add_argument("--precision", default="32-true", help="such as bf16-mixed")


def _show(arguments: argparse.Namespace, result: Any, text: str | None = None) -> None:
    if arguments.json:
        data = result.to_dict() if hasattr(result, "to_dict") else result
        print(json.dumps(data, indent=2, allow_nan=False))
    else:
        print(str(result) if text is None else text)


def _pairs(items: Sequence[str], option: str) -> dict[str, str]:
    pairs = {}
    for item in items:
        name, equals, value = item.strip().partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ParameterError(f"{option} takes NAME=VALUE, got {item.strip()!r}")
        pairs[name.strip()] = value.strip()
    return pairs


def _named(text: str) -> Encoding | str:
    """An encoding of the catalogue if `text` is the name of one, otherwise the text.

    Aliases such as ``1/n^2`` are not looked up: as a bias they mean what they say.
    """
    text = text.strip()
    if not re.fullmatch(r"[a-z][a-z0-9.-]*", text):
        return text
    from trf.encodings import REGISTRY

    return REGISTRY.get(text, text)


def converges(arguments: argparse.Namespace) -> None:
    """``trf converges``."""
    from trf.expression import as_bias
    from trf.series.convergence import converges as decide

    named = _named(arguments.bias)
    if not isinstance(named, str) and (named.bias is None or named.stand_in is not None):
        answer = named.answer(bidirectional=arguments.bidirectional)
        _show(arguments, answer, answer.explanation if arguments.proof else None)
        return
    bias = as_bias(named, _pairs(arguments.assume, "--assume"))
    bias = bias.substitute(_pairs(arguments.set, "--set"))
    verdict = decide(bias, bidirectional=arguments.bidirectional)
    _show(arguments, verdict, verdict.explanation if arguments.proof else None)


def radius(arguments: argparse.Namespace) -> None:
    """``trf radius``."""
    from trf.theory import theoretical_receptive_field

    bias = _named(arguments.bias)
    by_rule = not isinstance(bias, str) and bool(bias.fixed)
    field = theoretical_receptive_field(
        bias,
        arguments.eps,
        parameters=_pairs(arguments.set, "--set"),
        length=arguments.length,
        n_head=8 if by_rule and arguments.heads is None else arguments.heads,
        n_layer=arguments.layers,
        residual=arguments.residual,
        logit_bound=arguments.logit_bound,
        bidirectional=arguments.bidirectional,
        assume=_pairs(arguments.assume, "--assume"),
    )
    heads = [f"  head {number}: {head}" for number, head in enumerate(field.heads, 1)]
    _show(arguments, field, "\n".join([str(field), *heads]))


def list_encodings(arguments: argparse.Namespace) -> None:
    """``trf encodings``."""
    from trf import encodings

    shown = encodings.names() if arguments.name is None else [encodings.get(arguments.name).name]
    entries = [encodings.get(name) for name in shown]
    if arguments.name is None:
        width = max(map(len, shown))
        lines = [f"{e.name:{width}}  {e.kind!s:16}  {_formula(e)}" for e in entries]
    else:
        lines = [f"{key:10} {value}" for key, value in entries[0].to_dict().items() if value]
    _show(arguments, [entry.to_dict() for entry in entries], "\n".join(lines))


def _formula(encoding: Encoding) -> str:
    text = encoding.formula or encoding.score or "-"
    return text if len(text) <= FORMULA_WIDTH else f"{text[: FORMULA_WIDTH - 3]}..."


def train(arguments: argparse.Namespace) -> None:
    """``trf train``."""
    import dataclasses

    from trf.training import Recipe
    from trf.training import train as run

    names = {field.name for field in dataclasses.fields(Recipe)} - {"encoding", "corpus"}
    recipe = {name: value for name, value in vars(arguments).items() if name in names}
    devices = int(arguments.devices) if arguments.devices.isdigit() else arguments.devices
    result = run(
        arguments.encoding, arguments.out, arguments.corpus, threads=arguments.threads,
        accelerator=arguments.accelerator, devices=devices, precision=arguments.precision,
        accumulate=arguments.accumulate, compile=arguments.compile,
        checkpoints=arguments.checkpoints, **recipe,
    )  # fmt: skip
    _show(arguments, result)


def _text(arguments: argparse.Namespace) -> str | bytes:
    from trf import corpora

    if arguments.text is not None:
        return corpora.read_text(arguments.text)
    return corpora.load(arguments.corpus).test


def measure(arguments: argparse.Namespace) -> None:
    """``trf measure``."""
    from trf.empirical import empirical_receptive_field

    result = empirical_receptive_field(
        arguments.checkpoint, _text(arguments), eps=arguments.eps or ["0.01"],
        length=arguments.length, n_windows=arguments.windows, seed=arguments.seed,
        reduction=arguments.reduction, layers=arguments.layers, heads=arguments.heads,
    )  # fmt: skip
    _show(arguments, result)


def perplexity(arguments: argparse.Namespace) -> None:
    """``trf perplexity``."""
    from trf.evaluation import perplexity as evaluate

    result = evaluate(
        arguments.checkpoint, _text(arguments), lengths=arguments.lengths,
        max_windows=arguments.windows, stride=arguments.stride, window=arguments.window,
        blocks=arguments.blocks, log_scale=arguments.log_scale,
    )  # fmt: skip
    _show(arguments, result)


def grid(arguments: argparse.Namespace) -> None:
    """``trf grid``."""
    from trf.grid import run_grid

    result = run_grid(
        arguments.encodings, arguments.corpora, arguments.out, preset=arguments.preset,
        budget=arguments.budget, seeds=arguments.seeds, texts=_pairs(arguments.text, "--text"),
        jobs=arguments.jobs, threads=arguments.threads, keep=arguments.keep,
        dask=arguments.dask,
    )  # fmt: skip
    _show(arguments, result)


def merge(arguments: argparse.Namespace) -> None:
    """``trf merge``."""
    from trf.grid import merge as write_table

    table = write_table(arguments.out)
    _show(arguments, {"table": str(table)}, str(table))


def study(arguments: argparse.Namespace) -> None:
    """``trf study``."""
    from trf.study.report import make_study

    for path in make_study(arguments.folder):
        print(path)


def figures(arguments: argparse.Namespace) -> None:
    """``trf figures``."""
    from pathlib import Path

    from trf.experiment import make_figures
    from trf.study.report import make_study

    for path in make_figures(arguments.out, models=arguments.models, fresh=arguments.fresh):
        print(path)
    experiment = Path(arguments.out) / "experiment"
    if (experiment / "cells").is_dir():
        for path in make_study(experiment):
            print(path)
