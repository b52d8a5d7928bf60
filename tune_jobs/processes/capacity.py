"""CPUs for the processes of a command, waited for while others have them or none has come yet.

It imports Ray, so whoever imports it has called `tune_jobs.terminal.running.prepare_environment`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import ray

from cluster_env.core.errors import Failure, InputError
from rllib_configs.config.schema import ExperimentConfig
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
    with ExitStack() as stack:
        if config.resources.num_runners and ray.util.get_current_placement_group() is None:
            _wait(config, say, stack)
        yield


def can_grow() -> bool:
    """Whether the cluster has an autoscaler.

    Ray has no public call for this. But autoscalers, KubeRay's too, tell each node of which group
    it is, which becomes a label; ``ray start`` by itself sets none. A cluster of KubeRay without
    ``enableInTreeAutoscaling`` has the labels as well: there a wait ends by its limit.
    """
    return any(_NODE_GROUP in node["Labels"] for node in ray.nodes() if node["Alive"])


class CpuWait:
    """A wait for CPUs: says every `SAY_EVERY_S` what it waits for, and ends by its limit.

    Args:
        num_cpus: how many have to come free.
        limit_s: how long it may take.
        say: told what it waits for.
        advice: another way out than to wait, for the failure.
    """

    def __init__(
        self, num_cpus: int, limit_s: float, say: Callable[[str], None], advice: str = ""
    ) -> None:
        self._cpus = "1 CPU" if num_cpus == 1 else f"{num_cpus} CPUs"
        self._limit_s, self._say, self._advice = limit_s, say, advice
        self._asked = "; asked the autoscaler for more" if can_grow() else ""
        self._say_at = time.monotonic()
        self._end = self._say_at + limit_s

    def go_on(self) -> None:
        """Says something, if it is time.

        Raises:
            Failure: if the limit is over.
        """
        free, total = map(num_cpus_of, (ray.available_resources(), ray.cluster_resources()))
        state = f"{free:g} of {total:g} are free{self._asked}"
        now = time.monotonic()
        if now >= self._end:
            raise Failure(
                f"{self._cpus} did not come free within {duration(self._limit_s)} ({state}); try "
                f"again when others have finished, {self._advice}or set resources.wait_s higher"
            )
        if now >= self._say_at:
            left = duration(self._end - self._say_at)
            self._say(f"waits for {self._cpus}; {state}; gives up in {left}")
            self._say_at += SAY_EVERY_S


def _wait(config: ExperimentConfig, say: Callable[[str], None], stack: ExitStack) -> None:
    """Waits; the turn that it takes ends with the stack."""
    grows, num_cpus = can_grow(), config.resources.num_runners
    total = num_cpus_of(ray.cluster_resources())
    if num_cpus > total and not grows:
        what = (
            "1 runner needs 1 CPU" if num_cpus == 1 else f"{num_cpus} runners need {num_cpus} CPUs"
        )
        raise InputError(
            f"{what}, but there are {total:g}; ask for fewer with --runners or "
            "resources.num_runners"
        )
    if _are_free(num_cpus, GRACE_S):
        return
    wait = CpuWait(num_cpus, config.resources.wait_s, say, "ask for fewer --runners, ")

    while True:
        with _requested(num_cpus, grows) as have_come:
            while not have_come():
                heed()
                wait.go_on()
        try:
            turn = ray.remote(_Turn).options(**_TURN, num_cpus=0).remote()
        except ValueError:
            pass  # it is another's turn
        else:
            if _are_free(num_cpus, _SETTLE_S):
                stack.callback(ray.kill, turn)
                return
            ray.kill(turn)
        while _turn_is_taken():  # and no request stands in the way of who has it
            heed()
            wait.go_on()
            time.sleep(_POLL_S)


@contextmanager
def _requested(num_cpus: int, grows: bool) -> Iterator[Callable[[], bool]]:
    """Asks an autoscaler, until the block ends; gives what waits a moment and says if they came.

    ``request_resources`` would hold for the whole cluster: the next job replaces it, and a killed
    one leaves it behind. What a placement group waits for goes away with its job, and comes on top
    of what others use.
    """
    if not grows:
        yield lambda: _are_free(num_cpus, _POLL_S)
        return
    group = ray.util.placement_group([{"CPU": 1}] * num_cpus)
    try:
        yield lambda: group.wait(_POLL_S)
    finally:
        ray.util.remove_placement_group(group)


def _turn_is_taken() -> bool:
    try:
        ray.get_actor(**_TURN)
    except ValueError:
        return False
    return True


def _are_free(num_cpus: int, limit_s: float) -> bool:
    end = time.monotonic() + limit_s
    while not (free := num_cpus_of(ray.available_resources()) >= num_cpus):
        if time.monotonic() >= end:
            break
        time.sleep(0.1)
    return free


def num_cpus_of(resources: dict[str, float]) -> float:
    """The CPUs among resources; Ray leaves out what is 0."""
    return resources.get("CPU", 0.0)
