"""``skillgit tui --web``: the same screens in a browser.

Each page that is opened is a process ``skillgit tui`` of its own, which textual-serve connects with the browser.
Nothing else of skillgit knows textual-serve or serves anything.
"""

from __future__ import annotations

DRIVER = "skillgit.tui.web.driver:BrowserDriver"
"""What draws such a process; it is in ``TEXTUAL_DRIVER``, where Textual looks for it."""
