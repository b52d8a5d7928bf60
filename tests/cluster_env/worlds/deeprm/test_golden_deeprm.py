"""Every stored episode of DeepRM's released environment, step by step."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster_env.core.jobs import JobSet
from cluster_env.objectives import get_objective
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.rules import RELEASED_RULES
from cluster_env.worlds.deeprm.simulator import DeepRMSimulator

pytestmark = pytest.mark.golden


class Episode:
    """One stored episode, and the simulator that should repeat it."""

    def __init__(self, file: Any, meta: dict[str, Any], index: int) -> None:
        config = meta["config"]
        self.index = index
        self.arrays = {
            key.removeprefix(f"ep{index}_"): file[key]
            for key in file.files
            if key.startswith(f"ep{index}_")
        }
        sequence = meta["episodes"][index]["seq_no"]
        lengths = file["len_seqs"][sequence]
        arrival = np.flatnonzero(lengths)
        arrival = arrival[arrival > 0]  # the job of step 0 never arrives there
        self.jobset = JobSet.of(
            arrival, lengths[arrival], file["size_seqs"][sequence][arrival], window=lengths.size
        )
        self.cluster = Cluster(
            capacity=(10,) * config.get("num_res", 2), num_slots=config["num_nw"]
        )
        self.simulator = DeepRMSimulator(
            self.cluster,
            replace(RELEASED_RULES, stop=config["end"]),
            max_time=meta["episode_max_length"],
        )
        self.simulator.load([self.jobset], get_objective("slowdown"))

    def states(self) -> Iterator[tuple[int, np.ndarray]]:
        """The simulator's code before each stored decision, and the terminal one."""
        for k in range(self.arrays["actions"].size):
            yield k, self.simulator.states
            action = self.arrays["actions"][k : k + 1].astype(np.int32)
            self.rewards, self.ended = self.simulator.step_all(action)
            self.check_step(k)
        yield self.arrays["actions"].size, self.simulator.states

    def check_step(self, k: int) -> None:
        """Reward and end of the step just taken."""
        assert abs(self.rewards[0] - self.arrays["rewards"][k]) <= 1e-12
        assert bool(self.ended[0]) == bool(self.arrays["dones"][k])


def golden_episodes(folder: Path) -> Iterator[tuple[str, Episode]]:
    """Every stored episode with a name for messages."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            meta = json.loads(str(file["meta"]))
            for index in range(len(meta["episodes"])):
                yield f"{path.stem}[{index}]", Episode(file, meta, index)


@pytest.fixture(scope="module")
def folder(golden: Path) -> Path:
    return golden / "deeprm"


def test_states_rewards_and_ends_are_those_of_the_released_environment(folder: Path) -> None:
    seen = 0
    for name, episode in golden_episodes(folder):
        stored, layout = episode.arrays, episode.simulator.layout
        for k, states in episode.states():
            where = f"{name} state {k}"
            assert episode.simulator.time[0] == stored["s_time"][k], where
            assert np.array_equal(layout.occupied_of(states)[0], stored["s_occ"][k]), where
            expected = np.maximum(stored["s_slots"][k][:, 2:], 0)
            assert np.array_equal(layout.slots_of(states)[0], expected), where
            assert states[0, layout.backlog] == stored["s_backlog"][k], where
            assert min(states[0, layout.since], 10) == stored["s_since"][k], where
            assert episode.simulator.state.num_running[0] == stored["s_n_running"][k], where
        seen += 1
    assert seen >= 100


def test_jobs_start_and_finish_when_they_did_in_the_released_environment(folder: Path) -> None:
    for name, episode in golden_episodes(folder):
        for _ in episode.states():
            pass
        schedule = episode.simulator.schedule()
        stored = episode.arrays["jobs"]
        kept = {int(row[1]): row for row in stored}
        for arrival, start, duration, demand in zip(
            schedule.arrival, schedule.start, schedule.duration, schedule.demand, strict=True
        ):
            row = kept.get(int(arrival))
            if row is None:  # dropped there, and so lost here
                assert start == -1, name
                continue
            assert (row[2], row[4], *row[5:]) == (start, duration, *demand), name
            assert row[3] in (start + duration, -1), name
