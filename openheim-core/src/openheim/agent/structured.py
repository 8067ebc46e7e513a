"""Answers that have to match a JSON Schema: how the model is told of it, and how its answer is checked."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from openheim._jsonschema import problems, shown_path
from openheim.errors import UsageError
from openheim.jsontext import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openheim.agent.settings import LoopSettings

__all__ = ("AnswerProblem", "answer_text", "answer_value", "checked_schema", "request_system", "told_again")

#: Characters of a schema; services take far less.
MAX_SCHEMA_CHARACTERS = 256 * 1024

#: Problems that the model is told of at once, and characters of each.
_MAX_PROBLEMS = 10
_MAX_PROBLEM_CHARACTERS = 400

#: A model that writes Markdown puts code into fences.
_FENCED = r"(?is)\s*```(?:json)?[ \t]*\r?\n(.*)\n[ \t]*```\s*"


class AnswerProblem(ValueError):
    """What is wrong with an answer, in words for the model."""


def checked_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a schema as JSON has it, which nobody else can change.

    Raises:
        UsageError: it is no object, has no form in JSON, is too long, or no JSON Schema.
    """
    from collections.abc import Mapping

    from openheim.agent.schema_faults import schema_faults

    if not isinstance(schema, Mapping):
        raise UsageError(
            f"the schema of the answer is {type(schema).__name__}, and has to be an object", hint="pass a JSON Schema"
        )
    try:
        text = json.dumps(dict(schema), allow_nan=False)
        copy: dict[str, Any] = json.loads(text)
    except (ValueError, TypeError, RecursionError) as err:
        raise UsageError(f"the schema of the answer is no JSON object: {err}", hint="pass a JSON Schema") from err
    if len(text) > MAX_SCHEMA_CHARACTERS:
        raise UsageError(
            f"the schema of the answer is longer than {MAX_SCHEMA_CHARACTERS // 1024} KiB", hint="pass a shorter one"
        )
    for path, fault in schema_faults(copy):
        raise UsageError(
            f"the schema of the answer is no JSON Schema: {shown_path(path) or 'it'} {fault}", hint="correct it there"
        )
    return copy


def request_system(settings: LoopSettings) -> str:
    """The system text of requests: with the schema in it, where the provider has no other way to tell the model."""
    schema = settings.response_schema
    if schema is None or getattr(settings.provider, "structured_output", False):
        return settings.system
    told = (
        "Your last message of this turn, the one without tool calls, must be a single JSON value that matches this "
        "JSON Schema. Write the JSON alone: no other text, no code fence.\n\n"
        f"{json.dumps(schema, ensure_ascii=False)}"
    )
    return f"{settings.system}\n\n---\n\n{told}" if settings.system else told


def answer_text(text: str) -> str:
    """An answer without the code fence around it, if there is one."""
    fenced = re.fullmatch(_FENCED, text)
    return text if fenced is None else fenced[1].rstrip("\r")


def answer_value(text: str, schema: Mapping[str, Any]) -> Any:
    """The value that an answer stands for.

    Args:
        text: of :func:`answer_text`.

    Raises:
        AnswerProblem: it is no JSON, or does not match the schema.
    """
    try:
        value = parse(text)
    except (ValueError, RecursionError) as err:
        what = str(err) if isinstance(err, ValueError) else "it is nested too deeply"
        raise AnswerProblem(f"it is no JSON: {what}" if text.strip() else "it is empty") from err
    found = [
        f"{shown_path(path) or 'the value'} {problem}"[:_MAX_PROBLEM_CHARACTERS]
        for path, problem in islice(problems(value, schema), _MAX_PROBLEMS)
    ]
    if found:
        raise AnswerProblem("; ".join(found))
    return value


def told_again(problem: AnswerProblem) -> str:
    """What the model is told of an answer that does not match."""
    return (
        f"Your answer does not match the JSON Schema that it has to match: {problem}. "
        "Answer again with the corrected JSON value alone: no other text, no code fence."
    )
