"""T482: a form that asks for a secret is refused also where its title uses lookalike letters, digits or
other characters."""

import pytest

from dragoman.forms import fields_of
from tests.torture.test_t47_forms import form

pytestmark = pytest.mark.requirement("ASK-1")

SECRETS = [
    "P\u0430ssword",  # Cyrillic
    "\u0420\u0430ssw\u043erd",
    "API \u039aey",  # Greek
    "\uff30assword",  # full width
    "\U0001d40fassword",  # mathematical
    "P\u00e1ssword",
    "Your p\u0430ssphrase",
    "Password1",
    "PASSWORD2",
    "api_key2",
    "accessToken2",
    "API  key",
    "API/key",
    "Card-number:",
    "pw",
]
OTHERS = [
    "Secretary",
    "Tokens per request",
    "Passenger",
    "Compass",
    "Keyboard",
    "Spin",
    "P\u00e9ter",
    "Pwllheli",
]


@pytest.mark.parametrize("title", [*SECRETS, *OTHERS])
def test_t482_a_title_is_normalised_before_the_check_for_secrets(title: str):
    schema = form({"x": {"type": "string", "title": title}})["requestedSchema"]
    assert fields_of(schema)[0].is_secret == (title in SECRETS)
