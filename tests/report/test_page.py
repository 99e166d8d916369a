"""The page of whole studies: what it says, that it stands alone, and that what a user wrote stays text."""

import json
import re
import statistics
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from report_folder import BASE, CHAL, TEXT, audit, fail_run, judged, write_study

from headtohead.report import markdown, page
from headtohead.report.document import Code, Document, Section
from headtohead.report.figures import DARK
from headtohead.report.folder import read_folder
from headtohead.report.page import TONES, compose, figures, write_report
from headtohead.spec import Mistake
from headtohead.verdict.words import WORDS

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """A page, read: its text, and every tag with its attributes. Fails where tags do not close as they should."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.words, self.tables = [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("style", "title"):
            return
        self.words.append(data)
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data

    @property
    def text(self):
        return " ".join("".join(self.words).replace("\N{NO-BREAK SPACE}", " ").split())

    def table(self, first, *more):
        """The only table whose head begins with these cells, row by row; a cell's blanks are single."""
        head = [first, *more]
        cells = [[[" ".join(cell.split()) for cell in row] for row in table] for table in self.tables]
        [found] = [table for table in cells if table[0][: len(head)] == head]
        return found[1:]


def drawn(out):
    write_report(judged(out))
    return Page((out / "report.html").read_text(encoding="utf-8"))


@pytest.fixture
def finished(tmp_path):
    return write_study(tmp_path / "s", {"baseline": BASE, "small": CHAL})


def rewrite(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


# ---- what it says --------------------------------------------------------------------------------------------------


def test_a_finished_study(finished):
    shown = drawn(finished).text
    for part in (
        "Does a smaller head lose anything?",
        "It was said to lose nothing.",
        "BETTER small (negligible, untuned, single-budget)",
        "oss −0.0104 nats per token, 95 % interval −0.0145 to −0.0063",
        "model.head: Big(beta=1.0) -> Small(size=0)",
        "Every arm's loss lies below the unigram loss",
        "$1.212 an hour of one device (a price list, 2026-11-01)",
        "10,000 tokens",
        "15,000 tokens, 1.50 times the training text",
        "pages of a book, free for all",
        "eager: no C++ compiler on PATH",
        "float32",
        "2.13.0",
        "all runs as declared",
        "h2h run smaller --seeds 5 --steps 40",
        "the hashes of all batches agree",
    ):
        assert part in shown, part


def test_every_seed_is_there(finished):
    rows = drawn(finished).table("seed", "baseline", "challenger", "difference")
    numbers = [[cell.replace("−", "-") for cell in row] for row in rows]
    for seed, row in enumerate(numbers[:-1]):
        assert row[0] == f"seed {seed}"
        expected = [BASE[seed], CHAL[seed], CHAL[seed] - BASE[seed]]
        assert [float(cell) for cell in row[1:]] == pytest.approx(expected, abs=5.01e-5)
    means = [statistics.fmean(BASE), statistics.fmean(CHAL), -0.0104]
    assert [float(cell) for cell in numbers[-1][1:]] == pytest.approx(means, abs=5.01e-5)
    assert all(row[3].startswith(("−", "+")) for row in rows)


def test_costs_are_those_of_the_runs(finished):
    baseline, small = drawn(finished).table("arm", "parameters", "training FLOPs")
    assert baseline == ["baseline", "1,000", "6.50×10¹¹", "1.67 min", "512 MiB", "$0.034"]  # 100 s at $1.212 an hour
    assert small[:5] == ["small", "800", "6.50×10¹¹", "2.50 min", "512 MiB"]
    assert float(small[5].lstrip("$")) == pytest.approx(150 * 1.212 / 3600, abs=6e-4)


def test_how_far_below_the_unigram_loss(finished):
    baseline, small = drawn(finished).table("arm", "loss", "unigram loss")
    assert baseline[0] == "baseline" and small[0] == "small"
    assert float(baseline[1]) == pytest.approx(3.4106, abs=5e-4) and float(baseline[2]) == pytest.approx(5.5, abs=1e-3)
    assert float(small[3].lstrip("+")) == pytest.approx(5.5 - 3.4002, abs=1e-3)
    assert small[4] == "38 %"  # 2.0998 of 5.5


def test_a_loss_above_the_unigram_loss_is_said_in_front(finished):
    for seed in range(5):
        rewrite(finished / f"arms/small/seed{seed}/measures.json", unigram=3.3)
    shown = drawn(finished).text
    assert "Read with care: Has it learnt anything?" in shown
    assert "The loss of small is not below the unigram loss" in shown
    assert "Every arm's loss lies below" not in shown


def test_what_starts_alike(finished):
    rows = drawn(finished).table("arm", "parameters", "start alike")
    assert rows == [["baseline", "1,000", "800", "80.0 %"], ["small", "800", "800", "100 %"]]


def test_equal_batches_have_equal_hashes_and_others_have_not(finished):
    baseline, small = drawn(finished).table("arm", "seed 0")
    assert baseline[1:] == small[1:] and len(set(baseline[1:])) == 5
    lines = (finished / "arms/small/seed2/steps.jsonl").read_text().splitlines()
    (finished / "arms/small/seed2/steps.jsonl").write_text(
        "\n".join([lines[0].replace("2-0", "9-9"), *lines[1:]]) + "\n"
    )
    other = drawn(finished)
    baseline, small = other.table("arm", "seed 0")
    assert [one == two for one, two in zip(baseline[1:], small[1:], strict=True)] == [True, True, False, True, True]
    assert "small did not see the baseline's batches: seed 2 from step 0 on." in other.text
    assert "Read with care: Same data?" in other.text


def test_different_environments_are_told(finished):
    rewrite(finished / "arms/small/seed2/environment.json", torch="2.11.0")
    shown = drawn(finished).text
    assert "different environments" in shown and "2.13.0" in shown and "2.11.0" in shown


def test_numbers_are_not_finer_than_the_interval(finished):
    rows = drawn(finished).table("arm", "mean", "seed 0")
    losses = next(place for place, row in enumerate(rows) if row[0].startswith("loss (nats per token)"))
    assert rows[losses + 1] == ["baseline", "3.4106", "3.4120", "3.4050", "3.4210", "3.3980", "3.4170"]


# ---- verdicts of all kinds -----------------------------------------------------------------------------------------


def test_invalid(finished):
    failed = [audit("fail", evidence="moved by 0.374"), audit("skip", id="A-NOISE", sentence="No noise was tried.")]
    (finished / "arms/small/seed1/audits.json").write_text(json.dumps(failed))
    found = drawn(finished)
    shown = found.text
    assert "INVALID small (A-CAUSAL, " in shown
    assert "not fair, so there is no verdict" in shown
    assert "A-CAUSAL failed (fatal, seed 1): It sees the future." in shown
    first = found.table("arm", "audit", "when", "severity", "result")[0]
    assert first == ["small", "A-CAUSAL", "after", "fatal", "fail", "It sees the future.", "moved by 0.374", "1"]


def test_unstable_and_missing(tmp_path):
    out = write_study(tmp_path / "s", {"baseline": BASE, "small": [*CHAL[:4], None]})
    fail_run(out / "arms/small/seed3", "step 2: the loss is nan")
    found = drawn(out)
    assert "UNSTABLE small" in found.text and "small seed 3 failed: step 2: the loss is nan" in found.text.replace(
        "challenger seed", "small seed"
    )
    rows = found.table("seed", "baseline", "challenger", "difference")
    assert [row[2:] for row in rows[3:5]] == [["failed", "–"], ["missing", "–"]]
    digests = found.table("arm", "seed 0")[1]
    assert digests[4].endswith("(3 batches)") and digests[5] == "missing"
    assert "1 failed run, 1 missing run" in found.text


def test_inconclusive(tmp_path):
    out = write_study(tmp_path / "s", {"baseline": [3.4, 3.41, 3.42], "small": [3.389, 3.414, 3.411]}, margin=0.005)
    shown = drawn(out).text
    assert "INCONCLUSIVE small" in shown and "no evidence that there is no difference" in shown
    assert "h2h run smaller --seeds 3 --steps 40 --confirm " in shown


def test_single_seed_without_price_route_or_environment(tmp_path):
    out = write_study(tmp_path / "s", {"baseline": BASE[:1], "small": CHAL[:1]}, price=None)
    (out / "route.json").unlink()
    (out / "arms/small/seed0/environment.json").unlink()
    shown = drawn(out).text
    assert "UNREPLICATED small" in shown and "holds no route.json" in shown
    assert "None" not in shown.replace("None failed", "") and "nan" not in shown and "$" not in shown


def test_all_runs_failed(tmp_path):
    out = write_study(tmp_path / "s", {"baseline": BASE[:2], "small": CHAL[:2]})
    for seed in (0, 1):
        fail_run(out / f"arms/small/seed{seed}", "step 2: the loss is nan")
    shown = drawn(out).text
    assert "UNSTABLE small" in shown and "no pair of finished runs" in shown


def test_thirty_challengers(tmp_path):
    arms = {"baseline": BASE} | {
        f"arm{n}": [loss + 0.002 * n + 0.001 * (seed % 2) for seed, loss in enumerate(BASE)] for n in range(30)
    }
    out = write_study(tmp_path / "s", arms)
    found = drawn(out)
    rows = found.table("challenger", "verdict", "effect")
    assert [row[0] for row in rows] == [f"arm{n}" for n in range(30)]  # sorted by the effect
    assert sum(tag == "details" for tag, _ in found.tags) == 30
    assert len(figures(compose(read_folder(out)))) == 2  # not one for each challenger
    assert (out / "report.html").stat().st_size < 1_500_000


# ---- mistakes ------------------------------------------------------------------------------------------------------


def test_an_unfinished_study_is_refused_with_the_command(finished):
    judged(finished)
    rewrite(finished / "arms/small/seed4/status.json", state="running")
    with pytest.raises(Mistake, match=r"small seed 4 \(running, step 8 of 8\); finish it with: h2h run smaller"):
        write_report(finished)
    assert not (finished / "report.html").exists()


def test_a_study_that_was_not_judged(finished):
    with pytest.raises(Mistake, match=r"no verdict.json; judge the study first with: h2h verdict"):
        write_report(finished)


def test_a_verdict_on_another_study(finished):
    judged(finished)
    rewrite(finished / "verdict.json", lock="other")
    with pytest.raises(Mistake, match="about another study"):
        write_report(finished)


def test_a_folder_without_a_study(tmp_path):
    with pytest.raises(Mistake, match=r"holds no study\.json"):
        write_report(tmp_path)


# ---- one file that stands alone ------------------------------------------------------------------------------------


def test_nothing_is_fetched(finished):
    drawn(finished)
    html = (finished / "report.html").read_text(encoding="utf-8")
    found = Page(html)
    assert not {"script", "link", "iframe", "img", "object", "embed", "image", "use"} & {tag for tag, _ in found.tags}
    places = {attrs["id"] for _, attrs in found.tags if "id" in attrs}
    links = [value for _, attrs in found.tags for name, value in attrs.items() if name in ("href", "src", "xlink:href")]
    assert links and all(link.startswith("#") and link[1:] in places for link in links)
    assert not [name for _, attrs in found.tags for name in attrs if name.startswith("on")]
    outside = set(re.findall(r"(?:https?:)?//[^\s\"'<>)]+", html)) - {
        "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink",
    }  # fmt: skip
    assert outside == set()
    assert "@import" not in html and "url(" not in html


def test_figures_have_words_and_tables_have_heads(finished):
    found = drawn(finished)
    pictures = [attrs for _, attrs in found.tags if attrs.get("role") == "img"]
    assert len(pictures) == 2 and all(attrs["aria-label"] for attrs in pictures)
    assert "seed 0 −0.0110" in pictures[0]["aria-label"].replace("\N{NO-BREAK SPACE}", " ")
    assert "from 7." in pictures[1]["aria-label"]
    heads = [attrs for tag, attrs in found.tags if tag == "th"]
    assert heads and all(attrs.get("scope") in ("col", "row", "rowgroup") for attrs in heads)
    named = {attrs["id"] for _, attrs in found.tags if "id" in attrs}
    assert all(attrs["aria-labelledby"] in named for tag, attrs in found.tags if tag == "table")
    assert [tag for tag, _ in found.tags if tag == "h1"] == ["h1"]
    assert ("html", {"lang": "en"}) in found.tags


def test_ids_occur_once(finished):
    ids = [attrs["id"] for _, attrs in drawn(finished).tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_every_colour_of_the_figures_has_a_dark_counterpart(finished):
    judged(finished)
    for figure in figures(compose(read_folder(finished))):
        svg = page.svg(figure.spec)
        ET.fromstring(svg)
        colours = set(re.findall(r'(?:fill|stroke)="(#[0-9a-fA-F]{3,8})"', svg))
        assert colours and {colour.lower() for colour in colours} <= set(DARK), figure.name


def test_every_verdict_has_a_colour():
    style = page.TEMPLATE.read_text(encoding="utf-8")
    assert set(WORDS) < set(TONES)
    for tone in set(TONES.values()):
        assert f".{tone} {{" in style and f"--{tone}:" in style and f".edge-{tone}" in style


EVIL = "<script>alert(1)</script>\"'&{{7*7}}{% raw %}"


def test_what_a_user_wrote_stays_text(tmp_path):
    arm = "a<b>&'\"x"
    out = write_study(
        tmp_path / "s", {"baseline": BASE, arm: CHAL}, question=EVIL, study=EVIL, lock=EVIL, size=EVIL,
        changed={arm: {EVIL: [EVIL, EVIL]}}, texts={"baseline": {**TEXT, "name": EVIL, "note": EVIL}},
        price={"dollars_per_hour": 1.0, "source": EVIL, "date": EVIL},
        primary={"name": "loss", "unit": f"nats per {EVIL}", "better": "lower"},
    )  # fmt: skip
    (out / "arms" / arm / "seed1/audits.json").write_text(json.dumps([audit("fail", evidence=EVIL, sentence=EVIL)]))
    found = drawn(out)
    tags = {tag for tag, _ in found.tags}
    assert "script" not in tags and "b" not in tags
    assert found.text.count(EVIL) > 10 and "49" not in re.findall(r"\b49\b", found.text)
    assert f"INVALID {arm}" in found.text
    told = (out / "report.md").read_text(encoding="utf-8")
    quoted = re.sub(r"^(```+)\n.*?\n\1$", "", told, flags=re.M | re.S)  # a command is shown as it is typed
    assert "<script" not in quoted and "<b>" not in quoted and "<script" in told


def test_no_code_ends_its_own_block():
    assert markdown.render(Document("t", [], [], [Section("s", [Code("a\n```\nb")])])).endswith(
        "\n````\na\n```\nb\n````\n"
    )


# ---- the same as Markdown ------------------------------------------------------------------------------------------


def test_markdown_says_the_same(finished):
    found = drawn(finished)
    told = (finished / "report.md").read_text(encoding="utf-8")
    plain = re.sub(r"\\(.)", r"\1", told).replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")
    for table in found.tables:
        for row in table:
            for cell in row:
                assert " ".join(cell.replace("\N{NO-BREAK SPACE}", " ").split()) in plain
    for block in re.findall(r"(?:^\|.*\n?)+", told, re.M):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1, block
    assert told.startswith("# smaller (demo)\n") and "**BETTER**" in told


def test_written_again_it_is_the_same(finished):
    write_report(judged(finished))
    first = (finished / "report.html").read_bytes(), (finished / "report.md").read_bytes()
    write_report(finished)
    assert ((finished / "report.html").read_bytes(), (finished / "report.md").read_bytes()) == first
    assert not [path for path in finished.iterdir() if path.name.endswith(".tmp")]
