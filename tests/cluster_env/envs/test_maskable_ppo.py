"""sb3-contrib's MaskablePPO learns on the registered environment as it is."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.deeprm.workloads import BimodalWorkload

sb3_contrib = pytest.importorskip("sb3_contrib")

OPTIONS = {"workload": {"load": 0.7}, "observation": "slots", "mask": "start_now"}
NUM_EVALUATED = 100


class RefusesMaskedActions(gymnasium.Wrapper):
    """Fails at the first action outside the mask, and counts the others."""

    num_steps = 0

    def step(self, action: Any) -> Any:
        assert self.get_wrapper_attr("action_masks")()[action]
        RefusesMaskedActions.num_steps += 1
        return super().step(action)


def returns_of(model: Any, jobsets: list[JobSet]) -> np.ndarray:
    """Return of one episode of each jobset, side by side."""
    envs = gymnasium.make_vec("DeepRM-v0", num_envs=len(jobsets), **OPTIONS)
    observation, infos = envs.reset(seed=0, options={"jobsets": jobsets})
    total, active = np.zeros(len(jobsets)), np.ones(len(jobsets), np.bool_)
    while active.any():
        actions, _ = model.predict(observation, action_masks=infos["action_mask"])
        assert infos["action_mask"][np.arange(len(jobsets)), actions].all()
        observation, rewards, terminated, truncated, infos = envs.step(actions)
        total += rewards * active
        active &= ~(terminated | truncated)
    return total


@pytest.fixture
def one_thread() -> Any:
    """Batches are small: more threads would only be in each other's way."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.integration
@pytest.mark.slow
def test_it_learns_and_never_takes_a_masked_action(one_thread: None) -> None:
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.logger import Logger

    jobsets = sample_jobsets(BimodalWorkload(load=0.7), 0, Split.VALIDATION, range(NUM_EVALUATED))
    envs = make_vec_env(
        "DeepRM-v0", n_envs=8, seed=0, env_kwargs=OPTIONS, wrapper_class=RefusesMaskedActions
    )
    model = sb3_contrib.MaskablePPO(
        "MultiInputPolicy",
        envs,
        n_steps=128,
        batch_size=128,
        learning_rate=1e-3,
        gamma=1.0,
        gae_lambda=0.6,
        vf_coef=0.1,
        seed=0,
        device="cpu",
    )
    before = returns_of(model, jobsets)
    model.set_logger(Logger(folder=None, output_formats=[]))  # its own leaves a folder behind
    model.learn(12 * 8 * 128)
    after = returns_of(model, jobsets)
    assert RefusesMaskedActions.num_steps == 12 * 8 * 128
    # About -115 and -76, and SJF has -56. Over five training seeds the gain was 32 to 49; its
    # standard error over jobsets is about 4.
    gain = after - before
    assert gain.mean() > 20
    assert gain.mean() > 4 * gain.std() / NUM_EVALUATED**0.5
