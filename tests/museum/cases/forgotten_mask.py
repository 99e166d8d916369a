"""Released decoders have left the mask out of their attention (transformers, issue 48745), on one road to their logits or all.

`h2h audit MODEL_DIR` asks the model as it was loaded by every road, and A-CAUSAL names the one that leaks. The neighbours
are the same weights with the mask in place.
"""

import torch
from exhibit import by_audits

from headtohead.audit import Finding, released
from headtohead.launch.released import audit_model

SMALL = {
    "vocab_size": 48, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 64,
}  # fmt: skip


def decoder(folder, masked):
    """BERT as a decoder, saved and loaded again; without `is_decoder` its attention reads both sides."""
    from transformers import BertConfig, BertLMHeadModel

    torch.manual_seed(0)
    BertLMHeadModel(BertConfig(**SMALL, is_decoder=masked)).save_pretrained(folder)
    found = audit_model(folder)
    return by_road(Finding(**{name: one[name] for name in Finding._fields}) for one in found)


def without_a_mask_given(folder, masked):
    """A Llama whose mask is missing where the caller gives none, as most callers do."""
    from transformers import LlamaConfig, LlamaForCausalLM

    class Forgetful(LlamaForCausalLM):
        def forward(self, input_ids=None, attention_mask=None, past_key_values=None, **more):
            seen = past_key_values.get_seq_length() if past_key_values is not None else 0
            if attention_mask is None and not seen and not masked:
                rows, length = input_ids.shape
                attention_mask = torch.zeros(rows, 1, length, length, dtype=self.dtype)
            return super().forward(input_ids, attention_mask, past_key_values=past_key_values, **more)

    torch.manual_seed(0)
    return by_road(released.audit(Forgetful(LlamaConfig(**SMALL)).eval(), 48, {0, 1, 2}))


def by_road(findings):
    """The road is told with the evidence."""
    return by_audits(each._replace(evidence=f"{each.when}: {each.evidence}") for each in findings)


PAIRS = {
    "a decoder without its mask": ((decoder, False), (decoder, True)),
    "no mask where none is given": ((without_a_mask_given, False), (without_a_mask_given, True)),
}
CAUGHT_BY = {"A-CAUSAL": r"no mask given: changed tokens move earlier logits by \d\.\de-0[0-4] "}


def look(thing, folder):
    make, masked = thing
    return make(folder, masked)
