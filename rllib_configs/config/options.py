"""What ``training`` may say: settings of every run, of the algorithm and of the network."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    create_model,
    field_validator,
    model_validator,
)

from cluster_env.core.errors import InputError
from cluster_env.core.registry import Registry
from cluster_env.core.world import World
from cluster_env.evaluation import get_metric
from cluster_env.worlds import shipped_policies
from rllib_configs.config.extensions import load_extensions
from rllib_configs.config.registries import (
    ALGORITHMS,
    CHOICES,
    NETWORKS,
    Algorithm,
    ConditionOption,
    NetworkEntry,
)
from rllib_configs.config.sections import (
    ADJUSTABLE,
    Count,
    Positive,
    Section,
    Share,
    Width,
    restored,
)

UNITS = 32
"""As many pieces of work an iteration of a search has at least, where candidates are enough."""

Rate = Annotated[Positive, ADJUSTABLE]
NonNegative = Annotated[float, Field(ge=0)]
AdjustableShare = Annotated[Share, ADJUSTABLE]
AdjustableCount = Annotated[Count, ADJUSTABLE]


_BY_METRIC = BeforeValidator(  # null takes one out
    lambda table: (
        {name: value for name, value in table.items() if value is not None}
        if isinstance(table, dict)
        else table
    )
)

_ONE_OR_MORE = BeforeValidator(lambda value: (value,) if isinstance(value, str | Path) else value)


class TrainingSection(Section):
    """How it is learned: what all algorithms share; `training_section` adds the options of one.

    The defaults are DeepRM's (section 4.1).
    """

    algorithm: str = "reinforce"
    """Learning algorithm; its own options are further keys of training."""
    network: str = "deeprm_mlp"
    """Network that is trained; its own options are further keys of training."""
    start: Path | None = None
    """Run, or name of a shipped policy, whose weights the new run starts from; unset: random
    weights. The network must be the same, but a set_scorer can also start from an hpc_scorer.
    Relative paths start at the current directory."""
    iterations: Count = 1000
    """Number of training iterations of a whole run."""
    jobsets: Annotated[int, Field(ge=1, le=100_000)] = 100
    """Jobsets per iteration; with maml, per stage of a task."""
    episodes_per_jobset: Annotated[int, Field(ge=2, le=10_000)] = 20
    """Episodes per jobset and iteration; their mean return is the baseline. With evolution, the
    number of candidates."""
    gamma: AdjustableShare = 1.0
    """Discount factor per decision or per unit of time, as discount_per chooses."""
    lr: Rate = 1e-3
    """Learning rate of the optimizer."""
    on_nan: Literal["stop", "skip"] = "stop"
    """What happens when a gradient is not finite. stop: the run ends and names the parameters;
    skip: the update is left out and counted in train/skipped_updates."""

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
        if path is None:
            return path
        return path if str(path) in shipped_policies() else path.expanduser().absolute()

    @model_validator(mode="after")
    def _check_that_the_network_goes_with_the_algorithm(self) -> Self:
        algorithm, network = ALGORITHMS.get(self.algorithm), NETWORKS.get(self.network)
        if algorithm.needs_item_scores and not network.scores_items:
            raise InputError(
                f"the algorithm {self.algorithm} needs a network that scores items one by one "
                f"({_names(NETWORKS, lambda one: one.scores_items)}), but {self.network} was given"
            )
        scored = algorithm.needs_item_scores and network.has_score_gradient
        if algorithm.needs_gradient and not (network.has_gradient or scored):
            raise InputError(
                f"the network {self.network} has no gradient, which the algorithm "
                f"{self.algorithm} needs; take the algorithm "
                f"{_names(ALGORITHMS, lambda one: not one.needs_gradient, ' or ')}"
            )
        if getattr(self, "conditioned_on", ()) and not algorithm.varies_objective:
            raise InputError(
                "training.conditioned_on needs an algorithm that learns from several "
                "objectives "
                f"({_names(ALGORITHMS, lambda one: one.varies_objective, ' or ')}), but "
                f"{self.algorithm} learns from one; leave out training.conditioned_on"
            )
        if getattr(self, "critic", False) and not goes_with("critic", type(self)):
            raise InputError(
                "training.critic needs an algorithm and a network that support it "
                f"({_names(ALGORITHMS, _has('critic'))}; "
                f"{_names(NETWORKS, _has('critic'))}), but {self.algorithm} and "
                f"{self.network} were given"
            )
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """See `restored`."""
        return restored, (training_section, (self.algorithm, self.network), self.__getstate__())


class BatchedOptions(Section):
    """Options of algorithms that learn from jobsets of one task."""

    fresh_jobsets: bool = False
    """Whether each iteration draws new jobsets instead of repeating the same ones."""
    window_curriculum: Share = 0.0
    """Share of the run, from its beginning, that trains only on the shortest of the arrival windows
    that vary. Delaying long jobs pays soonest in short windows, so it is learned there."""
    jobsets_per_unit: Count = 5
    """Jobsets that a runner simulates side by side, as one unit of work. Smaller values give more
    units for more runners and change only the last digits of results."""

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
            raise InputError(
                "window_curriculum changes the jobsets in the course of the run, so it needs "
                "fresh_jobsets, which is off"
            )
        return self


class ReinforceOptions(BatchedOptions):
    """REINFORCE with RMSProp."""

    rmsprop_decay: AdjustableShare = 0.9
    """Decay rate of RMSProp's mean of squared gradients."""
    rmsprop_eps: Rate = 1e-9
    """Constant that RMSProp adds to the mean square, under the root."""
    discount_per: Literal["decision", "time_unit"] = "decision"
    """Whether gamma discounts each decision (decision) or each unit of time that passes
    (time_unit)."""


class ClippedOptions(Section):
    """Options of algorithms that make several passes with PPO's clipped objective."""

    epochs: AdjustableCount = 3
    """Passes over the decisions of an iteration; with maml, over its tasks."""
    clip: Rate = 0.2
    """PPO's clip range: ratios of new to old probability count from 1 - clip to 1 + clip."""
    entropy: Annotated[NonNegative, ADJUSTABLE] = 0.02
    """Coefficient of the entropy bonus at the start of the run. It falls to 0 during the run; with
    maml it follows entropy_target instead."""
    lr_end_share: AdjustableShare = 0.05
    """Learning rate at the end of the run, as a share of lr."""
    discount_per: Literal["decision", "time_unit"] = "time_unit"
    """Whether gamma discounts each decision (decision) or each unit of time that passes
    (time_unit)."""


def candidate_groups(num_units: int, num_candidates: int) -> int:
    """How many groups the candidates of a search are cut into.

    Args:
        num_units: that its jobsets are cut into.
        num_candidates: that play each of them.
    """
    return min(num_candidates, -(-UNITS // num_units))


class SitesSection(Section):
    """Sites of the family real-sites."""

    logs: Annotated[tuple[Path, ...], _ONE_OR_MORE] = ()
    """Job logs of sites whose headers name their processors: files, or folders with .swf and
    .swf.gz files."""
    leave_out: Annotated[tuple[str, ...], _ONE_OR_MORE] = ()
    """Names of sites that are not trained on, which are those of their files without ending."""
    generated: Share = 0.5
    """Share of the jobsets that come from drawn sites, as in the family any-site."""
    bound: NonNegative = 2.0
    """Bound on waits at each site, as a multiple of the longest wait under fcfs:easy; 0: none.
    task.world.max_wait sets one for all of them."""

    @field_validator("logs")
    @classmethod
    def _make_paths_absolute(cls, logs: tuple[Path, ...]) -> tuple[Path, ...]:
        """Lets a run be resumed from elsewhere."""
        return tuple(path.expanduser().absolute() for path in logs)


class AdaptationSection(Section):
    """Inner search that adapts each candidate before its cost counts.

    That is ES-MAML (Song et al., ICLR 2020), here with CMA-ES in both searches. The cost is that of
    the inner search's mean on a jobset that the inner search has not played.
    """

    iterations: Annotated[int, Field(ge=0, le=1000)] = 0
    """Iterations of the inner search, each on one new jobset; 0: candidates are not adapted."""
    candidates: Annotated[int, Field(ge=2, le=1000)] = 5
    """Candidates of an inner iteration, so that an inner search plays iterations x candidates
    episodes."""
    step_size: Positive = 0.2
    """Initial step size of the inner search."""
    tasks: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = Field(default_factory=dict)
    """Settings of the tasks that a candidate adapts to, by the key below task:
    training.adaptation.tasks={workload.shift: [bursts, sizes]} for two. Successive jobsets belong
    to successive tasks. Unset: the task itself."""

    @model_validator(mode="after")
    def _check_tasks(self) -> Self:
        if len({len(values) for values in self.tasks.values()}) > 1:
            raise InputError(
                "training.adaptation.tasks needs as many values of each key, one a task, but "
                + ", ".join(f"{key} has {len(values)}" for key, values in self.tasks.items())
            )
        if self.tasks and not self.iterations:
            raise InputError(
                "training.adaptation.tasks are adapted to by an inner search, so set "
                "training.adaptation.iterations to 1 or more"
            )
        return self

    @property
    def num_tasks(self) -> int:
        """Tasks that candidates adapt to."""
        return max((len(values) for values in self.tasks.values()), default=1)


class EvolutionOptions(BatchedOptions):
    """CMA-ES: candidates are drawn around a mean, which moves to the best of them.

    Each of an iteration's jobsets is played by every candidate, so that episodes_per_jobset is
    their number.
    """

    fresh_jobsets: bool = True
    """Whether each iteration draws new jobsets instead of repeating the same ones."""
    jobsets_per_unit: Count = 2
    """Jobsets that are simulated side by side for all candidates, as one unit of work; results do
    not depend on it."""
    step_size: Positive = 0.5
    """Initial step size of CMA-ES: standard deviation of the first candidates' parameters around
    the first mean."""
    family: str = ""
    """Name of one of the world's families of jobsets, in which each jobset has its own machine;
    unset: the task's jobs. A jobset has as many jobs as the task's, or 512 if those have no fixed
    number. real-sites takes windows of the logs of training.sites, with as many jobs on average."""
    sites: SitesSection = SitesSection()
    adaptation: AdaptationSection = AdaptationSection()
    validate_every: Count = 5
    """Iterations between two evaluations of the search's mean on validation jobsets; the best mean
    becomes the policy."""
    validation_jobsets: Count = 64
    """Number of validation jobsets that choose the policy; they come from training.family if it is
    set."""
    pooled: bool = False
    """true: a candidate's cost is the mean over all jobsets, as in comparisons, so crowded jobsets
    count most. false: it is the geometric mean, in which each jobset counts by its ratio."""
    limits: Annotated[dict[str, NonNegative], _BY_METRIC] = Field(default_factory=dict)
    """Largest share by which a metric may be worse than the reference's on the same jobset, by
    metric: training.limits.wait=0.25 allows 25 %. Below 1 for metrics that should be high."""
    multipliers: Annotated[dict[str, Positive], _BY_METRIC] = Field(default_factory=dict)
    """Weight of a violated limit, by metric: weight x ln(value / limit) is added to ln(cost).
    Unset: 5, or at first 0.05 where training.multiplier_rate is above 0."""
    limits_hold: Literal["each", "mean"] = "each"
    """Whether each jobset must keep the limits (each) or only the mean of all jobsets (mean), so
    that a violation on one can be made good on another."""
    multiplier_rate: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Largest share by which a multiplier changes per iteration: it rises while the mean of the
    candidates violates its limit, and falls otherwise. 0: multipliers are constant."""
    reference: str = ""
    """Heuristic whose metrics training.limits refers to, such as sjf:skip; unset: the world's first
    baseline. A bound on waits (task.world.max_wait) holds for it, too."""

    @property
    def num_units(self) -> int:
        """Pieces of work of an iteration, for some jobsets and some candidates each."""
        return candidate_groups(super().num_units, self.episodes_per_jobset) * super().num_units

    @field_validator("limits")
    @classmethod
    def _check_that_limits_can_be_kept(cls, limits: dict[str, float]) -> dict[str, float]:
        for name, worse in limits.items():
            if get_metric(name).higher_is_better and worse >= 1:
                raise InputError(
                    f"the limit of {name} must be below 1, because more of it is better, "
                    f"but {worse:g} was given"
                )
        return limits

    @model_validator(mode="after")
    def _check_adaptation(self) -> Self:
        for name in ("family", "conditioned_on", "multiplier_rate"):
            if self.adaptation.iterations and getattr(self, name, None):
                raise InputError(
                    f"training.adaptation searches with one task and constant multipliers, but "
                    f"training.{name} was given; leave out one of them"
                )
        return self

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        unlimited = [name for name in self.multipliers if name not in self.limits]
        if unlimited:
            raise InputError(
                f"training.multipliers weigh violated limits, but {unlimited[0]} has no "
                f"limit; limits are {', '.join(self.limits) or 'none'}"
            )
        if self.multiplier_rate and not self.limits:
            raise InputError(
                "training.multiplier_rate adapts the multipliers of limits, but there are "
                "no limits; leave it out or set training.limits"
            )
        if self.reference and not self.limits:
            raise InputError(
                "training.reference is the heuristic that limits refer to, but there are "
                "no limits; leave it out or set training.limits"
            )
        return self


class CriticOption(Section):
    """An option of algorithms and networks that know a critic; it takes both."""

    critic: bool = False
    """Whether a value function is learned, too, which long windows need."""


class PPOOptions(CriticOption, ClippedOptions, BatchedOptions):
    """PPO with Adam."""

    minibatches: AdjustableCount = 4
    """Minibatches per pass, with one update each."""
    equalize: AdjustableShare = 0.0
    """Share of an iteration's jobsets, those whose returns vary most, whose advantages are scaled
    down to the spread of the others. For loads and windows that vary."""
    gae_lambda: AdjustableShare = 0.6
    """Lambda of generalized advantage estimation, where a critic is trained: 0 trusts the critic, 1
    the rewards."""
    joint: Share = 0.0
    """Weight of the future rewards of all agents in what an agent learns from; its own rewards have
    the rest. For worlds in which several agents decide in an episode."""


class SetScorerSection(ConditionOption, CriticOption):
    """A scorer of items of any number, under a mask."""

    hidden: Width = 20
    """Units per hidden layer."""
    show_window: bool = False
    """Whether the network sees the length of the arrival window, for windows that vary."""
    skip_connection: bool = False
    """Whether an item's features also enter its score directly, by weights that start at 0. A few
    gradient steps can learn these from few episodes."""


class DenseSection(CriticOption):
    """A multilayer perceptron on an observation of the world."""

    observation: str = "compact"
    """Name of the environment's observation that the network sees: image, compact, or another one
    of the world's that is an array."""
    layers: Annotated[tuple[Width, ...], Field(min_length=1)] = (64, 64)
    """Units of each hidden layer, of the policy and of the critic, which share none."""


ALGORITHMS.register("reinforce")(
    Algorithm(ReinforceOptions, "rllib_configs.algorithms.reinforce:ReinforceConfig")
)
ALGORITHMS.register("ppo")(Algorithm(PPOOptions, "rllib_configs.algorithms.ppo:PPOConfig"))
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
NETWORKS.register("dense")(NetworkEntry(DenseSection, "rllib_configs.networks.dense:NETWORK"))


def training_section(
    algorithm: str = "reinforce", network: str = "deeprm_mlp"
) -> type[TrainingSection]:
    """The section of an algorithm and a network: what all share, and the options of both.

    Raises:
        InputError: if there is no such algorithm or network.
    """
    load_extensions()
    return _composed(algorithm, network, ALGORITHMS.get(algorithm), NETWORKS.get(network))


def owners(option: str) -> list[str]:
    """Who has an option: ``the algorithms ppo and maml``."""
    found = []
    for registry in CHOICES:
        names = _names(registry, _has(option), " and ")
        if names:
            found.append(f"the {registry.kind}{'s' if ' and ' in names else ''} {names}")
    return found


def goes_with(option: str, section: type[TrainingSection]) -> bool:
    """Whether the algorithm and the network of a section can use an option that others have."""
    if option in CriticOption.model_fields:
        entries = (
            registry.get(section.model_fields[registry.kind].default) for registry in CHOICES
        )
        return all(map(_has(option), entries))
    return option in section.model_fields or not owners(option)


def adjustable_settings() -> list[str]:
    """Keys of the settings that may change in the middle of a run, of whatever is registered."""
    load_extensions()
    chosen = [registry.get(name).options for registry in CHOICES for name in registry.names()]
    keys = (
        f"training.{name}"
        for section in (TrainingSection, *chosen)
        for name, field in section.model_fields.items()
        if ADJUSTABLE in field.metadata
    )
    return list(dict.fromkeys(keys))


def _has(option: str) -> Callable[[Any], bool]:
    return lambda entry: option in entry.options.model_fields


def _names(registry: Registry[Any], fits: Callable[[Any], bool], joint: str = ", ") -> str:
    """Names of those of the registered that fit, whatever was imported first."""
    return joint.join(sorted(name for name in registry.names() if fits(registry.get(name))))


class _Composed(TrainingSection):
    """The last base of what `_composed` makes: all keys have their words by then."""

    model_config = ConfigDict(use_attribute_docstrings=False)


@cache
def _composed(
    algorithm: str, network: str, of_algorithm: Algorithm, of_network: NetworkEntry
) -> type[TrainingSection]:
    section: Any = create_model(
        "TrainingSection",
        __base__=cast("Any", (of_network.options, of_algorithm.options, _Composed)),
        __module__=__name__,
        algorithm=(str, Field(algorithm, description="The learning algorithm.")),
        network=(str, Field(network, description="What is trained.")),
    )
    return cast("type[TrainingSection]", section)
