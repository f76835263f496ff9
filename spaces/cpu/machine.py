"""The processor, as the operating system describes it: model, cores, caches."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from functools import cache
from pathlib import Path

CPU_ROOT = Path("/sys/devices/system/cpu")
DEFAULT_CACHES = {1: 32 * 1024, 2: 512 * 1024, 3: 8 * 1024 * 1024}
UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


@cache
def cpu_model() -> str:
    """Return the processor's name, with family and model numbers if the system tells them: at most
    256 printable characters."""
    return "".join(filter(str.isprintable, _cpu_model()))[:256]


def _cpu_model() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return _sysctl("machdep.cpu.brand_string") or platform.processor() or "unknown"
    fields = dict(re.findall(r"^([^\t:]+?)\s*: (.*)$", text.split("\n\n")[0], re.MULTILINE))
    name = fields.get("model name") or platform.processor() or platform.machine()
    if "cpu family" in fields:
        name += f" (family {fields['cpu family']} model {fields.get('model', '?')})"
    return name


@cache
def cpu_flags() -> frozenset[str]:
    """Return the features of the processor by Linux's names for them; the empty set if it tells
    none."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return frozenset()
    found = re.search(r"^(?:flags|Features)\s*: (.*)$", text, re.MULTILINE)
    return frozenset(found.group(1).split() if found else ())


@cache
def core_count() -> int:
    """Return the number of cores that this process may run on; hardware threads of one core count
    once."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    allowed = os.sched_getaffinity(0)
    siblings = {
        _read(CPU_ROOT / f"cpu{cpu}/topology/thread_siblings_list", str(cpu)) for cpu in allowed
    }
    return len(siblings)


@cache
def cache_bytes(level: int) -> int:
    """Return the bytes of the data cache of ``level`` (1, 2, 3) that one core reaches.

    Return a common size if the system does not tell, and that of L2 if there is no L3.
    """
    for index in sorted(CPU_ROOT.glob("cpu0/cache/index*")):
        if _read(index / "level") == str(level) and _read(index / "type") != "Instruction":
            return _size(_read(index / "size")) or DEFAULT_CACHES[level]
    if level == 3 and (CPU_ROOT / "cpu0/cache/index0").exists():
        return cache_bytes(2)
    names = {1: "hw.l1dcachesize", 2: "hw.l2cachesize", 3: "hw.l3cachesize"}
    return int(_sysctl(names[level]) or 0) or DEFAULT_CACHES[level]


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(match[1]) * UNITS[match[2]] if match else 0


def _read(path: Path, default: str = "") -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return default


def _sysctl(name: str) -> str:
    try:
        done = subprocess.run(
            ["sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
