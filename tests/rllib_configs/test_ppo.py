"""PPO and the set scorer: baselines, loss, masks, and the same numbers however it is spread."""

from pathlib import Path

import numpy as np
import pytest
import torch

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.features import slot_feature_names
from cluster_env.worlds.deeprm.observations import live_mask, start_now_mask
from cluster_env.worlds.deeprm.state import StateLayout
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from rllib_configs.algorithms.batched import module_weights
from rllib_configs.builders import build_algorithm
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.learning.equalizing import Equalizer, Spreads
from rllib_configs.learning.losses import clipped_loss, symexp, symlog
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions
from rllib_configs.networks.set_scorer.sampler import SetScorerSampler
from rllib_configs.policies import save_policy, start_from
from rllib_configs.policy_files import LearnedPolicy, load_policy
from rllib_configs.runners.sampling import SampleUnit, UnitSampler, iteration_units
from tests.rllib_configs.training import (
    assert_equal,
    assert_same_numbers,
    go_on_and_lose_a_runner,
    train,
)
from tests.rllib_configs.worlds.test_lookup_linear import states_of


def config_of(*overrides: str) -> ExperimentConfig:
    sizes = (
        "training.jobsets=4",
        "training.jobsets_per_unit=2",
        "training.episodes_per_jobset=4",
        "training.iterations=4",
        "resources.num_runners=0",
    )
    return load_config("deeprm-ppo", [*sizes, *overrides])


def test_groups_that_vary_most_are_scaled_down_to_the_others() -> None:
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(3, dtype=np.int32), 500)
    advantages = rng.normal(size=1500) * np.array([0.1, 1.0, 10.0])[group]

    def spreads(share: float) -> np.ndarray:
        varied = Spreads.of(advantages, group)
        scaled = Equalizer.of(varied, share)(advantages, group, varied)
        assert np.sqrt(np.mean(scaled**2)) == pytest.approx(1, abs=1e-6)
        return np.array([np.sqrt(np.mean(scaled[group == k] ** 2)) for k in range(3)])

    given = np.array([np.sqrt(np.mean(advantages[group == k] ** 2)) for k in range(3)])
    every, half, none = (spreads(share) for share in (1.0, 0.5, 0.0))
    assert np.allclose(every, 1, rtol=1e-6)
    assert half[1] == pytest.approx(half[2])
    assert half[0] / half[1] == pytest.approx(given[0] / given[1], rel=1e-12)
    assert none / none[0] == pytest.approx(given / given[0], rel=1e-12)


def test_logarithmic_scale_of_the_critic_and_back() -> None:
    values = torch.tensor([-1e4, -1.0, 0.0, 0.5, 300.0], dtype=torch.float64)
    assert torch.allclose(symexp(symlog(values)), values)
    assert symlog(torch.tensor(-(np.e - 1))).item() == pytest.approx(-1)


def test_a_critic_that_has_lost_its_way_still_says_a_number() -> None:
    wild = torch.tensor([-100.0, -30.5, 30.0, 31.0, 89.0, 1e30])
    assert symexp(wild).tolist() == (torch.tensor([-1, -1, 1, 1, 1, 1]) * np.expm1(30)).tolist()


def test_clipped_loss_of_hand_worked_ratios() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]))
    old = torch.log(torch.tensor([0.25, 0.25, 0.5]))  # ratios 2, 2 and 1
    advantages = torch.tensor([1.0, -1.0, 3.0])
    loss, entropy = clipped_loss(logits, torch.tensor([0, 1, 0]), old, advantages, clip=0.2)
    assert loss.item() == pytest.approx(-(1.2 - 2.0 + 3.0) / 3)
    assert torch.allclose(entropy, torch.full((3,), np.log(2)))


@pytest.mark.parametrize("cluster", [Cluster(), Cluster((6, 9, 4), 16, 4, 20)])
def test_score_of_a_job_does_not_depend_on_its_slot(cluster: Cluster) -> None:
    world = DeepRM(cluster)
    network = SetScorer(world.feature_names, SetScorerOptions(32), seed=1)
    with torch.no_grad():
        network.score.weight.mul_(100)
        place = slot_feature_names(cluster).index("index")
        network.job.weight[:, place] = 0  # the one feature that tells slots apart
    layout = StateLayout(cluster)
    states = states_of(cluster, 200)
    order = np.random.default_rng(0).permutation(cluster.num_slots)
    shuffled = states.copy()
    layout.slots_of(shuffled)[:] = layout.slots_of(states)[:, order]
    shuffled[:, layout.waited] = states[:, layout.waited][:, order]
    with torch.no_grad():
        logits, moved = (network(world.features(each)).numpy() for each in (states, shuffled))
    assert np.allclose(moved[:, :-1], logits[:, order], atol=1e-4)
    assert np.allclose(moved[:, -1], logits[:, -1], atol=1e-4)


def test_forbidden_actions_are_never_drawn() -> None:
    cluster = Cluster()
    network = SetScorer(DeepRM().feature_names, SetScorerOptions(32), seed=1)
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    states = states_of(cluster, 2000)
    uniforms = np.random.default_rng(0).random(2000)
    actions, log_probabilities = SetScorerSampler(network, weights, DeepRM()).sample(
        states, uniforms
    )
    allowed = live_mask(DeepRM(cluster), states)
    assert allowed[np.arange(2000), actions].all()
    assert np.isfinite(log_probabilities).all()


def test_only_an_idle_cluster_that_could_work_is_kept_from_waiting() -> None:
    layout = StateLayout(Cluster())
    states = np.zeros((4, layout.size), np.uint8)
    states[:, layout.since] = [10, 9, 10, 10]
    layout.slots_of(states)[:3, 2] = (4, 5, 5)
    layout.occupied_of(states)[2, 0] = 1
    allowed = live_mask(DeepRM(), states)
    assert allowed[:, -1].tolist() == [False, True, True, True]
    assert np.array_equal(allowed[:, :-1], start_now_mask(DeepRM(), states)[:, :-1])


def test_a_policy_that_never_wants_to_start_still_finishes_every_job() -> None:
    world = DeepRM(max_time=5000)
    network = SetScorer(world.feature_names, SetScorerOptions(32), seed=0)
    with torch.no_grad():
        network.void.bias.fill_(1e3)
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    policy = LearnedPolicy("lazy", SetScorerSampler(network, weights, world), "argmax")
    jobsets = sample_jobsets(BimodalWorkload(load=1.1), 0, Split.VALIDATION, range(20))
    schedule = evaluate(policy, jobsets, world)
    assert schedule.finished.all()


def test_numbers_depend_neither_on_runners_nor_on_a_resume_nor_on_a_kill(
    local_ray: None, tmp_path: Path
) -> None:
    """Two runners with a unit each, in an iteration with the clock of the run's second half.

    One is killed in the second epoch. See `tests.meta.test_same_bits` for other moments.
    """
    learning = "training.critic=true"
    weights, metrics = train(config_of(learning), 4, keep=tmp_path / "checkpoint")
    two = config_of(learning, "resources.num_runners=2")
    found, same = go_on_and_lose_a_runner(two, tmp_path / "checkpoint", 3)
    assert_equal(found, weights)
    assert_same_numbers(same, metrics[2:])


def test_a_run_starts_with_the_weights_of_another(local_ray: None, tmp_path: Path) -> None:
    first = build_algorithm(config_of())
    first.train()
    save_policy(first, config_of(), tmp_path / "policy")
    expected = module_weights(first)
    first.stop()
    loaded, _ = load_policy(tmp_path, "argmax")
    assert loaded.act(states_of(Cluster(), 10), np.zeros(10)).shape == (10,)

    second = build_algorithm(config_of("seed=1", "training.critic=true"))
    start_from(second, tmp_path)
    found = module_weights(second)
    assert set(found) - set(expected) == {name for name in found if ".critic" in name} != set()
    for name, value in expected.items():
        assert np.array_equal(found[name], value), name
    second.train()
    assert not np.array_equal(
        module_weights(second)["network.job.weight"], expected["network.job.weight"]
    )
    second.stop()

    wider = build_algorithm(config_of("training.hidden=8"))
    with pytest.raises(InputError, match="another network than this experiment"):
        start_from(wider, tmp_path)
    with pytest.raises(InputError, match="no trained policy"):
        start_from(wider, tmp_path / "nowhere")
    wider.stop()


def test_the_shortest_windows_come_first() -> None:
    varied = [
        "training.window_curriculum=0.5",
        "task.workload.vary.window=[20, 40]",
        "task.workload.vary.load=[0.5, 1.5]",
    ]
    config = config_of(*varied)  # of four iterations
    sample = UnitSampler(config)
    network = SetScorer(sample.task.world.feature_names, SetScorerOptions(32), seed=1)
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    policy = SetScorerSampler(network, weights, sample.task.world)

    def windows(iteration: int) -> set[int]:
        parts = [sample(unit, policy) for unit in iteration_units(config, iteration)]
        return {int(window) for part in parts for window in part.outcome["weight"]}

    assert windows(0) == windows(1) == {20}
    assert windows(2) == windows(3) == {20, 40}
    with pytest.raises(InputError, match="fresh_jobsets"):
        config_of(*varied, "training.fresh_jobsets=false")


def test_units_and_iterations_draw_from_streams_of_their_own() -> None:
    sample = UnitSampler(config_of())
    network = SetScorer(sample.task.world.feature_names, SetScorerOptions(32), seed=1)
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    policy = SetScorerSampler(network, weights, sample.task.world)

    def actions(index: int, iteration: int) -> list[int]:
        return sample(SampleUnit(index, iteration, (0, 1)), policy).actions.tolist()

    drawn = [actions(0, 0), actions(1, 0), actions(0, 1)]
    assert drawn[0] == actions(0, 0)
    assert all(drawn[i] != drawn[j] for i, j in ((0, 1), (0, 2), (1, 2)))
