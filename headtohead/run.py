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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headtohead.audit import Finding, causality
from headtohead.checkpoint import load_checkpoint, save_checkpoint, save_weights
from headtohead.files import write_atomically, write_json
from headtohead.measure import cost
from headtohead.measure.likelihood import held_out, likelihood
from headtohead.objectives import Batch, Prediction, cut
from headtohead.parts.dropout import row_keys
from headtohead.spec import describe
from headtohead.study import Recipe, network_of
from headtohead.text.cache import Tokens, prepare
from headtohead.text.elsewhere import save_for_transformers
from headtohead.text.examples import digest
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


def batches(recipe: Recipe, tokens: Tokens, seed: int, first: int) -> Iterator[tuple[int, list[Batch], str]]:
    """Batch i, a pure function of (seed, i), from `first` to the last step."""
    width = recipe.length + recipe.objective.ahead
    for i in range(first, recipe.steps):
        rows = recipe.examples.rows(tokens, width, recipe.batch, seed, i)
        key = hashlib.blake2b(f"noise/{seed}/{i}".encode(), digest_size=16).digest()
        noise = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))
        batch = recipe.objective.prepare(rows, noise, tokens.vocabulary)
        mark = digest(*(column.numpy() for column in batch if column is not None))
        keyed = batch._replace(keys=row_keys(seed, i, np.arange(recipe.batch)))
        yield i, cut(keyed, recipe.accumulate), mark


class Run:
    """The folder of one arm and seed and what is kept in it."""

    def __init__(
        self, folder: Path, recipe: Recipe, seed: int, route: Route, lock: str = "", primary: str = "loss"
    ) -> None:
        self.folder, self.recipe, self.seed, self.route = folder, recipe, seed, route
        self.lock, self.primary = lock, primary
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
        findings = audit_start(self.recipe, self.vocabulary, self.seed)
        failure, steps, seconds = self.train()
        peak = cost.peak_memory()
        # a copy leaves the compiled code behind: held-out text is scored eagerly, in float32, in every arm
        judged = copy.deepcopy(self.learner).eval()
        if failure is None and not all(bool(torch.isfinite(p).all()) for p in judged.parameters()):
            failure = "the last step left weights that are not finite"
        if failure is not None:
            self.finish("failed", steps, seconds, peak, failure)
            return
        self.measure(judged)
        findings.append(audit_network(self.recipe, judged.model, self.vocabulary, "after"))
        write_json(self.folder / "audits.json", [finding._asdict() for finding in findings])
        save_weights(self.folder / "model.safetensors", judged)
        self.finish("finished", steps, seconds, peak, None)

    def train(self) -> tuple[str | None, int, float]:
        """Train to the last step; why it failed, if it did, the steps made and the seconds spent on them."""
        checkpoint, log = self.folder / "checkpoint.safetensors", self.folder / "steps.jsonl"
        done, seconds = 0, 0.0
        if checkpoint.exists():
            progress = load_checkpoint(checkpoint, self.learner, self.optimizers)
            done, seconds = progress["steps"], progress["seconds"]
        _keep_lines(log, done)
        if self.route.compiled:
            self.learner.accelerate()
        stream = batches(self.recipe, self.tokens, self.seed, done)
        saved = reported = time.monotonic()
        with open(log, "a", encoding="utf-8") as lines:
            for step in train(self.learner, self.optimizers, stream, self.rate, self.recipe.clip, self.route):
                seconds += step.seconds
                lines.write(_line(step))
                if not (math.isfinite(step.loss) and math.isfinite(step.norm)):
                    why = f"step {step.step}: the loss is {step.loss} and its gradient's norm {step.norm}"
                    return why, step.step, seconds
                now = time.monotonic()
                if now - reported > REPORT_SECONDS:
                    reported = now
                    self.status("running", step.step + 1, seconds, {"loss": step.loss})
                if now - saved > CHECKPOINT_SECONDS:
                    saved = now
                    _settle(lines)
                    progress = {"steps": step.step + 1, "seconds": seconds}
                    save_checkpoint(checkpoint, self.learner, self.optimizers, progress)
            _settle(lines)
        return None, self.recipe.steps, seconds

    def rate(self, step: int) -> float:
        return self.recipe.optimizer.rate * self.recipe.schedule(step, self.recipe.steps)

    def measure(self, judged: Prediction) -> None:
        """measures.json and documents.npz."""
        recipe, length = self.recipe, self.recipe.length
        stride = length // 2 if recipe.objective.ahead else length
        result = likelihood(judged, recipe, self.tokens, max(1, stride))
        with torch.inference_mode():
            own = judged.measures(held_out(recipe, self.tokens, max(1, stride)))
        # what the study asks and this arm has no answer to is null: it has been looked for
        figures = {self.primary: None} | result.figures | own
        if recipe.objective.ahead:
            plain = likelihood(judged, recipe, self.tokens, length).figures
            figures |= {"loss.windows": plain["loss"], "perplexity.windows": plain["perplexity"]}
        figures |= cost.parameters(judged)
        figures |= cost.operations(recipe, network_of(recipe, self.vocabulary), self.vocabulary)
        figures["tokens"] = recipe.steps * recipe.batch * recipe.length
        write_json(self.folder / "measures.json", figures)
        _write_arrays(self.folder / "documents.npz", result.documents)

    def status(self, state: str, steps: int, seconds: float, more: dict[str, Any]) -> None:
        figures = {"state": state, "step": steps, "steps": self.recipe.steps, "seconds": round(seconds, 3), **more}
        write_json(self.folder / "status.json", figures | {"lock": self.lock})

    def steady(self) -> float:
        """Seconds of all steps at the pace of the median one, which neither compilation nor a neighbour's job moves."""
        lines = (self.folder / "steps.jsonl").read_text(encoding="utf-8").splitlines()
        return round(statistics.median(json.loads(line)["seconds"] for line in lines) * len(lines), 3)

    def finish(self, state: str, steps: int, seconds: float, peak: int, reason: str | None) -> None:
        more = {"steady_seconds": self.steady(), "peak_memory": peak, "reason": reason}
        self.status(state, steps, seconds, more)
        (self.folder / "checkpoint.safetensors").unlink(missing_ok=True)


def audit_start(recipe: Recipe, vocabulary: int, seed: int) -> list[Finding]:
    """Audits of a network as initialized, and with every parameter redrawn."""
    network = recipe.learner(vocabulary, seed).model
    redrawn, what = causality.redrawn(network), "redrawn"
    if not causality.gives_numbers(redrawn, min(recipe.length, causality.LONGEST), vocabulary):
        redrawn, what = causality.redrawn(network, vectors=False), "matrices redrawn"
    return [
        audit_network(recipe, network, vocabulary, "before"),
        audit_network(recipe, redrawn, vocabulary, f"before, {what}"),
    ]


def audit_network(recipe: Recipe, network: torch.nn.Module, vocabulary: int, when: str) -> Finding:
    """Whether a network sees what it is asked to predict."""
    if not recipe.objective.ahead:
        sentence = "It may read both sides: it does not predict what comes next."
        return Finding("A-CAUSAL", "fatal", when, "pass", "not an objective of the next token", sentence)
    return causality.audit(network, recipe.length, vocabulary, when)


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
