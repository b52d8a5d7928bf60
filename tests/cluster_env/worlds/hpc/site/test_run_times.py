"""Learned run times at a site: as in a pool, and from what has ended alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_env.core.jobs import JobSet
from cluster_env.objectives import get_objective
from cluster_env.sites.description import NodeGroup, Outage, Site
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import BACKFILLING, Rule
from cluster_env.worlds.hpc.scorer import Scorer
from tests.cluster_env.worlds.hpc.hpc_jobs import jobset_of, played
from tests.cluster_env.worlds.hpc.site.small_sites import jobs_of, sites
from tests.cluster_env.worlds.hpc.site.test_pool import with_site
from tests.cluster_env.worlds.hpc.test_run_times import FIXED, MODELS, WORLDS, any_scorer, crowd


def starts_of(world: HPC, jobset: JobSet, rule: Rule | Scorer) -> tuple[np.ndarray, np.ndarray]:
    """When jobs start, and what was believed of them."""
    simulator = world.simulator()
    simulator.load([jobset], get_objective("slowdown"))
    simulator.play(rule)
    return np.array(simulator.starts), simulator.believed(0).attributes["order_estimate"]


@pytest.mark.parametrize("model", MODELS)
@given(
    seed=st.integers(0, 10**6),
    order=st.sampled_from([*FIXED, "priority", "scorer"]),
    backfilling=st.sampled_from(BACKFILLING),
    max_wait=st.sampled_from([0, 0, 60]),
)
@settings(max_examples=60)
def test_a_site_of_one_node_is_the_pool(
    model: str, seed: int, order: str, backfilling: str, max_wait: int
) -> None:
    rule = any_scorer(seed) if order == "scorer" else Rule(order, backfilling)
    pool, jobset = replace(WORLDS[model], max_wait=max_wait), crowd(seed)
    here, there = (starts_of(world, jobset, rule) for world in (with_site(pool), pool))
    for mine, theirs in zip(here, there, strict=True):
        assert np.array_equal(mine, theirs)


@st.composite
def cases(draw) -> tuple[Site, JobSet]:
    """Sites with limits and reservations, where some jobs wait for others; no node fails."""
    site = draw(sites(more=True, limits=True, calendar=True))
    lasting = tuple(one for one in site.calendar if one.kind != "failure")
    site = replace(site, calendar=lasting)
    return site, draw(jobs_of(site, follow=True))


@pytest.mark.parametrize("backfilling", BACKFILLING)
@given(
    case=cases(),
    seed=st.integers(0, 10**6),
    order=st.sampled_from(["fcfs", "sjf", "wfp3", "priority", "scorer"]),
    model=st.sampled_from(MODELS),
)
@settings(max_examples=20)
def test_what_has_not_ended_changes_no_start(
    backfilling: str, case: tuple[Site, JobSet], seed: int, order: str, model: str
) -> None:
    (site, jobset), rng = case, np.random.default_rng(seed)
    world = HPC(site=site, run_times=model)
    rule = any_scorer(seed) if order == "scorer" else Rule(order, backfilling)
    before, known = starts_of(world, jobset, rule)
    now = int(rng.choice(before))
    end = np.where(before < 0, now + 1, before + jobset.duration)
    other = rng.integers(1, 40, jobset.num_jobs)
    runs = (before >= 0) & (before < now)
    other = np.where(runs, np.maximum(other, now - before + 1), other)
    run = np.where(end <= now, jobset.duration, other).astype(np.int32)
    after, believed = starts_of(world, replace(jobset, duration=run), rule)
    begun = (before >= 0) & (before <= now)
    assert np.array_equal(believed[begun], known[begun])
    assert np.array_equal(after[begun], before[begun])
    assert ((after[~begun] < 0) | (after[~begun] > now)).all()


def test_a_run_that_a_failure_cuts_short_teaches_nothing() -> None:
    """Job 0 dies at 10 and runs again; job 3 has seen two runs end, those of jobs 1 and 2."""
    site = Site((NodeGroup("n", 2, 4),), calendar=(Outage(10, 12, ("n1",), "failure"),))
    jobset = jobset_of([0, 0, 0, 20], [50, 15, 17, 1], [90] * 4, [4, 2, 2, 1])
    world = HPC(site=site, run_times="recent")
    simulator = world.simulator()
    simulator.load([jobset], get_objective("slowdown"))
    simulator.play(Rule("fcfs", "easy"))
    assert simulator.starts.tolist() == [12, 0, 0, 20]
    assert simulator.believed(0).attributes["order_estimate"].tolist() == [90, 90, 90, 16]
    assert played(world, [jobset], Rule("fcfs", "easy")).attributes["restarts"].tolist()[0] == 1
