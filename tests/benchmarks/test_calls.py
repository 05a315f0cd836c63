"""The calls that benchmarks/operators.py times: which overloads have some. None is made."""

from collections import Counter

import pytest

from benchmarks.calls import HALF, SINGLE, TABLES, WITHOUT, calls
from generate.kernel_library import KERNELS, Library


@pytest.fixture(scope="module")
def overloads():
    return sorted(o for kernel in Library(KERNELS) for o in kernel.overloads)


def test_every_overload_of_the_library_has_a_call_or_a_reason(overloads):
    have = {call.overload for call in calls(overloads)}
    assert have | WITHOUT.keys() == set(overloads)
    assert not have & WITHOUT.keys()


def test_no_two_tables_have_an_overload(overloads):
    found = Counter(overload for table in (*TABLES, *SINGLE, *HALF) for overload in table)
    assert [o for o, n in found.items() if n > 1] == []
    assert found.keys() <= set(overloads)
