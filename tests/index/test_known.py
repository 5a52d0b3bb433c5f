from __future__ import annotations

from sample_run import RUN, START, write_run

from skillgit.index import known
from skillgit.index.refresh import open_index
from skillgit.store import notes


def test_notes_come_line_by_line_and_final_scores_by_version(repo):
    records = write_run(repo)
    notes.append(repo, {records[0].commit: [{"a": 1}, {"b": 2}]}, time=START)
    with open_index(repo) as index:
        assert known.note_lines(index, records[0].commit) == ('{"a":1}', '{"b":2}')
        assert known.note_lines(index, records[1].commit) == ()
        (final,) = known.final_rows(index, RUN, 3)
        assert (final.split, final.hard, final.n, final.seed) == ("test", 0.7, 10, 42)
        assert final.time == records[-1].time
        assert known.final_rows(index, RUN, 1) == ()
