"""Comparisons on a log: windows are long, and begin on a filled machine."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.spec import get_heuristic
from cluster_env.envs import ClusterEnv, check_cluster_env
from cluster_env.evaluation import evaluate, summarize
from cluster_env.objectives import get_objective
from cluster_env.task import Task
from cluster_env.workloads.windows import filling_time
from cluster_env.worlds.hpc import HPC, SPEC
from cluster_env.worlds.hpc.workloads import HPCLog, LublinWorkload
from tests.cluster_env.worlds.hpc.step_rule import check_step
from tests.cluster_env.worlds.stepping import play_to_the_end

HOUR = 3600


def task_on(workload: object) -> Task:
    return Task(HPC(processors=4), workload, get_objective("bounded_slowdown"))  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A job of an hour every hour, and once a day one of eleven hours: 1.4 hours on average."""
    rows = [f"{HOUR * k},{11 * HOUR if k % 24 == 0 else HOUR},1" for k in range(6000)]
    (tmp_path / "jobs.csv").write_text("\n".join(["arrival,duration,processors", *rows]))
    return tmp_path / "jobs.csv"


def test_windows_measure_twenty_mean_runs_behind_a_warm_up_that_fills_the_machine(
    path: Path,
) -> None:
    workload = HPCLog(path, (4,))
    given, warmup = SPEC.presentation.steady(task_on(workload))
    mean_run = float(workload.recorded.run.mean())
    assert mean_run == pytest.approx((23 + 11) / 24 * HOUR)
    assert given["window"] - 2 * warmup >= 20 * mean_run
    # Weighed with their work, jobs last (23 + 121) / 34 hours.
    assert filling_time(workload.recorded) == pytest.approx((23 + 121) / 34 * HOUR, abs=1)
    assert warmup >= filling_time(workload.recorded)


def test_a_short_log_gives_what_it_has(tmp_path: Path) -> None:
    rows = [f"{600 * k},{30 * HOUR},1" for k in range(1000)]
    (tmp_path / "jobs.csv").write_text("\n".join(["arrival,duration,processors", *rows]))
    workload = HPCLog(tmp_path / "jobs.csv", (4,))
    given, warmup = SPEC.presentation.steady(task_on(workload))
    shortest = int(workload.recorded.span * 0.2)
    assert given["window"] == pytest.approx(shortest, rel=0.02)
    assert 0 < 2 * warmup <= given["window"] / 2


def test_who_says_how_many_jobs_or_asks_for_all_gets_them(path: Path) -> None:
    for workload in (
        HPCLog(path, (4,), jobs=100),
        HPCLog(path, (4,), whole=True),
        LublinWorkload(256),
    ):
        assert SPEC.presentation.steady(task_on(workload)) == ({}, 0)


def test_jobs_of_a_windows_own_warm_up_fill_the_machine_and_cost_nothing(path: Path) -> None:
    """Returns are what the counted jobs cost, and nothing else is measured."""
    plain, warmed = (
        HPCLog(path, (1,), window=12 * HOUR, offset=26 * HOUR - warmup, warmup=warmup)
        for warmup in (0, 3 * HOUR)  # the long job of the second day is before the window
    )
    bare, jobset = (one.sample(np.random.default_rng(0)) for one in (plain, warmed))
    assert bare.counted.all()
    assert jobset.window == bare.window + 3 * HOUR
    assert jobset.counted.tolist() == [False] * 3 + [True] * bare.num_jobs
    world, objective = HPC(1, queue=64), get_objective("bounded_slowdown")
    simulator = world.simulator()
    simulator.load([jobset], objective)
    [total] = play_to_the_end(
        simulator,
        lambda _: world.features(simulator.states).allowed.argmax(axis=1).astype(np.int32),
    )
    schedule = simulator.schedule()
    costs = objective.job_cost(jobset) @ (schedule.completion * jobset.counted)
    late = sum(
        one.cost(jobset) @ (np.maximum(schedule.completion - one.after(jobset), 0) * jobset.counted)
        for one in objective.late_costs
    )
    assert total == pytest.approx(-(costs + late))
    summary = summarize(schedule, metrics=["bounded_slowdown"])
    assert summary.num_jobs.tolist() == [bare.num_jobs]
    empty = evaluate(get_heuristic("fcfs", world), [bare], world)
    assert summary.means["bounded_slowdown"] > summarize(empty).means["bounded_slowdown"]
    env = ClusterEnv(world=world, workload=warmed, objective=objective)
    check_cluster_env(env, num_episodes=2, step_rule=check_step)


def test_a_warm_up_goes_with_windows_by_time(path: Path) -> None:
    with pytest.raises(InputError, match="needs jobsets that are windows of time"):
        HPCLog(path, (1,), jobs=10, warmup=60)
