"""Which tool calls may run: modes, rules, gates, and how the three are put together."""

from __future__ import annotations

from openheim.permissions.policy import PermissionPolicy
from openheim.permissions.rules import Rule, parse_rule

__all__ = ("PermissionPolicy", "Rule", "parse_rule")
