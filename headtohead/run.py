"""One run: an arm and a seed, trained into a folder that can be left and taken up again at any moment."""

from __future__ import annotations

import copy
import fcntl
import hashlib
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from headtohead.audit.arm import audit_trained, kept_with_arm
from headtohead.audit.record import Scored, audit_record, read_steps
from headtohead.audit.spikes import diverged
from headtohead.checkpoint import load_checkpoint, network_tensors, put_tensors, save_checkpoint, save_weights
from headtohead.files import sweep, write_atomically, write_json
from headtohead.measure import cost
from headtohead.measure.likelihood import at_most, held_out, likelihood
from headtohead.objectives import Batch, Prediction, cut
from headtohead.parts.dropout import row_keys
from headtohead.request import restarts_of
from headtohead.restart import EVERY, SPIKE, Watch, furthest, keep_point, points, source
from headtohead.spec import describe
from headtohead.study import Recipe, network_of
from headtohead.text.cache import Tokens, prepare
from headtohead.text.corpus import open_corpus
from headtohead.text.elsewhere import save_for_transformers
from headtohead.text.examples import digest
from headtohead.text.overlap import text_hash
from headtohead.train import Route, Step, train

CHECKPOINT_SECONDS = float(os.environ.get("H2H_CHECKPOINT_SECONDS", "15"))  # what a power cut may cost
REPORT_SECONDS = 0.5


@contextmanager
def claimed(folder: Path) -> Iterator[bool]:
    """Whether this process has the folder to itself; the system takes the claim back when a process dies."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def batches(
    recipe: Recipe, tokens: Tokens, seed: int, first: int, restarts: Sequence[dict[str, Any]] = ()
) -> Iterator[tuple[int, list[Batch], str]]:
    """The batch of each step from `first` to the last: batch i, a pure function of (seed, i), unless restarts moved on."""
    width, own = recipe.length + recipe.objective.ahead, seed
    for step in range(first, recipe.steps):
        seed, i = source(restarts, own, step)
        rows = recipe.examples.rows(tokens, width, recipe.batch, seed, i)
        key = hashlib.blake2b(f"noise/{seed}/{i}".encode(), digest_size=16).digest()
        noise = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))
        batch = recipe.objective.prepare(rows, noise, tokens.vocabulary)
        mark = digest(*(column.numpy() for column in batch if column is not None))
        keyed = batch._replace(keys=row_keys(seed, i, np.arange(recipe.batch)))
        yield step, cut(keyed, recipe.accumulate), mark


class Terms(NamedTuple):
    """What the study says of one of its runs."""

    lock: str = ""
    primary: str = "loss"
    baseline: Recipe | None = None  # what the arm is compared with; None is the baseline itself


class Run:
    """The folder of one arm and seed and what is kept in it."""

    def __init__(self, folder: Path, recipe: Recipe, seed: int, route: Route, terms: Terms = Terms()) -> None:
        self.folder, self.recipe, self.seed, self.route = folder, recipe, seed, route
        self.lock, self.primary, self.baseline = terms
        self.restarts: list[dict[str, Any]] = []
        self.begun = False
        self.tokens = prepare(recipe.text, recipe.tokenizer, recipe.split)
        self.vocabulary = self.tokens.vocabulary.size
        self.learner = recipe.learner(self.vocabulary, seed).to(route.device)
        self.optimizers = recipe.optimizer.optimizers(self.learner)

    def execute(self) -> None:
        """Train, or go on training, to the end; then measure. The status is written last."""
        write_json(self.folder / "recipe.json", describe(self.recipe))
        write_json(self.folder / "environment.json", environment(self.route))
        self.tokens.vocabulary.save(self.folder / "vocabulary.json")
        save_for_transformers(self.tokens.vocabulary, self.folder, self.recipe.objective.masks)
        cost.reset_peak_memory()
        findings = kept_with_arm(self.folder.parent, self.recipe, self.tokens, self.baseline, self.lock)
        failure, steps, seconds = self.train()
        failure = failure or self.divergence()
        peak = cost.peak_memory()
        # a copy leaves the compiled code behind: held-out text is scored eagerly, in float32, in every arm
        judged = copy.deepcopy(self.learner).eval()
        if failure is None and not all(bool(torch.isfinite(p).all()) for p in judged.parameters()):
            failure = "the last step left weights that are not finite"
        if failure is not None:
            self.finish("failed", steps, seconds, peak, failure)
            return
        scored = self.measure(judged)
        findings += audit_trained(self.recipe, judged, self.tokens, self.baseline)
        findings += audit_record(self.recipe, self.tokens, scored, read_steps(self.folder))
        write_json(self.folder / "audits.json", [finding._asdict() for finding in findings])
        save_weights(self.folder / "model.safetensors", judged)
        self.finish("finished", steps, seconds, peak, None)

    def train(self) -> tuple[str | None, int, float]:
        """Train to the last step; why it failed, if it did, the steps made and the seconds spent on them."""
        sweep(self.folder)
        if self.route.compiled:
            self.learner.accelerate()
        spent = 0.0
        while True:
            done, seconds = self.return_to()
            failure, steps, spent = self.go_on(done, max(spent, seconds))
            if failure is not SPIKE:
                return failure, steps, spent

    def return_to(self) -> tuple[int, float]:
        """The furthest point on disk from which this seed's restarts can be followed, else the start: steps and seconds."""
        self.restarts = restarts_of(self.folder) if self.recipe.restart != "none" else []
        done, seconds = 0, 0.0
        point = furthest(self.folder, self.lock, self.restarts)
        if point is not None or self.begun:
            start = self.recipe.learner(self.vocabulary, self.seed)
            put_tensors(self.learner, network_tensors(start), self.folder)
            self.optimizers = self.recipe.optimizer.optimizers(self.learner)
        if point is not None:
            progress = load_checkpoint(point, self.learner, self.optimizers)
            done, seconds = progress["steps"], progress["seconds"]
        self.begun = True
        _keep_lines(self.folder / "steps.jsonl", done)
        return done, seconds

    def go_on(self, done: int, seconds: float) -> tuple[str | None, int, float]:
        """Train from a step on: to the end, to a failure, or to a spike after which the run is to be restarted."""
        recipe, log = self.recipe, self.folder / "steps.jsonl"
        stream = batches(recipe, self.tokens, self.seed, done, self.restarts)
        watch = Watch(self.folder, recipe, log) if recipe.restart != "none" else None
        saved = reported = time.monotonic()
        with open(log, "a", encoding="utf-8") as lines:
            for step in train(self.learner, self.optimizers, stream, self.rate, recipe.clip, self.route):
                seconds += step.seconds
                lines.write(_line(step))
                if watch is not None and watch.restarted(step.step, step.loss, step.norm):
                    return SPIKE, step.step, seconds
                if not (math.isfinite(step.loss) and math.isfinite(step.norm)):
                    why = f"step {step.step}: the loss is {step.loss} and its gradient's norm {step.norm}"
                    return why, step.step, seconds
                now, made = time.monotonic(), step.step + 1
                if now - reported > REPORT_SECONDS:
                    reported = now
                    self.status("running", made, seconds, {"loss": step.loss})
                progress = {"lock": self.lock, "steps": made, "seconds": seconds, "restarts": self.restarts}
                if watch is not None and made % EVERY == 0:
                    _settle(lines)
                    keep_point(self.folder, self.learner, self.optimizers, progress)
                if now - saved > CHECKPOINT_SECONDS:
                    saved = now
                    _settle(lines)
                    save_checkpoint(self.folder / "checkpoint.safetensors", self.learner, self.optimizers, progress)
            _settle(lines)
        return None, recipe.steps, seconds

    def divergence(self) -> str | None:
        """Why a run that came to its end is a failed one all the same, or None."""
        told = read_steps(self.folder)
        tokens = (
            self.vocabulary if told.of_tokens and (self.recipe.objective.ahead or self.recipe.objective.masks) else 0
        )
        why = diverged(told.losses, self.recipe.steps, tokens, self.recipe.schedule.warmup)
        return f"diverged: {why}" if why else None

    def rate(self, step: int) -> float:
        return self.recipe.optimizer.rate * self.recipe.schedule(step, self.recipe.steps)

    def measure(self, judged: Prediction) -> Scored:
        """measures.json and documents.npz."""
        recipe, length = self.recipe, self.recipe.length
        stride = max(1, length // 2 if recipe.objective.ahead else length)
        result = likelihood(judged, recipe, self.tokens, stride)
        probe = likelihood(judged, recipe, self.tokens.of_training(), stride)
        with torch.inference_mode():
            own = judged.measures(held_out(recipe, self.tokens, stride))
        # what the study asks and this arm has no answer to is null: it has been looked for
        figures = {self.primary: None} | result.figures | own
        if recipe.objective.ahead:
            plain = likelihood(judged, recipe, self.tokens, length).figures
            figures |= {"loss.windows": plain["loss"], "perplexity.windows": plain["perplexity"]}
        seen = probe.figures["loss"]
        figures |= {"loss.probe": seen, "loss.gap": figures["loss"] - seen}
        figures |= cost.parameters(judged)
        figures |= cost.operations(recipe, network_of(recipe, self.vocabulary), self.vocabulary)
        figures["tokens"] = recipe.steps * recipe.batch * recipe.length
        figures["evaluation.text"] = text_hash(open_corpus(recipe.text, recipe.split), at_most(recipe, self.tokens))
        write_json(self.folder / "measures.json", figures)
        _write_arrays(self.folder / "documents.npz", result.documents)
        return Scored(figures, result.documents, probe.documents)

    def status(self, state: str, steps: int, seconds: float, more: dict[str, Any]) -> None:
        figures = {"state": state, "step": steps, "steps": self.recipe.steps, "seconds": round(seconds, 3), **more}
        restarts = {"restarts": self.restarts} if self.recipe.restart != "none" else {}
        write_json(self.folder / "status.json", figures | restarts | {"lock": self.lock})

    def steady(self) -> float:
        """Seconds of all steps at the pace of the median one, which neither compilation nor a neighbour's job moves."""
        lines = (self.folder / "steps.jsonl").read_text(encoding="utf-8").splitlines()
        return round(statistics.median(json.loads(line)["seconds"] for line in lines) * len(lines), 3)

    def finish(self, state: str, steps: int, seconds: float, peak: int, reason: str | None) -> None:
        more = {"steady_seconds": self.steady(), "peak_memory": peak, "reason": reason}
        self.status(state, steps, seconds, more)
        for point in points(self.folder):
            point.unlink()


def _line(step: Step) -> str:
    figures: dict[str, Any] = {"step": step.step, "loss": step.loss, "rate": step.rate, "norm": step.norm}
    if len(step.terms) > 1:
        figures |= {f"loss.{name}": value for name, value in step.terms.items()}
    plain = {name: value if math.isfinite(value) else None for name, value in figures.items()}
    return json.dumps(plain | {"batch": step.batch, "seconds": round(step.seconds, 5)}) + "\n"


def _settle(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _keep_lines(log: Path, count: int) -> None:
    """Cut the log back to the steps that the checkpoint holds."""
    if log.exists():
        lines = log.read_text(encoding="utf-8").splitlines(keepends=True)[:count]
        write_atomically(log, "".join(lines))


def _write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    import io

    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    write_atomically(path, buffer.getvalue())


def environment(route: Route) -> dict[str, Any]:
    """Where a run took place."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "device": torch.cuda.get_device_name() if route.device == "cuda" else platform.processor() or "cpu",
        "route": route._asdict(),
    }
