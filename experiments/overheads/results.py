"""Write a result with the facts that it depends on: date, Python, machine and its load."""

from __future__ import annotations

import json
import os
import platform
from datetime import date
from pathlib import Path
from typing import Any

from tilewright.spaces.cpu.target import detect_cpu


def with_facts(found: Any, **facts: Any) -> dict[str, Any]:
    """Add the facts of this machine, now that the result is ``found``, and further ``facts``."""
    return {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "target": detect_cpu(1).summary,
        **facts,
        "load_after": os.getloadavg()[0],
        "found": found,
    }


def write(out: Path, result: dict[str, Any]) -> None:
    """Write a result to a file, and print it."""
    text = json.dumps(result, indent=1)
    out.write_text(text + "\n")
    print(text)
