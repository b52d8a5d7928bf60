"""Codes to look at: from played episodes, and from the golden data."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.state import StateLayout
from tests.cluster_env.worlds.deeprm.golden_episodes import cluster_of
from tests.cluster_env.worlds.deeprm.played_states import CLUSTERS, played_states
from tests.golden import stored


@pytest.fixture(params=CLUSTERS, scope="session")
def cluster(request: pytest.FixtureRequest) -> Cluster:
    return CLUSTERS[request.param]


@pytest.fixture(scope="session")
def layout(cluster: Cluster) -> StateLayout:
    return StateLayout(cluster)


@pytest.fixture(scope="session")
def states(cluster: Cluster) -> NDArray[np.uint8]:
    return played_states(cluster)


@pytest.fixture(scope="session")
def golden_deeprm(golden: Path) -> list[Path]:
    """The stored configurations, one file each; a test is skipped where there are none."""
    return sorted(stored(golden / "deeprm").glob("*.npz"))


@pytest.fixture(scope="session")
def golden_states(
    golden_deeprm: list[Path],
) -> Callable[[], Iterator[tuple[str, StateLayout, Any, Any]]]:
    """Yields for each stored episode its name, layout, states and a function to its arrays."""

    def states() -> Iterator[tuple[str, StateLayout, Any, Any]]:
        for path in golden_deeprm:
            with np.load(path) as file:
                meta = json.loads(str(file["meta"]))
                layout = StateLayout(cluster_of(file, meta))
                for index in range(len(meta["episodes"])):
                    stored = {
                        key: file[f"ep{index}_s_{key}"]
                        for key in ("occ", "slots", "backlog", "since", "img_hash", "compact")
                    }
                    yield f"{path.stem}[{index}]", layout, _codes_of(stored, layout), stored

    return states


def _codes_of(stored: dict[str, Any], layout: StateLayout) -> NDArray[np.uint8]:
    states = np.zeros((stored["occ"].shape[0], layout.size), np.uint8)
    layout.occupied_of(states)[:] = stored["occ"]
    layout.slots_of(states)[:] = np.maximum(stored["slots"][:, :, 2:], 0)
    states[:, layout.backlog] = stored["backlog"]
    states[:, layout.since] = stored["since"]
    return states
