import pytest

from dragoman.cli import sign_in_screen
from dragoman.cli.sign_in_screen import TerminalSignIn, qr_code


@pytest.mark.requirement("AUT-10")
def test_a_url_too_long_for_a_qr_code_is_shown_without_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sign_in_screen, "is_animated", lambda stream: True)
    monkeypatch.setattr(sign_in_screen, "columns", lambda: 1000)
    assert qr_code("https://as.example/enter?code=ABCD")
    assert qr_code("https://as.example/" + "a" * 8000) is None


@pytest.mark.parametrize(("lines", "fits"), [(24, True), (23, False)])
async def test_the_qr_code_and_the_text_below_fit_the_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lines: int, fits: bool
):
    monkeypatch.setattr("dragoman.cli.sign_in_screen.is_animated", lambda stream: True)
    monkeypatch.setattr("dragoman.cli.sign_in_screen.columns", lambda: 80)
    monkeypatch.setenv("LINES", str(lines))
    complete = "http://127.0.0.1:37687/device?user_code=QVCJ-LHQR"
    await TerminalSignIn("s").show_code("http://127.0.0.1:37687/device", "QVCJ-LHQR", complete)
    shown = capsys.readouterr().err
    assert ("scan the QR code" in shown) is fits
    assert shown.count("\n") + 1 <= lines, "with the line of the cursor"
