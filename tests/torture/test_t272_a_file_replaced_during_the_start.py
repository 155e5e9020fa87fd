"""T272: a caller that is removed from the gateway's file while the gateway starts is refused."""

from pathlib import Path

import pytest

from dragoman.gateway.access import Identify, RequestRefused, fixed_tokens, with_token
from dragoman.gateway.callers_file import CallersFile
from dragoman.gateway.settings import GatewaySettings
from dragoman.gateway.settings_file import read_settings
from tests.gateway import ADA, BOB
from tests.torture.test_t233_callers_that_are_taken_out import BOTH, write

pytestmark = pytest.mark.requirement("GWY-3")


def identify_of(settings: GatewaySettings) -> Identify:
    return with_token(fixed_tokens(settings.callers))


async def test_t272_a_caller_removed_after_the_first_read_is_refused(tmp_path: Path):
    path = tmp_path / "gateway.json"
    write(path, BOTH)
    settings = read_settings(path)
    write(path, {"bob": {"token": BOB}})
    reported: list[str] = []
    callers = CallersFile(path, settings, identify_of, reported.append)

    assert (await callers.identify([f"Bearer {BOB}"])).caller.id == "bob"
    with pytest.raises(RequestRefused) as refused:
        await callers.identify([f"Bearer {ADA}"])
    assert (refused.value.status, reported) == (401, [])


async def test_t272_a_file_that_is_deleted_by_then_changes_nothing(tmp_path: Path):
    path = tmp_path / "gateway.json"
    write(path, BOTH)
    settings = read_settings(path)
    path.unlink()
    reported: list[str] = []
    callers = CallersFile(path, settings, identify_of, reported.append)

    assert (await callers.identify([f"Bearer {ADA}"])).caller.id == "ada"
    assert [text.endswith("the callers before the change stay in effect") for text in reported] == [True]
