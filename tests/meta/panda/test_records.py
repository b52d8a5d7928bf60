"""Records of consumers: what they say, as Parquet, and what an advisor learns from them."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.worlds.panda.features import PAIR
from meta.panda.advisor import PolicyAdvisor, initial_advisor
from meta.panda.offline import advantages_of, regression_data, regression_loss
from meta.panda.records import Records, record_episodes
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import prepare
from rllib_configs.policy_files import policy_of
from tests.meta.panda.slopes import weights_of

SMALL = (
    "task.workload.window=40",
    "task.workload.own_classes=false",
    "training.units=2",
    "training.classes=2",
)


@pytest.fixture(scope="module")
def config():
    return load_config("panda-elastic", [*SMALL, "training.advisor=flat"])


@pytest.fixture(scope="module")
def task(config):
    return config.task.build(seed=0)


@pytest.fixture
def network(config, task):
    return initial_advisor(config, task.world)


@pytest.fixture(scope="module")
def records(config, task) -> Records:
    return record_episodes(
        initial_advisor(config, task.world), task, task.jobsets(Split.TRAIN, range(2)), 2
    )


def test_records_say_what_the_schedule_says(config, task, network, records) -> None:
    policy = policy_of(config, weights_of(network), "learned", "argmax", task.world)
    schedule = evaluate(policy, task.jobsets(Split.TRAIN, range(2)), task.world)
    chosen = records.episode % 2 == 0  # one episode of each jobset
    assert records.departure[chosen].tolist() == schedule.finish.tolist()
    assert (records.wait + records.use == records.departure - records.arrival).all()
    assert (records.use > 0).all()
    totals = schedule.finish - schedule.arrival
    means = [-totals[schedule.episode == e].mean() for e in range(2)]
    assert np.allclose(records.reward[chosen], np.array(means)[schedule.episode])
    assert all(records.nodes)
    assert max(node for nodes in records.nodes for node in nodes) < task.world.nodes.num_nodes


def test_a_file_gives_the_same_records_again(records, tmp_path: Path) -> None:
    records.write(tmp_path / "records.parquet")
    again = Records.read(tmp_path / "records.parquet")
    for name in Records.__dataclass_fields__:
        one, other = getattr(records, name), getattr(again, name)
        assert one == other if name == "nodes" else (one == other).all(), name
    assert again.weights.shape[1] == len(PAIR)
    assert [path.name for path in tmp_path.iterdir()] == ["records.parquet"]


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.parquet").write_text("no parquet")
    other = pa.table({"episode": [1], "reward": [2.0]})
    pq.write_table(other, tmp_path / "other.parquet")
    for name in ("text.parquet", "absent.parquet", "other.parquet"):
        with pytest.raises(InputError, match="holds no records of consumers"):
            Records.read(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("names", {b"specification": b"cores,memory"}, "have another specification"),
        ("names", {}, r"have another specification \(none\)"),
        ("rows", None, "it has no rows"),
        ("reward", math.nan, "have a reward that is not finite"),
        ("weights", [math.inf] * 26, "have a weights that is not finite"),
        ("weights", [1.0], "holds no records of consumers"),
        ("specification", ["a"] * 7, "holds no records of consumers"),
        ("wait", None, "holds no records of consumers"),
        ("nodes", "no list", "holds no records of consumers"),
    ],
)
def test_records_that_nothing_can_be_learned_from_are_refused(
    records, tmp_path: Path, name: str, change: Any, said: str
) -> None:
    """One row is changed; a change of names is one of what the columns are said to be."""
    records.write(tmp_path / "it.parquet")
    table = pq.read_table(tmp_path / "it.parquet")
    if name == "names":
        table = table.replace_schema_metadata(change)
    elif name == "rows":
        table = table.slice(0, 0)
    else:
        values = table.column(name).to_pylist()
        values = [change] * len(values) if isinstance(change, str) else [change, *values[1:]]
        if name == "specification":
            values = [change] * len(values)
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array(values))
    pq.write_table(table, tmp_path / "it.parquet")
    with pytest.raises(InputError, match=said):
        Records.read(tmp_path / "it.parquet")


@pytest.mark.parametrize(
    ("changes", "setting", "said"),
    [
        ({}, "training.actor=nodes", "have 26 weights each, but those of the network have"),
        ({"departure": -1}, "seed=0", "no consumer of the records finished"),
        ({"episode": 0}, "seed=0", "records need two of each"),
        ({}, "training.network=set_scorer", "needs the network policy_advisor"),
        ({}, "training.records=null", "must name a file of records"),
    ],
)
def test_a_training_that_cannot_use_its_records_is_refused(
    records, tmp_path: Path, changes: dict[str, int], setting: str, said: str
) -> None:
    path = tmp_path / "it.parquet"
    changed = {name: np.full_like(getattr(records, name), to) for name, to in changes.items()}
    if "episode" in changes:
        changed["jobset"] = changed["episode"]
    replace(records, **changed).write(path)
    offline = ("training.algorithm=offline", f"training.records={path}")
    with pytest.raises(InputError, match=said):
        prepare(load_config("panda-elastic", [*offline, setting]))


def test_advantages_compare_a_consumer_with_itself(records) -> None:
    found = advantages_of(replace(records, reward=np.arange(records.reward.size, dtype=float)))
    for jobset in (0, 1):
        two = found[records.jobset == jobset].reshape(2, -1)
        assert np.allclose(two[0], -two[1])
    alone = replace(records, episode=records.jobset)
    with pytest.raises(InputError, match="need two of each"):
        advantages_of(alone)


def learn(network: PolicyAdvisor, records: Records) -> list[float]:
    """The loss at each of some steps of Adam."""
    data, rng = regression_data(records, 1.0), np.random.default_rng(0)
    optimizer, losses = torch.optim.Adam(network.parameters(), lr=0.05), []
    for _ in range(60):
        loss = regression_loss(network, data, rng)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_an_advisor_learns_from_records_what_did_well() -> None:
    """It begins with the longest first; fresh consumers are done earlier afterwards."""
    longer = load_config(
        "panda-elastic", ["task.workload.window=80", *SMALL[1:], "training.advisor=flat"]
    )
    task = longer.task.build(seed=0)
    network = initial_advisor(longer, task.world)
    with torch.no_grad():
        network.shared[PAIR.index("left")] = 2.0
    fresh = task.jobsets(Split.VALIDATION, range(8))
    before = record_episodes(network, task, fresh)
    for round_ in range(3):
        jobsets = task.jobsets(Split.TRAIN, range(10 * round_, 10 * round_ + 3))
        found = record_episodes(network, task, jobsets, 12, noise=1.5, seed=100 * round_)
        losses = learn(network, found)
        assert losses[-1] < losses[0]
    after = record_episodes(network, task, fresh)
    assert after.reward.mean() > before.reward.mean() + 1.0
