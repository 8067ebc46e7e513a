from __future__ import annotations

import re
from typing import TYPE_CHECKING

import anyio.lowlevel

from openheim import ModelInfo, ModelReply, TextBlock, TextDelta, Usage

if TYPE_CHECKING:
    from openheim import EmitDelta, ModelRequest, Provider


class Parrot:
    wire = "parrot"
    default_model = "parrot"

    def __init__(self, times: int) -> None:
        self._times = times

    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        heard = next((message.text for message in reversed(request.messages) if message.role == "user"), "")
        reply = " ".join([heard.strip() or "Squawk!"] * self._times)
        for word in re.findall(r"\s*\S+\s*", reply):
            # Where a service would be waited for; also the place where a cancelled call ends.
            await anyio.lowlevel.checkpoint()
            emit(TextDelta(word))
        usage = Usage(input_tokens=len(heard.split()), output_tokens=len(reply.split()))
        return ModelReply((TextBlock(reply),), "end_turn", usage, self.default_model)

    async def models(self) -> list[ModelInfo]:
        return [ModelInfo(self.default_model)]


if TYPE_CHECKING:

    def type_check(parrot: Parrot) -> Provider:
        return parrot
