"""Sixty numbers as a policy of DeepRM's world, beside the same in plain NumPy."""

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.features import (
    context_feature_names,
    slot_feature_names,
    slot_features,
)
from cluster_env.worlds.deeprm.masks import live_mask
from rllib_configs.loading import load_config
from rllib_configs.networks import network_of
from rllib_configs.runners.candidates import CANDIDATES, CandidateWork, joined, units_of
from rllib_configs.worlds.deeprm.bilinear import JOB_FEATURES, STATE_FEATURES, BilinearSampler
from tests.rllib_configs.worlds.test_deeprm_set_scorer import cluster_of, states_for

SIZES = (
    *("training.jobsets=4", "training.episodes_per_jobset=2", "task.workload.window=30"),
    "resources.num_runners=0",
)


@pytest.mark.parametrize("num_classes", [1, 2])
def test_a_score_is_the_product_of_features_and_weights(num_classes: int) -> None:
    cluster = cluster_of(num_classes)
    world, states = DeepRM(cluster), states_for(cluster)
    rng = np.random.default_rng(2)
    job = rng.normal(size=(len(JOB_FEATURES), len(STATE_FEATURES))).astype(np.float32)
    void = rng.normal(size=len(STATE_FEATURES)).astype(np.float32)
    slots, context = slot_features(states, world.layout)
    of_job = dict(zip(slot_feature_names(cluster), np.moveaxis(slots, -1, 0), strict=True))
    of_state = dict(zip(context_feature_names(cluster), context.T, strict=True))
    demands = np.array([of_job["demand_0"], of_job["demand_1"]])
    of_job |= {"largest_demand": demands.max(axis=0), "mean_demand": demands.mean(axis=0)}
    of_job["long"] = (of_job["duration"] > 0.25).astype(np.float32)
    of_state["free"] = (of_state["free_0_0"] + of_state["free_0_1"]) / 2
    of_state["free_ahead"] = (of_state["free_3_0"] + of_state["free_3_1"]) / 2
    of_state["constant"] = np.ones(len(states), np.float32)
    x = np.stack([of_job[name] for name in JOB_FEATURES], axis=-1)
    s = np.stack([of_state[name] for name in STATE_FEATURES], axis=-1)
    expected = np.concatenate([np.einsum("njf,fg,ng->nj", x, job, s), (s @ void)[:, None]], axis=1)
    allowed = live_mask(states, world.layout)

    sampler = BilinearSampler(job, void, 3, world)
    found = sampler.logits(states)
    choice = allowed[:, :-1].any(axis=1)
    assert choice.any()
    assert not choice.all()
    assert np.allclose(found[choice][allowed[choice]], expected[choice][allowed[choice]], atol=1e-4)
    assert (found[~allowed] == np.float32(-1e9)).all()
    actions, _ = sampler.sample(states, np.zeros(len(states)))
    assert np.array_equal(actions, found.argmax(axis=1))
    assert (actions[~choice] == cluster.num_slots).all()


def test_a_search_begins_with_a_rule_that_starts_whatever_fits_and_short_jobs_first() -> None:
    config = load_config("deeprm-operation")
    world, states = DeepRM(cluster_of(1)), states_for(cluster_of(1))
    start = network_of(config).model_config(config, world)["start"]
    sampler = BilinearSampler(start["network.job"], start["network.void"], 5, world)
    actions, _ = sampler.sample(states, np.zeros(len(states)))
    fits = live_mask(states, world.layout)[:, :-1]
    durations = world.layout.slots_of(states)[..., 0].astype(int)
    for i in np.flatnonzero(fits.any(axis=1)):
        shortest = durations[i][fits[i]].min()
        assert durations[i, actions[i]] <= shortest + 1


def test_no_number_depends_on_how_many_jobsets_are_played_side_by_side() -> None:
    found = []
    for size in (1, 4):
        config = load_config("deeprm-operation", [*SIZES, f"training.jobsets_per_unit={size}"])
        network, world = network_of(config), config.task.build_world()
        shapes = network.shapes(config, world)
        start = joined(network.model_config(config, world)["start"], shapes)
        work = CandidateWork(config)
        work.begin({CANDIDATES: np.stack([start, -start])})
        parts = [work.play(unit)[0] for unit in units_of(Split.TRAIN, 0, 4, size)]
        apart = {index: rows for part in parts for index, rows in part.apart.items()}
        found.append(np.concatenate([rows for _, rows in sorted(apart.items())], axis=1))
    assert found[0].shape == (2, 4, 3)
    assert np.array_equal(found[0], found[1])
    assert (found[0][0] != found[0][1]).any()


def test_another_world_is_refused() -> None:
    config = load_config("hpc-universal", ["training.network=bilinear_scorer"])
    with pytest.raises(InputError, match="scores jobs of the world deeprm alone, but the world is"):
        network_of(config).shapes(config, config.task.build_world())
