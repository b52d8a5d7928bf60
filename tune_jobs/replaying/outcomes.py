"""What came of replays, as sheets: in all, by size, by user."""

from collections.abc import Mapping

import numpy as np

from cluster_env.core.schedule import Schedule
from cluster_env.core.sheets import COUNT, RATIO, SECONDS, SHARE, TEXT, Sheet
from cluster_env.evaluation.replays import OF_JOBS, OUTCOME, SIZES, of_groups, of_sizes
from cluster_env.workloads.recorded import RecordedJobs

_TITLES = {
    "bounded_slowdown": "slowdown",
    "mean_wait": "wait",
    "longest_wait": "longest",
    "utilization": "util",
}
_MOST_POLICIES = 4
"""Of which a column fits beside a user's name into 80 characters."""


def in_all(outcomes: Mapping[str, Mapping[str, float]], jobs: RecordedJobs) -> Sheet:
    """Every policy with the numbers of the whole log, the lowest slowdown first."""
    ranked = sorted(outcomes, key=lambda name: outcomes[name]["bounded_slowdown"])
    units = dict(OUTCOME)
    if any(found["unfinished"] for found in outcomes.values()):
        units["unfinished"] = COUNT
    note = (
        "slowdown: mean bounded slowdown, 10 s; util: inside the time in which jobs arrive; to "
        "end: up to the last finish"
    )
    if len(jobs.resources) > 1:
        note += f"; use is the mean of {' and '.join(jobs.resources)}"
    rows = [{"policy": name, **outcomes[name]} for name in ranked]
    return Sheet("replay", "The whole log", units, rows, note, _TITLES)


def by_size(schedules: Mapping[str, Schedule]) -> Sheet:
    """Slowdowns and waits of narrow, medium and wide jobs."""
    rows = []
    for name, schedule in schedules.items():
        found = of_sizes(schedule)
        rows.append(
            {
                "policy": name,
                **{f"{of}_{size}": found[size][of] for of in (*OF_JOBS, "work") for size in SIZES},
            }
        )
    units = {
        "policy": TEXT,
        **{f"bounded_slowdown_{size}": RATIO for size in SIZES},
        **{f"mean_wait_{size}": SECONDS for size in SIZES},
    }
    titles = {
        **{f"bounded_slowdown_{size}": size for size in SIZES},
        **{f"mean_wait_{size}": f"wait {size}" for size in SIZES},
    }
    counts = ", ".join(f"{rows[0][f'jobs_{size}']:,.0f} {size}" for size in SIZES)
    note = (
        f"slowdowns and waits of {counts} jobs: of at most a sixteenth of the machine, at most a "
        f"quarter, and more"
    )
    return Sheet("by-size", "By size", units, rows, note, titles)


def by_user(schedules: Mapping[str, Schedule], jobs: RecordedJobs) -> list[Sheet]:
    """Mean waits of users and of queues, as far as the log knows any; most work first."""
    sheets = []
    for name in ("user", "queue"):
        if name not in jobs.ids or not jobs.ids[name].any():
            continue
        ids = jobs.ids[name]
        count = int(ids.max()) + 1
        found = {key: of_groups(one, ids[one.job], count) for key, one in schedules.items()}
        first = next(iter(found.values()))
        work = np.array([group["work"] for group in first])
        rows = []
        for k in np.argsort(-work, kind="stable"):
            row = {name: str(jobs.names[name][k]) or "(none)", "jobs": first[k]["jobs"]}
            row["of_work"] = float(work[k] / work.sum())
            for key, groups in found.items():
                row |= {f"{of} {key}": groups[k][of] for of in OF_JOBS if of != "jobs"}
            rows.append(row)
        shown = list(found)[:_MOST_POLICIES]
        units = {
            name: TEXT,
            "jobs": COUNT,
            "of_work": SHARE,
            **{f"mean_wait {key}": SECONDS for key in shown},
        }
        titles = {f"mean_wait {key}": key for key in shown}
        note = "mean waits"
        if len(found) > len(shown):
            note += f"; those of further policies stand in by-{name}.csv with --out"
        title = f"{name.capitalize()}s, most work first"
        sheets.append(Sheet(f"by-{name}", title, units, rows, note, titles))
    return sheets
