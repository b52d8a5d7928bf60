"""What kernels hand to their parts: named tuples by reference, and functions by address."""

from typing import NamedTuple

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from cluster_env.core.compiled import (
    call_at,
    callable_at,
    njit_called,
    njit_inlined,
    njit_kernel,
    reference,
)
from cluster_env.core.parts import KernelCompiler


class Inner(NamedTuple):
    table: NDArray[np.int64]  # (rows, 2)
    is_on: bool


class Outer(NamedTuple):
    inner: Inner
    sums: NDArray[np.float64]
    nothing: None
    scale: float


@njit_called
def _add(outer, row):
    inner = outer.inner
    if inner.is_on:
        outer.sums[row] += outer.scale * inner.table[row, 1]


@njit_inlined
def _add_twice(outer, row):
    _add(outer, row)
    _add(outer, row)


@njit_kernel
def _sum_up(tables, sums, scale):
    """A reference is made anew in each round, to other views."""
    for k in range(tables.shape[0]):
        outer = reference(Outer(Inner(tables[k], k != 1), sums[k], None, scale + k))
        for row in range(tables.shape[1]):
            _add_twice(outer, row)


@njit_kernel
def _call(address, out):
    for k in range(out.size):
        out[k] = call_at(address, float(k), 2.0, 0.5)


def test_a_reference_shows_the_fields_of_its_tuple_and_of_those_in_it() -> None:
    tables, sums = np.arange(12).reshape(3, 2, 2), np.zeros((3, 2))
    _sum_up(tables, sums, 0.5)
    assert sums.tolist() == [[1.0, 3.0], [0.0, 0.0], [45.0, 55.0]]


def test_parts_have_no_machine_code() -> None:
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    fresh = numba.njit(pipeline_class=KernelCompiler, _nrt=False)(_sum_up.py_func)  # not kept
    fresh(np.ones((1, 1, 2), np.int64), np.zeros((1, 1)), 1.0)
    parts = list(_add.overloads.values())
    assert parts
    for part in parts:
        assert not part.library.get_pointer_to_function(part.fndesc.llvm_func_name)


def test_no_index_that_is_worked_out_counts_from_the_end() -> None:
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")

    def move(rows, source, target):
        rows[target, 0] = rows[source, 1]

    checked = {"_nrt": False, "boundscheck": True}
    rows = np.arange(4).reshape(2, 2)
    numba.njit(**checked)(move)(rows, -1, 0)  # numba's own indices do
    kernel = numba.njit(pipeline_class=KernelCompiler, **checked)(move)
    kernel(rows, 0, 1)
    assert rows.tolist() == [[3, 1], [1, 3]]

    def copy(rows):
        rows[-1, 0] = rows[0, -1]
        rows[-1][1] = rows[0][-1]

    numba.njit(pipeline_class=KernelCompiler, **checked)(copy)(rows)  # those that are written so do
    assert rows.tolist() == [[3, 1], [1, 1]]
    rows[1, 1] = 3
    for source, target in ((-1, 0), (0, -1), (2, 0)):
        with pytest.raises(IndexError):
            kernel(rows, source, target)
    assert rows.tolist() == [[3, 1], [1, 3]]


def test_a_function_is_called_by_its_address() -> None:
    power, out = callable_at(lambda one, two, three: one**two + three), np.zeros(3)
    _call(power.address, out)
    assert out.tolist() == [0.5, 1.5, 4.5]
    assert call_at(power.address, 3.0, 2.0, 0.5) == 9.5
