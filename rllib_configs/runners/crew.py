"""RLlib's env runners as those who do units; what is asked of a group of them, and no more."""

from typing import Any, Protocol

import ray
from ray.rllib.env.env_runner_group import EnvRunnerGroup

from rllib_configs.runners.units import Answer, Request


class Crew(Protocol):
    """Processes that do units, and the driver itself."""

    @property
    def size(self) -> int:
        """How many processes there should be."""

    def healthy(self) -> list[int]:
        """Numbers of those that there are."""

    def ask(self, runner: int, request: Request) -> "ray.ObjectRef[Answer]":
        """Sends a request to one of them, and does not wait."""

    def lose(self, runner: int, *, hangs: bool) -> None:
        """Takes note that one has died, or ends and replaces one that hangs."""

    def do_here(self, request: Request) -> Answer:
        """Does it in the driver."""


class RunnerGroup:
    """The runners of an RLlib algorithm; see `Crew`."""

    def __init__(self, group: EnvRunnerGroup) -> None:
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

    def ask(self, runner: int, request: Request) -> "ray.ObjectRef[Answer]":
        """See `Crew`."""
        reference: ray.ObjectRef[Answer] = self._manager.actors()[runner].sample.remote(
            request=request
        )
        return reference

    def lose(self, runner: int, *, hangs: bool) -> None:
        """See `Crew`; Ray starts the process again, and RLlib takes it back then."""
        if hangs:
            ray.kill(self._manager.actors()[runner], no_restart=False)
        self._manager.set_actor_state(runner, healthy=False)

    def do_here(self, request: Request) -> Answer:
        """See `Crew`."""
        answer: Answer = self._group.local_env_runner.sample(request=request)
        return answer
