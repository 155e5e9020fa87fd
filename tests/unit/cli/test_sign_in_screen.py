import pytest

from dragoman.cli import sign_in_screen
from dragoman.cli.sign_in_screen import qr_code


@pytest.mark.requirement("AUT-10")
def test_a_url_too_long_for_a_qr_code_is_shown_without_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sign_in_screen, "is_animated", lambda: True)
    monkeypatch.setattr(sign_in_screen, "columns", lambda: 1000)
    assert qr_code("https://as.example/enter?code=ABCD")
    assert qr_code("https://as.example/" + "a" * 8000) is None
