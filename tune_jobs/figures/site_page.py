"""The table of the figure ``sites``, and what people read of it: a page, or a table of each log."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from cluster_env.core.durations import duration
from cluster_env.core.removed import REMOVED
from rllib_configs.config.loading import read_yaml
from tune_jobs.recipes.site_units import BUSY, NUMBERS, PREDICTED, REFERENCE, TEXTS
from tune_jobs.replaying.outcomes import SIZES
from tune_jobs.tables.columns import COUNT, SHARE, shown, with_interval
from tune_jobs.tables.frames import read_frame
from tune_jobs.tables.printing import aligned, code_span, markdown

DEFAULT = "hpc-order"
"""The shipped policy that stands beside the best rule of each log."""

_WIDTH = 120  # characters of a line of prose

_COLUMNS = (
    "Utilization (points) and mean wait (ratio) are relative to the best rule. Means of whole logs "
    "depend on few jobs."
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
    parts = [
        "# Rules and policies on real job logs",
        f"    {_command(logs)}",
        _setup(rows, logs),
        "## All logs",
        textwrap.fill(_COLUMNS, _WIDTH),
        _over_logs(rows),
        f"![Slowdowns over that of each log's best rule]({table.stem}.png)",
        "## Each log",
        f"Of two values, the second is that of `{policy}`, the learned policy {why}:",
        _each_log(rows, policy),
        f"[{table.name}]({table.name}) has all policies on each log, also by size and by user; "
        f"[weekly means]({table.stem}-weeks.csv) are in another file.",
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
        head = f"{log}: {first['jobs']:,.0f} jobs, {first['weeks']:.0f} weeks, {_bound(first)}"
        parts.append(f"{head}:\n\n{_table(own.sort_values('ratio', kind='stable'), columns)}")
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


def _setup(rows: pd.DataFrame, logs: pd.DataFrame) -> str:
    """What was played, and what the numbers are."""
    learned = rows.loc[rows["learned"] == "True", "policy"].nunique()
    predicted = sum(name.endswith(PREDICTED) for name in rows["policy"].unique())
    bound = logs["bound"].iloc[0]
    words = {"x2": f"twice the longest wait of `{REFERENCE}` in the earlier half of a log"}
    promise = words.get(bound, f"`--max-wait {bound}`")
    text = (
        f"{len(logs)} whole logs are replayed under "
        f"{rows['policy'].nunique() - learned - predicted} rules and {learned} learned policies; "
        f"{predicted} of the rules also run with predicted run times (`--run-times mixed`). All "
        f"have the same bound on waits: {promise}. Ratios compare the mean bounded slowdown of "
        "each week with that of the log's best rule without predictions, which is chosen on the "
        "same weeks. They are geometric means; in their intervals, weeks count as "
        f"independent. A log is *busy* if the mean slowdown of `{REFERENCE}` is at least {BUSY:g}, "
        f"else *calm*.{_removed(rows)}"
    )
    return textwrap.fill(text, _WIDTH, break_on_hyphens=False)


def _removed(rows: pd.DataFrame) -> str:
    """A sentence on policies that a recorded table has and metasched no longer ships."""
    names = {name.partition(" (")[0] for name in rows["policy"]} & REMOVED.keys()
    listed = ", ".join(f"`{name}`" for name in sorted(names))
    text = f" {listed} were removed in 0.3 (*no hold*: the same without holding jobs back)."
    return text if names else ""


def _over_logs(rows: pd.DataFrame) -> str:
    """A line for each policy: geometric means over logs, and the price on busy ones."""
    best = rows[rows["policy"] == rows["best_rule"]].set_index("log")
    rows = rows.assign(
        points=100 * (rows["utilization"] - rows["log"].map(best["utilization"])),
        of_wait=rows["mean_wait"] / rows["log"].map(best["mean_wait"]),
    )
    head = ["Policy", "Busy logs [95%]", "Highest", "Whole logs", "Utilization, wait"]
    lines = [[*head, "Calm logs [95%]"]]
    ranked = rows[rows["kind"] == "busy"] if (rows["kind"] == "busy").any() else rows
    for policy in _mean_logs(ranked).sort_values(kind="stable").index:
        own = rows[rows["policy"] == policy]
        busy, calm = (own[own["kind"] == kind] for kind in ("busy", "calm"))
        price = ["-", "-", "-"]
        if len(busy):
            whole, wait = np.exp(np.log(busy[["ratio_whole", "of_wait"]]).mean())
            price = [f"{busy['ratio'].max():.2f}", f"{whole:.2f}"]
            points = round(busy["points"].mean(), 1) + 0.0  # not -0.0
            price.append(f"{points:+.1f}, {wait:.2f}")
        ratios = [with_interval(_geometric(some)) for some in (busy, calm)]
        lines.append([policy, ratios[0], *price, ratios[1]])
    return _text(lines)


def _mean_logs(rows: pd.DataFrame) -> pd.Series:
    """Mean ln ratio of each policy."""
    return np.log(rows["ratio"]).groupby(rows["policy"]).mean()


def _geometric(rows: pd.DataFrame) -> tuple[float, float, float]:
    """The geometric mean of some logs' ratios; logs count as independent in its interval."""
    if rows.empty:
        return np.nan, np.nan, np.nan
    logs = np.log(rows[["ratio", "ratio_low", "ratio_high"]].to_numpy())
    mean = logs[:, 0].mean()
    below, above = np.sqrt(((logs[:, 1:] - logs[:, :1]) ** 2).sum(axis=0)) / len(logs)
    return float(np.exp(mean)), float(np.exp(mean - below)), float(np.exp(mean + above))


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
    return str(_mean_logs(learned).idxmin()), "with the lowest ratio"


def _origins(logs: pd.DataFrame) -> list[str]:
    """Each log with its machine, its bound and its file's digest; then the archives."""
    found = {log: source_of(file) for log, file in zip(logs["log"], logs["file"], strict=True)}
    columns: dict[str, Write] = {
        "Log": lambda row: row["log"],
        "Archive": lambda row: _cell(found[row["log"]]),
        "Jobs": lambda row: shown(row["jobs"], COUNT),
        "Load": lambda row: f"{row['load']:.0%}",
        "Bound": lambda row: duration(row["max_wait"]) if row["max_wait"] else "none",
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


def _cell(source: Source | None) -> str:
    return "unknown" if source is None else source.log


def _bound(row: pd.Series) -> str:
    return f"bound {duration(row['max_wait'])}" if row["max_wait"] else "no bound"


def _table(rows: pd.DataFrame, columns: Mapping[str, Write]) -> str:
    cells = [[write(row) for write in columns.values()] for _, row in rows.iterrows()]
    return markdown([list(columns), *cells], names=1)


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
