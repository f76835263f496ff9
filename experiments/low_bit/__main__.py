"""Products with weights of 1 to 8 bits beside torch's; see README.md beside this file.

python -m experiments.low_bit [--target cpu|cuda] [--shape ROWSxCOLUMNSxDEPTH ...]
    [--dtypes NAME ...] [--seconds 20] [--minutes 9] [--rounds N] [--jobs N] [--db FILE]
    [--out FILE]
python -m experiments.low_bit --experts [--shape TOKENSxCHOSENxEXPERTSxCOLUMNSxDEPTH ...] [...]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from experiments.low_bit.formats import GPU_NAMES
from tilewright.spaces.errors import InputError

OUT = Path(__file__).parent / "results" / "results.json"


def main(given: Sequence[str] | None = None) -> int:
    """Compare, print a line for each kernel, and write the results."""
    parser = argparse.ArgumentParser(prog="python -m experiments.low_bit")
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--experts", action="store_true", help="rows choose their weights")
    parser.add_argument("--shape", nargs="+", help="rows x columns x depth; one on a CPU")
    parser.add_argument("--dtypes", nargs="+", choices=GPU_NAMES)
    parser.add_argument("--seconds", type=float, help="of tuning each, 20 or 60; 0 for none")
    parser.add_argument("--minutes", type=float, default=9, help="for all of it on a GPU")
    parser.add_argument("--rounds", type=int, default=51)
    parser.add_argument("--jobs", type=int, default=0, help="processes beside a GPU; 0: all cores")
    parser.add_argument("--db", default="low_bit.db", help="of tuning on a CPU")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args(given)
    try:
        part = _part(asked)
        asked.shape = asked.shape or part.SHAPES
        asked.dtypes = asked.dtypes or part.FORMATS
        asked.seconds = part.SECONDS if asked.seconds is None else asked.seconds
        part.main(asked)
    except InputError as error:
        print(f"low_bit: {error}", file=sys.stderr)
        return 2
    return 0


def _part(asked: argparse.Namespace) -> Any:
    """Return the module of what is asked for; torch's and a GPU's load when they are used."""
    place = "cpu" if asked.target == "cpu" else "gpu"
    return import_module(f"experiments.low_bit.{place}{'_experts' * asked.experts}")


if __name__ == "__main__":
    sys.exit(main())
