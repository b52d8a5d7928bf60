"""A partition of a site as one pool of processors, for what knows no nodes."""

from dataclasses import replace
from typing import Any

from cluster_env.core.errors import InputError
from cluster_env.task import Task


def partition_as_pool(task: Task) -> tuple[Task, list[str]]:
    """The task where its world counts the processors of a site's one partition, and no nodes.

    A world without a site stays as it is.

    Returns:
        The task, and a sentence about what is not seen.

    Raises:
        InputError: if the site has several partitions.
    """
    world: Any = task.world
    site = getattr(world, "site", None)
    if site is None:
        return task, []
    if len(site.partitions) > 1:
        raise InputError(
            f"start times are foreseen for one partition of a site; name it with --partition: "
            f"{', '.join(site.partition_names)}"
        )
    log: Any = task.workload
    counted = dict(zip(world.resources, world.capacity, strict=True))
    units = {name: counted.get(name, 0) for name in ("memory", "gpus")}
    known = log.read().resources
    pool = replace(world, site=None, **{k: n if k in known else 0 for k, n in units.items()})
    jobs = replace(log, site=None, capacity=pool.capacity, resources=pool.resources)
    return replace(task, world=pool, workload=jobs), [
        f"start times see one pool of {pool.processors:,} processors: neither nodes, limits and "
        "calendar of the site, nor jobs of other partitions on the same nodes"
    ]
