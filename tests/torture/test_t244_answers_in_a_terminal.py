"""T244: the answer that `dragoman -p` prints cannot control a terminal; scripts receive it unchanged."""

import pytest

from tests.e2e import command
from tests.e2e.fake_provider import FakeProvider
from tests.e2e.forked import in_terminal

pytestmark = pytest.mark.requirement("AGT-1")
ANSWER = "\x1b]0;title\x07done\u202e"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key")


def words(provider: FakeProvider) -> tuple[str, ...]:
    return "--model", "openai-chat:m", "--base-url", f"{provider.url}/v1", "-p", "hello"


def test_t244_control_characters_are_visible_on_a_terminal(home: object):
    with FakeProvider([ANSWER]) as provider:
        code, shown = in_terminal(*words(provider))
    assert (code, shown) == (0, "\\x1b]0;title\\x07done\\u202e\n")


def test_t244_other_outputs_receive_the_unchanged_answer(home: object):
    with FakeProvider([ANSWER]) as provider:
        done = command.run(*words(provider))
    assert (done.returncode, done.stdout) == (0, f"{ANSWER}\n")
