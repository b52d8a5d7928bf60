r"""The record of every consumer (PANDA, section 4.1), as Parquet.

.. math:: T = \{(\gamma_i, W_i, \vec t_i, \vec\delta_i, \mathcal R_i, r_i)\}_{i=1}^n

with the specification, the weights of its actor, arrival and departure, wait and use, the nodes
that it ran on at last, and its reward.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.jobs import JobSet
from cluster_env.task import Task
from cluster_env.worlds.panda.simulator import PandaSimulator
from meta.panda.actors import PlanShape
from meta.panda.advisor import PolicyAdvisor
from meta.panda.specifications import SPECIFICATION, panda_of, specifications
from rllib_configs.worlds.panda.plans import decide_by_plans

_DTYPES: dict[str, Any] = {"specification": np.float32, "weights": np.float32, "reward": np.float64}
"""Of the columns that are not whole numbers."""


@dataclass(frozen=True, eq=False)
class Records:
    """Consumers, one a row; consumers of an episode stand together, in the order of arrival.

    Attributes:
        episode: int64 ``(n,)``.
        jobset: int64 ``(n,)``; episodes of one jobset have the same consumers.
        specification: float32 ``(n, 7)``, see `meta.panda.specifications.SPECIFICATION`.
        weights: float32 ``(n, weights)``, of its actor.
        arrival: int64 ``(n,)``, clock, as the next.
        departure: int64 ``(n,)``; -1 if it was cut at the end of time.
        wait: int64 ``(n,)``, steps, all that it did not run.
        use: int64 ``(n,)``, steps of the run that counts.
        nodes: of each, in any order.
        reward: float64 ``(n,)``.
    """

    episode: NDArray[np.int64]
    jobset: NDArray[np.int64]
    specification: NDArray[np.float32]
    weights: NDArray[np.float32]
    arrival: NDArray[np.int64]
    departure: NDArray[np.int64]
    wait: NDArray[np.int64]
    use: NDArray[np.int64]
    nodes: tuple[tuple[int, ...], ...]
    reward: NDArray[np.float64]

    def write(self, path: Path) -> None:
        """Writes a Parquet file, under another name first, so that none is ever incomplete."""
        columns: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("episode", "jobset", "arrival", "departure", "wait", "use", "reward")
        }
        columns |= {name: list(getattr(self, name)) for name in ("specification", "weights")}
        columns["nodes"] = pa.array([list(one) for one in self.nodes], pa.list_(pa.int64()))
        aside = path.with_name(f".{path.name}")
        names = {b"specification": ",".join(SPECIFICATION).encode()}
        pq.write_table(pa.table(columns).replace_schema_metadata(names), aside)
        aside.replace(path)

    @classmethod
    def read(cls, path: Path) -> "Records":
        """What was written.

        Raises:
            InputError: if there is no such file, it is no record of consumers, or its consumers are
                described otherwise than today.
        """
        file = shortened(str(path))
        try:
            table = pq.read_table(path)
            columns = {name: table.column(name).to_pylist() for name in cls.__dataclass_fields__}
            nodes = tuple(tuple(map(int, one)) for one in columns.pop("nodes"))
            arrays: dict[str, NDArray[Any]] = {
                name: np.array(column, _DTYPES.get(name, np.int64))
                for name, column in columns.items()
            }
        except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
            what = (str(error) or type(error).__name__).splitlines()[0][:200]
            raise InputError(f"{file} holds no records of consumers: {what}") from None
        # Columns must fit together, and be of consumers as they are described today.
        names = (table.schema.metadata or {}).get(b"specification", b"").decode(errors="replace")
        shape = (len(arrays["reward"]), len(SPECIFICATION))
        if names != ",".join(SPECIFICATION) or arrays["specification"].shape not in (shape, (0,)):
            raise InputError(
                f"the records of {file} have another specification ({shortened(names) or 'none'}) "
                f"than consumers have today ({', '.join(SPECIFICATION)}); write them anew"
            )
        if not shape[0]:
            raise InputError(f"{file} holds no records of consumers: it has no rows")
        if arrays["weights"].ndim != 2:
            raise InputError(f"the actors of the records of {file} have no weights")
        for name in _DTYPES:
            if not np.isfinite(arrays[name]).all():
                raise InputError(
                    f"the records of {file} have a {name} that is not finite, so nothing can be "
                    f"learned from them"
                )
        return cls(nodes=nodes, **arrays)


def record_episodes(
    network: PolicyAdvisor,
    task: Task,
    jobsets: Sequence[JobSet],
    episodes: int = 1,
    noise: float = 0.0,
    seed: int = 0,
) -> Records:
    """Plays jobsets with advised actors that weigh plans, and keeps the record of each consumer.

    An actor has the weights that its consumer is given when it arrives, to its end. With noise, the
    same normal numbers are added to those of all actors of an episode (parameter-based exploration:
    Sehnke et al., Neural Networks 23, 2010), so that records say which weights are better.

    The reward of a consumer is the mean over all of its episode.

    Raises:
        InputError: if its actors do not weigh plans.
    """
    if not isinstance(network.shape, PlanShape):
        raise InputError("records are made by actors that weigh plans; take training.actor=plans")
    world = panda_of(task.world)
    # The weights of all actors of all episodes: a row for each consumer, in the simulator's order.
    rng = np.random.default_rng(seed)
    specs, weights = [], []
    for jobset in jobsets:
        spec = specifications(world, [jobset])
        with torch.inference_mode():
            advised = network.advise(torch.from_numpy(spec)).numpy()
        for _ in range(episodes):
            added = noise * rng.standard_normal(network.shape.size).astype(np.float32)
            specs.append(spec)
            weights.append(advised + added)
    # Play all episodes side by side, and add up what each agent is rewarded with.
    simulator = world.simulator()
    simulator.load(jobsets, task.objective, episodes)
    actors = np.concatenate(weights).astype(np.float64)
    returns, rewards = np.zeros(simulator.num_rows), np.empty(simulator.num_rows)
    while (rows := np.flatnonzero(simulator.active).astype(np.int32)).size:
        actions = decide_by_plans(world, simulator.states[rows], rows.astype(np.int64), actors)
        simulator.step(rows, actions, rewards)
        returns[rows] += rewards[: rows.size]
    return _records_of(simulator, np.concatenate(specs), np.concatenate(weights), returns)


def _records_of(
    simulator: PandaSimulator,
    specs: NDArray[np.float32],
    weights: NDArray[np.float32],
    returns: NDArray[np.float64],
) -> Records:
    """Records of episodes that have ended, in the order of the schedule."""
    schedule = simulator.schedule()
    # Rows of an episode stand together in the order of its consumers.
    first = np.searchsorted(simulator.episode, np.arange(schedule.num_episodes))
    row = first[schedule.episode] + schedule.job
    # A consumer that lost a node has run several times: the last run is the one that counts.
    runs, run_nodes, episode = simulator.runs()
    runner = first[episode] + runs["consumer"]
    nodes = {
        int(consumer): tuple(used[:held].tolist())
        for consumer, held, used in zip(runner, runs["held"], run_nodes, strict=True)
    }
    began = np.full(returns.size, -1, np.int64)
    began[runner] = runs["begin"]
    done = schedule.finish >= 0
    until = np.where(done, schedule.finish, schedule.end[schedule.episode]).astype(np.int64)
    use = np.where(done, until - began[row], 0)
    counts = np.bincount(schedule.episode, minlength=schedule.num_episodes)
    means = np.bincount(schedule.episode, returns[row]) / np.maximum(counts, 1)
    return Records(
        episode=schedule.episode.astype(np.int64),
        jobset=schedule.jobset[schedule.episode].astype(np.int64),
        specification=specs[row],
        weights=weights[row],
        arrival=schedule.arrival.astype(np.int64),
        departure=np.where(done, until, -1),
        wait=until - schedule.arrival - use,
        use=use,
        nodes=tuple(nodes.get(int(one), ()) for one in row),
        reward=means[schedule.episode],
    )
