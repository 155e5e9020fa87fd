"""The pages that a browser shows during a sign-in. Nothing of a request appears in them."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Final, Literal

from aiohttp import web

CONTENT_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
)
"""The content security policy of pages with a form; other pages also have `form-action 'none'`."""
HEADERS: Final = {
    "Content-Security-Policy": f"{CONTENT_POLICY}; form-action 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Connection": "close",
}
_MARKS: Final = {
    "done": ("✓", "#1f883d"),
    "failed": ("!", "#bf5b04"),
    "other": ("?", "#6e7781"),
    "ask": ("→", "#0969da"),
}
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title} · Dragoman</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; display: grid; place-items: center; min-height: 100vh;
  margin: 0; background: light-dark(#f4f5f7, #15171a); color: light-dark(#1c1f23, #e8eaed) }}
main {{ max-width: 26rem; margin: 1rem; padding: 2.5rem 2.5rem 2rem; text-align: center; border-radius: 14px;
  background: light-dark(#fff, #1f2226); box-shadow: 0 8px 30px rgb(0 0 0 / .12); overflow-wrap: anywhere }}
.mark {{ width: 56px; height: 56px; margin: 0 auto 1rem; border-radius: 50%; display: grid;
  place-items: center; font-size: 28px; color: #fff; background: {color} }}
h1 {{ font-size: 1.35rem; margin: 0 0 .5rem }}
p {{ margin: 0 0 .75rem; color: light-dark(#555c66, #a8afb8) }}
strong {{ color: light-dark(#1c1f23, #e8eaed) }}
button {{ font: inherit; font-weight: 600; margin-top: .75rem; padding: .6rem 1.6rem; border: 0;
  border-radius: 8px; color: #fff; background: {color}; cursor: pointer }}
</style></head>
<body><main><div class="mark" aria-hidden="true">{mark}</div><h1>{title}</h1>{body}</main></body>
</html>
"""


def page(kind: Literal["done", "failed", "other", "ask"], title: str, body: str) -> str:
    """A whole page. `title`: text; `body`: HTML."""
    mark, color = _MARKS[kind]
    return _PAGE.format(title=html.escape(title), mark=mark, color=color, body=body)


DONE: Final = page(
    "done",
    "You are signed in",
    "<p>Dragoman has received the answer. You can close this page and return to where you started.</p>",
)
NOT_DONE: Final = page(
    "failed",
    "The sign-in did not succeed",
    "<p>Nothing was changed. Return to where you started: the reason is shown there.</p>",
)
NOT_EXPECTED: Final = page(
    "other",
    "Nothing to do here",
    "<p>This address does not belong to a sign-in that is under way. You can close this page.</p>",
)

TOO_MANY: Final = page(
    "other",
    "Too many sign-ins at this moment",
    "<p>The gateway answers many browsers now, or is about to end. Try again in a moment.</p>",
)


def response(text: str, status: int, headers: Mapping[str, str] | None = None) -> web.Response:
    """The response with a page. `headers`: added to the headers of all pages, or replacing those of the same
    name."""
    return web.Response(
        text=text, status=status, content_type="text/html", headers={**HEADERS, **(headers or {})}
    )
