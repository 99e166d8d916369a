"""Any recipe as a model of transformers: this file and what it imports travel with the weights."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import (
    BaseModelOutput,
    CausalLMOutput,
    MaskedLMOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)

from headtohead.hub.assembled import assemble


class HeadToHeadConfig(PretrainedConfig):
    """The shape of the tables; the parts are in assembled.py. `causal`: the last token speaks for a text, not the first."""

    model_type = "headtohead"

    def __init__(
        self, vocab_size: int = 2, length: int = 1, hidden_size: int = 1, causal: bool = False, **more: Any
    ) -> None:
        self.vocab_size, self.length, self.hidden_size, self.causal = vocab_size, length, hidden_size, causal
        self.max_position_embeddings = length
        more.setdefault("tie_word_embeddings", False)  # what is tied is one tensor already
        super().__init__(**more)


class Hidden(nn.Module):
    """Stands where the head was."""

    def forward(self, x: Tensor, embedding: nn.Module) -> Tensor:
        return x


def parted(config: HeadToHeadConfig) -> tuple[Any, nn.Module | None]:
    """The network without its head, and the head; a module of the user's own has none that could be taken off."""
    network: Any = assemble(config.vocab_size, config.length)
    for module in network.modules():
        for name, buffer in module.named_buffers(recurse=False):
            module.register_buffer(name, buffer, persistent=True)  # what is computed is lost on the meta device
    head = getattr(network, "head", None)
    if head is not None:
        network.head = Hidden()
    return network, head


class HeadToHeadBase(PreTrainedModel):
    config_class = HeadToHeadConfig
    base_model_prefix = "body"

    def _init_weights(self, module: nn.Module) -> None:
        """Of what the file does not hold: a new head."""
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


class HeadToHeadModel(HeadToHeadBase):
    """Hidden states."""

    def __init__(self, config: HeadToHeadConfig) -> None:
        super().__init__(config)
        self.network = parted(config)[0]
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **more: Any,
    ) -> BaseModelOutput:
        real = torch.ones_like(input_ids) if attention_mask is None else attention_mask.to(input_ids.dtype)
        position = (real.cumsum(1) - 1).clamp_min(0)
        document = None if bool(real.all()) else real - 1
        keys = None
        if self.training:  # dropout is a function of two numbers a row
            keys = torch.randint(-(2**31), 2**31, (len(input_ids), 2), device=input_ids.device).to(torch.int32)
        x = self.network(input_ids, position, document, token_type_ids, None, keys)
        return BaseModelOutput(last_hidden_state=x.unflatten(0, input_ids.shape))


class HeadToHeadLM(HeadToHeadBase):
    """Logits, as the network that was trained gives them."""

    def __init__(self, config: HeadToHeadConfig) -> None:
        super().__init__(config)
        self.body = HeadToHeadModel(config)
        self.head = parted(config)[1]
        self.post_init()

    def logits(self, input_ids: Tensor, attention_mask: Tensor | None, token_type_ids: Tensor | None) -> Tensor:
        x = self.body(input_ids, attention_mask, token_type_ids).last_hidden_state
        if self.head is None:
            return x
        return self.head(x.flatten(0, 1), self.body.network.embedding).unflatten(0, x.shape[:2])


class HeadToHeadForMaskedLM(HeadToHeadLM):
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **more: Any,
    ) -> MaskedLMOutput:
        logits = self.logits(input_ids, attention_mask, token_type_ids)
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return MaskedLMOutput(loss=loss, logits=logits)


class HeadToHeadForCausalLM(HeadToHeadLM, GenerationMixin):
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **more: Any,
    ) -> CausalLMOutput:
        logits = self.logits(input_ids, attention_mask, token_type_ids)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return CausalLMOutput(loss=loss, logits=logits)

    def prepare_inputs_for_generation(  # type: ignore[override]
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **more: Any
    ) -> dict[str, Any]:
        """The last tokens that the context holds, read anew."""
        length = self.config.length
        mask = None if attention_mask is None else attention_mask[:, -length:]
        return {"input_ids": input_ids[:, -length:], "attention_mask": mask}


class HeadToHeadForSequenceClassification(HeadToHeadBase):
    """W₂ tanh(W₁ x + b₁) + b₂ on one token of each text; one label is a number to be met."""

    def __init__(self, config: HeadToHeadConfig) -> None:
        super().__init__(config)
        self.body = HeadToHeadModel(config)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(0.1)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels or 2)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **more: Any,
    ) -> SequenceClassifierOutput:
        x = self.body(input_ids, attention_mask, token_type_ids).last_hidden_state
        place = torch.zeros(len(x), dtype=torch.long, device=x.device)
        if self.config.causal:
            real = torch.ones_like(input_ids) if attention_mask is None else attention_mask
            place = (real * torch.arange(real.shape[1], device=x.device)).argmax(1)
        x = x[torch.arange(len(x), device=x.device), place]
        logits = self.classifier(self.dropout(torch.tanh(self.dense(self.dropout(x)))))
        loss = None
        if labels is not None:
            number = self.config.num_labels == 1
            loss = F.mse_loss(logits[:, 0], labels.float()) if number else F.cross_entropy(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


class HeadToHeadForTokenClassification(HeadToHeadBase):
    """W x + b on every token."""

    def __init__(self, config: HeadToHeadConfig) -> None:
        super().__init__(config)
        self.body = HeadToHeadModel(config)
        self.dropout = nn.Dropout(0.1)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels or 2)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **more: Any,
    ) -> TokenClassifierOutput:
        x = self.body(input_ids, attention_mask, token_type_ids).last_hidden_state
        logits = self.classifier(self.dropout(x))
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return TokenClassifierOutput(loss=loss, logits=logits)
