"""The recipes for clusters: files against their schemas, and hosts that follow the scripts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="needs the extra ray")

import jsonschema
import ray
import yaml

from tests.measure.cluster.network import HERE, POSSIBLE, hosts
from tilewright.measure.database import Database
from tilewright.spaces.operators import workload
from tilewright.spaces.target import detect_target

ROOT = Path(__file__).parents[3]
RECIPES = ROOT / "experiments" / "cluster"
RAY_JOB = Path(__file__).with_name("rayjob-v1.yaml")


def strict(schema: Any) -> Any:
    """The schema with fields that it does not name refused."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: strict(part) for name, part in schema.items()}
    if "properties" in made and made.get("type") == "object":
        made.setdefault("additionalProperties", False)
    return made


def of_ray() -> Any:
    return json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text())


def of_kuberay() -> Any:
    return strict(yaml.safe_load(RAY_JOB.read_text()))


FILES = {"ray-cluster.yaml": of_ray, "rayjob.yaml": of_kuberay}


def objects(data: Any) -> Iterator[dict]:
    """All mappings of a document."""
    if isinstance(data, dict):
        yield data
    for part in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from objects(part)


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_as_its_schema_says(name):
    document = yaml.safe_load((RECIPES / name).read_text())
    jsonschema.validate(document, FILES[name]())


@pytest.mark.parametrize(
    ("name", "field", "wrong"),
    [
        ("ray-cluster.yaml", "max_workers", "two"),
        ("ray-cluster.yaml", "setup_commands", "pip install tilewright"),
        ("rayjob.yaml", "maxReplicas", "2"),
        ("rayjob.yaml", "mode", "tokens"),
        ("rayjob.yaml", "entrypoint", ["tilewright"]),
        ("rayjob.yaml", "nvidia.com/gpu", "one"),
    ],
)
def test_a_wrong_value_or_name_is_not(name, field, wrong):
    for new in ({field: wrong}, {f"{field}s": None}):
        document = yaml.safe_load((RECIPES / name).read_text())
        for found in [made for made in objects(document) if field in made]:
            found.update(new)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document, FILES[name]())


def test_the_head_of_the_launcher_starts_the_workers(capsys):
    """Ray's own check of what `ray up` is to run on the head."""
    from ray.autoscaler._private.commands import warn_about_bad_start_command

    document = yaml.safe_load((RECIPES / "ray-cluster.yaml").read_text())
    warn_about_bad_start_command(document["head_start_ray_commands"])
    said = capsys.readouterr()
    assert said.out + said.err == ""


@contextmanager
def node(*arguments: str, env: dict[str, str]) -> Iterator[None]:
    """A node that the recipe starts and that runs meanwhile."""
    with subprocess.Popen(
        ["bash", RECIPES / "static.sh", *arguments, "--block"],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            said = process.stdout.readline()
            while "Ray runtime started" not in said:
                more = process.stdout.readline()
                assert more, said
                said += more
            yield
        finally:
            process.terminate()
            process.communicate()


@pytest.mark.slow
@pytest.mark.skipif(not POSSIBLE, reason="needs root, and ip(8)")
def test_hosts_that_follow_the_first_recipe_make_a_cluster_that_tunes(tmp_path):
    """The head lends nothing, so the work is done by the host that joins."""
    with tempfile.TemporaryDirectory() as short, hosts() as network, ExitStack() as nodes:
        env = environment(tmp_path, short)
        subprocess.run(["ray", "get-auth-token", "--generate"], env=env, check=True)
        nodes.enter_context(node("head", HERE, "--num-cpus", "0", env=env))
        with network.there():
            nodes.enter_context(node("join", HERE, "--num-cpus", "2", env=env))
        command = (
            f"{sys.executable} -m tilewright tune matmul m=64 n=64 k=64 --trials 8 --seconds 300 "
            f"--executor ray --address {HERE}:6379 --db {tmp_path}/t.db"
        )
        done = subprocess.run(command.split(), env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    check_trials(tmp_path / "t.db")


def environment(home: Path, temporary: str) -> dict[str, str]:
    """Of somebody who has installed us and Ray."""
    return {
        **os.environ,
        "HOME": str(home),
        "RAY_TMPDIR": temporary,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'scheduler' / 'face'}",
    }


def check_trials(path: Path) -> None:
    """Eight of a product of 64 rows."""
    with Database(path) as database:
        records = database.records(workload("matmul", m=64, n=64, k=64), detect_target("cpu"))
        assert sum(record.measurement.round == "search" for record in records) == 8


# -- Slurm ---------------------------------------------------------------------------------------

SLURM = {  # what a job calls, as far as the recipe goes
    "scontrol": 'printf "one\\ntwo\\n"',
    "hostname": f"echo ::1 127.0.1.1 {HERE}",
    "srun": """
        there=
        while [[ $1 = -* ]]; do
            [[ $1 = --exclude=one ]] && there="nsenter --net=/proc/$THERE/ns/net"
            [[ $1 = -w ]] && shift
            shift
        done
        exec $there "$@"
    """,
}


@pytest.fixture
def allocation(tmp_path):
    """The environment of a job on two nodes, in ``tmp_path``."""
    bin = tmp_path / ".venv" / "bin"
    bin.mkdir(parents=True)
    (bin / "activate").touch()
    for name, text in SLURM.items():
        (bin / name).write_text(f"#!/bin/bash\n{text}\n")
        (bin / name).chmod(0o755)
    (bin / "tilewright").write_text(f'#!/bin/sh\nexec {sys.executable} -m tilewright "$@"\n')
    (bin / "tilewright").chmod(0o755)
    with tempfile.TemporaryDirectory() as short:
        job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "one,two", "SLURM_JOB_NUM_NODES": "2"}
        env = environment(tmp_path, short) | job
        yield env | {"PATH": f"{bin}:{env['PATH']}"}


def submit(allocation: dict[str, str], folder: Path, *arguments: str) -> tuple[int, str]:
    """The job's exit code and what it says; then its steps end, as Slurm ends them."""
    log = folder / "slurm.out"
    with log.open("w") as out:
        job = subprocess.Popen(
            ["bash", RECIPES / "slurm.sh", *arguments],
            env=allocation,
            cwd=folder,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            code = job.wait(300)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGTERM)
    return code, log.read_text()


@pytest.mark.slow
@pytest.mark.skipif(not POSSIBLE, reason="needs root, and ip(8)")
def test_a_job_of_slurm_makes_a_cluster_of_its_nodes_and_tunes(allocation, tmp_path):
    with hosts() as network:
        with network.there():
            there = subprocess.Popen(["sleep", "600"])
        try:
            allocation["THERE"] = str(there.pid)
            options = ["--trials", "8", "--seconds", "200"]
            code, said = submit(allocation, tmp_path, "matmul", "m=64", "n=64", "k=64", *options)
        finally:
            there.kill()
            there.wait()
    assert code == 0, said
    assert not list(tmp_path.glob(".ray-token-*"))
    check_trials(tmp_path / "tuning-7.db")


@pytest.mark.skipif(not POSSIBLE, reason="needs root, and ip(8)")
@pytest.mark.parametrize(
    ("command", "text", "says"),
    [
        ("ray", "exit 1", "no head of a Ray cluster starts on one"),
        ("hostname", "echo ::1 127.0.1.1", "the name of one has no IPv4 address"),
    ],
)
def test_a_job_of_slurm_without_a_head_ends(allocation, tmp_path, command, text, says):
    (tmp_path / ".venv" / "bin" / command).write_text(f"#!/bin/sh\n{text}\n")
    (tmp_path / ".venv" / "bin" / command).chmod(0o755)
    with hosts():
        code, said = submit(allocation, tmp_path, "matmul")
    assert (code, says in said) == (1, True)
