"""What a terminal showed as a moving picture: an SVG of text and CSS, which plays where a page shows it as an image.

Commands are run in a pseudo-terminal and their output is drawn as it came, in colours for light and for dark. Where
motion is not wanted, or not known, the picture is its first scene with all marks.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from program import surroundings

if TYPE_CHECKING:
    from collections.abc import Sequence

COLUMNS = 98
ADVANCE, LINE, MARGIN, CAPTION = 8.4, 19, 18, 62
KEYS_PER_S = 18
MOST_SAID = 72
"""The signs of a caption that the widest usual font leaves inside the picture."""
LATER = "2026-11-22T12:00:00Z"
"""A day after ``program.surroundings``."""
LIGHT = "--paper:#fff;--ink:#1f2328;--dim:#59636e;--mark:#fff3bf;--edge:#d1d9e0;--accent:#0b5cad;--r:#b3261e;--g:#116329;--y:#7d4e00;--m:#8250df;--c:#0a5d73"  # noqa: E501
DARK = "--paper:#0d1117;--ink:#e6edf3;--dim:#9198a1;--mark:#3a3117;--edge:#3d444d;--accent:#79c0ff;--r:#ff8f87;--g:#5ad46d;--y:#e3b341;--m:#d2a8ff;--c:#76e3ea"  # noqa: E501
STYLE = f"""svg{{{LIGHT}}}
@media(prefers-color-scheme:dark){{svg{{{DARK}}}}}
text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:var(--ink)}}
text{{white-space:pre}}
.says{{font:600 21px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:var(--accent)}}
.b{{font-weight:700}}.d{{fill:var(--dim)}}.r{{fill:var(--r)}}.g{{fill:var(--g)}}.y{{fill:var(--y)}}.m{{fill:var(--m)}}.c{{fill:var(--c)}}
.paper{{fill:var(--paper)}}.edge{{stroke:var(--edge)}}.mark{{fill:var(--mark)}}.caret{{fill:var(--ink)}}.later{{opacity:0}}"""
SGR = {"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "35": "m", "36": "c"}


@dataclass(frozen=True, slots=True)
class Mark:
    """What is said about rows of a scene, for how many seconds; ``rows`` is a range, or empty."""

    says: str
    rows: range
    seconds: float


@dataclass(frozen=True, slots=True)
class Scene:
    """A command, the rows of its output with their colours, and what is said about them."""

    command: str
    rows: Sequence[str]
    marks: Sequence[Mark]


def typed(command: str, cwd: Path) -> list[str]:
    """Run a command of the shell in a pseudo-terminal, and return the rows that it shows."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = surroundings(PATH=path, TERM="xterm-256color", GIT_PAGER="cat", SKILLGIT_CLOCK=LATER)
    del environment["NO_COLOR"]
    shown = b""
    with subprocess.Popen(
        ["sh", "-c", command], cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=its, stderr=its
    ) as process:
        os.close(its)
        try:
            while read := os.read(ours, 65536):
                shown += read
        except OSError:  # the end of a pseudo-terminal
            os.close(ours)
    assert process.returncode == 0, shown.decode()
    return shown.decode().replace("\r", "").splitlines()


def plain(row: str) -> str:
    """Return a row without its colours."""
    return re.sub(r"\x1b\[[\d;]*m", "", row)


def picture(scenes: Sequence[Scene], still: str, title: str) -> str:
    """Return the SVG that plays ``scenes`` in turn; ``still`` is said of the first where nothing moves."""

    def typing(number: int) -> float:
        """Return for how long a command is typed; the first has its answer when a reader's eyes come to the picture."""
        return len(scenes[number].command) / KEYS_PER_S if number else 0.0

    every = sum(typing(number) + sum(mark.seconds for mark in scene.marks) for number, scene in enumerate(scenes))
    width = COLUMNS * ADVANCE + 2 * MARGIN
    height = CAPTION + LINE * (1 + max(len(scene.rows) for scene in scenes)) + MARGIN
    rules: list[str] = []

    def during(begin: float, end: float) -> str:
        """Return the class of what is seen from one second to another."""
        name = f"w{len(rules)}"
        frames = f"0%{{opacity:{+(not begin)}}}{100 * begin / every:.2f}%{{opacity:1}}"
        frames += f"{100 * end / every:.2f}%{{opacity:0}}" if end < every else ""
        rules.append(f"@keyframes {name}{{{frames}}}.{name}{{animation:{name} {every:.2f}s step-end infinite}}")
        return name

    def keys(begin: float, end: float, count: int) -> str:
        """Return the class of what uncovers ``count`` signs from one second to another."""
        name = f"w{len(rules)}"
        ends = f"{100 * begin / every:.2f}%{{transform:none;animation-timing-function:steps({count})}}"
        ends += f"{100 * end / every:.2f}%,100%{{transform:translateX({count * ADVANCE:.1f}px)}}"
        rules.append(
            f"@keyframes {name}{{0%{{transform:none}}{ends}}}.{name}{{animation:{name} {every:.2f}s infinite}}"
        )
        return name

    body, clock = [_says(still, "still")], 0.0
    for number, scene in enumerate(scenes):
        later = "later " if number else ""
        answered = clock + typing(number)
        ends = answered + sum(mark.seconds for mark in scene.marks)
        body.append(f'<g class="{later}{during(clock, ends)}">')
        body.append(_row(0, f"\x1b[1m$ {scene.command}\x1b[m"))
        if answered > clock:
            cover = f'<rect class="caret" width="{ADVANCE}" height="{LINE}"/>'
            cover += f'<rect class="paper" x="{ADVANCE}" width="{width - 2 * MARGIN:.0f}" height="{LINE}"/>'
            left = MARGIN + 2 * ADVANCE
            window = f'x="{left:.1f}" y="{CAPTION - LINE + 5}" width="{width - MARGIN - left:.1f}" height="{LINE}"'
            body.append(f'<svg class="later {during(clock, answered)}" {window}>')
            body.append(f'<g class="{keys(clock, answered, len(scene.command))}">{cover}</g></svg>')
        moment, begin, marked = answered, clock, []
        for mark in scene.marks:
            moment += mark.seconds
            body.append(_says(mark.says, f"later {during(begin, moment)}"))
            if mark.rows:
                top = CAPTION + LINE * mark.rows.start - LINE + 5
                marked.append(
                    f'<rect class="mark {during(max(begin, answered), moment)}" x="{MARGIN / 2}" y="{top}"'
                    f' width="{width - MARGIN:.0f}" height="{LINE * len(mark.rows)}" rx="4"/>'
                )
            begin = moment
        body += [f'<g class="{during(answered, ends)}">', *marked]
        body += [_row(at, row) for at, row in enumerate(scene.rows, start=1)]
        body.append("</g></g>")
        clock = ends
    moves = "@media(prefers-reduced-motion:no-preference){.still{opacity:0}\n" + "\n".join(rules) + "}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}\n{moves}</style>",
            f'<rect class="paper edge" rx="8" x=".5" y=".5" width="{width - 1:.0f}" height="{height - 1}"/>',
            *body,
            "</svg>\n",
        ]
    )


def still(svg: str) -> str:
    """Return the picture without motion, for what does not tell an image that its reader wants none."""
    head, _, rest = svg.partition("\n@media(prefers-reduced-motion")
    return f"{head}</style>{rest.partition('</style>')[2]}"


def _says(text: str, name: str) -> str:
    assert len(text) <= MOST_SAID, text
    return f'<text class="says {name}" x="{MARGIN}" y="33">{escape(text, quote=False)}</text>'


def _row(number: int, row: str) -> str:
    """Draw a row; each piece of it has its column and its width, whatever font draws it."""
    pieces, column, names = [], 0, ""
    for part in re.split(r"(\x1b\[[\d;]*m)", row):
        if part.startswith("\x1b"):
            names = " ".join(SGR[code] for code in part[2:-1].split(";") if code not in {"", "0"})
            continue
        for found in re.finditer(r"\S+(?: \S+)*", part):
            x, length = MARGIN + (column + found.start()) * ADVANCE, len(found[0]) * ADVANCE
            style = f' class="{names}"' if names else ""
            text = escape(found[0], quote=False)
            pieces.append(f'<tspan{style} x="{x:.1f}" textLength="{length:.1f}">{text}</tspan>')
        column += len(part)
    return f'<text y="{CAPTION + number * LINE}">{"".join(pieces)}</text>' if pieces else ""
