"""What a study measures: trained runs, policies without training, and what each is called."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster_env.core.errors import InputError
from meta.adaptation import MetaPolicy, load_meta_policy, untrained_policy
from meta.fine_tuning import ReinforcePolicy, load_reinforce_policy
from meta.maml.options import MAMLOptions
from rllib_configs.config.registries import NETWORKS
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.policy_files import read_weights

SCRATCH = "scratch"

_ORDERS = {
    ("first", "ratio"): "FOMAML",
    ("first", "log_probability"): "FOMAML (log)",
    ("second", "log_probability"): "MAML",
    ("second", "ratio"): "ProMP",
}


@dataclass(frozen=True)
class Source:
    """A policy to measure.

    Each of its steps counts as some steps of a plan: so many times the episodes.
    """

    path: Path  # of the run; for a policy without training, of the run that it is like
    scratch: int | None = None  # seed of its initial weights if it is to be without training
    rate: float | None = None  # inner rate, if neither the learned ones nor one that is chosen
    times: int = 1

    @property
    def file(self) -> str:
        """Name of its file."""
        if self.scratch is not None:
            return f"{SCRATCH}{self.more}-s{self.scratch}.csv"
        return f"{self.path.resolve().name}.csv"

    @property
    def more(self) -> str:
        """What a name says of more episodes."""
        return "" if self.times == 1 else f"-x{self.times}"

    def load(self) -> MetaPolicy | ReinforcePolicy:
        """The policy, not adapted.

        Raises:
            InputError: if there is none that can be adapted.
        """
        network = NETWORKS.get(read_weights(self.path)[1].training.network)
        if not network.scores_items and self.scratch is None:
            return load_reinforce_policy(self.path)
        found = load_meta_policy(self.path, self.rate)
        if self.scratch is None:
            return found
        policy = untrained_policy(found.config, self.scratch)
        return policy if self.rate is None else policy.with_rate(self.rate)


def sources_of(
    runs: Sequence[Path], num_scratch: int = 0, rate: float | None = None, times: int = 1
) -> list[Source]:
    """What to measure: runs, and so many policies without training that are like the first.

    The latter get ``times`` as many episodes as the runs.

    Raises:
        InputError: if two would be written to the same file.
    """
    sources = [Source(run, rate=rate) for run in runs]
    sources += [Source(runs[0], seed, rate, times) for seed in range(num_scratch)]
    names = [source.file for source in sources]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two runs have the folder name {Path(twice).stem}; rename one of them")
    return sources


def method_of(config: ExperimentConfig) -> str:
    """Name of the method that a run belongs to.

    ``joint`` is meta-training without inner steps, ``conditioned`` the same of a policy that is
    told of the objective, ``rewards`` that of a policy that is told what its rewards went with,
    ``one task`` PPO on a single task, and meta-training is called after its order and surrogate,
    with the number of inner steps: ``FOMAML K=1``, and what else differs from the defaults.
    """
    meta = config.training
    if not isinstance(meta, MAMLOptions):
        return "DeepRM" if config.training.algorithm == "reinforce" else "one task"
    told = bool(getattr(meta, "conditioned_on", ()))
    if meta.inner_steps == 0:
        return "conditioned" if told else "joint"
    if meta.adapt == "context":
        return "rewards, conditioned" if told else "rewards"
    notes = [
        f"{_ORDERS[meta.order, meta.surrogate]} K={meta.inner_steps}",
        *(["conditioned"] if told else []),
        *([meta.adapt] if meta.adapt != "all" else []),
        *([] if meta.learn_rates else ["fixed rates"]),
    ]
    return ", ".join(notes)


def trained_on(config: ExperimentConfig) -> str:
    """Family of tasks that a run was trained on, or the objective of its only task."""
    if isinstance(config.training, MAMLOptions):
        return config.training.family
    return config.task.build_objective().name
