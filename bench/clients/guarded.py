"""Dragoman's Host with everything on: checked arguments, two hooks, a rule, a result made fit, audit."""

from typing import Any

from bench.clients import host
from dragoman import Host
from dragoman.hooks.declared import hook


class Client(host.Client):
    def make(self, servers: dict[str, Any]) -> Host:
        self.seen = 0
        rules = {"allow": ["mcp__s0", "mcp__s0__echo(text=*)"], "deny": ["mcp__*__delete_*"]}
        hooks = [hook(self.before, "PreToolUse"), hook(self.after, "PostToolUse")]
        return Host(servers, rules=rules, hooks=hooks, audit=True)

    def before(self, given: dict[str, Any]) -> None:
        self.seen += bool(given["tool_input"])

    def after(self, given: dict[str, Any]) -> None:
        self.seen += len(given["tool_response"])
