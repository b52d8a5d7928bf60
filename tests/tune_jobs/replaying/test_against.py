"""What a replay has against one policy is what a change of the policy does."""

import pytest

from tune_jobs.commands.logs import Replay, WhatIf
from tune_jobs.replaying.replay_report import replay_log
from tune_jobs.replaying.what_if import compare_changes
from tune_jobs.terminal.progress import NoProgress


def test_differences_and_intervals_are_those_of_a_change() -> None:
    """Two computations of the same: here one policy beside others, there two sides of a log."""
    policies = ["sjf:easy", "fcfs:easy", "saf:easy"]
    report = replay_log(Replay(path="example", policies=policies), NoProgress())
    (sheet,) = (sheet for sheet in report.sheets if sheet.name == "against")
    assert sheet.title == "Against fcfs:easy"  # the nearest to the record
    assert "Against fcfs:easy" in repr(report)
    rows = {row["policy"]: row for row in sheet.rows}
    assert list(rows) == ["sjf:easy", "saf:easy"]
    for policy, row in rows.items():
        changed = compare_changes(WhatIf(path="example", change=[f"policy={policy}"]), NoProgress())
        sides = changed["now-and-then"].set_index("side")
        for name in ("mean_wait", "bounded_slowdown", "utilization"):
            for side, ending in (("change", ""), ("from", "_low"), ("to", "_high")):
                assert row[f"{name}{ending}"] == pytest.approx(sides[name][side], abs=1e-12)


def test_one_policy_alone_is_against_none() -> None:
    report = replay_log(Replay(path="example", policies=["fcfs:easy"]), NoProgress())
    assert "against" not in report
    assert "Against" not in repr(report)
