"""A bilinear score as a policy of DeepRM's world, beside the same in plain NumPy."""

import numpy as np
import pytest
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.features import IDLE_PATIENCE
from cluster_env.worlds.deeprm.observations import live_mask, placeable_mask
from rllib_configs.config.loading import load_config
from rllib_configs.networks.registry import network_of
from rllib_configs.runners.candidates import CANDIDATES, CandidateWork, judged_by_all, units_of
from rllib_configs.runners.sums import total
from rllib_configs.search_problem import joined
from rllib_configs.worlds.deeprm.bilinear import BilinearSampler
from rllib_configs.worlds.deeprm.bilinear_weights import JOB_FEATURES, STATE_FEATURES
from tests.rllib_configs.worlds.test_deeprm_set_scorer import cluster_of, states_for

Numbers = NDArray[np.generic]

SIZES = (
    *("training.jobsets=4", "training.episodes_per_jobset=2", "task.workload.window=30"),
    "resources.num_runners=0",
)


def fits(used: Numbers, demand: Numbers, duration: int, start: int, capacity: Numbers) -> bool:
    return bool((used[start : start + duration] + demand <= capacity).all())


def expected_scores(
    state: NDArray[np.uint8], world: DeepRM, sampler: BilinearSampler, ahead: int, books: bool
) -> list[float]:
    """The scores of one state, by arrays and loops over steps."""
    cluster, layout = world.cluster, world.layout
    capacity, horizon = np.array(cluster.capacity), cluster.horizon
    used = np.zeros((3 * horizon, capacity.size))
    used[:horizon] = layout.occupied_of(state[None])[0]
    jobs = layout.slots_of(state[None])[0].astype(int)
    waits = state[layout.waited].astype(float)
    filled = [slot for slot in range(cluster.num_slots) if jobs[slot, 0]]
    starts = {}
    for slot in filled:
        duration, demand = jobs[slot, 0], jobs[slot, 1:]
        steps = range(horizon - duration + 1 if books else 1)
        first = [step for step in steps if fits(used, demand, duration, step, capacity)]
        if first:
            starts[slot] = first[0]

    def first_fit(used: Numbers, slot: int) -> int:
        job = jobs[slot]
        return next(h for h in range(99) if fits(used, job[1:], job[0], h, capacity))

    waiting = [slot for slot in filled if starts.get(slot) != 0]
    head = max(waiting, key=lambda slot: waits[slot], default=None)
    free = 1 - used / capacity
    backlog = float(state[layout.backlog])
    of_state = {
        "free": free[0].mean(),
        "free_ahead": free[ahead].mean(),
        "backlog": min(1, backlog / cluster.backlog_view),
        "since_arrival": min(1, state[layout.since] / horizon),
        "filled_slots": len(filled) / cluster.num_slots,
        "long_slots": sum(jobs[:, 0] > horizon / 4) / cluster.num_slots,
        "startable": list(starts.values()).count(0) / cluster.num_slots,
        "crowd": min(1, np.log1p(backlog) / np.log1p(cluster.backlog_view)),
        "constant": 1.0,
    }
    seen = np.array([of_state[name] for name in STATE_FEATURES])
    scores = [-1e9] * cluster.num_actions
    for slot, start in starts.items():
        duration, demand = jobs[slot, 0], jobs[slot, 1:]
        then = used.copy()
        then[start : start + duration] += demand
        can_start = [one for one in starts if starts[one] == 0 and one != slot]
        gone = [one for one in can_start if first_fit(then, one) > 0]
        other = head is not None and head != slot
        of_job = {
            "duration": duration / horizon,
            "inverse_duration": 1 / duration,
            "largest_demand": (demand / capacity).max(),
            "mean_demand": (demand / capacity).mean(),
            "alignment": ((capacity - used[0]) * demand).sum() / (capacity**2).sum(),
            "area": duration / horizon * (demand / capacity).mean(),
            "waited": min(1, waits[slot] / (5 * horizon)),
            "stretched": waits[slot] / (waits[slot] + duration),
            "long": float(duration > horizon / 4),
            "left": (1 - then[start] / capacity).min(),
            "free_after": free[start + duration].mean(),
            "later": float(start > 0),
            "first_start": start / horizon,
            "delays": (first_fit(then, head) - first_fit(used, head)) / horizon if other else 0,
            "blocks": len(gone) / cluster.num_slots if start == 0 else 0,
        }
        x = np.array([of_job[name] for name in JOB_FEATURES])
        scores[slot] = float(x @ sampler.job @ seen)
    idle = not used.any() and state[layout.since] >= IDLE_PATIENCE
    if not starts:
        scores[-1] = 0.0
    elif not idle:
        scores[-1] = float(sampler.void @ seen)
    return scores


@pytest.mark.parametrize(("num_classes", "books"), [(1, True), (2, True), (1, False)])
def test_a_score_is_the_product_of_features_and_weights(num_classes: int, books: bool) -> None:
    cluster = cluster_of(num_classes)
    world, states = DeepRM(cluster), states_for(cluster)
    layout, rng = world.layout, np.random.default_rng(2)
    states[:, layout.waited] = rng.integers(0, 255, (len(states), cluster.num_slots))
    states[:, layout.backlog] = rng.integers(0, 30, len(states))
    job = rng.normal(size=(len(JOB_FEATURES), len(STATE_FEATURES))).astype(np.float32)
    void = rng.normal(size=len(STATE_FEATURES)).astype(np.float32)
    sampler = BilinearSampler(job, void, 3, books, world)
    before = states.copy()
    found = sampler.logits(states)
    assert np.array_equal(states, before)
    expected = [expected_scores(state, world, sampler, 3, books) for state in states]
    assert np.allclose(found, expected, atol=1e-4)
    allowed = found > -1e8
    mask = placeable_mask(world, states) if books else live_mask(world, states)
    assert np.array_equal(allowed[:, :-1], mask[:, :-1])
    assert np.array_equal(allowed[:, -1], live_mask(world, states)[:, -1])
    assert allowed[:, :-1].any(axis=1).sum() > 20
    assert not allowed[:, -1].all()
    actions, _ = sampler.sample(states, np.zeros(len(states)))
    assert np.array_equal(actions, found.argmax(axis=1))


def test_a_search_begins_with_a_rule_that_starts_whatever_fits_and_short_jobs_first() -> None:
    config = load_config("deeprm-operation")
    world, states = DeepRM(cluster_of(1)), states_for(cluster_of(1))
    start = network_of(config).model_config(config, world)["start"]
    sampler = BilinearSampler(start["network.job"], start["network.void"], 5, True, world)
    actions, _ = sampler.sample(states, np.zeros(len(states)))
    fits = live_mask(world, states)[:, :-1]
    durations = world.layout.slots_of(states)[..., 0].astype(int)
    for i in np.flatnonzero(fits.any(axis=1)):
        shortest = durations[i][fits[i]].min()
        assert durations[i, actions[i]] <= shortest + 1


def test_no_number_depends_on_how_many_jobsets_are_played_side_by_side() -> None:
    found = []
    for size in (1, 4):
        config = load_config("deeprm-operation", [*SIZES, f"training.jobsets_per_unit={size}"])
        network, world = network_of(config), config.task.world
        shapes = network.shapes(config, world)
        start = joined(network.model_config(config, world)["start"], shapes)
        work = CandidateWork(config)
        work.set_weights({CANDIDATES: np.stack([start, -start])})
        units = units_of(Split.TRAIN, 0, 4, size, 2)
        assert len(units) == 2 * 4 // size
        parts = {(0, place): work.play(unit)[0] for place, unit in enumerate(units)}
        found.append(judged_by_all(units, total(parts, len(units))))
    assert found[0].shape == (2, 4, 4)  # cost and three limits
    assert np.array_equal(found[0], found[1])
    assert (found[0][0] != found[0][1]).any()


def test_another_world_is_refused() -> None:
    config = load_config("hpc-order", ["training.network=bilinear_scorer"])
    with pytest.raises(InputError, match="scores jobs of the world deeprm alone, but the world is"):
        network_of(config).shapes(config, config.task.world)
