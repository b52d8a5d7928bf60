"""What the commands `shadow` and `steer` do, from their options to their last line."""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from cluster_env.core.durations import duration, seconds_of
from cluster_env.core.errors import Failure, InputError
from cluster_env.core.seeding import Split
from cluster_env.workloads import sample_jobsets
from cluster_env.workloads.formats import READ_OPTIONS
from rllib_configs.snapshot import Adviser, Snapshot
from tune_jobs.commands.shared import part_of
from tune_jobs.commands.site import Live, Shadow, Steer
from tune_jobs.replaying.choices import task_of_log
from tune_jobs.site.backend import Backend
from tune_jobs.site.choosing import choose_adviser
from tune_jobs.site.commands import SQUEUE_TIMEOUT_S, TIMEOUT_S, Forbidden, SiteAway
from tune_jobs.site.deciding import Decision, Limits
from tune_jobs.site.journal import Write, decided_anew, open_journal
from tune_jobs.site.safety import Safety, Timing
from tune_jobs.site.shadow_table import shadow_table
from tune_jobs.site.shadowing import shadow
from tune_jobs.site.simulated import SimulatedBackend
from tune_jobs.site.slurm import SlurmBackend, require_slurm
from tune_jobs.site.starting import foresee_by
from tune_jobs.site.steering import NEEDS_OPERATOR, PRIORITY, RELEASE, Steerer, Steering
from tune_jobs.site.ticks import Ticks
from tune_jobs.site.watchdog import PATIENCE_S, release_all
from tune_jobs.terminal.progress import is_terminal
from tune_jobs.terminal.signals import StopRequest

SITE_RULE = "fcfs:easy"
"""What starts the jobs of a simulated site."""
NODES_EVERY_S = 60.0
"""Between two calls of sinfo; the free nodes follow meanwhile from the jobs of squeue."""
_ATTEMPTS = 5  # to reach a site at the beginning


def report_shadow(options: Shadow) -> int:
    """Advises beside a site. Returns the exit status."""
    policy = options.policy
    if options.repeat is not None and options.starts is not None:
        raise InputError(
            "--repeat repeats decisions, so leave out --starts; metasched.starts(POLICY, LOG, "
            "repeat=FILE) of Python foresees starts in the last state of a record"
        )
    bound = seconds_of(options.max_wait)
    limits = Limits(most_starts=options.most_starts, max_wait_s=bound)
    adviser = choose_adviser(policy)
    if options.repeat is not None:
        return _repeat(options.repeat, adviser)
    foresee = None
    if options.starts is not None:
        foresee = foresee_by(
            policy,
            options.starts,
            options.task_options,
            limits.max_wait_s,
            num_futures=options.num_futures,
            num_instants=options.num_instants,
        )
    for_people = is_terminal(sys.stdout)
    write = open_journal(options.out) if options.out or not for_people else _write_nothing
    backend = _backend(options, held=False, nodes_every_s=NODES_EVERY_S)

    def show(snapshot: Snapshot, decision: Decision, start_times: Sequence[Any] | None) -> None:
        if for_people:
            click.echo(f"{shadow_table(snapshot, decision, policy, start_times)}\n")

    with StopRequest(_announce) as stop:
        ticks = _ticks(options, backend, write, lambda: bool(stop) or _is_over(backend))
        summary = shadow(ticks, adviser, policy, limits, write, foresee, show)
    _summarize(summary)
    return 0


def report_steer(options: Steer) -> int:
    """Steers a site. Returns the exit status."""
    steering = part_of(options, Steering)
    timing = Timing.of(options.watchdog_s, options.tick_s)
    if options.release_all:
        return _release_everything(options.partitions, timing)
    policy = options.policy
    if policy is None:
        raise InputError("name the policy that steers: a rule such as fcfs:easy, or a run")
    bound = seconds_of(options.max_wait)
    limits = Limits(most_starts=options.most_starts, max_wait_s=bound)
    adviser = choose_adviser(policy)
    if options.repeat is not None:
        return _repeat(options.repeat, adviser)
    simulated = options.simulate is not None
    if steering.act and not simulated and os.geteuid() == 0 and not options.as_root:
        raise InputError(
            "steer does not run as root: use an account with AdminLevel=Operator; where "
            "there is none, as without slurmdbd, give --as-root"
        )
    write, stop = open_journal(options.out), StopRequest(_announce)
    safety = Safety(timing, options.partitions, _say)

    def stopping() -> bool:
        return bool(stop) or _is_over(backend) or bool(safety.reason_to_end())

    backend = _backend(options, held=steering.mode == RELEASE, stopping=stopping, timing=timing)
    if steering.mode == PRIORITY and not _first_answer(backend).ranks:
        raise InputError(
            "priorities count only where PriorityType is priority/multifactor; take --mode release"
        )
    if limits.max_wait_s:
        _say(f"a job that waits longer than {duration(limits.max_wait_s)} goes first (--max-wait)")
    watched = steering.act and steering.mode == RELEASE and not simulated
    cluster = _first_answer(backend).name if watched else ""
    ticks = _ticks(options, backend, write, stopping)
    steerer = Steerer(
        backend,
        ticks,
        adviser,
        policy,
        limits,
        steering,
        write,
        safety,
        (lambda: time.monotonic() * options.speed) if simulated else time.monotonic,
    )
    with safety, stop:
        if watched:
            safety.begin(cluster, ticks)
        summary = steerer.run()
    _summarize(summary)
    return 0


def _release_everything(partitions: Sequence[str], timing: Timing) -> int:
    require_slurm()
    try:
        release_all(
            partitions,
            stay=False,
            patience_s=PATIENCE_S,
            squeue_timeout_s=timing.squeue_s,
            announce=_say,
        )
    except Forbidden as error:
        raise Failure(f"{NEEDS_OPERATOR} ({error})") from None
    except SiteAway as error:
        raise Failure(f"not all held jobs could be released: {error}") from None
    return 0


def _backend(
    options: Live,
    *,
    held: bool,
    nodes_every_s: float = 0.0,
    stopping: Callable[[], bool] = lambda: False,
    timing: Timing | None = None,
) -> Backend:
    if options.simulate is None:
        of_log = READ_OPTIONS if isinstance(options, Shadow) and options.starts else ()
        unused = [name for name in options.task_options if name.replace("-", "_") not in of_log]
        if unused:
            raise InputError(f"--{unused[0]} describes a simulated site; add --simulate")
        require_slurm(otherwise=", or try --simulate LOG")
        return SlurmBackend(
            options.partitions,
            nodes_every_s,
            timing.command_s if timing else TIMEOUT_S,
            timing.squeue_s if timing else SQUEUE_TIMEOUT_S,
            stopping=stopping,
            announce=_say,
        )
    task, _, _ = task_of_log(options.simulate, (), options.task_options, guess=True)
    (jobset,) = sample_jobsets(task.workload, 0, Split.HELD_OUT, [0])
    world: Any = task.world
    return SimulatedBackend(
        jobset,
        world.capacity,
        choose_adviser(SITE_RULE),
        held=held,
        speed=options.speed,
    )


def _ticks(
    options: Live,
    backend: Backend,
    write: Write,
    stopping: Callable[[], bool],
) -> Ticks:
    return Ticks(
        backend,
        write,
        tick_s=options.tick_s,
        most=options.num_ticks,
        stopping=stopping,
        announce=_say,
        hide_users=options.hash_users,
    )


def _is_over(backend: Backend) -> bool:
    return isinstance(backend, SimulatedBackend) and backend.is_over


def _first_answer(backend: Backend) -> Any:
    for attempt in range(_ATTEMPTS):
        try:
            return backend.site()
        except SiteAway as error:
            if attempt == _ATTEMPTS - 1:
                raise Failure(f"the site does not answer: {error}") from None
            time.sleep(2.0**attempt)
    raise AssertionError


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


def _announce(name: str) -> None:
    _say(f"{name}, stopping")


def _say(sentence: str) -> None:
    click.echo(f"metasched: {sentence}", err=True)


def _summarize(summary: Mapping[str, Any]) -> None:
    sys.stdout.flush()
    click.echo(json.dumps(summary), err=True)
