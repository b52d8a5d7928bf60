"""From what a user names - heuristics, run directories, globs - to policies to compare."""

import glob
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from cluster_env.core.errors import InputError
from cluster_env.core.registry import unknown
from cluster_env.evaluation import SWEEPS, PolicyGroup, best, compare_policies, tune
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.heuristics import HEURISTICS, get_heuristic
from rllib_configs.schema import ExperimentConfig
from rllib_configs.task_schema import TaskSection
from tune_jobs.comparing.wording import mixture_of

if TYPE_CHECKING:
    from cluster_env.core.jobs import JobSet
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
class Scene:
    """What an spec is prepared for.

    Attributes:
        task: cluster, rules, load and all else.
        metric: name of the metric that counts.
        validation: draws the jobsets that a heuristic's number may be tuned on.
        warmup: steps at both ends of the arrival window whose jobs do not count.
    """

    task: TaskSection
    metric: str
    validation: "Callable[[], list[JobSet]]"
    warmup: int = 0


@dataclass(frozen=True)
class PolicySpec:
    """One line of a comparison.

    Attributes:
        key: short name, the same at all loads: ``tetris``.
        make: builds the policies for one scene, with the name that tables show:
            ``tetris*(0.002)``.
        learned: whether it was trained.
        num_seeds: training runs behind it; 1 for a heuristic.
        trained_load: load that it was trained at; NaN for a heuristic, or if there was not one.
        trained_trace: name of the trace that it was trained on; empty if it was none.
        trained_for: objective that it was trained for; empty for a heuristic.
        trained_mixture: name of the varied jobs that it was trained on; empty if it was none.
    """

    key: str
    make: Callable[[Scene], PolicyGroup]
    learned: bool = False
    num_seeds: int = 1
    trained_load: float = float("nan")
    trained_trace: str = ""
    trained_for: str = ""
    trained_mixture: str = ""


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
    """A heuristic; without its number, ``tetris`` and ``hold`` are tuned at each load anew.

    Raises:
        InputError: if there is no such heuristic, or its number is out of range.
    """
    get_heuristic(spec, Cluster())

    def fixed(scene: Scene) -> PolicyGroup:
        return PolicyGroup(spec, (get_heuristic(spec, scene.task.cluster.build()),))

    def tuned(scene: Scene) -> PolicyGroup:
        task = scene.task
        best = tune(
            spec,
            scene.validation(),
            task.cluster.build(),
            task.build_rules(),
            metric=scene.metric,
            max_time=task.max_time,
            warmup=scene.warmup,
        )
        return PolicyGroup(best.name, (best.policy,))

    return PolicySpec(spec, tuned if spec in SWEEPS else fixed)


def split_names(texts: Iterable[str]) -> list[str]:
    """Names from options that hold one each, or several with commas between."""
    return [name for text in texts for part in text.split(",") if (name := part.strip())]


def is_heuristic(name: str) -> bool:
    """Whether a name means a heuristic, with or without a number."""
    return name.partition(":")[0] in HEURISTICS.names()


def find_runs(names: Iterable[str]) -> list[Path]:
    """Folders of trained policies that paths and globs name, each once.

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
            matches = [path for path in matches if path.is_dir()]
            if not matches:
                raise InputError(f"no run directory matches '{name}'")
        found |= dict.fromkeys(matches)
    return list(found)


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
    """The key of a learned spec, for where the load that it was trained at stands beside."""
    name, at, rest = key.partition(_AT)
    decode = rest.partition(" ")[2]
    return f"{name} {decode}" if at and decode else name


def _learned(key: str, runs: Sequence[TrainedRun], decode: Decode) -> PolicySpec:
    name = key if decode == "sample" else f"{key} ({decode})"
    known: dict[str, PolicyGroup] = {}

    def make(scene: Scene) -> PolicyGroup:
        for run in runs:
            _check_cluster(run, scene.task)
        if decode != "tuned":
            return PolicyGroup(name, tuple(run.policy for run in runs))
        where = repr((scene.task, scene.metric, scene.warmup))
        if where not in known:
            known[where] = _tuned(key, [run.policy for run in runs], scene)
        return known[where]

    workload = runs[0].config.task.workload
    return PolicySpec(
        name,
        make,
        learned=True,
        num_seeds=len(runs),
        trained_load=float("nan") if workload.trace or workload.vary.load else workload.load,
        trained_trace=workload.trace_name,
        trained_for=runs[0].config.task.build_objective().name,
        trained_mixture=mixture_of(workload),
    )


def _tuned(key: str, policies: "Sequence[LearnedPolicy]", scene: Scene) -> PolicyGroup:
    """The policies with the void bias that suits a scene, and a name that says which."""
    members = [tuned_void_bias(policy, scene) for policy in policies]
    biases = sorted({member.void_bias for member in members})
    shown = f"{biases[0]:g}" if len(biases) == 1 else f"{biases[0]:g} to {biases[-1]:g}"
    return PolicyGroup(f"{key}*(void bias {shown})", tuple(members))


def tuned_void_bias(policy: "LearnedPolicy", scene: Scene) -> "LearnedPolicy":
    """A policy with the void bias that is best on validation jobsets, as numbers are tuned.

    How much it pays to hold jobs back depends on how long they keep arriving and how crowded the
    cluster gets, which a policy that was trained elsewhere cannot know; which job to start next
    carries over far better. One number sets it right, without training.

    Args:
        policy: of which kind is of no matter, but void is its last action.
        scene: what it is to suit; the first of equally good ones wins.
    """
    task = scene.task
    choices = [replace(policy, void_bias=bias, decode="argmax") for bias in VOID_BIASES]
    results = compare_policies(
        [PolicyGroup(f"{choice.void_bias:g}", (choice,)) for choice in choices],
        scene.validation(),
        task.cluster.build(),
        task.build_rules(),
        max_time=task.max_time,
        also=[scene.metric],
        warmup=scene.warmup,
    )
    winner = best(results, scene.metric)
    return next(choice for choice in choices if f"{choice.void_bias:g}" == winner.name)


def _check_cluster(run: TrainedRun, task: TaskSection) -> None:
    trained, present = run.config.task.cluster, task.cluster
    for name in type(present).model_fields:
        theirs, ours = getattr(trained, name), getattr(present, name)
        if theirs != ours:
            raise InputError(
                f"{run.path} was trained for another cluster, with {name} {theirs} instead of "
                f"{ours}; compare it apart from the others"
            )


def _experiment(config: ExperimentConfig) -> dict[str, Any]:
    """The part of a config that runs of the same kind share."""
    return {k: v for k, v in config.to_dict().items() if k not in _NOT_THE_EXPERIMENT}


def _distinct(runs: Sequence[HasConfig]) -> list[str]:
    """Short names that differ: the config's, with load or objective, or that of the folder."""
    names = [run.config.name for run in runs]
    with_jobs = [f"{run.config.name}{_AT}{_jobs(run.config.task)}" for run in runs]
    with_objective = [f"{run.config.name}-{_objective(run.config.task)}" for run in runs]
    choices = (names, with_jobs, with_objective)
    return [
        next((c[k] for c in choices if c.count(c[k]) == 1), run.path.resolve().name)
        for k, run in enumerate(runs)
    ]


def _objective(task: TaskSection) -> str:
    """A word for the objective of a task."""
    return task.objective if isinstance(task.objective, str) else "mixture"


def _jobs(task: TaskSection) -> str:
    """A word for the jobs of a task: their load or loads, or the name of the trace."""
    if task.workload.vary.load:
        low, high = task.workload.vary.load
        return f"{100 * low:.0f}-{high:.0%}"
    return task.workload.trace_name.replace(" ", "_") or f"{task.workload.load:.0%}"


def _no_such(name: str) -> InputError:
    looks_like_a_path = "/" in name or name.startswith(("~", "."))
    if looks_like_a_path:
        return InputError(f"there is no run directory {name}")
    return unknown("policy or run directory", name, HEURISTICS.names())
