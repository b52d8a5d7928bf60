"""Runners that answer at once, so that what the driver does for a round can be measured."""

from itertools import count
from typing import Any

import ray

from rllib_configs.runners.units import Answer, Request

BATCH = 4


class _IdleRunner:
    """An actor that needs neither PyTorch nor RLlib.

    Args:
        played: what a unit comes to when it is played.
        learned: its part of an update.
    """

    def __init__(self, played: Any, learned: Any) -> None:
        self._played, self._learned = played, learned

    def sample(self, *, request: Request) -> Answer:
        """Answers with as many bytes as a runner that has added up its units."""
        part = self._played if request.round.step is None else self._learned
        return Answer(dict.fromkeys(((0, place) for place in request.units), part), 0.0)


class IdleRunners:
    """Stands in the place of `rllib_configs.runners.dispatch.Runners`.

    Args:
        number: of actors; all are called.
        played: see `_IdleRunner`.
        learned: see `_IdleRunner`.
        timeouts: as a driver has them.
    """

    def __init__(self, number: int, played: Any, learned: Any, timeouts: Any) -> None:
        actor = ray.remote(num_cpus=0)(_IdleRunner)
        self._actors: list[Any] = []
        while len(self._actors) < number:  # a machine of few cores cannot start many at a time
            some = [actor.remote(played, learned) for _ in range(min(BATCH, number))]
            ray.get([each.__ray_ready__.remote() for each in some])
            self._actors += some
        self.iterations, self.timeouts = count(), timeouts
        self.number = number

    def available(self) -> list[int]:
        """Numbers of the actors that are called."""
        return list(range(1, self.number + 1))

    def call(self, runner: int, request: Request) -> Any:
        """Sends a request to one of them."""
        return self._actors[runner - 1].sample.remote(request=request)

    def lose(self, runner: int, *, hangs: bool) -> None:
        """None of them should be lost."""
        raise RuntimeError(f"the idle actor {runner} {'hangs' if hangs else 'has died'}")
