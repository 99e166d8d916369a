"""torch's linear map, with what an initialization may want to know of it."""

from __future__ import annotations

from torch import nn


class Linear(nn.Linear):
    """W x + b; `into_residual` marks a product that is added to the stream, `head_fan` the fan of a study's own matrix."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        bias: bool = True,
        *,
        into_residual: bool = False,
        head_fan: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(inputs, outputs, bias)
        self.marks: tuple[bool, tuple[int, int] | None] = (into_residual, head_fan)
