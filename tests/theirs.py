"""transformers' own models at random, and their weights by the names of ours."""

import re

import torch

# transformers' name -> ours; a dot stands for itself, and what is matched keeps its place.
BERT = {
    r"embeddings.word_embeddings": "embedding.token",
    r"embeddings.position_embeddings": "position.table",
    r"embeddings.token_type_embeddings": "embedding.segment",
    r"embeddings.LayerNorm": "embedding.norm",
    r"embeddings_project": "embedding.projection",
    r"encoder.layer.(\d+).attention.self.(query|key|value)": r"blocks.\1.attention.projection.\2",
    r"encoder.layer.(\d+).attention.output.dense": r"blocks.\1.attention.output",
    r"encoder.layer.(\d+).attention.output.LayerNorm": r"blocks.\1.attention_norm",
    r"encoder.layer.(\d+).intermediate.dense": r"blocks.\1.feedforward.up",
    r"encoder.layer.(\d+).output.dense": r"blocks.\1.feedforward.down",
    r"encoder.layer.(\d+).output.LayerNorm": r"blocks.\1.feedforward_norm",
    r"cls.predictions.transform.dense": "head.dense",
    r"cls.predictions.transform.LayerNorm": "head.norm",
    r"cls.predictions": "head",
    r"lm_head.dense": "head.dense",
    r"lm_head.layer_norm": "head.norm",
    r"lm_head": "head",
    r"generator_predictions.dense": "head.dense",
    r"generator_predictions.LayerNorm": "head.norm",
    r"generator_lm_head": "head",
    r"discriminator_predictions.dense": "head.dense",
    r"discriminator_predictions.dense_prediction": "head.out",
    r"classifier": "head.out",
}
LAYER = r"encoder.albert_layer_groups.(\d+).albert_layers.0."
ALBERT = {
    r"encoder.embedding_hidden_mapping_in": "embedding.projection",
    LAYER + r"attention.(query|key|value)": r"blocks.\1.attention.projection.\2",
    LAYER + r"attention.dense": r"blocks.\1.attention.output",
    LAYER + r"attention.LayerNorm": r"blocks.\1.attention_norm",
    LAYER + r"ffn": r"blocks.\1.feedforward.up",
    LAYER + r"ffn_output": r"blocks.\1.feedforward.down",
    LAYER + r"full_layer_layer_norm": r"blocks.\1.feedforward_norm",
    r"predictions.dense": "head.dense",
    r"predictions.LayerNorm": "head.norm",
    r"predictions": "head",
}
GPT2 = {
    r"wte": "embedding.token",
    r"wpe": "position.table",
    r"h.(\d+).ln_1": r"blocks.\1.attention_norm",
    r"h.(\d+).ln_2": r"blocks.\1.feedforward_norm",
    r"h.(\d+).attn.c_proj": r"blocks.\1.attention.output",
    r"h.(\d+).mlp.c_fc": r"blocks.\1.feedforward.up",
    r"h.(\d+).mlp.c_proj": r"blocks.\1.feedforward.down",
    r"ln_f": "final_norm",
}
ROLES = ("query", "key", "value")
NAMES = BERT | ALBERT | GPT2


def shaken(model, seed=0):
    """The model with every parameter at random, in evaluation mode: zeros and ones would hide one that is not copied."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.data.normal_(0.0, 0.1, generator=generator)
    return model.eval()


def weights(theirs):
    """All parameters of a transformers model, by the names of ours."""
    return {name: tensor for own, p in theirs.named_parameters() for name, tensor in _ours(own, p.detach())}


def _ours(own, tensor):
    name = re.sub(r"^(bert|roberta|electra|albert|transformer)\.", "", own)
    module, _, kind = name.rpartition(".")
    if re.search(r"c_(attn|proj|fc)$", module) and kind == "weight":
        tensor = tensor.T  # GPT-2 keeps its maps the other way round
    if module.endswith("attn.c_attn"):  # query, key and value in one
        place = f"blocks.{module.split('.')[1]}.attention.projection"
        yield from ((f"{place}.{role}.{kind}", part) for role, part in zip(ROLES, tensor.chunk(3), strict=True))
        return
    (their,) = (their for their in NAMES if re.fullmatch(their, module))
    yield f"{re.sub(their, NAMES[their], module)}.{kind}", tensor


def put(theirs, ours):
    """Give our body all the weights of a transformers model; each must have exactly one place."""
    ours.load_state_dict(weights(theirs), strict=True)
    return ours.eval()
