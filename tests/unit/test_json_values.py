"""Decoded JSON: values of unknown type, and nesting."""

from typing import Any

import pytest

from dragoman.json_values import as_list, as_object, nests_deeper


@pytest.mark.parametrize("value", [None, 1, "text", True, 1.5])
def test_a_value_that_is_neither_object_nor_list_is_empty(value: Any):
    assert (as_object(value), as_list(value)) == ({}, [])


def test_objects_and_lists_are_unchanged():
    value: Any = {"a": [1]}
    assert as_object(value) is value
    assert as_list(value["a"]) is value["a"]
    assert (as_list(value), as_object(value["a"])) == ([], {})


@pytest.mark.parametrize(
    ("value", "depth"),
    [(1, 0), ([], 1), ({"a": 1}, 1), ([[]], 2), ({"a": [1, {}], "b": {"c": {"d": []}}}, 4)],
)
def test_the_depth_is_that_of_the_deepest_object_or_list(value: Any, depth: int):
    assert [nests_deeper(value, limit) for limit in range(6)] == [limit < depth for limit in range(6)]
