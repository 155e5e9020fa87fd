"""T249: the model name in an agent's file cannot control the terminal."""

import pytest

from dragoman.agent.models import choose_model
from dragoman.errors import ModelNotConfigured

pytestmark = pytest.mark.requirement("CAT-2")


@pytest.mark.parametrize("name", ["a:b\x1b]0;t\x07", "a:b\u202e", "a\x9b2J:b", "a:b\u200b"])
def test_t249_a_model_name_with_invisible_characters_is_rejected(name: str):
    with pytest.raises(ModelNotConfigured, match="is not a model") as refused:
        choose_model(name)
    assert str(refused.value).isprintable()


def test_t249_other_model_names_are_accepted_unchanged():
    assert choose_model("openai-chat:llama3.1:8b-ünï").spec == "openai-chat:llama3.1:8b-ünï"
