"""Records are short, and whole again when they are read."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from rllib_configs.snapshot import HELD, RUNNING, WAITING, SiteJob, SiteNode, Snapshot
from tune_jobs.site.deciding import NO_PAST, Decision, Limits
from tune_jobs.site.journal import open_journal, read_journal, tick_entry
from tune_jobs.site.sequences import moved, moves
from tune_jobs.site.shortening import WHOLE_EVERY, Restorer, Shortener

NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(NAMES, NAMES)
def test_an_order_is_found_again_from_what_has_moved(before, now):
    change = moves(before, now)
    assert moved(before, change) == now
    assert len(change["in"]) <= len(now)


def test_what_stays_in_order_is_not_named():
    assert moves("abcdef", "bcaegf") == {"out": ["a", "d"], "in": [[2, "a"], [4, "g"]]}


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


def entry_of(tick, snapshot, order=None):
    names = order if order is not None else [job.job for job in snapshot.jobs]
    decision = Decision((), (), tuple(names))
    return tick_entry(tick, "p", Limits(), HELD, snapshot, NO_PAST, decision)


@given(st.integers(0, 99))
@settings(max_examples=10)
def test_shortened_lines_are_whole_again(seed):
    rng, shortener, restorer = np.random.default_rng(seed), Shortener(), Restorer()
    for tick in range(8):
        snapshot = queue(rng, tick, 12)
        entry = entry_of(tick, snapshot, list(rng.permutation([job.job for job in snapshot.jobs])))
        line = json.loads(json.dumps(shortener.shorten(entry)))
        assert restorer.restore(line) == json.loads(json.dumps(entry))


def test_a_line_says_only_what_has_changed(tmp_path):
    site = queue(np.random.default_rng(0), 1, 500)
    write = open_journal(tmp_path / "x.jsonl")
    for tick in range(WHOLE_EVERY + 2):
        changed = replace(site.jobs[tick], processors=1000 + tick)
        jobs = (*site.jobs[:tick], changed, *site.jobs[tick + 1 :])
        site = Snapshot(tick, jobs, site.nodes)
        write(entry_of(tick, site))
    sizes = [len(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert min(sizes[0], sizes[WHOLE_EVERY]) > 30_000
    assert max(sizes[1:WHOLE_EVERY]) < 600
    *_, last = read_journal(tmp_path / "x.jsonl")
    assert Snapshot.from_plain(last["snapshot"]) == site


@pytest.fixture
def record(tmp_path):
    path = tmp_path / "x.jsonl"
    write = open_journal(path)
    for tick in range(4):
        write(entry_of(tick, queue(np.random.default_rng(tick), tick, 5)))
    return path


def test_a_line_that_was_being_written_when_the_process_died_is_cut_off(record):
    whole = record.read_text()
    record.write_text(whole + whole.splitlines()[-1][:-9])
    assert len(list(read_journal(record))) == 4
    open_journal(record)(entry_of(9, queue(np.random.default_rng(9), 9, 5)))
    assert [entry["tick"] for entry in read_journal(record)] == [0, 1, 2, 3, 9]


def test_a_file_that_is_no_record_loses_nothing(tmp_path):
    (tmp_path / "notes").write_text("a thought")
    open_journal(tmp_path / "notes")
    assert (tmp_path / "notes").read_text() == "a thought"


def test_a_missing_line_is_told(record):
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join([lines[0], *lines[2:]]))
    with pytest.raises(InputError, match=r"line 2 of .* is of no use: it needs tick 1"):
        list(read_journal(record))
