"""``skillgit tui --web``: the same screens in a browser.

Each page that is opened is a process ``skillgit tui`` of its own, which textual-serve connects with the browser.
Nothing else of skillgit knows textual-serve or serves anything.
"""

from __future__ import annotations

from importlib.util import find_spec

from skillgit.errors import UsageError

DRIVER = "skillgit.tui.web.driver:BrowserDriver"
"""What draws such a process; it is in ``TEXTUAL_DRIVER``, where Textual looks for it."""


def require_extra() -> None:
    if find_spec("textual_serve") is None:
        raise UsageError("tui --web needs the extra 'web'", hint="pip install 'skillgit[web]'")
