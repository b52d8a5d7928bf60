"""Trained policies of run directories: found by paths and globs, loaded, grouped and named."""

import glob
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from cluster_env.core.errors import InputError
from cluster_env.core.registry import unknown
from cluster_env.core.world import differences
from cluster_env.worlds import (
    WORLDS,
    World,
    get_spec,
    policy_in,
    shipped_policies,
    spec_of,
)
from rllib_configs.config.extensions import load_extensions
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.registry import network_of
from rllib_configs.policy_files import LearnedPolicy, load_policy
from tune_jobs.measuring.wording import short
from tune_jobs.terminal.files import digest

logger = logging.getLogger(__name__)

Decode = Literal["sample", "argmax", "tuned"]
"""How learned policies choose: ``tuned`` is argmax with the void bias that is best on validation
jobsets, see `tune_jobs.measuring.policy_specs.tuned_void_bias`."""

AT = "@"
"""Between the name of a trained policy and the jobs that it was trained on."""

# Sections that may differ between runs that are the same experiment with another seed.
_NOT_THE_EXPERIMENT = ("seed", "runs", "resources", "evaluation", "checkpoint", "tracking")
_GLOB = frozenset("*?[")
_TRACES_OF_TRAINING = ("policy", "weights.pt", "weights.json", "metrics.csv", "checkpoints")


@dataclass(frozen=True)
class TrainedRun:
    """A trained policy and where it came from."""

    path: Path
    config: ExperimentConfig
    policy: LearnedPolicy

    @property
    def config_file(self) -> Path:
        """The file that the config was read from."""
        inside = self.path / "policy" / "config.yaml"
        return inside if inside.is_file() else self.path / "config.yaml"

    def content(self) -> list[str]:
        """Digests of the files that hold it."""
        return content_of(self.path)


def content_of(folder: Path) -> list[str]:
    """Digests of the files of a policy."""
    files = ("config.yaml", "weights.json", "policy/*")
    return [digest(path) for name in files for path in sorted(folder.glob(name))]


class HasConfig(Protocol):
    """Anything that stands for a training run."""

    @property
    def path(self) -> Path:
        """Its folder."""

    @property
    def config(self) -> ExperimentConfig:
        """Its config."""


R = TypeVar("R", bound=HasConfig)


def is_heuristic(name: str) -> bool:
    """Whether a name means a heuristic of any world, with or without a number."""
    return name.partition(":")[0] in _heuristics()


def is_folder(name: str) -> bool:
    """Whether there is a folder of exactly that name."""
    try:
        return Path(name).expanduser().is_dir()
    except (OSError, RuntimeError, ValueError):  # too long for a name, no such user, a null byte
        return False


def find_runs(
    names: Iterable[str], heuristics: Callable[[], Iterable[str]] | None = None
) -> list[Path]:
    """Folders of trained policies that paths, globs and names name, each once.

    Names are those of policies that come with metasched (`shipped_policies`). A glob names only
    folders that hold a run or a policy: beside them stand MLflow's files. What a killed process has
    left before its first iteration is passed over with a warning.

    Args:
        names: paths, globs and names.
        heuristics: gives those that may have been meant; by default those of all worlds.

    Raises:
        InputError: if a path does not exist, or a glob matches no folder.
    """
    paths: dict[Path, None] = {}
    shipped = shipped_policies()
    for name in names:
        if name in shipped:
            paths[shipped[name]] = None
        elif _GLOB.isdisjoint(name) or is_folder(name):  # a folder's own name may look like a glob
            if not Path(name).expanduser().is_dir():
                if "/" in name or name.startswith(("~", ".")):
                    raise InputError(f"there is no run directory {name}")
                if is_heuristic(name) and heuristics is None:
                    raise InputError(
                        f"{name} is a heuristic, but a trained policy is needed here: a run "
                        f"directory, or one of {', '.join(sorted(shipped))}"
                    )
                meant = [*(heuristics or _heuristics)(), *shipped]
                raise unknown("policy or run directory", name, meant)
            paths[Path(name).expanduser()] = None
        else:
            matches = [
                path
                for path in map(Path, sorted(glob.glob(str(Path(name).expanduser()))))
                if (path / "config.yaml").is_file() or (path / "policy").is_dir()
            ]
            for path in list(matches):
                if not any((path / trace).exists() for trace in _TRACES_OF_TRAINING):
                    logger.warning(
                        "%s is passed over, because it was stopped before it trained", path
                    )
                    matches.remove(path)
            if not matches:
                raise InputError(f"no run directory matches '{name}'")
            paths |= dict.fromkeys(matches)
    return list(paths)


def load_runs(paths: Iterable[Path], decode: Decode) -> list[TrainedRun]:
    """Loads the policies of run directories.

    Raises:
        InputError: if a folder holds no policy, or a broken one.
    """
    paths = list(paths)
    if not paths:
        return []
    loaded = []
    for path in paths:
        policy, config = load_policy(path, "argmax" if decode == "tuned" else decode)
        loaded.append(TrainedRun(path, config, policy))
    return loaded


def group_by_experiment(runs: Sequence[R]) -> list[tuple[str, list[R]]]:
    """Groups runs that differ in their seed alone, under short names.

    Runs with the same seed too are copies of each other and not a sample of seeds, so they stay
    apart.
    """
    groups: dict[str, list[R]] = {}
    shipped = shipped_policies()
    for run in runs:  # what is shipped was chosen among seeds, and is no sample of them
        shared = {k: v for k, v in run.config.to_dict().items() if k not in _NOT_THE_EXPERIMENT}
        if (start := run.config.training.start) is not None:
            # It may have begun with that of its seed, which such a name ends with.
            begun = re.sub(rf"(?<!\d){run.config.seed}$", "SEED", str(start))
            shared["training"] = {**shared["training"], "start": begun}
        key = repr(shared) + (str(run.path) if run.path in shipped.values() else "")
        group = groups.setdefault(key, [])
        if any(run.config.seed == other.config.seed for other in group):
            group = groups.setdefault(f"{key} {run.path}", [])
        group.append(run)
    members = list(groups.values())
    names = _distinct([group[0] for group in members])
    for k, group in enumerate(members):  # one run of a shipped policy's preset is not that policy
        if names[k] in shipped and len(group) == 1 and group[0].path != shipped[names[k]]:
            path = group[0].path.resolve()
            names[k] = f"{path.parent.name}/{path.name}" if path.name in shipped else path.name
    return list(zip(names, members, strict=True))


def training_jobs(config: ExperimentConfig) -> tuple[float, str]:
    """Where on the axis a run was trained, or NaN, and its jobs in words."""
    family = getattr(config.training, "family", "")
    if family:
        return float("nan"), family
    try:
        task = config.task.build()
    except InputError:  # a trace may be gone by now, which the policy does not need
        return float("nan"), "jobs that are no longer there"
    fixed = task.has_axis and task.at_point() == task
    return task.position if fixed else float("nan"), task.spec.presentation.words(task)


def check_fits(run: TrainedRun, world: World) -> None:
    """Makes sure that a policy can act in a world.

    Raises:
        InputError: if it was trained in a world that differs in more than the kind lets policies
            transfer over.
    """
    trained, network = run.config.task.world, network_of(run.config)
    found = differences(trained, world, (*spec_of(world).training.transfers, *network.transfers))
    difference = next((f"with {name} {one} instead of {two}" for name, one, two in found), "")
    if not difference and not network.transfers:
        if trained.state_space != world.state_space:
            difference = f"with states {trained.state_space} instead of {world.state_space}"
        elif trained.feature_names != world.feature_names:
            difference = "with other features"
    elif not difference:
        shapes = [network.shapes(run.config, one) for one in (trained, world)]
        difference = "" if shapes[0] == shapes[1] else "where its network has other weights"
    if difference:
        raise InputError(
            f"{policy_in(run.path)} was trained for another world, {difference}; compare it apart "
            f"from the others"
        )


def _distinct(runs: Sequence[HasConfig]) -> list[str]:
    """Short names that differ: the config's, with jobs or objective, or that of the folder."""
    names = [run.config.name for run in runs]
    # "70%", "10 to 184%", "jobs.csv", "of up to 15 s"
    jobs = [short(training_jobs(run.config)[1]).removeprefix("of ") for run in runs]
    with_jobs = [
        f"{name}{AT}{re.sub('(?<=[0-9]) to ', '-', text).replace(' ', '_')}"
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


def _heuristics() -> list[str]:
    """Names of the rules of all worlds, those of extensions included."""
    load_extensions()
    return [name for world in WORLDS.names() for name in get_spec(world).heuristics.names()]
