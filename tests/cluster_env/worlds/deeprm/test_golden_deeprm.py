"""Every stored episode of DeepRM's released environment, step by step."""

from pathlib import Path

import numpy as np
import pytest

from tests.cluster_env.worlds.deeprm.golden_episodes import Episode, golden_episodes

pytestmark = pytest.mark.golden

NUM_EPISODES = 100  # or more are stored
SINCE_LIMIT = 10  # where the released code stops to count; golden/README.md calls it max_track


def test_states_rewards_and_schedules_are_those_of_the_released_environment(
    golden_deeprm: list[Path],
) -> None:
    seen = 0
    for name, episode in golden_episodes(golden_deeprm):
        stored, layout = episode.arrays, episode.simulator.layout
        for k, states in episode.states():
            where = f"{name} state {k}"
            assert episode.simulator.time[0] == stored["s_time"][k], where
            assert np.array_equal(layout.occupied_of(states)[0], stored["s_occ"][k]), where
            expected = np.maximum(stored["s_slots"][k][:, 2:], 0)
            assert np.array_equal(layout.slots_of(states)[0], expected), where
            assert states[0, layout.backlog] == stored["s_backlog"][k], where
            assert min(states[0, layout.since], SINCE_LIMIT) == stored["s_since"][k], where
            assert episode.simulator.state.num_running[0] == stored["s_n_running"][k], where
        check_schedule(name, episode)
        seen += 1
    assert seen >= NUM_EPISODES


def check_schedule(name: str, episode: Episode) -> None:
    """Jobs start and finish when they did there; one that was dropped there is lost here."""
    schedule = episode.simulator.schedule()
    kept = {int(row[1]): row for row in episode.arrays["jobs"]}
    for arrival, start, duration, demand in zip(
        schedule.arrival, schedule.start, schedule.duration, schedule.demand, strict=True
    ):
        row = kept.get(int(arrival))
        if row is None:
            assert start == -1, name
            continue
        assert (row[2], row[4], *row[5:]) == (start, duration, *demand), name
        assert row[3] in (start + duration, -1), name
