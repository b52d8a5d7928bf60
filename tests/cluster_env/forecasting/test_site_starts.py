"""Start times at a site: nodes, partitions, limits, throttles and dependencies are those of it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.forecasting.checks import check_starts, play_whole
from cluster_env.forecasting.moments import MachineMoment, moment_of
from cluster_env.forecasting.past import NEVER, SitePast
from cluster_env.forecasting.starts import forecast
from cluster_env.sites.description import NodeGroup, Outage, Partition, Site
from cluster_env.sites.placements import Placements, without_failures
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Rule, RulePolicy
from tests.cluster_env.worlds.hpc.site.small_sites import jobs_of, sites

LATE = 10**8  # when the past is so long ago that nothing of it arrives again


def nothing_known(jobset: JobSet) -> SitePast:
    """A past of which only limits are known, so that users are believed."""
    none = jobset.select(np.zeros(0, np.int64))
    return SitePast(LATE, none, np.zeros(0, np.int64), np.zeros(0, np.int64))


@pytest.mark.parametrize("name", ["fcfs:strict", "fcfs:easy", "wfp3:skip", "lcfs:conservative"])
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_with_true_run_times_and_no_arrivals_it_is_the_start_itself(
    name: str, data: st.DataObject
) -> None:
    site = without_failures(data.draw(sites(more=True, limits=True, calendar=True)))
    known = tuple(replace(one, known_from=0) for one in site.calendar)
    site = replace(site, calendar=known)
    jobset = data.draw(jobs_of(site, follow=True))
    exact = {"estimate": jobset.duration, "think_s": np.full(jobset.num_jobs, -1)}
    jobset = replace(jobset, attributes={**jobset.attributes, **exact})
    world, policy = HPC(site=site), RulePolicy("", Rule(*name.split(":")))
    try:
        whole = play_whole(jobset, world, policy)
    except InputError:
        return  # a job for which the calendar or a failed predecessor leaves no time
    last = int(jobset.arrival[-1])
    for time in np.unique(np.concatenate([jobset.arrival, whole.finish])):
        moment, _ = moment_of(jobset, whole, int(time))
        if time < last or not moment.waiting.size:
            continue
        rng, past = np.random.default_rng(0), nothing_known(jobset)
        note(f"at {time}: {whole}, {dict(jobset.attributes)}")
        made = forecast(moment, past, world, policy, num_futures=2, rng=rng)
        assert (made.after == whole.start[moment.number[moment.waiting]] - time).all()
