"""Switches of an entry for compatible servers, and presets for services that are known."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from openheim.errors import ConfigError
from openheim.messages import ImageBlock, Message, TextBlock, ThinkingBlock, ToolUseBlock
from openheim.providers import ModelRequest, ProviderSettings, ToolSpec
from openheim.testing import HttpAnswer, ScriptedHttp
from openheim_provider_openai.dialect import dialect_of
from openheim_provider_openai.plugin import Settings, openheim_create_provider
from openheim_provider_openai.presets import PRESETS, preset_for
from tests.docs.pages import CHECKOUT
from tests.providers.conftest import KEY, Call, assistant, result, user, user_says
from tests.support import responses_wire
from tests.support.openai_server import OpenAIServer
from tests.support.openai_validator import problems
from tests.support.openai_wire import text, tool_calls

pytestmark = pytest.mark.anyio

STRICT = Settings(strict_roles=True)
PICTURE = ImageBlock("AAAA", "image/png")


async def sent(
    make_call: Callable[..., Call], request: ModelRequest, kind: str = "openai_compatible", **fields: Any
) -> dict[str, Any]:
    async with OpenAIServer([text("ok")]) as server:
        await make_call(server.base_url, kind, **fields)(request)
        body: dict[str, Any] = server.requests[0].json
    return body


async def sent_messages(make_call: Callable[..., Call], *messages: Message, options: Settings) -> list[Any]:
    request = ModelRequest(model="m", system="Be brief.", messages=messages)
    body = await sent(make_call, request, options=options)
    assert problems(body, strict_roles=bool(options.strict_roles)) == []
    wire: list[Any] = body["messages"]
    return wire[1:]


# --- strict roles ---


async def test_neighbours_of_one_role_are_one_message(make_call: Callable[..., Call]) -> None:
    messages = await sent_messages(
        make_call,
        user("one"),
        user("two"),
        assistant("a"),
        assistant(ThinkingBlock("hm")),
        assistant("b", ToolUseBlock("c", "f", "{}")),
        result("c", "ok"),
        assistant("d"),
        user("three"),
        assistant(" "),
        user("four"),
        Message("system", (TextBlock("five"),)),
        options=STRICT,
    )
    assert [(message["role"], message["content"]) for message in messages] == [
        ("user", "one\n\ntwo"),
        ("assistant", "a\n\nb"),
        ("tool", "ok"),
        ("assistant", "d"),
        ("user", "three\n\nfour\n\nfive"),
    ]
    assert messages[1]["tool_calls"][0]["id"] == "c"


async def test_results_are_taken_note_of_before_the_user_goes_on(make_call: Callable[..., Call]) -> None:
    call = assistant(ToolUseBlock("c", "f", "{}"))
    messages = await sent_messages(make_call, user("go"), call, result("c", "ok"), user("stop"), options=STRICT)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert messages[4]["content"] == "stop"


@pytest.mark.parametrize("next_one", [None, user("and?"), assistant("seen")])
async def test_images_of_results_keep_the_roles_in_turn(make_call: Callable[..., Call], next_one: Any) -> None:
    call = assistant(ToolUseBlock("c", "f", "{}"))
    more = [next_one, *([user("so?")] if next_one is not None and next_one.role == "assistant" else [])]
    followed = [message for message in more if message is not None]
    messages = await sent_messages(make_call, user("go"), call, result("c", "ok", PICTURE), *followed, options=STRICT)
    assert [message["role"] for message in messages[:5]] == ["user", "assistant", "tool", "assistant", "user"]
    kinds = [part["type"] for part in messages[4]["content"]]
    assert kinds == ["text", "image_url"] + (["text"] if followed and next_one.role == "user" else [])


async def test_the_first_is_the_users(make_call: Callable[..., Call]) -> None:
    messages = await sent_messages(make_call, assistant("hello"), user("hi"), options=STRICT)
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    stray = await sent(make_call, ModelRequest("m", "", [result("c", "ok"), user("hi")]), options=STRICT)
    assert [message["role"] for message in stray["messages"]] == ["user", "tool", "assistant", "user"]


async def test_kept_bytes_make_no_difference_in_strict_roles(make_call: Callable[..., Call]) -> None:
    messages: list[Message] = []
    for number in range(4):
        calls = assistant(ToolUseBlock(f"a{number}", "f", "{}"), ToolUseBlock(f"b{number}", "f", "{}"))
        images = (PICTURE,) if number % 2 else ()
        messages += [user(f"one {number}"), user(f"two {number}"), calls]
        messages += [result(f"a{number}", "A", *images), result(f"b{number}", "B"), assistant(ThinkingBlock("hm"))]
    histories: list[Sequence[Message]] = [messages[:length] for length in range(1, len(messages) + 1)]
    others = [[*messages[:8], user("another")], messages[3:], messages[7:], [user("alone")]]
    histories += [others[0], messages[2:], *others]
    cache: dict[str, Any] = {}
    async with OpenAIServer(default=text("ok")) as server:
        asking = make_call(server.base_url, options=STRICT)
        for history in histories:
            await asking(ModelRequest(model="m", system="s", messages=history, cache=cache))
            await asking(ModelRequest(model="m", system="s", messages=history))
        bodies = [request.body for request in server.requests]
    assert bodies[::2] == bodies[1::2]
    # Between two results of one reply nothing is sent.
    asked = [body for body, history in zip(bodies[::2], histories, strict=True) if _is_asked(history, messages)]
    for shorter, longer in pairwise(asked):
        # The last message may grow: a user's by what the user says next.
        kept = json.loads(shorter)["messages"][:-1]
        assert json.loads(longer)["messages"][: len(kept)] == kept


def _is_asked(history: Sequence[Message], messages: Sequence[Message]) -> bool:
    length = len(history)
    return list(history) == list(messages[:length]) and (length == len(messages) or messages[length].role != "tool")


# --- reasoning that is sent back ---


async def test_reasoning_goes_back_in_the_field_that_was_named(make_call: Callable[..., Call]) -> None:
    ours = Message("assistant", (ThinkingBlock("why"), TextBlock("so")), wire="openai-chat")
    theirs = Message("assistant", (ThinkingBlock("no", "c2ln"), ToolUseBlock("c", "f", "{}")), wire="anthropic")
    messages = [user("x"), ours, user("y"), theirs, result("c", "ok")]
    for options, expected in (
        (Settings(echo_reasoning="reasoning_content"), ["why", ""]),
        (Settings(preset="deepseek"), ["why", ""]),
        (Settings(preset="deepseek", echo_reasoning=""), [None, None]),
        (Settings.model_validate({"echo_reasoning": True}), ["why", ""]),
        (Settings.model_validate({"preset": "deepseek", "echo_reasoning": False}), [None, None]),
        (Settings(), [None, None]),
    ):
        body = await sent(make_call, ModelRequest("m", "", messages), options=options)
        assert problems(body, message_fields=frozenset(("reasoning_content",))) == []
        said = [message for message in body["messages"] if message["role"] == "assistant"]
        assert [message.get("reasoning_content") for message in said] == expected


# --- ids, names, schemas, caches ---


async def test_own_names_of_tools_come_back(make_call: Callable[..., Call]) -> None:
    tools = (ToolSpec("srv.docs/get", "", {"type": "object"}), ToolSpec("plain", "", {"type": "object"}))

    def answer(request: Any) -> Any:
        return tool_calls(*((tool["function"]["name"], {}) for tool in request.json["tools"]))

    async with OpenAIServer(answer) as server:
        asking = make_call(server.base_url)
        reply = await asking(user_says("hi", tools=tools))
    assert [block.name for block in reply.content if isinstance(block, ToolUseBlock)] == ["srv.docs/get", "plain"]
    assert {getattr(delta, "name", "") for delta in asking.deltas} == {"srv.docs/get", "plain"}


async def test_ids_that_are_too_long_for_openai_are_replaced(make_call: Callable[..., Call]) -> None:
    long = "chatcmpl-tool-" + "0" * 32
    messages = await sent_messages(
        make_call, user("x"), assistant(ToolUseBlock(long, "f", "{}")), result(long, "\n"), options=Settings()
    )
    assert messages[1]["tool_calls"][0]["id"] == messages[2]["tool_call_id"] != long
    assert messages[2]["content"] == "(no output)"


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (SCHEMA, True),
        ({**SCHEMA, "required": []}, False),
        ({**SCHEMA, "additionalProperties": True}, False),
        ({**SCHEMA, "properties": {"n": {"type": "array", "items": SCHEMA}}}, True),
        ({**SCHEMA, "properties": {"n": {"oneOf": [{"type": "string"}]}}}, False),
        ({**SCHEMA, "properties": {"n": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}, True),
        ({**SCHEMA, "properties": {"n": True}}, False),
        ({**SCHEMA, "properties": {"n": {}}}, False),
    ],
)
async def test_schemas_of_replies(make_call: Callable[..., Call], schema: dict[str, Any], strict: bool) -> None:
    body = await sent(make_call, user_says("hi", response_schema=schema))
    expected = {"name": "reply", "schema": schema, "strict": strict}
    assert body["response_format"] == {"type": "json_schema", "json_schema": expected}
    assert problems(body) == []


async def test_a_service_that_takes_no_schema_is_told_it_in_words(make_call: Callable[..., Call]) -> None:
    body = await sent(make_call, user_says("hi", response_schema=SCHEMA), options=Settings(preset="deepseek"))
    assert body["response_format"] == {"type": "json_object"}
    assert '"required":["n"]' in body["messages"][0]["content"]
    assert problems(body) == []


async def test_the_cache_key_goes_to_openai_only(make_call: Callable[..., Call]) -> None:
    request = user_says("hi", session_id="s-1")
    assert (await sent(make_call, request, "openai"))["prompt_cache_key"] == "s-1"
    assert "prompt_cache_key" not in await sent(make_call, request)
    assert "prompt_cache_key" not in await sent(make_call, request, "openai", options=Settings(preset="ollama"))
    long = await sent(make_call, user_says("hi", session_id="s" * 65), "openai")
    assert len(long["prompt_cache_key"]) == 64


async def test_parameters_of_tools_are_plain_objects_for_openai(make_call: Callable[..., Call]) -> None:
    variants = [{"properties": {"b": {"type": "string"}}}, {"required": ["a"]}]
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": variants}
    tools = (ToolSpec("f", "", schema), ToolSpec("g", "", {}))
    body = await sent(make_call, user_says("hi", tools=tools), "openai")
    assert problems(body) == []
    assert body["tools"][0]["function"]["parameters"]["properties"].keys() == {"a", "b"}
    assert "anyOf" in schema
    theirs = await sent(make_call, user_says("hi", tools=tools))
    assert theirs["tools"][0]["function"]["parameters"] == schema


KINDS = {
    "A": {"type": "object", "properties": {"kind": {"const": "a"}, "path": {"type": "string"}}, "required": ["kind"]},
    "B": {
        "type": "object",
        "properties": {"kind": {"const": "b"}},
        "required": ["kind"],
        "anyOf": [{"$ref": "#/$defs/C"}],
    },
    "C": {"properties": {"to": {"type": "array"}}, "oneOf": [{"$ref": "#/$defs/B"}]},
}
TREE = {"type": "object", "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}


@pytest.mark.parametrize(
    ("schema", "properties", "required"),
    [
        (
            {"$defs": KINDS, "oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]},
            {
                "kind": {"anyOf": [{"const": "a"}, {"const": "b"}]},
                "path": {"type": "string"},
                "to": {"type": "array", "items": {}},
            },
            ["kind"],
        ),
        ({"$defs": {"Tree": TREE}, "$ref": "#/$defs/Tree"}, TREE["properties"], None),
        ({"$ref": f"#/examples/{'1' * 5000}", "examples": [1], "properties": {}}, {}, None),
        (
            {"$defs": {"Loop": {"$ref": "#/$defs/Loop"}}, "allOf": [{"$ref": "#/$defs/Loop"}, TREE]},
            TREE["properties"],
            None,
        ),
        ({"anyOf": [{"$ref": "#/$defs/Missing"}, {"$ref": "https://elsewhere.example"}]}, {}, None),
        (
            {"properties": {"a": {"items": [{"type": "array"}], "type": ["array", "null"]}}, "required": ["a"]},
            {"a": {"items": {"anyOf": [{"type": "array", "items": {}}]}, "type": ["array", "null"]}},
            ["a"],
        ),
    ],
)
async def test_no_argument_is_lost(
    make_call: Callable[..., Call], schema: dict[str, Any], properties: dict[str, Any], required: list[str] | None
) -> None:
    before = copy.deepcopy(schema)
    body = await sent(make_call, user_says("hi", tools=(ToolSpec("f", "", schema),)), "openai")
    assert problems(body) == []
    told = body["tools"][0]["function"]["parameters"]
    assert (told["properties"], told.get("required")) == (properties, required)
    assert schema == before


async def test_schemas_without_end_take_bounded_time(make_call: Callable[..., Call]) -> None:
    def many(name: str) -> list[Any]:
        return [{"$ref": f"#/$defs/{name}{place}"} for place in range(9)]

    defs = {f"D{place}": {"anyOf": many("D"), "properties": {f"p{place}": {}}} for place in range(9)}
    schema = {"$defs": defs, "anyOf": many("D")}
    body = await sent(make_call, user_says("hi", tools=(ToolSpec("f", "", schema),)), "openai")
    assert set(body["tools"][0]["function"]["parameters"]["properties"]) == {f"p{place}" for place in range(9)}


@pytest.mark.parametrize(("wire", "preset"), [("chat", "none"), ("chat", "deepseek"), ("responses", "none")])
@pytest.mark.parametrize(
    "schema",
    [{"type": "array", "items": {"type": "string"}}, {"anyOf": [SCHEMA, {"type": "null"}]}, {"type": "string"}],
)
async def test_a_reply_that_is_no_object_is_asked_for_in_words(
    make_call: Callable[..., Call], wire: Any, preset: Any, schema: dict[str, Any]
) -> None:
    request = user_says("hi", response_schema=schema)
    async with OpenAIServer([text("ok") if wire == "chat" else responses_wire.text("ok")]) as server:
        await make_call(server.base_url, "openai", options=Settings(wire=wire, preset=preset))(request)
        body = server.requests[0].json
    assert not {"response_format", "text"} & body.keys()
    told = body["messages"][0]["content"] if wire == "chat" else body["instructions"]
    assert told.startswith("Reply with one JSON value")
    assert told.endswith(json.dumps(schema, separators=(",", ":")))


async def test_a_reply_whose_object_is_defined_elsewhere_is_asked_for_natively(make_call: Callable[..., Call]) -> None:
    schema = {"$defs": {"Tree": TREE}, "$ref": "#/$defs/Tree"}
    body = await sent(make_call, user_says("hi", response_schema=schema))
    assert problems(body) == []
    assert body["response_format"]["json_schema"]["schema"] == {**TREE, "$defs": {"Tree": TREE}}


# --- presets ---


@pytest.mark.parametrize(
    ("base", "name"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://me.openai.azure.com/openai/v1", "azure"),
        ("https://me.services.ai.azure.com/openai/v1", "azure"),
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("https://API.DeepSeek.com", "deepseek"),
        ("https://api.mistral.ai/v1", "mistral"),
        ("https://api.groq.com/openai/v1", "groq"),
        ("http://localhost:11434/v1", "ollama"),
        ("http://127.0.0.1:8000/v1", "vllm"),
        ("http://[::1]:1234/v1", "lmstudio"),
        ("http://box.lan:8080/v1", "llamacpp"),
        ("https://models.example:8000/v1", ""),
        ("http://localhost:8001/v1", ""),
        ("https://api.openai.com.example/v1", ""),
        ("https://notopenrouter.ai/v1", ""),
        ("https://user:api.openai.com@models.example/v1", ""),
        ("nonsense", ""),
    ],
)
def test_addresses_tell_the_service(base: str, name: str) -> None:
    assert preset_for(base) == name


def test_an_entry_can_name_its_service_or_none() -> None:
    local = "http://localhost:11434/v1"
    assert dialect_of("openai_compatible", local, Settings(preset="mistral")).tool_id_pattern
    assert dialect_of("openai", local, None).wire == "chat"
    assert not dialect_of("openai", local, None).takes_images("gpt-4o")
    assert dialect_of("openai", local, Settings(images=True)).takes_images("llava")
    assert not dialect_of("openai_compatible", "https://example.org/v1", None).takes_images("any")
    ours = dialect_of("openai", "https://api.openai.com/v1", None)
    takes = {name: ours.takes_images(name) for name in ("gpt-4o", "gpt-4.1-mini", "o3", "gpt-5", "gpt-4-turbo", "next")}
    assert set(takes.values()) == {True}
    takes = {name: ours.takes_images(name) for name in ("gpt-3.5-turbo", "gpt-4", "gpt-4-0613", "o1-mini", "o3-mini")}
    assert set(takes.values()) == {False}
    assert dialect_of("openai", local, Settings(preset="none")).wire is None
    assert not dialect_of("openai_compatible", "https://api.mistral.ai/v1", Settings(strict_roles=False)).strict_roles
    names = get_args(Settings.model_fields["preset"].annotation)[0]
    assert set(get_args(names)) == {"none", *PRESETS}


def test_the_reference_has_every_key_and_every_preset() -> None:
    page = (CHECKOUT / "docs" / "reference" / "openai-compatible.md").read_text(encoding="utf-8")
    keys = page.split("## Keys of an entry")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", keys, re.MULTILINE)) == set(Settings.model_fields)
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*)", page.split("## Presets")[1], re.MULTILINE))
    assert rows.keys() == PRESETS.keys()
    for name, preset in PRESETS.items():
        for place in (*preset.hosts, *([str(preset.port)] if preset.port else [])):
            assert place in rows[name]
        if name != "azure":  # told as "the same"
            for key, value in preset.quirks.items():
                told = value if isinstance(value, str) else key
                assert told in rows[name] or key == "reduces_schemas"


async def test_mistral(make_call: Callable[..., Call]) -> None:
    calls = assistant(ToolUseBlock("toolu_01", "f", "{}"))
    request = ModelRequest("m", "", [user("x"), calls, result("toolu_01", "ok"), user("y")], max_tokens=5)
    body = await sent(make_call, request, options=Settings(preset="mistral"))
    assert problems(body, strict_roles=True, id_pattern="[a-zA-Z0-9]{9}") == []
    assert "stream_options" not in body
    assert body["max_tokens"] == 5


def azure(base: str, **options: Any) -> tuple[Any, ScriptedHttp]:
    body = text("ok").body
    http = ScriptedHttp([HttpAnswer((body,))])
    given = Settings(**options) if options else None
    settings = ProviderSettings("mine", "openai", base, KEY, options=given)
    return openheim_create_provider("openai", settings, http), http


async def test_azure() -> None:
    deployment = "https://me.openai.azure.com/openai/deployments/mine"
    with pytest.raises(ConfigError, match="no api_version") as caught:
        azure(deployment)
    assert "[providers.mine]" in caught.value.hint
    for provider, http in (
        azure(deployment, api_version="2024-10-21"),
        azure("https://me.openai.azure.com/openai/v1/"),
    ):
        await provider.generate(user_says("hi", max_tokens=20, session_id="s"), lambda delta: None)
        (request,) = http.requests
        assert request.headers["api-key"] == KEY
        assert "authorization" not in request.headers
        assert json.loads(request.content)["max_completion_tokens"] == 20
        assert KEY not in request.url
    assert request.url == "https://me.openai.azure.com/openai/v1/chat/completions"


async def test_azures_version_goes_with_every_request() -> None:
    provider, http = azure("https://me.openai.azure.com/openai/deployments/mine", api_version="2024-10-21")
    await provider.generate(user_says("hi"), lambda delta: None)
    assert http.requests[0].url.endswith("/deployments/mine/chat/completions?api-version=2024-10-21")


@pytest.mark.parametrize(
    "settings",
    [
        {"wire": "telepathy"},
        {"preset": "opanai"},
        {"tool_id_pattern": "("},
        {"tool_id_pattern": "[é]{900}"},
        {"echo_reasoning": "content"},
        {"api_version": "a&b=c"},
        {"reasoning_summary": "long"},
        {"dimensions": 0},
        {"extra_body": {"input": []}},
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate(settings)
