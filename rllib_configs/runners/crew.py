"""Those who do units, and what is asked of a group of them."""

from typing import TYPE_CHECKING, Any, Protocol

import ray

from rllib_configs.runners.requests import Answer, Meeting, Request

if TYPE_CHECKING:
    from ray.rllib.env.env_runner_group import EnvRunnerGroup


class Crew(Protocol):
    """Members that do units side by side: runners, or stations with several runners each.

    Runners have numbers from 1 up, stations from -1 down.
    """

    @property
    def size(self) -> int:
        """How many runners there should be."""

    def healthy(self) -> list[int]:
        """Numbers of the members that there are."""

    def team(self, member: int) -> tuple[int, ...]:
        """Numbers of the runners that a member stands for."""

    def name(self, member: int) -> str:
        """What to call it in a message."""

    def ask(self, member: int, request: Request) -> "ray.ObjectRef[Answer]":
        """Sends a request to one of them, and does not wait."""

    def serve(self, member: int, meeting: Meeting) -> "ray.ObjectRef[None]":
        """Asks one of them to open a line and answer on it; see `rllib_configs.runners.lines`."""

    def lose(self, member: int, *, hangs: bool) -> None:
        """Takes note that one has died, or ends and replaces one that hangs."""

    def do_here(self, request: Request) -> Answer:
        """Does what nobody is left for."""


class RunnerGroup:
    """The runners of an RLlib algorithm, and the driver itself; see `Crew`."""

    def __init__(self, group: "EnvRunnerGroup") -> None:
        self._group = group
        self._manager: Any = group._worker_manager  # RLlib itself replaces only those that died

    @property
    def size(self) -> int:
        """See `Crew`."""
        return int(self._group.num_remote_env_runners())

    def healthy(self) -> list[int]:
        """See `Crew`."""
        found: list[int] = self._group.healthy_env_runner_ids()
        return found

    def team(self, member: int) -> tuple[int, ...]:
        """See `Crew`."""
        return (member,)

    def name(self, member: int) -> str:
        """See `Crew`."""
        return f"env runner {member}"

    def handle(self, member: int) -> Any:
        """A runner as others may call it."""
        return self._manager.actors()[member]

    def ask(self, member: int, request: Request) -> "ray.ObjectRef[Answer]":
        """See `Crew`."""
        reference: ray.ObjectRef[Answer] = self.handle(member).sample.remote(request=request)
        return reference

    def serve(self, member: int, meeting: Meeting) -> "ray.ObjectRef[None]":
        """See `Crew`."""
        reference: ray.ObjectRef[None] = self.handle(member).serve.remote(meeting)
        return reference

    def lose(self, member: int, *, hangs: bool) -> None:
        """See `Crew`; Ray starts the process again, and RLlib takes it back then."""
        if hangs:
            ray.kill(self.handle(member), no_restart=False)
        self._manager.set_actor_state(member, healthy=False)

    def do_here(self, request: Request) -> Answer:
        """See `Crew`."""
        answer: Answer = self._group.local_env_runner.sample(request=request)
        return answer

    def nodes(self, members: list[int], limit_s: float = 10.0) -> dict[int, tuple[str, str]]:
        """Node and address of each of some runners, as far as they answer."""
        found = self._group.foreach_env_runner(
            _node, remote_worker_ids=members, local_env_runner=False, timeout_seconds=limit_s
        )
        return {member: (node, address) for member, node, address in found}


def _node(runner: Any) -> tuple[int, str, str]:
    node = ray.get_runtime_context().get_node_id()
    return runner.worker_index, node, ray.util.get_node_ip_address()
