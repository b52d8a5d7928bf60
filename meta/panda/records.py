r"""The record of every consumer (PANDA, section 4.1), as Parquet.

.. math:: T = \{(\gamma_i, W_i, \vec t_i, \vec\delta_i, \mathcal R_i, r_i)\}_{i=1}^n

with the specification, the weights of its actor, arrival and departure, wait and use, the nodes
that it ran on at last, and its reward.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.jobs import JobSet
from cluster_env.core.task import Task
from meta.panda.advisor import PolicyAdvisor
from meta.panda.plans import PlanShape
from meta.panda.specifications import SPECIFICATION, specifications
from rllib_configs.worlds.panda.plans import PAIR, decide_by_plans

_DTYPES: dict[str, Any] = {
    "specification": np.float32,
    "weights": np.float32,
    "reward": np.float64,
}
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
        """Writes a Parquet file, under another name first, so that none is ever half written."""
        import pyarrow as pa
        import pyarrow.parquet as pq

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
            InputError: if there is no such file, or it is no record of consumers.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(path)
            columns = {name: table.column(name).to_pylist() for name in cls.__dataclass_fields__}
            nodes = tuple(tuple(map(int, one)) for one in columns.pop("nodes"))
            found = {
                name: np.array(column, _DTYPES.get(name, np.int64))
                for name, column in columns.items()
            }
        except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
            what = (str(error) or type(error).__name__).splitlines()[0][:200]
            raise InputError(
                f"{shortened(str(path))} holds no records of consumers: {what}"
            ) from None
        names = (table.schema.metadata or {}).get(b"specification", b"").decode(errors="replace")
        _check(path, names, found)
        return cls(nodes=nodes, **found)


def _check(path: Path, names: str, found: dict[str, NDArray[Any]]) -> None:
    """Makes sure that columns fit together, and are of consumers as they are described today.

    Raises:
        InputError: if they do not.
    """
    place = shortened(str(path))
    shape = (len(found["reward"]), len(SPECIFICATION))
    if names != ",".join(SPECIFICATION) or found["specification"].shape not in (shape, (0,)):
        raise InputError(
            f"the records of {place} have another specification ({shortened(names) or 'none'}) "
            f"than consumers have today ({', '.join(SPECIFICATION)}); write them anew"
        )
    if not shape[0]:
        raise InputError(f"{place} holds no records of consumers: it has no rows")
    if found["weights"].ndim != 2:
        raise InputError(f"the actors of the records of {place} have no weights")
    for name in _DTYPES:
        if not np.isfinite(found[name]).all():
            raise InputError(
                f"the records of {place} have a {name} that is not finite, so nothing can be "
                f"learned from them"
            )


def recorded(
    network: PolicyAdvisor,
    task: Task,
    jobsets: Sequence[JobSet],
    episodes: int = 1,
    noise: float = 0.0,
    joint: float = 1.0,
    seed: int = 0,
) -> Records:
    """Plays jobsets with advised actors that weigh plans, and keeps the record of each consumer.

    An actor has the weights that its consumer is given when it arrives, to its end. With noise,
    those of an episode are all moved by the same normal numbers (parameter-based exploration:
    Sehnke et al., Neural Networks 23, 2010), so that records say which weights are better.

    Args:
        network: the advisor.
        task: world and objective.
        jobsets: what arrives.
        episodes: of each jobset.
        noise: standard deviation of the weights.
        joint: share of the mean over all consumers of the episode in each one's reward.
        seed: of the noise.

    Raises:
        InputError: if its actors do not weigh plans.
    """
    if not isinstance(network.shape, PlanShape):
        raise InputError("records are made by actors that weigh plans; take training.actor=plans")
    world = cast("Any", task.world)
    specs = [specifications(world, [jobset]) for jobset in jobsets]
    rng = np.random.default_rng(seed)
    with torch.inference_mode():
        made = [network.advise(torch.from_numpy(one)).numpy() for one in specs]
    thetas, kept = [], []
    for of_jobset, own in zip(made, specs, strict=True):
        for _ in range(episodes):
            thetas.append(of_jobset + noise * rng.standard_normal(len(PAIR)).astype(np.float32))
            kept.append(own)
    simulator = world.simulator()
    simulator.load(jobsets, task.objective, episodes)
    weights = np.concatenate(thetas)
    returns = _play(world, simulator, weights.astype(np.float64))
    return _records(simulator, np.concatenate(kept), weights, returns, joint)


def _play(world: Any, simulator: Any, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Plays all episodes; what each agent gets in all, float64 ``(num_rows,)``."""
    returns, rewards = np.zeros(simulator.num_rows), np.empty(simulator.num_rows)
    rows = np.flatnonzero(simulator.active).astype(np.int32)
    while rows.size:
        bits = np.empty((rows.size, world.num_actions), np.int32)
        decide_by_plans(
            *(simulator.states[rows], rows.astype(np.int64), weights),
            *(world.observed, world.held, 0.0, np.empty(len(PAIR)), bits),
        )
        simulator.step(rows, bits, rewards)
        returns[rows] += rewards[: rows.size]
        rows = np.flatnonzero(simulator.active).astype(np.int32)
    return returns


def _records(
    simulator: Any,
    specs: NDArray[np.float32],
    weights: NDArray[np.float32],
    returns: NDArray[np.float64],
    joint: float,
) -> Records:
    schedule = simulator.schedule()
    first = np.searchsorted(simulator.episode, np.arange(schedule.num_episodes))
    row = first[schedule.episode] + schedule.job
    runs, used, episode = simulator.runs()
    last = {
        int(first[where] + run["consumer"]): tuple(nodes[: run["held"]].tolist())
        for run, nodes, where in zip(runs, used, episode, strict=True)
    }
    done = schedule.finish >= 0
    until = np.where(done, schedule.finish, schedule.end[schedule.episode]).astype(np.int64)
    began = np.array([-1] * returns.size, np.int64)
    began[
        [int(first[where] + run["consumer"]) for run, where in zip(runs, episode, strict=True)]
    ] = runs["begin"]
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
        nodes=tuple(last.get(int(one), ()) for one in row),
        reward=(1 - joint) * returns[row] + joint * means[schedule.episode],
    )
