"""A set scorer that begins as a linear scorer decides as that one does."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.objectives import get_objective
from cluster_env.worlds.hpc.workloads import LublinWorkload
from meta.adaptation import untrained_policy
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.registry import network_of
from rllib_configs.policy_files import (
    check_start,
    policy_of,
    read_weights,
    starting_weights,
    write_policy,
)
from rllib_configs.worlds.hpc.warm_start import SHARPNESS


def config_of(*overrides: str, start: str = "hpc-order") -> ExperimentConfig:
    return load_config(
        "hpc-smoke",
        [
            *("task.world.queue=32", "training.hidden=32", "training.skip_connection=true"),
            *(f"training.start={start}", *overrides),
        ],
    )


@pytest.mark.parametrize(("mode", "classes"), [("easy", 1), ("skip", 1), ("easy", 3)])
def test_decisions_are_those_of_the_scorer(mode: str, classes: int, tmp_path: Path) -> None:
    """Void is below what may start, and above what would delay the oldest job."""
    given, source = read_weights("hpc-order")
    changed = source.training.model_copy(update={"mode": mode})
    source = source.model_copy(update={"training": changed})
    write_policy(given, source, tmp_path / "scorer")
    config = config_of(f"task.world.num_classes={classes}", start=str(tmp_path / "scorer"))
    world = config.task.world
    own = untrained_policy(config, 0).weights
    made = starting_weights(config, tmp_path / "scorer", own)
    assert {key: value.shape for key, value in made.items()} == {
        key: value.shape for key, value in own.items()
    }
    ours = policy_of(config, made, "set", "argmax", world).network
    theirs = policy_of(source, given, "linear", "argmax", world).network
    workload = LublinWorkload(256, jobs=600, load=1.3, estimates="uniform:3")
    simulator = world.simulator()
    simulator.load([workload.sample(np.random.default_rng(4))], get_objective("bounded_slowdown"))
    row, met, waited = np.zeros(1, np.int32), 0, 0
    while simulator.active[0]:
        states = simulator.states
        expected, found = theirs.logits(states)[0], ours.logits(states)[0]
        features = world.features(states)
        waits = features.allowed[0, -1] and expected[-1] > -1e8
        waited += waits
        assert not waits or found.argmax() == found.size - 1
        choices = (expected[:-1] > -1e8) & features.allowed[0, :-1]
        assert waits or choices[found.argmax()] or not features.allowed[0, -1]
        choices &= (np.abs(features.items[0, :, 6:8]) < 1).all(axis=1)  # none is cut
        if choices.sum() > 1:
            logits = found[:-1][choices], SHARPNESS * expected[:-1][choices]
            assert np.allclose(*(one - one[0] for one in logits), rtol=0, atol=1e-3)
            met += 1
        simulator.step(row, np.array([expected.argmax()], np.int32), np.empty(1))
    assert met > 15
    assert waited > 10 or mode == "skip"


def test_a_run_can_begin_so(tmp_path: Path) -> None:
    check_start(config_of(), "hpc-order")
    check_start(config_of("training.algorithm=reinforce"), "hpc-order")
    given, source = read_weights("hpc-order")
    write_policy(given, source, tmp_path / "mine")
    config = config_of(start=str(tmp_path / "mine"))
    assert config.training.start == tmp_path / "mine"
    check_start(config, tmp_path / "mine")
    assert str(config_of().training.start) == "hpc-order"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["training.skip_connection=false"], "skip_connection=true"),
        (["task={world: {kind: deeprm}}"], "the world hpc alone"),
    ],
)
def test_where_there_is_no_room_it_is_refused(changes: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_start(config_of(*changes), "hpc-order")


@pytest.mark.parametrize("changes", [["training.bilinear=true"], ["training.mode=strict"]])
def test_other_scorers_are_refused(tmp_path: Path, changes: list[str]) -> None:
    source = load_config("hpc-order", changes)
    shapes = network_of(source).shapes(source, source.task.world)
    weights = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    write_policy(weights, source, tmp_path / "other")
    with pytest.raises(InputError, match="from a linear hpc_scorer of the mode easy or skip"):
        check_start(config_of(), tmp_path / "other")
