"""`metasched.join`: recorded tables of several comparisons come out of it, digit for digit."""

from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from tests.conftest import REPOSITORY
from tune_jobs.commands.comparing import Join
from tune_jobs.experiments.tables import markdown_of
from tune_jobs.tables.frames import read_table, write_table
from tune_jobs.tables.joining import join_tables

RECORDED = REPOSITORY / "tune_jobs" / "figures" / "recorded"


@pytest.mark.parametrize("name", ["panda-filter", "panda-filter-trained", "panda-hybrid"])
def test_a_recorded_table_is_its_comparisons_joined(name: str, tmp_path: Path) -> None:
    recorded = RECORDED / f"{name}.csv"
    rows = read_table(recorded, ())
    column = next(iter(rows[0]))
    values = list(dict.fromkeys(row[column] for row in rows))
    for value in values:
        mine = [{**row} for row in rows if row[column] == value]
        for row in mine:
            del row[column]
        write_table(tmp_path / f"with-{value}" / "comparison.csv", mine)
    tables, out = f"{tmp_path}/with-{{{column}}}/comparison.csv", tmp_path / f"{name}.csv"
    joined = join_tables(Join(tables, f"{column}={','.join(values)}", out))
    assert f"{len(rows)} rows of {len(values)} tables" in joined.text
    assert out.read_text() == recorded.read_text()
    heads = [line for line in markdown_of(out).splitlines() if line.endswith(":")]
    assert [head.rpartition(f"; {column} ")[2] for head in heads] == [f"{one}:" for one in values]


@pytest.mark.parametrize(
    ("tables", "by", "message"),
    [
        ("{told}.csv", "told", "as share=0,0.5,off"),
        ("{told}.csv", "told=0,,1", "as share=0,0.5,off"),
        ("{told}.csv", "told=0,0", "names the value '0' twice"),
        ("one.csv", "told=0", r"should have {told} where"),
        ("{policy}.csv", "policy=one", "has a column 'policy' already"),
        ("{told}.csv", "told=one,two", "cannot read .*two.csv"),
    ],
)
def test_tables_that_cannot_be_joined_leave_none(
    tables: str, by: str, message: str, tmp_path: Path
) -> None:
    write_table(tmp_path / "one.csv", [{"policy": "sjf"}])
    with pytest.raises(InputError, match=message):
        join_tables(Join(f"{tmp_path}/{tables}", by, tmp_path / "joined.csv"))
    assert not (tmp_path / "joined.csv").exists()
