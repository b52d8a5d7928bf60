"""What RLlib's users do with an algorithm of RLlib's, they can do with ours."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ray import tune
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from cluster_env.core.seeding import Split
from cluster_env.envs.cluster import ClusterEnv
from rllib_configs.algorithms.config import BatchedConfig, algorithm_config
from rllib_configs.config.loading import load_config
from rllib_configs.policies import learned_policy, start_from

pytestmark = pytest.mark.usefixtures("local_ray")

SMALL = ("training.jobsets=2", "training.jobsets_per_unit=1", "training.episodes_per_jobset=4")
NO_RUNNER = "resources.num_runners=0"


def config_of(preset: str = "deeprm-smoke", *more: str) -> BatchedConfig:
    sizes = () if "maml" in preset else SMALL
    return algorithm_config(load_config(preset, [*sizes, NO_RUNNER, *more]))


class Counting(RLlibCallback):
    """Counts episodes that end, in the class, since RLlib makes an object for itself."""

    returns: list[float]

    def on_episode_end(self, *, episode: SingleAgentEpisode, **kwargs: Any) -> None:
        assert kwargs["env_runner"].module is kwargs["rl_module"]
        type(self).returns.append(episode.get_return())


def test_episodes_of_training_end_for_callbacks_and_are_those_that_are_learned_from() -> None:
    Counting.returns = []
    config = config_of().callbacks(Counting)
    algorithm = config.build_algo()
    result = algorithm.train()
    algorithm.stop()
    assert len(Counting.returns) == result["env_runners"]["num_episodes"] == 8
    assert np.mean(Counting.returns) == pytest.approx(result["env_runners"]["episode_return_mean"])


def test_results_have_the_names_of_rllib() -> None:
    algorithm = config_of().build_algo()
    first, second = algorithm.train(), algorithm.train()
    algorithm.stop()
    ours, of_rllib = second["metasched"], second["env_runners"]
    assert of_rllib["episode_return_mean"] == ours["train/return_mean"]
    assert of_rllib["episode_len_mean"] == ours["train/decisions_per_episode"]
    steps = [one["env_runners"]["num_env_steps_sampled"] for one in (first, second)]
    assert second["num_env_steps_sampled_lifetime"] == sum(steps) == ours["total/decisions"]
    assert of_rllib["num_episodes_lifetime"] == 16
    assert second["training_iteration"] == 2


@pytest.mark.parametrize(
    "preset", ["deeprm-smoke", "deeprm-maml", "hpc-smoke", "accrual-smoke", "deeprm-operation"]
)
def test_a_runner_samples_episodes_of_validation_jobsets(preset: str) -> None:
    algorithm = config_of(preset).build_algo()
    runner = algorithm.env_runner
    episodes = runner.sample(num_episodes=2)
    again = runner.sample(num_episodes=1, force_reset=True)
    many = runner.sample(num_timesteps=3 * len(episodes[0]))
    task = algorithm.config.experiment.task.build(seed=algorithm.config.experiment.seed)
    algorithm.stop()
    assert all(episode.is_done for episode in episodes)
    assert again[0].get_return() == episodes[0].get_return()
    assert sum(map(len, many)) >= 3 * len(episodes[0])
    for episode in episodes:
        assert len(episode.get_observations()) == len(episode) + 1
        assert task.world.state_space.contains(episode.get_observations(0))
        assert task.world.state_space.contains(episode.get_observations(-1))


def test_episodes_are_those_of_the_gymnasium_environment() -> None:
    algorithm = config_of("deeprm-operation", "task.workload.window=60").build_algo()
    start_from(algorithm, Path("deeprm-operation"))
    algorithm.env_runner_group.sync_weights(from_worker_or_learner_group=algorithm.learner_group)
    episodes = algorithm.env_runner.sample(num_episodes=2)
    experiment, policy = algorithm.config.experiment, learned_policy(algorithm, decode="argmax")
    algorithm.stop()
    task = experiment.task.build(seed=experiment.seed)
    env = ClusterEnv(
        world=task.world,
        workload=task.workload,
        objective=task.objective,
        observation="state",
    )
    for jobset, episode in zip(task.jobsets(Split.VALIDATION, range(2)), episodes, strict=True):
        state, _ = env.reset(options={"jobset": jobset})
        rewards, ended = [], False
        while not ended:
            (action,) = policy.act(state[None], np.zeros(1))
            state, reward, ended, _, _ = env.step(action)
            rewards.append(reward)
        assert episode.get_rewards() == pytest.approx(rewards)


@pytest.mark.parametrize("num_env_runners", [0, 1])
def test_evaluations_are_in_the_result(num_env_runners: int) -> None:
    config = config_of().evaluation(
        evaluation_interval=1,
        evaluation_duration=3,
        evaluation_num_env_runners=num_env_runners,
        evaluation_config={"explore": False},
    )
    algorithm = config.build_algo()
    found = algorithm.train()["evaluation"]["env_runners"]
    again = algorithm.evaluate()["env_runners"]
    algorithm.stop()
    assert found["num_episodes"] == 3
    assert again["episode_return_mean"] == found["episode_return_mean"] < 0


def test_an_algorithm_comes_back_from_a_checkpoint_with_what_was_set(tmp_path: Path) -> None:
    algorithm = config_of().training(lr=0.25, rmsprop_decay=0.5).build_algo()
    algorithm.train()
    algorithm.save_to_path(str(tmp_path))
    expected = algorithm.train()["metasched"]["train/return_mean"]
    algorithm.stop()
    back = Algorithm.from_checkpoint(str(tmp_path))
    assert back.config.experiment.training.rmsprop_decay == 0.5
    assert back.train()["metasched"]["train/return_mean"] == expected
    back.stop()


def test_tune_searches_over_rllib_s_settings_and_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNE_DISABLE_SIGINT_HANDLER", "1")  # which Tune would leave behind
    config = config_of().training(lr=tune.grid_search([1e-3, 1e-2]), rmsprop_eps=1e-8)
    config.environment(env_config={"workload.load": tune.grid_search([0.7, 1.1])})
    stop = {"training_iteration": 1}
    run = tune.RunConfig(stop=stop, storage_path=str(tmp_path), verbose=0)
    found = tune.Tuner(config.algo_class, param_space=config, run_config=run).fit()
    assert not found.errors
    loads = {one.config["changes"]["task.workload.load"] for one in found}
    returns = {one.metrics["env_runners"]["episode_return_mean"] for one in found}
    assert loads == {0.7, 1.1}
    assert len(found) == 4
    assert len(returns) == 2  # the first iteration does not depend on lr
