"""The shell tools of openheim: execute_command, job_output and job_kill."""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ("__version__",)
