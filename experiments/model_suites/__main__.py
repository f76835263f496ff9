"""Make the shipped suites anew, from the pinned configurations in this folder.

    python -m experiments.model_suites [NAME ...] [--out scheduler/suites]

Needs ``pip install 'tilewright[models]'``; nothing is downloaded, and no weights are made.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.scheduler.cli.app import run

HERE = Path(__file__).parent
SHIPPED = HERE.parents[1] / "scheduler" / "suites"
SERVED = ("--rows", "decode=1,8,64", "--rows", "prefill=2048")
HOPPER = ("--dtype", "bfloat16", "--target", "cuda:sm_90a")


@dataclass(frozen=True)
class Made:
    """A suite: a title, and the words of ``tilewright extract`` that make it."""

    title: str
    words: tuple[str, ...]


def _configured(name: str, *words: str) -> tuple[str, ...]:
    return ("--config", str(HERE / "configurations" / f"{name}.json"), *words)


SUITES = {
    "bert-base": Made(
        "BERT-base, 128 tokens, float32", _configured("bert-base", "--target", "cpu")
    ),
    "gpt-2": Made(
        "GPT-2, float32",
        _configured("gpt-2", "--rows", "decode=1", "--rows", "prefill=1024", "--target", "cpu"),
    ),
    "vit-base": Made(
        "ViT-B/16, an image of 224, float32", _configured("vit-base", "--target", "cpu")
    ),
    "whisper-small": Made(
        "Whisper small, half a minute, float32",
        _configured("whisper-small", "--rows", "prefill=64", "--target", "cpu"),
    ),
    "resnet-50": Made(
        "ResNet-50, an image of 224, float32",
        (f"{HERE / 'images.py'}:resnet_50", "--target", "cpu"),
    ),
    "inception-v3": Made(
        "Inception-v3, an image of 299, float32",
        (f"{HERE / 'images.py'}:inception_v3", "--target", "cpu"),
    ),
    "llama-3-8b": Made("Llama 3 8B, bfloat16", _configured("llama-3-8b", *SERVED, *HOPPER)),
    "llama-3-70b": Made(
        "Llama 3 70B on 8 GPUs, bfloat16", _configured("llama-3-70b", *SERVED, *HOPPER, "--tp", "8")
    ),
    "qwen3-8b": Made("Qwen3 8B, bfloat16", _configured("qwen3-8b", *SERVED, *HOPPER)),
    "mixtral-8x7b": Made("Mixtral 8x7B, bfloat16", _configured("mixtral-8x7b", *SERVED, *HOPPER)),
}


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(SUITES), metavar="NAME")
    parser.add_argument("--out", type=Path, default=SHIPPED)
    asked = parser.parse_args(given)
    for name in asked.names:
        began, made = time.monotonic(), SUITES[name]
        out = asked.out / f"{name}.toml"
        words = ("extract", *made.words, "--title", made.title, "--out", str(out))
        if run([*words, "--format", "json"]):
            raise SystemExit(f"{name} failed")
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
