"""One training run: the loop, its state, and what it came to."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm.auto import tqdm

from trf import corpora, tokenisers
from trf.errors import ParameterError, TextError, TRFError, missing_extra
from trf.nn import checkpoint
from trf.nn.decoder import Decoder, DecoderConfig
from trf.recipe import Recipe
from trf.training import logs
from trf.training.result import TrainResult

try:
    from lightning_fabric import Fabric
except ImportError as error:
    raise missing_extra("lightning-fabric", "nn") from error

STATE = "state.safetensors"


def make_fabric(accelerator: str, devices: int | str, precision: str) -> Fabric:
    """Lightning Fabric for these devices.

    Raises:
        ParameterError: they can't be used here.
    """
    try:
        return Fabric(accelerator=accelerator, devices=devices, precision=precision)  # type: ignore[arg-type]
    except (RuntimeError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ParameterError(
            f"accelerator {accelerator!r} with devices {devices!r} and precision {precision!r} "
            f"can't be used here: {reason}"
        ) from error


def draw_windows(data: Tensor, seed: int, step: int, batch: int, length: int) -> Tensor:
    """The windows of a step, (batch, length + 1): a function of (seed, step) alone."""
    starts = np.random.default_rng([seed, step]).integers(0, len(data) - length, size=batch)
    return torch.stack([data[s : s + length + 1] for s in starts.tolist()])


@torch.no_grad()
def bits_per_byte(model: Decoder, data: Tensor, bytes_of: Tensor, n_windows: int) -> float:
    """Mean bits a byte on windows of the training length, spread evenly over `data`.

    `bytes_of` counts the bytes of every token of the vocabulary, (V,).
    """
    length = model.config.train_length
    starts = torch.arange(0, len(data) - length, length)
    if len(starts) > n_windows:
        starts = starts[torch.linspace(0, len(starts) - 1, n_windows).long()]
    device = next(model.parameters()).device
    total, count = 0.0, 0
    for chunk in starts.split(16):
        windows = torch.stack([data[s : s + length + 1] for s in chunk.tolist()]).long()
        losses = model.losses(windows[:, :-1].to(device), windows[:, 1:].to(device))
        total += losses.double().sum().item()
        count += int(bytes_of[windows[:, 1:]].sum())
    return total / count / math.log(2)


def initial_decoder(recipe: Recipe, vocab_size: int) -> Decoder:
    """The decoder of a recipe before the first step: a function of the recipe's seed."""
    config = DecoderConfig(
        recipe.encoding,
        recipe.n_layer,
        recipe.n_head,
        recipe.n_embd,
        vocab_size=vocab_size,
        train_length=recipe.length,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        return Decoder(config)


class Run:
    """One run: a recipe, its text, its folder."""

    def __init__(self, recipe: Recipe, text: corpora.Corpus, out: Path):
        self.recipe, self.text, self.out = recipe, text, out
        self.identity = {**dataclasses.asdict(recipe), "corpus_sha256": text.sha256}
        self.tokeniser: tokenisers.Tokeniser = tokenisers.BYTES

    def finished(self) -> TrainResult | None:
        """The result of a run that is complete; refuses the folder of another one."""
        for name in (checkpoint.FILE_NAME, STATE):
            if (self.out / name).exists():
                provenance = checkpoint.read_header(self.out / name).get("provenance", {})
                self._check_same(provenance.get("recipe", {}))
                if name == checkpoint.FILE_NAME:
                    return self._result("already finished", provenance, resumed_from=0)
        return None

    def train(
        self,
        fabric: Fabric,
        *,
        accumulate: int,
        compile: bool,
        checkpoints: Sequence[int],
        save_every: int,
        valid_every: int,
        tensorboard: bool,
        progress: bool,
    ) -> TrainResult:
        """The loop, from where the folder's state left off."""
        r = self.recipe
        if r.batch % (fabric.world_size * accumulate):
            raise ParameterError(
                f"batch {r.batch} does not divide over {fabric.world_size} processes"
                + (f" in {accumulate} pieces each" if accumulate > 1 else "")
            )
        self.tokeniser = self._tokeniser()
        data, valid = self._tokens("train"), self._tokens("valid")
        bytes_of = torch.from_numpy(self.tokeniser.byte_counts)
        model, optimiser, start, seconds = self._begin()
        run: Any = torch.compile(model) if compile else model
        wrapped, stepper = fabric.setup(run, optimiser)
        master = fabric.is_global_zero
        per_step = r.batch * r.length
        began = last = time.perf_counter()
        with (
            logs.open_log(self.out, start, tensorboard=tensorboard, write=master) as log,
            tqdm(
                total=r.steps * per_step,
                initial=start * per_step,
                unit="B" if r.tokeniser == "bytes" else "tok",
                unit_scale=True,
                desc=r.encoding,
                disable=not (progress and master),
            ) as bar,
        ):
            for step in range(start, r.steps):
                rate = r.rate_at(step)
                for group in optimiser.param_groups:
                    group["lr"] = rate
                windows = draw_windows(data, r.seed, step, r.batch, r.length)  # (B, T+1)
                windows = windows[fabric.global_rank :: fabric.world_size].long().to(fabric.device)
                loss = self._gradient(fabric, wrapped, windows, accumulate)
                norm = fabric.clip_gradients(
                    wrapped, stepper, max_norm=r.clip, error_if_nonfinite=False
                )
                loss = fabric.all_reduce(loss)
                if not bool(torch.isfinite(loss + norm)):  # type: ignore[operator]
                    raise self._diverged(step)
                stepper.step()
                stepper.zero_grad()
                if model.bias is not None:
                    model.bias.clamp_()

                done = step + 1
                held_out = None
                if done % valid_every == 0 and done < r.steps:
                    held_out = bits_per_byte(model, valid, bytes_of, 32)
                    bar.set_postfix(valid_bits_per_byte=f"{held_out:.3f}")
                speed, last = per_step / (time.perf_counter() - last), time.perf_counter()
                log.write(
                    done,
                    done * per_step,
                    loss=loss.item(),  # type: ignore[union-attr]
                    valid_bits_per_byte=held_out,
                    learning_rate=rate,
                    tokens_per_second=round(speed),
                )
                bar.update(per_step)
                if master and done < r.steps:
                    for tokens in checkpoints:
                        if (done - 1) * per_step < tokens <= done * per_step:
                            self._keep(model, tokens, done * per_step)
                    if done % save_every == 0:
                        self._save(model, optimiser, done, seconds + last - began)
        seconds += time.perf_counter() - began
        model.eval()
        fabric.barrier()  # the log is whole
        per_token = len(self.text.train) / len(data)  # bytes
        held_out = bits_per_byte(model, valid, bytes_of, 256)
        model.provenance = self._provenance(model, held_out, per_token, seconds)
        if master:
            checkpoint.save(model, self.out / checkpoint.FILE_NAME)
            (self.out / STATE).unlink(missing_ok=True)
        fabric.barrier()  # the checkpoint is there
        return self._result("finished", model.provenance, start)

    @staticmethod
    def _gradient(fabric: Fabric, model: Any, windows: Tensor, pieces: int) -> Tensor:
        """Add up the gradient of the mean loss of the windows, in pieces; returns that loss."""
        total = torch.zeros((), device=windows.device)
        for number, piece in enumerate(windows.chunk(pieces), 1):
            with fabric.no_backward_sync(model, enabled=number < pieces):
                logits = model(piece[:, :-1])  # (B, T, V)
                loss = F.cross_entropy(logits.flatten(0, 1), piece[:, 1:].flatten()) / pieces
                fabric.backward(loss)
            total = loss.detach() if pieces == 1 else total + loss.detach()
        return total

    def _tokeniser(self) -> tokenisers.Tokeniser:
        """The one that an interrupted run learned, or a new one."""
        if self.recipe.tokeniser == "bytes":
            return tokenisers.BYTES
        if (self.out / STATE).exists():
            return tokenisers.of(checkpoint.read_header(self.out / STATE)["provenance"])
        return tokenisers.build(self.recipe.tokeniser, self.text.train)

    def _tokens(self, split: str) -> Tensor:
        text = self.text.split(split)
        if self.recipe.tokeniser == "bytes":
            tokens = torch.frombuffer(bytearray(text), dtype=torch.uint8) if text else []
        else:
            tokens = torch.from_numpy(self.tokeniser.encode(text).astype(np.int32))
        if len(tokens) <= self.recipe.length:
            raise TextError(
                f"the {split} part of corpus {self.recipe.corpus!r} has {len(tokens)} tokens; "
                f"windows of length {self.recipe.length} need at least {self.recipe.length + 1}"
            )
        return tokens  # type: ignore[return-value]

    def _begin(self) -> tuple[Decoder, torch.optim.AdamW, int, float]:
        """Model and optimiser at the start, or as an earlier call left them; step and seconds."""
        r = self.recipe
        model = initial_decoder(r, self.tokeniser.vocab_size)
        matrices = [p for p in model.parameters() if p.dim() > 1]
        vectors = [p for p in model.parameters() if p.dim() < 2]
        optimiser = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": r.weight_decay},
             {"params": vectors, "weight_decay": 0.0}],
            lr=r.learning_rate,
            betas=(0.9, 0.98),
        )  # fmt: skip
        path = self.out / STATE
        if not path.exists():
            return model, optimiser, 0, 0.0
        header = checkpoint.load_state(path, model, optimiser)
        return model, optimiser, int(header["step"]), float(header["seconds"])

    def _save(
        self, model: Decoder, optimiser: torch.optim.Optimizer, step: int, seconds: float
    ) -> None:
        header = {
            "provenance": {"recipe": self.identity, **self._tokeniser_entry()},
            "step": step,
            "seconds": seconds,
        }
        checkpoint.save_state(self.out / STATE, model, optimiser, header)

    def _keep(self, model: Decoder, asked: int, tokens: int) -> None:
        """The model as it is on the way, with what is known of it by then."""
        model.provenance = {
            "recipe": self.identity,
            "command": self.recipe.command(),
            "tokens": tokens,
            "of_tokens": self.recipe.tokens,
            **self._tokeniser_entry(),
        }
        checkpoint.save(model, self.out / f"model-{asked}.safetensors")

    def _tokeniser_entry(self) -> dict[str, Any]:
        bytewise = self.recipe.tokeniser == "bytes"
        return {} if bytewise else {"tokeniser": self.tokeniser.to_dict()}

    def _provenance(
        self, model: Decoder, held_out: float, bytes_per_token: float, seconds: float
    ) -> dict[str, Any]:
        nats = logs.mean_of_last_tenth(logs.losses(self.out))
        return {
            "recipe": self.identity,
            "command": self.recipe.command(),
            "steps": self.recipe.steps,
            "tokens": self.recipe.steps * self.recipe.batch * self.recipe.length,
            "train_bits_per_byte": nats / bytes_per_token / math.log(2),
            "valid_bits_per_byte": held_out,
            **self._tokeniser_entry(),
            "corpus": {
                "name": self.text.name,
                "sha256": self.text.sha256,
                "documents": self.text.n_documents,
                "licence": self.text.licence,
            },
            "n_parameters": model.n_parameters(),
            "seconds": round(seconds, 1),
            "threads": torch.get_num_threads(),
            "versions": checkpoint.versions(),
        }

    def _result(self, status: str, provenance: dict[str, Any], resumed_from: int) -> TrainResult:
        return TrainResult(
            status=status,
            recipe=self.recipe,
            checkpoint=self.out / checkpoint.FILE_NAME,
            log=self.out / logs.LOG,
            steps=provenance["steps"],
            tokens=provenance["tokens"],
            train_bits_per_byte=provenance["train_bits_per_byte"],
            valid_bits_per_byte=provenance["valid_bits_per_byte"],
            resumed_from=resumed_from,
            seconds=provenance["seconds"],
            kept={
                int(path.stem.removeprefix("model-")): path
                for path in sorted(self.out.glob("model-*.safetensors"))
            },
        )

    def _check_same(self, other: dict[str, Any]) -> None:
        before = {f.name: f.default for f in dataclasses.fields(Recipe)}  # fields it may lack
        there = {name: other.get(name, before.get(name)) for name in self.identity}
        differ = [
            f"{name} {there[name]!r} there, {value!r} here"
            for name, value in self.identity.items()
            if there[name] != value
        ]
        if differ:
            raise ParameterError(
                f"{self.out} holds a run of another recipe ({'; '.join(differ)}); choose another "
                "folder, or delete it"
            )

    def _diverged(self, step: int) -> TRFError:
        state = self.out / STATE
        kept = (
            f"the last good state stays in {state}" if state.exists() else "nothing was saved yet"
        )
        return TRFError(
            f"the loss or its gradient is not finite at step {step + 1}; {kept}. A lower "
            f"learning rate than {self.recipe.learning_rate} may help"
        )
