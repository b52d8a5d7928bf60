"""What becomes of names and values before they are recorded."""

import math

import numpy as np

from tune_jobs.tracking.values import as_numbers, as_text, clean_name


def test_nested_mappings_become_flat_names() -> None:
    assert as_text({"training": {"lr": 1e-3, "betas": (0.9, 0.99)}, "seed": None}) == {
        "training.lr": "0.001",
        "training.betas": "(0.9, 0.99)",
        "seed": "None",
    }
    assert as_numbers({"learner": {"loss": np.float32(0.5)}, "steps": np.int64(3)})[0] == {
        "learner/loss": 0.5,
        "steps": 3.0,
    }


def test_what_is_no_number_is_named_and_the_rest_kept() -> None:
    numbers, others = as_numbers({"a": 1, "b": "late", "c": None, "d": [1, 2], "e": True})
    assert numbers == {"a": 1.0, "e": 1.0}
    assert others == ["b", "c", "d"]


def test_infinity_becomes_a_gap() -> None:
    numbers, _ = as_numbers({"a": math.nan, "b": math.inf, "c": -math.inf, "d": 1})
    assert [math.isnan(number) for number in numbers.values()] == [True, True, True, False]


def test_names_are_made_acceptable() -> None:
    assert clean_name("p[0]=τ%") == "p_0__τ_"
    assert len(clean_name("x" * 300)) == 250
    # MLflow takes names for paths.
    assert [clean_name(name) for name in ("../b", "a//b/", "/", "", "a/../b")] == [
        *("b", "a/b", "_", "_", "b")
    ]


def test_secrets_are_hidden() -> None:
    assert as_text({"a": {"uri": "http://me:pw@host"}}) == {"a.uri": "http://host"}
