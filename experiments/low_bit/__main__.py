"""Products with weights of 1 to 8 bits beside torch's; see README.md beside this file.

python -m experiments.low_bit [--target cpu|cuda] [--shape ROWSxCOLUMNSxDEPTH ...]
    [--dtypes NAME ...] [--seconds 20] [--minutes 9] [--rounds N] [--jobs N] [--db FILE]
    [--out FILE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.low_bit.formats import GPU_NAMES, NAMES
from tilewright.spaces.errors import InputError

OUT = Path(__file__).parent / "results" / "results.json"


def main(given: Sequence[str] | None = None) -> int:
    """Compare, print a line for each kernel, and write the results."""
    parser = argparse.ArgumentParser(prog="python -m experiments.low_bit")
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--shape", nargs="+", help="rows x columns x depth; one on a CPU")
    parser.add_argument("--dtypes", nargs="+", choices=GPU_NAMES)
    parser.add_argument("--seconds", type=float, default=20, help="of tuning each; 0 for none")
    parser.add_argument("--minutes", type=float, default=9, help="for all of it on a GPU")
    parser.add_argument("--rounds", type=int, default=51)
    parser.add_argument("--jobs", type=int, default=0, help="processes beside a GPU; 0: all cores")
    parser.add_argument("--db", default="low_bit.db", help="of tuning on a CPU")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args(given)
    try:
        if asked.target == "cpu":
            from experiments.low_bit import cpu

            asked.shape, asked.dtypes = asked.shape or ["1x4096x4096"], asked.dtypes or NAMES
            cpu.main(asked)
        else:
            from experiments.low_bit import gpu

            asked.shape, asked.dtypes = asked.shape or gpu.SHAPES, asked.dtypes or GPU_NAMES
            gpu.main(asked)
    except InputError as error:
        print(f"low_bit: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
