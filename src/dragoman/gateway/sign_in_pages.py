"""The pages of the gateway by which the person behind a caller signs in to a server in a browser.

The link that a caller gets is a page of the gateway. It names the caller of the sign-in, and continues to the
authorization server only when the person presses its button. After that a cookie binds the sign-in to that
browser: an answer from another browser is refused. The pages need no token of a caller, since a browser has
none.

A sign-in is known to the replica that began it and to no other; its name is part of the link and of the
cookie, so that another replica can pass a request on.
"""

from __future__ import annotations

import hashlib
import hmac
import html
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import Final, Self

from msgspec import Struct

from dragoman.auth import pages
from dragoman.auth.callback import BrowserReturn
from dragoman.cleaning import one_line
from dragoman.urls import parse_url

PAGE: Final = "/sign-in"
RETURN: Final = "/oauth/callback"
TOKEN: Final = "token"
"""The field of the form that only the page itself can send."""
COOKIE_SECONDS: Final = 600
COOKIES_LIMIT: Final = 20
"""The maximum number of sign-ins of one browser that are checked when it returns."""
_COOKIE: Final = "dragoman-sign-in-"
_REPLICA: Final = re.compile(r"[0-9a-f]{12}")
_COOKIE_VALUE: Final = re.compile(r"(?:[0-9a-f]{12})?\.[A-Za-z0-9_-]{32}")
_HEADERS: Final = {
    # Without `form-action`: browsers apply it to where the form leads, which is the authorization server and
    # may be another one after that. With `no-referrer` the form would be sent without its origin.
    "Content-Security-Policy": pages.CONTENT_POLICY,
    "Referrer-Policy": "same-origin",
}


class PageRequest(Struct, frozen=True):
    """What a browser asks for, as another replica passes it on. Never printed: it may contain a code."""

    sign_in: str
    """The id in the path; empty if the browser returns from the authorization server."""
    cookies: Mapping[str, str]
    token: str | None = None
    """That of the form; None if the page is only to be shown."""
    url: str = ""
    """That with which the browser returns."""

    def __repr__(self) -> str:
        return "<PageRequest>"

    @property
    def replicas(self) -> list[str]:
        """Those that may know the sign-in; empty names are this one's."""
        given = [self.sign_in] if self.sign_in else [value for _, value in own_cookies(self.cookies)]
        return list(dict.fromkeys(each.partition(".")[0] for each in given))


class PageAnswer(Struct, frozen=True):
    status: int
    body: str
    headers: Mapping[str, str] = {}


NOT_EXPECTED: Final = PageAnswer(400, pages.NOT_EXPECTED)


def is_replica(name: str) -> bool:
    """Whether a name from a link or a cookie can be that of a replica."""
    return _REPLICA.fullmatch(name) is not None


def own_cookies(cookies: Mapping[str, str]) -> list[tuple[str, str]]:
    return [each for each in cookies.items() if each[0].removeprefix("__Host-").startswith(_COOKIE)][
        :COOKIES_LIMIT
    ]


class SignInPages:
    """The sign-ins of callers that are under way here."""

    def __init__(self, url: str = "") -> None:
        """`url`: how browsers reach the gateway; set later if its port is not known yet."""
        self.url = url.rstrip("/")
        self.replica = ""
        """The name of this replica, if there can be several."""
        self.pass_on: Callable[[str, PageRequest], Awaitable[PageAnswer | None]] | None = None
        """Has another replica answer; None if that replica has ended."""
        self._pending: dict[str, CallerReturn] = {}

    def begin(self, caller: str, server: str, using: AbstractContextManager[object]) -> CallerReturn:
        """One sign-in. `using`: entered for as long as it lasts."""
        return CallerReturn(self, caller, server, using)

    def find(self, caller: str, server: str) -> CallerReturn | None:
        """The sign-in of the caller to the server that is under way here."""
        found = (each for each in self._pending.values() if each.about == (caller, server))
        return next(found, None)

    def add(self, pending: CallerReturn) -> None:
        self._pending[pending.id] = pending

    def drop(self, pending: CallerReturn) -> None:
        self._pending.pop(pending.id, None)

    async def answer(self, asked: PageRequest) -> PageAnswer:
        """The answer of the replica that knows the sign-in."""
        answer: PageAnswer | None = None
        for replica in asked.replicas:
            if replica == self.replica:
                answer = await self.answer_here(asked)
            elif self.pass_on is not None and is_replica(replica):
                answer = await self.pass_on(replica, asked)
            if answer is not None and answer != NOT_EXPECTED:
                return answer
        return NOT_EXPECTED

    async def answer_here(self, asked: PageRequest) -> PageAnswer:
        if asked.sign_in:
            pending = self._pending.get(asked.sign_in)
            return NOT_EXPECTED if pending is None else pending.page(asked)
        for pending in list(self._pending.values()):
            if pending.is_of_browser(asked.cookies) and pending.deliver(asked.url):
                return PageAnswer(200, await pending.last_page())
        return NOT_EXPECTED


class CallerReturn(BrowserReturn):
    """One sign-in of one caller to one server."""

    def __init__(
        self, owner: SignInPages, caller: str, server: str, using: AbstractContextManager[object]
    ) -> None:
        super().__init__()
        self._owner = owner
        self.about = (caller, server)
        self._caller = one_line(caller, 200)
        self._server = one_line(server, 100)
        self._using = using
        self._entered = ExitStack()
        self._target = ""
        self.id = f"{owner.replica}.{secrets.token_urlsafe(24)}"
        self._key = secrets.token_bytes(32)
        self._browser: str | None = None
        """The cookie of the browser in which the button was pressed."""

    async def __aenter__(self) -> Self:
        self._entered.enter_context(self._using)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._owner.drop(self)
        self.finished(False)
        self._entered.close()

    @property
    def redirect_uri(self) -> str:
        return f"{self._owner.url}{RETURN}"

    def page_for(self, url: str) -> str:
        self._target = url
        self._owner.add(self)
        return self.link

    @property
    def link(self) -> str:
        return f"{self._owner.url}{PAGE}/{self.id}"

    def is_of_browser(self, cookies: Mapping[str, str]) -> bool:
        given = cookies.get(self._cookie_name, "").encode("utf-8", "surrogatepass")
        return self._browser is not None and hmac.compare_digest(given, self._browser.encode())

    def page(self, asked: PageRequest) -> PageAnswer:
        """The page with the button, or where it leads."""
        cookie = asked.cookies.get(self._cookie_name, "")
        if self._browser is not None and not self.is_of_browser(asked.cookies):
            return NOT_EXPECTED
        if asked.token is None:
            is_own = _COOKIE_VALUE.fullmatch(cookie) is not None  # also that of a page in another tab
            return self._shown(cookie if is_own else f"{self._owner.replica}.{secrets.token_urlsafe(24)}")
        given = asked.token.encode("utf-8", "surrogatepass")
        if not cookie or not hmac.compare_digest(given, self._token_for(cookie).encode()):
            return NOT_EXPECTED
        self._browser = cookie
        return PageAnswer(303, "", {**_HEADERS, "Location": self._target})

    def _shown(self, cookie: str) -> PageAnswer:
        caller, server = html.escape(self._caller), html.escape(self._server)
        body = (
            f"<p>The gateway at {html.escape(parse_url(self._owner.url).origin)} asks for an account at "
            f"<strong>{server}</strong>, to be used by its caller <strong>{caller}</strong>.</p>"
            "<p>Continue only if you use the gateway as this caller and have started this sign-in yourself. "
            "Everything that uses the gateway as this caller can then use your account.</p>"
            f'<form method="post" action="{self.id}">'
            f'<input type="hidden" name="{TOKEN}" value="{self._token_for(cookie)}">'
            f"<button>Continue to the sign-in</button></form>"
        )
        secure = "; Secure" if self._owner.url.startswith("https:") else ""
        limits = f"Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax{secure}"
        text = pages.page("ask", f"Sign in to {self._server}", body)
        return PageAnswer(200, text, {**_HEADERS, "Set-Cookie": f"{self._cookie_name}={cookie}; {limits}"})

    @property
    def _cookie_name(self) -> str:
        # The prefix keeps other hosts of the same domain from setting the cookie.
        prefix = "__Host-" if self._owner.url.startswith("https:") else ""
        return f"{prefix}{_COOKIE}{hashlib.sha256(self.id.encode()).hexdigest()[:12]}"

    def _token_for(self, cookie: str) -> str:
        """The token of the form for this browser: a page of another site knows neither the cookie nor the
        key."""
        return hmac.new(self._key, cookie.encode("utf-8", "surrogatepass"), "sha256").hexdigest()
