"""T154: an HTML page at the URL, or an error status instead of the list of tools, is reported as such."""

import pytest

from dragoman.errors import HandshakeFailed, SignInNeeded, Unreachable
from tests.servers.web import answers, http_sse, streamable
from tests.torture.conftest import MODERN


@pytest.mark.requirement("LIF-3")
@pytest.mark.parametrize("site", [streamable, http_sse], ids=["http", "sse"])
async def test_t154_an_html_page_at_the_url_suggests_to_check_the_url(bystander_host, site):
    async with site(on={"*": answers.html()}) as server:
        kind = "sse" if site is http_sse else "http"
        async with bystander_host({"type": kind, "url": server.url}) as a:
            assert a.view.status == "failed"
            assert isinstance(a.view.error, HandshakeFailed | Unreachable)
            assert "text/html" in str(a.view.error)
            assert str(a.view.error).endswith("is the URL right?")
            assert "fault of the server" not in (a.view.error.hint or "")


@pytest.mark.requirement("LIF-3")
@pytest.mark.parametrize(("status", "kind"), [(401, SignInNeeded), (500, Unreachable)])
async def test_t154_an_error_status_instead_of_the_list_of_tools_is_reported(bystander_host, status, kind):
    async with (
        streamable(revisions=(MODERN,), on={"tools/list": answers.status(status)}) as server,
        bystander_host({"url": server.url}) as a,
    ):
        assert a.view.status == ("needs-auth" if status == 401 else "failed")
        assert type(a.view.error) is kind
        assert (a.view.error.status, a.view.error.phase) == (status, "tools/list")
