"""Arms on different texts: the page says why nothing is compared, and its figures are recomputed by hand."""

import json
import statistics

import pytest
from report_folder import BASE, CHAL, judged, write_study

from headtohead.report import apart, card, evidence, markdown
from headtohead.report.document import Table, Text
from headtohead.report.folder import read_folder
from headtohead.report.page import compose
from headtohead.report.terminal import verdict_table
from headtohead.verdict import words
from headtohead.verdict.sentence import sentence


def rewrite(path, **more):
    path.write_text(json.dumps(json.loads(path.read_text()) | more))


def apart_study(out, name="another"):
    """The challenger was scored on a text of its own."""
    write_study(out, {"baseline": BASE, "small": CHAL})
    for seed in range(5):
        rewrite(out / f"arms/small/seed{seed}/measures.json", evaluation="text-2", unigram=5.0, bits_per_character=4.9)
    study = json.loads((out / "study.json").read_text())
    study["texts"]["small"] = study["texts"]["small"] | {"name": name, "vocabulary": 99, "hash": "beef"}
    (out / "study.json").write_text(json.dumps(study))
    return read_folder(judged(out))


def test_the_page_says_why_and_what_stands_beside(tmp_path):
    (section,) = apart.sections(apart_study(tmp_path / "study"))
    warning, beside, table = section.blocks
    assert isinstance(warning, Text) and warning.tone == "warning" and section.warns
    assert warning.text.startswith("INCOMPARABLE: small, scored on another text than the baseline")
    assert isinstance(beside, Text) and isinstance(table, Table)
    names, ours, theirs = (list(column) for column in zip(*table.rows, strict=True))
    assert table.columns == ["", "baseline", "small"] and names[-1] == "steps to 90 % of the gain"
    assert ours[:2] == ["a-text", "1,024"] and theirs[:2] == ["another", "99"]
    gained = [100 * (5.0 - loss) / 5.0 for loss in CHAL]
    assert theirs[4].startswith(f"{statistics.mean(gained):.1f} %") and f"{max(gained):.1f} %" in theirs[4]
    assert (ours[5], theirs[5]) == ("–", "4.900")
    # the training loss falls by .4 a step from 7.0; 90 % of the way from 5.5 to 4.2 is 4.33, passed at the last of 8 steps
    assert ours[7] == "8.00"


def test_the_same_text_in_other_tokens_is_told_apart(tmp_path):
    (section,) = apart.sections(apart_study(tmp_path / "study", "a-text"))
    assert "small, scored on the baseline's text in other tokens" in section.blocks[0].text
    assert "another text" not in section.blocks[0].text


def test_where_all_arms_have_one_text_nothing_is_said(tmp_path):
    out = write_study(tmp_path / "study", {"baseline": BASE, "small": CHAL})
    assert list(apart.sections(read_folder(judged(out)))) == []


@pytest.mark.parametrize(
    ("losses", "entropy", "steps"),
    [
        ([5.0, 4.0, 3.0, 2.0, 1.0], 5.0, 5),  # 90 % of the way to 1.0 is 1.4
        ([5.0, 1.3, 1.2, 1.1, 1.0], 5.0, 2),
        ([3.0, 3.1, 3.2], 3.0, None),  # nothing was gained
        ([], 3.0, None),
        ([4.0, 0.0] * 100, 3.0, 4),  # means over four steps are all 2.0
    ],
)
def test_steps_to_ninety_per_cent(losses, entropy, steps):
    assert apart._steps(dict(enumerate(losses)), entropy) == steps


def test_what_no_row_has_is_told_with_its_share():
    told = evidence._examples({"rows": 6, "truncated": 2, "dropped": 2})
    assert told == ["6 rows", "2 truncated (25.0 %)", "2 dropped (25.0 %)"]
    assert evidence._examples({"windows": 1000}) == ["1,000 windows"]


def test_of_different_texts_nothing_is_subtracted(tmp_path):
    folder = apart_study(tmp_path / "study")
    entry = folder.verdict["arms"]["small"]
    assert (entry["verdict"], entry["qualifiers"][0]) == ("INVALID", "INCOMPARABLE")
    assert [entry[name] for name in ("effect", "interval", "relative", "perplexity_ratio", "p", "p_adjusted")] == [
        None
    ] * 6
    assert card.effects(entry, folder.verdict["primary"]) == [card.NOT_GIVEN]
    assert "no difference is given" in sentence("small", entry, folder.verdict)
    text = markdown.render(compose(folder)) + verdict_table(folder.verdict)
    for seed in range(5):
        difference = CHAL[seed] - BASE[seed]
        assert not any(f"{difference:.{digits}f}".lstrip("-") in text for digits in (4, 5))
    assert "better in" not in text and "perplexity ×" not in text
    assert card.NOT_GIVEN in text and "No difference is given" in text


def test_the_label_is_the_verdicts_own():
    assert card.INCOMPARABLE == words.INCOMPARABLE
