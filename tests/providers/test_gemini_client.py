"""The scripted server against the official client library: what it plays is the wire that others speak too."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google import genai
from google.genai import errors, types

from openheim.messages import ImageBlock, ToolUseBlock
from openheim_provider_gemini.assemble import KNOWN_REASONS
from openheim_provider_gemini.body import request_body
from openheim_provider_gemini.thinking import thinking_config
from tests.providers.gemini import READ_FILE, asking, assistant, result, user
from tests.support.gemini_server import GeminiServer
from tests.support.gemini_wire import MODEL, embeddings, error, event, events, text, tool_calls
from tests.support.replies import Reply

IMAGE = b"\x89PNG"


def client(server: GeminiServer) -> genai.Client:
    options = types.HttpOptions(
        base_url=server.url, api_version="v1beta", retry_options=types.HttpRetryOptions(attempts=1)
    )
    return genai.Client(api_key="none", http_options=options)


def stream(server: GeminiServer, contents: Any = "hi", model: str = MODEL, **config: Any) -> list[Any]:
    given = types.GenerateContentConfig(**config)
    with client(server) as sdk:
        return list(sdk.models.generate_content_stream(model=model, contents=contents, config=given))


def test_text_thoughts_and_usage() -> None:
    with GeminiServer([text("Hello", " there", thinking="let me think", signature="c2ln")]) as server:
        chunks = stream(server)
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    assert [(part.text, part.thought) for part in parts] == [("let me think", True), ("Hello", None), (" there", None)]
    assert parts[-1].thought_signature == b"sig"
    assert chunks[-1].candidates[0].finish_reason is types.FinishReason.STOP
    usage = chunks[-1].usage_metadata
    assert (usage.prompt_token_count, usage.candidates_token_count) == (11, 5)
    assert {chunk.model_version for chunk in chunks} == {MODEL}
    (request,) = server.prompts
    assert request.path == f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"
    assert request.json["contents"] == [{"role": "user", "parts": [{"text": "hi"}]}]
    assert server.problems == []


def test_tool_calls_and_their_results() -> None:
    declaration = types.FunctionDeclaration(
        name="read_file",
        description="Reads a file.",
        parameters_json_schema={"type": "object", "properties": {"path": {"type": "string"}}},
    )
    offered: Any = [types.Tool(function_declarations=[declaration])]
    calls = tool_calls(("read_file", {"path": "a"}), ("read_file", {"path": "b"}, "mine"), signature="c2ln")
    with GeminiServer([calls, text("done")]) as server:
        (chunk,) = stream(server, tools=offered)
        content = chunk.candidates[0].content
        asked = [part.function_call for part in content.parts]
        assert [(call.id, call.name, call.args) for call in asked] == [
            ("call_1", "read_file", {"path": "a"}),
            ("mine", "read_file", {"path": "b"}),
        ]
        assert [part.thought_signature for part in content.parts] == [b"sig", None]
        picture = types.FunctionResponsePart(inline_data=types.FunctionResponseBlob(mime_type="image/png", data=IMAGE))
        results = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=call.id, name=call.name, response={"result": "ok"}, parts=[picture]
                )
            )
            for call in asked
        ]
        history = [types.UserContent("hi"), content, types.Content(role="user", parts=results)]
        stream(server, history, tools=offered, system_instruction="Be brief.", max_output_tokens=100)
    # What the official library sends is what the validator takes, and so is what it takes from a reply.
    assert server.problems == []
    body = server.prompts[1].json
    assert body["contents"][1]["parts"][0] == {
        "functionCall": {"id": "call_1", "name": "read_file", "args": {"path": "a"}},
        "thoughtSignature": "c2ln",
    }
    assert body["contents"][2]["parts"][0]["functionResponse"].keys() == {"id", "name", "response", "parts"}
    assert body["systemInstruction"]["parts"] == [{"text": "Be brief."}]


def test_generation_settings() -> None:
    with GeminiServer(default=text("{}")) as server:
        stream(server, thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_level="low"))  # type: ignore[arg-type]  # the library reads the word
        stream(server, model="gemini-2.5-flash", thinking_config=types.ThinkingConfig(thinking_budget=-1))
        stream(server, response_mime_type="application/json", response_json_schema={"type": "object"})
    configs = [request.json["generationConfig"] for request in server.prompts]
    assert configs == [
        {"thinkingConfig": {"include_thoughts": True, "thinking_level": "LOW"}},
        {"thinkingConfig": {"thinking_budget": -1}},
        {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}},
    ]
    assert server.problems == []


def test_all_reasons_for_an_end_are_known() -> None:
    assert {reason.value for reason in types.FinishReason} <= KNOWN_REASONS


def test_a_blocked_prompt() -> None:
    with GeminiServer([events({"promptFeedback": {"blockReason": "SAFETY"}})]) as server:
        (chunk,) = stream(server)
    assert chunk.prompt_feedback.block_reason is types.BlockedReason.SAFETY
    assert chunk.candidates is None


def test_a_candidate_without_content() -> None:
    with GeminiServer([events(event(finish="SAFETY"))]) as server:
        (chunk,) = stream(server)
    assert chunk.candidates[0].content is None
    assert chunk.candidates[0].finish_reason is types.FinishReason.SAFETY


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(400, "wrong"), errors.ClientError),
        (error(403, "bad key", word="PERMISSION_DENIED"), errors.ClientError),
        (error(429, "slow down", word="RESOURCE_EXHAUSTED"), errors.ClientError),
        (error(503, "overloaded", word="UNAVAILABLE"), errors.ServerError),
    ],
)
def test_errors(reply: Reply, kind: type[errors.APIError]) -> None:
    with GeminiServer([reply]) as server, pytest.raises(kind) as caught:
        stream(server)
    assert caught.value.code == reply.status


def test_models_and_embeddings() -> None:
    vectors = embeddings([1.0, 2.0], [3.0, 4.0])
    with GeminiServer([vectors], models=["a", "text-embedding"]) as server, client(server) as sdk:
        listed = {model.name: model for model in sdk.models.list()}
        assert listed.keys() == {"models/a", "models/text-embedding"}
        assert listed["models/a"].input_token_limit == 1_048_576
        assert listed["models/a"].supported_actions == ["generateContent"]
        made = sdk.models.embed_content(model="text-embedding", contents=["x", "y"])
    assert [vector.values for vector in made.embeddings or ()] == [[1.0, 2.0], [3.0, 4.0]]
    asked = server.requests[-1]
    assert asked.path == "/v1beta/models/text-embedding:batchEmbedContents"
    assert [entry["model"] for entry in asked.json["requests"]] == ["models/text-embedding"] * 2


def test_requests_that_break_the_rules_are_refused() -> None:
    with GeminiServer([text("never")]) as server, pytest.raises(errors.ClientError, match="the first role is 'model'"):
        stream(server, [types.ModelContent("I begin")])


@pytest.mark.parametrize("model", [MODEL, "gemini-2.5-flash"])
def test_what_the_provider_sends_has_the_librarys_types(model: str) -> None:
    """Which refuse every field that they do not know."""
    picture = ImageBlock("iVBORw0KGgo=", "image/png")
    opaque = {"signatures": [{"block": 0, "start": 0, "end": 2, "signature": "c2ln"}]}
    messages = [
        user("look", picture),
        assistant("I look.", ToolUseBlock("c1", "read_file", "{}", "c2ln"), opaque=opaque),
        result("c1", "", picture),
        assistant(ToolUseBlock("c2", "read_file", "{}"), wire="anthropic"),
        result("c2", "gone", is_error=True),
    ]
    request = asking(*messages, model=model, system="Be brief.", tools=(READ_FILE,))
    body = json.loads(
        request_body(request, {"generationConfig": {"thinkingConfig": thinking_config(model, "low")}}, "mine")
    )
    contents = [types.Content.model_validate(content) for content in body.pop("contents")]
    types.Content.model_validate(body.pop("systemInstruction"))
    (offered,) = body.pop("tools")
    types.Tool.model_validate(offered)
    types.GenerationConfig.model_validate(body.pop("generationConfig"))
    assert body == {}
    parts = contents[1].parts or []
    assert [part.thought_signature for part in parts] == [b"sig", None, b"sig"]
