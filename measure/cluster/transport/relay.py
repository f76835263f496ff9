"""The process that speaks with Ray for a driver: commands come and events go as lines of JSON.

    python -m measure.cluster.transport.relay CONFIGURATION

A driver of Ray dies without a word when the cluster's head or the daemon of its own host does. Here
nothing is lost with it: what is to be done, and what was, the parent knows. This process decides
nothing. It ends when standard input does.

Commands (``do``): ``scout`` a node, ``start`` and ``stop`` a worker, ``build`` and ``run`` a task
on it, ``free`` the binaries of a build, ``publish`` and ``collect`` what drivers say of themselves.
Events: ``connected`` or ``refused``; ``nodes`` and then ``pulse`` once a second; ``facts``,
``hello``, ``built``, ``ran``, ``published``; ``failed``, with the command's own fields and why.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from tilewright.measure.cluster.facts import facts_text
from tilewright.measure.cluster.transport.connection import (
    CONNECT_SECONDS,
    NAMESPACE,
    connect,
    host_and_port,
)
from tilewright.measure.cluster.transport.workers import BuildWorker, RunWorker
from tilewright.spaces.errors import InputError

PULSE_SECONDS = 1.0
SILENCE = 8  # pulses in a row in which nobody listens at the head's port: then it is gone

Say = Callable[..., None]
Command = Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """The outcome of a command that was sent to a worker."""

    command: Command
    event: str
    future: Future[Any]


class Relay:
    """Carries out commands one after the other; answers come when they come."""

    def __init__(
        self, host_services: str, say: Say, inbox: queue.Queue[Command | Answer | None]
    ) -> None:
        import ray

        self._ray: Any = ray
        self._services, self._say, self._inbox = host_services, say, inbox
        self._workers: dict[str, Any] = {}
        self._binaries: dict[int, Any] = {}
        code = ray.get_runtime_context().runtime_env.get("py_modules", [])
        self._code = _digest([*code, host_services])
        self._does: dict[str, Callable[[Command], None]] = {
            "scout": self._scout,
            "start": self._start,
            "stop": self._stop,
            "build": self._build,
            "run": self._run,
            "free": self._free,
            "publish": self._publish,
            "collect": self._collect,
        }

    def serve(self) -> None:
        """Serve until the commands end."""
        while (item := self._inbox.get()) is not None:
            if isinstance(item, Answer):
                self._tell(item)
            else:
                self._does[item["do"]](item)

    # -- commands --------------------------------------------------------------------------

    def _scout(self, command: Command) -> None:
        scout = self._ray.remote(facts_text).options(
            num_cpus=0, max_retries=0, scheduling_strategy=self._on(command["node"])
        )
        self._await(scout.remote(self._services), "facts", command)

    def _start(self, command: Command) -> None:
        """Make a worker, or find the one that another driver made."""
        plan = command["plan"]
        claim = plan["claim"]
        options = {
            "name": f"{plan['name']}-{self._code}",
            "namespace": NAMESPACE,
            "get_if_exists": True,
            "num_cpus": claim.get("CPU", 0),
            "num_gpus": claim.get("GPU", 0),
            "max_restarts": 0,
            "max_task_retries": 0,
            "scheduling_strategy": self._on(plan["node"]),
        }
        if plan["role"] == "build":
            made = self._ray.remote(BuildWorker).options(**options)
            what = plan["jobs"]
        else:
            made = self._ray.remote(RunWorker).options(**options)
            what = plan["kind"]
        worker = made.remote(self._services, what, plan["cpus"], plan["takes_turns"])
        self._workers[command["worker"]] = worker
        self._await(worker.hello.remote(), "hello", command)

    def _stop(self, command: Command) -> None:
        worker = self._workers.pop(command["worker"], None)
        if worker is not None:
            self._ray.kill(worker)

    def _build(self, command: Command) -> None:
        worker = self._workers[command["worker"]]
        report, binaries = worker.build.options(num_returns=2).remote(command["text"])
        self._binaries[command["task"]] = binaries
        self._await(report, "built", command)

    def _run(self, command: Command) -> None:
        worker = self._workers[command["worker"]]
        binaries = [self._binaries[build] for build in command["builds"]]
        self._await(worker.run.remote(command["text"], binaries), "ran", command)

    def _free(self, command: Command) -> None:
        for build in command["builds"]:
            self._binaries.pop(build, None)

    def _publish(self, command: Command) -> None:
        from ray.experimental.internal_kv import _internal_kv_del, _internal_kv_put

        if command["text"]:
            _internal_kv_put(command["key"], command["text"], namespace=NAMESPACE)
        else:
            _internal_kv_del(command["key"], namespace=NAMESPACE)

    def _collect(self, command: Command) -> None:
        from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_list

        keys = _internal_kv_list("", namespace=NAMESPACE)
        found = [_internal_kv_get(key, namespace=NAMESPACE) for key in keys]
        texts = [text.decode(errors="replace") for text in found if text is not None]
        self._say(event="published", texts=texts)

    # -- answers ---------------------------------------------------------------------------

    def _on(self, node: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(node, soft=False)

    def _await(self, reference: Any, event: str, command: Command) -> None:
        about = {name: value for name, value in command.items() if name not in ("text", "plan")}
        reference.future().add_done_callback(
            lambda future: self._inbox.put(Answer(about, event, future))
        )

    def _tell(self, answer: Answer) -> None:
        error = answer.future.exception()
        if error is None:
            self._say(**answer.command, event=answer.event, text=answer.future.result())
        else:
            died = not isinstance(error, self._ray.exceptions.RayTaskError)
            self._say(**answer.command, event="failed", why=_first_line(error), died=died)


class Watch:
    """A thread that says once a second which nodes there are, and when there is no cluster."""

    def __init__(self, address: str, say: Say) -> None:
        import ray

        self._ray: Any = ray
        self._say = say
        self._head = address
        self._known: list[dict[str, Any]] | None = None
        self._silent = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        why = f"nobody answers at {self._head}"
        try:
            while self._silent < SILENCE:
                if self._answers():
                    self._look()
                time.sleep(PULSE_SECONDS)
        except Exception as error:  # of many types, by way and version
            why = _first_line(error)
        self._say(event="lost", why=why)
        os._exit(1)  # before Ray does, and without waiting for it

    def _answers(self) -> bool:
        try:
            socket.create_connection(host_and_port(self._head), CONNECT_SECONDS).close()
        except OSError:
            self._silent += 1
            return False
        self._silent = 0
        return True

    def _look(self) -> None:
        found = sorted((_node(n) for n in self._ray.nodes() if n["Alive"]), key=lambda n: n["id"])
        if found == self._known:
            self._say(event="pulse")
        else:
            self._say(event="nodes", nodes=found)
            self._known = found


def main() -> None:
    """Connect, then serve until standard input ends."""
    configuration = json.loads(sys.argv[1])
    events = os.fdopen(os.dup(1), "w")  # what libraries print goes elsewhere
    os.dup2(2, 1)
    lock = threading.Lock()

    def say(**event: Any) -> None:
        with lock:
            print(json.dumps(event), file=events, flush=True)

    try:
        address = connect(
            configuration["address"], configuration["insecure"], configuration["code"]
        )
    except InputError as error:
        say(event="refused", why=str(error))
        return
    import ray

    inbox: queue.Queue[Command | Answer | None] = queue.Queue()
    threading.Thread(target=_read_commands, args=(inbox,), daemon=True).start()
    relay = Relay(configuration["host_services"], say, inbox)
    say(event="connected", address=address)
    Watch(address, say)
    relay.serve()
    ray.shutdown()


def _read_commands(inbox: queue.Queue[Command | Answer | None]) -> None:
    """Read commands up to the driver's end; a command that it did not finish is none."""
    for line in sys.stdin:
        if line.endswith("\n"):
            inbox.put(json.loads(line))
    inbox.put(None)


def _node(data: Mapping[str, Any]) -> dict[str, Any]:
    resources = data["Resources"]
    return {
        "id": data["NodeID"],
        "address": data["NodeManagerAddress"],
        "cpus": int(resources.get("CPU", 0)),
        "gpus": int(resources.get("GPU", 0)),
        "memory": int(resources.get("memory", 0)),
    }


def _digest(code: Sequence[str]) -> str:
    """Return a short name of what workers run: Ray names packed code by its content."""
    return hashlib.sha256(" ".join(code).encode()).hexdigest()[:8]


def _first_line(error: BaseException) -> str:
    """Give the cause of an error in one line: a worker's own exception rather than Ray's report of
    it.
    """
    cause = getattr(error, "cause", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return f"{type(cause).__name__}: {lines[0] if lines else ''}"[:400]


if __name__ == "__main__":
    main()
