"""What real servers answer, as a model gets it: pictures, large pages, links, structured content."""

import base64
import functools
import http.server
import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman import ImageBlock, TextBlock
from dragoman.content.images import IMAGE_LIMIT_BYTES, LONGEST_SIDE
from tests.interop.visit import visit

Part = Callable[..., dict[str, Any]]

pytestmark = pytest.mark.requirement("CAL-7")


@pytest.fixture
def page(tmp_path: Path) -> Iterator[str]:
    """A page with a long table, on loopback."""
    cells = "<td><a href='#r{n}'>row {n}</a></td><td>" + "word " * 8 + "</td>"
    rows = "".join(f"<tr>{cells.format(n=n)}</tr>" for n in range(1500))
    style = "background: linear-gradient(red, blue)"
    (tmp_path / "index.html").write_text(f"<title>Ledger</title><body style='{style}'><table>{rows}</table>")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/index.html"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.needs("playwright")
@pytest.mark.slow
async def test_pages_and_screenshots_of_a_browser_server_are_prepared_for_the_model(
    part: Part, page: str, tmp_path: Path
) -> None:
    async with visit({**part("playwright"), "cwd": str(tmp_path)}, "2025-11-25") as browser:
        assert "Ledger" in (await browser.call("browser_navigate", url=page)).text

        snapshot = await browser.call("browser_snapshot")
        (saved,) = snapshot.saved
        assert saved.size_bytes > 100_000
        assert len(snapshot.text) < 20_000
        assert saved.handle in snapshot.text
        assert str(saved.path) in snapshot.text
        assert "row 1499" in saved.path.read_text()
        toolbox = browser.host.toolbox()
        found = await toolbox.call("read_result", {"handle": saved.handle, "grep": "row 777"})
        assert 'link "row 777"' in found.text

        picture = await browser.call("browser_take_screenshot", scale="css")
        (image,) = [block for block in picture.content if isinstance(block, ImageBlock)]
        assert len(base64.b64decode(image.data)) <= IMAGE_LIMIT_BYTES
        assert max(_size(image)) <= LONGEST_SIDE


@pytest.mark.needs("server-everything")
async def test_unusual_results_of_the_reference_server_are_prepared_for_the_model(part: Part) -> None:
    async with visit(part("server-everything"), "2025-11-25") as server:
        tiny = await server.call("get-tiny-image")
        kinds = [type(block) for block in tiny.content]
        assert kinds == [TextBlock, ImageBlock, TextBlock], "its image says something broken of its colours"
        assert _size(tiny.content[1])[0] > 0

        weather = await server.call("get-structured-content", location="New York")
        assert weather.structured["conditions"]
        assert weather.problems == ()
        assert weather.text.count("humidity") == 1, "it is said once"

        links = await server.call("get-resource-links", count=3)
        assert [block.as_text().startswith("[resource ") for block in links.content[1:]] == [True] * 3

        blob = await server.call("get-resource-reference", resourceType="Blob", resourceId=1)
        (file,) = blob.saved
        assert str(file.path) in blob.text
        assert file.path.read_bytes()


def _size(image: Any) -> tuple[int, int]:
    from PIL import Image

    return Image.open(io.BytesIO(base64.b64decode(image.data))).size
