"""What the commands `shadow` and `steer` do, from their options to their last line."""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from cluster_env.core.durations import duration, seconds_of
from cluster_env.core.errors import Failure, InputError
from cluster_env.core.seeding import Split
from cluster_env.workloads import sample_jobsets
from rllib_configs.snapshot import Adviser, Snapshot
from tune_jobs.replaying.choices import task_of_log
from tune_jobs.site.backend import Backend
from tune_jobs.site.choosing import choose_adviser
from tune_jobs.site.controller import TIMEOUT_S, Forbidden, SiteAway
from tune_jobs.site.deciding import Decision, Limits
from tune_jobs.site.journal import Write, decided_anew, open_journal
from tune_jobs.site.shadow_table import shadow_table
from tune_jobs.site.shadowing import Ticks, shadow
from tune_jobs.site.simulated import SimulatedBackend
from tune_jobs.site.slurm import SlurmBackend, require_slurm
from tune_jobs.site.starting import foresee_by
from tune_jobs.site.steering import NEEDS_OPERATOR, PRIORITY, RELEASE, Steerer, Steering
from tune_jobs.site.watchdog import Watchdog, release_all
from tune_jobs.terminal.progress import is_terminal
from tune_jobs.terminal.signals import StopRequest

SITE_RULE = "fcfs:easy"
"""What starts the jobs of a simulated site."""

CALLS_BETWEEN_SIGNS = 9
"""More commands than a steerer ever calls between two signs of life; each may time out."""


def report_shadow(
    policy: str,
    nodes_every_s: float,
    past: Path | None,
    num_futures: int,
    num_instants: int,
    as_json: bool,
    **options: Any,
) -> int:
    """Advises beside a site; the arguments are the command's options. Returns the exit status."""
    limits, adviser = _limits(options), choose_adviser(policy)
    if options["repeat"] is not None:
        return _repeat(options["repeat"], adviser)
    foresee = None
    if past is not None:
        foresee = foresee_by(
            policy,
            past,
            options["task_options"],
            limits.max_wait_s,
            num_futures=num_futures,
            num_instants=num_instants,
        )
    for_people = is_terminal(sys.stdout) and not as_json
    write = open_journal(options["out"]) if options["out"] or not for_people else _write_nothing
    backend = _backend(options, held=False, nodes_every_s=nodes_every_s)

    def show(snapshot: Snapshot, decision: Decision, start_times: Sequence[Any] | None) -> None:
        if for_people:
            click.echo(f"{shadow_table(snapshot, decision, policy, start_times)}\n")

    with StopRequest(_announce) as stop:
        ticks = _ticks(options, backend, write, lambda: bool(stop) or _is_over(backend))
        summary = shadow(ticks, adviser, policy, limits, write, foresee, show)
    _summarize(summary)
    return 0


def report_steer(
    policy: str | None,
    *,
    release_everything: bool,
    as_root: bool,
    watchdog_s: float,
    **options: Any,
) -> int:
    """Steers a site; the arguments are the command's options. Returns the exit status."""
    names = ("mode", "act", "rehold_s", "hold_new", "until_empty")
    steering = Steering(**{name: options.pop(name) for name in names})
    if release_everything:
        require_slurm()
        try:
            release_all(options["partitions"], stay=False, announce=_announce_waiting)
        except Forbidden as error:
            raise Failure(f"{NEEDS_OPERATOR} ({error})") from None
        return 0
    if policy is None:
        raise InputError("name the policy that steers: a rule such as fcfs:easy, or a run")
    limits, adviser = _limits(options), choose_adviser(policy)
    if options["repeat"] is not None:
        return _repeat(options["repeat"], adviser)
    simulated = options["log"] is not None
    if steering.act and not simulated and os.geteuid() == 0 and not as_root:
        raise InputError(
            "steer does not run as root: use an account with AdminLevel=Operator; where "
            "there is none, as without slurmdbd, give --as-root"
        )
    if watchdog_s <= options["tick_s"]:
        raise InputError("--watchdog must be longer than --tick (both in seconds)")
    write = open_journal(options["out"])
    backend = _backend(
        options, held=steering.mode == RELEASE, timeout_s=watchdog_s / CALLS_BETWEEN_SIGNS
    )
    watched = steering.act and steering.mode == RELEASE and not simulated
    name = _first_answer(backend).name if watched else ""
    if steering.mode == PRIORITY and not _first_answer(backend).ranks:
        raise InputError(
            "priorities count only where PriorityType is priority/multifactor; take --mode release"
        )
    if limits.max_wait_s:
        bound = duration(limits.max_wait_s)
        click.echo(
            f"metasched: a job that waits longer than {bound} goes first (--max-wait)", err=True
        )
    watchdog = _start_watchdog(watchdog_s, options["partitions"], name) if watched else None
    try:
        with StopRequest(_announce) as stop:
            ticks = _ticks(
                options,
                backend,
                write,
                lambda: bool(stop) or _is_over(backend),
                meanwhile=watchdog.beat if watchdog else lambda: None,
            )
            steerer = Steerer(
                backend,
                ticks,
                adviser,
                policy,
                limits,
                steering,
                write,
                alive=watchdog.beat if watchdog else lambda: True,
            )
            summary = steerer.run()
    finally:
        if watchdog is not None and not watchdog.stop(watchdog_s):
            click.echo(f"metasched: the watchdog, process {watchdog.pid}, keeps running", err=True)
    _summarize(summary)
    return 0


def _backend(
    options: Mapping[str, Any],
    *,
    held: bool,
    nodes_every_s: float = 0.0,
    timeout_s: float = TIMEOUT_S,
) -> Backend:
    if options["log"] is None:
        if options["task_options"]:
            first = next(iter(options["task_options"]))
            raise InputError(f"--{first} describes a simulated site; add --simulate")
        require_slurm(otherwise=", or try --simulate LOG")
        timeout_s = min(timeout_s, TIMEOUT_S)
        return SlurmBackend(
            options["partitions"], nodes_every_s, timeout_s, announce=_announce_problem
        )
    task, _, _ = task_of_log(options["log"], (), options["task_options"], guess=True)
    (jobset,) = sample_jobsets(task.workload, 0, Split.HELD_OUT, [0])
    world: Any = task.world
    return SimulatedBackend(
        jobset,
        world.capacity,
        choose_adviser(SITE_RULE),
        held=held,
        speed=options["speed"],
    )


def _limits(options: Mapping[str, Any]) -> Limits:
    return Limits(
        longest_wait_s=options["longest_wait_s"],
        most_starts=options["most_starts"],
        max_wait_s=seconds_of(options["max_wait"]),
    )


def _ticks(
    options: Mapping[str, Any],
    backend: Backend,
    write: Write,
    stopping: Callable[[], bool],
    meanwhile: Callable[[], object] = lambda: None,
) -> Ticks:
    return Ticks(
        backend,
        write,
        tick_s=options["tick_s"],
        most=options["num_ticks"],
        stopping=stopping,
        meanwhile=meanwhile,
        hide_users=options["hash_users"],
    )


def _is_over(backend: Backend) -> bool:
    return isinstance(backend, SimulatedBackend) and backend.is_over


def _first_answer(backend: Backend, attempts: int = 5) -> Any:
    for attempt in range(attempts):
        try:
            return backend.site()
        except SiteAway as error:
            if attempt == attempts - 1:
                raise Failure(f"the site does not answer: {error}") from None
            time.sleep(2.0**attempt)
    raise AssertionError


def _start_watchdog(limit_s: float, partitions: tuple[str, ...], cluster: str) -> Watchdog:
    folder = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    word = "".join(c if c.isalnum() else "-" for c in cluster)
    lock = Path(folder, f"metasched-steer-{word}-{os.getuid()}.lock")
    try:
        return Watchdog(limit_s, partitions, str(lock))
    except RuntimeError as error:
        raise InputError(f"there is no watchdog, so nothing is steered: {error}") from None


def _repeat(path: Path, adviser: Adviser) -> int:
    """Says whether the same decisions come out again; 1 if not."""
    found = list(decided_anew(path, adviser))
    other = [tick for tick, same in found if not same]
    if not found:
        raise InputError(f"{path} records no decision")
    click.echo(f"{len(found) - len(other)} of {len(found)} decisions are bit-identical")
    if other:
        click.echo(f"others: ticks {', '.join(map(str, other[:20]))}")
    return 1 if other else 0


def _write_nothing(entry: Mapping[str, Any]) -> None:
    """Where people see a table, and no file was named."""


def _announce_waiting(problem: str) -> None:
    click.echo(f"metasched: waiting for Slurm, to release all held jobs: {problem}", err=True)


def _announce(name: str) -> None:
    click.echo(f"metasched: {name}, stopping", err=True)


def _announce_problem(sentence: str) -> None:
    click.echo(f"metasched: {sentence}", err=True)


def _summarize(summary: Mapping[str, Any]) -> None:
    sys.stdout.flush()
    click.echo(json.dumps(summary), err=True)
