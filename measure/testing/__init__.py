"""Contract tests of builders, runners, executors and databases, for your classes to inherit.

    from tilewright.measure.testing.executor import ExecutorContract

    class TestMine(ExecutorContract):
        def make(self):
            return MyExecutor()
        ...

They need ``tilewright[testing]``. For assertions that show values, say
``pytest.register_assert_rewrite("measure.testing")`` in a ``conftest.py``.
"""
