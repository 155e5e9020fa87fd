"""What a tool card shows."""

import base64
import sys
from importlib.machinery import ModuleSpec
from io import BytesIO
from types import ModuleType
from typing import Any

import pytest
from PIL import Image

from dragoman.content.blocks import ImageBlock
from dragoman.tui.blocks import ToolBlock
from dragoman.tui.tool_card import card_text, image_widgets, short_size, split_name


def shown(tool: str = "mcp__box__get", arguments: dict[str, Any] | None = None, **fields: Any) -> str:
    return card_text(ToolBlock("c1", tool, arguments or {}, **fields)).plain


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("mcp__box__get", ("box", "get")),
        ("mcp__my_box__get__all", ("my_box", "get__all")),
        ("Bash", ("", "Bash")),
        ("mcp__odd", ("", "mcp__odd")),
    ],
)
def test_server_and_tool_are_shown_separately(name: str, parts: tuple[str, str]):
    assert split_name(name) == parts


def test_every_state_has_a_mark_and_a_word_besides_its_colour():
    assert shown(state="running") == "… get · box  running"
    assert shown(state="done", result="3") == "✓ get · box\n  └ 3"
    assert shown(state="error", result="no disk") == "✗ get · box  error\n  └ no disk"
    assert shown(state="refused", result="denied") == "⊘ get · box  refused\n  └ denied"
    assert shown(state="interrupted") == "■ get · box  interrupted"


def test_long_arguments_and_results_are_cut_with_their_size_until_the_card_is_opened():
    fields: dict[str, Any] = {"state": "done", "result": "\n".join(map(str, range(1000)))}
    arguments = {"text": "x" * 500, **{f"a{n}": n for n in range(6)}}
    closed = shown(arguments=arguments, **fields)
    assert f'  text: "{"x" * 159}… (502 characters)' in closed
    assert "… 3 more arguments" in closed
    assert closed.endswith("    2\n    … 1000 lines, 3.9 kB: Enter or a click shows all")
    opened = shown(arguments=arguments, is_open=True, **fields)
    assert f"  text: {'x' * 500}\n" in opened
    assert "a5: 5" in opened
    assert "\n    999\n    … 1000 lines, 3.9 kB: Enter closes it" in opened


def test_progress_is_a_bar_with_a_number():
    assert shown(progress=0.25, message="5 of 20").endswith("\n  █████░░░░░░░░░░░░░░░  25%  5 of 20")
    assert shown(progress=7.0).endswith("100%")
    assert shown(message="still at it").endswith("\n  still at it")


def test_an_image_is_a_line_with_type_and_size():
    image = ImageBlock("A" * 4000, "image/png")
    assert shown(state="done", images=(image,), result="[image, image/png]").endswith(
        "[image image/png, 3.0 kB]"
    )


def test_control_characters_are_visible_and_markup_is_text():
    text = shown(arguments={"[red]x": "\x1b[2J"}, state="done", result="[bold]hi[/bold]\x1b[31m")
    assert "\x1b" not in text
    assert "[red]x" in text
    assert "[bold]hi[/bold]" in text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2_500_000, "2.5 MB")]
)
def test_sizes_are_abbreviated(count: int, text: str):
    assert short_size(count) == text


def png() -> ImageBlock:
    data = BytesIO()
    Image.new("RGB", (4, 4)).save(data, "PNG")
    return ImageBlock(base64.b64encode(data.getvalue()).decode(), "image/png")


def test_images_are_shown_only_where_the_package_for_them_is_installed(monkeypatch: pytest.MonkeyPatch):
    block = ToolBlock("c1", "Read", {}, images=(png(), ImageBlock("bm90IGFuIGltYWdl", "image/png")))
    assert image_widgets(block) == []
    package = ModuleType("textual_image")
    package.__spec__ = ModuleSpec("textual_image", None)
    module = ModuleType("textual_image.widget")
    module.Image = lambda image, classes: (image.size, classes)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "textual_image", package)
    monkeypatch.setitem(sys.modules, "textual_image.widget", module)
    assert image_widgets(block) == [((4, 4), "image")], "what is no image is left out"
