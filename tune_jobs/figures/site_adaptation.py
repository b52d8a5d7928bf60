"""What past months of a site teach: policies before and after, on the months that follow.

Each log is cut into an earlier and a later half. Whatever is learned or chosen comes from the
earlier one. Then the whole log is played under each policy, and the weeks of the later half count.
"""

from pathlib import Path

from matplotlib.figure import Figure

from tune_jobs.figures.kit.ratio_panels import draw_ratio_panels
from tune_jobs.figures.style import headline, styled
from tune_jobs.recipes.site_adaptation import (
    ALL,
    CHOSEN,
    NUMBERS,
    POLICY,
    SEARCHED,
    TEXTS,
    UNADAPTED,
)
from tune_jobs.tables.frames import read_frame

_LOOKS = {UNADAPTED: ("#8a8a8a", "x"), CHOSEN: ("#e69f00", "s"), SEARCHED: ("#0072b2", "o")}

_OF_RUNS = ("#d55e00", "D")


def draw(table: Path) -> Figure:
    """A panel for each log: ratios to the policy as it is shipped, with intervals over weeks."""
    rows = read_frame(table, TEXTS, NUMBERS)
    methods = list(dict.fromkeys(rows["method"]))
    looks = [_LOOKS.get(name, _OF_RUNS) for name in rows["method"]]
    rows["color"], rows["marker"] = zip(*looks, strict=True)
    with styled():
        figure = draw_ratio_panels(rows, "method", methods, "{0.log}, {0.weeks:.0f} weeks".format)
        note = (
            f"mean bounded slowdown of a week over that of {POLICY} as shipped, as a geometric "
            "mean over the weeks of the later half of each log; what differs was learned or chosen "
            f"on the earlier half. Bars: paired 95% intervals over weeks; over logs in {ALL}"
        )
        headline(figure, "What past months of a site teach", note)
    return figure
