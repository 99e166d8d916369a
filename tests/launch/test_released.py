"""Released causal models: honest ones of several makes pass, and each way to leak is found on the road where it leaks."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch

from headtohead import cli
from headtohead.launch.released import audit_model
from headtohead.spec import Mistake

transformers = pytest.importorskip("transformers")
SMALL = {"vocab_size": 48, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
PLACES = {"max_position_embeddings": 64}
GROUPED = {"num_key_value_heads": 1, "head_dim": 8}


def made(kind: str):
    """A tiny random model of a make."""
    torch.manual_seed(0)
    make = {
        "gpt2": lambda t: t.GPT2LMHeadModel(
            t.GPT2Config(vocab_size=48, n_embd=16, n_layer=2, n_head=2, n_positions=64, bos_token_id=0, eos_token_id=0)
        ),
        "llama": lambda t: t.LlamaForCausalLM(t.LlamaConfig(**SMALL, **PLACES, **GROUPED)),
        "mistral": lambda t: t.MistralForCausalLM(t.MistralConfig(**SMALL, **PLACES, **GROUPED, sliding_window=8)),
        "neox": lambda t: t.GPTNeoXForCausalLM(t.GPTNeoXConfig(**SMALL, **PLACES, bos_token_id=0, eos_token_id=0)),
        "opt": lambda t: t.OPTForCausalLM(
            t.OPTConfig(
                vocab_size=48,
                hidden_size=16,
                num_hidden_layers=2,
                num_attention_heads=2,
                ffn_dim=32,
                max_position_embeddings=64,
                word_embed_proj_dim=16,
                pad_token_id=1,
                bos_token_id=2,
                eos_token_id=2,
            )
        ),
        "bert decoder": lambda t: t.BertLMHeadModel(t.BertConfig(**SMALL, **PLACES, is_decoder=True)),
        "bert as it is": lambda t: t.BertLMHeadModel(t.BertConfig(**SMALL, **PLACES, is_decoder=False)),
        "bert masked": lambda t: t.BertForMaskedLM(t.BertConfig(**SMALL, **PLACES)),
        "t5": lambda t: t.T5ForConditionalGeneration(
            t.T5Config(vocab_size=48, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2)
        ),
    }
    return make[kind](transformers)


def saved(kind: str, folder: Path) -> Path:
    made(kind).save_pretrained(folder)
    return folder


def failed(found) -> dict[str, str]:
    return {one["when"]: one["sentence"] for one in found if one["result"] == "fail"}


@pytest.mark.parametrize("kind", ["gpt2", "llama", "mistral", "neox", "opt", "bert decoder"])
def test_an_honest_decoder_passes_on_every_road(kind, tmp_path):
    found = audit_model(saved(kind, tmp_path))
    assert not failed(found), found
    assert {one["when"] for one in found if one["result"] == "pass"} >= {
        "no mask given", "a mask of ones", "padded on the left", "padded on the right", "in training mode, dropout off",
        "gradient", "prefix alone", "batch", "padding", "cache", "cache, in pieces",
    }  # fmt: skip


def test_an_encoder_that_is_loaded_as_a_decoder_sees_the_future(tmp_path):
    """The classic: BertLMHeadModel without is_decoder."""
    found = audit_model(saved("bert as it is", tmp_path))
    assert {"no mask given", "a mask of ones", "gradient", "prefix alone"} <= failed(found).keys()
    assert "sees the future" in failed(found)["no mask given"]


@pytest.mark.parametrize("kind", ["bert masked", "t5"])
def test_a_model_that_reads_both_sides_is_not_accused(kind, tmp_path):
    found = audit_model(saved(kind, tmp_path))
    assert [(one["result"], one["sentence"]) for one in found] == [("pass", "It is not a causal model.")]


OWN = """
import torch
from transformers import LlamaConfig, LlamaForCausalLM


class OddConfig(LlamaConfig):
    model_type = "odd"


class Odd(LlamaForCausalLM):
    config_class = OddConfig

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, past_key_values=None, use_cache=None, **more):
        past = past_key_values.get_seq_length() if past_key_values is not None else 0
        if WHERE:
            rows, new = input_ids.shape
            attention_mask = torch.zeros(rows, 1, new, past + new, dtype=self.dtype)
        return super().forward(input_ids, attention_mask, position_ids, past_key_values, use_cache=use_cache, **more)
"""
LEAKS = {
    "always": ("True", {"no mask given", "a mask of ones", "padded on the left", "prefix alone", "cache, in pieces"}),
    "where no mask is given": ("attention_mask is None and not past", {"no mask given", "prefix alone"}),
    "where one is given": (
        "attention_mask is not None",
        {"a mask of ones", "padded on the left", "padded on the right"},
    ),
    "behind a cache": ("past > 0", {"cache, in pieces"}),
    "in training": ("self.training", {"in training mode, dropout off"}),
    "in a batch with padding on the left": (
        "attention_mask is not None and not attention_mask[:, 0].all()",
        {"padded on the left"},
    ),
    "nowhere": ("False", set()),
}


def own(where: str, folder: Path) -> Path:
    """A folder with code of its own: a Llama whose mask is forgotten at some places."""
    saved("llama", folder)
    (folder / "odd.py").write_text(OWN.replace("WHERE", where))
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "odd",
        "architectures": ["Odd"],
        "auto_map": {"AutoConfig": "odd.OddConfig", "AutoModelForCausalLM": "odd.Odd"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("case", LEAKS)
def test_a_mask_that_is_forgotten_somewhere_is_found_there(case, tmp_path, monkeypatch):
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    where, roads = LEAKS[case]
    found = failed(audit_model(own(where, tmp_path / f"m{abs(hash(case))}"), trusted=True))
    assert found.keys() >= roads and bool(found) == bool(roads), found
    if len(roads) == 1:
        assert found.keys() <= roads | {"cache", "padding"}, found


class Mixing(torch.nn.Module):
    """A causal model whose logits know the batch's mean; it takes nothing but ids and returns what transformers does."""

    def __init__(self, strength: float) -> None:
        super().__init__()
        self.table, self.strength = torch.nn.Embedding(48, 48), strength

    def forward(self, input_ids):
        x = self.table(input_ids)
        return transformers.modeling_outputs.CausalLMOutput(
            logits=x.cumsum(1) + self.strength * x.mean(0, keepdim=True)
        )


@pytest.mark.parametrize("strength", [0.0, 1e-3])
def test_a_batch_that_is_mixed_is_found_and_what_cannot_be_asked_is_skipped(strength):
    from headtohead.audit.released import audit

    torch.manual_seed(0)
    found = audit(Mixing(strength), 48, set())
    assert [one.when for one in found if one.result == "fail"] == (["batch"] if strength else [])
    assert {one.when for one in found if one.result == "skip"} == {"padding", "cache"}


def test_pickled_weights_and_foreign_code_are_refused_with_the_way_out(tmp_path):
    folder = saved("llama", tmp_path / "pickled")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(Mistake, match=r"pickled weights.*safetensors"):
        audit_model(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(Mistake, match="no weights"):
        audit_model(folder)
    with pytest.raises(Mistake, match="--trust-remote-code"):
        audit_model(own("True", tmp_path / "own"))


def test_the_command_says_what_it_found(tmp_path, monkeypatch, capsys):
    """Exit 1 for a leak, 0 for an honest model, and JSON for a program."""
    for kind, code in (("bert as it is", 1), ("gpt2", 0)):
        folder = tmp_path / kind.replace(" ", "-")
        saved(kind, folder)
        monkeypatch.setattr(sys, "argv", ["h2h", "audit", str(folder), "--json"])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert int(stop.value.code or 0) == code
        found = json.loads(capsys.readouterr().out)
        assert {one["id"] for one in found} == {"A-CAUSAL"} and bool(failed(found)) == bool(code)
        shutil.rmtree(folder)


def test_logits_that_are_no_numbers_are_not_called_a_look_at_the_future(tmp_path):
    """Broken weights are broken, which is another fault than a leak."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_positions=64, n_embd=8, n_layer=1, n_head=2))
    with torch.no_grad():
        model.transformer.ln_f.weight.fill_(float("nan"))
    model.save_pretrained(tmp_path)
    found = audit_model(tmp_path, False)
    failed = [finding for finding in found if finding["result"] == "fail"]
    assert failed and all("not all numbers" in finding["sentence"] for finding in failed)
