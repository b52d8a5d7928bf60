"""How large the machine of a job log is: as somebody says, else as the log says."""

from collections.abc import Callable, Container, Mapping, Sequence, Set
from dataclasses import asdict
from typing import Any

from cluster_env.core.errors import InputError
from cluster_env.workloads.recorded import RecordedJobs
from rllib_configs.config.task_schema import TaskSection

OPTION = "--{name} {units} (task.world.{name})"
"""How a command is told of a resource that has options for the world's settings."""


def units_of_log(
    read: RecordedJobs,
    said: Container[str],
    known: Container[str] = (),
    *,
    asked: str = OPTION,
    guess: bool = False,
) -> tuple[dict[str, int], list[str]]:
    """Units of each resource of a log's machine that nobody has said.

    Args:
        read: the log.
        said: names of the resources that the user gives the units of; the log's header does not
            count there.
        known: names of those that are known otherwise, where the header does not say them.
        asked: how the user can say them, from ``name`` and ``units``.
        guess: whether a machine of which nobody knows the size is as large as what jobs held at
            once at the site, or where the log does not say it, as the largest job.

    Returns:
        Units by name, and sentences about what was not said.

    Raises:
        InputError: if nobody says how large the machine is.
    """
    found: dict[str, int] = {}
    words = []
    for k, name in enumerate(read.resources):
        if name in said:
            continue
        largest = max(int(read.demand[:, k].max()), 1)
        if name == "processors" and read.processors:
            found[name] = read.processors
        elif name in known:
            continue
        elif name in read.optional:
            if read.demand[:, k].any():
                words.append(f"{name} is not counted; --{name} UNITS counts what jobs held of it")
        elif guess:
            at_once = 0 if read.most_in_use is None else int(read.most_in_use[k])
            found[name] = max(largest, at_once)
            what = "were in use at once" if at_once >= largest else "the largest job has"
            words.append(f"nobody says how many {name} there are: as many as {what}")
        else:
            raise InputError(
                f"{read.path} does not record how many {name} the machine has; give the "
                f"number, as in {asked.format(name=name, units=largest)}"
            )
    return found, words


def misfits(read: RecordedJobs, capacity: Sequence[int]) -> list[str]:
    """A sentence for each resource of which the log's jobs held more at once than there is."""
    if read.most_in_use is None:
        return []
    queues = read.names["queue"].size if "queue" in read.ids else 0
    hint = f"; --partition NAME takes one of its {queues:,} queues" if queues > 1 else ""
    return [
        f"as recorded, jobs held {most:,} {name} at once, which a machine of {units:,} cannot "
        f"give: the size, the run times or the waits are wrong{hint}"
        for name, most, units in zip(read.resources, read.most_in_use, capacity, strict=True)
        if most > units
    ]


def units_named(task: Any) -> set[str]:
    """Resources that plain data of a task give units of beside a log: the two belong together.

    Args:
        task: under today's keys, and not yet checked.
    """
    data = task if isinstance(task, Mapping) else {}
    world, workload = data.get("world"), data.get("workload")
    if not (isinstance(world, Mapping) and isinstance(workload, Mapping) and "path" in workload):
        return set()
    return {name for name, units in world.items() if units}


def describes_machine(world: Any) -> bool:
    """Whether a world has the description of a site, which says how large the machine is."""
    return getattr(world, "site", None) is not None


def _of_site(site: Any, log: RecordedJobs) -> dict[str, Any]:
    """The description of a site without the memory and GPUs that no job of a log held."""
    held = {
        name
        for k, name in enumerate(log.resources)
        if name not in log.optional or log.demand[:, k].any()
    }
    idle = [name for name in site.resources if name not in held]
    return {"task.world.site": asdict(site.without(idle))} if idle else {}


def machine_changes(
    task: TaskSection,
    read: Callable[[Mapping[str, Any]], Any],
    before: Any,
    given: Set[str],
    asked: str = OPTION,
) -> dict[str, Any]:
    """What a log that was named for a task says of its machine, as changes to the task's world.

    Args:
        task: with all changes that were asked for.
        read: reads its log.
        before: plain data of the task before them. Where they hold a log and its machine, and no
            other log was asked for, nothing changes.
        given: keys of these changes, as ``task.world.processors``.
        asked: see `units_of_log`.

    Raises:
        InputError: if the log cannot be read, or nobody says how large the machine is.
    """
    kind, known = task.workload.kind, units_named(before)
    places = {"task", "task.workload", "task.workload.path", f"task.workload.{kind}"}
    described = describes_machine(task.world)
    if "processors" in known and not given & places and not described:
        return {}
    log = read(task.workload.model_dump(mode="json"))
    if described:
        return _of_site(task.world.site, log)
    said = {name for name in log.resources if f"task.world.{name}" in given}
    units, _ = units_of_log(log, said, known, asked=asked)
    return {f"task.world.{name}": number for name, number in units.items()}
