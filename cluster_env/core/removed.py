"""What is gone by its name, and what to use instead."""

_HELD = "it held jobs back, which does harm on most real logs; take hpc-order"
_PEER = "the tests repeat its loop; take sjf:easy, and compare --protocol rlscheduler"
_RECORDED = "commit c7fb3903 recorded what it made"
_ROLLOUTS = "'metasched compare --policies rollout:POLICY:FUTURES' plays what it was fitted to"
_CALIBRATED = "'metasched replay FILE --calibrate' compares simulated and recorded waits"
_LISTED = "the command without a name lists what there is"
_LOGS = "the worlds hpc and deeprm read job logs, as the workload trace"

REMOVED = {
    **dict.fromkeys(("hpc-hold", "hpc-hold-limits", "hpc-limits", "hpc-capability"), _HELD),
    **dict.fromkeys(("hpc-universal", "hpc-no-worse"), _HELD),
    **dict.fromkeys(("experiment hpc", "experiment hpc-limits"), _RECORDED),
    **dict.fromkeys(("rls", "rls_easy"), _PEER),
    "saf-strict": "take saf:strict",
    "wspt-strict": "take wspt:strict",
    "sjf-skip": "take sjf:skip",
    "reserve": "on real logs no rule did worse; take saf:easy",
    "gate": "take skip",
    "gated_easy": "take easy",
    "family of jobsets capability": "take any-site",
    "model of run times learned": "take mixed",
    "option run_times": "in the world hpc it is task.world.run_times",
    "algorithm expert_iteration": _ROLLOUTS,
    "preset deeprm-expert": _ROLLOUTS,
    "experiment expert": _ROLLOUTS,
    "workload trace": _LOGS,
    "workload log": _LOGS,
    "option trace": _LOGS,
    "option shares": "all projects have the same share of the jobs",
    "option growth": "the squeezed job of the highest remaining utility grows first",
    "option grow_first": "squeezed jobs grow before waiting jobs start",
    "option on_loss": "a consumer that loses a node restarts",
    "option pace": "a run is as fast as the slowest of its nodes",
    "option strict": "a run outside of the preferred place takes longer",
    "option across_racks": "a run across racks takes 1.25 times as long",
    "option across_regions": "a run across regions takes 1.6 times as long",
    **dict.fromkeys(
        ("figure deeprm-fig6", *(f"figure cunha-fig5.{k}" for k in (2, 3, 4))),
        "the figure learning-curves draws the same",
    ),
    "figure inner-rates": "the policy's weights hold them; load_policy reads these",
    **dict.fromkeys((f"option of trace {k}" for k in ("calibrate", "slurm-conf")), _CALIBRATED),
    **dict.fromkeys(
        (f"option of {k} slurm-conf" for k in ("replay", "whatif", "report")),
        "give --site FILE, which simulates nodes and partitions, too",
    ),
    "option of whatif too-long": "give --change task.workload.too_long=cap",
    "option of compare wide": "a wider terminal shows more; --out and --json keep all columns",
    "option of adapt trace": "give --task workload.trace=FILE",
    "option of adapt objective": "give --task objective=NAME",
    **dict.fromkeys((f"option of {k} list" for k in ("figure", "results")), _LISTED),
    "option of tune sweeps": _LISTED,
    **{f"option of train {name}": f"give --show {name}" for name in ("presets", "settings")},
    "option of train print-config": "give --show config",
    **dict.fromkeys(
        (f"option of {k} no-track" for k in ("train", "tune")),
        "give --set tracking.enabled=false",
    ),
    "option of figure table": "give --rows FILE.csv",
    "option of report force": "a report replaces an older one in its folder",
    **dict.fromkeys(
        ("option of train tracking-uri", "option of tune tracking-uri"),
        "set MLFLOW_TRACKING_URI, or give --set tracking.uri=URI",
    ),
    **dict.fromkeys(
        ("option of compare address", "option of study address"),
        "set RAY_ADDRESS to HOST:PORT or auto",
    ),
    "command starts": "'metasched shadow POLICY --starts LOG --ticks 1' foresees starts",
    **dict.fromkeys(
        (f"option of {k} longest-wait" for k in ("shadow", "steer")), "give --max-wait"
    ),
    "option of shadow json": "to a pipe, as with '| cat', it writes lines of JSON",
    "option of shadow nodes-every": "sinfo is called once a minute",
    "option of steer squeue-timeout": "a shorter --watchdog gives squeue less time",
    "command specialists": "'metasched study RUN --specialists N' trains them",
    "command guard": "'metasched compare --policies RUN --decide' decides",
    "command choose": "the function metasched.choose of Python judges runs by their seed",
    "command join": "the function metasched.join of Python joins tables",
    "command record": "the function metasched.record of Python writes records of consumers",
    "function make_parallel_env": "tests/extensions/parallel_env.py is PettingZoo's environment",
    "scheduling_pass": "jobs start when all events of a second are over",
}
"""By name, or by what it is and its name."""


def was_removed(kind: str, name: str) -> str | None:
    """A sentence on a name that is gone; None for any other."""
    stem = name.partition(":")[0]
    instead = REMOVED.get(f"{kind} {stem}") or REMOVED.get(stem)
    return instead and f"the {kind} '{name}' was removed: {instead}"
