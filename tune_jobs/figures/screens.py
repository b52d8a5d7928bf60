"""What environments render: one state of an episode under a rule."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from cluster_env.core.jobs import JobSet
from cluster_env.envs import ClusterEnv
from cluster_env.worlds import get_heuristic, get_spec
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import MUTED, styled
from tune_jobs.tables.frames import Row, read_frame

_LOAD = 1.1  # so that jobs wait
_MOST_DECISIONS = 150
_DPI = 100


@dataclass(frozen=True)
class Screen:
    """A state of a world with default options, under the first of its baselines.

    Attributes:
        kind: of the world.
    """

    kind: str

    def collect(self, request: FigureRequest) -> list[Row]:
        """Plays up to where most jobs wait and run, in the first decisions of an episode.

        Returns:
            A row for each job (arrival, duration, demands, estimate), then one for each decision.
        """
        env = ClusterEnv(world=self.kind, workload={"load": _LOAD})
        env.reset(seed=request.seed)
        rule = get_heuristic(get_spec(self.kind).baselines[0], env.world)
        actions, busy = [], [0]
        for _ in range(_MOST_DECISIONS):
            actions.append(int(env.choose(rule)))
            _, _, terminated, truncated, info = env.step(actions[-1])
            if terminated or truncated:
                break
            schedule, now = env.schedule(), int(info["time"])
            waiting = int((schedule.start < 0).sum())
            runs = (schedule.start >= 0) & (schedule.start + schedule.duration > now)
            busy.append(waiting * int(runs.sum()))
        jobs = env.jobset
        assert jobs is not None
        estimates = jobs.attributes.get("estimate", jobs.duration)
        rows: list[Row] = [
            {
                "series": "job",
                "arrival": int(jobs.arrival[k]),
                "duration": int(jobs.duration[k]),
                "estimate": int(estimates[k]),
                "demand": " ".join(str(units) for units in jobs.demand[k]),
            }
            for k in range(jobs.num_jobs)
        ]
        shown = actions[: int(np.argmax(busy))]
        rows += [{"series": "decision", "action": action} for action in shown]
        return rows

    def draw(self, table: Path) -> Figure:
        """Takes the decisions of the CSV file again, and draws what the environment renders."""
        times = ("arrival", "duration", "estimate")
        rows = read_frame(table, ("series", "demand"), (*times, "action"))
        of_jobs = rows[rows["series"] == "job"]
        arrival, duration, estimate = (of_jobs[name].to_numpy(np.int64) for name in times)
        demand = [[int(units) for units in text.split()] for text in of_jobs["demand"]]
        window = int(arrival.max()) + 1
        jobs = JobSet.of(arrival, duration, demand, window, attributes={"estimate": estimate})
        env = ClusterEnv(world=self.kind, render_mode="rgb_array")
        env.reset(options={"jobset": jobs})
        actions = rows.loc[rows["series"] == "decision", "action"]
        for action in actions:
            env.step(int(action))
        pixels = env.render()
        assert pixels is not None
        height, width = pixels.shape[:2]
        with styled():
            figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)
            figure.figimage(pixels)
            words = f"{self.kind}: {len(of_jobs):,} jobs, after {len(actions):,} decisions"
            figure.text(0.99, 1 - 24 / height, words, ha="right", fontsize=9, color=MUTED)
        return figure


DEEPRM = Screen("deeprm")
HPC = Screen("hpc")
