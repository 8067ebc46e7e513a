"""A plugin's own settings: its pydantic ``Settings`` model, and errors that name section and key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ("check_settings",)


def check_settings(model: Any, table: Mapping[str, Any], *, where: str) -> Any:
    """Makes an instance of a plugin's ``Settings`` from its section.

    A key that the model does not know is an error, also for a model that forgot to forbid it; only one that says
    ``extra="allow"`` gets such keys.

    Args:
        model: the pydantic model, or None for a plugin that has no settings.
        table: the section as it stands in the file. One that knows where its values were given
            (:class:`openheim.config.models.PluginTable`) has errors begin with file and line.
        where: names the section in errors, ``[tools.fs]``.

    Raises:
        ConfigError: a key is unknown, missing or wrong. It never quotes a value: that may be a secret.
    """
    if model is None:
        if table:
            keys = sorted(table)
            raise ConfigError(
                _said(where, table, [((keys[0],), f"{', '.join(keys)}: this plugin has no settings")]),
                hint="take the keys out",
            )
        return None
    from pydantic import ValidationError

    known = _keys(model)
    problems: dict[tuple[str | int, ...], str] = {}
    hint = ""
    if model.model_config.get("extra") != "allow":
        for key in table:
            if key not in known:
                problems[key,] = "unknown key"
                from openheim._slips import closest

                near = closest(key, [*known, *getattr(table, "beside", ())])
                hint = hint or (f"did you mean {near}?" if near else f"known keys: {', '.join(known) or 'none'}")
    try:
        settings = model.model_validate(dict(table))
    except ValidationError as err:
        for problem in err.errors(include_url=False, include_context=False, include_input=False):
            problems.setdefault(problem["loc"], _in_words(problem["type"], problem["msg"]))
    if problems:
        lines = [(path, f"{_shown(path)}: {what}") for path, what in problems.items()]
        # Not "from err": pydantic's message quotes the values.
        raise ConfigError(_said(where, table, lines), hint=hint) from None
    return settings


def _shown(path: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in path) or "(whole section)"


def _said(where: str, table: Mapping[str, Any], problems: Sequence[tuple[tuple[str | int, ...], str]]) -> str:
    """The problems as one message: each with the place where its value was given, the section named once."""
    from openheim.config.models import PluginTable

    text = ""
    source = None
    for path, problem in problems:
        place = table.place_of(*path) if isinstance(table, PluginTable) else None
        if place is None:
            lead = ""
        elif place.source == source:
            lead = f"line {place.line}: " if place.line is not None else ""
        else:
            lead, source = f"{place}: ", place.source
        text += f"; {lead}{problem}" if text else f"{lead}{where} {problem}"
    return text


def _keys(model: Any) -> list[str]:
    keys = []
    for name, field in model.model_fields.items():
        alias = field.validation_alias or field.alias
        if isinstance(alias, str):
            keys.append(alias)
            if not model.model_config.get("populate_by_name") and not model.model_config.get("validate_by_name"):
                continue
        elif alias is not None:
            # AliasChoices: the strings among them.
            keys += [choice for choice in getattr(alias, "choices", ()) if isinstance(choice, str)]
        keys.append(name)
    return keys


def _in_words(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "unknown key"
    if kind == "missing":
        return "must be set"
    message = message.removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    return message[:1].lower() + message[1:]
