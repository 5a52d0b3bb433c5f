"""A host of git repositories over smart HTTP with a password: ``git_server.py FOLDER NAME PASSWORD``.

It prints its port and serves ``git http-backend`` on the loopback until it is killed. What it starts belongs to its
process group, so that killing that ends pushes in the middle of their work.
"""

from __future__ import annotations

import os
import subprocess
import sys
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

FOLDER, NAME, PASSWORD = sys.argv[1:]
WANTED = "Basic " + b64encode(f"{NAME}:{PASSWORD}".encode()).decode()


class Host(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self._body())

    def log_message(self, *words: object) -> None:
        del words

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, body: bytes) -> None:
        if self.headers.get("Authorization") != WANTED:
            self._reply("401 Unauthorized", [("WWW-Authenticate", 'Basic realm="git"')], b"")
            return
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=self._surroundings(body), capture_output=True, check=False
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = next((value for name, value in fields if name == "Status"), "200 OK")
        self._reply(status, [(name, value) for name, value in fields if name != "Status"], content)

    def _reply(self, status: str, fields: list[tuple[str, str]], content: bytes) -> None:
        code, _, phrase = status.partition(" ")
        self.send_response(int(code), phrase)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _surroundings(self, body: bytes) -> dict[str, str]:
        asked = urlsplit(self.path)
        return os.environ | {
            "GIT_PROJECT_ROOT": FOLDER,
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": asked.path,
            "QUERY_STRING": asked.query,
            "REQUEST_METHOD": self.command,
            "REMOTE_USER": NAME,
            "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), Host) as server:
        sys.stdout.write(f"{server.server_address[1]}\n")
        sys.stdout.flush()
        server.serve_forever()
