from __future__ import annotations

import csv
import json

import pytest
from program import skillgit
from read_page import number, parsed, rows
from trained_runs import RUN


@pytest.fixture(scope="module")
def client(served):
    with served.visit() as visit:
        yield visit


@pytest.fixture(scope="module")
def events(repository) -> list[dict]:
    return json.loads(skillgit("log", RUN, "--json", cwd=repository).out)["events"]


def test_the_events_are_those_of_the_log(client, events):
    shown = list(rows(parsed(client.get(f"/run/{RUN}/events").text)))
    assert len(shown) == len(events)
    for row, event in zip(shown, events, strict=True):
        assert event["title"] in row[4]
        assert int(row[5]) == event["step"]
        assert row[7] == event["commit"][:7]
        if event["score"] is not None and event["measured"]:
            assert number(row[2]) == pytest.approx(event["score"], abs=5e-5)


def test_tables_come_as_csv_and_all_runs_are_searched(client, repository):
    everything = json.loads(skillgit("log", "--all", "--json", "--limit", "1000", cwd=repository).out)["events"]
    assert len({event["run"] for event in everything}) > 1
    for query, wanted in (
        ("", everything),
        ("?q=event:rejected", [one for one in everything if one["kind"] == "rejected"]),
    ):
        lines = csv.DictReader(client.get(f"/events.csv{query}").text.splitlines())
        commits = [event["commit"] for event in wanted]
        assert [line["commit"] for line in lines] == commits
        assert [row[7] for row in rows(parsed(client.get(f"/events{query}").text))] == [oid[:7] for oid in commits]
    runs = json.loads(skillgit("runs", "--json", "--sort", "name", cwd=repository).out)["runs"]
    lines = csv.DictReader(client.get("/runs.csv?sort=name").text.splitlines())
    assert [(line["name"], line["best_score"]) for line in lines] == [
        (run["name"], str(run["best_score"])) for run in runs
    ]
    for query in ("", "&within=1-3&by=step"):
        page = parsed(client.get(f"/?show={RUN}{query}").text)
        shown = [*rows(next(part for part in page.iter("details") if part.get("class") == "numbers"))]
        lines = [*csv.DictReader(client.get(f"/curve.csv?show={RUN}{query}").text.splitlines())]
        assert [(line["event"], f"{float(line['run_score']):.4f}".lstrip("0")) for line in lines] == [
            (row[0], row[4]) for row in shown
        ]
        assert all(not line["low"] or float(line["low"]) < float(line["high"]) for line in lines)


def test_filters_narrow_and_events_have_addresses(client, events):
    page = parsed(client.get(f"/run/{RUN}/events?q=score%3E.3&kind=accepted").text)
    wanted = [event for event in events if event["kind"] == "accepted" and (event["score"] or 0) > 0.3]
    assert [row[7] for row in rows(page)] == [event["commit"][:7] for event in wanted]
    links = {element.get("href") for element in page.iter("a")}
    assert {f"/run/{RUN}/v{event['version']}" for event in wanted} <= links


def test_older_events_are_on_the_next_page(client, events):
    shown = list(rows(parsed(client.get(f"/run/{RUN}/events?from=3").text)))
    assert [row[7] for row in shown] == [event["commit"][:7] for event in events[3:]]
    assert client.get(f"/run/{RUN}/events?q=colour:red").status_code == 400
    assert client.get("/run/none/events").status_code == 404
