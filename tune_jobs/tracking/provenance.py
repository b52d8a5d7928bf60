"""What a run was made with: the commit, the versions, the command."""

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import metadata
from pathlib import Path

import __main__
from cluster_env.core.errors import InputError
from rllib_configs.config import extensions
from rllib_configs.config.secrets import hide_secrets

GIT_TIMEOUT_S = 2.0
_GIVEN: ContextVar[tuple[str, ...] | None] = ContextVar("command", default=None)
DISTRIBUTIONS = ("metasched", "ray", "torch", "numpy")
MADE = ("git.", "version.", "processor")
"""How the names of `provenance` begin that say what numbers depend on."""
_VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2"}


def provenance() -> dict[str, str]:
    """Tags that say what made a run: without host name, user name or absolute paths of programs.

    Returns:
        ``git.commit`` and ``git.dirty`` (both absent outside a repository), ``version.*`` of
        Python and of the main distributions, ``processor``, ``command``; and MLflow's own names
        for its columns.
    """
    command = command_line()
    # The command without options and paths: MLflow shows only what follows the last slash.
    words = command.removeprefix("python -m ").split()
    tags = {
        "command": command,
        "processor": processor(),
        "version.python": platform.python_version(),
        "mlflow.source.name": " ".join(words[: 2 if words[1:] and words[1].isidentifier() else 1]),
        "mlflow.source.type": "LOCAL",
    }
    for name in DISTRIBUTIONS:
        if (number := version(name)) is not None:
            tags[f"version.{name}"] = number
    if (commit := git_commit(Path(__file__).parent) or git_commit(Path.cwd())) is not None:
        tags["git.commit"] = tags["mlflow.source.git.commit"] = commit[0]
        tags["git.dirty"] = "yes" if commit[1] else "no"
    return tags


@cache
def made_with() -> Mapping[str, str]:
    """Of `provenance` what numbers depend on, beside their config: all but the command."""
    tags = provenance()
    return {name: tags[name] for name in sorted(tags) if name.startswith(MADE)}


def of_a_bug() -> Iterator[tuple[str, str]]:
    """What a report of a bug needs, by name; of variables the names alone, which hide secrets."""
    yield from made_with().items()
    for name in ("mlflow", "gymnasium", "numba", "pandas", "pydantic"):
        yield f"version.{name}", version(name) or "not installed"
    yield "platform", platform.platform()
    yield "processors", f"{len(os.sched_getaffinity(0))} usable of {os.cpu_count()}"
    names = [
        name for name in sorted(os.environ) if name.startswith(("METASCHED_", "RAY_", "MLFLOW_"))
    ]
    yield "variables", ", ".join(names) or "none"
    try:
        extensions.load_extensions()
    except InputError as error:
        yield "extension", str(error)
    for one in extensions.found:
        yield f"extension {one.module}", f"{', '.join(one.things) or 'nothing'} from {one.source}"


@cache
def processor() -> str:
    """Name of the processor, its family and model, and the widest vectors that it has.

    Libraries of linear algebra choose the order of their sums by these and by the sizes of caches.
    Weights that are trained with them on one processor differ in their last digits from those of
    another, and later in more. A name alone, as virtual machines have it, stands for several.
    """
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    known = {
        name.strip(): text.strip() for name, _, text in (line.partition(":") for line in lines)
    }
    name = known.get("model name") or platform.processor() or platform.machine() or "unknown"
    flags = known.get("flags", "").split()
    parts = [name]
    if {"cpu family", "model"} <= known.keys():
        parts.append(f"family {known['cpu family']} model {known['model']}")
    parts += [title for flag, title in _VECTORS.items() if flag in flags][:1]
    return ", ".join(parts)


def git_commit(directory: Path) -> tuple[str, bool] | None:
    """The commit checked out around a directory, and whether tracked files differ from it.

    Returns:
        None outside a repository, without a commit, without git, or if ``directory`` holds
        nothing that the repository tracks (an installed package inside somebody's project).
    """
    if not _git(directory, "ls-files", "--", "."):
        return None
    commit = _git(directory, "rev-parse", "HEAD")
    changes = _git(directory, "status", "--porcelain", "--untracked-files=no")
    return (commit, changes != "") if commit else None


def _git(directory: Path, *arguments: str) -> str | None:
    """What git prints, None if it fails or is too slow."""
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments],
            capture_output=True,
            text=True,
            timeout=GIT_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@contextmanager
def as_command(arguments: Sequence[str]) -> Iterator[None]:
    """Within it, the command is not that of the process, but one that the process gives itself."""
    token = _GIVEN.set(tuple(arguments))
    try:
        yield
    finally:
        _GIVEN.reset(token)


def command_line(arguments: Sequence[str] | None = None) -> str:
    """The command that was given, by default to this process, ready to paste, without secrets."""
    arguments = _GIVEN.get() if arguments is None else arguments
    program, *rest = sys.argv if arguments is None else arguments
    module = getattr(getattr(__main__, "__spec__", None), "name", None)
    start = [Path(program).name]
    if arguments is None and module:
        start = ["python", "-m", module.removesuffix(".__main__")]
    return hide_secrets(shlex.join([*start, *rest]))


def version(distribution: str) -> str | None:
    """Of an installed distribution; None of one that is not."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
