"""Figures of utility accrual: small, whole, and drawn again from their tables."""

import itertools
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import pytest

from cluster_env.core.errors import InputError
from meta.adaptation import untrained_policy
from rllib_configs.config.loading import load_config
from rllib_configs.policy_files import write_policy
from rllib_configs.worlds.accrual.servers import COLUMNS, POLICIES, POOL_POLICIES, Setting
from tune_jobs.figures.registry import make_figure
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.recipes.utility import ORDERS, RULES, SHAPES, setting_of
from tune_jobs.recipes.utility_policies import HEURISTICS, LEARNED
from tune_jobs.tables.frames import read_table

pytestmark = pytest.mark.rendered

PRIORITIES = ("True", "False")
ENDS = ("", "_low", "_high")
SMALL = FigureRequest(num_jobsets=2, at=(0.1, 0.2))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("utility")


def test_figures_2_and_3_and_the_values_show_every_policy(folder: Path) -> None:
    image, table = make_figure("utility-fig2", SMALL, folder)
    rows = read_table(table, ["policy", "column", "dropped", "productivity", "utilization"])
    nine = {(policy, column) for policy in POLICIES for column in COLUMNS}
    for dropped in ("False", "True"):
        found = [(row["policy"], row["column"]) for row in rows if row["dropped"] == dropped]
        assert set(found) == nine | {(name, "both") for name in ORDERS}
        assert len(found) == len(set(found))
    assert all(0 < float(row["productivity"]) < 480 for row in rows)
    learned = [row for row in rows if row["policy"] == "utility"]
    assert all(row[f"p_{rule}"] for row in learned for rule in RULES)
    mean = {(row["policy"], row["column"], row["dropped"]): row["productivity"] for row in rows}
    for row in learned:
        other = float(mean["aggressive", row["column"], row["dropped"]])
        gain = float(row["productivity"]) - other
        assert float(row["over_aggressive"]) == pytest.approx(gain)
    again = [make_figure(f"utility-{name}", SMALL, folder, table) for name in ("fig3", "values")]
    for one, used in ((image, table), *again):
        assert used == table
        assert matplotlib.image.imread(one).shape[1] == 1600


def test_a_figure_is_of_the_setting_that_is_asked_for() -> None:
    changes = ("task.world.squeeze=false", "task.workload.rate=0.2", "training.half=100")
    setting = setting_of(replace(SMALL, overrides=changes))
    assert setting_of(SMALL) == Setting(experiments=2)
    assert not setting.world.squeeze
    assert (setting.rate, setting.learning.half) == (0.2, 100)
    with pytest.raises(InputError, match="fuzzy_td"):
        setting_of(replace(SMALL, source="accrual-smoke"))
    with pytest.raises(InputError, match="from utility alone"):
        setting_of(replace(SMALL, overrides=["task.objective=slowdown"]))


def test_figure_4_goes_along_the_rates_and_figure_5_through_the_shapes(folder: Path) -> None:
    _, table = make_figure("utility-fig4", SMALL, folder)
    rows = read_table(table, ["policy", "rate", "productivity"])
    assert [(row["policy"], row["rate"]) for row in rows] == [
        (policy, rate) for rate in ("0.1", "0.2") for policy in POLICIES
    ]
    best = {(row["policy"], row["rate"]): float(row["productivity"]) for row in rows}
    assert best["utility", "0.2"] > best["utility", "0.1"] > best["none", "0.1"]
    _, table = make_figure("utility-fig5", SMALL, folder)
    rows = read_table(table, ["utility", "productivity"])
    assert list(dict.fromkeys(row["utility"] for row in rows)) == list(SHAPES)


def test_servers_with_one_queue_are_compared_by_whose_values_they_learn(folder: Path) -> None:
    _, table = make_figure("utility-machines", FigureRequest(num_jobsets=2, at=(0.2,)), folder)
    rows = read_table(table, ["policy", "machines", "allocation", "productivity", "over_own"])
    found = [(row["machines"], row["allocation"], row["policy"]) for row in rows]
    sizes = [("1", "machine"), *((m, one) for m in "24" for one in ("machine", "job"))]
    assert found == [(*size, policy) for size in sizes for policy in POOL_POLICIES]
    best = {key: float(row["productivity"]) for key, row in zip(found, rows, strict=True)}
    for size in sizes:
        assert best[*size, "own"] > best[*size, "aggressive"] > best[*size, "none"]
    assert best["1", "machine", "own"] == best["1", "machine", "shared"]


def test_priorities_give_one_project_what_they_take_from_the_other(folder: Path) -> None:
    image, table = make_figure("utility-projects", FigureRequest(num_jobsets=2, at=(0.2,)), folder)
    rows = read_table(table, ["policy", "priorities", "project", "share", "effect", "gain"])
    found = {(row["policy"], row["priorities"], row["project"]): row for row in rows}
    assert set(found) == set(itertools.product(POLICIES, ("True", "False"), ("1", "0", "all")))
    for policy in POLICIES:
        shares = [
            [float(found[policy, with_, one]["share"]) for one in "01"] for with_ in PRIORITIES
        ]
        assert shares[0][1] > shares[1][1] > shares[1][0] - 0.05 > shares[0][0]
        [after, before] = [float(found[policy, with_, "all"]["share"]) for with_ in PRIORITIES]
        effect = {name: float(found[policy, "True", "all"][f"effect{name}"]) for name in ENDS}
        assert effect[""] == pytest.approx(after - before)
        assert effect["_low"] < effect[""] < effect["_high"]
        assert int(found[policy, "True", "all"]["seeds"]) == (5 if policy == "utility" else 1)
    for with_ in PRIORITIES:
        earned = [
            float(found[one, with_, "all"]["productivity"]) for one in ("utility", "aggressive")
        ]
        gain = 100 * (earned[0] / earned[1] - 1)
        assert float(found["utility", with_, "all"]["gain"]) == pytest.approx(gain)
    assert matplotlib.image.imread(image).shape[1] == 1600


def test_no_share_of_the_bound_is_above_one(folder: Path) -> None:
    pytest.importorskip("ortools", reason="needs the extra clairvoyant")
    request = FigureRequest(num_jobsets=3, at=(0.1,), time_limit_s=0.3)
    _, table = make_figure("utility-bound", request, folder)
    rows = read_table(table, ["policy", "share", "share_high", "bound"])
    assert [row["policy"] for row in rows] == [*HEURISTICS, LEARNED]
    share = {row["policy"]: float(row["share"]) for row in rows}
    assert max(share.values()) <= 1
    assert share["aggressive"] > share["none"] > 0.3


def test_a_trained_policy_is_held_against_the_rulebase_on_the_same_arrivals(
    folder: Path, tmp_path: Path
) -> None:
    runs = []
    for seed in range(2):
        config = load_config("accrual-smoke", ["task.workload.rate=0.2", f"seed={seed}"])
        write_policy(
            untrained_policy(config, seed).weights, config, tmp_path / f"{seed}" / "policy"
        )
        runs.append(str(tmp_path / f"{seed}"))
    request = FigureRequest(runs=runs, num_jobsets=2, decode="argmax")
    _, table = make_figure("utility-learned", request, folder)
    rows = read_table(table, ["policy", "over", "gain", "gain_low", "gain_high", "productivity"])
    earned = {row["policy"]: float(row["productivity"]) for row in rows}
    assert [(row["policy"], row["over"]) for row in rows] == [
        *(("rulebase", "aggressive"), ("network", "aggressive"), ("network", "rulebase"))
    ]
    gain = {(row["policy"], row["over"]): float(row["gain"]) for row in rows}
    assert gain["network", "rulebase"] == pytest.approx(
        100 * (earned["network"] / earned["rulebase"] - 1)
    )
    assert gain["network", "rulebase"] < 0  # nobody trained it
    with pytest.raises(InputError, match="--runs"):
        make_figure("utility-learned", FigureRequest(), folder)
