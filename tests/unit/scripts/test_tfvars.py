"""Variable files are read as Terraform reads them, as far as the deployment needs their values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENTS = ("dev", "staging", "prod")


@pytest.fixture(autouse=True)
def scripts_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))


def read(file: Path) -> dict[str, Any]:
    from deployment.tfvars import read_values

    values: dict[str, Any] = read_values(file)
    return values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("# only a comment\n// and another\n/* and\none */", {}),
        ('a = "x"\nb=2', {"a": "x", "b": 2}),
        ("a = true\nb = false\nc = null", {"a": True, "b": False, "c": None}),
        ("a = -1.5", {"a": -1.5}),
        ('a = "# no comment, \\"quoted\\", $${left}"', {"a": '# no comment, "quoted", ${left}'}),
        ('a = ["x", "y",]\nb = []', {"a": ["x", "y"], "b": []}),
        ('a = {\n  b = 1\n  "c-d" : [{ e = "f" }]\n}', {"a": {"b": 1, "c-d": [{"e": "f"}]}}),
    ],
)
def test_literals(tmp_path: Path, text: str, values: dict[str, Any]) -> None:
    file = tmp_path / "x.tfvars"
    file.write_text(text)
    assert read(file) == values


@pytest.mark.parametrize(
    "text", ["a", "a =", "= 1", "a = [1", "a = { b }", "a = b", "a = f(1)", "a = <<EOT\nx\nEOT", "a b"]
)
def test_what_is_no_literal_is_refused_with_the_file(tmp_path: Path, text: str) -> None:
    from deployment.finding import DeployError

    file = tmp_path / "x.tfvars"
    file.write_text(text)
    with pytest.raises(DeployError, match=r"x\.tfvars can't be understood"):
        read(file)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_environments_are_whole_and_the_bootstrap_gives_rights_for_the_same_buckets(name: str) -> None:
    from deployment.environment import load

    known = read(ROOT / "infra" / "bootstrap" / "environments.auto.tfvars")["environments"]
    environment = load(ROOT, name)
    assert environment.name == f"lean-ops-{name}"
    assert known[name]["buckets"] == list(environment.buckets.values())
    assert known[name].get("database_prefix", "") == environment.values.get("database_prefix", "")
    assert known.keys() == set(ENVIRONMENTS)
