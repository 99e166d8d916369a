"""Our normalizers and ALiBi inside transformers' models, against its eager attention and formulas by hand."""

import math
from functools import partial

import pytest
import released
import torch
import transformers

from headtohead import hub

equal = partial(torch.testing.assert_close, atol=1e-5, rtol=1e-5)
IDS = torch.tensor([[1, 4, 6, 7, 8, 9], [1, 5, 3, 0, 0, 0]])
REAL = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]])


def llama():
    config = transformers.LlamaConfig(
        vocab_size=15,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=12,
        pad_token_id=0,
    )
    return "LlamaForCausalLM", config


MODELS = {
    "llama": llama,
    "gpt2": lambda: ("GPT2LMHeadModel", released.config_of("gpt2", hidden_size=16, num_attention_heads=4)),
    "bert": lambda: ("BertForMaskedLM", released.config_of("bert", hidden_size=16, num_attention_heads=4)),
}


@pytest.fixture(params=MODELS)
def model(request):
    assert "headtohead_softmax_n" in hub.register()
    return released.model_of(*MODELS[request.param]())


def outputs(model, implementation, ids=IDS, real=REAL, **settings):
    for name, value in settings.items():
        setattr(model.config, name, value)
    model.set_attn_implementation(implementation)
    with torch.inference_mode():
        return model(ids, attention_mask=real, output_attentions=True)


@pytest.mark.parametrize(
    ("name", "settings"), [("softmax_n", {"softmax_n": 0.0}), ("clipped_softmax", {"clipped_softmax": (1.0, 0.0)})]
)
def test_what_is_the_softmax_is_eager(model, name, settings):
    ours, eager = outputs(model, f"headtohead_{name}", **settings), outputs(model, "eager")
    kept = REAL.bool()
    equal(ours.logits[kept], eager.logits[kept])
    for mine, other in zip(ours.attentions, eager.attentions, strict=True):
        equal(mine[0], other[0])


def scores_of(model, caught):
    """The first layer's scores, taken from inside transformers' own eager attention."""
    original = torch.nn.functional.softmax

    def watching(x, *args, **named):
        caught.append(x)
        return original(x, *args, **named)

    torch.nn.functional.softmax = watching
    try:
        outputs(model, "eager")
    finally:
        torch.nn.functional.softmax = original
    return caught[0].double()


def slopes(heads):
    return torch.tensor([2 ** (-8 * k / heads) for k in range(1, heads + 1)])[:, None, None]


DISTANCE = (torch.arange(6)[:, None] - torch.arange(6)[None]).abs()
FORMULAS = {
    "softmax_n": ({"softmax_n": 2.5}, lambda x: x.exp() / (2.5 + x.exp().sum(-1, keepdim=True))),
    "learned_sink": ({}, lambda x: x.exp() / (1 + x.exp().sum(-1, keepdim=True))),
    "clipped_softmax": ({"clipped_softmax": (1.1, -0.2)}, lambda x: (1.3 * x.softmax(-1) - 0.2).clamp(0, 1)),
    "alibi": ({}, lambda x: (x - slopes(4) * DISTANCE).softmax(-1)),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_the_first_layer_is_the_formula(model, name):
    settings, formula = FORMULAS[name]
    scores = scores_of(model, [])
    scores = scores.masked_fill(scores < -1e30, -math.inf)
    found = outputs(model, f"headtohead_{name}", **settings).attentions[0].double()
    equal(found[0], formula(scores)[0])
    equal(found[1, :, :3], formula(scores)[1, :, :3])


def test_alibi_is_the_same_with_a_cache():
    hub.register()
    model = released.model_of(*llama())
    whole = outputs(model, "headtohead_alibi", IDS[:1], REAL[:1]).logits
    with torch.inference_mode():
        past = model(IDS[:1, :4], use_cache=True).past_key_values
        rest = model(IDS[:1, 4:], past_key_values=past).logits
    equal(rest, whole[:, 4:])


def test_sinks_of_the_model_are_used_and_learn():
    hub.register()
    model = released.model_of(*llama())
    attention = model.model.layers[0].self_attn
    attention.sinks = torch.nn.Parameter(torch.full((4,), 1.5))
    model.set_attn_implementation("headtohead_learned_sink")
    scores = scores_of(model, [])
    scores = scores.masked_fill(scores < -1e30, -math.inf)
    model.set_attn_implementation("headtohead_learned_sink")
    out = model(IDS, attention_mask=REAL, output_attentions=True)
    equal(out.attentions[0][0].double(), (scores.exp() / (math.exp(1.5) + scores.exp().sum(-1, keepdim=True)))[0])
    out.logits.sum().backward()
    assert attention.sinks.grad.abs().min() > 0
