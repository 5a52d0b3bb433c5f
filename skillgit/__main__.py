"""Where the program starts, by its name or with ``python -m skillgit``."""

# Until all is loaded, which takes half a second, Ctrl-C would print where in which import it came. So this file is
# loaded first, and imports little.
from __future__ import annotations

import os
import signal
from typing import NoReturn

_INTERRUPTED = 130


def _leave(number: int, frame: object) -> None:
    """End at once: nothing is under way yet, or all is done."""
    del number, frame
    os.write(2, b"skillgit: interrupted\n")
    os._exit(_INTERRUPTED)


def main() -> NoReturn:
    """Run the command line; Ctrl-C ends it quietly at any moment."""
    is_heard = (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )  # else the program was started to ignore it
    if is_heard:
        signal.signal(signal.SIGINT, _leave)
    from skillgit.cli.main import main as run  # noqa: PLC0415 - see above

    run(on_interrupt=_leave if is_heard else None)


if __name__ == "__main__":
    main()
