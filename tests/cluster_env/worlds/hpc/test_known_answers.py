"""Logs of a dozen jobs, each of one rule, with starts that were worked out by hand."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.spec import get_heuristic
from cluster_env.evaluation import evaluate
from cluster_env.workloads.swf import read_swf
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Rule
from tests.cluster_env.worlds.hpc.agreement import plain_easy_starts
from tests.cluster_env.worlds.hpc.plain_rules import plain_starts

LOGS = sorted((Path(__file__).parent / "known_answers").glob("*.swf"))


def test_there_are_known_answers_of_each_rule() -> None:
    names = {log.stem for log in LOGS}
    assert names == {log.with_suffix("").stem for log in LOGS[0].parent.glob("*.csv")}
    assert len(names) == 8


@pytest.mark.parametrize("scheduling_pass", ["instant", "event"])
@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_jobs_start_when_they_should(log: Path, scheduling_pass: str) -> None:
    file = read_swf(log)
    jobset = file.jobs().jobset()
    known = np.genfromtxt(log.with_suffix(".csv"), delimiter=",", names=True, dtype=np.int64)
    assert known["job"].tolist() == file.columns["job"].tolist() == list(range(1, 13))
    # All but one of the logs have the same starts in both cases.
    other = "start_pass_per_event"
    column = other if scheduling_pass == "event" and other in known.dtype.names else "start"
    starts, rule = known[column].tolist(), file.header["Scheduler"]
    world = HPC(processors=file.processors, max_wait=int(file.header.get("MaxWait", 0)))
    if scheduling_pass == "instant":
        assert evaluate(get_heuristic(rule, world), [jobset], world).start.tolist() == starts
    plain = plain_starts(
        jobset, Rule(*rule.split(":")), world.processors, world.max_wait, scheduling_pass == "event"
    )
    assert plain == starts
    if rule == "fcfs:easy":
        pass_per_event = scheduling_pass == "event"
        assert plain_easy_starts(jobset, world.processors, pass_per_event) == starts
