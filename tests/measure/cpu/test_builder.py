import os
import threading
from dataclasses import replace

from tests.measure.cpu.c_kernels import PRELUDE, broken, candidate, good, target
from tilewright.measure.cpu.builder import CBuilder, unit_text
from tilewright.measure.records.measurement import ErrorKind
from tilewright.measure.testing.builder import BuilderContract


def endless(pipe):
    """A candidate whose compilation waits for ever: nobody writes the pipe that it includes.

    It takes neither time of a core nor memory, so that nothing but the clock can end it.
    """
    os.mkfifo(pipe)
    return candidate("endless", "", outside=f'#include "{pipe}"')


class TestCBuilder(BuilderContract):
    def make(self):
        return CBuilder(target(), jobs=2)

    def good(self, name):
        return good(name)

    def broken(self, name):
        return broken(name)


def test_a_unit_holds_each_prelude_once():
    text = unit_text([good(f"g{i}").kernel for i in range(3)])
    assert text.count(PRELUDE) == 1
    assert all(f"void g{i}(" in text for i in range(3))


def test_candidates_share_units_of_limited_size():
    builder = CBuilder(target(), jobs=1, unit_size=4)
    built = builder.build([good(f"g{i}") for i in range(10)])
    assert len({b.binary for b in built}) == 3
    builder.close()


def test_two_kernels_of_one_entry_are_kept_apart():
    builder = CBuilder(target())
    one = good("same")
    other = candidate("same", lambda product: f"{product} C[0] += 0;")
    built = builder.build([one, other])
    assert built[0].binary != built[1].binary
    builder.close()


def test_no_kernel_is_compiled_twice():
    builder = CBuilder(target())
    first = builder.build([good("a"), good("b"), broken("c")])
    again = builder.build([broken("c"), good("d"), good("b")])
    assert [b.binary is None for b in again] == [True, False, False]
    assert again[2].binary == first[1].binary != again[1].binary
    assert again[2].seconds == first[1].seconds
    builder.close()


def test_a_compile_that_takes_too_long_is_stopped_and_costs_one_record(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    builder = CBuilder(target(), time_limit=3.0)
    built = builder.build([good("a"), endless(tmp_path / "pipe.h"), good("b")])
    assert [b.error_kind for b in built] == [None, ErrorKind.COMPILE_TIMEOUT, None]
    builder.close()
    assert not list(temporary.iterdir())


def test_a_unit_may_take_longer_the_more_kernels_it_has():
    """The limit grows as the root of their number."""
    builder = CBuilder(target(), jobs=1, unit_size=64, time_limit=7.5)
    built = builder.build([good(f"g{i}") for i in range(64)])
    assert len({b.binary for b in built}) == 1
    assert [b.error_kind for b in built] == [None] * 64
    builder.close()


def test_messages_name_the_fault_and_no_temporary_folder():
    builder = CBuilder(target())
    [built] = builder.build([broken()])
    assert "error" in built.error_text
    assert "/runs/" not in built.error_text
    builder.close()


def test_flags_of_the_target_reach_the_compiler():
    flagged = replace(target(), flags=(*target().flags, "-DANSWER=42"))
    builder = CBuilder(flagged)
    body = "typedef char known[ANSWER == 42 ? 1 : -1];"
    [built] = builder.build([candidate("uses", body, on=flagged)])
    assert built.error_text == ""
    builder.close()


def test_close_from_another_thread_ends_a_build(tmp_path):
    builder, pipe = CBuilder(target(), time_limit=1000.0), tmp_path / "pipe.h"
    waiting = endless(pipe)

    def close() -> None:
        with pipe.open("wb"):  # once the compiler reads it
            builder.close()

    thread = threading.Thread(target=close)
    thread.start()
    [built] = builder.build([waiting])
    thread.join()
    assert built.binary is None
