"""Public data are fetched from a hub on the loopback, with the library that talks to the real one."""

from __future__ import annotations

import hashlib
import json
import resource
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import pytest
from wire.rough import Rough, rough_server

from skillgit.app.sources import data_fetch
from skillgit.app.sources.data_fetch import DataSelection
from skillgit.app.sources.data_fetch import fetch as fetch_selection
from skillgit.app.sources.public_data import contents, downloads
from skillgit.errors import ConflictError, DataError, NotFoundError, ServiceError, UnsafeNameError, UsageError
from skillgit.plugin.plugin_identity import install_command

COMMIT = "c0ffee" + 34 * "0"
RIDDLES = "riddles.py:Riddles"


def fetch(context, name, *, to=None, remark=lambda _: None, watch=lambda _: None, **selection):
    return fetch_selection(context, name, DataSelection(**selection), to=to, remark=remark, watch=watch)


def row(key: str, question: str = "What has keys and opens nothing?") -> dict[str, object]:
    return {"key": key, "question": question, "answers": ["a piano"]}


def lines(rows: list[dict[str, object]]) -> bytes:
    return "".join(f"{json.dumps(one)}\n" for one in rows).encode()


def ids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]


def manifest(folder: Path, **splits: list[object]) -> Path:
    for name, rows in splits.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "items.json").write_text(json.dumps(rows))
    return folder


def test_rows_of_all_files_are_converted_and_written_with_their_source(user, hub, parquet):
    hub.files = {
        "data/train-0.parquet": parquet([row("a"), row("b", "Was läuft und hat keine Beine?")]),
        "data/test-0.parquet": parquet([row("c")]),
        "README.md": b"not rows",
    }
    remarks: list[str] = []
    found = fetch(user, RIDDLES, remark=remarks.append)
    place = user.directory / "data" / "riddles"
    assert ids(place / "items.jsonl") == ["c", "a", "b"], "files by name"
    assert (found.revision, found.options, found.repeated) == (COMMIT, ("env.data_path=data/riddles",), 0)
    (file,) = found.files
    assert file.sha256 == hashlib.sha256((place / "items.jsonl").read_bytes()).hexdigest()
    assert file.sha256 in (place / "SOURCE.md").read_text()
    assert COMMIT in (place / "SOURCE.md").read_text()
    assert remarks == [f"fetching someone/riddles at {COMMIT}: 2 files, 0.0 MB; licence: unknown"]
    assert not any("README" in path for path in hub.asked), "only the files with rows are fetched"


def test_a_manifest_picks_its_items_and_divides_them(user, hub):
    hub.files = {"all.jsonl": lines([row(name) for name in "abcdef"])}
    manifest(user.directory / "split", train=[{"id": "f"}, {"id": "a"}], val=["c"], test=[{"id": "e", "topic": "x"}])
    found = fetch(user, RIDDLES, ids="split", to=Path("mine"))
    folder = user.directory / "mine"
    assert [ids(folder / name / "items.jsonl") for name in ("train", "val", "test")] == [["f", "a"], ["c"], ["e"]], (
        "in the order of the manifest"
    )
    assert [file.items for file in found.files] == [2, 1, 1]
    assert found.options == ("env.split_mode=split_dir", "env.split_dir=mine")


def test_ids_that_are_not_there_are_counted_and_named_and_nothing_is_left_behind(user, hub):
    hub.files = {"all.jsonl": lines([row("a")])}
    manifest(user.directory / "split", train=["a", "x"], val=["y"], test=["z"])
    with pytest.raises(
        DataError, match=r"1 of 2 ids of the train split are not in someone/riddles at c0ffee\w+: x; and 2"
    ):
        fetch(user, RIDDLES, ids="split")
    assert list((user.directory / "data").iterdir()) == []


def test_more_than_anyone_needs_is_not_fetched(user, hub):
    hub.files = {"all.jsonl": lines([row("a")]), "data/a.parquet": b"", "README.md": b""}
    hub.sizes = {"all.jsonl": 9 << 30, "data/a.parquet": 8 << 30}
    with pytest.raises(DataError, match="someone/riddles is larger than 16 GiB"):
        fetch(user, RIDDLES)
    assert not any("/resolve/" in path for path in hub.asked)
    hub.files = {"all.jsonl": lines([row("a")]), "README.md": b""}
    hub.sizes = {"README.md": 1 << 50}
    assert fetch(user, RIDDLES).files[0].items == 1, "what is not fetched does not count"


def test_no_file_grows_beyond_what_the_hub_declares(user, hub):
    hub.files = {"all.jsonl": lines([row("a")])}
    hub.sent = {"all.jsonl": b" " * (2 << 20)}
    with pytest.raises(DataError, match=r"all\.jsonl of someone/riddles is larger than the 0\.0 MB that are declared"):
        fetch(user, RIDDLES)
    assert sum(path.stat().st_size for path in (user.directory.parent / "cache").rglob("*") if path.is_file()) == 0


def test_what_inflates_is_not_unpacked_and_not_written(user, hub, parquet, monkeypatch):
    for module in (data_fetch, contents):
        monkeypatch.setattr(module, "MOST_BYTES", 10_000)
    hub.files = {"data/a.parquet": parquet([row("a", "?" * 100_000)])}
    with pytest.raises(DataError, match=r"a\.parquet, unpacked, is larger than"):
        fetch(user, RIDDLES)
    hub.files = {"all.jsonl": lines([row(str(number)) for number in range(120)])}
    with pytest.raises(DataError, match="a file of items is larger than"):
        fetch(user, RIDDLES)
    assert list((user.directory / "data").iterdir()) == []


def test_another_revision_may_be_named(user, hub):
    hub.files = {"all.jsonl": lines([row("a")])}
    fetch(user, RIDDLES, revision="v2")
    assert "/api/datasets/someone/riddles/revision/v2" in hub.asked


def test_a_row_that_stands_there_already_is_left_out_and_another_one_of_its_id_is_refused(user, hub):
    hub.files = {"all.jsonl": lines([row("a"), row("b"), row("a")])}
    found = fetch(user, RIDDLES)
    assert (found.repeated, found.files[0].items) == (1, 2)
    other = replace(user, environ={**user.environ, "XDG_CACHE_HOME": str(user.directory / "cache-2")})
    hub.files = {"all.jsonl": lines([row("a"), row("a", "Which room has no door?")])}
    with pytest.raises(DataError, match="two different rows have the id 'a'"):
        fetch(other, RIDDLES, to=Path("again"))
    assert not (user.directory / "again").exists()


def test_a_folder_that_is_there_is_not_written_over(user, hub):
    (user.directory / "data" / "riddles").mkdir(parents=True)
    with pytest.raises(ConflictError, match="is there already"):
        fetch(user, RIDDLES)
    assert hub.asked == []


def test_a_hub_that_gives_nothing_out_is_told_from_one_that_cannot_be_reached(user, hub):
    with pytest.raises(NotFoundError, match="someone/riddles has no revision no-such-tag") as unknown:
        fetch(user, RIDDLES, revision="no-such-tag")
    assert "place riddles.jsonl" in unknown.value.hint
    with pytest.raises(NotFoundError, match=r"has no file like data/\*\.parquet or \*\.jsonl"):
        fetch(user, RIDDLES)
    hub.repository = "someone/else"
    with pytest.raises(NotFoundError, match="the hub does not give out someone/riddles at v1"):
        fetch(user, RIDDLES)
    nobody = replace(user, environ={**user.environ, "HF_ENDPOINT": "http://127.0.0.1:1"})
    with pytest.raises(ServiceError, match="someone/riddles cannot be fetched: ") as unreachable:
        fetch(nobody, RIDDLES)
    assert "place riddles.jsonl" in unreachable.value.hint


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("place", ["revision", "resolve"])
def test_a_redirect_of_the_hub_to_another_host_carries_no_token(user, hub, monkeypatch, status, place):
    """Hubs keep large files elsewhere, so that redirects are followed; the token stays with the hub."""
    monkeypatch.setenv("HF_TOKEN", "hf_PLANTED0123456789")
    hub.files["riddles.jsonl"] = lines([row("1")])

    def answer(asked):
        if f"/{place}/" in asked.path:
            return Rough(status=status, headers={"location": other.url.replace("127.0.0.1", "localhost") + asked.path})
        connection = HTTPConnection(hub.url.removeprefix("http://"))
        try:
            connection.request(asked.method, asked.path)
            got = connection.getresponse()
            return Rough(status=got.status, headers=dict(got.getheaders()), pieces=[got.read()])
        finally:
            connection.close()

    with rough_server(lambda _: Rough(status=404)) as other, rough_server(answer) as front:
        with pytest.raises((NotFoundError, ServiceError)):
            fetch(replace(user, environ={**user.environ, "HF_ENDPOINT": front.url}), RIDDLES)
        assert any("hf_PLANTED" in asked.headers.get("authorization", "") for asked in front.asked)
        assert [asked.headers.get("authorization") for asked in other.asked if "authorization" in asked.headers] == []


def test_without_the_extra_it_says_what_to_install_or_to_place(user, monkeypatch):
    monkeypatch.setattr(downloads, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match="needs the extra 'data'") as missing:
        fetch(user, RIDDLES)
    assert missing.value.hint == f"{install_command('data')}; or place riddles.jsonl and name it with env.data_path"


def rewrite(user, old: str, new: str) -> None:
    path = user.directory / "riddles.py"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_data_that_nobody_may_pass_on_are_placed_by_hand(user, hub):
    rewrite(user, "HUGGINGFACE", "MANUAL")
    with pytest.raises(NotFoundError, match="the data of riddles cannot be fetched") as by_hand:
        fetch(user, RIDDLES)
    assert hub.asked == []
    assert by_hand.value.hint == "place riddles.jsonl and name it with env.data_path"
    (user.directory / "own.py").write_text(
        "from skillgit.plugin.environment import EnvironmentInfo\n"
        "class Own:\n    info = EnvironmentInfo(name='own', summary='', fields={}, scorer='', source='')\n"
    )
    with pytest.raises(NotFoundError, match="own names no public data"):
        fetch(user, "own.py:Own")


@pytest.mark.parametrize(("closed", "lists"), [((401, "GatedRepo"), False), ((403, ""), True), ((401, ""), True)])
def test_who_gives_access_is_named_where_it_has_to_be_asked_for(user, hub, closed, lists):
    hub.files = {"all.jsonl": lines([row("a")])}
    hub.closed, hub.lists = closed, lists
    with pytest.raises(NotFoundError, match=r"does not give out someone/riddles at .* without permission") as gated:
        fetch(user, RIDDLES)
    assert f"ask for access at {hub.url}/datasets/someone/riddles, and set HF_TOKEN" in gated.value.hint


def test_a_repository_that_has_moved_is_followed_or_found_by_its_second_name(user, hub):
    hub.files = {"all.jsonl": lines([row("a")])}
    hub.repository, hub.former = "elsewhere/riddles", "someone/riddles"
    found = fetch(user, RIDDLES, to=Path("followed"))
    assert (found.source, found.revision) == ("elsewhere/riddles", COMMIT)
    hub.former = ""
    rewrite(user, 'revision="v1"', 'revision="v1", other_place="elsewhere/riddles"')
    assert fetch(user, RIDDLES, to=Path("second")).source == "elsewhere/riddles"


def test_size_and_licence_are_said_before_anything_is_fetched(user, hub):
    hub.files, hub.licence = {"all.jsonl": lines([row("a")])}, "cc-by-4.0"

    def remark(text):
        assert text.endswith("1 file, 0.0 MB; licence: cc-by-4.0")
        assert not any("/resolve/" in path for path in hub.asked)

    assert fetch(user, RIDDLES, remark=remark).licence == "cc-by-4.0"
    assert "Licence: cc-by-4.0" in (user.directory / "data" / "riddles" / "SOURCE.md").read_text()


def test_what_a_hub_says_of_itself_forges_no_line_of_the_note(user, hub):
    hub.files, hub.licence = {"all.jsonl": lines([row("a")])}, "mit\n\n# Checked by skillgit\x1b[31m"
    licence = fetch(user, RIDDLES).licence
    assert licence == "mit # Checked by skillgit\\x1b[31m"
    hub.files = {"../outside.jsonl": b""}
    with pytest.raises(UnsafeNameError, match="it leads out of its folder"):
        fetch(
            replace(user, environ={**user.environ, "XDG_CACHE_HOME": str(user.directory / "other")}),
            RIDDLES,
            to=Path("b"),
        )


def test_what_is_fetched_once_is_not_fetched_again(user, hub):
    hub.files = {"all.jsonl": lines([row("a")])}
    fetch(user, RIDDLES, to=Path("first"))
    downloads = [path for path in hub.asked if "/resolve/" in path]
    fetch(user, RIDDLES, to=Path("second"))
    assert [path for path in hub.asked if "/resolve/" in path] == downloads


def test_subsets_and_splits_that_are_not_there_are_said(user):
    with pytest.raises(UsageError, match="the data of riddles have no subset 'hard'") as subset:
        fetch(user, RIDDLES, subset="hard")
    assert subset.value.hint == "there is none"
    with pytest.raises(DataError, match=r"there is no manifest .*/reference") as manifest:
        fetch(user, RIDDLES, ids="reference")
    assert manifest.value.hint == "name a folder with ids"


def test_a_conversion_that_is_not_there_is_said(user, hub):
    hub.files = {"all.jsonl": lines([row("a")])}
    text = (user.directory / "riddles.py").read_text()
    (user.directory / "riddles.py").write_text(text.replace("riddle_rows:convert", "riddle_rows:missing"))
    with pytest.raises(UsageError, match="conversion 'riddle_rows:missing' has no function 'missing'"):
        fetch(user, RIDDLES)


def test_a_disk_that_is_full_when_items_are_written_leaves_nothing_and_keeps_what_was_fetched(user, hub):
    hub.files = {"all.jsonl": lines([row("a", "?" * 50_000)])}
    fetch(user, RIDDLES, to=Path("before"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(ConflictError, match="a file would be larger than this process may write"):
            fetch(user, RIDDLES)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list((user.directory / "data").iterdir()) == []
    assert len([path for path in hub.asked if "/resolve/" in path]) == 1


def test_a_folder_that_cannot_be_made_and_a_broken_file_are_said(user, hub):
    hub.files = {"data/a.parquet": b"PAR1 and nothing else"}
    with pytest.raises(DataError, match=r"a\.parquet is not Parquet: "):
        fetch(user, RIDDLES)
    (user.directory / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written: Not a directory"):
        fetch(user, RIDDLES, to=Path("file/below"))


def test_a_token_that_the_hub_refuses_is_named(user, hub):
    hub.files = {"all.jsonl": lines([row("a")])}
    user = replace(user, environ={**user.environ, "HF_TOKEN": "hf_outdated"})
    for hub.closed, hub.lists in [((401, ""), False), ((403, ""), False), ((401, ""), True)]:
        with pytest.raises(NotFoundError, match="refuses the token") as refused:
            fetch(user, RIDDLES)
        assert refused.value.exit_code == 3
        assert refused.value.hint.startswith("set HF_TOKEN to a valid token")
    hub.closed, hub.lists = (401, ""), False
    with pytest.raises(NotFoundError, match="without permission"):
        fetch(replace(user, environ={key: value for key, value in user.environ.items() if key != "HF_TOKEN"}), RIDDLES)
