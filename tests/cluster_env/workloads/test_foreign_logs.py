"""Logs of formats that are not read are refused by the name of their format."""

import re
from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from cluster_env.workloads.formats import read_log

GRID_ENGINE = ["all.q", "n1", "chem", "ann", "run", "101", "sge", "0", "1772350000"] + ["0"] * 36
LOGS = {
    "LSF (lsb.acct)": '"JOB_FINISH" "10.1" 1772352000 101 1001 33554438 4 1772350000 "ann" "n1"\n',
    "Grid Engine (accounting)": "# Version: 8.1\n" + ":".join(GRID_ENGINE) + "\n",
    "Batsim (JSON)": '{\n  "nb_res": 4,\n  "jobs": [{"id": 1, "subtime": 10, "res": 4}]\n}\n',
    "Philly (JSON)": '[{"status": "Pass", "vc": "a", "jobid": "b", "attempts": []}]\n',
}


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("file", ["jobs.txt", "jobs.csv"])
def test_other_formats_are_refused_by_name(name: str, file: str, tmp_path: Path) -> None:
    path = tmp_path / file
    path.write_text(LOGS[name])
    with pytest.raises(InputError, match=re.escape(name)) as refused:
        read_log(path)
    assert "write its jobs to a CSV with the columns arrival, duration and" in str(refused.value)


def test_lines_of_swf_that_go_on_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(" ".join(["1"] * 21) + "\n")
    with pytest.raises(InputError, match=r"18 numbers, but 21 stand here; .* delete the others"):
        read_log(path)
