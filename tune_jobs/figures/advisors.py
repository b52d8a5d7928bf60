"""PANDA's advisor: the types of consumers that it follows, and the actors that it makes."""

from pathlib import Path

from matplotlib.figure import Figure

from tune_jobs.figures.style import INK, MUTED, headline, new_figure, style_of, styled
from tune_jobs.recipes.advisors import POINTS, TREE
from tune_jobs.tables.frames import read_frame

_MOST_BESIDE = 5  # panels


def draw_dendrogram(table: Path) -> Figure:
    """The tree, whose leaves are types of consumers."""
    rows = read_frame(table, TREE, ("place", "height", "posterior", "consumers"))
    rows = rows.set_index("node", drop=False)
    types = rows[rows["left"] == ""]
    with styled():
        figure = new_figure(5.2, max(8.0, 1.15 * len(types)))
        axes = figure.subplots()
        headline(
            figure,
            "Types of consumers, by Bayesian hierarchical clustering",
            f"{int(types['consumers'].sum())} consumers; below each type: the mean request "
            "of its consumers, and the share of their most frequent class",
        )
        for _, row in rows[rows["left"] != ""].iterrows():
            sides, top = rows.loc[[row["left"], row["right"]]], row["height"]
            axes.plot(sides["place"], [top, top], color=INK, linewidth=1.4)
            for x, height in zip(sides["place"], sides["height"], strict=True):
                axes.plot([x, x], [height, top], color=INK, linewidth=1.4)
            axes.annotate(
                f"r = {row['posterior']:.2g}",
                (row["place"], top),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=8,
                color=MUTED,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            )
        axes.set_xticks(types["place"], types["label"] + "\n" + types["purity"], fontsize=8)
        axes.set_ylabel("log10(1 + log odds against one type)")
        axes.set_ylim(bottom=0)
        axes.grid(visible=False, axis="x")
    return figure


def draw_advisor(table: Path) -> Figure:
    """A panel for each run; a point is the actor of a consumer, colored by its class."""
    rows = read_frame(table, POINTS, POINTS[1:])
    panels = {str(run): some for run, some in rows.groupby("run", sort=False)}
    with styled():
        columns = min(len(panels), _MOST_BESIDE)
        lines = -(-len(panels) // columns)
        figure = new_figure(1.0 + 2.8 * lines, max(6.0, 2.6 * columns))
        all_axes = figure.subplots(lines, columns, squeeze=False).ravel()
        headline(
            figure,
            "Actors computed by advisors, by class of consumers",
            "each point is the actor of one consumer: its weights along their two main directions",
        )
        for axes, (name, points) in zip(all_axes, panels.items(), strict=False):
            for label, own in points.groupby("class"):
                color, _, marker = style_of(int(label))
                look = {"color": color, "markersize": 6, "alpha": 0.7, "label": str(int(label))}
                axes.plot(own["x"], own["y"], marker, **look)
            axes.set_title(name)
            for side, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
                share = points[f"explained_{side}"].iloc[0]
                axis.set_label_text(f"{share:.0%} of the variance")
        axes.legend(title="class", fontsize=8, loc="best", frameon=True)
        for empty in all_axes[len(panels) :]:
            empty.set_visible(False)
    return figure
