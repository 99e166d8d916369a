"""A body with slots: token ids in, logits at the scored positions out. What fills the slots stands in parts/."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from headtohead.initialize import generator_for, initialize
from headtohead.memory import Memory, Past
from headtohead.parts.dropout import Dropout, drop, place, site
from headtohead.parts.embedding import Embedding
from headtohead.parts.feedforward import Feedforward, Gelu
from headtohead.parts.gate import HeadGate, NoGate
from headtohead.parts.head import Head, Tied
from headtohead.parts.initialization import Initialization, Normal
from headtohead.parts.linear import Linear
from headtohead.parts.masking import Masking, MinusInfinity
from headtohead.parts.norm import LayerNorm, Norm
from headtohead.parts.normalizer import Normalizer, Softmax
from headtohead.parts.position import Learned, Position, Unplaced
from headtohead.parts.projection import Projection, Separate
from headtohead.parts.residual import PreNorm, Residual
from headtohead.parts.score import ScaledDot, Score
from headtohead.parts.sharing import Distinct, Sharing
from headtohead.parts.visibility import Causal, Visibility
from headtohead.spec import Mistake, Part, Size

EMBEDDING, WEIGHTS, ATTENTION, FEEDFORWARD = map(site, ("embedding", "weights", "attention", "feedforward"))


class Frame(NamedTuple):
    """What every layer may know of the batch around its hidden states."""

    position: Tensor  # batch or 1 × length, restarts in each document
    document: Tensor | None  # batch × length, −1 is padding; None: one document and no padding
    bias: Tensor | None  # added to the scores
    turn: Callable[..., tuple[Tensor, Tensor]]  # the position's hand on queries and keys
    keys: Tensor | None  # row keys of the dropout, None in evaluation
    key_position: Tensor | None = None  # where the keys stand; None: where the queries do
    past: Past | None = None  # keys and values of the tokens read before, None: there are none


class Model(Part):
    """`complete(size)` fills in what the model knows of itself; `build(size)` gives a Network.

    That is called as (ids, position, document, segments, scored, keys) -> logits; `scored` are flat indices, None is all.
    """

    def complete(self, size: Size) -> Size:
        """The size with the model's own figures."""
        return size

    def rows(self, vocabulary: int, masks: bool) -> int:
        """How many ids it knows: the text's, and the mask where the objective has one."""
        return vocabulary + masks

    def make(self, size: Size, seed: int) -> Network:
        """The module, built with torch's generator in a state that the run's seed alone decides."""
        torch.manual_seed(generator_for(seed, "build").initial_seed())
        return self.build(size)

    def flops(self, size: Size, scored: float) -> tuple[float, float] | None:
        """(matrix, element-wise) operations of one token forward, `scored` of it scored; None where no formula is known."""
        return None

    def initialize(self, network: nn.Module, seed: int) -> None:
        """Set the start of training."""


class Attention(Part):
    """`assemble(size, model)` gives a module called as (x, frame) -> x; the slot of a mechanism that replaces it all."""

    def assemble(self, size: Size, model: Transformer) -> nn.Module:
        raise TypeError(f"{type(self).__name__} must define assemble(size, model)")

    def flops(self, size: Size) -> tuple[float, float]:
        """(matrix, element-wise) operations of one token, forward."""
        return 0.0, 0.0


class Block(Part):
    """`assemble(size, model)` gives a module called as (x, frame) -> x: one layer."""

    def assemble(self, size: Size, model: Transformer) -> nn.Module:
        raise TypeError(f"{type(self).__name__} must define assemble(size, model)")

    def flops(self, size: Size, model: Transformer) -> tuple[float, float]:
        """(matrix, element-wise) operations of one token, forward."""
        return 0.0, 0.0


class MultiHead(Attention):
    """Explicit multi-head attention (Vaswani et al. 2017): every step has a slot. `output` = False leaves out W_O."""

    score: Score = ScaledDot()
    normalizer: Normalizer = Softmax()
    visibility: Visibility = Causal()
    masking: Masking = MinusInfinity()
    projection: Projection = Separate()
    gate: HeadGate = NoGate()
    output: bool = True
    bias: bool = True

    def assemble(self, size: Size, model: Transformer) -> nn.Module:
        return MultiHeadAttention(self, size, model.dropout.weights)

    def flops(self, size: Size) -> tuple[float, float]:
        output = (2.0 * size.width**2 * self.output, 0.0)
        values = (2.0 * size.length * size.width, 0.0)
        return add(self.projection.flops(size), self.score.flops(size), values, self.gate.flops(size), output)


def add(*costs: tuple[float, float]) -> tuple[float, float]:
    """Costs added up."""
    return sum(matrix for matrix, _ in costs), sum(elementwise for _, elementwise in costs)


class MultiHeadAttention(nn.Module):
    remembers = True  # it adds its keys and values to frame.past

    def __init__(self, part: MultiHead, size: Size, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.projection = part.projection.build(size)
        self.score = part.score.build(size)
        self.normalizer = part.normalizer.build(size)
        self.visibility = part.visibility.build(size)
        self.masking = part.masking.build(size)
        self.gate = part.gate.build(size)
        self.weights = nn.Identity()  # where whoever looks inside puts a hook
        self.output = Linear(size.width, size.width, part.bias, into_residual=True) if part.output else None

    def forward(self, x: Tensor, frame: Frame) -> Tensor:
        q, k, v = self.projection(x)
        q, k = frame.turn(q, k, frame.position, frame.position)
        if frame.past is not None:
            k, v = frame.past.add(k, v)
        scores = self.score(q, k)
        if frame.bias is not None:
            scores = scores + frame.bias
        if frame.document is not None:
            same = frame.document[:, None, :, None] == frame.document[:, None, None, :]
            scores = scores.masked_fill(~same, -math.inf)
        keys = frame.position if frame.key_position is None else frame.key_position
        allowed = self.visibility(frame.position[:, None, :, None], keys[:, None, None, :])
        weights = self.weights(self.masking(scores, allowed, self.normalizer))
        heads = drop(weights, frame.keys, WEIGHTS, self.rate).to(v.dtype) @ v
        joined = self.gate(x, heads).transpose(1, 2).flatten(-2)
        return joined if self.output is None else self.output(joined)


class Layered(Block):
    """Attention, then the feed-forward, each joined to the stream by the model's residual."""

    def assemble(self, size: Size, model: Transformer) -> nn.Module:
        return Layer(size, model)

    def flops(self, size: Size, model: Transformer) -> tuple[float, float]:
        return add(model.attention.flops(size), model.feedforward.flops(size))


class Layer(nn.Module):
    def __init__(self, size: Size, model: Transformer) -> None:
        super().__init__()
        self.attention_rate, self.feedforward_rate = model.dropout.attention, model.dropout.feedforward
        norm = model.norm.build if model.residual.normed else lambda size: nn.Identity()
        self.attention_norm, self.feedforward_norm = norm(size), norm(size)
        self.attention = model.attention.assemble(size, model)
        self.feedforward = model.feedforward.build(size)
        self.attention_residual, self.feedforward_residual = model.residual.build(size), model.residual.build(size)

    @property
    def remembers(self) -> bool:
        """Whether its attention does; a user's own may not know how."""
        return getattr(self.attention, "remembers", False)

    def forward(self, x: Tensor, frame: Frame) -> Tensor:
        def attend(h: Tensor) -> Tensor:
            return drop(self.attention(h, frame), frame.keys, ATTENTION, self.attention_rate)

        def feed(h: Tensor) -> Tensor:
            return drop(self.feedforward(h), frame.keys, FEEDFORWARD, self.feedforward_rate)

        x = self.attention_residual(x, self.attention_norm, attend)
        return self.feedforward_residual(x, self.feedforward_norm, feed)


class Transformer(Model):
    """A stack of blocks between an embedding and a head. The defaults are a small GPT-2 (Radford et al. 2019)."""

    layers: int = 6
    heads: int = 6
    width: int = 192
    embedding: Embedding = Embedding()
    position: Position = Learned()
    attention: Attention = MultiHead()
    feedforward: Feedforward = Gelu()
    norm: Norm = LayerNorm()
    residual: Residual = PreNorm()
    block: Block = Layered()
    sharing: Sharing = Distinct()
    head: Head = Tied()
    dropout: Dropout = Dropout()
    initialization: Initialization = Normal()

    def complete(self, size: Size) -> Size:
        projection = getattr(self.attention, "projection", None)  # a user's own attention may have none
        key_value_heads = projection.key_value_heads_of(self.heads) if projection else self.heads
        inner = self.embedding.width or self.width
        own = {"width": self.width, "heads": self.heads, "layers": self.layers}
        return replace(size, **own, key_value_heads=key_value_heads, embedding_width=inner)

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        for name in ("layers", "heads", "width"):
            if getattr(self, name) < 1:
                yield f"{name} = {getattr(self, name)} must be at least 1"
                return
        if self.width % self.heads:
            near = self.heads * max(1, round(self.width / self.heads))
            yield f"width = {self.width} is not divisible by model.heads = {self.heads}; the nearest width is {near}"

    def rows(self, vocabulary: int, masks: bool) -> int:
        return vocabulary + (masks and self.embedding.mask == "learned")

    def build(self, size: Size) -> Network:
        return Body(self, size)

    def flops(self, size: Size, scored: float) -> tuple[float, float]:
        layers = [self.block.flops(size, self)] * self.layers
        matrix, elementwise = self.head.flops(size)
        return add(self.embedding.flops(size), *layers, (scored * matrix, scored * elementwise))

    def initialize(self, network: nn.Module, seed: int) -> None:
        initialize(network, self.initialization, seed, self.layers)


class Network(nn.Module):
    """What a model builds: called as (ids, position, document, segments, scored, keys) -> logits at scored positions."""

    def accelerate(self) -> None:
        """Compile the whole of it, as far as that goes."""
        self.compile(dynamic=False)

    def memory(self, length: int) -> Memory | None:
        """An empty memory for `length` tokens, or None where it has no way to keep one."""
        return None

    def go_on(self, ids: Tensor, memory: Memory) -> Tensor:
        """Logits after the last of these tokens, which follow those in the memory and are added to it."""
        raise TypeError(f"{type(self).__name__} keeps no memory")


class Body(Network):
    position: Unplaced

    def __init__(self, model: Transformer, size: Size) -> None:
        super().__init__()
        self.embedding_rate = model.dropout.embedding
        self.groups = model.sharing.groups_of(model.layers)
        self.embedding = model.embedding.build(size)
        self.position = model.position.build(size)
        firsts = [self.groups.index(group) for group in range(max(self.groups) + 1)]
        self.blocks = nn.ModuleList(model.block.assemble(replace(size, layer=layer), model) for layer in firsts)
        self.final_norm = model.norm.build(size) if model.residual.final_norm else nn.Identity()
        self.head = model.head.build(size)

    def accelerate(self) -> None:
        """Compile one block's code; layers of the same make reuse it."""
        for block in self.blocks:
            block.compile(fullgraph=True, dynamic=False)

    def forward(
        self,
        ids: Tensor,
        position: Tensor,
        document: Tensor | None = None,
        segments: Tensor | None = None,
        scored: Tensor | None = None,
        keys: Tensor | None = None,
    ) -> Tensor:
        frame = Frame(position, document, self.position.bias(position, position), self.position.turn, keys)
        x = self._through(ids, segments, frame, None).flatten(0, 1)
        return self.head(x if scored is None else x[scored], self.embedding)

    def _through(self, ids: Tensor, segments: Tensor | None, frame: Frame, memory: Memory | None) -> Tensor:
        x = self.embedding(ids, segments, self.position.embed(frame.position))
        x = self.embedding.up(drop(x, frame.keys, EMBEDDING, self.embedding_rate))
        for layer, group in enumerate(self.groups):
            here = None if frame.keys is None else place(frame.keys, site(f"layer {layer}"))
            past = None if memory is None else memory.layers[layer]
            x = self.blocks[group](x, frame._replace(keys=here, past=past))
        return self.final_norm(x)

    def memory(self, length: int) -> Memory | None:
        remembers = all(getattr(block, "remembers", False) for block in self.blocks)
        return Memory(len(self.groups), length) if remembers else None

    def go_on(self, ids: Tensor, memory: Memory) -> Tensor:
        before = 0 if memory.position is None else memory.position.shape[1]
        position = torch.arange(before, before + ids.shape[1], device=ids.device)[None]
        keys = memory.add(position)
        frame = Frame(position, None, self.position.bias(position, keys), self.position.turn, None, keys)
        return self.head(self._through(ids, None, frame, memory)[:, -1], self.embedding)


class Custom(Model):
    """Any module of the user's own: `factory(size)` returns one with forward(ids) -> logits, batch × length × vocabulary.

    Its weights start as the factory leaves them, after torch's generator was seeded from the run's seed.
    """

    factory: Callable

    def build(self, size: Size) -> Network:
        return Wrapped(self.factory(size), size.vocabulary)


class Wrapped(Network):
    def __init__(self, inner: nn.Module, vocabulary: int) -> None:
        super().__init__()
        self.inner, self.vocabulary = inner, vocabulary

    def forward(
        self,
        ids: Tensor,
        position: Tensor,
        document: Tensor | None = None,
        segments: Tensor | None = None,
        scored: Tensor | None = None,
        keys: Tensor | None = None,
    ) -> Tensor:
        logits = self.inner(ids)
        if logits.shape[:-1] != ids.shape or logits.shape[-1] < self.vocabulary:
            wanted = f"batch × length × vocabulary, {(*ids.shape, self.vocabulary)}"
            raise Mistake(f"forward(ids) of the model gave {tuple(logits.shape)}; it must give logits, {wanted}")
        logits = logits.flatten(0, 1)
        return logits if scored is None else logits[scored]
