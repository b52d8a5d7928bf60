"""One short episode of each world and of a site, under two rules; prints when jobs start."""

import numpy as np

from cluster_env.core.spec import WORLDS, build_world, get_heuristic
from cluster_env.evaluation import evaluate
from tests.cluster_env.test_promises import jobsets_of, step_by_choice

SITE = {"kind": "hpc", "site": {"nodes": [{"name": "n", "count": 2, "processors": 128}]}}
KINDS = ("deeprm", "hpc", "accrual", "panda", "graphs")


def starts() -> list[str]:
    """A line for each world and rule; each rule chooses what it plays where the world can step."""
    lines = []
    for options in (*KINDS, SITE):
        world = build_world(options)
        jobsets = [one.select(slice(0, 6)) for one in jobsets_of(world, num=1)]
        for rule in WORLDS.get(world.kind).baselines[:2]:
            policy = get_heuristic(rule, world)
            played = evaluate(policy, jobsets, world).start.tolist()
            if options is not SITE:
                assert step_by_choice(world, jobsets, policy).start.tolist() == played
            lines.append(f"{world.kind} {rule} {played}")
    return lines


if __name__ == "__main__":
    np.seterr(over="ignore")  # hashes and generators of numbers wrap around
    print(*starts(), sep="\n")
