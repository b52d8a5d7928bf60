"""A set scorer that begins as a bilinear scorer, by imitation.

A bilinear scorer multiplies features of a job and of the cluster, which a set scorer cannot take
over as it stands. So it is shown the states that come up, first where the bilinear scorer acts and
then where it acts itself, with what the bilinear scorer would do there: DAgger (Ross, Gordon and
Bagnell 2011, section 3).
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Purpose, Split, episode_keys, generator
from rllib_configs.networks.conditions import seen_world
from rllib_configs.networks.registry import Weights, network_of
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions
from rllib_configs.runners.rollout import rollout

if TYPE_CHECKING:
    from cluster_env.core.world import World
    from rllib_configs.schema import ExperimentConfig

Floats = NDArray[np.float32]

ROUNDS = 3
JOBSETS = 40
"""New jobsets in each round, an episode of each."""
EPOCHS = 8
BATCH = 256
STEP_SIZE = 0.003


class Shown(NamedTuple):
    """States ``(rows, state_size)``, and what to do there, int64 ``(rows,)``."""

    states: NDArray[Any]
    actions: NDArray[np.int64]


class Imitation:
    """Makes the weights of a set scorer that mostly decides as a bilinear scorer does."""

    def check(
        self,
        source: "ExperimentConfig",
        weights: Weights,
        experiment: "ExperimentConfig",
        own: Weights,
    ) -> None:
        """Makes sure that it can be done; see `__call__`.

        Raises:
            InputError: if the bilinear scorer cannot act in the world of the experiment.
        """
        world, objective = experiment.task.world, experiment.task.build_objective()
        if seen_world(experiment.training, world, objective) is not world:
            raise InputError(
                "a set_scorer with training.conditioned_on cannot start from "
                f"{source.name}, which is conditioned on nothing; leave out training.start"
            )
        network_of(source).sampler(source, weights, world)

    def __call__(
        self,
        source: "ExperimentConfig",
        weights: Weights,
        experiment: "ExperimentConfig",
        own: Weights,
    ) -> dict[str, Floats]:
        """The weights after `ROUNDS` of imitation, some seconds of a core.

        Args:
            source: config of the bilinear scorer.
            weights: of the bilinear scorer.
            experiment: config of the set scorer, in whose task both act.
            own: weights of the set scorer by name, which it begins with. A critic keeps them.
        """
        self.check(source, weights, experiment, own)
        world = experiment.task.world
        teacher = network_of(source).sampler(source, weights, world)
        made = {name: np.array(value, np.float32) for name, value in own.items()}
        pieces: list[Shown] = []
        task = experiment.task.build(seed=experiment.seed)
        for round_ in range(ROUNDS):
            student = network_of(experiment).sampler(experiment, made, world)
            policy: Any = teacher if round_ == 0 else student
            jobsets = task.jobsets(Split.TRAIN, range(round_ * JOBSETS, (round_ + 1) * JOBSETS))
            keys = episode_keys(experiment.seed, Split.TRAIN, 0, round_, count=JOBSETS)
            states = rollout(world, policy, jobsets, task.objective, 1, keys).states
            # Those in which there is more than one thing to do.
            states = states[world.features(states).allowed.sum(axis=1) > 1]
            wanted = teacher.logits(states).argmax(axis=1)
            able = student.logits(states)[np.arange(len(wanted)), wanted] > _IMPOSSIBLE
            pieces.append(Shown(states[able], wanted[able]))
            made = _fitted(experiment, world, made, pieces)
        return made


_IMPOSSIBLE = -1e8
"""Logits below are those of what the set scorer may not do."""

as_set_scorer = Imitation()


def _fitted(
    experiment: "ExperimentConfig", world: "World", own: Weights, pieces: list[Shown]
) -> dict[str, Floats]:
    """Weights after some epochs of cross-entropy on all that was shown."""
    options = SetScorerOptions.of(experiment.training).without_critic
    network = SetScorer(world.feature_names, options)
    network.load_state_dict(
        {name: torch.from_numpy(own[f"network.{name}"]) for name in network.state_dict()}
    )
    optimizer = torch.optim.Adam(network.parameters(), STEP_SIZE)
    states = np.concatenate([piece.states for piece in pieces])
    actions = torch.from_numpy(np.concatenate([piece.actions for piece in pieces]))
    rng = generator(experiment.seed, Purpose.SHUFFLE, Split.TRAIN, len(pieces))
    for _ in range(EPOCHS):
        order = rng.permutation(len(states))
        for begin in range(0, len(order), BATCH):
            some = order[begin : begin + BATCH]
            logits, _ = network.score_items(world.features(states[some]))
            loss = torch.nn.functional.cross_entropy(logits, actions[some])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    found = {f"network.{name}": value.numpy() for name, value in network.state_dict().items()}
    return {**own, **found}
