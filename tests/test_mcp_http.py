"""HTTP: on this host alone, for clients with the token, and never for a web page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkrecipes.cli import main
from sparkrecipes.errors import Misuse
from sparkrecipes.mcp_server.transport import MAX_BODY_BYTES, access_token, loopback
from tests.support import fast_catalog
from tests.support.mcp_http import TOKEN, Served, serve


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Start one server for all tests here."""
    folder = tmp_path_factory.mktemp("http")
    with serve(folder, fast_catalog.environment(folder)) as found:
        yield found


def test_without_the_token_nothing_is_answered(served: Served) -> None:
    """None, a wrong one, a longer one, another scheme: 401."""
    for header in ("", "Bearer ", "Bearer wrong", f"Bearer {TOKEN}x", f"Basic {TOKEN}"):
        assert 401 == served.post(Authorization=header), header
    assert 200 == served.post()


def test_a_page_in_a_browser_cannot_reach_it(served: Served) -> None:
    """DNS rebinding: a foreign name in Host or Origin is refused, even with the token."""
    for host in ("evil.example", f"evil.example:{served.port}", "127.0.0.1.evil.example", ""):
        assert 421 == served.post(Host=host), host
    for origin in ("http://evil.example", f"http://evil.example:{served.port}", "null"):
        assert 403 == served.post(Origin=origin), origin
    own = f"127.0.0.1:{served.port}"
    assert 200 == served.post(Host=own, Origin=f"http://{own}")


def test_a_huge_body_is_refused(served: Served) -> None:
    """Over 1 MiB."""
    assert 413 == served.post(b"{" + b" " * (MAX_BODY_BYTES + 10) + b"}")


def test_the_token_is_never_printed(served: Served) -> None:
    """Nor is anything else but the address."""
    text = served.log.read_text()
    assert (True, False) == (served.url in text, TOKEN in text)


def test_a_token_is_made_once_for_this_user_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kept in the state folder, mode 0600; a short one in the environment is refused."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("SPARKRECIPES_MCP_TOKEN", raising=False)
    token = access_token()
    assert (True, token) == (len(token) >= 32, access_token())
    file = tmp_path / "sparkrecipes" / "mcp_token"
    assert "0o600" == oct(file.stat().st_mode & 0o777)
    assert token not in capsys.readouterr().err
    monkeypatch.setenv("SPARKRECIPES_MCP_TOKEN", "short")
    with pytest.raises(Misuse):
        access_token()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "example.com", "::", ""])
def test_only_loopback_is_served(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Others could start programs on this host: refused before anything listens."""
    with pytest.raises(Misuse):
        loopback(host)
    assert 2 == main(["mcp", "--http", "--host", host])
    assert "loopback" in capsys.readouterr().err
