"""A server as policy sees it: what would really be started or connected.

I own: finding the program a command stands for, with the same path and folder that starting it will
use, so that policy and the start cannot disagree.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import structs

from dragoman.config.merge import Candidate
from dragoman.config.model import UNUSABLE, ServerConfig
from dragoman.config.policy import Policy, Subject
from dragoman.config.urls import parse_url


def subject_of(candidate: Candidate, config: ServerConfig | None, project: str) -> Subject:
    if config is None:
        return Subject(name=candidate.name, scope=candidate.scope, transport=UNUSABLE)
    found = found_program(config) if config.type == "stdio" and config.command else None
    return Subject(
        name=candidate.name,
        scope=candidate.scope,
        transport=config.type,
        url=parse_url(config.url) if config.url is not None else None,
        command=(config.command, *config.args) if config.type == "stdio" and config.command else None,
        executable=os.path.realpath(found) if found else None,
        found=found,
        project=project,
        env_names=tuple(config.env),
        sets_folder=_sets_folder(candidate.given),
    )


def _sets_folder(given: object) -> bool:
    """A project's server starts in its folder by itself; that is not the entry's doing."""
    if isinstance(given, ServerConfig):
        return given.cwd is not None
    return isinstance(given, Mapping) and "cwd" in given


def found_program(config: ServerConfig) -> str | None:
    """The absolute path that starting this server would run; None if there is no such program.

    As starting does it: on the path that the server will have, parts of it relative to its folder. Links
    are not followed: a virtual environment's python depends on the path it is started by. Nor are detours
    (`link/../x`) taken out, which the system would walk.
    """
    command = config.command or ""
    folder = os.path.join(os.getcwd(), config.cwd or "")
    if os.sep in command:
        found = os.path.join(folder, command)
        return found if os.path.exists(found) else None
    search = config.env.get("PATH", os.environ.get("PATH", os.defpath))
    candidates = (os.path.join(folder, part, command) for part in search.split(os.pathsep))
    return next((found for found in candidates if os.path.isfile(found) and os.access(found, os.X_OK)), None)


def as_admitted(config: ServerConfig, policy: Policy) -> ServerConfig:
    """Where only some are allowed: with the very program that policy has looked at."""
    if policy.allowed is None or config.type != "stdio":
        return config
    command = found_program(config) or config.command
    # Python would take modules from the folder it is started in before its own.
    return structs.replace(config, command=command, env={"PYTHONSAFEPATH": "1", **config.env})
