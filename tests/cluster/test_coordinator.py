"""One coordinator and its agents, over real sockets."""

from __future__ import annotations

import socket
import threading

import pytest
from joined_agents import LONG, TOKEN, AgentThread, bare

from waywiser.cluster.connection.coordinator import (
    AgentLost,
    Coordinator,
    CoordinatorError,
    NoAnswer,
    parse_address,
)
from waywiser.cluster.connection.protocol import (
    LINE_BYTES,
    Alive,
    Answer,
    AskAlive,
    AskNode,
    NodeNow,
    PutBridge,
    Rejection,
    RequestFailed,
    RunCheck,
    Welcome,
    decode_to_agent,
)
from waywiser.cluster.connection.token_proof import TokenError
from waywiser.words.cluster import ClusterNode

ANY = "127.0.0.1:0"


def test_agents_join_answer_and_leave() -> None:
    seen: list[str] = []
    with Coordinator(ANY, TOKEN, ["n10", "n9"]) as coordinator:
        agents = [AgentThread(coordinator.address, name) for name in ("n10", "n9")]
        nodes = coordinator.admit(LONG, on_joined=lambda node: seen.append(node.name))
        assert [(n.name, n.state, n.address) for n in nodes] == [
            ("n9", "joined", "127.0.0.1"),
            ("n10", "joined", "127.0.0.1"),
        ]
        assert sorted(seen) == ["n10", "n9"]
        coordinator.begin_tests()
        found = coordinator.ask({"n9": AskAlive(), "n10": AskNode()}, LONG)
        assert found == {"n9": Alive(), "n10": NodeNow(ClusterNode("n10"))}
        assert coordinator.ask({"n9": RunCheck()}, LONG) == {
            "n9": RequestFailed("this agent does not do that")
        }
    for agent in agents:
        assert agent.join() is None
        assert agent.ends == 1


def test_who_does_not_join_is_not_reached() -> None:
    with Coordinator(ANY, TOKEN, ["n1", "n2"]) as coordinator:
        nodes = coordinator.admit(0.0)
        assert {(node.state, node.reason) for node in nodes} == {
            ("not reached", "it did not join in 0 s")
        }
        assert coordinator.ask({"n2": AskNode()}, LONG) == {"n2": AgentLost("it did not join")}
        with pytest.raises(ConnectionError), bare(coordinator.address):
            pass


def test_a_number_of_nodes_can_be_expected() -> None:
    with Coordinator(ANY, TOKEN, 3) as coordinator:
        agents = [AgentThread(coordinator.address, f"n{number}") for number in range(3)]
        assert [node.name for node in coordinator.admit(LONG)] == ["n0", "n1", "n2"]
    assert [agent.join() for agent in agents] == [None] * 3


def test_a_name_of_the_list_is_found_by_its_first_label() -> None:
    with Coordinator(ANY, TOKEN, ["n1.cluster", "n2"]) as coordinator:
        agents = [AgentThread(coordinator.address, name) for name in ("n1", "n2.cluster")]
        assert [node.name for node in coordinator.admit(LONG)] == ["n1.cluster", "n2"]
    assert [agent.join() for agent in agents] == [None] * 2


def test_a_node_that_is_not_in_the_list_is_rejected_for_good() -> None:
    with Coordinator(ANY, TOKEN, ["n1"]) as coordinator:
        error = AgentThread(coordinator.address, "n7").join()
        assert error and "n7 is not in the list" in str(error)
        assert error.exit_code == 2


def test_a_second_agent_of_a_name_waits_for_the_end_of_the_first() -> None:
    with Coordinator(ANY, TOKEN, ["n1"]) as coordinator, bare(coordinator.address) as first:
        second_node = ClusterNode("n1", versions={"kernel": "2"})
        first.say(first.greeting("n1"))
        assert isinstance(decode_to_agent(first.line()), Welcome)
        with bare(coordinator.address) as second:
            second.say(second.greeting("n1", node=second_node))
            rejection = decode_to_agent(second.line())
            assert isinstance(rejection, Rejection)
            assert "another agent" in rejection.reason
            assert not rejection.final


def test_the_loss_of_an_agent_answers_what_it_was_asked() -> None:
    log: list[str] = []
    with Coordinator(ANY, TOKEN, ["n1", "n2"], log=log.append) as coordinator:
        other = AgentThread(coordinator.address, "n2")
        with bare(coordinator.address) as first:
            first.say(first.greeting("n1"))
            coordinator.admit(LONG)
            coordinator.begin_tests()
            replies: list[tuple[str, object]] = []
            asking = threading.Thread(
                target=lambda: coordinator.ask(
                    {"n1": AskNode(), "n2": AskNode()},
                    LONG,
                    lambda name, reply: replies.append((name, reply)),
                )
            )
            asking.start()
            while b'"type":"node"' not in first.line():
                pass
        asking.join()
        assert dict(replies) == {
            "n1": AgentLost("its connection ended"),
            "n2": NodeNow(ClusterNode("n2")),
        }
        states = {node.name: (node.state, node.reason) for node in coordinator.nodes()}
        assert states["n1"] == ("lost", "its connection ended")
        assert states["n2"] == ("joined", "")
        assert not coordinator.is_connected("n1")
        assert coordinator.ask({"n1": AskNode()}, LONG) == {"n1": AgentLost("its connection ended")}
        assert log == ["node n1 (127.0.0.1) is lost: its connection ended"]
    assert other.join() is None


@pytest.mark.parametrize(
    "line", [b"nonsense\n", b'{"v":1,"type":"answer"}\n', b"x" * LINE_BYTES + b"\n"]
)
def test_an_agent_that_leaves_the_protocol_is_lost(line: bytes) -> None:
    lost = threading.Event()
    with (
        Coordinator(ANY, TOKEN, ["n1"], log=lambda _: lost.set()) as coordinator,
        bare(coordinator.address) as first,
    ):
        first.say(first.greeting("n1"))
        coordinator.admit(LONG)
        first.say(line + b"x")
        assert lost.wait(LONG)
        assert coordinator.nodes()[0].state == "lost"
        assert "it sent" in coordinator.nodes()[0].reason


def test_a_node_may_join_again_before_the_tests_and_not_later() -> None:
    with Coordinator(ANY, TOKEN, ["n1"]) as coordinator:
        with bare(coordinator.address) as first:
            first.say(first.greeting("n1"))
            coordinator.admit(LONG)
        while coordinator.is_connected("n1"):
            pass
        agent = AgentThread(coordinator.address, "n1")
        nodes = coordinator.admit(LONG)
        assert [node.state for node in nodes] == ["joined"]
        coordinator.begin_tests()
        assert coordinator.ask({"n1": AskAlive()}, LONG) == {"n1": Alive()}
        with pytest.raises(ConnectionError), bare(coordinator.address):
            pass
    assert agent.join() is None


def test_who_does_not_answer_in_time_is_named_and_a_late_answer_is_no_harm() -> None:
    go = threading.Event()

    now = NodeNow(ClusterNode("n1"))

    def wait(request: object) -> Answer:
        go.wait(LONG)
        return now

    with Coordinator(ANY, TOKEN, ["n1"]) as coordinator:
        agent = AgentThread(coordinator.address, "n1", {AskNode: wait})
        coordinator.admit(LONG)
        assert isinstance(coordinator.ask({"n1": AskNode()}, 0.05)["n1"], NoAnswer)
        assert coordinator.ask({"n1": AskAlive()}, LONG) == {"n1": Alive(("node",))}
        go.set()
        assert coordinator.ask({"n1": AskNode()}, LONG) == {"n1": now}
    assert agent.join() is None


def test_several_threads_ask_at_once() -> None:
    with Coordinator(ANY, TOKEN, 4) as coordinator:
        agents = [AgentThread(coordinator.address, f"n{number}") for number in range(4)]
        names = [node.name for node in coordinator.admit(LONG)]
        found: dict[str, list[object]] = {name: [] for name in names}

        def ask(name: str) -> None:
            for _ in range(50):
                found[name].append(coordinator.ask({name: AskNode()}, LONG)[name])

        threads = [threading.Thread(target=ask, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == {name: [NodeNow(ClusterNode(name))] * 50 for name in names}
    assert [agent.join() for agent in agents] == [None] * 4


def test_a_node_can_be_marked_and_stays_so() -> None:
    with Coordinator(ANY, TOKEN, 1) as coordinator:
        with bare(coordinator.address) as first:
            first.say(first.greeting("n1"))
            coordinator.admit(LONG)
            coordinator.mark("n1", "stuck", "process 7 does not end")
        while coordinator.is_connected("n1"):
            pass
        node = coordinator.nodes()[0]
        assert (node.state, node.reason) == ("stuck", "process 7 does not end")


def test_a_request_that_is_too_long_costs_itself() -> None:
    with Coordinator(ANY, TOKEN, 1) as coordinator:
        agent = AgentThread(coordinator.address, "n1")
        coordinator.admit(LONG)
        found = coordinator.ask({"n1": PutBridge("0" * 64, bytes(LINE_BYTES))}, LONG)
        assert found == {"n1": RequestFailed("the request is too long")}
        assert coordinator.ask({"n1": AskAlive()}, LONG) == {"n1": Alive()}
    assert agent.join() is None


def test_all_addresses_of_the_host_are_listened_at() -> None:
    with Coordinator("", TOKEN, 1) as coordinator:
        host, _, port = coordinator.address.rpartition(":")
        assert host == socket.gethostname()
        agent = AgentThread(f"127.0.0.1:{port}", "n1")
        (node,) = coordinator.admit(LONG)
        assert node.address == "127.0.0.1"
    assert agent.join() is None


def test_asking_after_the_end_is_answered() -> None:
    coordinator = Coordinator(ANY, TOKEN, 1)
    coordinator.close()
    coordinator.close()
    assert isinstance(coordinator.ask({"n1": AskNode()}, LONG)["n1"], AgentLost)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("host:7", ("host", 7)),
        ("host", ("host", 0)),
        (":7", ("", 7)),
        ("", ("", 0)),
        ("[::1]:7", ("::1", 7)),
        ("[::1]", ("::1", 0)),
    ],
)
def test_addresses(text: str, found: tuple[str, int]) -> None:
    assert parse_address(text) == found


@pytest.mark.parametrize("text", ["host:", "host:-1", "host:65536", "host:ssh", "host:²"])
def test_wrong_addresses(text: str) -> None:
    with pytest.raises(CoordinatorError, match="is no address"):
        parse_address(text)


def test_a_coordinator_needs_a_token_and_a_port() -> None:
    with pytest.raises(TokenError):
        Coordinator(ANY, "")
    with (
        Coordinator(ANY, TOKEN) as coordinator,
        pytest.raises(CoordinatorError, match="cannot listen there"),
    ):
        Coordinator(coordinator.address, TOKEN)
