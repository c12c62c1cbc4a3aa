"""What every store of the circuit breaker promises."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
from tests.contract.bench import AHEAD, Bench, dynamodb_client
from tests.contract.memory_circuits import MemoryCircuits

from lean_ops.model.circuit import Circuit, Phase, Seen
from lean_ops.model.errors import TerminalError
from lean_ops.state.circuits import Circuits
from lean_ops.state.dynamodb_breaker import DynamoCircuits

# Minutes that no server has seen, or it might delete them.
MINUTE = int(AHEAD.timestamp()) // 60
WHOLE = Circuit("events", Phase.HALF_OPEN, 17, 5, False, False, 40, 30, 20)


@pytest.fixture(params=["memory", "dynamodb"])
def circuits(request: pytest.FixtureRequest) -> Circuits:
    if request.param == "memory":
        return MemoryCircuits()
    bench: Bench = request.getfixturevalue("on_dynamodb")
    return DynamoCircuits(dynamodb_client(), bench.tables.circuit_breaker)


def test_a_topic_that_nobody_has_seen_is_closed_and_silent(circuits: Circuits) -> None:
    assert circuits.seen("events", MINUTE) == Seen(Circuit("events"), {})


def test_traffic_of_a_minute_adds_up(circuits: Circuits) -> None:
    circuits.record("events", MINUTE, 10, 4)
    circuits.record("events", MINUTE, 5, 0)
    circuits.record("events", MINUTE + 1, 1, 1)
    assert circuits.seen("events", MINUTE).minutes == {MINUTE: (15, 4), MINUTE + 1: (1, 1)}


def test_topics_have_traffic_and_circuits_of_their_own(circuits: Circuits) -> None:
    circuits.record("events", MINUTE, 10, 4)
    circuits.save(WHOLE)
    assert circuits.seen("others", MINUTE) == Seen(Circuit("others"), {})


def test_only_what_is_asked_for_comes_back(circuits: Circuits) -> None:
    circuits.save(WHOLE)
    for back in range(4):
        circuits.record("events", MINUTE - back, 1, 0)
    seen = circuits.seen("events", MINUTE - 1)
    assert set(seen.minutes) == {MINUTE - 1, MINUTE}
    assert seen.circuit.phase is Phase.HALF_OPEN


@pytest.mark.parametrize("circuit", [WHOLE, Circuit("events"), replace(WHOLE, concurrency=None, opened_at=None)])
def test_a_circuit_comes_back_as_it_was_saved(circuits: Circuits, circuit: Circuit) -> None:
    saved = circuits.save(circuit)
    assert saved == replace(circuit, revision=1)
    assert circuits.seen("events", MINUTE).circuit == saved


def test_a_circuit_is_saved_in_the_place_of_what_was_seen(circuits: Circuits) -> None:
    first = circuits.save(WHOLE)
    assert first is not None
    second = circuits.save(replace(first, phase=Phase.OPEN))
    assert second == replace(first, phase=Phase.OPEN, revision=2)
    assert circuits.seen("events", MINUTE).circuit == second


def test_whoever_has_seen_an_older_circuit_saves_nothing(circuits: Circuits) -> None:
    first = circuits.save(WHOLE)
    assert first is not None
    second = circuits.save(first)
    assert circuits.save(replace(first, phase=Phase.CLOSED)) is None
    assert circuits.save(replace(WHOLE, phase=Phase.CLOSED)) is None
    assert circuits.seen("events", MINUTE).circuit == second


def test_of_many_breakers_at_once_one_saves(circuits: Circuits) -> None:
    barrier = Barrier(16)

    def race(number: int) -> Circuit | None:
        barrier.wait()
        return circuits.save(replace(WHOLE, since=number))

    with ThreadPoolExecutor(16) as pool:
        saved = [circuit for circuit in pool.map(race, range(16)) if circuit]
    assert len(saved) == 1
    assert circuits.seen("events", MINUTE).circuit == saved[0]


def test_of_many_reports_at_once_none_is_lost(circuits: Circuits) -> None:
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: circuits.record("events", MINUTE, number, 1), range(200)))
    assert circuits.seen("events", MINUTE).minutes == {MINUTE: (sum(range(200)), 200)}


# DynamoDB alone


def test_old_traffic_is_marked_for_deletion_and_a_circuit_is_not(on_dynamodb: Bench) -> None:
    client, table = dynamodb_client(), on_dynamodb.tables.circuit_breaker
    circuits = DynamoCircuits(client, table)
    circuits.record("events", MINUTE, 1, 0)
    circuits.save(WHOLE)
    items = {item["item"]["S"]: item for item in client.scan(TableName=table)["Items"]}
    assert items[f"minute#{MINUTE}"]["expires_at"] == {"N": str(MINUTE * 60 + 3600)}
    assert "expires_at" not in items["state"]


def test_a_circuit_that_somebody_spoilt_is_named(on_dynamodb: Bench) -> None:
    client, table = dynamodb_client(), on_dynamodb.tables.circuit_breaker
    client.put_item(
        TableName=table, Item={"topic_name": {"S": "events"}, "item": {"S": "state"}, "phase": {"S": "AJAR"}}
    )
    with pytest.raises(TerminalError, match=r"'events'.*AJAR"):
        DynamoCircuits(client, table).seen("events", MINUTE)
