"""The evidence of a rule: who brought it, why, what the gate saw, and how it fared since."""

from __future__ import annotations

from functools import partial

from skillgit.app.attribution.why import why
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import UsageError
from skillgit.index.rule_queries import OriginRow
from skillgit.web.pages.version import row_of
from skillgit.web.rendering import Page, PageRoute, Visit, address


def rule_page(visit: Visit) -> Page:
    row = row_of(visit)
    path, line = visit.value("file", DOCUMENT), str(visit.number("line"))
    if line == "0":
        raise UsageError("which line the rule is on is missing", hint=f"skillgit blame {row.address} numbers the lines")
    story = why(visit.context, line, str(row.address), path)
    return Page(
        template="why.html",
        title=f"Why line {line} of {path}",
        command=("why", line, "--rev", str(row.address), *([] if path == DOCUMENT else ["--file", path])),
        values={
            "row": row,
            "run": row.run,
            "story": story,
            "file": path,
            "event_of": event_of,
            "item_address": partial(address, "run", row.run, "items"),
        },
    )


def event_of(origin: OriginRow) -> str:
    return address("run", origin.run, origin.label)


ROUTES = (PageRoute(path="/run/{run}/{event}/why", page=rule_page),)
