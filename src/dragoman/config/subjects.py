"""A server as policy sees it: what would really be started or connected.

I own: finding the program a command stands for, with the same path and folder that starting it will
use, so that policy and the start cannot disagree.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from msgspec import structs

from dragoman.config.merge import Candidate
from dragoman.config.model import UNUSABLE, ServerConfig
from dragoman.config.policy import Policy, Subject
from dragoman.config.urls import parse_url


def subject_of(
    candidate: Candidate, config: ServerConfig | None, project: str, environ: Mapping[str, str]
) -> Subject:
    if config is None:
        return Subject(name=candidate.name, scope=candidate.scope, transport=UNUSABLE)
    found = found_program(config, environ) if config.type == "stdio" and config.command else None
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
    )


def found_program(config: ServerConfig, environ: Mapping[str, str]) -> str | None:
    """The absolute path that starting this server would run; None if there is no such program.

    Links are not followed: a virtual environment's python depends on the path it is started by. Nor are
    detours (`link/../x`) taken out, which the system would walk.
    """
    command = config.command or ""
    if os.sep in command:
        found = os.path.join(os.getcwd(), config.cwd or "", command)
        return found if os.path.exists(found) else None
    search = config.env.get("PATH", environ.get("PATH", os.defpath))
    found = shutil.which(command, path=search)
    return os.path.join(os.getcwd(), found) if found else None


def as_admitted(config: ServerConfig, policy: Policy) -> ServerConfig:
    """Where only some are allowed: with the very program that policy has looked at."""
    if policy.allowed is None or config.type != "stdio":
        return config
    return structs.replace(config, command=found_program(config, os.environ) or config.command)
