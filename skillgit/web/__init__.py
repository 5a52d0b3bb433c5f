"""``skillgit serve``: the repository in a browser.

Pages are drawn on the server, on ``view`` and ``app``, of the parts that ``skillgit report`` is made of. What a page
shows has an address, and the command that prints the same.
"""

from __future__ import annotations

from importlib.util import find_spec

from skillgit.errors import UsageError
from skillgit.plugin.plugin_identity import install_command

MODULES = ("starlette", "uvicorn", "python_multipart")
"""What the extra ``web`` brings."""


def require_extra() -> None:
    if not all(map(find_spec, MODULES)):
        raise UsageError("serve needs the extra 'web'", hint=install_command("web"))
