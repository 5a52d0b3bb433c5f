"""Runs ``skillgit`` and writes down what the process opens, starts and connects to.

The first argument is the file to write to, one JSON list a line: ``["open", path, mode]``, ``["start", program]`` or
``["connect", address]``. The others are those of ``skillgit``.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path

STARTS = {"subprocess.Popen": 0, "os.exec": 0, "os.posix_spawn": 0, "os.system": 0}


def main() -> None:
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes):
            writes = bool(int(arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
            row = ["open", str(Path(os.fsdecode(arguments[0])).absolute()), "w" if writes else "r"]
        elif event in STARTS:
            row = ["start", Path(os.fsdecode(arguments[0] or arguments[1][0])).name]
        elif event == "socket.connect":
            row = ["connect", str(arguments[1])]
        else:
            return
        os.write(log, f"{json.dumps(row)}\n".encode())

    sys.addaudithook(note)
    sys.argv = ["skillgit", *sys.argv[2:]]
    runpy.run_module("skillgit", run_name="__main__", alter_sys=True)


main()
