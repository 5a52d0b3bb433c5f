"""The first program in a seal: it leads what is asked at one address of its loopback out by a socket.

``doorway.py PORT SOCKET COMMAND...`` runs COMMAND meanwhile. A seal has a network of its own, in which nothing else can
be reached. This file is started by its path, outside any package, and needs the standard library alone.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from contextlib import suppress

_CHUNK = 1 << 16


def main(port: int, path: str, command: list[str]) -> int:
    listener = socket.create_server(("127.0.0.1", port))
    threading.Thread(target=_serve, args=(listener, path), daemon=True).start()
    code = subprocess.run(command, check=False).returncode  # noqa: S603 - the agent's program
    return code if code >= 0 else 128 - code


def _serve(listener: socket.socket, path: str) -> None:
    while True:
        inner, _ = listener.accept()
        outer = socket.socket(socket.AF_UNIX)
        with suppress(OSError):
            outer.connect(path)
        for source, target in ((inner, outer), (outer, inner)):
            threading.Thread(target=_passed_on, args=(source, target), daemon=True).start()


def _passed_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
