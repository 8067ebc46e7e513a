"""The config file that ``openheim init`` writes."""

from __future__ import annotations

from openheim.config.selection import KEY_VARIABLES

__all__ = ("PROVIDER_CHOICES", "config_template")

#: Providers that ``init`` can start with: kind, default model (the plugin's own) and key variable.
PROVIDER_CHOICES = {
    "openai": ("openai", "gpt-4o", KEY_VARIABLES["openai"]),
    "anthropic": ("anthropic", "claude-sonnet-4-6", KEY_VARIABLES["anthropic"]),
    "gemini": ("gemini", "gemini-3.8-flash", KEY_VARIABLES["gemini"]),
    "local": ("openai_compatible", "", ""),
    "demo": ("demo", "demo", ""),
}


def config_template(chosen: str | None = None) -> str:
    """The text of a fresh ``config.toml``.

    Args:
        chosen: the provider to start with, one of :data:`PROVIDER_CHOICES`; None leaves all of them as comments.
    """
    sections = [_provider(name, active=name == chosen) for name in PROVIDER_CHOICES]
    default = f'default_provider = "{chosen}"' if chosen else '# default_provider = "openai"'
    return _HEAD.format(default_provider=default) + "\n".join(sections) + _TAIL


def _provider(name: str, *, active: bool) -> str:
    kind, model, variable = PROVIDER_CHOICES[name]
    lines = [f"[providers.{name}]", f'kind = "{kind}"']
    if name == "local":
        lines.append('api_base = "http://127.0.0.1:8080/v1"   # any server that speaks the OpenAI Chat wire')
        lines.append('default_model = "default"   # a name that the server knows: openheim models --refresh lists them')
    if model:
        lines.append(f'default_model = "{model}"')
    if variable:
        lines.append(f'env_var = "{variable}"   # the key is read from this variable')
    return "".join(f"{'' if active else '# '}{line}\n" for line in lines)


_HEAD = """\
# Settings of openheim. Every line that starts with '#' is a comment; what is left out has its default.

# Provider used when none is named.
{default_provider}

# Model calls per prompt at most.
# max_iterations = 10

# Boundary of file access; the directory that openheim is started in if left out.
# work_dir = "."

# Whether the model may run commands.
# allow_shell = false

# Skills of every session: Markdown files in the folder "skills" beside this file, named without ".md".
# default_skills = []

"""

_TAIL = """
# What needs a question may be settled by rules, such as edit_file(src/**). Rules that deny win.
# [permissions]
# allow = []
# deny = []

# Which plugins are used: "kind.name" or the name of a distribution.
# [plugins]
# disable = []

# What to do when a conversation outgrows the model's window: "trim" or "summarise".
# [context]
# strategy = "trim"

# openheim config check says what is wrong in this file, openheim config show what is in force.
"""
