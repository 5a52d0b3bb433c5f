from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from program import skillgit
from read_page import by_id, parsed, section, text
from trained_runs import RUN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2
    from serving import Served

BAD_REQUEST, NOT_FOUND = 400, 404


@pytest.fixture(scope="module")
def visitor(served: Served) -> Iterator[httpx2.Client]:
    with served.visit() as client:
        yield client


def test_the_evidence_of_every_rule_is_what_why_tells(repository: Path, visitor: httpx2.Client) -> None:
    blamed = json.loads(skillgit("blame", f"{RUN}/best", "--json", cwd=repository).out)["lines"]
    numbers = [line["line"] for line in blamed if line["text"].startswith("- ")]
    assert numbers
    for number in numbers:
        story = json.loads(skillgit("why", str(number), "--rev", f"{RUN}/best", "--json", cwd=repository).out)
        answer = visitor.get(f"/run/{RUN}/v{_best(repository)}/why", params={"file": "SKILL.md", "line": number})
        page = parsed(answer.text)
        shown = text(by_id(page, "content"))
        assert story["rule"]["text"] in shown
        if story["origin"] is None:
            assert "there before the run began" in shown
            continue
        assert story["origin"]["title"] in text(section(page, "brought"))
        evidence = text(section(page, "evidence"))
        for attempt in story["failures"][:4]:
            assert attempt["item"] in evidence
            assert " ".join(attempt["feedback"].split())[:200] in evidence
        links = {link.get("href") for link in section(page, "evidence").iter("a")}
        measured = {*story["credit"]["fixed"], *story["credit"]["broken"]}
        # those that analysts saw are training items, which have no page
        assert {f"/run/{RUN}/items/{item}" for item in measured} == {link for link in links if "/items/" in link}
        for change in story["later"]:
            assert f"v{change['version']}" in text(section(page, "since"))
        assert f"skillgit why {number} --rev {RUN}/v{_best(repository)}" in text(page)


def _best(repository: Path) -> int:
    listed = json.loads(skillgit("runs", "--json", cwd=repository).out)["runs"]
    return next(row["best_version"] for row in listed if row["name"] == RUN)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", BAD_REQUEST),
        ("?line=x", BAD_REQUEST),
        ("?line=-1", BAD_REQUEST),
        ("?line=99999", BAD_REQUEST),
        ("?line=1&file=../../README.md", NOT_FOUND),
        ("?line=%C2%B2", BAD_REQUEST),
    ],
)
def test_what_is_no_line_gets_a_page_that_says_so(visitor: httpx2.Client, query: str, status: int) -> None:
    assert visitor.get(f"/run/{RUN}/v1/why{query}").status_code == status
