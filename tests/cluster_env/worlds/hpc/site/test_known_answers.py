"""Each feature of a site on a few jobs whose starts are worked out by hand, as the comments say."""

from dataclasses import replace

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.metric import utilization_to_end
from cluster_env.core.schedule import Schedule
from cluster_env.sites.description import Limit, NodeGroup, Outage, Partition, Site
from cluster_env.sites.weights import Weights
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Rule
from tests.cluster_env.worlds.hpc.hpc_jobs import played
from tests.cluster_env.worlds.hpc.site.node_limits import NODE_LIMITS, Case

FOUR = NodeGroup("n", 1, 4)  # one node of four processors
PAIR = NodeGroup("n", 2, 4)  # n1 and n2


def jobs(arrival, run, demand, **attributes) -> JobSet:
    """Jobs with true estimates unless others are given."""
    demand = np.asarray(demand)
    columns = {"estimate": run, **attributes}
    return JobSet.of(
        arrival,
        run,
        demand[:, None] if demand.ndim == 1 else demand,
        attributes={name: np.asarray(column) for name, column in columns.items()},
    )


def schedule_of(site: Site, jobset: JobSet, rule: Rule | None = None, **options) -> Schedule:
    return played(HPC(site=site, **options), [jobset], rule or Rule("fcfs", "easy"))


def starts(site: Site, jobset: JobSet, rule: Rule | None = None, **options) -> list[int]:
    return schedule_of(site, jobset, rule, **options).start.tolist()


def test_a_job_waits_for_the_nodes_of_its_partition() -> None:
    """Job 1 waits for job 0, since n2 belongs to others; job 2 has it at once."""
    site = Site((PAIR,), (Partition("a", ("n1",)), Partition("b", ("n2",))))
    jobset = jobs([0, 0, 0], [10, 10, 10], [4, 4, 4], partition=[0, 0, 1])
    assert starts(site, jobset) == [0, 10, 0]


def test_partitions_share_nodes_and_the_higher_tier_goes_first() -> None:
    """Both want n1 at 10. Job 2 came later, but belongs to the higher tier."""
    site = Site((FOUR,), (Partition("low"), Partition("high", tier=2)))
    jobset = jobs([0, 1, 2], [10, 5, 5], [4, 4, 4], partition=[0, 0, 1])
    assert starts(site, jobset) == [0, 15, 10]


def test_priorities_of_partitions_and_qos_count_in_the_order_priority() -> None:
    """At 10 three jobs of one user wait; the QOS weighs more than the partition."""
    site = Site(
        (FOUR,),
        (Partition("a"), Partition("b", priority=10)),
        (Limit("normal", priority=1), Limit("urgent", priority=10)),
    )
    jobset = jobs([0, 1, 1, 1], [10] * 4, [4] * 4, partition=[0, 0, 1, 0], qos=[0, 0, 0, 1])
    weights = Weights(age=1, size=0, fair_share=0, partition=100, qos=1000)
    assert starts(site, jobset, Rule("priority", "easy", weights)) == [0, 30, 20, 10]
    weights = replace(weights, partition=1000, qos=100)
    assert starts(site, jobset, Rule("priority", "easy", weights)) == [0, 30, 10, 20]


def test_each_partition_has_a_booking_of_its_own() -> None:
    """Job 2 (a) and job 3 (b) are booked at 10 and 20. Job 4 would end at 15, after 10 on n1; job 5
    ends at 18 on n2, before 20."""
    site = Site((PAIR,), (Partition("a", ("n1",)), Partition("b", ("n2",))))
    jobset = jobs(
        [0, 0, 1, 1, 3, 3],
        [10, 20, 5, 5, 12, 15],
        [3, 3, 4, 4, 1, 1],
        partition=[0, 1, 0, 1, 0, 1],
    )
    assert starts(site, jobset) == [0, 0, 10, 20, 15, 3]


def test_only_as_many_jobs_are_booked_as_the_site_says(monkeypatch) -> None:
    """Job 1 is booked at 10, job 2 at 15, and job 3 would delay job 2 alone.

    Where there is room for one booking, one booking for each job is refused, and not cut.
    """
    jobset = jobs([0, 1, 2, 3], [10, 5, 5, 20], [3, 3, 4, 1])
    conservative = Rule("fcfs", "conservative")
    assert starts(Site((FOUR,)), jobset, conservative) == [0, 10, 15, 20]
    assert starts(Site((FOUR,), most_bookings=1), jobset, conservative) == [0, 10, 23, 3]
    monkeypatch.setattr("cluster_env.worlds.hpc.site.compiling._MOST_CHECKED", 1)
    assert starts(Site((FOUR,), most_bookings=1), jobset, conservative) == [0, 10, 23, 3]
    for most in (0, 2):
        with pytest.raises(InputError, match=r"room for 1\); give the site fewer most_bookings"):
            starts(Site((FOUR,), most_bookings=most), jobset, conservative)


def test_strict_order_holds_up_the_nodes_of_the_first_job_alone() -> None:
    """Job 1 waits for n1, so that job 2 waits behind it; job 3 has n2."""
    site = Site((PAIR,), (Partition("a", ("n1",)), Partition("b", ("n2",))))
    jobset = jobs([0, 1, 2, 2], [10, 5, 5, 5], [3, 4, 1, 1], partition=[0, 0, 0, 1])
    assert starts(site, jobset, Rule("fcfs", "strict")) == [0, 10, 15, 2]


def test_an_exclusive_job_has_its_node_whole_and_waits_for_an_idle_one() -> None:
    """Job 1 takes the whole node when job 0 has left it, and job 2 has to wait for its end."""
    jobset = jobs([0, 1, 2], [10, 5, 20], [1, 1, 1], exclusive=[0, 1, 0])
    assert starts(Site((FOUR,)), jobset) == [0, 10, 15]
    # A partition may have it so for all.
    site = Site((FOUR,), (Partition("all", exclusive=True),))
    assert starts(site, jobset) == [0, 10, 15]


def test_a_job_needs_nodes_with_its_features() -> None:
    """Only n1 has both; b1 has one of them."""
    groups = (NodeGroup("n", 1, 4, features=("gpu", "ib")), NodeGroup("b", 1, 4, features=("ib",)))
    site = Site(groups)
    both = site.feature_mask(("gpu", "ib"))
    jobset = jobs([0, 0, 0], [10, 10, 10], [4, 4, 4], features=[both, both, 0])
    assert starts(site, jobset) == [0, 10, 0]
    either = jobs([0, 0, 0], [10, 10, 10], [4, 4, 4], any_features=[both, both, both])
    assert starts(site, either) == [0, 0, 10]


def test_memory_and_gpus_are_those_of_a_node() -> None:
    """The machine has 8 processors and 16 MiB. Job 0 takes 2 processors with 8 MiB, all of n1.

    Job 1 needs 4 MiB a processor, which n2 has for two. Job 2 finds processors, but no memory.
    """
    site = Site((NodeGroup("n", 2, 4, memory=8),))
    jobset = jobs([0, 0, 0], [10, 20, 5], [[2, 8], [2, 8], [1, 1]])
    assert starts(site, jobset) == [0, 0, 10]
    # One GPU on each node: job 0 needs both nodes, and job 1 has to wait for one of them.
    site = Site((NodeGroup("n", 2, 4, gpus=1),))
    jobset = jobs([0, 0], [10, 10], [[2, 2], [1, 1]])
    assert starts(site, jobset) == [0, 10]


def test_room_that_is_scattered_is_no_room_for_a_job_of_one_node() -> None:
    """Each node has one processor free. Job 2 asks for one node, job 3 for as many as it takes."""
    jobset = jobs([0, 0, 1, 1], [10] * 4, [3, 3, 2, 2], nodes=[1, 1, 1, 0])
    assert starts(Site((PAIR,)), jobset, Rule("fcfs", "skip")) == [0, 0, 10, 1]


def test_a_job_takes_as_many_nodes_as_it_asks_for() -> None:
    """Job 0 has two processors on each node, so that job 1 fits on neither."""
    jobset = jobs([0, 1], [10, 10], [4, 3], nodes=[2, 0])
    assert starts(Site((PAIR,)), jobset) == [0, 1]  # as many nodes as it takes: both
    jobset = jobs([0, 1], [10, 10], [4, 3], nodes=[2, 1])
    assert starts(Site((PAIR,)), jobset) == [0, 10]
    # A partition may allow one node alone.
    site = Site((PAIR,), (Partition("all", max_nodes=1),))
    assert starts(site, jobs([0, 1], [10, 10], [3, 3])) == [0, 1]
    assert starts(site, jobs([0, 0, 1], [10, 10, 10], [2, 3, 3])) == [0, 0, 10]


def test_best_fit_leaves_nodes_whole_and_the_plain_order_does_not() -> None:
    """Jobs 0 and 1 take n1 and 3 of n2, then job 0 ends. Job 2 fits on n1 (4 free) and n2 (1 free).

    On n2 it leaves n1 to job 3; on n1, which is the first, job 3 waits for the end of job 1.
    """
    jobset = jobs([0, 0, 6, 7], [5, 20, 30, 5], [4, 3, 1, 4], nodes=[1, 1, 1, 1])
    assert starts(Site((PAIR,)), jobset) == [0, 0, 6, 7]
    assert starts(Site((PAIR,), placement="order"), jobset) == [0, 0, 6, 20]
    # Nodes of low weight go first.
    groups = (NodeGroup("a", 1, 4, weight=5), NodeGroup("b", 1, 4))
    jobset = jobs([0, 0], [10, 10], [1, 4], features=[0, 0])
    site = Site(groups, (Partition("all"), Partition("b", ("b",))))
    there = replace(jobset, attributes={**jobset.attributes, "partition": np.array([0, 1])})
    assert starts(site, there) == [0, 10]


def test_a_reservation_is_for_its_own_jobs() -> None:
    """It lasts from 10 to 20. Job 0 would reach into it, job 1 ends before, jobs 2 and 3 belong to
    it and wait for its beginning; job 3 may outlast it. Job 4 comes when it is over."""
    site = Site((FOUR,), calendar=(Outage(10, 20, kind="reservation"),))
    reservation = [-1, -1, 0, 0, 0]
    jobset = jobs([0, 0, 0, 0, 20], [11, 10, 8, 12, 1], [2] * 5, reservation=reservation)
    assert starts(site, jobset) == [20, 0, 10, 10, -1]


def test_a_planned_outage_keeps_jobs_off_that_would_reach_into_it() -> None:
    """From 10 to 15, known at 3. Job 0 started before that, and runs on; job 1 would reach into it,
    job 2 ends just before it."""
    site = Site((FOUR,), calendar=(Outage(10, 15, known_from=3),))
    jobset = jobs([0, 4, 5], [20, 7, 5], [1, 1, 1])
    assert starts(site, jobset) == [0, 15, 5]


def test_jobs_on_a_node_that_fails_are_requeued_or_lost() -> None:
    """n1 fails at 4 and comes back at 9. Job 0 ran there, and keeps its place before job 2."""
    site = Site((PAIR,), calendar=(Outage(4, 9, ("n1",), "failure"),))
    jobset = jobs([0, 0, 1], [10, 8, 10], [4, 4, 4])
    again = schedule_of(site, jobset)
    assert again.start.tolist() == [8, 0, 9]
    assert again.finish.tolist() == [18, 8, 19]
    assert again.attributes["restarts"].tolist() == [1, 0, 0]
    # In vain: 4 seconds on n1. Of 19 seconds of two nodes, 28 and these are used.
    assert again.pieces is not None
    assert utilization_to_end(again) == pytest.approx((10 + 8 + 10 + 4) / (2 * 19))
    lost = schedule_of(replace(site, when_node_fails="lost"), jobset)
    assert lost.start.tolist() == [0, 0, 8]
    assert lost.finish.tolist() == [4, 8, 18]
    assert lost.duration.tolist() == [4, 8, 10]
    assert lost.attributes["lost"].tolist() == [1, 0, 0]


def test_a_job_that_only_a_failed_node_can_run_holds_nobody_up() -> None:
    """Job 0 needs n1, which fails at 0; job 1 may run for as long as it likes."""
    site = Site(
        (PAIR,),
        (Partition("all"), Partition("one", ("n1",))),
        calendar=(Outage(0, 9, ("n1",), "failure"),),
    )
    jobset = jobs([0, 0], [5, 50], [4, 4], partition=[1, 0])
    for backfilling in ("strict", "easy", "conservative"):
        assert starts(site, jobset, Rule("fcfs", backfilling)) == [9, 0]


def test_the_booking_of_a_partition_goes_to_the_first_job_that_has_any_time() -> None:
    """Job 1 needs both nodes, of which n1 is away: no time is foreseen. Job 2 is booked on n2 at
    10, when job 0 ends, so that job 3, which would run until 23, comes after it."""
    site = Site((PAIR,), calendar=(Outage(0, 100, ("n1",), "failure"),))
    jobset = jobs([0, 1, 2, 3], [10, 5, 5, 20], [3, 8, 4, 1])
    assert starts(site, jobset) == [0, 100, 10, 15]


def test_a_job_waits_for_the_end_of_others() -> None:
    """Job 1 comes after job 0 however that ends, job 2 never, since it fails; job 3 had come
    at 20 by then. Its wait counts from when it could run."""
    jobset = jobs(
        [0, 1, 1, 20],
        [10, 5, 5, 5],
        [1, 1, 1, 1],
        job_id=[70, 71, 72, 73],
        after=[-1, 70, 70, 71],
        after_ok=[0, 0, 1, 1],
        failed=[1, 0, 0, 0],
    )
    schedule = schedule_of(Site((FOUR,)), jobset)
    assert schedule.job.tolist() == [0, 1, 3]
    assert schedule.arrival.tolist() == [0, 10, 20]
    assert schedule.start.tolist() == [0, 10, 20]
    # A predecessor of which nothing is known has ended.
    alone = jobset.select(np.array([False, True, False, False]))
    assert starts(Site((FOUR,)), alone) == [1]


def test_in_a_closed_loop_a_job_is_submitted_when_its_user_has_thought() -> None:
    """3 seconds after the end of job 0, at 13, though the log has it at 40."""
    jobset = jobs([0, 40], [10, 5], [1, 1], job_id=[1, 2], after=[-1, 1], think_s=[0, 3])
    schedule = schedule_of(Site((FOUR,)), jobset)
    assert schedule.arrival.tolist() == [0, 13]
    assert schedule.start.tolist() == [0, 13]


def test_an_array_runs_as_many_jobs_at_once_as_its_throttle_lets() -> None:
    """Two of the first array's four, and job 4 beside them."""
    jobset = jobs([0] * 5, [10] * 5, [1] * 5, array=[7, 7, 7, 7, -1], throttle=[2, 2, 2, 2, 0])
    assert starts(Site((NodeGroup("n", 1, 8),)), jobset) == [0, 0, 10, 10, 0]


def test_limits_of_a_qos_hold_in_all_by_user_and_by_account() -> None:
    """A job that a limit blocks gets no booking: others start before it."""
    jobset = jobs([0] * 4, [10] * 4, [2] * 4, qos=[0] * 4, user=[1, 1, 2, 2], account=[5, 6, 6, 6])
    site = Site((NodeGroup("n", 1, 16),), limits=(Limit("normal"),))

    def under(**limits: int) -> list[int]:
        return starts(replace(site, limits=(Limit("normal", **limits),)), jobset)

    assert under() == [0, 0, 0, 0]
    assert under(processors=4) == [0, 0, 10, 10]
    assert under(jobs_per_user=1) == [0, 10, 0, 10]
    assert under(processors_per_account=2) == [0, 0, 10, 20]
    assert under(nodes=1) == [0, 0, 0, 0]


@pytest.mark.parametrize("case", NODE_LIMITS, ids=str)
def test_a_limit_of_nodes_counts_each_node_once(case: Case) -> None:
    """All as a private Slurm starts them, see tests/slurm/test_node_limits.py."""
    groups = [f"n{k}" for k in (1, 2, 3)]
    site = Site(
        (NodeGroup("n", 3, 64),),
        (Partition("free"), *(Partition(f"p{name}", (name,)) for name in groups)),
        limits=(Limit("one", nodes=1), Limit("two", nodes=2), Limit("per", nodes_per_user=1)),
        placement="consecutive",
    )
    numbers = {name: k for k, name in enumerate(site.qos_names)}
    jobset = jobs(
        range(len(case.jobs)),
        [100] * len(case.jobs),
        [job.processors for job in case.jobs],
        qos=[numbers.get(job.qos, -1) for job in case.jobs],
        partition=[job.node for job in case.jobs],
        user=[5] * len(case.jobs),
        nodes=[job.nodes for job in case.jobs],
        exclusive=[int(job.exclusive) for job in case.jobs],
    )
    assert starts(site, jobset) == list(case.starts)


def test_limits_of_accounts_and_users_hold_where_no_qos_has_them() -> None:
    jobset = jobs([0] * 3, [10] * 3, [2] * 3, qos=[-1, -1, 0], user=[0, 0, 0], account=[0, 0, 0])
    site = Site((NodeGroup("n", 1, 16),), limits=(Limit("a0", "account", jobs=1),))
    site = replace(site, limits=(*site.limits, Limit("free", jobs=9)))
    assert starts(site, jobset) == [0, 10, 0]
    site = replace(site, limits=(Limit("u0", "user", processors=2), Limit("free")))
    assert starts(site, jobset) == [0, 10, 20]
    # The partition's QOS goes before the job's own.
    limits = (Limit("own", jobs=1), Limit("of_partition", jobs=2))
    site = Site((NodeGroup("n", 1, 16),), (Partition("all", qos="of_partition"),), limits=limits)
    assert starts(site, jobset) == [0, 0, 10]


def test_the_usage_of_users_fades_with_the_half_life_of_the_site() -> None:
    """User 0 has used 40 by 10, user 1 16 by 104. In a week little of it fades, and user 1 goes
    first; with a half-life of 5 seconds nothing is left of what user 0 used, and job 2 does."""
    jobset = jobs([0, 100, 101, 101], [10, 4, 5, 5], [4, 4, 4, 4], user=[0, 1, 0, 1])
    rule = Rule("priority", "easy", Weights(age=0, size=0, fair_share=1))
    assert starts(Site((FOUR,)), jobset, rule) == [0, 100, 109, 104]
    assert starts(Site((FOUR,), half_life_s=5), jobset, rule) == [0, 100, 104, 109]


def test_an_overdue_job_goes_first() -> None:
    """Under skip, job 1 would wait for as long as narrow jobs come. It is overdue after 12, gets a
    booking at 30, and from then on only what ends before starts."""
    arrival = [0, 1, *range(10, 60, 10)]
    jobset = jobs(arrival, [20, 5, 20, 20, 20, 20, 20], [2, 4, 2, 2, 2, 2, 2])
    unbounded = starts(Site((FOUR,)), jobset, Rule("fcfs", "skip"))
    assert unbounded[1] == 70
    assert starts(Site((FOUR,)), jobset, Rule("fcfs", "skip"), max_wait=12)[1] == 30


def test_the_capacity_counts_nodes_that_are_away() -> None:
    site = Site((PAIR,), calendar=(Outage(0, 100, ("n2",)),))
    schedule = schedule_of(site, jobs([0, 0], [10, 10], [4, 4]))
    assert schedule.start.tolist() == [0, 10]
    assert utilization_to_end(schedule) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("site", "jobset", "why"),
    [
        (Site((PAIR,)), jobs([0], [9], [5], nodes=[1]), "fits on no nodes"),
        (Site((FOUR,), (Partition("a", max_time_s=8),)), jobs([0], [9], [1]), "more time"),
        (Site((FOUR,), (Partition("a", available=False),)), jobs([0], [9], [1]), "not up"),
        (
            Site((FOUR,), limits=(Limit("q", processors_per_job=1),)),
            jobs([0], [9], [2], qos=[0]),
            "more processors than the qos q",
        ),
        (
            Site((NodeGroup("n", 2, 4), NodeGroup("m", 2, 1)), limits=(Limit("q", nodes=2),)),
            jobs([0], [9], [9], qos=[0]),
            "alone holds more than 2 nodes of the qos q",
        ),
        (
            Site((NodeGroup("n", 1, 4), NodeGroup("m", 3, 1)), limits=(Limit("q", nodes=2),)),
            jobs([0], [9], [6], qos=[0]),
            "needs more nodes than its limits let it have",
        ),
        (Site((FOUR,)), jobs([0], [9], [2], partition=[3]), "numbered 0 to 0"),
    ],
)
def test_a_job_that_can_never_run_is_refused(site: Site, jobset: JobSet, why: str) -> None:
    with pytest.raises(InputError, match=why):
        HPC(site=site).check(jobset)


@pytest.mark.parametrize(
    ("limit", "why"), [("processors_per_job", "more processors"), ("max_time_s", "more time")]
)
def test_of_limits_of_a_single_job_that_of_the_partition_s_qos_goes_first(
    limit: str, why: str
) -> None:
    """Then that of the job's own QOS, of its user and of its account, as in Slurm."""

    def check(**limits: int) -> None:
        site = Site(
            (FOUR,),
            (Partition("a", qos="of_partition"),),
            limits=(
                Limit("of_partition", **{limit: limits.get("partition", 0)}),
                Limit("own", **{limit: limits.get("own", 0)}),
                Limit("ann", "user", **{limit: limits.get("user", 0)}),
                Limit("bio", "account", **{limit: limits.get("account", 0)}),
            ),
        )
        HPC(site=site).check(jobs([0], [2], [2], qos=[1], user=[0], account=[0]))

    order = ["partition", "own", "user", "account"]
    for place, first in enumerate(order):
        behind = dict.fromkeys(order[place + 1 :], 1)
        check(**{first: 2}, **behind)
        with pytest.raises(InputError, match=why):
            check(**{first: 1}, **dict.fromkeys(behind, 9))
