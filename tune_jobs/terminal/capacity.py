"""CPUs for the processes of a command, waited for while others have them or none has come yet."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial

from cluster_env.core.errors import Failure, InputError
from rllib_configs.schema import ExperimentConfig
from tune_jobs.terminal.progress import duration
from tune_jobs.terminal.signals import heed

GRACE_S = 2.0
"""For CPUs of processes that are just ending: that long nothing is said."""
SAY_EVERY_S = 60.0
_POLL_S = 0.5
_SETTLE_S = 5.0  # in which those whose turn it is not let go of what they were given
_NODE_GROUP = "ray.io/node-group"
_TURN = {"name": "turn", "namespace": "metasched"}


class _Turn:
    """An actor without work: a cluster has one of its name, and loses it with its owner."""


@contextmanager
def cpus_for(config: ExperimentConfig, say: Callable[[str], None]) -> Iterator[None]:
    """Waits until each runner can have a CPU of the Ray that this process is connected to.

    Two runs that wait for the same CPUs would both see them free. So a run that has waited takes
    its turn, until the ``with`` block ends: its runners should have started by then.

    Inside a placement group, as in a trial of Ray Tune, there is no wait: its CPUs are reserved.

    Args:
        config: says how many runners there are, and how long to wait.
        say: told every `SAY_EVERY_S` what it waits for.

    Raises:
        InputError: if the cluster has too few CPUs in total, and no autoscaler brings more.
        Failure: if they have not come free in time.
    """
    from ray.util import get_current_placement_group

    wanted = config.resources.num_runners
    with ExitStack() as stack:
        if wanted and get_current_placement_group() is None:
            _wait(config, wanted, say, stack)
        yield


def can_grow() -> bool:
    """Whether the cluster has an autoscaler.

    Ray has no public call for this. But autoscalers, KubeRay's too, tell each node of which group
    it is, which becomes a label; ``ray start`` by itself sets none. A cluster of KubeRay without
    ``enableInTreeAutoscaling`` has the labels as well: there a wait ends by its limit.
    """
    import ray

    return any(_NODE_GROUP in node["Labels"] for node in ray.nodes() if node["Alive"])


def _wait(
    config: ExperimentConfig, wanted: int, say: Callable[[str], None], stack: ExitStack
) -> None:
    grows, limit_s = can_grow(), config.resources.wait_s
    if wanted > _cpus_in_total() and not grows:
        raise InputError(
            f"{wanted} runners need {wanted} CPUs, but there are {_cpus_in_total():g}; ask for "
            "fewer with --runners or resources.num_runners"
        )
    if _are_free(wanted, GRACE_S):
        return
    say_at = time.monotonic()
    end = say_at + limit_s

    def go_on_waiting() -> None:
        nonlocal say_at
        heed()
        asked = "; asked the autoscaler for more" if grows else ""
        state = f"{_free_cpus():g} of {_cpus_in_total():g} are free{asked}"
        now = time.monotonic()
        if now >= end:
            raise Failure(
                f"{wanted} CPUs did not come free within {duration(limit_s)} ({state}); try again "
                f"when others have finished, ask for fewer --runners, or set resources.wait_s "
                f"higher"
            )
        if now >= say_at:
            say(f"waits for {wanted} CPUs; {state}; gives up in {duration(end - say_at)}")
            say_at += SAY_EVERY_S

    while True:
        with _asked(wanted) if grows else nullcontext(partial(_are_free, wanted, _POLL_S)) as came:
            while not came():
                go_on_waiting()
        if _take_turn(wanted, stack):
            return
        while _turn_is_taken():  # and nobody's request stands in the way of who has it
            go_on_waiting()
            time.sleep(_POLL_S)


@contextmanager
def _asked(wanted: int) -> Iterator[Callable[[], bool]]:
    """Asks the autoscaler, until the block ends; gives what waits a moment and says if they came.

    ``request_resources`` would hold for the whole cluster: the next job replaces it, and a killed
    one leaves it behind. What a placement group waits for goes away with its job, and comes on top
    of what others use.
    """
    from ray.util import placement_group, remove_placement_group

    group = placement_group([{"CPU": 1}] * wanted)
    try:
        yield lambda: group.wait(_POLL_S)
    finally:
        remove_placement_group(group)


def _take_turn(wanted: int, stack: ExitStack) -> bool:
    """Whether it was nobody's turn, and the CPUs are free indeed; the turn ends with the stack."""
    import ray

    options = {**_TURN, "num_cpus": 0}
    try:
        turn = ray.remote(_Turn).options(**options).remote()
    except ValueError:
        return False
    if free := _are_free(wanted, _SETTLE_S):
        stack.callback(ray.kill, turn)
    else:
        ray.kill(turn)
    return free


def _turn_is_taken() -> bool:
    import ray

    try:
        ray.get_actor(**_TURN)
    except ValueError:
        return False
    return True


def _are_free(wanted: int, patience_s: float) -> bool:
    end = time.monotonic() + patience_s
    while (free := _free_cpus()) < wanted and time.monotonic() < end:
        time.sleep(0.1)
    return free >= wanted


def _free_cpus() -> float:
    import ray

    return float(ray.available_resources().get("CPU", 0))


def _cpus_in_total() -> float:
    import ray

    return float(ray.cluster_resources().get("CPU", 0))
