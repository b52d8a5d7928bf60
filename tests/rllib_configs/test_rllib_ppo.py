"""RLlib's own PPO on the registered environment: what it sees, what it obeys, what comes of it."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

import cluster_env  # noqa: F401 - registers the environments
from cluster_env.core.errors import InputError
from cluster_env.observations.masks import start_now_mask
from cluster_env.simulators.code import CodeLayout
from rllib_configs.algorithms.batched import module_weights
from rllib_configs.builders import algorithm_config, build_algorithm, iteration_metrics
from rllib_configs.loading import load_config
from rllib_configs.modules.masked_mlp import VIEW
from rllib_configs.policies import learned_policy, load_policy, save_policy
from rllib_configs.schema import ExperimentConfig
from tests.rllib_configs.test_lookup_linear import codes_of

TINY = (
    "training.iterations=4",
    "training.decisions=1600",
    "training.epochs=2",
    "training.minibatches=4",
    "training.hidden=16",
    "resources.num_runners=0",
)


def config_of(*overrides: str) -> ExperimentConfig:
    return load_config("rllib-ppo", [*TINY, *overrides])


@pytest.fixture(scope="module")
def trained(local_ray: None) -> Any:
    """An algorithm after two iterations."""
    algorithm = build_algorithm(config_of())
    metrics = [iteration_metrics(algorithm.train()) for _ in range(2)]
    yield algorithm, metrics
    algorithm.stop()


def test_the_environment_is_the_task_of_the_config() -> None:
    overrides = (
        "task.rules=released",
        "task.workload.load=1.1",
        "task.max_time=77",
        "task.cluster.num_slots=4",
        "task.objective={slowdown: 0.5, makespan: 1}",
    )
    made = algorithm_config(config_of(*overrides))
    setup = gymnasium.make(made.env, **made.env_config).unwrapped.setup
    task = made.experiment.task
    assert setup.workload == task.build_workload()
    assert (setup.cluster, setup.rules) == (task.cluster.build(), task.build_rules())
    assert (setup.max_time, setup.objective.busy_cost) == (77, 1.0)


def test_neighboring_seeds_do_not_share_the_jobsets_of_a_runner() -> None:
    seeds = [algorithm_config(config_of(f"seed={seed}")).seed for seed in range(20)]
    assert np.diff(sorted(seeds)).min() > 1000


def test_metrics_have_our_names_and_values(trained: Any) -> None:
    _, (first, second) = trained
    assert set(first) == {
        "time/decisions_per_s",
        "total/decisions",
        "total/episodes",
        "train/decisions_per_episode",
        "train/entropy",
        "train/gradient_norm",
        "train/return_mean",
        "train/skipped_updates",
        "workers/healthy",
        "workers/restarts",
    }
    assert np.isfinite(list(second.values())).all()
    assert second["train/return_mean"] < 0 < second["train/entropy"]
    # RLlib goes on until it has enough; all of the 16 environments step at once.
    assert 1600 <= first["total/decisions"] < 1616
    assert 1600 <= second["total/decisions"] - first["total/decisions"] < 1616


def test_policy_computes_what_rllibs_module_computes_on_the_environment(trained: Any) -> None:
    """The one sees codes, the other what the environment shows."""
    algorithm, _ = trained
    policy = learned_policy(algorithm)
    envs = gymnasium.make_vec("DeepRM-v0", num_envs=8, **VIEW)
    coded = gymnasium.make_vec("DeepRM-v0", num_envs=8, observation="code")
    observation, infos = envs.reset(seed=3)
    codes, _ = coded.reset(seed=3)
    for step in range(60):
        seen = {name: torch.from_numpy(array.copy()) for name, array in observation.items()}
        with torch.no_grad():
            output = algorithm.get_module().forward_inference({"obs": seen})
        logits = policy.network.logits(codes)
        assert np.allclose(logits, output["action_dist_inputs"].numpy(), rtol=0, atol=1e-5)
        actions = policy.act(codes, np.random.default_rng(step).random(8))
        assert infos["action_mask"][np.arange(8), actions].all()
        observation, _, _, _, infos = envs.step(actions)
        codes = coded.step(actions)[0]


def test_forbidden_actions_are_never_drawn(trained: Any) -> None:
    algorithm, _ = trained
    cluster = config_of().task.cluster.build()
    codes = codes_of(cluster, 2000)
    allowed = start_now_mask(codes, CodeLayout(cluster))
    uniforms = np.random.default_rng(0).random(2000)
    uniforms[:10] = np.nextafter(1.0, 0.0)
    for decode in ("sample", "argmax"):
        actions = learned_policy(algorithm, decode=decode).act(codes, uniforms)
        assert allowed[np.arange(2000), actions].all()


def test_runners_obey_the_mask(trained: Any) -> None:
    algorithm, _ = trained
    episodes = algorithm.env_runner.sample(num_timesteps=400)
    assert sum(map(len, episodes)) >= 400
    for episode in episodes:
        masks = episode.get_observations()["action_mask"][:-1]
        assert masks[np.arange(len(episode)), episode.get_actions()].all()


def test_the_same_seed_gives_the_same_numbers_without_runners(trained: Any) -> None:
    algorithm, metrics = trained
    again = build_algorithm(config_of())
    found = [iteration_metrics(again.train()) for _ in range(2)]
    weights = module_weights(again)
    again.stop()
    for one, other in zip(metrics, found, strict=True):
        assert one["train/return_mean"] == other["train/return_mean"]
    for name, value in module_weights(algorithm).items():
        assert np.array_equal(weights[name], value), name


def test_saved_policy_is_the_trained_one(trained: Any, tmp_path: Path) -> None:
    algorithm, _ = trained
    save_policy(algorithm, config_of(), tmp_path)
    loaded, config = load_policy(tmp_path)
    assert config == config_of()
    codes = codes_of(config.task.cluster.build(), 500)
    assert np.array_equal(
        loaded.network.logits(codes), learned_policy(algorithm).network.logits(codes)
    )
    save_policy(algorithm, config_of("training.hidden=8"), tmp_path)
    with pytest.raises(InputError, match="broken or of another network"):
        load_policy(tmp_path)


@pytest.mark.parametrize(
    "overrides",
    [
        ("deeprm", "training.algorithm=rllib_ppo"),
        ("rllib-ppo", "training.network=slot_scorer"),
        ("rllib-ppo", "training.algorithm=ppo"),
    ],
)
def test_a_network_of_another_algorithm_is_refused(overrides: tuple[str, str]) -> None:
    with pytest.raises(InputError, match="rllib_ppo and the network rllib_mlp go together") as e:
        load_config(overrides[0], overrides[1:])
    assert "\n" not in str(e.value)
