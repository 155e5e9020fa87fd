"""T252: gateway requests with unreadable bodies are refused, and cause no error in its log."""

import logging
from collections.abc import Iterator

import pytest

from tests.callers_site import Browser, CallersSite, begin
from tests.gateway import ADA, Client, gateway_of

pytestmark = pytest.mark.requirement("GWY-3")
FORM = "application/x-www-form-urlencoded"
PART = "--aa\r\nContent-Disposition: form-data; name=token\r\nContent-Encoding: zz\r\n\r\nx\r\n--aa--\r\n"
FORMS: list[tuple[str, bytes]] = [
    (FORM, b"token=\xff\xfe"),
    (f"{FORM}; charset=nothing", b"token=x"),
    (f"{FORM}; charset=undefined", b"token=x"),
    (f"{FORM}; charset=hex", b"token=x"),
    ("multipart/form-data", b"x"),
    ("multipart/form-data; boundary=aa", b"--aa\r\nwrong"),
    ("multipart/form-data; boundary=aa", PART.encode()),
]


@pytest.fixture
def site() -> Iterator[CallersSite]:
    with CallersSite() as running:
        yield running


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def test_t252_an_unreadable_form_is_refused_and_the_sign_in_continues(
    site: CallersSite, caplog: pytest.LogCaptureFixture
):
    async with gateway_of({"tracker": site.entry}, own=["tracker"]) as running, Client(running.url) as ada:
        link = await begin(ada)
        for content_type, body in FORMS:
            headers = {"Content-Type": content_type}
            async with ada.http.post(link, data=body, headers=headers, allow_redirects=False) as answer:
                assert (content_type, answer.status) == (content_type, 400)
        async with Browser(site, "anna") as browser:
            assert (await browser.sign_in(link)).title == "You are signed in"
    assert errors(caplog) == []


@pytest.mark.parametrize(("token", "status"), [(ADA, 400), (None, 401)])
@pytest.mark.parametrize("path", ["", "/../messages?session=x"])
async def test_t252_a_body_with_an_unsupported_encoding_is_refused(
    caplog: pytest.LogCaptureFixture, token: str | None, status: int, path: str
):
    async with gateway_of({}) as running, Client(running.url + path, token) as client:
        reply = await client.post(b"not compressed", **{"Content-Encoding": "gzip"})
        assert reply.status == status
        assert (await client.post(b"{}", "PUT")).status == (405 if token else 401)
    assert errors(caplog) == []
