"""T790: with `uniqueItems` a validator compares elements of an array; the cost of that is limited."""

from itertools import islice, product
from typing import Any

import jsonschema_rs
import pytest

from dragoman.calls.schema_cost import WORK_LIMIT, cost_of_document

UNIQUE: dict[str, Any] = {"uniqueItems": True}
NESTED: dict[str, Any] = {"uniqueItems": True, "items": {"$ref": "#"}}
ZEROS = [0] * 200
MEMBERS = dict.fromkeys(map(str, range(200)), 0)
EMPTY: list[Any] = [[], [[]], [[], []], [[[]]]]


def chain(length: int, depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [*range(length), value]
    return value


SLOW: dict[str, tuple[dict[str, Any], Any]] = {
    "arrays with a large number": (UNIQUE, [[*ZEROS, 2**70 + number] for number in range(450)]),
    "objects with a large number": (UNIQUE, [{**MEMBERS, "z": 2**70 + number} for number in range(450)]),
    "numbers that are equal as floats": (UNIQUE, [2**63 - 1 - number for number in range(8_000)]),
    "nested empty arrays": (UNIQUE, [list(each) for each in islice(product(EMPTY, repeat=7), 8_000)]),
    "arrays in arrays in arrays": (NESTED, chain(3_000, 160)),
    "very many levels": (UNIQUE, chain(1, 600)),
    "long texts in pairs": ({"allOf": [UNIQUE] * 200}, ["x" * 10**6 + str(number) for number in range(14)]),
}


@pytest.mark.requirement("CAL-1")
@pytest.mark.parametrize("attack", SLOW)
def test_t790_comparisons_that_take_too_long_are_skipped(attack: str) -> None:
    schema, value = SLOW[attack]
    cost = cost_of_document(schema)
    assert cost is not None
    assert not cost.is_low
    assert cost.of(value).judging > WORK_LIMIT


@pytest.mark.parametrize(
    "value",
    [
        [f"tag {number}" for number in range(10_000)],
        [{"id": number, "row": 9_000 - number} for number in range(9_000)],
        [2**60 + number * 2**20 for number in range(9_000)],
        [[number / 3, None, True] for number in range(9_000)],
    ],
)
def test_t790_ordinary_arrays_are_validated(value: list[Any]) -> None:
    cost = cost_of_document(UNIQUE)
    assert cost is not None
    assert cost.of(value).judging <= WORK_LIMIT
    assert jsonschema_rs.validator_for(UNIQUE).is_valid(value)
    assert not jsonschema_rs.validator_for(UNIQUE).is_valid([*value, value[0]])
