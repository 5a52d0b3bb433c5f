"""The program that checks a task made of a session: it runs a command over the project with what was handed in.

It needs the standard library only. A copy of it comes with the files of each task: ``project`` holds files that the
target does not see, ``before`` those that it does. What was handed in are the files that the target made, or the blocks
of code in its answer that have a path behind their fence.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(
    r"^(?P<fence>`{3,})[ \t]*(?P<path>[^\s`]+)[ \t]*\n(?P<text>.*?)^(?P=fence)`*[ \t]*$", re.DOTALL | re.MULTILINE
)
SHOWN = re.compile(r"^.*h-[0-9a-f]{12}/before/")  # where the target saw the file


def place(work: Path, name: str, content: bytes) -> None:
    """Write a file that was handed in, by the path that it has in the project."""
    path = (work / SHOWN.sub("", name).lstrip("/")).resolve()
    if path.is_relative_to(work.resolve()) and not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def main(command: str) -> int:
    here, work, outputs = Path(__file__).parent, Path("work"), Path("made")
    work.mkdir()
    for part in filter(Path.is_dir, (here.joinpath("project"), here.joinpath("before"))):
        shutil.copytree(part, work, dirs_exist_ok=True)
    files = {str(file.relative_to(outputs)): file.read_bytes() for file in outputs.rglob("*") if file.is_file()}
    answer = Path("answer.txt").read_text(encoding="utf-8")
    blocks = {match["path"]: match["text"].encode() for match in BLOCK.finditer(answer)}
    for name, content in {**blocks, **files}.items():
        place(work, name, content)
    variables = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '/usr/bin:/bin')}"}
    # The last line that is printed must not be a number: it would be taken for a score.
    script = '( eval "$1" ) 2>&1; code=$?; printf "\\nthe command ended with exit code %s.\\n" "$code"; exit "$code"'
    shell = ["/bin/sh", "-c", script, "sh", command]
    return subprocess.run(shell, cwd=work, env=variables, stdin=subprocess.DEVNULL, check=False).returncode  # noqa: S603


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
