"""Scorers of the HPC world as a network: what a search finds, and simulators play by themselves."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.policy import NOT_ALLOWED
from cluster_env.core.world import Features, State, World
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.scorer import JOB_FEATURES, SIZE, STATE_FEATURES, Scorer, from_parts
from cluster_env.worlds.hpc.scorer_features import scorer_features
from cluster_env.worlds.hpc.scoring import score_states
from cluster_env.worlds.hpc.simulator import HPCSimulator
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.conditions import told
from rllib_configs.networks.registry import Network, Shapes, Weights, require_kind
from rllib_configs.networks.sampling import Sampler, TensorForm

START = {"log_estimate": 1.0, "log_share": 1.0}
"""Small areas first: what a search begins with."""


class ScorerSampler(Sampler):
    """Acts with a scorer."""

    def __init__(self, scorer: Scorer, world: HPC, run_times: str = "user") -> None:
        self._scorer, self._world, self._run_times = scorer, world, run_times

    def view(self, world: HPC) -> HPC:
        """The world with the run times that the scorer expects; see `ScorerOptions.run_times`."""
        return world if self._run_times == "user" else replace(world, run_times=self._run_times)

    def logits(self, states: State) -> NDArray[np.float32]:
        """Minus the scores, and 0 for void where no job may start."""
        scores, allowed = score_states(self._scorer, self._world, states)
        logits = np.where(allowed[:, :-1], -scores, NOT_ALLOWED).astype(np.float32)
        void = np.where(allowed[:, -1], np.float32(0.0), NOT_ALLOWED)
        return np.concatenate([logits, void[:, None]], axis=1)

    def tensor_form(self) -> TensorForm:
        """See `TensorForm`; of items and context are `JOB_FEATURES`, `STATE_FEATURES`, and a 1."""
        from rllib_configs.networks.bilinear import bilinear_form  # PyTorch takes seconds

        def observe(states: State) -> Features:
            allowed = score_states(self._scorer, self._world, states)[1]
            return Features(*scorer_features(self._world, states), allowed)

        names = ((*JOB_FEATURES, "constant"), (*STATE_FEATURES, "constant"))
        return bilinear_form(-self._scorer.weights, np.zeros(SIZE), observe, names)

    def play(self, simulator: HPCSimulator, void_bias: float) -> None:
        """Plays whole episodes, with the lowest score first and the whole queue in sight.

        A void bias changes nothing, because a scorer waits only where no job may start.
        """
        simulator.play(self._scorer)

    def choose(
        self, simulator: Any, rows: NDArray[np.int32], void_bias: float
    ) -> NDArray[np.int32]:
        """The actions of `play` in some rows under way, int32 ``(m,)``."""
        return simulator.choose(self._scorer, rows)


def start_weights(experiment: ExperimentConfig) -> dict[str, NDArray[np.float32]]:
    """What a search begins with; see `START`."""
    found = {name: np.zeros(shape, np.float32) for name, shape in _sizes(experiment).items()}
    for name, weight in START.items():
        found["network.job"][JOB_FEATURES.index(name)] = weight
    return found


def parts_of(
    experiment: ExperimentConfig, weights: Weights
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Weights of jobs, and of the state, with what is told of the experiment's objective."""
    job, state = weights["network.job"], weights["network.state"]
    condition = told(experiment.training, experiment.task.build_objective())
    if condition:
        values = np.array([value for _, value in condition], np.float32)
        job = job + values @ weights["network.told_job"]
        state = state + values @ weights["network.told_state"]
    return job, state


def _sizes(experiment: ExperimentConfig) -> Shapes:
    sizes: dict[str, tuple[int, ...]] = {"network.job": (SIZE - 1,), "network.state": (SIZE,)}
    if experiment.training.bilinear:
        sizes["network.cross"] = (SIZE - 1, SIZE - 1)
    count = len(experiment.training.conditioned_on)
    if count:  # what each thing that is told adds to the weights
        sizes["network.told_job"] = (count, SIZE - 1)
        sizes["network.told_state"] = (count, SIZE)
    return sizes


class ScorerNetwork(Network):
    """The scorer as a network, which a search trains."""

    module_place = "rllib_configs.networks.modules:HeldWeights"
    transfers = ("memory", "gpus")

    def model_config(self, experiment: ExperimentConfig, world: World) -> dict[str, Any]:
        """The weights that a search begins with."""
        _require_hpc(world)
        return {"start": start_weights(experiment)}

    def sampler(
        self, experiment: ExperimentConfig, weights: Weights, world: World
    ) -> ScorerSampler:
        """See `ScorerSampler`."""
        filled = from_parts(*parts_of(experiment, weights), weights.get("network.cross"))
        training = experiment.training
        scorer = Scorer(filled, training.mode)
        return ScorerSampler(scorer, _require_hpc(world), training.run_times)

    def shapes(self, experiment: ExperimentConfig, world: World) -> Shapes:
        """Those of the weights of jobs, of states, and of what is told."""
        _require_hpc(world)
        return _sizes(experiment)


def _require_hpc(world: World) -> HPC:
    return require_kind(world, HPC, "the network hpc_scorer scores jobs", "set_scorer")


NETWORK = ScorerNetwork()
