"""Schemas are waited for until they are judged; a try sends, waits, runs and tells what became of it."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.integration.deploy.deploy_scene import Scene, module

Words = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("deployment.schemas", "deployment.trial"):
        monkeypatch.setattr(module(name), "_PAUSE_SECONDS", 0.05)


# schemas


@contextmanager
def validator(scene: Scene, judge: Callable[[str, bytes], None]) -> Iterator[None]:
    """Judges what is pending, as the function does: its place is emptied last."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            for key in [key for key in scene.keys(scene.schemas) if key.endswith("pending/schema.json")]:
                content = scene.s3.get_object(Bucket=scene.schemas, Key=key)["Body"].read()
                judge(key.split("/")[1], content)
                scene.s3.delete_object(Bucket=scene.schemas, Key=key)
            time.sleep(0.05)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_schemas_of_all_topics_that_have_one_become_active_or_say_why_not(scene: Scene, capsys: Words) -> None:
    problem = {"path": "payload_columns.a", "found": '"X"', "expected": "a type", "message": "no such type"}

    def judge(topic: str, content: bytes) -> None:
        if topic == "orders":
            scene.put("schemas/orders/active/schema.json", content)
        else:
            scene.put(f"schemas/{topic}/failed/error.json", json.dumps({"errors": [problem]}).encode())
            scene.put(f"schemas/{topic}/failed/schema.json", content)

    with validator(scene, judge):
        assert scene.deploy("schemas", "--wait", "60") == 1
    said = capsys.readouterr().out
    assert "orders: is active\n" in said
    assert "events: was refused" in said
    assert '    payload_columns.a: no such type; found "X"; expected a type' in said
    assert "payments" not in said


def test_a_schema_that_is_active_already_is_not_sent_again(scene: Scene, capsys: Words) -> None:
    scene.put("schemas/orders/active/schema.json", (scene.root / "schemas" / "orders.json").read_bytes())
    assert scene.deploy("schemas", "--topic", "orders") == 0
    assert capsys.readouterr().out == "orders: is active already\n"
    assert scene.keys(scene.schemas) == {"schemas/orders/active/schema.json"}


def test_a_schema_that_nobody_judges_is_not_waited_for_for_ever(scene: Scene, capsys: Words) -> None:
    assert scene.deploy("schemas", "--topic", "orders", "--wait", "0.2") == 1
    said = capsys.readouterr().out
    assert "waited 0 s for the schema of orders to be judged, in vain" in said
    assert "logs of the function schema_validator" in said


def test_a_schema_that_another_upload_replaced(scene: Scene, capsys: Words) -> None:
    with validator(scene, lambda topic, _: scene.put(f"schemas/{topic}/active/schema.json", b"{}")):
        assert scene.deploy("schemas", "--topic", "orders", "--wait", "60") == 1
    assert "somebody else's upload came after it" in capsys.readouterr().out


def test_a_schema_that_there_is_not(scene: Scene, capsys: Words) -> None:
    assert scene.deploy("schemas", "--topic", "nothing") == 1
    assert "has no schema of nothing; it has events, orders" in capsys.readouterr().err


# a try


class Functions:
    """check_schema, with what it answers call by call; the last answer stays."""

    def __init__(self, *records: int, shut: bool = False, problem: str | None = None, fails: bool = False) -> None:
        self.records = list(records)
        self.shut, self.problem, self.fails = shut, problem, fails

    def invoke(self, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803  as boto3 names them
        assert FunctionName == "p-e-check-schema"
        topic = json.loads(Payload)["topics"][0]
        number = self.records.pop(0) if len(self.records) > 1 else self.records[0]
        hop = {"records": number, "problem": self.problem}
        line = {"topic": topic, "reason": "no schema", "standardized": hop, "curated": {"records": 0, "problem": None}}
        answer: dict[str, Any] = {"topics": [line], "shut": [topic] if self.shut else []}
        if self.fails:
            answer = {"errorType": "TransientError"}
        error = {"FunctionError": "Unhandled"} if self.fails else {}
        return {"Payload": io.BytesIO(json.dumps(answer).encode()), **error}


class Machines:
    """Executions that end as told, with groups that ended as told."""

    def __init__(self, *statuses: str, groups: dict[str, int] | None = None) -> None:
        self.statuses = list(statuses)
        self.groups = groups

    def start_execution(self, **_: Any) -> dict[str, str]:
        return {"executionArn": "an-execution"}

    def describe_execution(self, **_: Any) -> dict[str, str]:
        return {"status": self.statuses.pop(0), "error": "RunFailed", "cause": "the registry is gone"}

    def list_map_runs(self, **_: Any) -> dict[str, Any]:
        return {"mapRuns": [{"mapRunArn": "groups"}] if self.groups else []}

    def describe_map_run(self, **_: Any) -> dict[str, Any]:
        return {"itemCounts": self.groups}


def trial(scene: Scene, functions: Any = None, machines: Any = None, queue: Any = None, url: str = "") -> Any:
    outputs = {
        "queue_urls": {"orders": url},
        "function_names": {"check_schema": "p-e-check-schema"},
        "state_machine_arns": {"master": "a-machine"},
    }
    clients = module("deployment.trial").Clients(queue or scene.server.client("sqs"), functions, machines)
    return module("deployment.trial").Trial("orders", outputs, clients)


def failure(call: Callable[[], object]) -> str:
    with pytest.raises(module("deployment.finding").DeployError) as raised:
        call()
    return str(raised.value)


def test_generated_messages_reach_the_queue(scene: Scene) -> None:
    sqs = scene.server.client("sqs")
    url = sqs.create_queue(QueueName=f"lean-ops-{scene.mark}-orders")["QueueUrl"]
    bodies = module("deployment.trial").generated("orders", 23, seed=7)
    assert len({json.loads(body)["message_id"] for body in bodies}) == 23
    trial(scene, url=url).send(bodies)
    received: set[str] = set()
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        received |= {message["Body"] for message in messages}
    assert received == set(bodies)


def test_another_seed_makes_other_messages(scene: Scene) -> None:
    generated = module("deployment.trial").generated
    assert not set(generated("orders", 5, seed=1)) & set(generated("orders", 5, seed=2))
    assert scene


class Queue:
    """Refuses the first message of each batch, so often."""

    def __init__(self, refusals: int, *, sender: bool = False) -> None:
        self.refusals, self.sender = refusals, sender
        self.taken: list[str] = []

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, str]]) -> dict[str, Any]:  # noqa: N803
        assert QueueUrl == "an-address"
        assert len(Entries) <= 10
        refused = Entries[:1] if self.refusals > 0 else []
        self.refusals -= 1
        self.taken += [entry["MessageBody"] for entry in Entries[len(refused) :]]
        return {"Failed": [{"Id": each["Id"], "SenderFault": self.sender, "Message": "no"} for each in refused]}


def test_messages_that_the_queue_refuses_for_now_are_sent_again(scene: Scene) -> None:
    queue, bodies = Queue(3), [f"body {number}" for number in range(25)]
    trial(scene, queue=queue, url="an-address").send(bodies)
    assert sorted(queue.taken) == sorted(bodies)


def test_messages_that_the_queue_refuses_for_good_end_the_try(scene: Scene) -> None:
    sending = trial(scene, queue=Queue(1, sender=True), url="an-address")
    assert "the queue refuses a message: no" in failure(lambda: sending.send(["body"]))
    sending = trial(scene, queue=Queue(100), url="an-address")
    assert "the queue took all but 1 of 1 messages" in failure(lambda: sending.send(["body"]))


def test_a_batch_stays_below_what_a_call_takes(scene: Scene) -> None:
    batches = list(module("deployment.trial").batches(["x" * 400_000] * 5))
    assert [len(batch) for batch in batches] == [2, 2, 1]
    assert scene


def test_a_topic_without_a_queue(scene: Scene) -> None:
    other = trial(scene)
    other.outputs["queue_urls"].clear()
    assert "orders has no queue" in failure(lambda: other.queue_url)


def test_records_are_waited_for_until_all_are_there_or_a_run_takes_them(scene: Scene) -> None:
    assert trial(scene, Functions(0, 4, 10)).landed(10, 5) == 10
    assert trial(scene, Functions(0, 4, 0)).landed(10, 5) == 0
    assert "to land in RAW, in vain" in failure(lambda: trial(scene, Functions(4)).landed(10, 0.2))


def test_a_gate_that_is_shut_or_a_topic_with_a_problem_is_told_before_anything_is_sent(scene: Scene) -> None:
    assert "the gate of orders is shut: no schema" in failure(trial(scene, Functions(0, shut=True)).waiting)
    assert "orders: its table is gone" in failure(trial(scene, Functions(0, problem="its table is gone")).waiting)
    assert "p-e-check-schema failed" in failure(trial(scene, Functions(0, fails=True)).waiting)


def test_a_run_is_waited_for_and_its_groups_are_told(scene: Scene) -> None:
    groups = {"total": 3, "succeeded": 3, "failed": 0}
    assert trial(scene, machines=Machines("RUNNING", "SUCCEEDED", groups=groups)).run_master() == (
        "3 of 3 groups succeeded"
    )
    assert "did nothing" in trial(scene, machines=Machines("SUCCEEDED")).run_master()


def test_a_run_that_failed_or_whose_groups_did_fails_the_try(scene: Scene) -> None:
    said = failure(trial(scene, machines=Machines("FAILED")).run_master)
    assert "an-execution FAILED: RunFailed: the registry is gone" in said
    groups = {"total": 3, "succeeded": 2, "failed": 1}
    assert "1 of 3 groups failed" in failure(trial(scene, machines=Machines("SUCCEEDED", groups=groups)).run_master)
