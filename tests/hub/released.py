"""Small models of transformers with every parameter drawn, and the folders that hold them."""

from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

WORDS = [
    "[PAD]",
    "[CLS]",
    "[SEP]",
    "[UNK]",
    "the",
    "[MASK]",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "a",
    "lazy",
    "dog",
    ".",
]
SIZES = {
    "vocab_size": len(WORDS),
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 14,
    "type_vocab_size": 2,
}
OWN_WORDS = {
    "distilbert": {
        "hidden_size": "dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "intermediate_size": "hidden_dim",
    },
    "gpt2": {
        "hidden_size": "n_embd",
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "intermediate_size": "n_inner",
        "max_position_embeddings": "n_positions",
        "hidden_act": "activation_function",
        "layer_norm_eps": "layer_norm_epsilon",
    },
}
OWN_WORDS["distilbert"] |= {"hidden_act": "activation"}
CLASSES = {
    "bert": ["BertForMaskedLM", "BertModel", "BertForPreTraining"],
    "roberta": ["RobertaForMaskedLM", "RobertaModel"],
    "distilbert": ["DistilBertForMaskedLM", "DistilBertModel"],
    "albert": ["AlbertForMaskedLM", "AlbertModel"],
    "electra": ["ElectraForMaskedLM", "ElectraForPreTraining", "ElectraModel"],
    "gpt2": ["GPT2LMHeadModel", "GPT2Model"],
}


def config_of(kind: str, **changes):
    named = {OWN_WORDS.get(kind, {}).get(key, key): value for key, value in (SIZES | changes).items()}
    if kind in ("distilbert", "gpt2"):
        named.pop("type_vocab_size")
    if kind == "gpt2":
        named |= {"bos_token_id": 2, "eos_token_id": 2}
    if kind in ("albert", "electra"):
        named.setdefault("embedding_size", 4)
    return transformers.AutoConfig.for_model(kind, **named)


def model_of(architecture: str, config, seed: int = 0):
    """A model in evaluation mode; its attention is written out, so that its maps can be compared."""
    config._attn_implementation = "eager"
    model = getattr(transformers, architecture)(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.15)
    return model.eval()


def save(model, folder: Path, masked: bool = True) -> Path:
    model.save_pretrained(folder)
    tokenizer(masked).save_pretrained(folder)
    return folder


def tokenizer(masked: bool = True):
    """A word a token; the mask stands in the middle of the others."""
    inner = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    if masked:
        inner.post_processor = processors.TemplateProcessing(
            "[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
        )
    names = {"pad": "[PAD]", "unk": "[UNK]"}
    names |= {"mask": "[MASK]", "cls": "[CLS]", "sep": "[SEP]"} if masked else {"eos": "[SEP]", "bos": "[SEP]"}
    given = {f"{name}_token": word for name, word in names.items()}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **given)
