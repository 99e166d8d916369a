"""Commands on texts: prepare one ahead of time, and show what it is like."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headtohead import spec
from headtohead.options import Json, Settings, Size
from headtohead.request import Options, builtin_studies, find_study, parse_settings
from headtohead.spec import Mistake, short

if TYPE_CHECKING:
    from headtohead.study import Recipe

app = typer.Typer(help="Prepare a text ahead of time, or show what it is like.", rich_markup_mode=None)
Where = Annotated[
    str,
    typer.Argument(
        metavar="STUDY|TEXT", help="A study, or a text: a name of `h2h list texts`, a file, a folder, hf:DATASET."
    ),
]


@app.command()
def prepare(
    places: Annotated[list[str], typer.Argument(metavar="STUDY|TEXT…", help="Studies, or texts.")],
    settings: Settings = None,
    size: Size = "demo",
    as_json: Json = False,
) -> None:
    """Read, split and encode texts into the cache, from which every arm and seed reads."""
    from headtohead.text.cache import manifest

    for place in places:
        for recipe in recipes_of(place, settings, size):
            start = time.perf_counter()
            found = manifest(recipe.text, recipe.tokenizer, recipe.split)
            found["seconds"] = time.perf_counter() - start
            print(json.dumps(found, indent=1) if as_json else _prepared(recipe, found))


@app.command()
def show(place: Where, settings: Settings = None, size: Size = "demo", as_json: Json = False) -> None:
    """Documents, tokens, types, lengths, what is cut off or left out, and rows decoded back."""
    from headtohead.report.texts import render
    from headtohead.text.cache import manifest, prepare
    from headtohead.text.survey import survey

    for number, recipe in enumerate(recipes_of(place, settings, size)):
        if not number:
            print(f"preparing {recipe.text.title()} …", file=sys.stderr, flush=True)
        tokens = prepare(recipe.text, recipe.tokenizer, recipe.split)
        width = recipe.length + recipe.objective.ahead
        found = {
            "name": tokens.name,
            "note": tokens.note,
            "hash": tokens.fingerprint,
            "tokenizer": short(recipe.tokenizer),
        }
        found |= manifest(recipe.text, recipe.tokenizer, recipe.split)
        found |= survey(tokens, recipe.examples, recipe.length, width)
        print(json.dumps(found, indent=1, ensure_ascii=False) if as_json else render(found))


def recipes_of(place: str, settings: list[str] | None, size: str) -> list[Recipe]:
    """A recipe for each different way in which a study's arms prepare text, or the default one with that text."""
    from headtohead.plan import load_study, parse_value, with_options
    from headtohead.spec import at, check
    from headtohead.study import Recipe
    from headtohead.text.listing import text_at

    pairs = parse_settings(settings or [])
    if place.endswith(".py") or place in builtin_studies():
        study = with_options(load_study(find_study(place)), Options(size, settings=pairs))
        kinds = {(arm.text, arm.tokenizer, arm.split, arm.examples): arm for arm in study.arms().values()}
        return list(kinds.values())
    if size != "demo":
        raise Mistake(f"--size {size} chooses a study's size, and {place} is a text; leave it out")
    changes = {address: parse_value(value) for address, value in pairs}
    recipe = at(Recipe(text=text_at(place)), changes)
    check(recipe)
    _refuse(recipe)
    return [recipe]


def _refuse(recipe: Recipe) -> None:
    """Ask the parts that prepare the text alone: what the others cannot work with is a matter of training."""
    size = recipe.model.complete(spec.Size(vocabulary=2, length=recipe.length))
    for name in ("text", "tokenizer", "split"):
        for address, part in spec.walk(getattr(recipe, name), name):
            for reason in part.refuse(size, recipe):
                raise Mistake(f"{address}: {reason}")


def _prepared(recipe: Recipe, found: dict[str, Any]) -> str:
    sides, seconds = found["sides"], found["seconds"]
    size = sum(side["bytes"] for side in sides.values())
    tokens = sum(side["tokens"] for side in sides.values())
    return (
        f"{recipe.text.title()}: {size / 1e6:,.1f} MB, {tokens:,} tokens, {seconds:.1f} s, in {Path(found['folder'])}"
    )
