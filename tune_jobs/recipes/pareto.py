"""Every rule and policy on Lublin's jobs or on job logs."""

from collections.abc import Iterator

from tune_jobs.recipes.request import FigureRequest
from tune_jobs.recipes.scenarios import Scenario, ScenarioTable, logs_of


def _scenarios(request: FigureRequest) -> Iterator[Scenario]:
    if request.traces:
        for name, settings in logs_of(request):
            yield Scenario(f"{name}, RLScheduler's windows", "hpc-smoke", settings, "rlscheduler")
        return
    jobs = {"workload.jobs": 1024}
    yield Scenario("Lublin's jobs, load 100%", "hpc-smoke", {**jobs, "workload.load": 1.0})
    typed = {**jobs, "workload.load": 0.6, "workload.typed": "true"}
    yield Scenario("Lublin's jobs of two kinds, load 60%", "hpc-smoke", typed)


TABLE = ScenarioTable("What a small slowdown costs", _scenarios)
