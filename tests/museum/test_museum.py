"""The museum: what is wrong is caught by what the case names, with its evidence; its honest neighbour is accused of nothing."""

import re
from pathlib import Path

import pytest
from exhibit import cases, visit
from figures import heading, lead

CASES = cases()
PAGE = (Path(__file__).parents[2] / "docs" / "museum.md").read_text(encoding="utf-8")
EVERY = [pytest.param(CASES[name], pair, id=f"{name}: {pair}") for name in CASES for pair in CASES[name].PAIRS]


@pytest.mark.parametrize(("case", "pair"), EVERY)
def test_the_wrong_one_is_caught_and_its_neighbour_is_not(case, pair):
    wrong, honest = (visit(case, thing) for thing in case.PAIRS[pair])
    for name, evidence in case.CAUGHT_BY.items():
        found = [seen.evidence for seen in wrong if seen.by == name and seen.caught]
        assert any(re.search(evidence, told) for told in found), (name, wrong)
    assert not [seen for seen in honest if seen.caught]
    assert {seen.by for seen in honest} == {seen.by for seen in wrong}  # it was looked at in the same ways


def test_every_case_is_on_the_page_and_every_section_is_a_case():
    assert re.findall(r"^## (.*)$", PAGE, re.M) == [heading(name) for name in CASES]
    for case in CASES.values():
        assert lead(case) in PAGE
        for pair in case.PAIRS:
            assert f"**{pair}**" in PAGE
        assert all(f"| {name} |" in PAGE for name in case.CAUGHT_BY)


def test_every_case_tells_who_what_and_how_in_few_words():
    for name, case in CASES.items():
        sentences = re.findall(r"[.?!](?:\s|$)", case.__doc__)
        assert 2 <= len(sentences) <= 7, name
        assert case.CAUGHT_BY and case.PAIRS, name
