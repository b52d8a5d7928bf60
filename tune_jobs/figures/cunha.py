"""Cunha (2022): every rule and learned policies, by machine, job log and estimates."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product

from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.scenarios import Scenario, ScenarioFigure, logs_of


def _published_windows(request: FigureRequest) -> Iterator[Scenario]:
    for name, settings in logs_of(request):
        yield Scenario(f"{name}, RLScheduler's windows", "hpc-smoke", settings, "rlscheduler")


def _logs_by_estimates(request: FigureRequest) -> Iterator[Scenario]:
    for name, settings in logs_of(request):
        for estimates in ("recorded", "gaussian:1", "tsafrir"):
            anywhere = {"workload.jobs": 1024, "workload.whole": "true"}  # as the dissertation cuts
            changed = {**settings, **anywhere, "workload.estimates": estimates}
            yield Scenario(f"{name}, estimates {estimates}", "hpc-smoke", changed)


def _generated(
    name: str, processors: Iterable[int], estimates: Iterable[str] = ("",)
) -> Callable[[FigureRequest], list[Scenario]]:
    """256 of Lublin's jobs by machine and estimates; by default, estimates are the preset's."""
    scenarios = []
    for size, kind in product(processors, estimates):
        settings: dict[str, object] = {"world.processors": size, "workload.jobs": 256}
        settings |= {"workload.estimates": kind} if kind else {}
        scenarios.append(Scenario(name.format(size, kind), "hpc-smoke", settings))
    return lambda request: scenarios


_SCENARIOS = {1: (10, 15), 2: (10, 48), 6: (64, 15), 8: (64, 33), 10: (64, 48)}
"""Processors and longest job of those scenarios of its table 5.3 whose jobs may be as large as the
machine; `BimodalWorkload` has no smaller ones."""

_ARRIVALS = 0.3  # jobs in a time step


def _scenarios(request: FigureRequest) -> Iterator[Scenario]:
    for number, (processors, longest) in _SCENARIOS.items():
        small, large = (1, longest // 5), (round(longest * 2 / 3), longest)
        mean = 0.8 * sum(small) / 2 + 0.2 * sum(large) / 2
        settings: dict[str, object] = {
            "world.cluster.capacity": [processors],
            "world.cluster.horizon": 60,
            "workload.window": 100,
            "workload.small_duration": list(small),
            "workload.large_duration": list(large),
            "workload.load": round(_ARRIVALS * mean * 0.75, 3),  # jobs take half to all of it
        }
        name = f"Scenario {number}: {processors} processors, jobs of up to {longest} steps"
        yield Scenario(name, "deeprm", settings)


TABLE_6 = ScenarioFigure(
    "Bounded slowdown on RLScheduler's windows (Cunha, table 5.6)", _published_windows
)
TABLE_7 = replace(
    TABLE_6, title="Utilization on RLScheduler's windows (Cunha, table 5.7)", metric="utilization"
)
TABLE_9 = ScenarioFigure(
    "Bounded slowdown of generated jobs, by estimates (Cunha, table 5.9)",
    _generated(
        "{:,} processors, estimates {}",
        (128, 256, 1024, 16_384),
        ("exact", "gaussian:1", "tsafrir"),
    ),
)
TABLE_10 = ScenarioFigure(
    "Bounded slowdown on job logs, by estimates (Cunha, table 5.10)", _logs_by_estimates
)
TABLE_11 = replace(
    TABLE_10,
    title="Utilization on job logs, by estimates (Cunha, table 5.11)",
    metric="utilization",
)
FIGURE_5 = ScenarioFigure("Slowdown by scenario (Cunha, figure 5.5)", _scenarios, "slowdown")
FIGURE_8 = ScenarioFigure(
    "Policies on machines of other sizes (Cunha, figure 5.8)",
    _generated("{:,} processors", (64, 128, 256, 1024, 16_384)),
)
FIGURE_9 = ScenarioFigure(
    "Bounded slowdown of generated jobs, by noise of estimates (Cunha, figure 5.9)",
    _generated(
        "{} processors, estimates {}",
        (128,),
        ("exact", "gaussian:0.5", "gaussian:1", "gaussian:1.5", "gaussian:2"),
    ),
)
