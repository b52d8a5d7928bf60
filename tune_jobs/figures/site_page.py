"""The table of the figure ``sites``, and what people read of it: a page, or a table of each log."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from cluster_env.core.durations import duration
from cluster_env.core.removed import REMOVED
from rllib_configs.config.loading import read_yaml
from tune_jobs.recipes.site_leaderboard import ALL, leaderboard
from tune_jobs.recipes.site_units import BUSY, NUMBERS, PREDICTED, REFERENCE, TEXTS
from tune_jobs.recipes.sites import RULES
from tune_jobs.replaying.outcomes import SIZES
from tune_jobs.tables.columns import COUNT, SHARE, shown, with_interval
from tune_jobs.tables.frames import read_frame
from tune_jobs.tables.printing import aligned, code_span, markdown

DEFAULT = "hpc-order"
"""The shipped policy that stands beside the best rule of each log."""

_WIDTH = 120  # characters of a line of prose

_RATIOS = (
    "Ratios are means over the busy logs. *Best rule* is the rule without predictions that is best "
    "on a log in hindsight; the 95% intervals are over weeks and over logs. *Past's choice* is the "
    "rule that was best in the earlier half of a log; it is applied to the later half. *Rank* is "
    "one plus the number of policies whose whole interval over weeks is lower."
)

_COLUMNS = (
    "Side metrics compare with the best rule. Utilization is a difference in percentage points; "
    "waits (mean/p95/longest) and slowdowns (mean over users, mean of wide jobs) are ratios."
)

_ARCHIVES = Path(__file__).with_name("archives.yaml")


Write = Callable[[pd.Series], str]


@dataclass(frozen=True)
class Source:
    """Where a log can be had."""

    archive: str
    url: str
    asks: str
    log: str  # its name there


def read_sites(table: Path) -> pd.DataFrame:
    """The rows of a table.

    Raises:
        InputError: if it cannot be read, or is another one.
    """
    return read_frame(table, TEXTS, NUMBERS)


def page_of(table: Path) -> str:
    """The page of a table: what was played, all logs together, each log, where the logs are."""
    rows = read_sites(table)
    logs = rows.drop_duplicates("log")
    policy, why = _shown_policy(rows)
    leaders, entries = _leaders(table, rows), _read_entries(table)
    parts = [
        "# Rules and policies on real job logs",
        f"    {_command(logs)}",
        _setup(rows, logs, entries),
        "## All logs",
        textwrap.fill(_RATIOS, _WIDTH),
        _ratios(leaders),
        textwrap.fill(_COLUMNS, _WIDTH),
        _prices(leaders, entries),
        *_others(entries),
        f"![Slowdowns over that of each log's best rule]({table.stem}.png)",
        "## Each log",
        textwrap.fill(
            f"Where a cell has two values, the first is for the best rule and the second for "
            f"`{policy}`, the learned policy {why}. *Ratio* compares these two, week by week.",
            _WIDTH,
            break_on_hyphens=False,
        ),
        _each_log(rows, policy),
        f"CSV: [numbers]({table.name}), [ratios and ranks]({table.stem}-leaderboard.csv), [weekly "
        f"means]({table.stem}-weeks.csv), [policies]({table.stem}-entries.csv).",
        "## Where the logs are",
        *_origins(logs),
    ]
    return "\n\n".join(parts) + "\n"


def tables_of(rows: pd.DataFrame) -> str:
    """A table of all policies for each log, the lowest ratio first."""
    columns: dict[str, Write] = {
        "Policy": lambda row: code_span(row["policy"]),
        **_VALUE,
        "Mean over users": lambda row: shown(row["user_slowdown"]),
        **{size.capitalize(): _slowdown_of(size) for size in SIZES},
        **_PRICE,
    }
    parts = []
    for log, own in rows.groupby("log", sort=False):
        first = own.iloc[0]
        bound = f"bound {duration(first['max_wait'])}" if first["max_wait"] else "no bound"
        head = f"{log}: {first['jobs']:,.0f} jobs, {first['weeks']:.0f} weeks, {bound}"
        ranked = own.sort_values("ratio", kind="stable")
        cells = [[write(row) for write in columns.values()] for _, row in ranked.iterrows()]
        parts.append(f"{head}:\n\n{markdown([list(columns), *cells])}")
    return "\n\n".join(parts)


@cache
def _sources() -> dict[str, Source]:
    """Where logs can be had, by how the names of their files begin."""
    return {
        begin: Source(archive, entry["url"], entry["asks"], log)
        for archive, entry in read_yaml(_ARCHIVES).items()
        for begin, log in entry["logs"].items()
    }


def source_of(file: str) -> Source | None:
    """Where a log of this file name can be had; None if it is not known."""
    begins = [begin for begin in _sources() if file.lower().startswith(begin)]
    return _sources()[max(begins, key=len)] if begins else None


def _command(logs: pd.DataFrame) -> str:
    """The command that makes such a table."""
    bound = logs["bound"].iloc[0]
    said = logs[logs["size_from"] == "said"]
    sizes = ",".join(
        f"{log}={size:.0f}" for log, size in zip(said["log"], said["processors"], strict=True)
    )
    words = ["metasched results sites --logs FOLDER"]
    words += [f"--max-wait {bound}"] if bound != "x2" else []
    words += [f"--processors {sizes}"] if sizes else []
    return " ".join(words)


def _setup(rows: pd.DataFrame, logs: pd.DataFrame, entries: pd.DataFrame) -> str:
    """What was played, and what the numbers are."""
    others = entries.loc[entries["source"] != "metasched", "policy"]
    rows = rows[~rows["policy"].isin(others)]
    learned = rows.loc[rows["learned"] == "True", "policy"].nunique()
    predicted = sum(name.endswith(PREDICTED) for name in rows["policy"].unique())
    bound = logs["bound"].iloc[0]
    words = {"x2": f"twice the longest wait of `{REFERENCE}` in the earlier half of a log"}
    promise = words.get(bound, f"`--max-wait {bound}`")
    policies = "1 learned policy" if learned == 1 else f"{learned} learned policies"
    text = (
        f"The tables compare {rows['policy'].nunique() - learned - predicted} rules and "
        f"{policies} on {len(logs)} whole logs. Of the rules, {predicted} also run with predicted "
        f"run times (`--run-times mixed`). Waits are bounded by {promise}. For each "
        "week, a policy's mean bounded slowdown is divided by that of the best rule. The tables "
        "show geometric means of these ratios. A log is *busy* if the mean slowdown of "
        f"`{REFERENCE}` is at least {BUSY:g}.{_removed(rows)}"
    )
    return textwrap.fill(text, _WIDTH, break_on_hyphens=False)


def _removed(rows: pd.DataFrame) -> str:
    """A sentence on policies that a recorded table has and metasched no longer ships."""
    names = {name.partition(" (")[0] for name in rows["policy"]} & REMOVED.keys()
    listed = ", ".join(f"`{name}`" for name in sorted(names))
    text = f" {listed} were removed in 0.3 (*no hold*: the same without holding jobs back)."
    return text if names else ""


def _leaders(table: Path, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows over logs of the leaderboard; see `leaderboard`."""
    path = table.with_name(f"{table.stem}-weeks.csv")
    weeks = read_frame(path, ("log",), ("week", "jobs", *rows["policy"].unique()))
    board = pd.DataFrame(leaderboard(rows, weeks, RULES))
    return board[board["log"] == ALL]


def _ratios(leaders: pd.DataFrame) -> str:
    """A line for each policy: its rank, and ratios with their intervals."""
    lines = [["Policy", "Rank", "Best rule [weeks] [logs]", REFERENCE, "Past's choice"]]
    for _, row in leaders.iterrows():
        best, past = (
            f"{row[name]:.2f} {row[f'{name}_low']:.2f}-{row[f'{name}_high']:.2f}"
            for name in ("over_best", "over_past")
        )
        best += f" {row['over_best_logs_low']:.2f}-{row['over_best_logs_high']:.2f}"
        fixed = f"{row['over_fixed']:.2f}"
        lines.append([row["policy"], shown(row["rank"], COUNT), best, fixed, past])
    return _text(lines)


def _prices(leaders: pd.DataFrame, entries: pd.DataFrame) -> str:
    """A line for each policy: prices relative to the best rule, training data and CPU."""
    head = ["Policy", "Utilization", "Waits", "Users", "Wide", "Trained on", "CPU s"]
    lines = [head]
    for _, row in leaders.iterrows():
        own = entries[entries["policy"] == row["policy"]]
        waits = "/".join(shown(row[name]) for name in ("mean_wait", "wait_95", "longest_wait"))
        others = [shown(row[name]) for name in ("user_slowdown", "bounded_slowdown_wide")]
        trained = str(own["trained_on"].iloc[0]) if len(own) else "-"
        seconds = own["cpu_s"].sum() if len(own) else np.nan
        points = f"{round(row['points'], 1) + 0.0:+.1f}"  # not -0.0
        lines.append([row["policy"], points, waits, *others, trained, shown(seconds, COUNT)])
    return _text(lines)


def _read_entries(table: Path) -> pd.DataFrame:
    """What is known of policies, see `ENTRIES`; no row, if the table is older than that."""
    path = table.with_name(f"{table.stem}-entries.csv")
    texts, numbers = ("log", "policy", "source", "trained_on", "reason"), ("cpu_s",)
    if not path.is_file():
        return pd.DataFrame(columns=[*texts, *numbers])
    return read_frame(path, texts, numbers)


def _others(entries: pd.DataFrame) -> list[str]:
    """Where policies of others are from, and why some have no row."""
    own = entries[entries["source"] != "metasched"].drop_duplicates("policy")
    named = [f"`{row['policy']}` ({row['source']})" for _, row in own.iterrows()]
    refused = entries[entries["reason"] != ""].drop_duplicates(["policy", "reason"])
    lines = [f"- `{row['policy']}`, {row['log']}: {row['reason']}" for _, row in refused.iterrows()]
    of_packages = f"Policies from installed packages: {', '.join(named)}."
    parts = [textwrap.fill(of_packages, _WIDTH)] if named else []
    return [*parts, "Refused or failed:\n\n" + "\n".join(lines)] if lines else parts


def _each_log(rows: pd.DataFrame, policy: str) -> str:
    """A policy beside the best rule of each log, and the prices of both."""
    lines = [["Log", "Best rule", "Ratio [95%]", *_BOTH]]
    for log, own in rows.groupby("log", sort=False):
        pair = own.set_index("policy").loc[[own["best_rule"].iloc[0], policy]]
        one = pair.loc[policy]
        ratio = with_interval([one["ratio"], one["ratio_low"], one["ratio_high"]])
        cells = [", ".join(map(write, pair[name])) for name, write in _BOTH.values()]
        lines.append([log, pair.index[0], ratio, *cells])
    return _text(lines, names=2)


def _text(lines: Sequence[Sequence[str]], names: int = 1) -> str:
    """A table as a terminal shows it, which is easier to read in a page's source."""
    return "\n".join(["```text", *aligned(lines, names=names), "```"])


def _shown_policy(rows: pd.DataFrame) -> tuple[str, str]:
    """The learned policy that stands beside the best rule of each log, and why."""
    learned = rows[rows["learned"] == "True"]
    if (learned["policy"] == DEFAULT).any():
        return DEFAULT, "that is the default"
    mean_logs = np.log(learned["ratio"]).groupby(learned["policy"]).mean()
    return str(mean_logs.idxmin()), "with the lowest ratio"


def _origins(logs: pd.DataFrame) -> list[str]:
    """Each log with its load and its file's digest; then the archives."""
    found = {log: source_of(file) for log, file in zip(logs["log"], logs["file"], strict=True)}
    columns: dict[str, Write] = {
        "Log": lambda row: row["log"],
        "Archive": lambda row: "unknown" if (one := found[row["log"]]) is None else one.log,
        "Jobs": lambda row: shown(row["jobs"], COUNT),
        "Load": lambda row: f"{row['load']:.0%}",
        "SHA-256 of the file": lambda row: row["sha256"],
    }
    archives = dict.fromkeys(one for one in found.values() if one is not None)
    asks = {one.archive: f"- [{one.archive}]({one.url}): {one.asks}." for one in archives}
    lines = [
        list(columns),
        *([write(row) for write in columns.values()] for _, row in logs.iterrows()),
    ]
    return [_text(lines, names=2), *(["\n".join(asks.values())] if asks else [])]


def _slowdown_of(size: str) -> Write:
    return lambda row: shown(row[f"bounded_slowdown_{size}"])


_VALUE: dict[str, Write] = {
    "Over the best rule [95%]": lambda row: with_interval(
        [row["ratio"], row["ratio_low"], row["ratio_high"]]
    ),
    "Slowdown": lambda row: shown(row["bounded_slowdown"]),
}

_BOTH: dict[str, tuple[str, Callable[[float], str]]] = {
    "Slowdown": ("bounded_slowdown", shown),
    "Utilization": ("utilization", lambda value: shown(value, SHARE)),
    "Mean wait": ("mean_wait", duration),
    "Longest wait": ("longest_wait", duration),
}

_PRICE: dict[str, Write] = {
    "Utilization": lambda row: shown(row["utilization"], SHARE),
    "Mean, p95 wait": lambda row: f"{duration(row['mean_wait'])}, {duration(row['wait_95'])}",
    "Longest wait": lambda row: duration(row["longest_wait"]),
}
