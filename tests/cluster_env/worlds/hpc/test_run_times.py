"""Learned run times: known is what has ended in the schedule that is played, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.evaluation import evaluate
from cluster_env.objectives import get_objective
from cluster_env.worlds.hpc import HPC, rules
from cluster_env.worlds.hpc.rules import BACKFILLING, ORDERS, Rule
from cluster_env.worlds.hpc.scorer import MODES, SIZE, Scorer
from rllib_configs.config.loading import load_config
from rllib_configs.policy_files import LearnedPolicy, policy_of
from rllib_configs.worlds.hpc.scorer import start_weights
from tests.cluster_env.worlds.hpc.hpc_jobs import PROCESSORS, jobset_of, played
from tests.cluster_env.worlds.hpc.plain_rules import plain_starts
from tests.cluster_env.worlds.hpc.plain_run_times import PlainRunTimes
from tests.cluster_env.worlds.hpc.plain_scorer import plain_scored_starts
from tests.cluster_env.worlds.stepping import play_to_the_end

MODELS = ("recent", "mixed")
WORLDS = {name: HPC(PROCESSORS, queue=64, run_times=name) for name in MODELS}
FIXED = tuple(order for order in ORDERS if order not in ("priority", "random"))


def crowd(seed: int, count: int = 40) -> JobSet:
    """Jobs of four users who compete, and ask for up to six times as much as their jobs take."""
    rng = np.random.default_rng(seed)
    run = rng.integers(5, 60, count)
    estimate = run * rng.integers(1, 7, count)
    submit = np.cumsum(rng.integers(0, 20, count))
    user = rng.integers(0, 4, count)
    return jobset_of(submit, run, estimate, rng.integers(1, PROCESSORS + 1, count), user=user)


def any_scorer(seed: int, mode: str = "easy") -> Scorer:
    return Scorer(np.random.default_rng(seed).standard_normal((SIZE, SIZE)), mode)


def stepped(world: HPC, jobsets: list[JobSet], rule: Rule | Scorer, each: int = 1) -> list[int]:
    """Starts of decisions one by one."""
    simulator = world.simulator()
    simulator.load(jobsets, get_objective("slowdown"), each)
    play_to_the_end(simulator, lambda rows: simulator.choose(rule, rows))
    return simulator.schedule().start.tolist()


def believed(model: str, jobset: JobSet, processors: int = 64) -> dict[str, list[int]]:
    """What is believed of jobs where all start at once."""
    simulator = HPC(processors, run_times=model).simulator()
    simulator.load([jobset], get_objective("slowdown"))
    simulator.play(Rule())
    assert simulator.starts.tolist() == jobset.arrival.tolist()
    known = simulator.believed(0).attributes
    return {name: known[name].tolist() for name in ("order_estimate", "reserve_estimate")}


def test_the_mean_of_a_group_is_drawn_to_the_wider_one() -> None:
    """Only the first job has ended when others come; it took a quarter of what was asked for.

    The mean over all jobs is then a third of ln(1 / 4), over those of its user 5 ninths, and over
    those that are like it 19 of 27 parts. A user of whom nothing is known is like all.
    """
    jobs = ([0, 0, 30, 30], [25, 90, 40, 40], [100] * 4, [1, 2, 1, 1])
    seen = believed("mixed", jobset_of(*jobs, user=np.array([0, 0, 0, 1])))
    alike, other = 100 * 0.25 ** (19 / 54), 100 * 0.25 ** (1 / 6)
    assert seen["order_estimate"] == [100, 100, np.ceil(alike), np.ceil(other)]
    assert seen["reserve_estimate"] == [100] * 4


def test_recent_is_the_mean_of_the_last_two_but_never_above_the_estimate() -> None:
    jobs = ([0, 1, 50, 60, 70], [10, 21, 5, 5, 5], [90, 90, 90, 12, 90], [1] * 5)
    seen = believed("recent", jobset_of(*jobs, user=np.array([0, 0, 0, 0, 1])))
    assert seen["order_estimate"] == seen["reserve_estimate"] == [90, 90, 16, 12, 90]


def test_the_actual_run_times_are_what_they_say() -> None:
    jobset = crowd(0)
    seen = believed("actual", jobset, processors=1000)
    assert seen["order_estimate"] == seen["reserve_estimate"] == jobset.duration.tolist()
    known = dict.fromkeys(("order_estimate", "reserve_estimate"), jobset.duration)
    told = replace(jobset, attributes={**jobset.attributes, **known})
    starts = played(HPC(PROCESSORS, run_times="actual"), [jobset], Rule("sjf")).start
    assert starts.tolist() == played(HPC(PROCESSORS), [told], Rule("sjf")).start.tolist()


@pytest.mark.parametrize("order", FIXED)
@given(
    seed=st.integers(0, 10**6),
    backfilling=st.sampled_from(BACKFILLING),
    model=st.sampled_from(MODELS),
    max_wait=st.sampled_from([0, 0, 60]),
)
@settings(max_examples=10)
def test_rules_start_jobs_as_plain_loops_do(
    order: str, backfilling: str, model: str, seed: int, max_wait: int
) -> None:
    jobset, rule, world = crowd(seed, 20), Rule(order, backfilling), WORLDS[model]
    plain = plain_starts(jobset, rule, PROCESSORS, max_wait, learned=PlainRunTimes(jobset, model))
    assert played(replace(world, max_wait=max_wait), [jobset], rule).start.tolist() == plain


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("model", MODELS)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=8)
def test_scorers_start_jobs_as_plain_loops_do(mode: str, model: str, seed: int) -> None:
    jobset, scorer = crowd(seed, 20), any_scorer(seed, mode)
    plain = plain_scored_starts(jobset, scorer, PROCESSORS, PlainRunTimes(jobset, model))
    simulator = WORLDS[model].simulator()
    simulator.load([jobset], get_objective("slowdown"))
    simulator.play(scorer)
    assert simulator.schedule().start.tolist() == plain


@pytest.mark.parametrize("model", MODELS)
@given(
    seed=st.integers(0, 10**6),
    order=st.sampled_from([*FIXED, "priority", "scorer"]),
    backfilling=st.sampled_from(BACKFILLING),
    job=st.integers(0, 39),
)
@settings(max_examples=40)
def test_what_has_not_ended_changes_no_start(
    model: str, seed: int, order: str, backfilling: str, job: int
) -> None:
    """Other run times of the jobs that run, wait or arrive later, however long."""
    jobset = crowd(seed)
    rule = any_scorer(seed) if order == "scorer" else Rule(order, backfilling)
    simulator = WORLDS[model].simulator()

    def starts(run: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        simulator.load([replace(jobset, duration=run)], get_objective("slowdown"))
        simulator.play(rule)
        return simulator.starts.copy(), simulator.believed(0).attributes["order_estimate"]

    before, known = starts(jobset.duration)
    now, end = before[job], before + jobset.duration
    other = np.random.default_rng(seed).integers(1, 2000, jobset.num_jobs)
    # Those that run may end at any later time, those that start now or later take any time.
    run = np.where(before < now, np.maximum(other, now - before + 1), other)
    after, believed = starts(np.where(end <= now, jobset.duration, run).astype(np.int32))
    come = jobset.arrival <= now
    assert np.array_equal(believed[come], known[come])
    assert np.array_equal(after[before <= now], before[before <= now])
    assert (after[before > now] > now).all()


@pytest.mark.parametrize("order", [*FIXED, "priority"])
@given(seed=st.integers(0, 10**6), backfilling=st.sampled_from(BACKFILLING))
@settings(max_examples=4)
def test_decisions_one_by_one_give_the_schedule_that_is_played(
    order: str, seed: int, backfilling: str
) -> None:
    rule, jobset, world = Rule(order, backfilling), crowd(seed), WORLDS[MODELS[seed % 2]]
    assert stepped(world, [jobset], rule) == played(world, [jobset], rule).start.tolist()


@pytest.mark.parametrize("model", MODELS)
def test_episodes_of_one_jobset_learn_apart(model: str) -> None:
    jobsets, world = [crowd(1), crowd(2, 30)], WORLDS[model]
    simulator = world.simulator()
    simulator.load(jobsets, get_objective("slowdown"), 2)
    rows, scorers = simulator.episode, [any_scorer(seed) for seed in (3, 4)]
    assert simulator.schedule().jobset.tolist() == [0, 0, 1, 1]
    while (left := rows[simulator.active]).size:
        for number, scorer in enumerate(scorers):
            mine = left[left % 2 == number]
            simulator.step(mine, simulator.choose(scorer, mine), np.empty(mine.size))
    schedule = simulator.schedule()
    for row in rows:
        alone = stepped(world, [jobsets[row // 2]], scorers[row % 2])
        assert schedule.start[schedule.episode == row].tolist() == alone


@pytest.mark.parametrize("model", MODELS)
def test_rows_that_are_taken_over_know_what_has_ended(model: str) -> None:
    jobset, world, rule = crowd(5), WORLDS[model], Rule("sjf", "easy")
    first, second = world.simulator(), world.simulator()
    first.load([jobset], get_objective("slowdown"))
    second.load([crowd(6, 3), jobset.select(slice(35)), jobset], get_objective("slowdown"))
    row, there = np.zeros(1, np.int32), np.full(1, 2, np.int32)
    for _ in range(15):
        first.step(row, first.choose(rule, row), np.empty(1))
    second.take_over(first, row, there)
    second.take_over(first, row, there - 1)  # of which the last jobs have not arrived
    while (left := np.flatnonzero(second.active)[1:].astype(np.int32)).size:
        second.step(left, second.choose(rule, left), np.empty(left.size))
    schedule = second.schedule()
    for number, jobs in ((1, jobset.select(slice(35))), (2, jobset)):
        starts = schedule.start[schedule.episode == number]
        assert starts.tolist() == played(world, [jobs], rule).start.tolist()


@pytest.mark.parametrize("order", [*ORDERS])
def test_users_who_are_right_are_believed(order: str) -> None:
    """The score of a job that enters is that of the table for all jobs, to the last bit."""
    jobset = crowd(7)
    exact = replace(jobset, attributes={**jobset.attributes, "estimate": jobset.duration})
    starts = [
        played(replace(WORLDS["mixed"], run_times=name), [exact], Rule(order)).start.tolist()
        for name in ("mixed", "user")
    ]
    assert starts[0] == starts[1]


def test_what_is_believed_already_stays() -> None:
    known = {**crowd(8).attributes, "order_estimate": np.full(40, 7)}
    jobset = replace(crowd(8), attributes=known)
    starts = [played(HPC(PROCESSORS, run_times=name), [jobset], Rule("sjf")) for name in MODELS]
    plain = plain_starts(jobset, Rule("sjf"), PROCESSORS)
    assert [one.start.tolist() for one in starts] == [plain, plain]


def test_orders_that_others_enter_cannot_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rules.FIXED_ORDERS, "mine", lambda estimate, size, submit: -estimate)
    assert played(HPC(PROCESSORS), [crowd(9)], Rule("mine")).start.size
    with pytest.raises(InputError, match="'mine' scores all jobs before any has ended"):
        played(WORLDS["mixed"], [crowd(9)], Rule("mine"))


def test_unknown_models_are_refused() -> None:
    with pytest.raises(InputError, match=r"'learned' was removed: take mixed"):
        HPC(run_times="learned")
    with pytest.raises(InputError, match="did you mean 'mixed'"):
        HPC(run_times="mixd")


def scorer(run_times: str) -> LearnedPolicy:
    """Small areas first, with EASY backfilling."""
    config = load_config("hpc-order", [f"training.run_times={run_times}"])
    return policy_of(config, start_weights(config), run_times, "argmax", HPC(PROCESSORS))


@pytest.mark.parametrize("run_times", ["user", "mixed"])
def test_a_policy_is_evaluated_in_the_world_as_it_sees_it(run_times: str) -> None:
    """By estimates it is the smallest area first."""
    jobset, rule = crowd(3), Rule("saf", "easy")
    seen = HPC(PROCESSORS, run_times=run_times)
    starts = evaluate(scorer(run_times), [jobset], HPC(PROCESSORS)).start.tolist()
    assert starts == played(seen, [jobset], rule).start.tolist()


def test_a_policy_without_a_wish_believes_what_the_world_does() -> None:
    jobset, world = crowd(3), WORLDS["recent"]
    starts = evaluate(scorer("user"), [jobset], world).start.tolist()
    assert starts == played(world, [jobset], Rule("saf", "easy")).start.tolist()
