"""Who may join a run: decides over the first line of each connection.

Values in, values out: nothing is sent or received here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable

from msgspec.structs import replace

from waywiser.cluster.connection.protocol import (
    VERSION,
    AnyVersion,
    JoinRequest,
    Rejection,
    Welcome,
    decode_any_version,
    decode_from_agent,
)
from waywiser.cluster.connection.token_proof import (
    TOKEN_VARIABLE,
    JoinExchange,
    agent_proof,
    coordinator_proof,
    is_nonce,
    is_proof,
)
from waywiser.measure.supervise import ProtocolError
from waywiser.profile import InvalidRecord, possible_counters, require_valid_node
from waywiser.profile.cluster_validation import LONGEST_NODE_NAME
from waywiser.words import ClusterNode, Value, is_host_name, single_line


class AdmissionDecision(Value, frozen=True):
    """The decision about a connection."""

    answer: Welcome | Rejection
    node: ClusterNode | None = None
    """A node that joined, or was excluded; None for a stranger and for who may try again."""
    is_stranger: bool = False
    """It does not know the token."""


class Admission:
    """Decides who may join. ``certificate`` is the fingerprint of that of the coordinator.
    ``expected`` has the names of the nodes; empty if any may join."""

    def __init__(self, token: str, certificate: str, expected: Iterable[str] = ()) -> None:
        self._token = token
        self._certificate = certificate
        self.expected = frozenset(expected)
        names = tuple(self.expected)
        labels = [name.partition(".")[0] for name in names]
        count = Counter(labels)
        self._by_label = {
            label: name
            for label, name in zip(labels, names, strict=True)
            if count[label] == 1 and not label.isdigit()  # as of an IP address
        }

    def decide(self, challenge: str, line: bytes, connected: Container[str]) -> AdmissionDecision:
        """``challenge`` is the nonce that the connection was sent, ``line`` its first line.
        ``connected`` are the nodes that have an agent."""
        known = decode_any_version(line)
        if known is None:
            return _stranger("its first line is no greeting")
        if not is_nonce(known.nonce):
            return _stranger("its greeting is not in the protocol")
        exchange = JoinExchange(self._certificate, challenge, known.nonce, known.name)
        if not is_proof(known.proof, agent_proof(self._token, exchange)):
            return _stranger(
                "the greeting was made with another token, or for another connection",
                f"give coordinator and agents the same {TOKEN_VARIABLE}, and see whether the "
                "agent reaches the coordinator without a proxy",
            )
        found = self._decide(line, known, connected)
        answer = replace(found.answer, proof=coordinator_proof(self._token, exchange))
        return replace(found, answer=answer)

    def _decide(
        self, line: bytes, known: AnyVersion, connected: Container[str]
    ) -> AdmissionDecision:
        """The decision about an agent that has the token; its answer has no proof yet."""
        if known.v != VERSION:
            return self._other_version(known.v, known.name)
        try:
            joined = decode_from_agent(line)
        except ProtocolError as error:
            return self._impossible(known.name, f"it sent {error.what}")
        if not isinstance(joined, JoinRequest):
            return _stranger("its first line is no greeting")
        name = self._name(known.name)  # which the proof covers
        rejection = self._rejection(known.name, name, connected)
        if rejection:
            return AdmissionDecision(rejection)
        counters = possible_counters(joined.node.counters)
        node = ClusterNode(
            name,
            address=joined.node.address,
            rails=joined.node.rails,
            versions=joined.node.versions,
            counters=counters,
        )
        try:
            require_valid_node(node)
        except InvalidRecord as error:
            return self._impossible(known.name, f"what it states is impossible: {error}")
        return AdmissionDecision(Welcome(name, ""), node)

    def _name(self, given: str) -> str:
        """The name of the list, if the agent gave another form of it; empty for one that is not
        in the list."""
        if not self.expected or given in self.expected:
            return given
        label, _, domain = given.partition(".")
        name = self._by_label.get(label, "")
        return "" if domain and "." in name else name

    def _rejection(self, given: str, name: str, connected: Container[str]) -> Rejection | None:
        if not _is_name(given):
            return Rejection(
                f"{given[:80]!r} is no name of a node",
                "name it with --node-name: letters, digits, . _ -",
            )
        if not name:
            return Rejection(
                f"node {given} is not in the list of nodes", "name it as there with --node-name"
            )
        if name in connected:
            return Rejection(
                f"another agent has joined as {name}",
                "start one agent per node, or name them with --node-name",
                final=False,
            )
        return None

    def _impossible(self, given: str, reason: str) -> AdmissionDecision:
        """It has the token, and cannot be tested."""
        name = self._name(given) if _is_name(given) else ""
        node = ClusterNode(name, "excluded", reason) if name else None
        return AdmissionDecision(Rejection(single_line(reason)), node)

    def _other_version(self, version: int, given: str) -> AdmissionDecision:
        remedy = "install the same Waywiser on all nodes"
        reason = f"its protocol has version {version}, that of the coordinator {VERSION}"
        name = self._name(given) if _is_name(given) else ""
        node = ClusterNode(name, "excluded", f"{reason} ({remedy})") if name else None
        return AdmissionDecision(Rejection(single_line(reason), remedy), node)


def _is_name(given: str) -> bool:
    """Names of nodes are also names of files."""
    return is_host_name(given) and len(given) <= LONGEST_NODE_NAME


def _stranger(reason: str, remedy: str = "") -> AdmissionDecision:
    return AdmissionDecision(Rejection(reason, remedy), is_stranger=True)
