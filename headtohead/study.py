"""What is asked: a recipe for each arm, and the claims made before anything is run."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import nn

from headtohead.measure import COSTS, MEASURES, OF_OBJECTIVES
from headtohead.model import Model, Network, Transformer
from headtohead.objectives import Objective, Prediction
from headtohead.objectives.causal import CausalLM
from headtohead.optimizer import AdamW, Optimizer
from headtohead.request import MOST_SEEDS
from headtohead.schedule import CosineDecay, Schedule
from headtohead.spec import Mistake, Part, Size, check, get, walk
from headtohead.text.documentation import PythonDocs
from headtohead.text.examples import Examples, Stream
from headtohead.text.source import Text
from headtohead.text.split import Split
from headtohead.text.tokenizer import BytePairs, Tokenizer


class Recipe(Part):
    """Everything that one arm is trained with. `batch` rows of `length` tokens a step, in `accumulate` pieces.

    `clip` bounds the gradient's norm, 0 leaves it alone. `held_out` bounds how many
    bytes of held-out text are scored, in whole documents; 0 is all. `restart` says what happens after a spike of the loss:
    nothing, or a return to at least 100 steps before it, with some batches left out (skip) or in another order (reseed).
    """

    model: Model = Transformer()
    objective: Objective = CausalLM()
    text: Text = PythonDocs()
    tokenizer: Tokenizer = BytePairs()
    split: Split = Split()
    examples: Examples = Stream()
    length: int = 128
    batch: int = 32
    accumulate: int = 1
    steps: int = 1000
    optimizer: Optimizer = AdamW()
    schedule: Schedule = CosineDecay(warmup=100)
    clip: float = 1.0
    held_out: int = 0
    restart: Literal["none", "skip", "reseed"] = "none"

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        for name in ("length", "batch", "accumulate", "steps"):
            if getattr(self, name) < 1:
                yield f"{name} = {getattr(self, name)} must be at least 1"
        if self.batch % max(1, self.accumulate):
            yield f"accumulate = {self.accumulate} must divide batch = {self.batch}"
        if self.clip < 0 or self.held_out < 0:
            yield f"clip = {self.clip} and held_out = {self.held_out} must be at least 0"

    def size(self, vocabulary: int) -> Size:
        """The model's size over a text's vocabulary."""
        rows = self.model.rows(vocabulary, self.objective.masks and not self.tokenizer.has_mask)
        return self.model.complete(Size(vocabulary=rows, length=self.length))

    def networks(self, vocabulary: int, seed: int) -> dict[str, Network]:
        """Every network that the objective trains, by name, as its constructor leaves it."""
        models = {name: model for name, (model, _) in self.objective.networks(self.model).items()}
        sizes = {name: dataclasses.replace(self, model=model).size(vocabulary) for name, model in models.items()}
        return {name: model.make(sizes[name], seed) for name, model in models.items()}

    def learner(self, vocabulary: int, seed: int) -> Prediction:
        """The network to be trained, at its start. Each is drawn as its own model says, before any tensor is shared."""
        networks = self.networks(vocabulary, seed)
        for name, (model, _) in self.objective.networks(self.model).items():
            model.initialize(nn.ModuleDict({name: networks[name]}), seed)
        torch.manual_seed(seed)  # for what an objective of the user's own may add
        return self.objective.learner(**networks)

    def rescaled(self, steps: int) -> Recipe:
        """The same recipe over another number of steps, its schedule stretched or shrunk with it."""
        return dataclasses.replace(self, steps=steps, schedule=self.schedule.rescaled(steps / self.steps))


class Claim(Part):
    """A sentence about a measure that is answered yes, no or not enough evidence; `challenger` "" is every one."""

    measure: str = "loss"
    challenger: str = ""


class Better(Claim):
    """It differs from the baseline on the good side."""


class NoWorse(Claim):
    """It is not worse than the baseline by the margin or more; None is the study's margin, or the measure's usual one."""

    margin: float | None = None


class Equivalent(Claim):
    """It differs from the baseline by less than the margin; None is the study's margin, or the measure's usual one."""

    margin: float | None = None


class Lower(Claim):
    """Its value is below the baseline's."""


class Higher(Claim):
    """Its value is above the baseline's."""


class Price(Part):
    """What an hour of one device costs, with the date and the source of that figure; 0 where nobody pays."""

    dollars_per_hour: float = 0.0
    source: str = "own machine"
    date: str = ""


class Study(Part):
    """One question: a baseline and its challengers, a dictionary of recipes by name, over the same seeds.

    The verdict rests on the `primary` measure, lower or higher being `better`. `margin` is the smallest difference of it that
    matters; None is the usual one: for losses 0.5 % of the baseline's mean, about a tenth of the compute. `alpha` is the level of
    test, `claims` are sentences to be answered, such as NoWorse("loss"), and `paper` is the same study at its published size.

    `looks` are numbers of seeds at which the study is judged and may end early, the last being `seeds`: (3, 5, 8), each look at
    its share of alpha. `match` is what every challenger is made to have as much of as the baseline: by its steps, or by the
    value at the address `by`, such as "model.feedforward.ratio" (parameters need one). `grid` names two addresses whose every
    combination is an arm.
    """

    baseline: Recipe
    challengers: dict
    seeds: int = 5
    primary: str = "loss"
    better: Literal["lower", "higher"] = "lower"
    margin: float | None = None
    alpha: float = 0.05
    claims: tuple[Claim, ...] = ()
    price: Price = Price()
    looks: tuple[int, ...] = ()
    match: Literal["tokens", "parameters", "flops", "wallclock"] = "tokens"
    by: str = ""
    grid: tuple[str, ...] = ()
    paper: Any = None

    def arms(self) -> dict[str, Recipe]:
        """All arms by name, the baseline first."""
        return {"baseline": self.baseline, **self.challengers}


def check_arms(study: Study) -> None:
    """Refuse a study whose arms are not recipes with names of their own."""
    check(study)
    for name, recipe in study.challengers.items():
        named = isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{,99}", name)
        if not named or name == "baseline":
            raise Mistake(
                f"{name!r} cannot name a challenger; use letters, digits, '.', '_' or '-', and not 'baseline'"
            )
        twins = [other for other in study.challengers if other != name and other.lower() == name.lower()]
        if twins:
            raise Mistake(f"{name!r} and {twins[0]!r} would share a folder on some disks; give one another name")
        if not isinstance(recipe, Recipe):
            raise Mistake(f"challenger {name!r} must be a Recipe, e.g. at(baseline, {{...}}), got {recipe!r}")


def validate(study: Study) -> None:
    """Refuse what cannot be run, in one line that names the arm and the address."""
    check_arms(study)
    if not study.challengers:
        raise Mistake(
            "the study has no challengers; add one, e.g. challengers={'deeper': at(baseline, {'model.layers': 8})}"
        )
    if study.seeds < 1:
        raise Mistake(f"seeds = {study.seeds}: a study needs at least 1 seed, and 3 for a verdict; use --seeds 3")
    if study.seeds > MOST_SEEDS:
        raise Mistake(f"seeds = {study.seeds}: at most {MOST_SEEDS:,}; a verdict takes 3 to a few dozen")
    if not 0 < study.alpha < 1:
        raise Mistake(f"alpha = {study.alpha} must lie between 0 and 1, and is usually .05")
    if study.margin is not None and study.margin <= 0:
        raise Mistake(f"margin = {study.margin} settles nothing; state a number above 0")
    for name, recipe in study.arms().items():
        try:
            check(recipe)
            refuse(recipe)
        except Mistake as mistake:
            raise Mistake(f"arm {name}: {mistake}") from None
    _check_measures(study)
    _check_looks(study)
    _check_match(study)
    levels_of(study)
    for claim in study.claims:
        if claim.challenger and claim.challenger not in study.challengers:
            near = difflib.get_close_matches(claim.challenger, study.challengers, n=1, cutoff=0.0)[0]
            raise Mistake(
                f"a claim names the challenger {claim.challenger!r}, which there is not; did you mean {near!r}?"
            )


def _check_measures(study: Study) -> None:
    """Refuse a measure that no run will have, before any is trained."""
    known = {name for name, measure in MEASURES.items() if measure.unit != "hash"}
    for what, name, choice in (
        ("primary", study.primary, known),
        *(("a claim", claim.measure, known | set(COSTS)) for claim in study.claims),
    ):
        if name not in choice:
            near = difflib.get_close_matches(name, sorted(choice), n=1, cutoff=0.0)[0]
            raise Mistake(f"{what} names the measure {name!r}, which no run has; did you mean {near!r}?")
        objective = study.baseline.objective
        if name in OF_OBJECTIVES and name not in objective.measured:
            raise Mistake(f"{what} names the measure {name!r}, which the baseline's {type(objective).__name__} has not")
    for claim in study.claims:
        check(claim)
        margin = getattr(claim, "margin", None)
        if margin is not None and margin <= 0:
            raise Mistake(
                f"{type(claim).__name__}({claim.measure!r}): margin = {margin} settles nothing; state a number above 0"
            )
        known_as = MEASURES.get(claim.measure) or COSTS[claim.measure]
        if isinstance(claim, NoWorse | Better) and not known_as.better:
            raise Mistake(
                f"which way is {claim.measure!r} better? claim Lower({claim.measure!r}), Higher or Equivalent"
            )
        unit = (MEASURES.get(claim.measure) or COSTS[claim.measure]).unit
        usual = claim.measure == study.primary or unit.startswith(("nats", "bits"))
        if isinstance(claim, NoWorse | Equivalent) and claim.margin is None and not usual:
            kind = f"{type(claim).__name__}({claim.measure!r}, margin=…)"
            raise Mistake(f"no difference of {claim.measure} is known to matter; state one in {unit}: {kind}")


def _check_looks(study: Study) -> None:
    looks = study.looks
    if looks and (looks[0] < 3 or any(later <= earlier for earlier, later in pairwise(looks))):
        raise Mistake(f"looks = {looks} must rise from at least 3 seeds on, as in (3, 5, 8)")
    if looks and looks[-1] != study.seeds:
        raise Mistake(
            f"the last of looks = {looks} must be seeds = {study.seeds}: the looks were planned for {looks[-1]}"
        )


def _check_match(study: Study) -> None:
    if study.match == "parameters" and not study.by:
        raise Mistake('match = "parameters" needs the address that may change, e.g. by="model.feedforward.ratio"')
    if study.by and study.match not in ("parameters", "flops"):
        raise Mistake(
            f'by = {study.by!r} changes nothing with match = {study.match!r}; use match="parameters" or "flops"'
        )
    if study.by:
        for recipe in study.arms().values():
            if type(get(recipe, study.by)) not in (int, float):
                raise Mistake(f"by = {study.by!r} must be the address of a number, e.g. model.width")


def levels_of(study: Study) -> dict[str, tuple[Any, Any]]:
    """Arm -> its place in the grid that the study names; nothing where it names none."""
    if not study.grid:
        return {}
    if len(study.grid) != 2:
        raise Mistake(f'grid = {study.grid} must name two addresses, as in ("model.layers", "model.heads")')
    one, other = study.grid
    places = {name: (get(recipe, one), get(recipe, other)) for name, recipe in study.arms().items()}
    cells = [(row, column) for row in _each(places, 0) for column in _each(places, 1)]
    wrong = [cell for cell in cells if list(places.values()).count(cell) != 1]
    if wrong or len(_each(places, 0)) < 2 or len(_each(places, 1)) < 2:
        said = f"; {one} = {wrong[0][0]!r} with {other} = {wrong[0][1]!r} is not exactly one" if wrong else ""
        raise Mistake(f"grid = {study.grid}: every combination of two or more levels must be one arm{said}")
    return places


def _each(places: dict[str, tuple[Any, Any]], side: int) -> list[Any]:
    """The levels of one side, in their order where they have one."""
    found = list(dict.fromkeys(place[side] for place in places.values()))
    return sorted(found) if all(isinstance(level, int | float) for level in found) else found


def refuse(recipe: Recipe) -> None:
    """Ask every part whether it can work in this recipe; those of an objective's own model, whether they can in that."""
    others = {f"objective.{name}": model for name, (model, _) in recipe.objective.networks(recipe.model).items()}
    # the objective last, because it may build the networks to look at them
    for address, part in sorted(walk(recipe), key=lambda found: found[0] == "objective"):
        home = next((place for place in others if f"{address}.".startswith(f"{place}.")), None)
        asked = dataclasses.replace(recipe, model=others[home]) if home else recipe
        for reason in part.refuse(asked.model.complete(Size(vocabulary=2, length=recipe.length)), asked):
            raise Mistake(f"{address}: {reason}" if address else reason)


def network_of(recipe: Recipe, vocabulary: int) -> Prediction:
    """The network without weights, for counting."""
    with torch.device("meta"):
        return recipe.objective.learner(**recipe.networks(vocabulary, 0))
