from __future__ import annotations

import csv
import io
import json

import pytest
import yaml
from asking import ask
from once import copy_folder
from program import skillgit
from trained_runs import RUN, small_run, user

from skillgit.app.deliver.export.mlflow import export_mlflow
from skillgit.app.deliver.export.tables import COLUMNS, export_tables, run_data, table_text
from skillgit.errors import ConflictError
from skillgit.store import history_reader
from skillgit.store.repo import Repo


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A copy of a repository with a finished run of the demo."""
    return copy_folder(small_run(tmp_path_factory), tmp_path_factory.mktemp("demo") / "repository")


@pytest.fixture(scope="module")
def data(demo):
    return ask(run_data, user(demo), RUN)


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_the_tables_hold_every_event_version_item_and_edit(demo, data):
    records = history_reader.read_run(Repo.discover(demo), RUN)
    events, versions, items, edits = (rows(table_text(data, table)) for table in COLUMNS)
    assert [row["commit"] for row in events] == [record.commit for record in records]
    assert [row["version"] for row in versions] == [str(number) for number in range(len(versions))]
    assert len(items) == 20 * len(versions)
    assert len(edits) == sum(len(getattr(record.event, "edits", ())) for record in records)
    assert all(row["content"] for row in edits if row["op"] != "delete")


def test_numbers_in_tables_are_exact_and_what_is_absent_is_empty(data):
    events = rows(table_text(data, "events"))
    for row, event in zip(events, data.events, strict=True):
        assert row["hard"] == ("" if event["hard"] is None else repr(event["hard"]))
        assert row["decision"] == (event["decision"] or "")
    (best,) = (row for row in rows(table_text(data, "versions")) if row["best"] == "true")
    outcomes = [row for row in rows(table_text(data, "items")) if row["version"] == best["version"]]
    assert sum(float(row["hard"]) for row in outcomes) / len(outcomes) == pytest.approx(float(best["hard"]))


def test_one_table_goes_to_stdout_and_all_to_a_folder(demo, data, tmp_path):
    out = skillgit("export", RUN, "--as", "csv", "--table", "versions", cwd=demo)
    assert out.bytes.decode() == table_text(data, "versions")
    skillgit("export", RUN, tmp_path / "tables", "--as", "csv", cwd=demo)
    again = skillgit("export", RUN, tmp_path / "tables", "--as", "csv", "--json", cwd=demo)
    assert json.loads(again.out)["rows"]["items"] == len(data.items)
    assert sorted(path.stem for path in (tmp_path / "tables").iterdir()) == sorted(COLUMNS)
    for table in COLUMNS:
        assert (tmp_path / "tables" / f"{table}.csv").read_bytes().decode() == table_text(data, table)


def test_one_document_holds_all_of_it(demo, data):
    found = json.loads(skillgit("export", RUN, "--json", cwd=demo).out)
    assert found["schema"] == "skillgit.run-export/1"
    assert found["config"]["env"]["name"] == "searchqa"
    assert [len(found[table]) for table in COLUMNS] == [len(getattr(data, table)) for table in COLUMNS]
    assert found["versions"][0]["hard"] == data.versions[0]["hard"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--as", "csv"), "say where to write"),
        (("x", "--table", "items"), "--table needs --as csv"),
        (("x", "y", "--as", "mlflow"), "give one REV"),
        (("--as", "csv", "--table", "items", "--strip-markers"), "--strip-markers needs --as skill"),
        (("--as", "csv", "--table", "items", "--json"), "say where to write"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(options, sentence, demo):
    assert sentence in skillgit("export", RUN, *options, cwd=demo, code=2).err


def test_a_folder_with_something_else_is_left_alone(demo, data, tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(ConflictError, match="holds something else"):
        export_tables(user(demo), data, str(tmp_path))
    with pytest.raises(ConflictError, match="is not an MLflow store"):
        ask(export_mlflow, user(demo), RUN, str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_a_store_of_mlflow_has_its_documented_files(demo, data, tmp_path):
    written = ask(export_mlflow, user(demo), RUN, str(tmp_path / "mlruns"))
    experiment = tmp_path / "mlruns" / written.experiment_id
    run = experiment / written.run_id
    assert yaml.safe_load((experiment / "meta.yaml").read_text())["name"] == "searchqa"
    meta = yaml.safe_load((run / "meta.yaml").read_text())
    assert (meta["run_name"], meta["status"], meta["lifecycle_stage"]) == (RUN, 3, "active")
    assert meta["start_time"] <= meta["end_time"]
    assert (run / "params/train.seed").read_text() == "42"
    assert (run / "tags/skillgit.best").read_text() == f"v{data.best}"
    lines = [line.split(" ") for line in (run / "metrics/selection.score").read_text().splitlines()]
    scores = [(event["step"], event["score"]) for event in data.events if event["score"] is not None]
    assert [(int(step), float(value)) for _, value, step in lines] == list(dict.fromkeys(scores))
    for metric in (run / "metrics").iterdir():
        told = metric.read_text().splitlines()
        assert len(told) == len(set(told)), "a database of MLflow's takes no line twice"
    best = (run / "artifacts/searchqa/SKILL.md").read_bytes()
    assert len(best) == next(row["bytes"] for row in data.versions if row["best"])


def test_exporting_twice_leaves_one_run_in_the_store(demo, tmp_path):
    first = ask(export_mlflow, user(demo), RUN, str(tmp_path / "mlruns"))
    assert ask(export_mlflow, user(demo), RUN, str(tmp_path / "mlruns")) == first
    (experiment,) = (tmp_path / "mlruns").iterdir()
    assert {path.name for path in experiment.iterdir()} == {"meta.yaml", first.run_id}


def test_mlflow_reads_the_store(demo, data, tmp_path, monkeypatch):
    tracking = pytest.importorskip("mlflow.tracking", reason="MLflow is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    written = ask(export_mlflow, user(demo), RUN, str(tmp_path / "mlruns"))
    client = tracking.MlflowClient(tracking_uri=(tmp_path / "mlruns").as_uri())
    (found,) = client.search_runs([written.experiment_id])
    assert found.info.run_name == RUN
    assert found.data.params["env.name"] == "searchqa"
    history = client.get_metric_history(written.run_id, "selection.score")
    scores = dict.fromkeys((event["step"], event["score"]) for event in data.events if event["score"] is not None)
    assert [(one.step, one.value) for one in history] == list(scores)


def test_a_table_takes_the_place_of_such_a_table_only(demo, tmp_path):
    (tmp_path / "notes.md").write_text("mine")
    command = ("export", RUN, "--as", "csv", "--table", "items")
    refused = skillgit(*command, tmp_path / "notes.md", cwd=demo, code=4)
    assert f"{tmp_path / 'notes.md'} exists and holds something else\n" in refused.err
    assert (tmp_path / "notes.md").read_text() == "mine"
    for _ in range(2):
        skillgit(*command, tmp_path / "items.csv", cwd=demo)
    skillgit("export", RUN, tmp_path / "items.csv", "--as", "csv", "--table", "edits", cwd=demo, code=4)


def test_a_store_that_cannot_be_made_is_told_in_a_sentence(demo, tmp_path):
    (tmp_path / "file").write_text("in the way")
    refused = skillgit("export", RUN, tmp_path / "file" / "mlruns", "--as", "mlflow", cwd=demo, code=2)
    assert "cannot be written: a file is where a folder must be\nhint: ls -la " in refused.err
