from pathlib import Path

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from cluster_env.core.jobs import JobSet
from cluster_env.envs import ClusterEnv, ClusterVectorEnv
from cluster_env.objectives import get_objective
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.render import allocation
from tests.cluster_env.worlds.deeprm.golden_episodes import golden_episodes
from tests.cluster_env.worlds.stepping import step_all

SMALL = Cluster(capacity=(3, 2), horizon=4, num_slots=2, backlog_view=4)
SHORT_JOBS = {"small_duration": (1, 2), "large_duration": (2, 3)}
JOBS = JobSet.of([0, 0, 0], [2, 3, 1], [[1, 1], [2, 1], [2, 2]], window=1)


def test_cells_are_given_from_the_left_in_the_order_of_placing() -> None:
    simulator = DeepRM(SMALL).simulator()
    simulator.load([JOBS, JOBS], get_objective("slowdown"))
    for actions in ((2, 1), (2, 0), (2, 1)):  # job 1, then job 0, then job 2 from the backlog
        step_all(simulator, np.asarray(actions, np.int32))
    cells = allocation(simulator, episode=1)
    assert cells[0].tolist() == [[1, 1, 0], [1, 1, 0], [1, 1, -1], [2, 2, -1]]
    assert cells[1, :, :2].tolist() == [[1, 0], [1, 0], [1, -1], [2, 2]]


@pytest.mark.golden
def test_cells_are_those_of_the_released_code(golden_deeprm: list[Path]) -> None:
    seen = set()
    for name, episode in golden_episodes(golden_deeprm[::8]):
        file = name.partition("[")[0]
        if file in seen:  # the first episode of each file will do
            continue
        seen.add(file)
        jobs, canvas = episode.arrays["jobs"], episode.arrays["s_canvas_job"]
        arrival_of = np.full(jobs[:, 0].max() + 2, -1)  # 0 stands for a free cell
        arrival_of[jobs[:, 0] + 1] = jobs[:, 1]
        for k, _ in episode.states():
            if k == episode.arrays["actions"].size:  # the simulator has nothing on it by then
                continue
            cells = allocation(episode.simulator, episode=0)
            held = np.where(cells >= 0, episode.jobset.arrival[np.maximum(cells, 0)], -1)
            assert np.array_equal(held, arrival_of[canvas[k]]), f"{name} {k}"
    assert seen == {path.stem for path in golden_deeprm[::8]}
    assert len(seen) >= 5


def test_picture_has_one_size_and_changes_with_the_state() -> None:
    env = ClusterEnv(world=DeepRM(SMALL), workload=SHORT_JOBS, render_mode="rgb_array")
    env.reset(options={"jobset": JOBS})
    pictures = [env.render()]
    for action in (0, 0, 2):
        env.step(action)
        pictures.append(env.render())
    assert {picture.shape for picture in pictures} == {pictures[0].shape}
    assert all(picture.dtype == np.uint8 and picture.shape[2] == 3 for picture in pictures)
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)


def test_a_job_keeps_its_color_from_the_slot_to_the_cluster() -> None:
    env = ClusterEnv(world=DeepRM(SMALL), workload=SHORT_JOBS, render_mode="rgb_array")

    def colors() -> set[tuple[int, ...]]:
        """Colors that fill at least one cell and are neither gray nor white."""
        found, count = np.unique(env.render().reshape(-1, 3), axis=0, return_counts=True)
        return {
            tuple(color)
            for color, n in zip(found.tolist(), count, strict=True)
            if n >= 64 and np.ptp(color) > 30
        }

    env.reset(options={"jobset": JobSet.of([0], [2], [[2, 1]], window=1)})
    waiting = colors()
    env.step(0)
    assert len(waiting) == 1
    assert colors() == waiting


def test_every_episode_of_a_vector_is_drawn() -> None:
    vector = ClusterVectorEnv(2, world=DeepRM(SMALL), workload=SHORT_JOBS, render_mode="rgb_array")
    vector.reset(seed=0, options={"jobsets": [JOBS, None]})
    single = ClusterEnv(world=DeepRM(SMALL), workload=SHORT_JOBS, render_mode="rgb_array")
    single.reset(options={"jobset": JOBS})
    pictures = vector.render()
    assert len(pictures) == 2
    assert np.array_equal(pictures[0], single.render())


def test_nothing_is_drawn_unless_asked_for() -> None:
    env = ClusterEnv()
    env.reset(seed=0)
    assert env.render() is None
    with pytest.raises(ResetNeeded):
        ClusterEnv(render_mode="rgb_array").render()
