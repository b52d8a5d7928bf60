import json
from dataclasses import replace
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
from cluster_env.worlds.deeprm.rules import RELEASED_RULES
from cluster_env.worlds.deeprm.simulator import DeepRMSimulator

SMALL = Cluster(capacity=(3, 2), horizon=4, num_slots=2, backlog_view=4)
SHORT_JOBS = {"small_duration": (1, 2), "large_duration": (2, 3)}
JOBS = JobSet.of([0, 0, 0], [2, 3, 1], [[1, 1], [2, 1], [2, 2]], window=1)


def test_cells_are_given_from_the_left_in_the_order_of_placing() -> None:
    simulator = DeepRMSimulator(SMALL)
    simulator.load([JOBS, JOBS], get_objective("slowdown"))
    for actions in ((2, 1), (2, 0), (2, 1)):  # job 1, then job 0, then job 2 from the backlog
        simulator.step_all(np.asarray(actions, np.int32))
    cells = allocation(simulator, episode=1)
    assert cells[0].tolist() == [[1, 1, 0], [1, 1, 0], [1, 1, -1], [2, 2, -1]]
    assert cells[1, :, :2].tolist() == [[1, 0], [1, 0], [1, -1], [2, 2]]


@pytest.mark.golden
@pytest.mark.parametrize(
    "name",
    ["three_resources", "nw5_r1_all_done_random_s42", "nw10_r0.7_all_done_greedy_random_s42"],
)
def test_cells_are_those_of_the_released_code(golden: Path, name: str) -> None:
    with np.load(golden / "deeprm" / f"{name}.npz") as file:
        meta = json.loads(str(file["meta"]))
        sequence = meta["episodes"][0]["seq_no"]
        lengths, sizes = file["len_seqs"][sequence], file["size_seqs"][sequence]
        stored = {key: file[f"ep0_{key}"] for key in ("actions", "s_canvas_job", "jobs")}
    config = meta["config"]
    arrival = np.flatnonzero(lengths)
    arrival = arrival[arrival > 0]  # the job of step 0 never arrives there
    jobset = JobSet.of(arrival, lengths[arrival], sizes[arrival], window=lengths.size)
    cluster = Cluster(capacity=(10,) * sizes.shape[1], num_slots=config["num_nw"])
    rules = replace(RELEASED_RULES, stop=config["end"])
    simulator = DeepRMSimulator(cluster, rules, max_time=meta["episode_max_length"])
    simulator.load([jobset], get_objective("slowdown"))
    arrival_of = np.full(stored["jobs"][:, 0].max() + 2, -1)  # 0 stands for a free cell
    arrival_of[stored["jobs"][:, 0] + 1] = stored["jobs"][:, 1]
    for k, action in enumerate(stored["actions"]):
        cells = allocation(simulator, episode=0)
        held = np.where(cells >= 0, arrival[np.maximum(cells, 0)], -1)
        assert np.array_equal(held, arrival_of[stored["s_canvas_job"][k]]), k
        simulator.step_all(np.asarray([action], np.int32))


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
