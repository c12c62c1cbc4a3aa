"""Discovery in a home: the registry's rows and Terraform's variables, look after look."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lean_ops.aws.environment import Deployment
from lean_ops.bridge.discovery import Choice, Discovery, Findings, FoundTopic
from lean_ops.bridge.variables import LocalFile, Variables
from lean_ops.model.errors import TransientError
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

NOW = datetime(2026, 2, 6, 12, tzinfo=UTC)


class SomeTopics:
    def __init__(self, *names: str) -> None:
        self.names = list(names)

    def list(self, gcp_project: str) -> Iterable[FoundTopic]:
        return [FoundTopic(f"projects/{gcp_project}/topics/{name}", {}) for name in self.names]


class Home:
    """A discovery in a home of its own; its clock moves an hour with each look."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.services = Services(load_settings({"home": folder / "home"}, environ={}))
        self.topics = SomeTopics(*names)
        self.file = folder / "terraform" / "topics.auto.tfvars.json"
        self.now = NOW
        self.announced: list[Findings] = []
        self.announce: Callable[[Findings], None] = self.announced.append

    def look(self) -> Findings:
        self.now += timedelta(hours=1)
        services = self.services
        deployment = Deployment("lean-ops", "dev")
        discovery = Discovery(self.topics, services.lake, services.shared, deployment, lambda: self.now)
        return discovery.look(Choice("events-project"), Variables(LocalFile(self.file)), self.announce)

    def rows(self) -> list[tuple[str, str, str]]:
        table = self.services.lake.load(self.services.lake.names.ops("topic_registry"))
        rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: (row["last_seen_at"], row["topic_name"]))
        return [(row["topic_name"], row["status"], row["queue"]) for row in rows]


def test_a_first_look_registers_all_topics_and_a_second_changes_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path, "events", "Meter-A")
    findings = home.look()
    assert (findings.active, findings.new, findings.added) == (("events", "meter_a"),) * 3
    assert home.rows() == [
        ("events", "ACTIVE", "lean-ops-dev-events"),
        ("meter_a", "ACTIVE", "lean-ops-dev-meter_a"),
    ]
    assert home.file.read_text() == '{\n  "topics": [\n    "events",\n    "meter_a"\n  ]\n}\n'
    written = home.file.stat().st_mtime_ns
    again = home.look()
    assert (again.active, again.new, again.added, again.gone) == (("events", "meter_a"), (), (), ())
    assert len(home.rows()) == 2
    assert home.file.stat().st_mtime_ns == written
    assert home.announced == [findings]


def test_a_topic_that_goes_and_comes_back_has_a_history_and_keeps_its_queue(tmp_path: Path) -> None:
    home = Home(tmp_path, "events", "meters")
    home.look()
    home.topics.names = ["events"]
    assert home.look().gone == ("meters",)
    assert home.look().gone == ()
    assert '"meters"' in home.file.read_text()
    home.topics.names = ["events", "meters", "orders"]
    findings = home.look()
    assert (findings.back, findings.new, findings.added) == (("meters",), ("orders",), ("orders",))
    assert [status for topic, status, _ in home.rows() if topic == "meters"] == ["ACTIVE", "GONE", "ACTIVE"]


def test_a_gone_topic_that_a_person_took_out_of_the_variables_stays_out(tmp_path: Path) -> None:
    home = Home(tmp_path, "events", "meters")
    home.look()
    home.topics.names = ["events"]
    home.look()
    home.file.write_text('{"topics": ["events"], "region": "eu"}')
    home.look()
    assert home.file.read_text() == '{\n  "topics": [\n    "events"\n  ],\n  "region": "eu"\n}\n'
    home.file.unlink()
    assert home.look().added == ("events", "meters")


def test_what_could_not_be_announced_is_announced_by_the_next_look(tmp_path: Path) -> None:
    home = Home(tmp_path, "events")

    def fails(_: Findings) -> None:
        raise TransientError("nobody can be told")

    announce, home.announce = home.announce, fails
    with pytest.raises(TransientError):
        home.look()
    assert not home.file.exists()
    home.announce = announce
    findings = home.look()
    assert home.announced == [findings]
    assert (findings.new, findings.added) == ((), ("events",))
    assert len(home.rows()) == 1


def test_refused_names_are_in_no_table_and_no_file(tmp_path: Path) -> None:
    home = Home(tmp_path, "events", "a-b", "a.b", "9lives")
    findings = home.look()
    assert len(findings.refused) == 3
    assert [topic for topic, *_ in home.rows()] == ["events"]
    assert "a_b" not in home.file.read_text()


def test_pub_sub_that_can_not_be_asked_changes_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path, "events", "meters")
    home.look()
    before = home.file.read_text()

    def fails(_: str) -> Iterable[FoundTopic]:
        raise TransientError("Pub/Sub can't be reached")

    home.topics.list = fails  # type: ignore[method-assign]
    with pytest.raises(TransientError):
        home.look()
    assert (len(home.rows()), home.file.read_text()) == (2, before)
