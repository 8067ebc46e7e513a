"""What the model is told about each tool's arguments.

Names, texts and order are part of the contract with clients and with sessions on disk; what was added later is optional
and stands last.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ("EDIT_FILE", "LIST_DIR", "READ_FILE", "SEARCH", "WRITE_FILE")

READ_FILE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The path to the file to read"},
        "offset": {
            "type": "integer",
            "minimum": 1,
            "description": "Line number to start reading from (1-based). Defaults to 1.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "description": "Maximum number of lines to read. Defaults to as many as fit in 100 KB.",
        },
        "column": {
            "type": "integer",
            "minimum": 1,
            "description": "Byte to start from in the first line (1-based), to go on in a line that was cut. "
            "Defaults to 1.",
        },
    },
    "required": ["path"],
}

WRITE_FILE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The path to the file to write"},
        "content": {"type": "string", "description": "The content to write to the file"},
    },
    "required": ["path", "content"],
}

EDIT_FILE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The path to the file to edit"},
        "old_string": {
            "type": "string",
            "description": "The exact text to replace. Must be unique in the file unless replace_all is set.",
        },
        "new_string": {"type": "string", "description": "The text to replace old_string with"},
        "replace_all": {
            "type": "boolean",
            "description": "Replace every occurrence of old_string instead of requiring exactly one. "
            "Defaults to false.",
        },
    },
    "required": ["path", "old_string", "new_string"],
}

LIST_DIR: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "description": "The directory to list. Defaults to the current directory if omitted.",
        },
        "offset": {
            "type": "integer",
            "minimum": 1,
            "description": "Entry to start from (1-based), to go on in a long listing. Defaults to 1.",
        },
    },
}

SEARCH: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "description": "The regex pattern to search for"},
        "path": {
            "type": "string",
            "description": "The file or directory to search. Defaults to the current directory if omitted.",
        },
        "case_insensitive": {"type": "boolean", "description": "Match case-insensitively. Defaults to false."},
        "glob": {
            "type": "string",
            "description": "Search only files whose path matches this glob, such as '*.py' or 'src/**/*.{ts,tsx}'.",
        },
        "context": {
            "type": "integer",
            "minimum": 0,
            "description": "Lines to show before and after each match (at most 10). Defaults to 0.",
        },
        "names": {
            "type": "boolean",
            "description": "Match the paths of files instead of their lines. Defaults to false.",
        },
    },
    "required": ["pattern"],
}
