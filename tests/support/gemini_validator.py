"""What the Gemini service refuses in a request for a reply, and a few things that it ignores and nobody should send."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ("problems",)

_FIELDS = {
    "cachedContent",
    "contents",
    "generationConfig",
    "safetySettings",
    "serviceTier",
    "store",
    "systemInstruction",
    "toolConfig",
    "tools",
}
_CONFIG_FIELDS = {
    "candidateCount",
    "frequencyPenalty",
    "maxOutputTokens",
    "mediaResolution",
    "presencePenalty",
    "responseJsonSchema",
    "responseMimeType",
    "responseModalities",
    "responseSchema",
    "seed",
    "stopSequences",
    "temperature",
    "thinkingConfig",
    "topK",
    "topP",
}
_DATA_FIELDS = {
    "codeExecutionResult",
    "executableCode",
    "fileData",
    "functionCall",
    "functionResponse",
    "inlineData",
    "text",
    "toolCall",
    "toolResponse",
}
_PART_FIELDS = _DATA_FIELDS | {"thought", "thoughtSignature"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_IMAGE_TYPES = {"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}
_LEVELS = {"MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH"}
_STAND_INS = {"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"}

_KEYWORDS = {
    "additionalProperties",
    "anyOf",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "properties",
    "propertyOrdering",
    "required",
    "title",
    "type",
}
#: Fields whose value is not of the wire but of its user.
_FREE_FORM = {"args", "parametersJsonSchema", "response", "responseJsonSchema"}

_TYPES = {"string", "number", "integer", "boolean", "array", "object", "null"}
_FORMATS = {"date-time", "date", "time", "int32", "int64", "float", "double"}


def problems(body: Mapping[str, Any], *, model: str = "") -> list[str]:
    """Everything that is wrong with a body; empty if the service would take it.

    Args:
        model: the model that is asked; if given, the rules of its generation count too.
    """
    body = _camel(body)
    version = re.search(r"gemini-(\d+)(?:\.(\d+))?", model)
    generation = (int(version[1]), int(version[2] or 0)) if version else None
    found = [f"unknown field {field}" for field in sorted(body.keys() - _FIELDS)]
    found += _contents(body.get("contents"), generation)
    if "systemInstruction" in body:
        found += [f"systemInstruction: {problem}" for problem in _system(body["systemInstruction"])]
    found += _config(body.get("generationConfig", {}), generation)
    found += _tools(body.get("tools", []))
    return found


def _camel(value: Any) -> Any:
    """With names of fields in one form: the service takes ``include_thoughts`` too, and its library sends it."""
    if isinstance(value, list):
        return [_camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = {re.sub(r"_([a-z])", lambda found: found[1].upper(), key): item for key, item in value.items()}
    return {key: item if key in _FREE_FORM else _camel(item) for key, item in named.items()}


# --- contents ---


def _contents(contents: Any, generation: tuple[int, int] | None) -> Iterator[str]:
    if not isinstance(contents, list) or not contents:
        yield "contents are missing"
        return
    asked: list[dict[str, Any]] = []
    used: set[str] = set()
    before = ""
    for position, content in enumerate(contents):
        where = f"contents[{position}]"
        role, parts = content.get("role"), content.get("parts")
        if content.keys() - {"role", "parts"}:
            yield f"{where}: unknown fields"
        if role not in ("user", "model"):
            yield f"{where}: role {role!r}"
        if not before and role != "user":
            yield f"{where}: the first role is {role!r}"
        if role == before:
            yield f"{where}: two contents of role {role}"
        if not isinstance(parts, list) or not parts:
            yield f"{where}: no parts"
            parts = []
        for number, part in enumerate(parts):
            yield from (f"{where}.parts[{number}]: {problem}" for problem in _part(part, role, generation))
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        yield from (f"{where}: {problem}" for problem in _answers(asked, answers))
        signed = [part for part in parts if "functionCall" in part]
        asked = [part["functionCall"] for part in signed]
        ids = [call["id"] for call in asked if "id" in call]
        if len(set(ids)) != len(ids) or used & set(ids):
            yield f"{where}: two calls have one id"
        used |= set(ids)
        if signed and generation is not None and generation >= (3, 0) and "thoughtSignature" not in signed[0]:
            yield f"{where}: the first call has no signature"
        before = role
    if asked:
        yield "the last calls are not answered"
    elif before != "user":
        yield "the last content is not the user's"


def _answers(asked: list[dict[str, Any]], answers: list[dict[str, Any]]) -> Iterator[str]:
    if len(asked) != len(answers):
        yield f"{len(answers)} results for {len(asked)} calls"
        return
    for call, answer in zip(asked, answers, strict=True):
        called, answered = ((one.get("name"), one.get("id")) for one in (call, answer))
        if called != answered:
            yield f"the result of {answered} stands where that of {called} should"


def _part(part: Any, role: Any, generation: tuple[int, int] | None) -> Iterator[str]:
    if not isinstance(part, dict) or len(part.keys() & _DATA_FIELDS) != 1:
        yield "not exactly one kind of data"
        return
    yield from (f"unknown field {field}" for field in part.keys() - _PART_FIELDS)
    signature = part.get("thoughtSignature")
    if "thoughtSignature" in part and not (signature in _STAND_INS or _is_base64(signature)):
        yield f"the signature {signature!r} is no base64"
    if ("thoughtSignature" in part or "thought" in part) and role != "model":
        yield "a user's part has a signature or is a thought"
    if part.get("thought", True) is not True:
        yield "thought is not true"
    if "text" in part:
        if not isinstance(part["text"], str):
            yield "text is no text"
        elif not part["text"].strip() and signature is None:
            yield "blank text"
    elif "functionCall" in part:
        yield from _call(part["functionCall"], role)
    elif "functionResponse" in part:
        yield from _response(part["functionResponse"], role, generation)
    elif "inlineData" in part:
        yield from _blob(part["inlineData"])


def _call(call: Any, role: Any) -> Iterator[str]:
    if role != "model":
        yield "a call of the user's"
    if call.keys() - {"id", "name", "args"}:
        yield "unknown fields of a call"
    if not _NAME.fullmatch(str(call.get("name"))):
        yield f"the name {call.get('name')!r}"
    if not isinstance(call.get("args", {}), dict):
        yield "args is no object"
    if "id" in call and not (isinstance(call["id"], str) and call["id"].strip()):
        yield "a blank id"


def _response(response: Any, role: Any, generation: tuple[int, int] | None) -> Iterator[str]:
    if role != "user":
        yield "a result of the model's"
    if response.keys() - {"id", "name", "response", "parts", "scheduling", "willContinue"}:
        yield "unknown fields of a result"
    if not _NAME.fullmatch(str(response.get("name"))):
        yield f"the name {response.get('name')!r}"
    said = response.get("response")
    if not isinstance(said, dict) or not said:
        yield "response is no object"
    elif '"$ref"' in json.dumps(said) and "$ref" in said:
        yield "response refers to a part"
    if "parts" in response:
        if generation is not None and generation < (3, 0):
            yield "parts of a result are for models of generation 3"
        for part in response["parts"]:
            if part.keys() != {"inlineData"}:
                yield "a part of a result is no inlineData"
            else:
                yield from _blob(part["inlineData"])


def _blob(blob: Any) -> Iterator[str]:
    if not isinstance(blob, dict) or blob.keys() != {"mimeType", "data"}:
        yield "inlineData has other fields than mimeType and data"
    elif blob["mimeType"] not in _IMAGE_TYPES:
        yield f"the type {blob['mimeType']!r} is not supported"
    elif not _is_base64(blob["data"]):
        yield "inlineData without data"


def _is_base64(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(base64.b64decode(value.encode(), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error):
        return False


def _system(instruction: Any) -> Iterator[str]:
    if not isinstance(instruction, dict) or instruction.keys() - {"role", "parts"}:
        yield "unknown fields"
        return
    for part in instruction.get("parts") or [{}]:
        if part.keys() != {"text"} or not part["text"].strip():
            yield "a part is no text"


# --- generationConfig ---


def _config(config: Mapping[str, Any], generation: tuple[int, int] | None) -> Iterator[str]:
    yield from (f"generationConfig: unknown field {field}" for field in sorted(config.keys() - _CONFIG_FIELDS))
    most = config.get("maxOutputTokens", 1)
    if type(most) is not int or not 1 <= most <= 65_536:
        yield f"maxOutputTokens is {most!r}"
    temperature = config.get("temperature", 1)
    if not 0 <= temperature <= 2:
        yield f"temperature is {temperature!r}"
    if {"responseSchema", "responseJsonSchema"} <= config.keys():
        yield "responseSchema and responseJsonSchema"
    if {"responseSchema", "responseJsonSchema"} & config.keys():
        if config.get("responseMimeType") != "application/json":
            yield "a schema of the reply without responseMimeType"
        yield from _schema(config.get("responseJsonSchema", {"type": "object"}), "responseJsonSchema")
    yield from _thinking(config.get("thinkingConfig"), generation)


def _thinking(config: Mapping[str, Any] | None, generation: tuple[int, int] | None) -> Iterator[str]:
    if config is None:
        return
    if config.keys() - {"includeThoughts", "thinkingBudget", "thinkingLevel"}:
        yield "thinkingConfig: unknown fields"
    if {"thinkingBudget", "thinkingLevel"} <= config.keys():
        yield "thinkingBudget and thinkingLevel"
    if config.get("thinkingLevel", "LOW") not in _LEVELS:
        yield f"thinkingLevel is {config['thinkingLevel']!r}"
    budget = config.get("thinkingBudget", -1)
    if type(budget) is not int or not -1 <= budget <= 32_768:
        yield f"thinkingBudget is {budget!r}"
    if generation is not None:
        if generation < (2, 5):
            yield "thinkingConfig for a model that does not think"
        elif generation < (3, 0) and "thinkingLevel" in config:
            yield "thinkingLevel for a model that takes a budget"


# --- tools ---


def _tools(tools: Any) -> Iterator[str]:
    declarations = [declaration for tool in tools for declaration in tool.get("functionDeclarations", ())]
    if any(not tool or tool == {"functionDeclarations": []} for tool in tools):
        yield "an empty tool"
    names = [declaration.get("name") for declaration in declarations]
    if len(set(names)) != len(names):
        yield "two functions of one name"
    for declaration in declarations:
        name = declaration.get("name")
        if not _NAME.fullmatch(str(name)):
            yield f"the name {name!r}"
        if declaration.keys() - {"name", "description", "parametersJsonSchema"}:
            yield f"{name}: unknown fields"
        if not str(declaration.get("description") or "").strip():
            yield f"{name}: no description"
        if "parametersJsonSchema" in declaration:
            parameters = declaration["parametersJsonSchema"]
            if parameters.get("type") != "object":
                yield f"{name}: its parameters are no object"
            yield from _schema(parameters, str(name))


def _schema(schema: Any, where: str, depth: int = 0) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"{where}: {schema!r} is no schema"
        return
    if depth > 100:
        yield f"{where}: nested too deeply"
        return
    yield from (f"{where}: unknown keyword {keyword}" for keyword in sorted(schema.keys() - _KEYWORDS))
    kind = schema.get("type")
    if "anyOf" in schema:
        if schema.keys() - {"anyOf", "description", "title"}:
            yield f"{where}: anyOf beside other keywords"
        if not schema["anyOf"]:
            yield f"{where}: an empty anyOf"
        for number, choice in enumerate(schema["anyOf"]):
            yield from _schema(choice, f"{where}.anyOf[{number}]", depth + 1)
    elif not isinstance(kind, str) or kind not in _TYPES:
        yield f"{where}: type {kind!r}"
    if kind == "array":
        if "items" not in schema:
            yield f"{where}: an array without items"
        else:
            yield from _schema(schema["items"], f"{where}[]", depth + 1)
    properties = schema.get("properties", {})
    for name, inner in properties.items():
        yield from _schema(inner, f"{where}.{name}", depth + 1)
    if not set(schema.get("required", ())) <= properties.keys():
        yield f"{where}: a required property is not there"
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _schema(schema["additionalProperties"], f"{where}.*", depth + 1)
    if schema.get("format", "date") not in _FORMATS:
        yield f"{where}: format {schema['format']!r}"
    if "enum" in schema:
        wanted: type | tuple[type, ...] = str if kind == "string" else (int, float)
        values = schema["enum"]
        if not values or any(not isinstance(value, wanted) or isinstance(value, bool) for value in values):
            yield f"{where}: enum {values!r} of a {kind}"
        if "" in values:
            yield f"{where}: an empty value in enum"
