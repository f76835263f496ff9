"""Libraries that are loaded late."""

from __future__ import annotations

import sys

from threadpoolctl import threadpool_info, threadpool_limits

from tilewright.costmodel import library
from tilewright.costmodel.library import one_thread


def threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_linear_algebra_takes_one_thread_for_as_long_as_asked():
    with one_thread():  # loads what is to be limited
        pass
    with threadpool_limits(2, user_api="blas"):
        with one_thread():
            assert threads() == {1}
        assert threads() == {2}


def test_where_nothing_tells_threads_linear_algebra_has_all(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)  # what blocks an import
    library._linear_algebra.cache_clear()
    with threadpool_limits(2, user_api="blas"), one_thread():
        assert threads() == {2}
    library._linear_algebra.cache_clear()
