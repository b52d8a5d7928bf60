"""The compiled site against a plain one, on small sites with everything that there is."""

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from cluster_env.sites.description import Site
from cluster_env.sites.requests import Requests
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import BACKFILLING, Rule
from tests.cluster_env.worlds.hpc.hpc_jobs import played
from tests.cluster_env.worlds.hpc.site.plain_site import PlainSite
from tests.cluster_env.worlds.hpc.site.small_sites import jobs_of, sites


def assert_same(site: Site, data: st.DataObject, rule: Rule, max_wait: int, follow: bool) -> None:
    jobset = data.draw(jobs_of(site, follow))
    note({k: v.tolist() for k, v in jobset.attributes.items()})
    schedule = played(HPC(site=site, max_wait=max_wait), [jobset], rule)
    plain = PlainSite(site, jobset, rule.order, rule.backfilling, max_wait).play()
    entered = [job for job in plain.jobs if job.eligible >= 0]
    assert schedule.job.tolist() == [job.number for job in entered]
    assert schedule.arrival.tolist() == [job.eligible for job in entered]
    assert schedule.start.tolist() == [job.start for job in entered]
    assert schedule.finish.tolist() == [job.finish for job in entered]


orders = st.sampled_from(["fcfs", "saf"])
bounds = st.sampled_from([0, 0, 4])


@pytest.mark.parametrize("backfilling", BACKFILLING)
@given(site=sites(more=True), data=st.data(), order=orders, max_wait=bounds)
@settings(max_examples=25)
def test_nodes_and_partitions(
    backfilling: str, site: Site, data: st.DataObject, order: str, max_wait: int
) -> None:
    assert_same(site, data, Rule(order, backfilling), max_wait, follow=False)


@pytest.mark.parametrize("backfilling", BACKFILLING)
@given(site=sites(limits=True), data=st.data(), order=orders)
@settings(max_examples=25)
def test_limits_and_jobs_that_follow(
    backfilling: str, site: Site, data: st.DataObject, order: str
) -> None:
    assert_same(site, data, Rule(order, backfilling), 0, follow=True)


@given(site=sites(more=True, limits=True), data=st.data())
@settings(max_examples=100)
def test_jobs_are_left_out_exactly_if_they_cannot_start_on_the_empty_machine(
    site: Site, data: st.DataObject
) -> None:
    jobset = data.draw(jobs_of(site, impossible=True))
    note({k: v.tolist() for k, v in jobset.attributes.items()})
    never = np.zeros(jobset.num_jobs, np.bool_)
    for rows, _ in Requests.of(site, jobset).impossible():
        never |= rows
    for job in range(jobset.num_jobs):
        one = jobset.select(np.array([job]))
        plain = PlainSite(site, one, backfilling="strict")
        (alone,) = plain.jobs
        # A job without any node is none that the plain site can be given.
        if plain.nodes(alone):
            plain.play()
        partition, nodes = site.partitions[alone.partition], alone.values["nodes"]
        most = partition.max_nodes or site.num_nodes
        allowed = nodes == 0 or partition.min_nodes <= nodes <= most
        assert never[job] == (alone.start < 0 or not allowed), job


@pytest.mark.parametrize("backfilling", BACKFILLING)
@given(site=sites(calendar=True), data=st.data(), order=orders, max_wait=bounds)
@settings(max_examples=25)
def test_calendars(
    backfilling: str, site: Site, data: st.DataObject, order: str, max_wait: int
) -> None:
    assert_same(site, data, Rule(order, backfilling), max_wait, follow=True)
