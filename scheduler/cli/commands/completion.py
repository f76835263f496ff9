"""``tilewright completion``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

SCRIPTS = Path(__file__).parents[1] / "shells"


class Shell(StrEnum):
    """A shell that completes command lines."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion_command(
    shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.", show_default=False)],
) -> None:
    """Print a script that lets a shell complete commands, operators, parameters and targets.

    Values of parameters are those of workloads in the database.

    \b
    Examples:
      eval "$(tilewright completion bash)"
      eval "$(tilewright completion zsh)"
      tilewright completion fish | source
    """
    print((SCRIPTS / f"tilewright.{shell}").read_text(), end="")
