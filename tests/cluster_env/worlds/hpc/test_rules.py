"""Rules on small jobsets, against plain Python and against what they promise."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from cluster_env.core.errors import InputError
from cluster_env.core.invariants import check_schedule
from cluster_env.core.jobs import JobSet
from cluster_env.core.spec import get_heuristic
from cluster_env.evaluation import evaluate
from cluster_env.objectives import get_objective
from cluster_env.sites.description import NodeGroup, Site
from cluster_env.sites.weights import Weights
from cluster_env.worlds.hpc import HPC, rules
from cluster_env.worlds.hpc.rules import (
    BACKFILLING,
    MOVING_ORDERS,
    ORDERS,
    Rule,
    moving_order,
)
from cluster_env.worlds.hpc.scorer import SIZE, Scorer
from tests.cluster_env.worlds.hpc.hpc_jobs import PROCESSORS, jobset_of, played, small_jobsets
from tests.cluster_env.worlds.hpc.plain_rules import plain_starts

WORLD = HPC(processors=PROCESSORS)
EASY_HEAD = jobset_of([0, 1, 2, 3, 4], [10, 10, 4, 9, 20], [10, 10, 4, 9, 20], [6, 8, 2, 2, 1])


@pytest.mark.parametrize("backfilling", BACKFILLING)
@pytest.mark.parametrize("order", [name for name in ORDERS if name not in ("random", "priority")])
@given(jobset=small_jobsets())
@settings(max_examples=15)
def test_every_rule_is_that_of_a_plain_loop(order: str, backfilling: str, jobset: JobSet) -> None:
    rule = Rule(order, backfilling)
    schedule = played(WORLD, [jobset], rule)
    check_schedule(schedule, [jobset], complete_until=WORLD.max_time)
    assert schedule.start.tolist() == plain_starts(jobset, rule, PROCESSORS)


@pytest.mark.parametrize("rule", ["sjf/easy", "saf/conservative", "wfp3/easy", "tetris/skip"])
@given(jobset=small_jobsets(corrected=True))
@settings(max_examples=40)
def test_corrected_estimates_are_those_of_a_plain_loop(rule: str, jobset: JobSet) -> None:
    """One estimate while a job waits, one while it runs, doubled while the job outlives it."""
    chosen = Rule(*rule.split("/"))
    starts = played(WORLD, [jobset], chosen).start.tolist()
    assert starts == plain_starts(jobset, chosen, PROCESSORS)


def test_who_comes_alone_and_starts_is_all_that_starts_then() -> None:
    """Job 6 comes alone at 5 and may start, as it is to end in time; then it is expected for long.

    The reservation of job 1 is as late only from the next event on: jobs 4 and 5 do not start at 5.
    """
    jobset = jobset_of(
        [0, 2, 2, 3, 3, 4, 5],
        [3, 3, 3, 2, 2, 2, 1],
        [5, 8, 3, 7, 2, 6, 4],
        [8, 8, 1, 8, 1, 3, 3],
        order_estimate=np.array([10, 9, 8, 11, 10, 7, 1]),
        reserve_estimate=np.array([6, 2, 4, 6, 9, 11, 12]),
    )
    rule = Rule("f3", "easy")
    starts = played(WORLD, [jobset], rule).start.tolist()
    assert starts == plain_starts(jobset, rule, PROCESSORS) == [0, 6, 3, 11, 9, 9, 5]


def test_what_a_job_takes_of_the_spare_is_free_again_if_it_ends_in_time_after_all() -> None:
    """Job 2 is to have seven of eight processors at 3, so one is spare.

    Job 1 takes it, because it looks as if it would run until 4; once it runs, it is expected to end
    at 3. So job 3, which comes alone at 2, may have the one that is spare.
    """
    jobset = jobset_of(
        *([0, 1, 1, 2], [3, 2, 1, 1], [3, 2, 1, 1], [2, 1, 7, 1]),
        order_estimate=np.array([1, 3, 1, 2]),
        reserve_estimate=np.array([3, 2, 1, 1]),
    )
    assert played(WORLD, [jobset], Rule("sjf", "easy")).start.tolist() == [0, 1, 3, 2]


def test_easy_backfills_what_ends_in_time_and_what_is_spare() -> None:
    """Six of eight processors are taken until 10; job 1 needs all eight then.

    Job 2 ends at 6. Job 3 would end at 12, and job 4 at 24: nothing is spare beside job 1.
    """
    starts = played(WORLD, [EASY_HEAD], Rule("fcfs", "easy")).start
    assert starts.tolist() == [0, 10, 2, 20, 20]
    assert played(WORLD, [EASY_HEAD], Rule("fcfs", "strict")).start.tolist() == [0, 10, 20, 20, 20]
    assert played(WORLD, [EASY_HEAD], Rule("fcfs", "skip")).start.tolist() == [0, 30, 2, 6, 10]


@pytest.mark.parametrize("arrivals", [[0, 1, 2, 2], [0, 1, 2, 3]])
def test_easy_gives_what_is_spare_to_one_job_alone(arrivals: list[int]) -> None:
    """Job 1 needs six of eight processors at 10; job 2 takes both that are spare then."""
    run = [10, 10, 20, 20]
    starts = played(
        WORLD, [jobset_of(arrivals, run, run, [4, 6, 2, 2])], Rule("fcfs", "easy")
    ).start
    assert starts.tolist() == [0, 10, 2, 20]


def test_memory_and_gpus_hold_jobs_back() -> None:
    world = HPC(processors=4, memory=10, gpus=1)
    jobset = jobset_of([0, 0, 0], [5, 5, 5], [5, 5, 5], [[1, 8, 0], [1, 3, 1], [1, 1, 1]])
    assert played(world, [jobset], Rule("fcfs", "skip")).start.tolist() == [0, 5, 0]


def test_jobs_outlive_their_estimates_or_are_killed() -> None:
    jobset = jobset_of([0, 1], [50, 5], [10, 5], [8, 8])
    runs_on = played(WORLD, [jobset], Rule("fcfs", "easy"))
    assert runs_on.finish.tolist() == [50, 55]
    killed = played(HPC(PROCESSORS, kill_at_estimate=True), [jobset], Rule("fcfs", "easy"))
    assert killed.finish.tolist() == [10, 15]


@pytest.mark.parametrize("rule", [Rule("fcfs", "easy"), Scorer.linear("easy")])
def test_an_episode_is_cut_at_the_end_of_time(rule: Rule | Scorer) -> None:
    jobset = jobset_of([0, 1, 2], [50, 50, 50], [50, 50, 50], [8, 8, 8])
    schedule = played(HPC(PROCESSORS, max_time=70), [jobset], rule)
    assert schedule.finish.tolist() == [50, -1, -1]
    assert schedule.start.tolist() == [0, 50, -1]
    assert schedule.end.tolist() == [70]


def scorer_of_shares() -> Scorer:
    """Weights of all features but ``log_size``, the one that does not count shares."""
    weights = np.random.default_rng(3).standard_normal((SIZE, SIZE))
    weights[2] = 0
    return Scorer(weights)


@pytest.mark.parametrize("rule", [Rule("saf", "easy"), scorer_of_shares()])
def test_the_machine_may_be_of_any_size(rule: Rule | Scorer) -> None:
    """What counts is the share of the machine, so a thousand times everything changes nothing."""
    rng = np.random.default_rng(0)
    submit, run = np.cumsum(rng.integers(0, 30, 300)), rng.integers(1, 100, 300)
    size = rng.integers(1, 129, 300)
    small = played(HPC(128), [jobset_of(submit, run, run, size)], rule)
    large = played(HPC(128_000), [jobset_of(submit, run, run, size * 1000)], rule)
    assert small.start.tolist() == large.start.tolist()


def test_moving_orders_of_long_queues_are_sorted() -> None:
    """A queue that reverses its order at once is sorted by other means than insertion."""
    count = 400
    run = np.concatenate([[10_000], np.arange(count, 0, -1)])
    jobset = jobset_of(np.arange(count + 1), run, run, np.concatenate([[8], np.full(count, 8)]))
    rule = Rule("wfp3", "strict")
    assert played(WORLD, [jobset], rule).start.tolist() == plain_starts(jobset, rule, PROCESSORS)


def test_what_a_user_has_used_fades_also_while_jobs_only_arrive() -> None:
    """After three weeks an eighth is left of what user 0 used, which is less than user 1's."""
    week = 7 * 24 * 3600
    submit = [0, 3 * week, 3 * week + 10, 3 * week + 20]
    run, users = [1000, 600, 5, 5], np.array([0, 1, 1, 0])
    jobset = jobset_of(submit, run, run, np.full(4, PROCESSORS), user=users)
    world = HPC(PROCESSORS, priority=Weights(age=0, size=0, fair_share=1))
    rule = Rule("priority", "strict", world.priority)
    start = played(world, [jobset], rule).start - 3 * week
    assert start[2:].tolist() == [605, 600]


def test_fair_share_puts_the_greedy_user_behind() -> None:
    jobset = JobSet.of(
        *([0, 1, 2], [1000, 10, 10], [[8], [8], [8]]),
        attributes={"user": [0, 0, 1], "estimate": [1000, 10, 10]},
    )
    assert played(WORLD, [jobset], Rule("priority", "strict")).start.tolist() == [0, 1010, 1000]
    assert "priority" in MOVING_ORDERS


def test_jobsets_side_by_side_share_no_users() -> None:
    """What is fair depends on how many users a jobset numbers, not on other jobsets."""
    rng = np.random.default_rng(4)

    def of_users(*numbers: int) -> JobSet:
        submit, run = np.cumsum(rng.integers(0, 9, 120)), rng.integers(1, 60, 120)
        user = rng.choice(numbers, 120)
        return jobset_of(submit, run, run, rng.integers(1, 9, 120), user=user)

    jobsets = [of_users(0, 1), of_users(0, 3, 900), of_users(7)]
    rule = Rule("priority", "strict", Weights(age=1e4))
    together = played(WORLD, jobsets, rule)
    for k, jobset in enumerate(jobsets):
        alone = played(WORLD, [jobset], rule)
        assert together.start[together.episode == k].tolist() == alone.start.tolist()


def test_the_weights_of_priority_are_the_site_s() -> None:
    """Job 2 is wider, job 1 older: whose turn it is, is a matter of weights."""
    jobset = jobset_of([0, 1, 2], [50, 5, 5], [50, 5, 5], [8, 5, 6], user=[0, 1, 2])

    def starts(**weights: float) -> list[int]:
        world = HPC(PROCESSORS, priority=Weights(fair_share=0, **weights))
        policy = get_heuristic("priority:strict", world)
        return [int(start) for start in evaluate(policy, [jobset], world).start]

    assert starts(age=1, size=0) == [0, 50, 55]
    assert starts(age=0, size=1) == [0, 55, 50]
    with pytest.raises(InputError, match="the weight age must be finite, but is nan"):
        Weights(age=float("nan"))


def test_a_moving_order_of_ones_own_is_played_and_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """It equals the built-in one with the same formula, in a pool and at a site of one node."""
    monkeypatch.setattr(rules.HEURISTICS, "_things", dict(rules.HEURISTICS._things))
    monkeypatch.setattr(rules, "MOVING_ORDERS", dict(MOVING_ORDERS))
    moving_order("mine")(lambda waited, estimate, size: -((waited / estimate) ** 3) * size)
    rng = np.random.default_rng(5)
    submit, run = np.cumsum(rng.integers(0, 30, 60)), rng.integers(1, 60, 60)
    jobset = jobset_of(submit, run, run + 3, rng.integers(1, 9, 60))
    site = Site(nodes=(NodeGroup("whole", 1, PROCESSORS),))
    for backfilling in BACKFILLING:
        orders = [Rule(name, backfilling) for name in ("wfp3", "mine", "fcfs")]
        for world in (WORLD, replace(WORLD, site=site)):
            theirs, mine, fcfs = (played(world, [jobset], rule).start.tolist() for rule in orders)
            assert mine == theirs != fcfs
    simulator = replace(WORLD, queue=jobset.num_jobs).simulator()
    simulator.load([jobset], get_objective("bounded_slowdown"))
    rows, rewards = np.zeros(1, np.int32), np.empty(1)
    while simulator.active[0]:
        simulator.step(rows, simulator.choose(Rule("mine", "easy"), rows), rewards)
    there = played(WORLD, [jobset], Rule("wfp3", "easy"))
    assert simulator.schedule().start.tolist() == there.start.tolist()
    with pytest.raises(InputError, match="the order 'broken' cannot be compiled"):
        moving_order("broken")(lambda waited, estimate, size: waited.day)


def test_names_say_order_and_backfilling() -> None:
    names = {"sjf": Rule("sjf", "easy"), "sjf:strict": Rule("sjf", "strict")}
    for name, rule in names.items():
        policy = get_heuristic(name, WORLD)
        assert (policy.rule, policy.name) == (rule, name)
    strict = get_heuristic("sjf", HPC(backfilling="strict"))
    assert strict.rule == Rule("sjf", "strict")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sjf:esay", "did you mean 'easy'"),
        ("saf-strict", "'saf-strict' was removed: take saf:strict"),
        ("jsf", "did you mean 'sjf'"),
    ],
)
def test_unknown_names_are_refused(name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        get_heuristic(name, WORLD)
