"""Records survive a crash, plain and compressed."""

import json

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from rllib_configs.snapshot import HELD, RUNNING, WAITING, Advice, SiteJob, SiteNode, Snapshot
from tune_jobs.site.deciding import NO_PAST, Decision, Limits, decide
from tune_jobs.site.journal import decided_anew, open_journal, read_journal, tick_entry


def queue(rng, time, num_jobs):
    jobs = [
        SiteJob(
            *(str(100 + k), str(rng.choice([HELD, WAITING, RUNNING])), "None", "ann", "main"),
            *(1_795_000_000 + k, 0, 3600, int(rng.integers(1, 99)), 10_000, 0),
        )
        for k in range(num_jobs)
        if rng.random() < 0.9
    ]
    node = SiteNode("n1", 64, 9, 0, int(rng.integers(0, 64)), 9, 0)
    return Snapshot(time, tuple(jobs), (node,)).in_order()


def starting_none(queue):
    return Advice((), {})


def entry_of(tick, snapshot, order=None):
    names = order if order is not None else [job.job for job in snapshot.jobs]
    decision = Decision((), (), tuple(names))
    return tick_entry(tick, "p", Limits(), HELD, snapshot, NO_PAST, decision)


@pytest.fixture(params=["x.jsonl", "x.jsonl.gz"])
def record(request, tmp_path):
    path = tmp_path / request.param
    write = open_journal(path)
    for tick in range(4):
        write(entry_of(tick, queue(np.random.default_rng(tick), tick, 50)))
    return path


def ticks(record):
    return [entry["tick"] for entry in read_journal(record)]


def test_what_is_written_is_read(record):
    assert ticks(record) == [0, 1, 2, 3]
    *_, last = read_journal(record)
    assert Snapshot.from_plain(last["snapshot"]) == queue(np.random.default_rng(3), 3, 50)
    assert (record.read_bytes()[:1] == b"{") == (record.suffix == ".jsonl")


def test_a_compressed_line_of_a_long_queue_is_short(tmp_path):
    """Seven times shorter; each is read by itself, so that a crash leaves those before it."""
    entry = entry_of(1, queue(np.random.default_rng(0), 1, 500))
    for name in ("x.jsonl", "x.jsonl.gz"):
        open_journal(tmp_path / name)(entry)
    plain, compressed = (path.stat().st_size for path in sorted(tmp_path.iterdir()))
    assert plain > 6 * compressed


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_line_that_was_being_written_when_the_process_died_is_cut_off(record, cut):
    record.write_bytes(record.read_bytes()[:-cut])
    left = [0, 1, 2, 3] if record.suffix == ".gz" and cut == 1 else [0, 1, 2]  # of the checksum
    assert ticks(record) == left
    open_journal(record)(entry_of(9, queue(np.random.default_rng(9), 9, 5)))
    assert ticks(record) == [*left, 9]


def test_a_file_that_is_no_record_loses_nothing(tmp_path):
    (tmp_path / "notes").write_text("a thought")
    open_journal(tmp_path / "notes")
    assert (tmp_path / "notes").read_text() == "a thought"
    (tmp_path / "notes.gz").write_text("a thought")
    with pytest.raises(InputError, match="cannot be written: Not a gzipped file"):
        open_journal(tmp_path / "notes.gz")
    for name in ("notes", "notes.gz", "nothing"):
        with pytest.raises(InputError, match=r"no line of a journal|cannot be read as a journal"):
            list(read_journal(tmp_path / name))


def test_lines_that_say_what_has_changed_are_refused(tmp_path):
    entry = entry_of(1, queue(np.random.default_rng(0), 1, 5))
    entry["snapshot"] |= {"after": 0, "jobs_gone": []}
    open_journal(tmp_path / "x.jsonl")(entry)
    with pytest.raises(InputError, match=r"line 1 of .* holds only changes"):
        list(read_journal(tmp_path / "x.jsonl"))


def test_a_record_of_before_one_bound_on_waits_is_repeated_where_it_had_no_other(tmp_path):
    snapshot = queue(np.random.default_rng(0), 1_795_000_100, 5)
    decision = decide(snapshot, starting_none, Limits(), HELD)
    entry = tick_entry(1, "p", Limits(), HELD, snapshot, NO_PAST, decision)
    for longest, path in ((0, tmp_path / "none"), (60, tmp_path / "some")):
        old = {**entry, "limits": {**entry["limits"], "longest_wait_s": longest}}
        path.write_text(json.dumps(old) + "\n")
    assert list(decided_anew(tmp_path / "none", starting_none)) == [(1, True)]
    with pytest.raises(InputError, match="was decided with a second bound on waits"):
        list(decided_anew(tmp_path / "some", starting_none))
