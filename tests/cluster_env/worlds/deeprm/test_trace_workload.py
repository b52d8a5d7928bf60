"""Jobs of a user's own: what a file may hold, windows, and splits that share no job."""

import os
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import cluster_env  # noqa: F401 - registers the environments
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.envs import check_cluster_env
from cluster_env.workloads import sample_jobsets
from cluster_env.workloads.csv_jobs import read_csv_jobs
from cluster_env.workloads.workload import DividedWorkload, Workload
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.log import DeepRMLog
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from tests.cluster_env.worlds.deeprm.random_trace import make_trace
from tests.cluster_env.worlds.deeprm.step_rule import check_step

WIDE = Cluster(capacity=(255, 255), horizon=20)
WINDOW = 20


@pytest.fixture
def numbered(tmp_path: Path) -> Path:
    """A job in every second of 400 steps from step 1000 on; its demands tell which one it is."""
    lines = [f"{1000 + 2 * k},1,{1 + k % 20},{1 + k // 20}" for k in range(200)]
    return written(tmp_path, "arrival,duration,cpu,memory\n" + "\n".join(reversed(lines)))


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    return path


def steps_of(jobset: JobSet) -> np.ndarray:
    """At which steps of the file, counted from its first arrival, the numbered jobs arrive."""
    return 2 * ((jobset.demand[:, 0] - 1) + 20 * (jobset.demand[:, 1] - 1))


def test_columns_come_in_any_order_and_jobs_need_not_be_sorted(tmp_path: Path) -> None:
    path = written(
        tmp_path, "\ufeffgpu, duration ,arrival,cpu\n1,3,107,4\n\n0,2,100,5\n 2,1,107,6\n,,,\n"
    )
    trace = read_csv_jobs(path, 2)
    jobs = trace.jobset()
    assert trace.resources == ("gpu", "cpu")
    assert jobs.arrival.tolist() == [0, 7, 7]
    assert jobs.duration.tolist() == [2, 3, 1]
    assert jobs.demand.tolist() == [[0, 5], [1, 4], [2, 6]]  # equal arrivals keep their order
    assert jobs.window == 8
    assert trace.line.tolist() == [4, 2, 5]


def test_arrivals_may_be_timestamps(tmp_path: Path) -> None:
    jobs = read_csv_jobs(
        written(tmp_path, f"arrival,duration,cpu\n{10**15},1,1\n{10**15 + 5},1,1"), 1
    ).jobset()
    assert jobs.arrival.tolist() == [0, 5]


def test_jobs_keep_the_classes_of_the_file_through_sorting_and_windows(tmp_path: Path) -> None:
    rows = "".join(f"{399 - k},{(399 - k) % 3},1,1,1\n" for k in range(400))
    path = written(tmp_path, "arrival,class,duration,cpu,memory\n" + rows)
    trace = read_csv_jobs(path, 2)
    assert trace.resources == ("cpu", "memory")
    assert np.array_equal(trace.jobset().job_class, trace.jobset().arrival % 3)
    workload = DeepRMLog(path, Cluster(num_classes=3), window=WINDOW)
    first = {int(part.sample(np.random.default_rng(0)).job_class[0]) for part in parts_of(workload)}
    assert len(first) > 1
    for part in parts_of(workload):
        for seed in range(5):
            jobset = part.sample(np.random.default_rng(seed))
            assert np.all(np.diff(jobset.job_class.astype(int)) % 3 == 1)


def parts_of(workload: DeepRMLog) -> list[Workload]:
    return [workload, *(workload.part(split) for split in Split)]


def test_a_class_that_the_cluster_lacks_is_named_with_its_line(tmp_path: Path) -> None:
    rows = "".join(f"{k},1,1,1,{2 * (k > 50)}\n" for k in range(200))
    path = written(tmp_path, "arrival,duration,cpu,memory,class\n" + rows)
    with pytest.raises(
        InputError, match=r"line 53: the job has class 2, .* num_classes=3, or leav"
    ):
        DeepRMLog(path, window=WINDOW)


HEADER = "arrival,duration,cpu,memory\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", r"jobs\.csv, line 1: a header is needed .* but there is none"),
        ("0,1,2,3\n", r"line 1: a header is needed .* but it is '0,1,2,3'"),
        ("arrival;duration;cpu;memory\n", r"line 1: a header is needed .*commas between"),
        ("arrival,duration,arrival,cpu\n", r"line 1: a header is needed"),
        ("arrival,duration,class,cpu\n", r"line 1: .* cluster's 2 resources, .* are 1: cpu"),
        ("arrival,duration,cpu,memory,class\n0,1,2,3,16\n", r"line 2: class must .* 15 or less"),
        ("arrival,duration,cpu,cpu\n", r"line 1: every column of the header needs a name"),
        ("arrival,duration,cpu\n0,1,2\n", r"line 1: .* cluster's 2 resources, .* are 1: cpu"),
        ("arrival,duration\n0,1\n", r"line 1: .* 2 resources, but there are 0$"),
        (HEADER, r"jobs\.csv holds no job"),
        (HEADER + "0,1,2,3\n\n5,1,2\n", r"line 4: 4 values are expected, but there are 3"),
        (HEADER + "0,1,2,3\n0,1.5,2,3\n", r"line 3: duration must be a whole .* 1 or .* '1\.5'"),
        (HEADER + "0,0,2,3\n", r"line 2: duration must be a whole number, 1 or more, not '0'"),
        (HEADER + "-4,1,2,3\n", r"line 2: arrival must be a whole number, 0 or more, not '-4'"),
        (HEADER + "0,1,2,-3\n", r"line 2: memory must be a whole number, 0 or more"),
        (HEADER + "0,1,,3\n", r"line 2: cpu must be a whole number, 0 or more, not ''"),
        (HEADER + f"0,1,2,{10**12}\n", r"line 2: memory must be .* 2147483647 or less"),
        (HEADER + "0,1,0,0\n", r"line 2: a job must ask for at least 1 unit of a resource"),
        (HEADER + f"0,1,1,1\n{2**40},1,1,1\n", r"span 1,099,511,627,777 steps"),
        (HEADER + "0,1," + "9" * 200_000 + ",1\n", r"line 2: field larger than"),
    ],
)
def test_a_broken_line_gives_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        read_csv_jobs(written(tmp_path, text), 2)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.csv", tmp_path):
        with pytest.raises(InputError, match=r"cannot read the trace .*: (No such|Is a directory)"):
            DeepRMLog(path)
        with pytest.raises(InputError, match="cannot read the trace"):
            read_csv_jobs(path, 2)
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(InputError, match="no CSV file in UTF-8"):
        read_csv_jobs(tmp_path / "bytes.csv", 2)


@pytest.mark.parametrize(
    ("cluster", "options", "sentence"),
    [
        (Cluster((10, 10)), {}, r"line \d+: the job asks for \d+ units of cpu, but .* only 10 \("),
        (Cluster((255, 9)), {}, r"line 2: the job asks for 10 units of memory, .* only 9 \(20 of"),
        (Cluster((255,)), {}, r"line 1: .* cluster's 1 resources, but there are 2: cpu, memory"),
        (WIDE, {"window": 80}, r"too short: its arrivals span 399 steps, .* need 400"),
        (WIDE, {"window": 0}, r"the arrival window needs at least 1 step"),
        (WIDE, {"first_step": 50}, r"first_step inside it"),
    ],
)
def test_a_trace_that_cannot_be_used_is_refused(
    numbered: Path, cluster: Cluster, options: dict[str, int], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        DeepRMLog(numbered, cluster, **options)


def test_a_job_beyond_the_horizon_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + "9,21,1,1\n3,20,1,1\n4,30,1,1\n")
    with pytest.raises(InputError, match=r"line 2: the job lasts 21 steps, .* only 20 \(2 of 3"):
        DeepRMLog(path)


def test_a_part_without_jobs_is_refused(tmp_path: Path) -> None:
    lines = [f"{step},1,1,1" for step in (*range(60), *range(80, 100))]
    path = written(tmp_path, HEADER + "\n".join(lines))
    with pytest.raises(InputError, match=r"between 60 % and 80 % .* validation jobs"):
        DeepRMLog(path, window=10)


def test_a_jobset_is_a_window_of_the_trace_shifted_to_0(numbered: Path) -> None:
    workload = DeepRMLog(numbered, WIDE, window=WINDOW)
    assert isinstance(workload, DividedWorkload)
    for jobset in sample_jobsets(workload, 0, Split.HELD_OUT, range(50)):
        offset = set(steps_of(jobset) - jobset.arrival)
        assert len(offset) == 1
        assert jobset.num_jobs == WINDOW // 2
        assert jobset.window == WINDOW
        assert 319 <= min(offset) <= 399 - WINDOW
    rng = np.random.default_rng(0)
    beyond = [steps_of(workload.sample(rng)).max() for _ in range(100)]
    assert min(beyond) < 239 < 319 < max(beyond)  # without a split, from anywhere


def test_the_first_steps_can_be_left_out(numbered: Path) -> None:
    whole, later = (
        sample_jobsets(
            DeepRMLog(numbered, WIDE, window=WINDOW, first_step=first), 0, Split.TRAIN, range(40)
        )
        for first in (0, 1)
    )
    assert any(jobset.arrival[0] == 0 for jobset in whole)
    for before, after in zip(whole, later, strict=True):
        kept = before.arrival > 0
        assert np.array_equal(before.arrival[kept], after.arrival)
        assert np.array_equal(before.demand[kept], after.demand)


def test_the_load_is_measured(numbered: Path) -> None:
    workload = DeepRMLog(numbered, WIDE, window=WINDOW)
    assert workload.arrival_rate == 200 / 399
    assert workload.load == pytest.approx((200 * 10.5 + 20 * 55) / 2 / 255 / 399)
    part = workload.part(Split.VALIDATION)  # jobs 120 to 159, in 80 steps
    assert part.arrival_rate == 40 / 80
    assert part.load == pytest.approx((40 * 10.5 + 20 * (7 + 8)) / 2 / 255 / 80)


def test_the_load_means_what_it_means_for_made_up_jobs(tmp_path: Path) -> None:
    made_up = BimodalWorkload(load=0.9, window=5000)
    jobs = made_up.sample(np.random.default_rng(0))
    rows = np.column_stack([jobs.arrival, jobs.duration, jobs.demand])
    text = HEADER + "\n".join(",".join(map(str, row)) for row in rows)
    workload = DeepRMLog(written(tmp_path, text))
    assert workload.load == pytest.approx(0.9, rel=0.05)
    assert workload.arrival_rate == pytest.approx(made_up.arrival_rate, rel=0.05)


def test_a_file_that_changed_is_read_anew(tmp_path: Path) -> None:
    path = make_trace(tmp_path / "jobs.csv")
    before = DeepRMLog(path).recorded
    assert DeepRMLog(path, window=20).recorded is before
    make_trace(path, seed=1)
    os.utime(path, ns=(0, 0))
    assert not np.array_equal(DeepRMLog(path).recorded.submit, before.submit)


@pytest.mark.parametrize("rules", ["DeepRM-v0", "DeepRMReleased-v0"])
def test_environments_play_the_training_part(tmp_path: Path, rules: str) -> None:
    workload = DeepRMLog(make_trace(tmp_path / "jobs.csv"), window=30)
    env = gymnasium.make(rules, workload=workload, observation="state")
    check_cluster_env(env, num_episodes=2, step_rule=check_step)
    expected = sample_jobsets(workload, 5, Split.TRAIN, range(3))
    for index, jobset in enumerate(expected):
        env.reset(seed=5 if index == 0 else None)
        assert np.array_equal(env.unwrapped.jobset.demand, jobset.demand)  # type: ignore[attr-defined]
