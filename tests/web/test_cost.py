from __future__ import annotations

import json

from program import skillgit
from read_page import parsed, rows, section
from trained_runs import RUN


def test_the_costs_are_those_of_the_command(served, repository):
    document = json.loads(skillgit("cost", RUN, "--json", cwd=repository).out)
    with served.visit() as client:
        page = parsed(client.get(f"/run/{RUN}/cost").text)
    shown = [(row[0], row[1], *row[2:5]) for row in rows(section(page, "cost"))]
    assert shown == [
        (row["role"], row["stage"], *(f"{row[name]:,}" for name in ("calls", "tokens_in", "tokens_out")))
        for row in document["rows"]
    ]
    by_step = json.loads(skillgit("cost", RUN, "--by", "step", "--json", cwd=repository).out)["rows"]
    steps: dict[int, int] = {}
    for row in by_step:
        steps[row["step"]] = steps.get(row["step"], 0) + row["calls"]
    course = list(rows(section(page, "course")))
    assert [int(row[1].replace(",", "")) for row in course] == list(steps.values())
    assert sum(steps.values()) == document["total"]["calls"]
