"""Downloads are checked, go on where they stopped, and stop where a disk or a declaration ends."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillgit.app.sources.public_data.downloads import Downloads, PublishedFiles, RemoteFile
from skillgit.errors import ConflictError, DataError, NotFoundError, ServiceError

CONTENT = bytes(range(256)) * 40


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def remote(hub, name="data.zip", *, digest=sha256(CONTENT), size=None) -> RemoteFile:  # noqa: B008 - it is a text
    hub.web.setdefault(name, CONTENT)
    return RemoteFile(name=name, url=f"{hub.url}/{name}", digest=digest, size=size)


def fetched(cache: Path, *files: RemoteFile, watch=lambda _: None) -> dict[str, Path]:
    listing = PublishedFiles(place="the place", revision="v1", files=files, licence="", page="its page")
    return Downloads(cache, listing, watch).fetch()


@pytest.mark.parametrize("size", [None, len(CONTENT)])
@given(cut=st.integers(min_value=0, max_value=len(CONTENT) - 1))
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_download_goes_on_at_the_byte_where_it_was_interrupted(hub, tmp_path, size, cut):
    cache = Path(tempfile.mkdtemp(dir=tmp_path))
    file = remote(hub, size=size)
    hub.cut, hub.ranges = cut, []
    with pytest.raises(ServiceError, match=r"data\.zip of the place cannot be fetched") as broken:
        fetched(cache, file)
    assert "goes on where it stopped" in broken.value.hint
    hub.cut = None
    assert fetched(cache, file)["data.zip"].read_bytes() == CONTENT
    assert hub.ranges == ([str(cut)] if cut else [])
    assert not list(cache.rglob("*.part"))


def test_what_has_no_digest_is_begun_anew(hub, tmp_path):
    file = remote(hub, digest="")
    hub.cut = 100
    with pytest.raises(ServiceError) as broken:
        fetched(tmp_path / "cache", file)
    assert "goes on" not in broken.value.hint
    hub.cut = None
    assert fetched(tmp_path / "cache", file)["data.zip"].read_bytes() == CONTENT
    assert hub.ranges == []


@pytest.mark.parametrize("kind", ["sha256", "md5", "git"])
def test_bytes_that_are_not_those_of_the_digest_are_refused_and_not_kept(hub, tmp_path, kind):
    length = {"sha256": 64, "md5": 32, "git": 40}[kind]
    with pytest.raises(DataError, match=rf"data\.zip is not what the place declares: its digest is {kind}:\w+, and"):
        fetched(tmp_path / "cache", remote(hub, digest=f"{kind}:{length * 'a'}"))
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_digests_of_git_and_md5_are_those_of_their_programs(hub, tmp_path):
    blob = hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT, usedforsecurity=False).hexdigest()
    md5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()
    files = remote(hub, "a", digest=f"git:{blob}"), remote(hub, "b", digest=f"md5:{md5}")
    assert [path.read_bytes() for path in fetched(tmp_path / "cache", *files).values()] == [CONTENT, CONTENT]


def test_a_file_that_was_damaged_in_the_cache_is_fetched_anew(hub, tmp_path):
    file = remote(hub)
    path = fetched(tmp_path / "cache", file)["data.zip"]
    path.write_bytes(b"damaged")
    assert fetched(tmp_path / "cache", file)["data.zip"].read_bytes() == CONTENT


def test_two_at_the_same_time_fetch_a_file_once(hub, tmp_path):
    file = remote(hub, size=len(CONTENT))
    with ThreadPoolExecutor(2) as pool:
        paths = [pool.submit(fetched, tmp_path / "cache", file) for _ in range(2)]
        assert [path.result()["data.zip"].read_bytes() for path in paths] == [CONTENT, CONTENT]
    assert hub.asked == ["/data.zip"]


def test_progress_counts_the_bytes_of_all_files(hub, tmp_path):
    files = [remote(hub, name, size=len(CONTENT)) for name in ("a", "b")]
    looks = []
    fetched(tmp_path / "cache", *files, watch=looks.append)
    assert [look.done for look in looks] == sorted(look.done for look in looks)
    last = looks[-1]
    assert (last.done, last.total, last.number, last.files) == (2 * len(CONTENT), 2 * len(CONTENT), 2, 2)


def test_a_file_that_is_missing_and_a_server_that_fails_are_told_apart(hub, tmp_path):
    file = RemoteFile(name="a", url=f"{hub.url}/nowhere", digest="")
    with pytest.raises(NotFoundError, match="the place at v1 does not have a"):
        fetched(tmp_path / "cache", file)
    hub.closed = 503, ""
    with pytest.raises(ServiceError, match="the server answers with status 503"):
        fetched(tmp_path / "cache", file)


def test_a_disk_that_is_too_small_is_said_before_anything_is_fetched(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000_000))
    with pytest.raises(ConflictError, match=r"2\.0 MB are to be fetched, and .* has room for 1\.0 MB") as full:
        fetched(tmp_path / "cache", remote(hub, size=2_000_000))
    assert "XDG_CACHE_HOME" in full.value.hint
    assert hub.asked == []


@contextmanager
def files_within(size: int):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fills_up_meanwhile_keeps_what_came_and_goes_on_from_there(hub, tmp_path):
    file = remote(hub, size=len(CONTENT))
    with files_within(3000), pytest.raises(ConflictError) as full:
        fetched(tmp_path / "cache", file)
    assert full.value.hint
    assert fetched(tmp_path / "cache", file)["data.zip"].read_bytes() == CONTENT
    assert hub.ranges == ["3000"]


def test_a_full_disk_is_called_so(hub, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(ConflictError, match="the disk is full"):
        fetched(tmp_path / "cache", remote(hub))
