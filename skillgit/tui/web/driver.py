"""What draws the screens of a process whose terminal is a browser, and ends it with whoever serves it."""

from __future__ import annotations

from textual.drivers.web_driver import WebDriver
from textual.messages import ExitApp


class BrowserDriver(WebDriver):
    """Textual's driver for browsers, which in itself would not notice that nobody is at the other end any more."""

    def run_input_thread(self) -> None:
        """Hand on what the browser sends, and leave the app when nobody is there."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            self._app.post_message(ExitApp())
