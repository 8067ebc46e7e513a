"""Messages in the form of the Chat Completions wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import (
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    wire_tool_name,
)
from openheim.jsontext import is_object, wire_bytes
from openheim_provider_openai.call_ids import CallIds
from openheim_provider_openai.dialect import CHAT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from openheim import Block, Message
    from openheim_provider_openai.dialect import Dialect

__all__ = ("GO_ON", "NOTHING_SAID", "NO_OUTPUT", "ChatMessages", "calls_of", "result_text")

#: Stand for text that is missing, since blank text is refused.
NOTHING_SAID = "(no text)"
NO_OUTPUT = "(no output)"

_IMAGES_FOLLOW = "Images of the tool results above:"

#: What the assistant says where its turn was cut off, and the user where the beginning is missing, so that they take
#: turns.
_ACKNOWLEDGED = "I have the results."
_CONTINUED = "(The beginning of this conversation is missing.)"

#: What the user says where the assistant had the last word, so that it goes on.
GO_ON = "Go on."

#: OpenAI takes no longer ids.
_CALL_ID = r"[!-~]{1,40}"


class ChatMessages:
    """Encodes messages as a dialect wants them. Each message of the wire comes with a comma before it.

    Args:
        provider: the entry that is asked, which gets back what its own service told of reasoning.

    Attributes:
        ids: the ids of calls; to be brought to the messages of a request before these are encoded.
    """

    def __init__(self, dialect: Dialect, provider: str) -> None:
        self._provider = provider
        self._returns_details = dialect.reasoning_details
        self._strict = dialect.strict_roles
        self._echo = dialect.echo_reasoning
        self.ids = CallIds(dialect.tool_id_pattern or _CALL_ID)

    def role_of(self, message: Message) -> str:
        """The role on the wire; ``""`` for a message that has nothing to say on it."""
        if message.role == "assistant" and not any(map(_is_said, message.content)):
            return ""
        return "user" if message.role == "system" and self._strict else message.role

    def results(self, message: Message) -> bytes:
        """The results in a tool message."""
        return _joined(
            {
                "role": "tool",
                "tool_call_id": self.ids.of(message, block.tool_call_id),
                "content": result_text(block) or NO_OUTPUT,
            }
            for block in message.content
            if isinstance(block, ToolResultBlock)
        )

    def result_images(self, results: Sequence[Message]) -> bytes:
        """The message that carries images of results, or nothing."""
        images = _images_of(results)
        return self._bridge(_user(images)) if images else b""

    def go_on(self) -> bytes:
        """What comes last if the conversation ends with the assistant's message, which services refuse or repeat."""
        return _joined([{"role": "user", "content": GO_ON}])

    def opening(self, role: str) -> bytes:
        """What comes first if the conversation begins with this role."""
        return _joined([{"role": "user", "content": _CONTINUED}]) if self._strict and role != "user" else b""

    def run(self, role: str, messages: Sequence[Message], results: Sequence[Message], *, is_first: bool) -> bytes:
        """Neighbours of one role, which are not results.

        Args:
            messages: those of the role, and perhaps some that have nothing to say.
            results: the results right before them.
            is_first: whether nothing comes before.
        """
        if len(messages) > 1:
            messages = [message for message in messages if self.role_of(message) == role]
        if role == "user" and self._strict and results:
            return self._bridge(_user([*_images_of(results), *_content(messages)]))
        if role == "assistant":
            encoded = self._assistant(messages)
        else:
            encoded = _user(_content(messages)) | {"role": role}
        opening = self.opening(role) if is_first else b""
        return opening + self.result_images(results) + _joined([encoded])

    def _bridge(self, message: dict[str, Any]) -> bytes:
        """A user's message right behind results."""
        return _joined([{"role": "assistant", "content": _ACKNOWLEDGED}, message] if self._strict else [message])

    def _assistant(self, messages: Sequence[Message]) -> dict[str, Any]:
        text = "\n\n".join(text for message in messages if (text := _said(message)).strip())
        calls = [self._call(message, block) for message in messages for block in calls_of(message)]
        encoded: dict[str, Any] = {"role": "assistant", "content": text or None}
        if self._echo:
            reasoning = _reasoning(messages)
            # Who wants reasoning back wants it with every call, and empty where there was none.
            if reasoning or calls:
                encoded[self._echo] = reasoning
        if self._returns_details and (details := self._details(messages)):
            encoded["reasoning_details"] = details
        return encoded | ({"tool_calls": calls} if calls else {})

    def _details(self, messages: Sequence[Message]) -> list[Any]:
        from openheim_provider_openai.reasoning_details import details_of

        own = (message for message in messages if message.is_from(CHAT, self._provider))
        return [detail for message in own for detail in details_of(message)]

    def _call(self, message: Message, block: ToolUseBlock) -> dict[str, Any]:
        # A call that was cut or badly written would be refused for the rest of the session.
        arguments = block.arguments if is_object(block.arguments) else "{}"
        function = {"name": wire_tool_name(block.name), "arguments": arguments}
        return {"id": self.ids.of(message, block.id), "type": "function", "function": function}


def calls_of(message: Message) -> Iterable[ToolUseBlock]:
    """The calls of a message. A second one of the same id could not be answered, and is left out."""
    calls: dict[str, ToolUseBlock] = {}
    for block in message.tool_uses:
        calls.setdefault(block.id, block)
    return calls.values()


def result_text(result: ToolResultBlock) -> str:
    """The text of a result, with words for those of its images that are refused; ``""`` if there is none."""
    text = result.content if result.content.strip() else ""
    if not result.images:
        return text
    from openheim_provider_openai.images import data_url, in_words

    refused = [in_words(image) for image in result.images if data_url(image) is None]
    return "\n\n".join([*([text] if text else []), *refused])


def _is_said(block: Block) -> bool:
    return isinstance(block, ToolUseBlock | ImageBlock) or (isinstance(block, TextBlock) and bool(block.text.strip()))


def _said(message: Message) -> str:
    """What the assistant said, with words for images."""
    if not any(isinstance(block, ImageBlock) for block in message.content):
        return message.text
    from openheim_provider_openai.images import SHOWN_BEFORE

    said = (
        SHOWN_BEFORE if isinstance(block, ImageBlock) else block.text
        for block in message.content
        if isinstance(block, ImageBlock) or (isinstance(block, TextBlock) and block.text.strip())
    )
    return "\n\n".join(said)


def _joined(messages: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(b"," + wire_bytes(message) for message in messages)


def _content(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [
        _image_part(block) if isinstance(block, ImageBlock) else {"type": "text", "text": block.text}
        for message in messages
        for block in message.content
        if isinstance(block, ImageBlock) or (isinstance(block, TextBlock) and block.text.strip())
    ]


def _user(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """A user's message; a plain string where there are no images, which every server takes."""
    texts = [part for part in parts if part["type"] == "text"]
    if len(texts) < len(parts):
        return {"role": "user", "content": parts}
    return {"role": "user", "content": "\n\n".join(part["text"] for part in texts) or NOTHING_SAID}


def _images_of(results: Sequence[Message]) -> list[dict[str, Any]]:
    """Images of results as parts, with a note before them. Those that are refused stand in the results, in words."""
    images = [
        part
        for message in results
        for block in message.content
        if isinstance(block, ToolResultBlock)
        for image in block.images
        if (part := _image_part(image))["type"] == "image_url"
    ]
    return [{"type": "text", "text": _IMAGES_FOLLOW}, *images] if images else []


def _reasoning(messages: Sequence[Message]) -> str:
    return "\n\n".join(
        block.thinking
        for message in messages
        if message.wire in (None, CHAT)
        for block in message.content
        if isinstance(block, ThinkingBlock) and block.thinking
    )


def _image_part(image: ImageBlock) -> dict[str, Any]:
    """An image, or words for one that is refused."""
    from openheim_provider_openai.images import data_url, in_words

    url = data_url(image)
    if url is None:
        return {"type": "text", "text": in_words(image)}
    return {"type": "image_url", "image_url": {"url": url}}
