"""What the command says of itself: help that can be copied, the version, completion."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from importlib import metadata

import pytest

from tests.scheduler.cli.command import COMMAND, PATHS, SMALL, ask, one_line
from tilewright.scheduler.cli.app import COMMANDS, run
from tilewright.scheduler.cli.output import console, facts, table
from tilewright.scheduler.cli.text import plain
from tilewright.spaces.operators import workload
from tilewright.spaces.version import VERSION


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_can_be_copied(capsys, command):
    words = [] if command is None else [command]
    text = ask(capsys, *words, "--help")
    assert ask(capsys, *words, "-h") == text
    for line in re.findall(r"^ +tilewright (\w+ matmul .*)$", text, re.MULTILINE):
        name, operator, *rest = shlex.split(line.split(">")[0].replace("=*", "=8"))
        assert name in COMMANDS
        parameters = [word.split("=", 1) for word in rest if re.match(r"\w+=", word)]
        made = workload(operator, **dict(parameters))
        assert ("epilogue" in line) == (made.matmul.epilogue is not None)
        if made.matmul.epilogue is not None:
            assert made.matmul.epilogue_inputs[0].axes == ("n",)
    assert "[n]" in text or command not in (None, "tune", "query", "verify")


@pytest.mark.parametrize(
    ("command", "default"), [("tune", r"\(one of this machine alone\)"), ("status", "auto")]
)
def test_the_cluster_that_is_asked_if_nobody_says_is_named(capsys, command, default):
    text = " ".join(ask(capsys, command, "--help").split())
    assert re.search(rf"--address HOST:PORT [^\[]*\[default: {default}\]", text)


def test_the_version(capsys):
    assert ask(capsys, "--version") == f"tilewright {VERSION}\n"
    assert metadata.version("tilewright") == VERSION


def test_completion_knows_the_commands(tmp_path):
    typed = {"COMP_WORDS": "tilewright e", "COMP_CWORD": "1"}
    typed |= {"PYTHONPATH": PATHS, "_TILEWRIGHT_COMPLETE": "complete_bash"}
    environment = os.environ | typed
    done = subprocess.run(COMMAND, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == ["evaluate", "explain", "extract", "export"], done.stderr


def test_no_command_shows_the_help(capsys):
    assert run([]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("Usage: tilewright")
    assert not said.out
    assert said.err.count("\n") > 20


def test_a_group_without_a_command_shows_its_help(capsys):
    assert run(["db"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("Usage: tilewright db")
    assert "\n  merge " in said


@pytest.mark.parametrize("group", [(), ("db",)])
def test_what_commands_do_is_said_to_the_end(capsys, group):
    assert "..." not in ask(capsys, *group, "--help").split("\nCommands:\n")[1]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07 \x1b[31mred", r"\x1b]0;title\x07 \x1b[31mred"),
        ("lone \ud800, bidi \u202e, C1 \x9b", r"lone \ud800, bidi \u202e, C1 \x9b"),
        ("two\nlines\r\x08", r"two\nlines\r\x08"),
        ("naïve 名前", "naïve 名前"),
    ],
)
def test_text_of_strangers_moves_no_cursor(text, shown):
    assert plain(text) == shown


def test_tables_escape_what_they_hold(capsys):
    console().print(table(("what",), [["\x1b[31mred"]]))
    console().print(facts([("what", "\x1b]0;title\x07")]))
    assert "\x1b" not in capsys.readouterr().out


def test_a_full_disk_below_the_output_is_one_line(tmp_path):
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" > /dev/full', "sh", *COMMAND, "query", *SMALL, "--db", "no.db"],
        env=os.environ | {"PYTHONPATH": PATHS},
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 2
    assert "No space left on device" in one_line(done.stderr.split("\n", 1)[1])


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_no_place_for_a_database(tuned, tmp_path, capsys, closed):
    ask(capsys, "export", "--db", str(tuned[0]), str(tmp_path / "log.jsonl"))
    words = [*COMMAND, "import", "log.jsonl", "--db", "x.db"]
    script = f'"$@" {closed}'
    environment = os.environ | {"PYTHONPATH": PATHS}
    done = subprocess.run(["/bin/sh", "-c", script, "sh", *words], env=environment, cwd=tmp_path)
    assert done.returncode == 0
    assert "m=64" in ask(capsys, "list", "--db", str(tmp_path / "x.db"))
