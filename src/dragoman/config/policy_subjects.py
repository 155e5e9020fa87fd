"""A server as policy sees it: the program that would be started, or the address that would be connected to.

Finds the program of a command with the same search path and folder that the start uses, so that policy and
the start cannot differ.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import structs

from dragoman import paths
from dragoman.config.masking import masked_name
from dragoman.config.merge import Candidate
from dragoman.config.model import ServerConfig
from dragoman.config.policy import Policy, PolicySubject, real_program
from dragoman.config.scopes import working_folder
from dragoman.transport_types import UNUSABLE
from dragoman.urls import parse_url

_SHELL_SYNTAX: Final = re.compile(r"[^A-Za-z0-9_@%+=:,./ '\"-]|\A[^ /]*=|\A ")
_OF_THE_CONNECTION: Final = frozenset(
    {"connection", "content-length", "expect", "forwarded", "host", "te", "trailer", "transfer-encoding",
     "upgrade"}
)  # fmt: skip
_OF_PROXIES: Final = (
    *("mcp-", "proxy-", "x-forwarded-", "x-original-", "x-rewrite-", "x-envoy-", "x-host", "x-http-host"),
    *("x-http-method", "x-method-override", "x-url", "x-uri", "x-request-ur", "x-backend-host", "x-proxy-"),
)
_ENDS_OPTIONS: Final = re.compile(r"-[bBdEiIOPqRsSuvx]*[mc]|--?\Z")
_PYTHON: Final = re.compile(r"(?:python|pypy|graalpy)w?[0-9.]*t?d?(?:-dbg)?(?:\.exe)?", re.IGNORECASE)


def subject_of(candidate: Candidate, config: ServerConfig | None, project: str) -> PolicySubject:
    if config is None:
        return PolicySubject(name=candidate.name, scope=candidate.scope, transport=UNUSABLE)
    command = (config.command, *config.args) if config.transport.starts_command and config.command else None
    found = found_program(config) if command else None
    return PolicySubject(
        name=candidate.name,
        scope=candidate.scope,
        transport=config.type,
        url=parse_url(config.url) if config.url is not None else None,
        command=command,
        executable=os.path.realpath(found) if found else None,
        found=found,
        project=project,
        env_names=tuple(config.env),
        sets_folder=_sets_folder(candidate.given),
        helper=_helper_of(candidate, config, project),
        rerouting=tuple(_rerouting(config)),
    )


def _helper_of(candidate: Candidate, config: ServerConfig, project: str) -> PolicySubject | None:
    if config.headers_helper is None or config.transport.starts_command:
        return None
    words = _plain_words(config.headers_helper)
    folder = config.cwd or os.path.expanduser("~")
    found = found_program(ServerConfig(command=words[0], cwd=folder, env=config.env)) if words else None
    return PolicySubject(
        name=candidate.name,
        scope=candidate.scope,
        transport="stdio",
        command=words or None,
        is_script=not words,
        is_for_shell=True,
        executable=os.path.realpath(found) if found else None,
        found=found,
        project=project,
        env_names=tuple(config.env),
        sets_folder=_sets_folder(candidate.given),
    )


def _plain_words(command: str) -> tuple[str, ...]:
    """The words of a shell command; empty if it contains more than words and quotes."""
    if _SHELL_SYNTAX.search(command):
        return ()
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return ()


def reroutes(header: str) -> bool:
    """Whether a message with this header may reach another place than its URL names."""
    name = header.lower().replace("_", "-")  # many servers read both as the same
    return name in _OF_THE_CONNECTION or name.startswith(_OF_PROXIES)


def _rerouting(config: ServerConfig) -> Iterator[str]:
    if config.proxy is not None:
        yield "proxy"
    if config.tls is not None:
        yield "tls"
    for name in config.headers:
        if reroutes(name):
            yield f"the header {masked_name(name)}"
    oauth = config.oauth
    if oauth is not None:
        # Each of them widens the set of parties that a token or a secret is sent to.
        fields = {
            "authServerMetadataUrl": oauth.auth_server_metadata_url,
            "resource": oauth.resource,
            "sendResource": not oauth.send_resource,
            "endpointOrigins": oauth.endpoint_origins,
            "allowPrivateNetwork": oauth.allow_private_network,
            "workloadToken": (oauth.workload_token or "").startswith("@"),
        }
        yield from (f"oauth.{name}" for name, value in fields.items() if value)


def _sets_folder(given: object) -> bool:
    """Whether the entry sets the folder. A project's server starts in the project's folder in any case; that
    is not a setting of the entry."""
    if isinstance(given, ServerConfig):
        return given.cwd is not None
    return isinstance(given, Mapping) and "cwd" in given


def found_program(config: ServerConfig) -> str | None:
    """The absolute path that starting this server would run; None if there is no such program.

    Searches as the start does: on the server's own search path, with relative parts resolved from its folder.
    Links are not followed: a virtual environment's python depends on the path by which it is started. Parts
    such as `link/../x` stay, because the system follows them.
    """
    command = config.command or ""
    folder = _start_folder(config)
    if os.sep in command:
        found = os.path.join(folder, command)
        return found if os.path.exists(found) else None
    search = config.env.get("PATH", os.environ.get("PATH", os.defpath))
    candidates = (os.path.join(folder, part, command) for part in search.split(os.pathsep))
    return next((found for found in candidates if os.path.isfile(found) and os.access(found, os.X_OK)), None)


def _start_folder(config: ServerConfig) -> str:
    if config.cwd is not None and os.path.isabs(config.cwd):
        return config.cwd
    return os.path.join(working_folder(), config.cwd or "")


def as_started(config: ServerConfig, policy: Policy, subject: PolicySubject | None = None) -> ServerConfig:
    """The entry with exactly the program that policy has checked, if only some are allowed, and with settings
    so that Python imports no module from the folder it is started in. `subject`: the server as policy sees
    it."""
    restricted = policy.allowed is not None
    if not config.transport.starts_command:
        return _with_safe_helper(config, restricted)
    config = _with_folder(config)
    real = real_program(policy, subject) if subject is not None else None
    command = real or (found_program(config) if restricted else None) or config.command or ""
    safe = _with_safe_path(config, (command, *config.args), _start_folder(config), restricted)
    return safe if command == config.command else structs.replace(safe, command=command)


def _with_safe_helper(config: ServerConfig, restricted: bool) -> ServerConfig:
    """Like `_with_safe_path`, for the command that prints headers: it runs in the folder of the project or of
    the person."""
    if config.headers_helper is None:
        return config
    words = _plain_words(config.headers_helper) or ("",)
    folder = os.path.join(os.path.expanduser("~"), config.cwd or "")
    return _with_safe_path(config, words, folder, restricted)


def _with_safe_path(
    config: ServerConfig, words: tuple[str, ...], folder: str, restricted: bool
) -> ServerConfig:
    """The entry with variables so that Python imports no module from the folder it is started in."""
    is_python = _PYTHON.fullmatch(os.path.basename(words[0])) is not None
    if not restricted and not is_python:
        return config
    env = {**config.env, "PYTHONSAFEPATH": "1"}  # last: an entry cannot unset it
    if is_python and (script := _script_in(words[1:])) is not None:
        # With PYTHONSAFEPATH, Python does not search the script's own folder either. The entry names the
        # script, so modules beside it are intended.
        beside = os.path.dirname(os.path.join(folder, script))
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [beside, config.env.get("PYTHONPATH")]))
    return structs.replace(config, env=env)


def _with_folder(config: ServerConfig) -> ServerConfig:
    """Creates the server's own folder. If that fails, the server starts in the root folder."""
    if config.cwd is None or not paths.is_server_folder(Path(config.cwd)):
        return config
    try:
        paths.make_private(Path(config.cwd))
    except OSError:
        return structs.replace(config, cwd="/")
    return config


def _script_in(args: tuple[str, ...]) -> str | None:
    """The script among the arguments of a Python interpreter; None for -m, -c and input."""
    words = iter(args)
    for word in words:
        if word in ("-X", "-W", "--check-hash-based-pycs"):
            next(words, None)
        elif not word.startswith("-"):
            return word
        elif _ENDS_OPTIONS.match(word):
            return None
    return None
