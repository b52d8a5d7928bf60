"""Trains with each example of this folder, on two runners: ``python train_all.py RUNS``.

Started with this folder on the path; as a submitted job in it, with METASCHED_IMPORTS in the
environment of all processes. More arguments go on to each command.
"""

import os
import sys

COMMON = (
    "--runners 2 --set tracking.enabled=false --set training.iterations=2 "
    "--set evaluation.jobsets=40"
)
SMOKE = f"train deeprm-smoke {COMMON} --set training.jobsets=8"
LINES = {
    "algorithm-network-objective-workload": (
        f"{SMOKE} --set training.algorithm=whole_return --set training.network=linear "
        "--set training.void=-1 --set task.objective=tardiness "
        "--set task.workload.kind=nightly --set task.workload.num_jobs=7"
    ),
    "heuristic-closure-world-observation": (
        f"{SMOKE} --set training.algorithm=evolution --set training.network=bilinear_scorer "
        "--set training.validation_jobsets=4 --set training.limits.utilization=0.1 "
        "--set training.reference=lcfs --set task.world.kind=work_conserving "
        "--set task.objective=overdue"
    ),
}
MODULES = (
    *("own_algorithm", "own_network", "own_objective", "own_workload", "own_heuristic"),
    *("own_observation", "own_world", "own_order", "own_hook", "closure_objective"),
)


def main(arguments: list[str]) -> int:
    os.environ.setdefault("METASCHED_IMPORTS", ",".join(MODULES))
    from tune_jobs import cli

    runs, *rest = arguments
    for name, line in LINES.items():
        status = cli.run(cli.metasched, [*line.split(), "--run", f"{runs}/{name}", *rest])
        if status:
            return status
        print(f"trained {name}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
