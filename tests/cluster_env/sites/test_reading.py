"""Sites from files: YAML, slurm.conf, exports of sacctmgr and scontrol, and a calendar."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.sites.description import (
    Limit,
    NodeGroup,
    Outage,
    Partition,
    Site,
)
from cluster_env.sites.reading import read_site
from cluster_env.sites.weights import Weights

CONF = """
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightAssoc=7
PriorityDecayHalfLife=14-0
PriorityMaxAge=1-12:30
AccountingStorageEnforce=limits
SelectTypeParameters=CR_Core_Memory
NodeName=DEFAULT CPUs=8 RealMemory=1000
NodeName=c[1-4] Feature=ib,cascade Weight=2
NodeName=g[1-2] Gres=gpu:a100:2
NodeName=x1 State=DOWN
NodeSet=fast Feature=ib
PartitionName=DEFAULT MaxTime=1-0
PartitionName=main Nodes=c[1-4],x1 Default=YES
PartitionName=gpu Nodes=g[1-2] QOS=gpu PriorityTier=3 OverSubscribe=EXCLUSIVE MaxTime=90
PartitionName=all Nodes=ALL MinNodes=2 MaxNodes=3 PriorityJobFactor=5 MaxTime=UNLIMITED
PartitionName=old Nodes=fast State=DOWN AllowQos=normal
"""
QOS = """Name|Priority|Flags|GrpTRES|GrpJobs|MaxTRES|MaxWall|MaxTRESPU|MaxJobsPU|MaxTRESPA|MaxJobsPA
normal|0|DenyOnLimit||||||||
gpu|50||cpu=12,gres/gpu=3|9|cpu=6,node=2|08:00:00|cpu=8,mem=1G|2|gres/gpu:a100=1|4
"""
ASSOC = """Cluster|Account|User|Partition|Share|Priority|GrpJobs|GrpTRES|MaxJobs|MaxTRES|MaxWall|QOS
lab|root||||||||||normal
lab|bio|||1||5|cpu=16|3||2-00:00:00|normal
lab|bio|ada||1||||2|cpu=4||
lab|bio|bob||1||||1|||
lab|chem|bob||1||||4|||
lab|chem|cyd|gpu|1||||4|||
"""
RESERVATIONS = (
    "ReservationName=maint StartTime=2026-03-01T08:00:00 EndTime=2026-03-01T20:00:00 "
    "Duration=12:00:00 Nodes=c[1-2] NodeCnt=2 Flags=MAINT,SPEC_NODES Users=root Accounts=(null)\n"
    "ReservationName=course StartTime=2026-03-02T08:00:00 EndTime=2026-03-02T10:00:00 Nodes=g1 "
    "Flags=DAILY Users=(null) Accounts=bio,-chem\n"
    "ReservationName=licence StartTime=2026-03-02T08:00:00 EndTime=2026-03-02T10:00:00 "
    "Nodes=(null) Flags=ANY_NODES Users=ada\n"
)
EVENTS = """Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User
lab||1772348400|Unknown||Cluster Registered TRES|root(0)
lab|c1|1772348400|1772352000|DOWN*|Not responding|slurm(64030)
lab|g2|1772348400|Unknown|DRAIN|fan|root(0)
lab|c3|1772348400|1772352000|DOWN|Not responding|slurm(64030)
lab|zz|1772348400|1772352000|DOWN|gone|root(0)
lab|c2|1772348400|1772352000|REBOOT|new kernel|root(0)
"""
CALENDAR = """start,end,nodes,kind,name
1772348400,2026-03-01T09:00:00+01:00,c[1-2] g1,planned,power
"""
T = 1_772_348_400  # 2026-03-01T08:00:00 in Berlin


def written(folder: Path, **texts: str) -> str:
    """Files by their names without the suffix, as one text for `read_site`."""
    names = []
    for name, text in texts.items():
        path = folder / (f"{name}.yaml" if name == "site" else f"{name}.txt")
        path.write_text(text)
        names.append(str(path))
    return ",".join(names)


def test_a_slurm_conf_gives_nodes_partitions_and_priorities(tmp_path: Path) -> None:
    site = read_site(written(tmp_path, conf=CONF, qos=QOS))
    assert site.nodes == (
        NodeGroup("c[1-4]", 1, 8, 1000, 0, ("ib", "cascade"), 2),
        NodeGroup("g[1-2]", 1, 8, 1000, 2),
    )
    day = 86_400
    assert site.partitions == (
        Partition("main", ("c1", "c2", "c3", "c4"), day, default=True),
        Partition("gpu", ("g[1-2]",), 5400, tier=3, exclusive=True, qos="gpu"),
        Partition("all", ("ALL",), 0, 2, 3, priority=5),
        Partition("old", ("c1", "c2", "c3", "c4"), day, available=False),
    )
    assert (site.half_life_s, site.max_age_s) == (14 * day, day + 45_000)
    assert site.rule == "priority:conservative"
    assert site.weights == Weights(age=1000, size=0, fair_share=0)
    assert site.not_simulated == (
        "PriorityWeightAssoc is 7",
        "AllowQos of the partition old is normal",
        "Flags of the QOS normal is DenyOnLimit",
    )
    assert site.totals == (48, 6000, 4)
    assert np.flatnonzero(site.node_set(0)).tolist() == [0, 1, 2, 3]
    assert np.flatnonzero(site.node_set(1)).tolist() == [4, 5]


def test_weights_of_partitions_and_qos_alone_make_an_order(tmp_path: Path) -> None:
    conf = CONF.replace("PriorityWeightAge=1000", "PriorityWeightQOS=9\nPriorityWeightPartition=2")
    site = read_site(written(tmp_path, conf=conf))
    assert site.rule == "priority:conservative"
    assert site.weights == Weights(age=0, size=0, fair_share=0, partition=2, qos=9)
    basic = read_site(
        written(tmp_path, conf=conf.replace("priority/multifactor", "priority/basic"))
    )
    assert (basic.rule, basic.weights) == ("fcfs:conservative", None)


def test_limits_of_a_qos_of_accounts_and_users(tmp_path: Path) -> None:
    site = read_site(written(tmp_path, conf=CONF, qos=QOS, assoc=ASSOC))
    assert site.limits == (
        Limit("normal"),
        Limit(
            "gpu",
            priority=50,
            max_time_s=8 * 3600,
            jobs=9,
            processors=12,
            gpus=3,
            jobs_per_user=2,
            processors_per_user=8,
            memory_per_user=1024,
            jobs_per_account=4,
            gpus_per_account=1,
            processors_per_job=6,
            nodes_per_job=2,
        ),
        Limit("bio", "account", 0, 2 * 86_400, 5, 16, jobs_per_user=3),
        Limit("ada", "user", jobs=2, processors_per_job=4),
    )
    assert "limits of bob in several accounts" in site.not_simulated
    assert "limits of cyd in the partition gpu alone" in site.not_simulated
    assert (site.account_names, site.user_names) == (("bio",), ("ada",))


def test_limits_that_slurm_does_not_enforce_hold_nobody(tmp_path: Path) -> None:
    conf = CONF.replace("Enforce=limits", "Enforce=qos")
    site = read_site(written(tmp_path, conf=conf, qos=QOS, assoc=ASSOC))
    assert site.limits == (Limit("normal"), Limit("gpu", priority=50))
    assert any("does not enforce" in note for note in site.not_simulated)


def test_whole_nodes_and_usage_that_never_fades(tmp_path: Path) -> None:
    conf = CONF.replace("HalfLife=14-0", "HalfLife=0").replace("=gpu P", "=gpu SHARED=YES:4 P")
    site = read_site(written(tmp_path, conf="SelectType=select/linear" + conf))
    assert all(partition.exclusive for partition in site.partitions)
    assert site.half_life_s == 2**31 - 1
    linear = "processors of the partition gpu are shared by jobs"
    other = conf.replace("OverSubscribe=EXCLUSIVE", "OverSubscribe=FORCE:2")
    site = read_site(written(tmp_path, conf=other))
    assert linear in site.not_simulated
    assert not any(partition.exclusive for partition in site.partitions)


def test_the_qos_of_a_partition_that_no_file_describes_is_said(tmp_path: Path) -> None:
    site = read_site(written(tmp_path, conf=CONF))
    assert site.partitions[1].qos == ""
    assert any("QOS gpu of the partition gpu" in note for note in site.not_simulated)


def test_the_calendar_of_reservations_events_and_a_csv(tmp_path: Path) -> None:
    files = written(tmp_path, conf=CONF, res=RESERVATIONS, events=EVENTS, more=CALENDAR)
    site = read_site(f"{files},TZ=Europe/Berlin")
    assert site.calendar == (
        Outage(T, T + 12 * 3600, ("c[1-2]",), "planned", "maint", users=("root",)),
        Outage(T + 86_400, T + 93_600, ("g1",), "reservation", "course", accounts=("bio",)),
        Outage(T, T + 3600, ("c1", "c3"), "failure"),
        Outage(T, 2**31 - 1, ("g2",), "planned", known_from=T),
        Outage(T, T + 3600, ("c[1-2]", "g1"), "planned", "power"),
    )
    assert np.flatnonzero(site.outage_nodes[4]).tolist() == [0, 1, 4]
    for words in ("repeats of the reservation course", "licence", "1 events", "not have: zz"):
        assert any(words in note for note in site.not_simulated), words


YAML = """
nodes:
- {name: "n[1-4]", processors: 8, features: [ib]}
- {name: big, count: 2, processors: 32}
partitions:
- {name: main, nodes: ["n[1-4]"], max_time_s: 86400}
- {name: large, nodes: [big, n4], default: true}
limits:
- {name: normal, jobs_per_user: 2}
calendar:
- {start: 2026-03-01T08:00:00+01:00, end: 1772352000, nodes: big1}
weights: {age: 5}
"""


def test_yaml_has_the_names_of_the_description(tmp_path: Path) -> None:
    site = read_site(written(tmp_path, site=YAML))
    assert site == Site(
        nodes=(NodeGroup("n[1-4]", processors=8, features=("ib",)), NodeGroup("big", 2, 32)),
        partitions=(
            Partition("main", ("n[1-4]",), 86_400),
            Partition("large", ("big", "n4"), default=True),
        ),
        limits=(Limit("normal", jobs_per_user=2),),
        calendar=(Outage(T, T + 3600, ("big1",)),),
        weights=Weights(age=5),
    )
    assert site.node_names == ("n1", "n2", "n3", "n4", "big1", "big2")
    assert np.flatnonzero(site.node_set(1)).tolist() == [3, 4, 5]
    assert np.flatnonzero(site.node_set(1, site.feature_mask(["ib"]))).tolist() == [3]
    assert site.default_partition == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("max_time_s", "maxtime", "unknown option of a site 'maxtime'"),
        ("86400", "-1", "the partition main: max_time_s must be 0 to"),
        ("86400", "1.5", "max_time_s must be a whole number, but 1.5"),
        ("processors: 32", "processors: 0", "the nodes big: processors must be 1 to"),
        ("count: 2", "name2: 2", "did you mean 'name'"),
        ("nodes: [big, n4]", "nodes: [big, n9]", "the partition large has the node n9"),
        ("{name: main,", "{", "a partition needs name"),
        ("features: [ib]", "features: [1]", "features must be a list of names"),
        ("name: large", "name: main", "the partition main is described twice"),
        ("partitions:", "partitions: 3\nother:", "unknown option of a site 'other'"),
        ("end: 1772352000", "end: 3", "an outage must end after its start"),
        ("nodes: big1", "nodes: big7", "the outage at 1,772,348,400 has the node big7"),
        ("weights: {age: 5}", "placement: worst", "unknown placement 'worst'"),
        ("weights: {age: 5}", "limits: []", "has the key 'limits' twice"),
        ("weights: {age: 5}", "weights: 5", "weights must be a table"),
        ("limits:\n- {name: normal, jobs_per_user: 2}", "limits: 5", "limits must be a list"),
        ("- {name: normal, jobs_per_user: 2}", "- normal", "limits must be a list of tables"),
        ("jobs_per_user: 2", "kind: group", "unknown kind of limit 'group'"),
        ("big, count: 2", '"n[3-5]"', "the node n3 is described twice"),
    ],
)
def test_a_wrong_description_is_refused_in_a_sentence(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    assert old in YAML
    with pytest.raises(InputError) as refusal:
        read_site(written(tmp_path, site=YAML.replace(old, new)))
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_files_that_do_not_make_one_machine_are_refused(tmp_path: Path) -> None:
    for texts, words in (
        ({"qos": QOS}, "none of them does"),
        ({"conf": CONF, "site": YAML}, "must describe the machine"),
        ({"notes": "hello\n"}, "is no YAML file"),
        ({"conf": CONF.replace("1-0", "long")}, "MaxTime must be"),
        ({"conf": CONF, "qos": QOS.replace("08:00:00", "soon")}, "line 3: MaxWall must be"),
        ({"conf": CONF, "res": RESERVATIONS.replace("2026-03-01T08", "8")}, "StartTime must be"),
    ):
        with pytest.raises(InputError, match=words):
            read_site(written(tmp_path, **texts))
    with pytest.raises(InputError, match="cannot read"):
        read_site(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize(
    "text",
    [CONF, QOS, ASSOC, RESERVATIONS, EVENTS, CALENDAR, YAML],
    ids=["conf", "qos", "assoc", "res", "event", "csv", "yaml"],
)
def test_a_damaged_file_is_read_or_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    rng, refusals = np.random.default_rng(0), []
    signs = ["-", "|", '"', "[", "]", "{", ":", "9" * 30, "-1", "\t", ",", "null", "n[1-", "*", ""]
    for _ in range(60):
        damaged = text
        for _ in range(int(rng.integers(1, 4))):
            place = int(rng.integers(len(damaged)))
            gone = place + int(rng.choice([0, 1, 5, 20]))
            damaged = damaged[:place] + str(rng.choice(signs)) + damaged[gone:]
        names = {"site": damaged} if text is YAML else {"conf": CONF, "other": damaged}
        if text is CONF:
            names = {"conf": damaged}
        try:
            read_site(written(tmp_path, **names))
        except InputError as refusal:
            refusals.append(str(refusal))
    assert refusals
    assert not [words for words in refusals if "\n" in words]
