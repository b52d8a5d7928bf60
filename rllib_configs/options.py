"""What ``training`` may say: settings of every run, of the algorithm and of the network."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import ConfigDict, Field, create_model, field_validator, model_validator
from pydantic_core import PydanticCustomError

import rllib_configs.worlds  # noqa: F401  enters the networks of single worlds
from cluster_env.core.registry import Registry
from cluster_env.core.world import World
from cluster_env.worlds import shipped_policies
from rllib_configs.conditions import ConditionOption
from rllib_configs.extensions import load_extensions
from rllib_configs.registries import ALGORITHMS, NETWORKS, Algorithm, NetworkEntry
from rllib_configs.sections import Count, Positive, Section, Share, Width

UNITS = 32
"""As many pieces of work an iteration of a search has at least, where candidates are enough."""


class TrainingSection(Section):
    """How it is learned: what all algorithms share; `training_section` adds the options of one.

    The defaults are DeepRM's (section 4.1).
    """

    algorithm: str = "reinforce"
    """The learning algorithm; its options stand beside this."""
    network: str = "deeprm_mlp"
    """What is trained; its options stand beside this, too."""
    start: Path | None = None
    """Run whose weights this one begins with, or the name of a policy that comes with metasched, of
    the same network (a set_scorer can begin as an hpc_scorer, too); unset: drawn from the seed. A
    relative path counts from where the config is made."""
    iterations: Count = 1000
    """Parameter updates of a whole run."""
    jobsets: Annotated[int, Field(ge=1, le=100_000)] = 100
    """Jobsets of an iteration; with maml, of a stage of a task."""
    episodes_per_jobset: Annotated[int, Field(ge=2, le=10_000)] = 20
    """Episodes of each jobset in an iteration, over which the baseline averages."""
    gamma: Share = 1.0
    """Discount of a decision or of a time unit; see discount_per."""
    lr: Positive = 1e-3
    """Learning rate of the optimizer."""
    on_nan: Literal["stop", "skip"] = "stop"
    """What a gradient that is not finite leads to: the run stops and names the parameters, or the
    update is left out and counted as train/skipped_updates."""

    if TYPE_CHECKING:  # options of the chosen algorithm and network

        def __getattr__(self, name: str) -> Any: ...

    MORE_UNITS: ClassVar[str] = ""
    """What gives an iteration more units, in words; empty where nothing does."""

    @property
    def num_units(self) -> int | None:
        """Pieces of work of an iteration, for as many runners; None where that is not known."""
        return None

    def world_at(self, world: World, iteration: int | None) -> World:
        """The world as an iteration of the run meets it; that of the task, unless options differ.

        Args:
            world: the task's.
            iteration: None where policies are measured.
        """
        return world

    @field_validator("start")
    @classmethod
    def _make_start_absolute(cls, path: Path | None) -> Path | None:
        """Lets a run be resumed from elsewhere."""
        if path is None or str(path) in shipped_policies():
            return path
        return path.expanduser().absolute()

    @model_validator(mode="after")
    def _check_that_the_network_goes_with_the_algorithm(self) -> Self:
        algorithm, network = ALGORITHMS.get(self.algorithm), NETWORKS.get(self.network)
        fitting = [name for name in NETWORKS.names() if NETWORKS.get(name).scores_items]
        if algorithm.needs_item_scores and not network.scores_items:
            raise PydanticCustomError(
                "network",
                "the algorithm {algorithm} needs a network that scores items one by one "
                "({fitting}), but {network} was given",
                {
                    "algorithm": self.algorithm,
                    "network": self.network,
                    "fitting": ", ".join(fitting),
                },
            )
        if algorithm.needs_gradient and not network.has_gradient:
            searching = [name for name in ALGORITHMS.names() if not _needs_gradient(name)]
            raise PydanticCustomError(
                "network",
                "the network {network} has no gradient, which the algorithm {algorithm} needs; "
                "take the algorithm {searching}",
                {
                    "algorithm": self.algorithm,
                    "network": self.network,
                    "searching": " or ".join(searching),
                },
            )
        if getattr(self, "conditioned_on", ()) and not algorithm.varies_objective:
            varying = [name for name in ALGORITHMS.names() if ALGORITHMS.get(name).varies_objective]
            raise PydanticCustomError(
                "conditioned_on",
                "a policy can be told of the objective where it learns from several, by the "
                "algorithm {varying}, but {algorithm} was given, which learns from one; leave out "
                "training.conditioned_on",
                {"algorithm": self.algorithm, "varying": " or ".join(varying)},
            )
        both = (algorithm.options.model_fields, network.options.model_fields)
        if getattr(self, "critic", False) and not all("critic" in known for known in both):
            raise PydanticCustomError(
                "critic",
                "a critic goes with an algorithm and a network that know one ({algorithms}; "
                "{networks}), but {algorithm} and {network} were given",
                {
                    "algorithm": self.algorithm,
                    "network": self.network,
                    "algorithms": ", ".join(_with_option(ALGORITHMS, "critic")),
                    "networks": ", ".join(_with_option(NETWORKS, "critic")),
                },
            )
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles by names, because no module holds the class of a combination."""
        return _restored, (self.algorithm, self.network, self.__getstate__())


class BatchedOptions(Section):
    """Options of algorithms that learn from jobsets of one task."""

    fresh_jobsets: bool = False
    """Whether each iteration draws new jobsets instead of repeating the same ones."""
    window_curriculum: Share = 0.0
    """Share of the run, at its beginning, that keeps to the shortest of the windows that vary: to
    hold back long jobs pays soonest there, and is learned there."""
    jobsets_per_unit: Count = 5
    """Jobsets that are simulated side by side by a runner; fewer make more units of work, for more
    runners. Results depend on it in their last digits only."""

    MORE_UNITS: ClassVar[str] = "set training.jobsets_per_unit lower"

    if TYPE_CHECKING:
        jobsets: int
        episodes_per_jobset: int

    @property
    def num_units(self) -> int:
        """Pieces of work of an iteration."""
        return -(-self.jobsets // self.jobsets_per_unit)

    @model_validator(mode="after")
    def _check_jobsets(self) -> Self:
        if self.window_curriculum and not self.fresh_jobsets:
            raise PydanticCustomError(
                "window_curriculum",
                "window_curriculum changes the jobsets in the course of the run, so it needs "
                "fresh_jobsets, which is off",
            )
        return self


class ReinforceOptions(BatchedOptions):
    """REINFORCE with RMSProp."""

    rmsprop_decay: Share = 0.9
    """Decay of RMSProp's mean square."""
    rmsprop_eps: Positive = 1e-9
    """Added to the mean square under RMSProp's root."""
    discount_per: Literal["decision", "time_unit"] = "decision"
    """What gamma discounts by: each decision, or each unit of time that passes."""


class ClippedOptions(Section):
    """Options of algorithms that make several passes with PPO's clipped objective."""

    epochs: Count = 3
    """Passes over the decisions of an iteration; with maml, over its tasks."""
    clip: Positive = 0.2
    """How far the ratio of new to old probability counts."""
    entropy: Annotated[float, Field(ge=0)] = 0.02
    """Bonus for entropy at the start; it falls to 0 in the course of the run. With maml it then
    follows entropy_target."""
    lr_end_share: Share = 0.05
    """Share of the learning rate that is left at the end of the run."""
    discount_per: Literal["decision", "time_unit"] = "time_unit"
    """What gamma discounts by: each decision, or each unit of time that passes."""


class LimitsSection(Section):
    """Limits by the name of their metric; unset, there is none."""

    utilization: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Share by which utilization may be lower, while jobs arrive."""
    utilization_to_end: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Share by which utilization up to the last finish may be lower."""
    wait: Annotated[float, Field(ge=0)] | None = None
    """Share by which the mean wait may be longer."""
    longest_wait: Annotated[float, Field(ge=0)] | None = None
    """Share by which the longest wait may be longer."""
    class_deviation: Annotated[float, Field(ge=0)] | None = None
    """Share by which total times may deviate more within a class, in the world panda."""
    jain_index: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Share by which Jain's index of slowdowns may be lower, in the world panda."""

    def given(self) -> dict[str, float]:
        """Those that are set."""
        return {name: value for name, value in self if value is not None}


class MultipliersSection(Section):
    """Multipliers of limits by name of the metric; unset, 5, or 0.05 at first where they adapt."""

    utilization: Positive | None = None
    """That of utilization, while jobs arrive."""
    utilization_to_end: Positive | None = None
    """That of utilization up to the last finish."""
    wait: Positive | None = None
    """That of the mean wait."""
    longest_wait: Positive | None = None
    """That of the longest wait."""
    class_deviation: Positive | None = None
    """That of the deviation within a class."""
    jain_index: Positive | None = None
    """That of Jain's index."""

    def given(self) -> dict[str, float]:
        """Those that are set."""
        return {name: value for name, value in self if value is not None}


def candidate_groups(num_units: int, num_candidates: int) -> int:
    """How many groups the candidates of a search are cut into.

    Args:
        num_units: that its jobsets are cut into.
        num_candidates: that play each of them.
    """
    return min(num_candidates, -(-UNITS // num_units))


class EvolutionOptions(BatchedOptions):
    """CMA-ES: candidates are drawn around a mean, which moves to the best of them.

    Each of an iteration's jobsets is played by every candidate, so that episodes_per_jobset is
    their number.
    """

    fresh_jobsets: bool = True
    """Whether each iteration draws new jobsets instead of repeating the same ones."""
    jobsets_per_unit: Count = 2
    """Jobsets that are played side by side by all candidates; no number depends on it."""
    step_size: Positive = 0.5
    """Standard deviation of the first candidates' parameters around the first mean."""
    family: str = ""
    """Name of a family of jobsets of the world, each with a machine of its own; unset: the task's
    jobs. Its jobsets have as many jobs as the task's, or 512."""
    validate_every: Count = 5
    """Iterations between two trials of the mean on validation jobsets; the best becomes the
    policy."""
    validation_jobsets: Count = 64
    """How many; of the family if there is one."""
    pooled: bool = False
    """Whether a candidate's cost is the mean over all jobsets, as comparisons have it, so that
    crowded ones count most; else the geometric mean, where each counts by its ratio."""
    limits: LimitsSection = LimitsSection()
    """By what share a metric may be worse than the reference's on the same jobset."""
    multipliers: MultipliersSection = MultipliersSection()
    """What a limit costs that is not kept, times ln(value / limit); beside ln(objective's cost)."""
    limits_hold: Literal["each", "mean"] = "each"
    """Whether limits hold on each jobset, or on the mean of all: more on one is then made good by
    less on another."""
    multiplier_rate: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share by which a multiplier rises in an iteration, at most, while the mean of the candidates
    is beyond its limit, and falls while it is not; 0: multipliers stay."""
    reference: str = ""
    """Heuristic whose metrics the limits are relative to; unset: the world's first baseline."""

    @property
    def num_units(self) -> int:
        """Pieces of work of an iteration, for some jobsets and some candidates each."""
        return candidate_groups(super().num_units, self.episodes_per_jobset) * super().num_units

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        limits = self.limits.given()
        unlimited = [name for name in self.multipliers.given() if name not in limits]
        if unlimited:
            raise PydanticCustomError(
                "multipliers",
                "multipliers say what a limit costs that is not kept, but {name} has no limit; "
                "limits are {limits}",
                {"name": unlimited[0], "limits": ", ".join(limits) or "none"},
            )
        if self.multiplier_rate and not limits:
            raise PydanticCustomError(
                "multiplier_rate",
                "a multiplier_rate lets multipliers of limits rise and fall, but there are no "
                "limits, so leave it out or set training.limits",
            )
        if self.reference and not limits:
            raise PydanticCustomError(
                "reference",
                "a reference is what limits are relative to, but there are none, so leave out "
                "training.reference or set training.limits",
            )
        return self


class CriticOption(Section):
    """An option of algorithms and networks that know a critic; it takes both."""

    critic: bool = False
    """Whether a value of states is learned, too, which long windows need."""


class PPOOptions(CriticOption, ClippedOptions, BatchedOptions):
    """PPO with Adam."""

    minibatches: Count = 4
    """Updates of a pass."""
    equalize: Share = 0.0
    """Share of an iteration's jobsets, those whose returns vary most, that are scaled down to the
    others; for loads and windows that differ."""
    gae_lambda: Share = 0.6
    """How far advantages trust rewards rather than the critic, if there is one."""
    joint: Share = 0.0
    """Where many agents decide in an episode: the share of what all of them get from then on in
    what an agent learns from; the rest is what it gets by itself."""


class SetScorerSection(ConditionOption, CriticOption):
    """A scorer of items of any number, under a mask."""

    hidden: Width = 20
    """Units of each hidden layer."""
    show_window: bool = False
    """Whether the network is told the length of the arrival window, for windows that differ."""
    skip_connection: bool = False
    """Whether an item's features also count directly in its score, by weights that start at 0: what
    a few gradient steps can learn from few episodes."""


ALGORITHMS.register("reinforce")(
    Algorithm(ReinforceOptions, "rllib_configs.algorithms.reinforce:ReinforceConfig")
)
ALGORITHMS.register("ppo")(Algorithm(PPOOptions, "rllib_configs.algorithms.ppo:BatchedPPOConfig"))
ALGORITHMS.register("evolution")(
    Algorithm(
        EvolutionOptions,
        "rllib_configs.algorithms.evolution:EvolutionConfig",
        needs_gradient=False,
        varies_objective=True,
        prepare="rllib_configs.search_problem:prepare",
    )
)
NETWORKS.register("set_scorer")(
    NetworkEntry(SetScorerSection, "rllib_configs.networks.set_scorer:NETWORK", scores_items=True)
)


def training_section(
    algorithm: str = "reinforce", network: str = "deeprm_mlp"
) -> type[TrainingSection]:
    """The section of an algorithm and a network: what all share, and the options of both.

    Raises:
        InputError: if there is no such algorithm or network.
    """
    return _composed(algorithm, network, ALGORITHMS.get(algorithm), NETWORKS.get(network))


def owners(option: str) -> list[str]:
    """Who has an option: ``the algorithms ppo and maml``."""
    told = []
    registry: Registry[Any]
    for registry in (ALGORITHMS, NETWORKS):
        names = _with_option(registry, option)
        if names:
            kind = registry.kind if len(names) == 1 else f"{registry.kind}s"
            told.append(f"the {kind} {' and '.join(names)}")
    return told


def goes_with(option: str, section: type[TrainingSection]) -> bool:
    """Whether the algorithm and the network of a section can use an option that others have."""
    names = [section.model_fields[kind].default for kind in ("algorithm", "network")]
    entries = (ALGORITHMS.get(names[0]), NETWORKS.get(names[1]))
    if option in CriticOption.model_fields:
        return all(option in entry.options.model_fields for entry in entries)
    return option in section.model_fields or not owners(option)


def _with_option(registry: Registry[Any], option: str) -> list[str]:
    return [name for name in registry.names() if option in registry.get(name).options.model_fields]


class _Composed(TrainingSection):
    """The last base of what `_composed` makes: all keys have their words by then."""

    model_config = ConfigDict(use_attribute_docstrings=False)


def _needs_gradient(algorithm: str) -> bool:
    return ALGORITHMS.get(algorithm).needs_gradient


@cache
def _composed(
    algorithm: str, network: str, of_algorithm: Algorithm, of_network: NetworkEntry
) -> type[TrainingSection]:
    made: Any = create_model(
        "TrainingSection",
        __base__=cast("Any", (of_network.options, of_algorithm.options, _Composed)),
        __module__=__name__,
        algorithm=(str, Field(algorithm, description="The learning algorithm.")),
        network=(str, Field(network, description="What is trained.")),
    )
    section: type[TrainingSection] = made
    return section


def _restored(algorithm: str, network: str, state: dict[Any, Any]) -> TrainingSection:
    load_extensions()
    kind = training_section(algorithm, network)
    made = kind.__new__(kind)
    made.__setstate__(state)
    return made
