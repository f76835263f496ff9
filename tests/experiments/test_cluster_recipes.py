"""The recipes for clusters: files against their schemas, and hosts that follow the first one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="needs the extra ray")

import jsonschema
import ray
import yaml

from measure.database import Database
from spaces.operators import workload
from spaces.target import detect_target
from tests.measure.cluster.network import HERE, POSSIBLE, hosts

ROOT = Path(__file__).parents[2]
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
        env = {
            **os.environ,
            "HOME": str(tmp_path),
            "RAY_TMPDIR": short,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}:{ROOT / 'scheduler' / 'face'}",
        }
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
    with Database(tmp_path / "t.db") as database:
        records = database.records(workload("matmul", m=64, n=64, k=64), detect_target("cpu"))
        assert sum(record.measurement.round == "search" for record in records) == 8
