"""What every registered world keeps, over its switches, objectives and rules.

A world is held to all of this by its registration alone; the smallest one that we know, of
`tests.toy_world`, is among them.
"""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, get_type_hints

import numpy as np
import pytest
from gymnasium.vector.utils import create_empty_array

from cluster_env.core.batch import served
from cluster_env.core.errors import InputError
from cluster_env.core.invariants import check_schedule
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import PlayedPolicy
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Purpose, Split, generator
from cluster_env.core.spec import WORLDS, build_world, get_heuristic
from cluster_env.envs import ClusterEnv, ClusterVectorEnv
from cluster_env.evaluation import evaluate
from cluster_env.objectives import OBJECTIVES, get_objective, mixture
from cluster_env.task import build_workload
from cluster_env.workloads import sample_jobsets
from rllib_configs.config.loading import load_config, preset_names
from tests.cluster_env.schedules import assert_same_schedule
from tests.cluster_env.worlds.stepping import choosing, play_to_the_end
from tests.registries import own_registrations

MOST_JOBS = 16

NEEDED = {("hpc", "every_step"): {"time_step": 60}}
"""Options that a switch has to have beside it."""


@contextmanager
def toy_registered() -> Iterator[None]:
    with own_registrations((WORLDS, OBJECTIVES), ["tests.toy_world"]):
        importlib.import_module("tests.toy_world")
        yield


@pytest.fixture(scope="module", autouse=True)
def with_the_toy_world() -> Iterator[None]:
    with toy_registered():
        yield


CHOOSES_OTHERWISE = ("hpc-few seen", "hpc-every_step=True", "HPCBase-v0")
"""Worlds in which a choice sees fewer jobs than wait, or comes at other times than events."""


def switches(kind: str) -> list[str]:
    hints = get_type_hints(WORLDS.get(kind).world)
    return [entry.name for entry in fields(WORLDS.get(kind).world) if hints[entry.name] is bool]


WHOLE = ("makespan", "utilization", "utility")
WHOLE_PARTS = (
    mixture({"slowdown": 1 / 3, "makespan": 2 / 3}).name,
    mixture({"bounded_slowdown": 0.1, "utilization": 7}).name,
    "0.5 class_slowdown(4, 0, 1) + 0.25 makespan",
)
REFUSED = {
    "deeprm": ("utility", "weighted_flow"),
    "hpc": ("utility", "weighted_flow"),
    "accrual": ("weighted_flow",),
    "graphs": ("utility", "weighted_flow"),
    "panda": ("weighted_flow", "class_slowdown(0.1, 1, 10)", *WHOLE, *WHOLE_PARTS),
    "single_machine": ("utility",),
}
"""Objectives that worlds of a kind cannot reward: jobs lack an attribute or are of more classes, or
agents are rewarded for their own jobs alone. What a world refuses beside these is a fault."""


def worlds_of(kind: str) -> dict[str, Any]:
    """Different worlds: the default, each switch turned, variants, and those of ids."""
    spec, default = WORLDS.get(kind), build_world(kind)
    options: dict[str, Mapping[str, Any]] = {kind: {}}
    for name in switches(kind):
        turned = {name: not getattr(default, name), **NEEDED.get((kind, name), {})}
        options[f"{kind}-{name}={turned[name]}"] = turned
    options |= {f"{kind}-{name}": one for name, one in spec.variants.items()}
    options |= {name: one.get("world", {}) for name, one in spec.environments.ids.items()}
    named = {name: build_world({"kind": kind, **one}) for name, one in options.items()}
    different: dict[str, Any] = {}
    for name, world in named.items():
        if world not in different.values():
            different[name] = world
    return different


with toy_registered():
    KINDS = WORLDS.names()
    MADE = {name: world for kind in KINDS for name, world in worlds_of(kind).items()}
    RULES = [(kind, rule) for kind in KINDS for rule in WORLDS.get(kind).heuristics.names()]
    RULES_OF = {
        kind: [rule for of, rule in RULES if of == kind and rule != "random"] for kind in KINDS
    }
    SINGLE = [kind for kind in KINDS if not WORLDS.get(kind).environments.agents]
    OBJECTIVE_NAMES = (
        *OBJECTIVES.names(),
        *("utility", "class_slowdown(0.1, 1, 10)", "normalized_time(4)", "class_spread(4)"),
        *WHOLE_PARTS,
    )

every_kind = pytest.mark.parametrize("kind", KINDS)
every_single = pytest.mark.parametrize("kind", SINGLE)
every_rule = pytest.mark.parametrize(("kind", "rule"), RULES)


@pytest.fixture(params=MADE)
def world(request: pytest.FixtureRequest) -> Any:
    return MADE[request.param]


_DRAWN: dict[tuple[str, int, int], list[JobSet]] = {}


def jobsets_of(world: Any, seed: int = 0, num: int = 3) -> list[JobSet]:
    """Jobsets of the world's first workload, cut short; every other job asks for half its time."""
    key = (repr(world), seed, num)
    if key not in _DRAWN:  # most tests want the same, which take longer to draw than to play
        name = WORLDS.get(world.kind).workloads.names()[0]
        drawn = sample_jobsets(build_workload(world, name, {}), seed, Split.TRAIN, range(20 * num))
        short = [jobset.select(slice(0, MOST_JOBS)) for jobset in drawn if jobset.num_jobs][:num]
        assert len(short) == num
        _DRAWN[key] = [with_column(jobset, "estimate", asked(jobset)) for jobset in short]
    return list(_DRAWN[key])


def asked(jobset: JobSet) -> Any:
    halves = np.maximum(jobset.duration // 2, 1)
    return np.where(np.arange(jobset.num_jobs) % 2 == 1, halves, jobset.duration)


def with_column(jobset: JobSet, name: str, column: Any) -> JobSet:
    return replace(jobset, attributes={**jobset.attributes, name: column})


@dataclass
class Played:
    """Episodes that were played to their ends, and what they returned."""

    schedule: Schedule
    returns: Any  # (num_episodes,)
    ended: Any  # (num_episodes,), by themselves and not by the world's end of time


def play_at_random(world: Any, jobsets: Sequence[JobSet], objective: Any) -> Played:
    simulator = world.simulator()
    simulator.load(jobsets, objective)
    rng = generator(3, Purpose.POLICY)
    returns = play_to_the_end(
        simulator, lambda rows: rng.integers(world.num_actions, size=rows.size).astype(np.int32)
    )
    cut = np.bincount(simulator.episode, simulator.truncated, len(jobsets)) > 0
    return Played(simulator.schedule(), returns, ~cut)


def is_refused(world: Any, jobsets: Sequence[JobSet], objective: str) -> bool:
    """Whether it is known that the world cannot reward these jobs so; then it has to say it."""
    refused = objective in REFUSED.get(world.kind, ())
    if refused:
        with pytest.raises(InputError):
            world.simulator().load(jobsets, get_objective(objective))
    return refused


def rewarded(world: Any, jobsets: Sequence[JobSet]) -> Iterator[Any]:
    """All objectives but those that the world is known to refuse, and does."""
    for name in OBJECTIVE_NAMES:
        if not is_refused(world, jobsets, name):
            yield get_objective(name)


def assert_returns_are_costs(world: Any, played: Played, objective: Any) -> None:
    """Of the episodes that ended by themselves, in worlds that promise it."""
    if WORLDS.get(world.kind).environments.returns_cost(world):
        costs = objective.cost_of_episodes(played.schedule)[played.ended]
        returns = played.returns[played.ended]
        np.testing.assert_allclose(-returns, costs, 1e-9, 1e-9, err_msg=objective.name)


def test_each_world_takes_its_own_objective(world):
    objective = WORLDS.get(world.kind).training.objective
    assert not is_refused(world, jobsets_of(world), objective)


def test_the_return_is_minus_what_the_schedule_costs(world):
    jobsets = jobsets_of(world)
    for objective in rewarded(world, jobsets):
        played = play_at_random(world, jobsets, objective)
        assert played.ended.any() or world.max_time < build_world(world.kind).max_time
        assert_returns_are_costs(world, played, objective)


def test_jobs_of_a_warm_up_cost_nothing(world):
    marked = [
        with_column(one, "counted", (np.arange(one.num_jobs) % 3 > 0).astype(np.int8))
        for one in jobsets_of(world)
    ]
    none = [with_column(one, "counted", np.zeros(one.num_jobs, np.int8)) for one in marked]
    for objective in rewarded(world, marked):
        assert_returns_are_costs(world, play_at_random(world, marked, objective), objective)
        if objective.busy_cost or objective.utilization_gain:
            continue  # of the machine, on which all jobs run
        assert (play_at_random(world, none, objective).returns == 0).all(), objective.name


def test_schedules_could_have_happened(world):
    jobsets = jobsets_of(world)
    objective = get_objective(WORLDS.get(world.kind).training.objective)
    played = play_at_random(world, jobsets, objective)
    check_schedule(played.schedule, [served(world, jobset) for jobset in jobsets])


def step_by_choice(world: Any, jobsets: Sequence[JobSet], policy: Any) -> Schedule:
    simulator = world.simulator()
    simulator.load(jobsets, get_objective(WORLDS.get(world.kind).training.objective))
    play_to_the_end(simulator, choosing(policy, simulator))
    return simulator.schedule()


@pytest.mark.parametrize(
    ("made", "rule"),
    [
        (name, rule)
        for name in MADE
        for rule in RULES_OF[MADE[name].kind]
        if name not in CHOOSES_OTHERWISE
    ],
)
def test_a_rule_chooses_what_it_plays(made, rule):
    world = MADE[made]
    policy = get_heuristic(rule, world)
    jobsets = jobsets_of(world)
    played = evaluate(policy, jobsets, world)
    chosen = step_by_choice(world, jobsets, policy)
    check_schedule(played, [served(world, jobset) for jobset in jobsets])
    assert_same_schedule(chosen, played)


def different_tasks() -> Iterator[str]:
    """Presets, one for each world and workload."""
    seen: list[Any] = []
    for name in preset_names():
        task = load_config(name).task.build()
        if (task.world, task.workload) not in seen:
            seen.append((task.world, task.workload))
            yield name


@pytest.mark.parametrize("preset", list(different_tasks()))
def test_tasks_of_presets_keep_what_worlds_promise(preset):
    """Their own jobs, cut short, in their own world, for their own objective."""
    task = load_config(preset).task.build()
    drawn = sample_jobsets(task.workload, 0, Split.TRAIN, range(2))
    jobsets = [jobset.select(slice(0, MOST_JOBS)) for jobset in drawn]
    played = play_at_random(task.world, jobsets, task.objective)
    check_schedule(played.schedule, [served(task.world, jobset) for jobset in jobsets])
    assert_returns_are_costs(task.world, played, task.objective)
    policy = get_heuristic(WORLDS.get(task.world.kind).baselines[0], task.world)
    chosen = step_by_choice(task.world, jobsets, policy)
    assert_same_schedule(chosen, evaluate(policy, jobsets, task.world))


@pytest.mark.parametrize("kind", [kind for kind, rule in RULES if rule == "random"])
def test_a_random_rule_draws_by_seed_and_episode_alone(kind):
    """Not by what is played beside. Many jobs come at once, so that an order makes a difference."""
    world = build_world(kind)
    jobset, other = (
        replace(many, arrival=np.zeros_like(many.arrival))
        for one in jobsets_of(world, num=2)
        for many in [one.select(np.repeat(np.arange(one.num_jobs), 8))]
    )

    def starts(jobsets: Sequence[JobSet], seed: int, episode: int = 0) -> list[int]:
        played = evaluate(get_heuristic("random", world), jobsets, world, run_seed=seed)
        return played.start[played.episode == episode].tolist()

    twice = [jobset, jobset, other]
    assert starts([jobset], 0) == starts(twice, 0)
    assert starts(twice, 0) != starts(twice, 0, episode=1)
    assert starts(twice, 0) != starts(twice, 1)


@every_rule
def test_names_of_rules_read_back(kind, rule):
    world = build_world(kind)
    policy = get_heuristic(rule, world)
    again = get_heuristic(policy.name, world)
    assert again.name == policy.name
    if isinstance(policy, PlayedPolicy):
        jobsets = jobsets_of(world, num=1)
        schedules = [evaluate(one, jobsets, world) for one in (policy, again)]
        np.testing.assert_array_equal(schedules[0].start, schedules[1].start)


def test_names_of_objectives_read_back():
    for first in map(get_objective, OBJECTIVE_NAMES):
        again = get_objective(first.name)
        assert again.name == first.name
        assert again.busy_cost == first.busy_cost
        assert again.utilization_gain == first.utilization_gain


def wrong_states(world: Any) -> Iterator[Any]:
    (size,), dtype = world.state_space.shape, world.state_space.dtype
    yield np.zeros((2, size + 3), dtype)
    yield np.zeros((2, max(size - 1, 0)), dtype)
    yield np.zeros((2, size), np.float64)
    yield np.zeros(size, dtype)


@every_kind
def test_wrong_states_are_refused(kind):
    world = build_world(kind)
    looks = [world.features]
    for name in WORLDS.get(kind).environments.observations.names():
        observation = WORLDS.get(kind).environments.observations.get(name)(world)
        buffer = create_empty_array(observation.space, 2)
        looks.append(lambda states, one=observation, into=buffer: one.write(states, into))
    for states in wrong_states(world):
        for look in looks:
            with pytest.raises(InputError, match="states"):
                look(states)


@every_kind
def test_features_are_written_into_what_is_given_if_it_fits(kind):
    """Compiled code would write past the ends of other arrays."""
    world = build_world(kind)
    simulator = world.simulator()
    simulator.load(jobsets_of(world), get_objective(WORLDS.get(kind).training.objective))
    fresh = world.features(simulator.states)
    out = type(fresh)(*(np.zeros_like(part) for part in fresh))
    written = world.features(simulator.states, out)
    for part, given, expected in zip(written, out, fresh, strict=True):
        assert part is given
        np.testing.assert_array_equal(given, expected)
    with pytest.raises(ValueError, match="shape"):  # an InputError, or numpy's own
        world.features(simulator.states[1:], out)


@every_rule
def test_wrong_states_are_refused_by_rules(kind, rule):
    world = build_world(kind)
    policy = get_heuristic(rule, world)
    for states in wrong_states(world):
        with pytest.raises(InputError):
            policy.act(states, np.zeros(2))


def wrong_options(kind: str) -> Iterator[tuple[str, Any]]:
    wrong: dict[Any, tuple[Any, ...]] = {
        int: ("64", 64.5, None, True),
        float: ("0.5", None),
        bool: ("yes", 1, None),
        str: (3, None),
    }
    hints = get_type_hints(WORLDS.get(kind).world)
    for entry in fields(WORLDS.get(kind).world):
        for value in wrong.get(hints[entry.name], ()):
            yield entry.name, value
    yield "no_such_option", 1


@every_kind
def test_wrong_options_are_refused(kind):
    made = WORLDS.get(kind).world
    for name, value in wrong_options(kind):
        with pytest.raises(InputError, match=name):
            build_world({"kind": kind, name: value})
        if name != "no_such_option":
            with pytest.raises(InputError, match=name):
                made(**{name: value})


@dataclass(frozen=True)
class MostlyEmpty:
    """A workload at a light load: most of its jobsets have no job."""

    jobset: JobSet

    def sample(self, rng: np.random.Generator) -> JobSet:
        return self.jobset if rng.random() < 0.2 else self.jobset.select(slice(0, 0))


@every_single
def test_empty_jobsets_never_reach_a_user(kind):
    world = build_world(kind)
    workload = MostlyEmpty(jobsets_of(world, num=1)[0])
    objective = WORLDS.get(kind).training.objective
    env = ClusterEnv(world=world, workload=workload, objective=objective)
    for seed in range(20):
        env.reset(seed=seed)
        assert env.jobset.num_jobs
        env.step(0)  # which an episode that has ended would refuse
    many = ClusterVectorEnv(4, world=world, workload=workload, objective=objective)
    many.reset(seed=0)
    decisions, ended = np.zeros(4, np.int64), np.zeros(4, np.bool_)
    for _ in range(4 * MOST_JOBS):
        decisions = np.where(ended, 0, decisions + 1)
        _, _, terminated, truncated, infos = many.step(np.zeros(4, np.int64))
        ended = terminated | truncated
        assert (decisions[ended] > 0).all()
        assert infos["action_mask"].shape[0] == 4


@every_single
def test_a_jobset_without_a_job_is_refused(kind):
    world = build_world(kind)
    [jobset] = jobsets_of(world, num=1)
    empty = jobset.select(slice(0, 0))
    env = ClusterEnv(world=world, objective=WORLDS.get(kind).training.objective)
    with pytest.raises(InputError, match="needs a job"):
        env.reset(seed=0, options={"jobset": empty})
    many = ClusterVectorEnv(2, world=world, objective=WORLDS.get(kind).training.objective)
    with pytest.raises(InputError, match="needs a job"):
        many.reset(seed=0, options={"jobsets": [jobset, empty]})


@every_kind
def test_arrays_of_jobsets_cannot_be_written(kind):
    for jobset in jobsets_of(build_world(kind)):
        arrays = {entry.name: getattr(jobset, entry.name) for entry in fields(jobset)}
        for name in ("arrival", "duration", "demand", "job_class"):
            with pytest.raises(ValueError, match="read-only"):
                arrays[name][0] = 1
        for column in jobset.attributes.values():
            with pytest.raises(ValueError, match="read-only"):
                column[0] = 1
