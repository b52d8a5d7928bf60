"""Real job logs: every rule and policy on each of them, at one bound on waits.

A mean over a whole log hangs on a few jobs. So policies are compared week by week with the best
rule of their log: by ln ratios of the mean bounded slowdowns of the jobs submitted in a week.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tune_jobs.figures.kit.ratio_panels import draw_ratio_panels
from tune_jobs.figures.site_page import page_of, read_sites
from tune_jobs.figures.style import (
    color_of,
    headline,
    marker_of,
    styled,
)


def draw(table: Path) -> Figure:
    """A panel for each log: ratios to its best rule with their intervals over weeks."""
    rows = read_sites(table)
    rows["color"], rows["marker"] = zip(*_looks(rows), strict=True)
    # From best to worst, over all logs.
    means = np.log(rows["ratio"]).groupby(rows["policy"]).mean()
    policies = list(means.sort_values(kind="stable").index)
    with styled():
        figure = draw_ratio_panels(
            rows, "policy", policies, "{0.log} ({0.kind}), best {0.best_rule}".format
        )
        note = (
            "mean bounded slowdown of the jobs of a week over that under the log's best rule, as "
            "a geometric mean over weeks; bars: paired 95% intervals over weeks. All at the same "
            f"bound on waits ({rows['bound'].iloc[0]}); the best rule is chosen on the same weeks"
        )
        headline(figure, "Rules and policies on real job logs", note)
    return figure


def _looks(rows: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Color and marker of each row; backfilling tells rules of one order apart by their marker."""
    learned = list(dict.fromkeys(rows["policy"][rows["learned"] == "True"]))
    for _, row in rows.iterrows():
        is_learned = row["learned"] == "True"
        place = learned.index(row["policy"]) if is_learned else 0
        key = str(row["policy"]).partition(":")[0]
        yield color_of(key, is_learned, place), marker_of(key, is_learned, place)


explain = page_of
"""The page that is written beside the figure."""
