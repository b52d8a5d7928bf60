"""From the name of a rule, or a trained run, to what advises a site."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from cluster_env.core.errors import InputError
from cluster_env.workloads.formats import read_log
from cluster_env.worlds import get_heuristic, get_spec
from rllib_configs.config.extensions import load_extensions
from rllib_configs.snapshot import (
    RESOURCES,
    RUNNING,
    WAITING,
    Advice,
    Adviser,
    Queue,
    SiteJob,
)
from rllib_configs.worlds.hpc.advice import advise
from rllib_configs.worlds.hpc.start_times import Foreseer
from tune_jobs.measuring.trained_runs import find_runs, is_heuristic, load_runs

WORLD = "hpc"
"""The world that a site of batch jobs is seen as."""

_SOME = Queue(
    100,
    (2, 2, 2),
    (SiteJob("1", RUNNING, "", "", "", 0, 50, 100, 1, 1, 1),),
    tuple(SiteJob(job, WAITING, "", "", "", 0, 0, 100, 2, 1, 1) for job in "23"),
)


def choose_adviser(name: str) -> Adviser:
    """What says which jobs a policy would start.

    A rule counts memory and GPUs where jobs hold or ask for them. A trained policy sees what it was
    trained with, on a machine of any size.

    Args:
        name: of a rule, such as ``sjf:easy``, or a folder of a run.

    Raises:
        InputError: if there is no such policy, or it was trained for another kind of world.
    """
    load_extensions()  # no config may have been read before
    if is_heuristic(name):

        def by_rule(queue: Queue) -> Advice:
            return advise(_world(queue), lambda world: get_heuristic(name, world), queue)

        by_rule(_SOME)  # an unknown name is told, and code compiled, before anything is read
        return by_rule
    runs = find_runs([name])
    if len(runs) != 1:
        raise InputError(f"a site needs one policy, but {name} are {len(runs)} runs")
    run = load_runs(runs, "argmax")[0]
    trained = run.config.task.world
    if trained.kind != WORLD:
        raise InputError(
            f"{runs[0]} was trained in the world {trained.kind}; a site needs a policy of the "
            f"world {WORLD}"
        )
    make = lru_cache(maxsize=8)(run.policy.acting_in)

    def by_run(queue: Queue) -> Advice:
        return advise(trained, make, queue)

    by_run(_SOME)
    return by_run


def choose_foreseer(name: str, log: Path, read: Mapping[str, Any], **options: Any) -> Foreseer:
    """What says when the jobs that wait at a site will start under a policy.

    Args:
        name: of the policy, see `choose_adviser`.
        log: of the site's past.
        read: how it is read, by the names of `READ_OPTIONS`.
        options: of `Foreseer`.

    Raises:
        InputError: if the log or the policy cannot be used.
    """
    load_extensions()  # no config was read before
    past = read_log(log, **read)
    if is_heuristic(name):
        made = Foreseer(past, _world, lambda world: get_heuristic(name, world), **options)
    else:
        run = load_runs(find_runs([name]), "argmax")[0]
        trained = run.config.task.world
        made = Foreseer(past, lambda queue: trained, run.policy.acting_in, **options)
    made.check(_SOME)  # what cannot be played on is told before anything is read
    return made


def _world(queue: Queue) -> Any:
    """A machine that counts what there is of; the queue says how much."""
    jobs = [job.demand for job in (*queue.running, *queue.waiting)]
    counted = {
        name: 1
        for r, name in enumerate(RESOURCES)
        if r == 0 or queue.free[r] or any(demand[r] for demand in jobs)
    }
    return get_spec(WORLD).world(**counted)
