"""RLScheduler's environment as recorded: what it shows at each decision, and what starts when."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from tests.cluster_env.worlds.hpc.hpc_jobs import arrays
from tests.cluster_env.worlds.hpc.rlscheduler_episode import VISIBLE, PeerJobs, RLSchedulerEpisode
from tests.golden import stored

FILES = ("lublin1_256_bf0", "lublin1_256_bf1", "lublin2_512_bf0_fifo", "theta_256_bf1")


def episode_of(golden: Path, data: dict) -> tuple[RLSchedulerEpisode, np.ndarray]:
    """An episode, and the numbers of its jobs."""
    trace = arrays(stored(golden / "rls" / f"trace_{data['trace']}.npz"))
    part = slice(int(data["offset"]), int(data["offset"] + data["length"]))
    columns = [trace[f"trace_{name}"][part] for name in ("submit", "run", "req_time", "procs")]
    most = [data[f"max_{name}"] for name in ("req_mem", "user_id", "group_id", "app")]
    jobs = PeerJobs(
        *columns, data["extra"], int(data["max_exec_time"]), int(data["max_procs"]), np.array(most)
    )
    return RLSchedulerEpisode(jobs, bool(data["backfill"])), trace["trace_job_id"][part]


def digits(observation: np.ndarray) -> str:
    return hashlib.sha256(observation.ravel().tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("name", FILES)
def test_every_observation_is_the_recorded_one(golden: Path, name: str) -> None:
    data = arrays(stored(golden / "rls" / f"env_{name}.npz"))
    episode, job_ids = episode_of(golden, data)
    first = np.split(data["first_obs"], np.cumsum(data["first_obs_rows"])[:-1])
    for k, action in enumerate(data["actions"]):
        where = f"decision {k}"
        seen = job_ids[episode.visible]
        known = (episode.time, episode.queue_length, episode.free)
        assert known == (data["time"][k], data["queue_len"][k], data["free_nodes"][k]), where
        np.testing.assert_array_equal(seen, data["visible"][k][: seen.size], err_msg=where)
        assert (data["visible"][k][seen.size :] == -1).all()
        observation = episode.observation()
        assert observation.shape == (VISIBLE, 8)
        if k < len(first):
            np.testing.assert_array_equal(observation[: len(first[k])], first[k], err_msg=where)
        assert digits(observation) == data["obs_hash"][k], where
        assert seen[action] == data["picked_job_id"][k]
        episode.step(int(action))
    assert episode.done
    np.testing.assert_array_equal(episode.start, data["start"])
