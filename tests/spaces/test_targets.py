"""Targets as data: detected, described, read back, and refused when malformed."""

from __future__ import annotations

import dataclasses
import json

import pytest

from spaces.cpu.compiler import find_compiler
from spaces.cpu.isa import GENERIC, detect_isa, has_bf16_dot, has_fma
from spaces.cpu.target import detect_cpu
from spaces.errors import InputError
from spaces.target import detect_target, target_from_json


@pytest.mark.parametrize("name", ["cpu", "cuda:sm_80", "cuda:sm_90a"])
def test_a_description_reads_back_as_the_same_target(name):
    target = detect_target(name)
    text = json.dumps(target.to_json())
    again = target_from_json(json.loads(text))
    assert again == target
    assert again.fingerprint == target.fingerprint
    assert target.summary


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("threads", "2"),
        ("threads", True),
        ("l1_bytes", 1.5),
        ("flags", "-O2"),
        ("flags", [["-O2"]]),
        ("model", None),
        ("unknown", 1),
    ],
)
def test_malformed_descriptions_are_refused(field, value):
    with pytest.raises(InputError, match=f"malformed description of a cpu target: .*{field}"):
        target_from_json(detect_cpu().to_json() | {field: value})


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
