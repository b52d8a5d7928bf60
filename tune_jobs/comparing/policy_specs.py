"""From what a user names - heuristics, run directories, globs - to policies to compare."""

import glob
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from cluster_env.core.errors import InputError
from cluster_env.core.registry import unknown
from cluster_env.evaluation import PolicyGroup, choose, tune, tuned_numbers
from cluster_env.worlds import WORLDS, World, get_heuristic, get_kind, kind_of
from rllib_configs.extensions import load_extensions
from rllib_configs.schema import ExperimentConfig
from tune_jobs.comparing.protocol import EvaluationProtocol
from tune_jobs.comparing.wording import short

if TYPE_CHECKING:
    from rllib_configs.policies import LearnedPolicy

Decode = Literal["sample", "argmax", "tuned"]
"""How learned policies choose: ``tuned`` is argmax with the void bias that is best on validation
jobsets, see `tuned_void_bias`."""

VOID_BIASES = (4.0, 2.0, 1.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -16.0)
"""What ``tuned`` tries, see `rllib_configs.policies.LearnedPolicy.void_bias`."""

# Sections that may differ between runs that are the same experiment with another seed.
_NOT_THE_EXPERIMENT = ("seed", "runs", "resources", "evaluation", "checkpoint", "tracking")
_GLOB = frozenset("*?[")
_AT = "@"


@dataclass(frozen=True)
class PolicySpec:
    """One line of a comparison.

    Attributes:
        key: short name, the same at all places of the axis: ``tetris``.
        make: builds the policies for one protocol, with the name that tables show:
            ``tetris*(0.002)``.
        learned: whether it was trained.
        num_seeds: training runs behind it; 1 for a heuristic.
        trained_at: value of the axis that it was trained at; NaN for a heuristic, and where the
            jobs varied or were recorded.
        trained_on: names the jobs that it was trained on; empty for a heuristic.
        trained_for: objective that it was trained for; empty for a heuristic.
    """

    key: str
    make: Callable[[EvaluationProtocol], PolicyGroup]
    learned: bool = False
    num_seeds: int = 1
    trained_at: float = float("nan")
    trained_on: str = ""
    trained_for: str = ""

    def check(self, protocol: EvaluationProtocol) -> None:
        """Makes sure, before anything is evaluated, that the policies can act.

        Raises:
            InputError: if there is no such heuristic, its number is out of range, or a policy was
                trained in a world that differs too much.
        """
        if self.learned:
            self.make(protocol)
        else:
            get_heuristic(self.key, protocol.task.world)


@dataclass(frozen=True)
class TrainedRun:
    """A trained policy and where it came from."""

    path: Path
    config: ExperimentConfig
    policy: "LearnedPolicy"

    @property
    def config_file(self) -> Path:
        """The file that the config was read from."""
        inside = self.path / "policy" / "config.yaml"
        return inside if inside.is_file() else self.path / "config.yaml"


class HasConfig(Protocol):
    """Anything that stands for a training run."""

    @property
    def path(self) -> Path:
        """Its folder."""

    @property
    def config(self) -> ExperimentConfig:
        """Its config."""


R = TypeVar("R", bound=HasConfig)


def heuristic_spec(spec: str) -> PolicySpec:
    """A heuristic; one that takes a number is tuned at each place anew if it is named without."""

    def make(protocol: EvaluationProtocol) -> PolicyGroup:
        world = protocol.task.world
        if not tuned_numbers(spec, world):
            return PolicyGroup(spec, (get_heuristic(spec, world),))
        best = tune(
            spec,
            protocol.tuning_jobsets(),
            world,
            metric=protocol.metric,
            warmup=protocol.warmup,
        )
        return PolicyGroup(best.name, (best.policy,))

    return PolicySpec(spec, make)


def split_names(texts: Iterable[str]) -> list[str]:
    """Names from options that hold one each, or several with commas between."""
    return [name for text in texts for part in text.split(",") if (name := part.strip())]


def is_heuristic(name: str) -> bool:
    """Whether a name means a heuristic of any world, with or without a number."""
    return name.partition(":")[0] in _heuristics()


def find_runs(names: Iterable[str]) -> list[Path]:
    """Folders of trained policies that paths and globs name, each once.

    A glob names only folders that hold a run or a policy: beside them stand MLflow's files.

    Raises:
        InputError: if a path does not exist, or a glob matches no folder.
    """
    found: dict[Path, None] = {}
    for name in names:
        if _GLOB.isdisjoint(name):
            if not Path(name).expanduser().is_dir():
                raise _no_such(name)
            matches = [Path(name).expanduser()]
        else:
            matches = sorted(Path(match) for match in glob.glob(str(Path(name).expanduser())))
            matches = [path for path in matches if _holds_run(path)]
            if not matches:
                raise InputError(f"no run directory matches '{name}'")
        found |= dict.fromkeys(matches)
    return list(found)


def _holds_run(path: Path) -> bool:
    return (path / "config.yaml").is_file() or (path / "policy").is_dir()


def load_runs(paths: Iterable[Path], decode: Decode) -> list[TrainedRun]:
    """Loads the policies of run directories.

    Raises:
        InputError: if a folder holds no policy, or a broken one.
    """
    paths = list(paths)
    if not paths:
        return []
    from rllib_configs.policies import load_policy

    loaded = []
    for path in paths:
        policy, config = load_policy(path, "argmax" if decode == "tuned" else decode)
        loaded.append(TrainedRun(path, config, policy))
    return loaded


def learned_specs(runs: Sequence[TrainedRun], decode: Decode) -> list[PolicySpec]:
    """One spec for each group of runs that differ in their seed alone."""
    return [_learned(key, group, decode) for key, group in group_by_experiment(runs)]


def group_by_experiment(runs: Sequence[R]) -> list[tuple[str, list[R]]]:
    """Groups runs that differ in their seed alone, under short names.

    Runs with the same seed too are copies of each other and not a sample of seeds, so they stay
    apart.
    """
    groups: dict[str, list[R]] = {}
    for run in runs:
        key = repr(_experiment(run.config))
        group = groups.setdefault(key, [])
        if any(run.config.seed == other.config.seed for other in group):
            group = groups.setdefault(f"{key} {run.path}", [])
        group.append(run)
    members = list(groups.values())
    return list(zip(_distinct([group[0] for group in members]), members, strict=True))


def learned_name(key: str) -> str:
    """The key of a learned spec, for where the jobs that it was trained on stand beside."""
    name, at, rest = key.partition(_AT)
    decode = rest.partition(" ")[2]
    return f"{name} {decode}" if at and decode else name


def _learned(key: str, runs: Sequence[TrainedRun], decode: Decode) -> PolicySpec:
    name = key if decode == "sample" else f"{key} ({decode})"
    known: dict[str, PolicyGroup] = {}

    def make(protocol: EvaluationProtocol) -> PolicyGroup:
        world = protocol.task.world
        for run in runs:
            _check_fits(run, world)
        if decode != "tuned":
            return PolicyGroup(name, tuple(run.policy.acting_in(world) for run in runs))
        where = repr((protocol.task, protocol.metric, protocol.warmup))
        if where not in known:
            policies = [run.policy.acting_in(world) for run in runs]
            known[where] = _tuned(key, policies, protocol)
        return known[where]

    trained_at, trained_on = _training_jobs(runs[0].config)
    return PolicySpec(
        name,
        make,
        learned=True,
        num_seeds=len(runs),
        trained_at=trained_at,
        trained_on=trained_on,
        trained_for=runs[0].config.task.build_objective().name,
    )


def _training_jobs(config: ExperimentConfig) -> tuple[float, str]:
    """Where on the axis a run was trained, or NaN, and its jobs in words."""
    try:
        task = config.task.build()
    except InputError:  # a trace may be gone by now, which the policy does not need
        return float("nan"), "jobs that are no longer there"
    fixed = task.has_axis and task.at_point() == task
    return task.position if fixed else float("nan"), task.kind.words(task)


def _tuned(
    key: str, policies: "Sequence[LearnedPolicy]", protocol: EvaluationProtocol
) -> PolicyGroup:
    """The policies with the void bias that suits a protocol, and a name that says which."""
    members = [tuned_void_bias(policy, protocol) for policy in policies]
    biases = sorted({member.void_bias for member in members})
    shown = f"{biases[0]:g}" if len(biases) == 1 else f"{biases[0]:g} to {biases[-1]:g}"
    return PolicyGroup(f"{key}*(void bias {shown})", tuple(members))


def tuned_void_bias(policy: "LearnedPolicy", protocol: EvaluationProtocol) -> "LearnedPolicy":
    """A policy with the void bias that is best on validation jobsets, as heuristics are tuned.

    How much it pays to hold jobs back depends on how long they keep arriving and how crowded the
    cluster gets, which a policy that was trained elsewhere cannot know. Which job to start next
    carries over far better. One number sets it right, without training.

    Args:
        policy: any whose last action is void.
        protocol: what it is to suit; the first of equally good ones wins.
    """
    choices = {
        f"{bias:g}": replace(policy, void_bias=bias, decode="argmax") for bias in VOID_BIASES
    }
    name = choose(
        choices,
        protocol.tuning_jobsets(),
        protocol.task.world,
        metric=protocol.metric,
        warmup=protocol.warmup,
    )
    return choices[name]


def _check_fits(run: TrainedRun, world: World) -> None:
    """Makes sure that a policy can act in a world.

    Raises:
        InputError: if it was trained in a world that differs in more than the kind lets policies
            transfer over.
    """
    trained = run.config.task.build_world()
    difference = _difference(trained, world, kind_of(world).transfers)
    if not difference and trained.state_space != world.state_space:
        difference = f"with states {trained.state_space} instead of {world.state_space}"
    if not difference and trained.feature_names != world.feature_names:
        difference = "with other features"
    if difference:
        raise InputError(
            f"{run.path} was trained for another world, {difference}; compare it apart from the "
            f"others"
        )


def _difference(trained: Any, world: Any, ignored: Sequence[str] = ()) -> str:
    """Names the first field in which two worlds differ; empty if they agree."""
    if type(trained) is not type(world):
        return f"{type(trained).__name__} instead of {type(world).__name__}"
    for entry in fields(world):
        theirs, ours = getattr(trained, entry.name), getattr(world, entry.name)
        if entry.name in ignored or theirs == ours:
            continue
        if is_dataclass(ours):
            return _difference(theirs, ours)
        return f"with {entry.name} {theirs} instead of {ours}"
    return ""


def _experiment(config: ExperimentConfig) -> dict[str, Any]:
    """The part of a config that runs of the same kind share."""
    return {k: v for k, v in config.to_dict().items() if k not in _NOT_THE_EXPERIMENT}


def _distinct(runs: Sequence[HasConfig]) -> list[str]:
    """Short names that differ: the config's, with jobs or objective, or that of the folder."""
    names = [run.config.name for run in runs]
    jobs = [short(_training_jobs(run.config)[1]) for run in runs]  # "70%", "10 to 184%", "jobs.csv"
    with_jobs = [
        f"{name}{_AT}{text.replace(' to ', '-').replace(' ', '_')}"
        for name, text in zip(names, jobs, strict=True)
    ]
    objectives = [run.config.task.objective for run in runs]
    with_objective = [
        f"{name}-{objective if isinstance(objective, str) else 'mixture'}"
        for name, objective in zip(names, objectives, strict=True)
    ]
    choices = (names, with_jobs, with_objective)
    return [
        next((c[k] for c in choices if c.count(c[k]) == 1), run.path.resolve().name)
        for k, run in enumerate(runs)
    ]


def _no_such(name: str) -> InputError:
    looks_like_a_path = "/" in name or name.startswith(("~", "."))
    if looks_like_a_path:
        return InputError(f"there is no run directory {name}")
    return unknown("policy or run directory", name, _heuristics())


def _heuristics() -> list[str]:
    """Names of the heuristics of all worlds, those of extensions included."""
    load_extensions()
    return [name for world in WORLDS.names() for name in get_kind(world).heuristics.names()]
