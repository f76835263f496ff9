"""Targets as data: detected, described, read back, and refused when malformed."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from typing import Annotated, get_args, get_origin, get_type_hints

import numpy as np
import pytest

from tilewright.spaces.cpu import machine
from tilewright.spaces.cpu import target as cpu_target
from tilewright.spaces.cpu.compiler import find_compiler
from tilewright.spaces.cpu.isa import GENERIC, detect_isa, has_bf16_dot, has_fma
from tilewright.spaces.cpu.target import detect_cpu
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target, target_from_json
from tilewright.spaces.testing.targets import made_up_cpu
from tilewright.spaces.validation.limits import Real, Whole


@pytest.mark.parametrize("name", ["cpu", "cuda:sm_80", "cuda:sm_90a"])
def test_a_description_reads_back_as_the_same_target(name):
    target = detect_target(name)
    text = json.dumps(target.to_json())
    again = target_from_json(json.loads(text))
    assert again == target
    assert again.fingerprint == target.fingerprint
    assert target.summary


@pytest.mark.parametrize(
    ("name", "field", "value", "allowed"),
    [
        ("cpu", "threads", "2", "whole numbers from 1"),
        ("cpu", "threads", True, "whole numbers"),
        ("cpu", "threads", 0, "whole numbers from 1"),
        ("cpu", "threads", 10**9, "to 65536"),
        ("cpu", "cores", -1, "whole numbers from 1"),
        ("cpu", "l1_bytes", 1.5, "whole numbers"),
        ("cpu", "l1_bytes", 0, "whole numbers"),
        ("cpu", "l2_bytes", 0, "whole numbers"),
        pytest.param("cpu", "l2_bytes", 10**5000, "whole numbers", id="digits"),
        ("cpu", "l3_bytes", 10**40, "whole numbers"),
        ("cpu", "vector_bytes", 0, "powers of two"),
        ("cpu", "vector_bytes", -64, "powers of two"),
        ("cpu", "vector_bytes", 48, "powers of two"),
        ("cpu", "vector_bytes", 10**18, "powers of two"),
        ("cpu", "vector_registers", 0, "whole numbers"),
        ("cpu", "fma", 1, "true or false"),
        ("cpu", "flags", "-O2", "at most 64 texts"),
        ("cpu", "flags", [["-O2"]], "at most 64 texts"),
        ("cpu", "flags", ["-O2"] * 65, "at most 64 texts"),
        ("cpu", "flags", ["\x1b[31m"], "printable"),
        ("cpu", "model", None, "printable"),
        ("cpu", "model", "\x1b]0;PWNED\x07", "printable"),
        ("cpu", "model", "\ud800", "printable"),
        ("cpu", "model", "right\u202eleft", "printable"),
        ("cpu", "model", "x" * 257, "at most 256"),
        ("cpu", "isa", "avx2\n", "printable"),
        ("cuda:sm_90a", "name", "sm_", "names such as sm_80"),
        ("cuda:sm_90a", "name", "90", "names such as sm_80"),
        ("cuda:sm_90a", "name", "sm_90a\n", "names such as sm_80"),
        ("cuda:sm_90a", "model", "\x1b[31m", "printable"),
        ("cuda:sm_90a", "multiprocessors", 0, "whole numbers"),
        ("cuda:sm_90a", "shared_per_block", -1, "whole numbers"),
        ("cuda:sm_90a", "bandwidth", 0, "numbers from"),
        ("cuda:sm_90a", "bandwidth", float("inf"), "numbers from"),
        ("cuda:sm_90a", "bandwidth", float("nan"), "numbers from"),
        ("cuda:sm_90a", "clock", 10**400, "numbers from"),
        ("cuda:sm_90a", "features", [1], "texts"),
        ("cpu", "unknown", 1, ""),
    ],
)
def test_malformed_descriptions_are_refused(name, field, value, allowed):
    target = detect_target(name)
    with pytest.raises(InputError, match=rf"malformed description .*{field}.*{allowed}") as error:
        target_from_json(target.to_json() | {field: value})
    message = str(error.value)
    assert message.isprintable()
    assert len(message) < 300
    if field != "unknown":
        with pytest.raises(InputError, match=field):
            dataclasses.replace(target, **{field: value})


def test_every_field_of_a_target_has_a_limit():
    for target in (detect_target("cpu"), detect_target("cuda:sm_90a")):
        hints = get_type_hints(type(target), include_extras=True)
        for field in dataclasses.fields(target):
            assert get_origin(hints[field.name]) is Annotated, field.name


def test_spaces_are_made_of_all_targets_within_their_limits():
    """What the limits let through may be unlike any machine, but breaks nothing that reads it."""
    generator = np.random.default_rng(5)
    for _ in range(40):
        target = _strange(detect_target(generator.choice(["cpu", "cuda:sm_90a"])), generator)
        shape = {name: int(generator.integers(1, 400)) for name in "mnk"}
        with contextlib.suppress(InputError):
            space = space_for(workload("matmul", **shape), target)
            drawn = space.sample(generator, 8)
            space.quantities(drawn)


def _strange(target, generator):
    """``target`` with some of its numbers at the ends of what is allowed."""
    hints = get_type_hints(type(target), include_extras=True)
    limits = {field.name: get_args(hints[field.name])[1] for field in dataclasses.fields(target)}
    ends = {
        name: int(generator.choice([limit.least, limit.most]))
        for name, limit in limits.items()
        if isinstance(limit, Whole | Real) and generator.random() < 0.4
    }
    return dataclasses.replace(target, **ends)


def test_a_missing_field_and_an_unknown_kind_are_refused():
    fields = detect_cpu().to_json()
    del fields["isa"]
    with pytest.raises(InputError, match="isa"):
        target_from_json(fields)
    with pytest.raises(InputError, match="tpu"):
        target_from_json({"kind": "tpu"})


@pytest.mark.parametrize("threads", [0, -1, 10_000])
def test_threads_are_between_one_and_the_cores(threads):
    with pytest.raises(InputError, match=f"threads={threads}"):
        detect_cpu(threads=threads)


def test_threads_are_part_of_the_fingerprint():
    one = detect_cpu()
    assert dataclasses.replace(one, threads=7).fingerprint != one.fingerprint


@pytest.mark.parametrize(
    ("macros", "isa", "vector_bytes"),
    [
        ({"__AVX512F__", "__AVX512VL__", "__AVX512BW__", "__AVX512DQ__", "__FMA__"}, "avx512", 64),
        ({"__AVX2__", "__FMA__", "__SSE2__"}, "avx2", 32),
        ({"__SSE2__"}, "sse2", 16),
        ({"__ARM_NEON"}, "neon", 16),
        (set(), GENERIC.name, 16),
    ],
)
def test_the_instruction_set_follows_the_compilers_macros(macros, isa, vector_bytes):
    found = detect_isa(macros)
    assert (found.name, found.vector_bytes) == (isa, vector_bytes)


def test_special_instructions_follow_the_macros():
    assert has_fma({"__FMA__"})
    assert not has_fma({"__AVX__"})
    assert has_bf16_dot({"__AVX512BF16__"})
    assert not has_bf16_dot({"__AVX512F__"})


def test_a_missing_compiler_is_one_clear_error(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(InputError, match="no-such-compiler"):
        find_compiler()


def test_the_compiler_is_identified():
    compiler = find_compiler()
    assert compiler.name in ("gcc", "clang")
    assert compiler.version[0].isdigit()
    assert compiler.macros


def test_an_unknown_target_says_what_is_allowed():
    with pytest.raises(InputError, match="cuda:sm_90a"):
        detect_target("tpu")


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_system_that_tells_nothing_of_its_caches_has_common_ones(level, tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "CPU_ROOT", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))  # which has no sysctl
    assert machine.cache_bytes.__wrapped__(level) == machine.DEFAULT_CACHES[level]


def test_a_number_of_threads_is_a_target_as_text(monkeypatch):
    monkeypatch.setattr(cpu_target, "core_count", lambda: 4)
    assert detect_target("cpu:threads=2") == detect_cpu(2) == detect_target("cpu", 2)
    assert detect_target("cpu:threads=1") == detect_target("cpu") == detect_cpu(1)
    assert detect_target("cpu:threads=3", 3).threads == 3
    for threads in range(1, 5):
        found = detect_cpu(threads)
        assert detect_target(found.text) == found
    assert "(cpu:threads=2)" in detect_cpu(2).summary


@pytest.mark.parametrize(
    ("name", "threads", "says"),
    [
        ("cpu:2", None, "unknown target 'cpu:2'; allowed: cpu, cuda, "),
        ("cpu:2", None, "cuda:sm_90a, cpu:threads=2"),
        ("cpu:threads=", None, "unknown target 'cpu:threads='; allowed: cpu, cuda"),
        ("cpu:threads=two", None, "unknown target 'cpu:threads=two'"),
        ("cpu:threads=-1", None, "unknown target 'cpu:threads=-1'"),
        ("cpu:threads=" + "9" * 9999, None, "unknown target 'cpu:threads=9"),
        ("cpu:threads=0", None, "threads=0 is out of range"),
        ("cpu:threads=99999", None, "threads=99999 is out of range"),
        ("cpu:threads=2", 1, "the target cpu:threads=2, but threads=1; say one of them"),
    ],
)
def test_what_is_no_number_of_threads_is_refused(name, threads, says):
    with pytest.raises(InputError) as refused:
        detect_target(name, threads)
    assert says in str(refused.value)


def test_machines_that_differ_in_threads_alone():
    one = made_up_cpu()
    two, other = dataclasses.replace(one, threads=2), dataclasses.replace(one, cores=8, threads=2)
    assert one.differs_in_threads(two)
    assert not one.differs_in_threads(one)
    assert not one.differs_in_threads(other)
    assert not cuda_target("sm_80").differs_in_threads(cuda_target("sm_90a"))
