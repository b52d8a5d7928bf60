"""The figure ``schedules``: one jobset under the best rule and a learned policy."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.policy import Policy
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Split
from cluster_env.evaluation import Summary, evaluate, summarize
from cluster_env.worlds import get_heuristic
from rllib_configs.config.loading import load_config
from rllib_configs.policy_files import load_policy
from tests.tune_jobs.drawing import run, texts
from tests.tune_jobs.untrained_runs import SMALL_TASK, make_run
from tune_jobs.figures import schedules
from tune_jobs.tables.frames import number, read_table

JOBSETS = 9
pytestmark = [pytest.mark.usefixtures("tuned_on_few"), pytest.mark.rendered]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "own", "name=own")


@pytest.fixture(scope="module")
def table(policy: Path, tuned_on_few: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("schedules")
    options = ("--at", "0.7", "--warmup", "2", "--jobsets", str(JOBSETS))
    run("schedules", "--runs", str(policy), *options, "--out", str(out))
    return out / "schedules.csv"


def test_it_shows_the_best_rule_on_the_jobset_of_a_usual_difference(
    table: Path, policy: Path
) -> None:
    rows = read_table(table, ("policy", "place", "better"))
    task = load_config("deeprm", [*SMALL_TASK]).task.build("own", 0)
    jobsets = task.jobsets(Split.HELD_OUT, range(JOBSETS))
    rule, learned = dict.fromkeys(row["policy"] for row in rows)
    assert learned == "own"

    def played(name: str) -> tuple[Schedule, Summary]:
        acting: Policy
        if name == learned:
            acting, _ = load_policy(policy, decode="sample")
        else:
            acting = get_heuristic(name.replace("*(", ":").rstrip(")"), task.world)
        schedule = evaluate(acting, jobsets, task.world)
        return schedule, summarize(schedule, warmup=2, metrics=task.spec.metrics)

    _, of_rule = played(rule)
    others = [name for name in task.spec.heuristics.names() if name not in ("tetris", "hold")]
    assert of_rule.mean("slowdown") <= min(played(name)[1].mean("slowdown") for name in others)
    schedule, own = played(learned)
    differences = own.rows("slowdown") - of_rule.rows("slowdown")
    usual = np.abs(differences - (own.mean("slowdown") - of_rule.mean("slowdown"))).argmin()
    assert {row["place"] for row in rows} == {str(usual + 1)}
    assert {row["better"] for row in rows} == {str((differences < 0).sum())}
    mine = [row for row in rows if row["policy"] == learned]
    chosen = schedule.jobset[schedule.episode] == usual
    assert [number(row, "start") for row in mine] == schedule.start[chosen].tolist()
    assert number(mine[0], "mean") == own.rows("slowdown")[usual]
    assert number(mine[0], "longest_wait") == own.rows("longest_wait")[usual]


def test_it_draws_who_ran_and_who_waited_with_the_price_of_both(table: Path) -> None:
    figure = schedules.draw(table)
    shown = texts(figure)
    rows = read_table(table, ("policy",))
    for row in (rows[0], rows[-1]):
        slowdown = f"{row['policy']}: mean slowdown {number(row, 'mean'):.2f}, utilization "
        assert slowdown in shown
        assert f"longest wait {number(row, 'longest_wait'):.1f}" in shown
    assert f"lower slowdown on {rows[0]['better']} of them" in shown.replace("\n", " ")
    *gantts, queue = figure.axes
    for axes, line, name in zip(
        gantts, queue.get_lines(), dict.fromkeys(row["policy"] for row in rows), strict=True
    ):
        jobs = [row for row in rows if row["policy"] == name]
        work = sum(number(row, "units") * number(row, "duration") for row in jobs)
        cells = np.asarray(axes.get_images()[0].get_array())
        span = axes.get_images()[0].get_extent()[1]
        assert (cells > 0).mean() * span * 4 == pytest.approx(work, rel=0.01)
        waited = sum(number(row, "start") - number(row, "submit") for row in jobs)
        assert np.asarray(line.get_ydata()).sum() == waited


def test_it_needs_a_policy_and_one_place(policy: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name one with --runs"):
        run("schedules", "--jobsets", "2", "--out", str(tmp_path))
    with pytest.raises(InputError, match="give one value with --at"):
        run("schedules", "--runs", str(policy), "--at", "0.5,0.7", "--out", str(tmp_path))
