"""The stored episodes of DeepRM's released environment, and simulators that should repeat them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.objectives import get_objective
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.rules import RELEASED_RULES
from tests.cluster_env.worlds.stepping import step_all


def cluster_of(file: Any, meta: dict[str, Any]) -> Cluster:
    """The cluster that the episodes of a file were played on.

    Args:
        file: the opened file; its canvas has an axis for resources, horizon and units.
        meta: its configuration; its image has a column for each unit of each resource, in the
            cluster and in each slot, the backlog, and a last column for the time since an arrival.
    """
    _, num_resources, horizon, units = file["ep0_s_canvas_job"].shape
    num_slots = meta["config"]["num_nw"]
    backlog_columns = meta["network_input_width"] - num_resources * units * (1 + num_slots) - 1
    return Cluster(
        capacity=(units,) * num_resources,
        horizon=horizon,
        num_slots=num_slots,
        backlog_view=backlog_columns * horizon,
    )


class Episode:
    """One stored episode, and the simulator that should repeat it."""

    def __init__(self, file: Any, meta: dict[str, Any], index: int) -> None:
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
        self.cluster = cluster_of(file, meta)
        self.simulator = DeepRM(
            self.cluster,
            replace(RELEASED_RULES, stop=meta["config"]["end"]),
            max_time=meta["episode_max_length"],
        ).simulator()
        self.simulator.load([self.jobset], get_objective("slowdown"))

    def states(self) -> Iterator[tuple[int, np.ndarray]]:
        """The simulator's code before each stored decision, and the terminal one."""
        for k in range(self.arrays["actions"].size):
            yield k, self.simulator.states
            action = self.arrays["actions"][k : k + 1].astype(np.int32)
            self.rewards, self.ended = step_all(self.simulator, action)
            self.check_step(k)
        yield self.arrays["actions"].size, self.simulator.states

    def check_step(self, k: int) -> None:
        """Reward and end of the step just taken."""
        assert abs(self.rewards[0] - self.arrays["rewards"][k]) <= 1e-12
        assert bool(self.ended[0]) == bool(self.arrays["dones"][k])


def golden_episodes(files: list[Path]) -> Iterator[tuple[str, Episode]]:
    """Every stored episode with a name for messages."""
    for path in files:
        with np.load(path) as file:
            meta = json.loads(str(file["meta"]))
            for index in range(len(meta["episodes"])):
                yield f"{path.stem}[{index}]", Episode(file, meta, index)
