import json

import pytest

from tests.measure.cluster.simulated import TARGET
from tilewright.measure.cluster.driver.fleet import LEAST_PAUSE, LONGEST_PAUSE, Fleet
from tilewright.measure.cluster.driver.plan import Needs, Node
from tilewright.measure.cluster.facts import facts_text, versions
from tilewright.spaces.errors import InputError

NODE = Node("n1", "10.0.0.1", 2, 0, 8 << 30)
HOST_SERVICES = "tests.measure.cluster.simulated:Simulated"


def hello(target=None):
    return json.dumps({"host": "h", "pid": 7, "device": "made up", "target": target})


def scouted(node=NODE):
    fleet = Fleet(Needs())
    fleet.see([node])
    assert fleet.due(0.0) == [{"do": "scout", "node": node.id}]
    assert fleet.due(1e9) == []  # it is being asked
    fleet.learn(node.id, facts_text(HOST_SERVICES))
    return fleet


def test_a_node_is_asked_for_its_facts_and_then_gets_workers():
    fleet = scouted()
    started = fleet.due(0.0)
    assert [c["do"] for c in started] == ["start", "start"]
    assert {c["plan"]["role"] for c in started} == {"run", "build"}
    assert not fleet.settled
    for command in started:
        target = TARGET.to_json() if command["plan"]["role"] == "run" else None
        assert fleet.greet(command["worker"], hello(target)).id == command["worker"]
    assert fleet.settled
    assert [m.target for m in fleet.members() if m.target] == [TARGET]
    assert fleet.due(1e9) == []


@pytest.mark.parametrize(
    ("cpus", "gpus", "words"), [(1, 0, "1 CPU and no GPU"), (4, 1, "4 CPUs and 1 GPU")]
)
def test_what_nodes_have_is_said_in_words(cpus, gpus, words):
    assert scouted(Node("n1", "10.0.0.1", cpus, gpus, 8 << 30)).hardware() == words


def test_a_worker_that_worked_is_made_anew_at_once_under_another_name():
    fleet = scouted()
    first = fleet.due(0.0)[0]["worker"]
    fleet.greet(first, hello())
    fleet.fail(first, "killed", 10.0)
    [command] = fleet.due(10.0)
    assert command["do"] == "start"
    assert command["worker"] != first
    assert fleet.greet(first, hello()) is None  # a late word of the dead


def test_a_worker_that_never_begins_is_asked_ever_more_rarely():
    fleet = scouted()
    id, now, pauses = fleet.due(0.0)[0]["worker"], 0.0, []
    for _ in range(10):
        fleet.fail(id, "no GPU", now)
        since = now
        while not (commands := fleet.due(now)):
            now += 0.5
        id = commands[0]["worker"]
        pauses.append(now - since)
    assert pauses[0] == LEAST_PAUSE
    assert pauses[-1] == LONGEST_PAUSE
    assert pauses == sorted(pauses)
    assert fleet.reasons() == ["no GPU"]


def test_workers_are_gone_with_their_node_and_come_with_another():
    fleet = scouted()
    ids = [command["worker"] for command in fleet.due(0.0)]
    other = Node("n2", "10.0.0.2", 2, 0, 8 << 30)
    assert sorted(fleet.see([other])) == sorted(ids)
    assert list(fleet.members()) == []
    assert fleet.due(0.0) == [{"do": "scout", "node": "n2"}]
    fleet.learn("n1", facts_text(HOST_SERVICES))  # too late
    assert list(fleet.members()) == []


@pytest.mark.parametrize("name", sorted(versions()))
def test_a_host_with_another_version_is_refused_in_words(name):
    told = json.loads(facts_text(HOST_SERVICES))
    told["versions"][name] = "0.0.1"
    fleet = Fleet(Needs())
    fleet.see([NODE])
    with pytest.raises(InputError, match=rf"{name} 0.0.1, but this driver has {name} "):
        fleet.learn("n1", json.dumps(told))


def test_a_node_that_cannot_be_asked_is_asked_again():
    fleet = Fleet(Needs())
    fleet.see([NODE])
    fleet.due(0.0)
    fleet.fail("n1", "no module named numpy", 0.0)
    assert fleet.settled
    assert fleet.reasons() == ["no module named numpy"]
    assert fleet.due(LEAST_PAUSE) == [{"do": "scout", "node": "n1"}]
