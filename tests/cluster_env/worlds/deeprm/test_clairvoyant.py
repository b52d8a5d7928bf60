"""The clairvoyant reference: brute force, work by hand, bounds that no policy beats."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings

from cluster_env.core.errors import InputError
from cluster_env.core.invariants import ScheduleFault, check_schedule
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate, summarize
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.clairvoyant import HINTS, clairvoyant_reference, require_solver
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.rules import RULES
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from tests.cluster_env.worlds.deeprm.tiny_jobsets import CAPACITY, best_cost, tiny_jobsets
from tests.waiting import run_python

LIMIT_S = 20.0  # far more than these take, also on a busy machine
TINY = Cluster(capacity=CAPACITY, horizon=8)
HARD = BimodalWorkload(load=1.8, window=18)

# Job 0 could start at once, but then job 1, which needs all units, waits for its four steps.
WORKED = JobSet.of([0, 1, 1], [4, 1, 1], [[1], [2], [1]], window=2)
WORKED_CLUSTER = Cluster(capacity=(2,), horizon=8)


@pytest.mark.usefixtures("solver")
def test_a_worked_example_waits_for_the_jobs_that_it_knows_will_come() -> None:
    reference = clairvoyant_reference(WORKED, WORKED_CLUSTER, time_limit_s=LIMIT_S)
    assert reference.status == "optimal"
    assert reference.schedule.start.tolist() == [2, 1, 2]
    assert reference.value == reference.bound == 6 / 4 + 1 + 2
    total = clairvoyant_reference(WORKED, WORKED_CLUSTER, "completion_time", time_limit_s=LIMIT_S)
    assert total.value == total.bound == 9


@pytest.mark.usefixtures("solver")
@settings(max_examples=25)
@given(jobset=tiny_jobsets())
def test_it_is_the_best_of_all_orders_of_jobs(jobset: JobSet) -> None:
    for metric, weights in (
        ("slowdown", (1 / jobset.duration).tolist()),
        ("completion_time", [1.0] * jobset.num_jobs),
    ):
        reference = clairvoyant_reference(jobset, TINY, metric, time_limit_s=LIMIT_S)
        assert reference.status == "optimal"
        assert reference.value == pytest.approx(best_cost(jobset, CAPACITY, weights), rel=1e-12)
        assert reference.bound == reference.value
        assert summarize(reference.schedule).totals[metric][0] == pytest.approx(reference.value)
        check_schedule(reference.schedule, [jobset], complete_until=1000)


@pytest.mark.usefixtures("solver")
def test_many_different_durations_do_not_overflow_the_whole_numbers() -> None:
    primes = [223, 227, 229, 233, 239, 241]  # times each other, beyond 53 bits with their costs
    demand = [[2], [1], [2], [1], [1], [2]]
    jobset = JobSet.of([0, 3, 3, 50, 51, 90], primes, demand, window=91)
    cluster = Cluster(capacity=(3,), horizon=255)
    reference = clairvoyant_reference(jobset, cluster, time_limit_s=LIMIT_S)
    best = best_cost(jobset, (3,), (1 / jobset.duration).tolist())
    assert reference.status == "optimal"
    assert reference.value == pytest.approx(best, rel=1e-6)


@pytest.mark.usefixtures("solver")
def test_the_makespan_is_not_capped_by_that_of_a_busy_schedule() -> None:
    # The long job waits until the last of the short ones, which come every other step, is done.
    arrival = [0, 1, 3, 5, 7, 9, 11]
    jobset = JobSet.of(arrival, [12] + 6 * [1], 7 * [[2]], window=12)
    cluster = Cluster(capacity=(2,))
    reference = clairvoyant_reference(jobset, cluster, time_limit_s=LIMIT_S)
    busy = evaluate(get_heuristic("sjf", DeepRM(cluster)), [jobset], DeepRM(cluster))
    assert busy.finish.max() == 18
    assert reference.schedule.start.tolist() == [12, *arrival[1:]]
    assert reference.value == 6 + 24 / 12


@pytest.mark.usefixtures("solver")
@pytest.mark.parametrize("rules", ["paper", "released"])
def test_no_policy_beats_the_bound(rules: str) -> None:
    workload = BimodalWorkload(load=1.3, window=12, first_step=int(rules == "released"))
    jobsets = sample_jobsets(workload, 0, Split.HELD_OUT, range(6))
    cluster = Cluster()
    references = [clairvoyant_reference(j, cluster, time_limit_s=1.0) for j in jobsets]
    for name in ("random", *HINTS):
        policy = get_heuristic(name, DeepRM(cluster))
        schedule = evaluate(
            policy, jobsets, DeepRM(cluster, RULES.get(rules), max_time=3000), episodes_per_jobset=5
        )
        assert schedule.finished.all()
        episode = np.bincount(schedule.episode, schedule.slowdown, schedule.num_episodes)
        for total, jobset in zip(episode, schedule.jobset, strict=True):
            assert total >= references[jobset].bound - 1e-9
            if references[jobset].status == "optimal":
                assert total >= references[jobset].value - 1e-9


@pytest.mark.usefixtures("solver")
def test_when_time_is_up_it_has_a_schedule_and_a_bound_that_says_something() -> None:
    jobset = sample_jobsets(HARD, 0, Split.HELD_OUT, [2])[0]
    reference = clairvoyant_reference(jobset, Cluster(), time_limit_s=0.01)
    assert reference.status == "feasible"
    check_schedule(reference.schedule, [jobset], complete_until=1000)
    hints = [
        evaluate(get_heuristic(name, DeepRM(Cluster())), [jobset], DeepRM(Cluster()))
        for name in HINTS
    ]
    assert reference.value <= min(hint.slowdown.sum() for hint in hints) + 1e-9
    # A bound that knows nothing of capacity is 1 for each job.
    assert 1.7 * jobset.num_jobs < reference.bound < reference.value


@pytest.mark.usefixtures("solver")
def test_a_better_schedule_that_is_known_is_never_lost() -> None:
    jobset = sample_jobsets(HARD, 0, Split.HELD_OUT, [2])[0]
    found = clairvoyant_reference(jobset, Cluster(), time_limit_s=1.0)
    again = clairvoyant_reference(
        jobset, Cluster(), known=[found.schedule.start], time_limit_s=0.01
    )
    assert again.value <= found.value


@pytest.mark.usefixtures("solver")
def test_the_same_search_gives_the_same_schedule() -> None:
    jobset = sample_jobsets(HARD, 0, Split.HELD_OUT, [8])[0]
    one, two = (clairvoyant_reference(jobset, Cluster(), time_limit_s=LIMIT_S) for _ in range(2))
    assert one.status == "optimal"
    assert one.schedule.start.tolist() == two.schedule.start.tolist()


@pytest.mark.usefixtures("solver")
def test_a_jobset_without_jobs_costs_nothing() -> None:
    reference = clairvoyant_reference(JobSet.of([], [], np.empty((0, 2)), window=5), Cluster())
    assert (reference.status, reference.value, reference.num_jobs) == ("optimal", 0.0, 0)


@pytest.mark.usefixtures("solver")
def test_bad_input_is_one_sentence() -> None:
    for metric, limit, cluster, sentence in (
        ("makespan", 1.0, WORKED_CLUSTER, "known are completion_time, slowdown"),
        ("slowdown", 0.0, WORKED_CLUSTER, "must be above 0 seconds, but 0 was given"),
        ("slowdown", 1.0, Cluster(capacity=(1,)), "job 1 asks for"),
    ):
        with pytest.raises(InputError, match=sentence):
            clairvoyant_reference(WORKED, cluster, metric, time_limit_s=limit)
    with pytest.raises(ScheduleFault, match="job 1 of episode 0 starts when"):
        clairvoyant_reference(WORKED, WORKED_CLUSTER, known=[np.array([0, 1, 1], np.int32)])


def test_without_the_solver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(InputError, match=r"pip install 'metasched\[clairvoyant\]'"):
        clairvoyant_reference(WORKED, WORKED_CLUSTER)
    with pytest.raises(InputError, match="OR-tools, which is not installed"):
        require_solver()


# Left to itself the solver keeps the signal, and the process would die of it.
AFTER_A_SEARCH = """
import os, signal, time
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.core.jobs import JobSet
from cluster_env.worlds.deeprm.clairvoyant import clairvoyant_reference

jobset = JobSet.of([0, 1, 1], [4, 1, 1], [[1], [2], [1]], window=2)
clairvoyant_reference(jobset, Cluster(capacity=(2,)))
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.usefixtures("solver", "interruptible")
def test_ctrl_c_works_after_a_search() -> None:
    done = run_python("-c", AFTER_A_SEARCH)
    assert (done.returncode, done.stdout.strip()) == (0, "interrupted"), done.stderr
