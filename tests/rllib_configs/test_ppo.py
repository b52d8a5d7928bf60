"""PPO and the slot scorer: baselines, loss, masks, and the same numbers however it is spread."""

from pathlib import Path

import numpy as np
import pytest
import torch

from cluster_env.core.cluster import Cluster
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.observations.masks import live_mask, start_now_mask
from cluster_env.simulators.code import CodeLayout
from cluster_env.workloads import BimodalWorkload, sample_jobsets
from rllib_configs.algorithms.batched import module_weights
from rllib_configs.builders import build_algorithm, iteration_metrics
from rllib_configs.learning.advantages import subtract_time_baseline
from rllib_configs.learning.losses import clipped_loss
from rllib_configs.loading import load_config
from rllib_configs.modules.slot_scorer import SlotScorer, SlotScorerSampler
from rllib_configs.policies import LearnedPolicy, load_policy, save_policy
from rllib_configs.schema import ExperimentConfig
from tests.rllib_configs.test_lookup_linear import codes_of


def config_of(*overrides: str) -> ExperimentConfig:
    sizes = (
        "training.jobsets=4",
        "training.jobsets_per_unit=2",
        "training.episodes_per_jobset=4",
        "training.iterations=4",
        "resources.num_runners=0",
    )
    return load_config("deeprm-ppo", [*sizes, *overrides])


def test_time_baseline_is_the_mean_of_the_other_episodes_at_the_same_clock() -> None:
    rng = np.random.default_rng(0)
    jobset = np.repeat(np.arange(2, dtype=np.int32), 3)
    lengths = rng.integers(2, 6, jobset.size)
    by_clock = [rng.normal(size=n) for n in lengths]  # return to go at each clock
    rows = [
        (e, t) for e, n in enumerate(lengths) for t in range(n) for _ in range(rng.integers(1, 4))
    ]
    episode, time = np.array(rows, np.int32).T.copy()
    returns = np.array([by_clock[e][t] for e, t in rows])

    def at(e: int, t: int) -> float:
        return by_clock[e][t] if t < lengths[e] else 0.0

    expected = [
        at(e, t) - np.mean([at(o, t) for o in range(6) if o != e and jobset[o] == jobset[e]])
        for e, t in rows
    ]
    found = subtract_time_baseline(returns, episode, time, jobset)
    assert np.allclose(found, expected, rtol=0, atol=1e-12)


def test_clipped_loss_of_hand_worked_ratios() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]))
    old = torch.log(torch.tensor([0.25, 0.25, 0.5]))  # ratios 2, 2 and 1
    advantages = torch.tensor([1.0, -1.0, 3.0])
    loss, entropy = clipped_loss(logits, torch.tensor([0, 1, 0]), old, advantages, clip=0.2)
    assert loss.item() == pytest.approx(-(1.2 - 2.0 + 3.0) / 3)
    assert torch.allclose(entropy, torch.full((3,), np.log(2)))


@pytest.mark.parametrize("cluster", [Cluster(), Cluster((6, 9, 4), 16, 4, 20)])
def test_score_of_a_job_does_not_depend_on_its_slot(cluster: Cluster) -> None:
    network = SlotScorer(cluster, width=16, seed=1)
    with torch.no_grad():
        network.score.weight.mul_(100)
        network.job.weight[:, -1] = 0  # the one feature that tells slots apart: their index
    layout = CodeLayout(cluster)
    codes = codes_of(cluster, 200)
    order = np.random.default_rng(0).permutation(cluster.num_slots)
    shuffled = codes.copy()
    layout.slots_of(shuffled)[:] = layout.slots_of(codes)[:, order]
    with torch.no_grad():
        logits, moved = network(codes).numpy(), network(shuffled).numpy()
    assert np.allclose(moved[:, :-1], logits[:, order], atol=1e-4)
    assert np.allclose(moved[:, -1], logits[:, -1], atol=1e-4)


def test_forbidden_actions_are_never_drawn() -> None:
    cluster = Cluster()
    network = SlotScorer(cluster, width=16, seed=1)
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    codes = codes_of(cluster, 2000)
    uniforms = np.random.default_rng(0).random(2000)
    actions, log_probabilities = SlotScorerSampler(network, weights).sample(codes, uniforms)
    allowed = live_mask(codes, CodeLayout(cluster))
    assert allowed[np.arange(2000), actions].all()
    assert np.isfinite(log_probabilities).all()


def test_only_an_idle_cluster_that_could_work_is_kept_from_waiting() -> None:
    layout = CodeLayout(Cluster())
    codes = np.zeros((4, layout.size), np.uint8)
    codes[:, layout.since] = [10, 9, 10, 10]
    layout.slots_of(codes)[:3, 2] = (4, 5, 5)
    layout.occupied_of(codes)[2, 0] = 1
    allowed = live_mask(codes, layout)
    assert allowed[:, -1].tolist() == [False, True, True, True]
    assert np.array_equal(allowed[:, :-1], start_now_mask(codes, layout)[:, :-1])


def test_a_policy_that_never_wants_to_start_still_finishes_every_job() -> None:
    cluster = Cluster()
    network = SlotScorer(cluster, width=8, seed=0)
    with torch.no_grad():
        network.void.bias.fill_(1e3)
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    policy = LearnedPolicy("lazy", SlotScorerSampler(network, weights), "argmax")
    jobsets = sample_jobsets(BimodalWorkload(load=1.1), 0, Split.VALIDATION, range(20))
    schedule = evaluate(policy, jobsets, cluster, max_time=5000)
    assert schedule.finished.all()


def test_numbers_depend_neither_on_runners_nor_on_a_resume(local_ray: None, tmp_path: Path) -> None:
    algorithm = build_algorithm(config_of())
    for _ in range(2):
        algorithm.train()
    algorithm.save_to_path(tmp_path / "checkpoint")
    save_policy(algorithm, config_of(), tmp_path / "policy")
    last = [iteration_metrics(algorithm.train()) for _ in range(2)][-1]
    expected = module_weights(algorithm)
    algorithm.stop()
    loaded, _ = load_policy(tmp_path, "argmax")
    assert loaded.act(codes_of(Cluster(), 10), np.zeros(10)).shape == (10,)

    resumed = build_algorithm(config_of("resources.num_runners=2"))
    resumed.restore_from_path(tmp_path / "checkpoint")
    again = [iteration_metrics(resumed.train()) for _ in range(2)][-1]
    found = module_weights(resumed)
    resumed.stop()
    assert again["train/return_mean"] == last["train/return_mean"]
    for name, value in expected.items():
        assert np.array_equal(found[name], value), name
