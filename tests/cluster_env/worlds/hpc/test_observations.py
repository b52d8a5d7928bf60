"""The thesis's observations (Cunha, tables 4.1 and 4.2): its own examples, bounds, and names."""

import gymnasium
import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.envs import ClusterEnv, ClusterVectorEnv, check_cluster_env
from cluster_env.objectives import get_objective
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.views import CompactView, ImageView
from cluster_env.worlds.hpc.workloads import LublinWorkload
from tests.cluster_env.worlds.hpc.hpc_jobs import jobset_of
from tests.cluster_env.worlds.hpc.step_rule import check_step
from tests.cluster_env.worlds.stepping import step_one

FIGURE_4_3 = HPC(3, queue=2, time_step=1, horizon=5, horizon_step=1)
FIGURE_4_5 = HPC(3, queue=2, time_step=1, every_step=True, horizon=4)


def states_of(world: HPC, jobset: JobSet, actions: list[int]) -> np.ndarray:
    """The state after some actions; -1 waits."""
    simulator = world.simulator()
    simulator.load([jobset], get_objective("slowdown"))
    for action in actions:
        step_one(simulator, action)
    assert simulator.active[0]
    return simulator.states


def figure_4_3() -> np.ndarray:
    """One job runs for two steps more; two are seen, and one waits behind them."""
    run = [4, 5, 4, 1]
    return states_of(FIGURE_4_3, jobset_of([0, 1, 2, 2], run, run, [2, 1, 3, 1]), [0, -1])


def view_of(world: HPC, by_events: bool) -> CompactView:
    return CompactView(world.capacity, world.resources, world.layout, by_events)


def test_the_compact_example_of_section_4_6_1() -> None:
    cluster = [2, 1, 2, 1, 0, 3, 0, 3, 0, 3]
    jobs = [1, 5, 1, 0, 0, 1, 6, 0, 1, 2, 4, 3, 1, 5, 1, 4, 0, 0]
    found = view_of(FIGURE_4_3, by_events=False).numbers(figure_4_3())
    assert found.tolist() == [[*cluster, *jobs, 1]]


def test_the_event_example_of_figure_4_5() -> None:
    """Two jobs run for two and three steps more, and four wait, all submitted at 3."""
    run = [5, 6, 4, 2, 9, 9]
    jobset = jobset_of([0, 0, 3, 3, 3, 3], run, run, [1, 2, 1, 2, 1, 1])
    states = states_of(FIGURE_4_5, jobset, [0, 0, -1, -1, -1])
    summary, events = [8, 2, 1, 2, 2, 4], [0, 0, 3, 2, 1, 2, 3, 3, 0, 4, 3, 0]
    jobs = [3, 4, 1, 0, 0, 0, 0, 3, 2, 2, 1, 4, 0, 0]
    found = view_of(FIGURE_4_5, by_events=True).numbers(states)
    assert found.tolist() == [[*summary, *events, *jobs]]


def test_the_image_of_figure_4_3() -> None:
    view = ImageView(FIGURE_4_3.capacity, FIGURE_4_3.layout, 1)
    out = np.ones((1, *view.shape), np.uint8)
    view.draw(figure_4_3(), out)
    machine, first, second = ["110", "110", "000", "000", "000"], ["100"] * 5, ["111"] * 4 + ["000"]
    backlog = ["100000000000", *["0" * 12] * 4]
    expected = ["".join(row) for row in zip(machine, first, second, backlog, strict=True)]
    assert ["".join(map(str, row)) for row in out[0]] == expected


def test_numbers_are_scaled_by_what_they_can_be() -> None:
    """Shares of the machine, and logarithms of times, work and numbers of jobs."""
    view = view_of(FIGURE_4_3, by_events=False)
    found = dict(zip(view.columns.names, view.scaled(figure_4_3())[0], strict=True))
    assert found["row0.used_processors"] == pytest.approx(2 / 3)
    assert found["job0.requested_time"] == pytest.approx(np.log(6) / np.log(2**31 + 1))
    assert found["job1.queued_work"] == pytest.approx(np.log(6) / np.log1p(3 * 2.0**31))
    assert (found["job0.fits"], found["job1.fits"]) == (1, 0)
    assert found["backlog"] == pytest.approx(np.log(2) / np.log1p(1e6))


def test_expected_ends_at_one_time_are_one_event_and_outlived_ones_come_next() -> None:
    """Jobs 0 and 1 are to end at 5; job 2 is still there at 4, after its estimate of 3."""
    world = HPC(8, queue=4, time_step=1, every_step=True, horizon=4)
    jobset = jobset_of([0, 0, 0], [5, 6, 9], [5, 5, 3], [1, 2, 3])
    states = states_of(world, jobset, [0, 0, 0, -1, -1, -1, -1])
    layout = world.layout
    rows = states[0, layout.rows_at : layout.arrivals_at].reshape(4, 2)
    assert states[0, layout.clock_at] == 4
    assert rows.tolist() == [[0, 2], [1, 8], [2, 8], [3, 8]]
    assert HPC(8, queue=4).layout.size == layout.clock_at  # nothing of this without a horizon


@pytest.mark.parametrize("observation", ["image", "compact", "events"])
@pytest.mark.parametrize("memory", [0, 12])
def test_environments_with_these_observations_keep_their_promises(
    observation: str, memory: int
) -> None:
    rng, count = np.random.default_rng(0), 20
    demand = np.column_stack([rng.integers(1, 9, count), rng.integers(0, 13, count)])
    run = rng.integers(1, 900, count)
    jobset = jobset_of(
        np.cumsum(rng.integers(0, 300, count)), run, run * 2, demand[:, : 1 + (memory > 0)]
    )
    world = HPC(8, memory=memory, queue=4, horizon=6)
    options = {"world": world, "observation": observation}
    if memory:  # nobody generates jobs that ask for it
        options["workload"] = Always(jobset)
    check_cluster_env(ClusterEnv(**options), num_episodes=2, step_rule=check_step)
    alone, several = ClusterEnv(**options), ClusterVectorEnv(2, **options)
    one, _ = alone.reset(seed=3)
    both, _ = several.reset(seed=[3, 3])
    for action in (0, 4, 4, 0, 1):
        assert (both == one).all()
        one = alone.step(action)[0]
        both = several.step(np.array([action] * 2))[0]
    assert one.shape == several.single_observation_space.shape


class Always:
    """The same jobs each time."""

    def __init__(self, jobset: JobSet) -> None:
        self._jobset = jobset

    def sample(self, rng: np.random.Generator) -> JobSet:
        return self._jobset


def test_observations_bring_a_horizon_of_their_own() -> None:
    """Of figure 5.2's 20 rows, a minute each, or table 5.5's 60 events."""
    options = {"workload": LublinWorkload(64, jobs=4), "world": HPC(64, queue=10)}
    worlds = {
        name: ClusterEnv(**options, observation=name).world
        for name in ("jobs", "image", "compact", "events")
    }
    assert worlds["jobs"] == HPC(64, queue=10)
    assert worlds["image"] == worlds["compact"] == HPC(64, queue=10, horizon=20, horizon_step=60)
    assert worlds["events"] == HPC(64, queue=10, horizon=60)
    env = gymnasium.make("HPCOptions-v0", observation="events", world=HPC(64, queue=128))
    assert env.observation_space.shape == (6 + 3 * 60 + 7 * 128,)


@pytest.mark.parametrize(
    ("options", "observation", "words"),
    [
        ({"horizon": 1}, "jobs", "a horizon has 2 to 4096 rows"),
        ({"horizon_step": 5}, "jobs", "goes with a horizon"),
        ({"horizon": 5, "horizon_step": 5}, "events", "leave out horizon_step"),
        ({"processors": 163_840}, "image", "more than 16,777,216"),
    ],
)
def test_impossible_views_are_refused(options: dict, observation: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        ClusterEnv(world={"kind": "hpc", **options}, observation=observation)
