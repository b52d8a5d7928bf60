"""The compiled site against a plain one, on small sites with everything that there is."""

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import BACKFILLING, Rule
from cluster_env.worlds.hpc.site.description import Site
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


@pytest.mark.parametrize("backfilling", BACKFILLING)
@given(site=sites(calendar=True), data=st.data(), order=orders, max_wait=bounds)
@settings(max_examples=25)
def test_calendars(
    backfilling: str, site: Site, data: st.DataObject, order: str, max_wait: int
) -> None:
    assert_same(site, data, Rule(order, backfilling), max_wait, follow=True)
