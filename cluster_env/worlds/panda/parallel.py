"""The world as a parallel environment of PettingZoo, which has to be installed."""

from typing import Any, ClassVar

from gymnasium import spaces
from pettingzoo import ParallelEnv

from cluster_env.core.task import Task
from cluster_env.worlds.panda.episode import AgentEpisode, Observation

Told = tuple[
    dict[str, Observation],
    dict[str, float],
    dict[str, bool],
    dict[str, bool],
    dict[str, dict[str, Any]],
]


class PandaParallelEnv(ParallelEnv):  # type: ignore[misc]  # it is not typed
    """`AgentEpisode` as PettingZoo asks for it.

    Agents come while the episode is under way; ``possible_agents`` are those of the present jobset.

    Args:
        task: a world of this kind, a workload and an objective.
        seed: of the jobsets.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "panda_v0", "render_modes": []}
    render_mode = None

    def __init__(self, task: Task, seed: int = 0) -> None:
        self._episode = AgentEpisode(task, seed)
        self.agents: list[str] = []
        self.possible_agents = self._episode.names

    def observation_space(self, agent: str) -> spaces.Dict:
        """The same for all agents."""
        return self._episode.seen

    def action_space(self, agent: str) -> spaces.MultiBinary:
        """The same for all agents."""
        return self._episode.done_by

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Begins the next jobset, or the first one of a seed."""
        seen = self._episode.restart(seed)
        self.possible_agents, self.agents = self._episode.names, list(seen)
        return seen, {name: {} for name in seen}

    def step(self, actions: dict[str, Any]) -> Told:
        """Takes the decisions of all agents."""
        seen, rewards, ended, cut, _ = self._episode.advance(actions)
        self.agents = list(self._episode.alive)
        return seen, rewards, ended, cut, {name: {} for name in seen}
