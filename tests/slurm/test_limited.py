"""At a site with partitions, limits, a reservation and arrays nothing is released in vain."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from rllib_configs.snapshot import BLOCKED, HELD, RUNNING, WAITING
from tests.slurm.limited import draw_jobs, limited_site, reserve, submit
from tests.slurm.private_accounts import skip_without_accounts
from tests.slurm.private_slurm import PrivateSlurm
from tests.waiting import wait_for
from tune_jobs.site.choosing import choose_adviser
from tune_jobs.site.deciding import Limits, decide
from tune_jobs.site.slurm import SlurmBackend
from tune_jobs.site.steering import Steerer, Steering
from tune_jobs.site.ticks import Ticks

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(400)]

_BY_ITSELF = ("None", "Priority", "Resources")
"""Reasons of jobs that Slurm refuses nothing."""


@pytest.fixture(scope="module")
def slurm() -> Iterator[PrivateSlurm]:
    skip_without_accounts()
    with limited_site() as (started, _):
        yield started


@pytest.fixture
def backend(slurm: PrivateSlurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmBackend]:
    for name, value in slurm.environment.items():
        monkeypatch.setenv(name, value)
    said: list[str] = []
    yield SlurmBackend(announce=said.append)
    assert said == []


def test_slurm_refuses_nothing_that_is_released(slurm: PrivateSlurm, backend: SlurmBackend) -> None:
    before = slurm.states()
    first, adviser = choose_adviser("fcfs:easy"), choose_adviser("sjf:easy")
    reserve(slurm, time.time() + 25, minutes=10)
    for job in draw_jobs(3)[:70]:
        job["seconds"] = 1 + job["seconds"] // 8
        submit(slurm, job, "--hold")
    snapshot = backend.read()
    assert {job.throttle for job in snapshot.jobs if job.array} == {3}
    assert {job.reservation for job in snapshot.jobs} == {"", "course"}
    decision = decide(snapshot, first, Limits(), HELD)
    reasons = " ".join(one.why for one in decision.held)
    for part in ("of the qos urgent", "reservation course is not active"):
        assert part in reasons
    lines: list[dict[str, Any]] = []
    ticks = Ticks(backend, lines.append, tick_s=0.5)
    steering = Steering(act=True, until_empty=True)
    summary = Steerer(backend, ticks, adviser, "", Limits(), steering, lines.append).run()
    ended = [state for job, state in slurm.states().items() if job not in before]
    assert set(ended) == {"COMPLETED"}
    assert (summary["started"], summary["reheld"], summary["refused"]) == (len(ended), 0, 0)
    released = {job for line in lines for job in line["release"]}
    refused = [
        (row[0], row[2])
        for line in lines
        for row in line["snapshot"]["jobs"]
        if row[0] in released and row[1] in (WAITING, BLOCKED) and row[2] not in _BY_ITSELF
    ]
    assert refused == []


def test_what_this_slurm_lists_is_read(slurm: PrivateSlurm, backend: SlurmBackend) -> None:
    slurm.cancel_all()
    job = {"user": "news", "partition": "express,batch", "qos": "urgent", "nodes": 1, "cpus": 4}
    name = str(submit(slurm, {**job, "seconds": 30, "minutes": 1}))
    wait_for(lambda: any(one.state == RUNNING for one in backend.read().jobs), "a start")
    snapshot = backend.read()
    (one,) = [one for one in snapshot.jobs if one.job == name]
    assert (one.account, one.qos, one.user) == ("biology", "urgent", "news")
    assert one.node_list
    assert {node.partitions for node in snapshot.nodes} == {"batch", "express", "batch,express"}
    assert snapshot.restrictions is not None
    limits = {limit["name"]: limit for limit in snapshot.restrictions["limits"]}
    assert limits["normal"]["processors_per_user"] == 256
    assert limits["biology"]["processors"] == 400
    assert [part["name"] for part in snapshot.restrictions["partitions"]] == ["batch", "express"]
