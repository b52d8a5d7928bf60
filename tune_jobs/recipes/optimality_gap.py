"""Policies beside the best that anybody could have done in hindsight."""

from dataclasses import replace

import numpy as np

from cluster_env.evaluation import Result
from tune_jobs.measuring.comparison import side_cells, spec_cells
from tune_jobs.measuring.policy_specs import PolicySpec
from tune_jobs.recipes.deeprm import IN_HINDSIGHT
from tune_jobs.recipes.hindsight import Hindsight, look_back, metric_in_hindsight
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import Row, Value, estimate_cells


def collect(request: FigureRequest) -> list[Row]:
    """Evaluates policies, and searches for the best schedule of each of the same unseen jobsets.

    What is compared is the completion time if that is the config's objective, else the slowdown.

    Returns:
        One row for each policy (``series`` is ``policy``) with means over the jobs of all jobsets,
        and ``ratio``, the mean over that of the best schedules, with its 95 % interval; then, one
        for each jobset and policy (``jobset``), the same within the jobset. ``best`` and ``bound``
        are the means of the best known schedules and of what no schedule can beat, ``status``
        says whether the two are proven to be one, and ``proven`` of how many jobsets they are. Rows
        of policies have what their means were bought with, see `side_cells`.

    Raises:
        InputError: if OR-tools is not installed, or a run cannot be used.
    """
    runs, config = request.load()
    whole = request.protocol(config)
    metric = metric_in_hindsight(whole.task)
    protocol = replace(whole.at(*whole.values()), metric=metric)
    specs = request.specs(IN_HINDSIGHT, runs)
    hindsight = look_back(specs, protocol, time_limit_s=request.time_limit_s, work=request.work)
    head = {
        **protocol.columns(),
        "proven": hindsight.num_proven,
        "time_limit_s": request.time_limit_s,
    }
    policies, jobsets = list[Row](), list[Row]()
    for spec, result in zip(specs, hindsight.results, strict=True):
        row = _policy_row(spec, result, hindsight) | side_cells(protocol, result)
        policies.append({**head, **row})
        jobsets += [{**head, **row} for row in _jobset_rows(spec, result, hindsight)]
    return policies + jobsets


def _policy_row(spec: PolicySpec, result: Result, hindsight: Hindsight) -> dict[str, Value]:
    references, ratio = hindsight.references, hindsight.ratio(result)
    num_jobs = float(references["num_jobs"].sum())
    proven = hindsight.num_proven == len(references)
    return {
        "series": "policy",
        "jobset": "",
        **spec_cells(spec, result.name),
        "num_jobs": num_jobs,
        "unfinished": result.means["unfinished"],
        "value": result.mean(hindsight.metric),
        "best": float(references["value"].to_numpy().sum()) / num_jobs,
        "bound": float(references["bound"].to_numpy().sum()) / num_jobs,
        "status": "optimal" if proven else "feasible",
        **estimate_cells("ratio", ratio),
        "interval_over": ratio.over,
    }


def _jobset_rows(spec: PolicySpec, result: Result, hindsight: Hindsight) -> list[dict[str, Value]]:
    """One row for each jobset that has jobs."""
    means = np.mean([member.rows(hindsight.metric) for member in result.members], axis=0)
    unfinished = np.mean([member.num_unfinished for member in result.members], axis=0)
    return [
        {
            "series": "jobset",
            "jobset": index,
            **spec_cells(spec, result.name),
            "num_jobs": reference.num_jobs,
            "unfinished": float(unfinished[index]),
            "value": float(means[index]),
            "best": reference.value / reference.num_jobs,
            "bound": reference.bound / reference.num_jobs,
            "status": reference.status,
            "ratio": float(means[index]) * reference.num_jobs / reference.value,
        }
        for index, reference in enumerate(hindsight.references.itertuples())
        if reference.num_jobs
    ]
