"""T358: a server lists very many or very large resources before those of other servers."""

import json
from typing import Any

import pytest

from dragoman.calls.reading_tools import LISTED_LIMIT, describe
from dragoman.calls.sending import Listed
from dragoman.catalog.resources import Resource, ResourceTemplate
from dragoman.names import ServerName

pytestmark = pytest.mark.requirement("CAT-9")


def resources(server: str, count: int, description: str = "") -> list[Resource]:
    return [
        Resource(
            server=ServerName(server), uri=f"{server}:{number}", name=f"{number}", description=description
        )
        for number in range(count)
    ]


def shown(*listed: Resource) -> dict[str, Any]:
    none: Listed[ResourceTemplate] = Listed((), ())
    return json.loads(describe(Listed(listed, ()), none))


@pytest.mark.parametrize(("count", "size"), [(10 * LISTED_LIMIT, 0), (LISTED_LIMIT - 10, 2000)])
def test_t358_a_model_is_shown_resources_of_every_server(count: int, size: int):
    many = resources("a-greedy-one", count, "x" * size)
    found = shown(*many, *resources("b", 2), *resources("c", 3))
    names = [each["server"] for each in found["resources"]]
    assert (names.count("b"), names.count("c")) == (2, 3)
    assert names == sorted(names)
    assert found["notShown"].startswith(f"{count + 5 - len(names)} more resources")
