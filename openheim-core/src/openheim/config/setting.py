"""``openheim config set``: one value in a config file, checked before it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from openheim._slips import closest
from openheim.config.editing import edit_config
from openheim.config.environment import value_from_text
from openheim.config.findings import SettingError
from openheim.config.keys import shown_key
from openheim.config.load import examine_config
from openheim.config.project import may_set
from openheim.config.schema import SCHEMA, schema_at, types_of
from openheim.config.toml import MAX_DEPTH
from openheim.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ("set_in_file",)


def set_in_file(
    file: Path, path: tuple[str, ...], text: str, *, config: str | None, cwd: Path, by_project: bool = False
) -> bool:
    """Sets one value in a config file. Comments, order and everything else in it stay as they are.

    Args:
        file: the file to change; it is made if it is not there.
        path: the setting.
        text: its value as a person writes it: TOML, or a plain text where the setting is one.
        config: the user's config file as named on the command line.
        cwd: the working directory, whose project's files count as well.
        by_project: whether ``file`` is a project's, which may not set everything.

    Returns:
        Whether the file was changed.

    Raises:
        UsageError: there is no such setting, or it is a section, or the value is no text.
        ConfigError: the value is not allowed, alone or beside the others, or the file cannot be edited.
    """
    if len(path) > MAX_DEPTH:
        raise UsageError("that setting is nested too deeply", hint="make it flatter")
    try:
        "".join((*path, text)).encode()
    except UnicodeEncodeError as err:
        raise UsageError("the setting is not UTF-8", hint="check the terminal's locale") from err
    value = value_from_text(text, _schema_of_one(path))
    if by_project:
        _require_allowed(path, value, config, cwd)

    def errors(replaced: Mapping[Path, Mapping[str, Any]] | None = None) -> list[Any]:
        # A file that is named and not there yet is about to be made.
        given = {file: {}, **(replaced or {})} if not file.exists() else replaced
        return list(examine_config(config, cwd=cwd, trust=True, replaced=given).errors)

    def change(document: Any) -> None:
        _put(document, path, value)
        known = {finding.message for finding in errors()}
        for finding in errors({file: document.unwrap()}):
            if finding.message not in known:
                # Its line would be that of the text before.
                raise SettingError(replace(finding, file=None, line=None, source=""))

    return edit_config(file, change, only=(path,))


def _schema_of_one(path: Sequence[str]) -> Mapping[str, Any] | None:
    """The schema of a single value, or None for a key of a plugin's.

    Raises:
        UsageError: the core has no such setting, or it is a section.
    """
    schema: Any = SCHEMA
    for place, part in enumerate(path):
        known = schema.get("properties", {})
        inner = known.get(part, schema.get("additionalProperties"))
        if inner is False or (inner is None and known):
            near = closest(part, list(known))
            hint = f"did you mean {shown_key([*path[:place], near])}?" if near else "see openheim config show"
            raise UsageError(f"there is no setting {shown_key(path[: place + 1])}", hint=hint)
        if not isinstance(inner, dict):
            return None
        schema = inner
    if types_of(schema) == ("object",):
        raise UsageError(
            f"{shown_key(path)} is a section", hint=f"name a key in it, such as {shown_key([*path, _some_key(schema)])}"
        )
    return schema_at(path)


def _some_key(schema: Mapping[str, Any]) -> str:
    return next(iter(schema.get("properties", {})), "NAME")


def _require_allowed(path: tuple[str, ...], value: Any, config: str | None, cwd: Path) -> None:
    users = examine_config(config, cwd=cwd, trust=False).values
    wanted: Any = value
    for key in reversed(path):
        wanted = {key: wanted}
    for refused in may_set(wanted, users)[1]:
        raise ConfigError(
            f"{shown_key(refused.path)} cannot be set by a project: {refused.reason}",
            hint="leave --project and --local out to set it in your own config.toml",
        )


def _put(document: Any, path: tuple[str, ...], value: Any) -> None:
    import tomlkit

    table = document
    for place, key in enumerate(path[:-1]):
        if key not in table:
            # Tables that only hold tables need no header of their own.
            table[key] = tomlkit.table(is_super_table=place < len(path) - 2)
        table = table[key]
        if not isinstance(table, Mapping):
            raise ConfigError(f"{shown_key(path[: place + 1])} is no section in this file", hint="correct it by hand")
    if isinstance(value, dict):
        inline = tomlkit.inline_table()
        inline.update(value)
        value = inline
    table[path[-1]] = value
