"""A learner process that is killed: one clear sentence, and the checkpoint goes on bit for bit."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import Failure
from rllib_configs.algorithms.batched import module_weights
from rllib_configs.builders import build_algorithm
from rllib_configs.loading import load_config
from rllib_configs.registries import prepare

pytestmark = pytest.mark.integration

SMALL = ["training.jobsets=2", "training.episodes_per_jobset=2"]
UNIT = "training.jobsets_per_unit=2"
SMALL += ["resources.num_runners=0", "training.hidden=8"]
META = [*SMALL, "training.tasks=2", "training.warm_up=0", "training.epochs=1"]


@pytest.mark.parametrize(
    ("preset", "overrides", "learners"),
    [
        ("deeprm-smoke", [*SMALL, UNIT], 2),
        ("deeprm-maml", META, 1),
    ],
)
def test_a_killed_learner_is_said_and_its_checkpoint_goes_on(
    local_ray: None, tmp_path: Path, preset: str, overrides: list[str], learners: int
) -> None:
    config = prepare(load_config(preset, [*overrides, f"resources.num_learners={learners}"]))
    algorithm = build_algorithm(config)
    try:
        algorithm.train()
        algorithm.save_to_path(str(tmp_path / "checkpoint"))
        algorithm.train()
        expected = module_weights(algorithm)
        pids = [one.get() for one in algorithm.learner_group.foreach_learner(_pid)]
        assert os.getpid() not in pids
        os.kill(pids[-1], signal.SIGKILL)
        time.sleep(0.5)
        with pytest.raises(Failure, match=r"a learner process has died .* the last checkpoint"):
            algorithm.train()
    finally:
        algorithm.stop()
    if learners == 2:
        return  # to build again takes as long as all the rest, and shows nothing new
    again = build_algorithm(config)
    try:
        again.restore_from_path(str(tmp_path / "checkpoint"))
        again.train()
        found = module_weights(again)
    finally:
        again.stop()
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


def _pid(learner: object) -> int:
    return os.getpid()
