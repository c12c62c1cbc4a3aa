"""The container and its manifest, as far as they can be checked without either."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from lean_ops.bridge.bridge import _GIVE_BACK_SECONDS
from lean_ops.bridge.settings import load_bridge_settings

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy" / "bridge"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
COMMAND = ["/opt/bridge/bin/python", "-m", "lean_ops.entrypoints.bridge"]
HEAVY = {"pyspark", "pyarrow", "pyiceberg", "duckdb", "pandas", "numpy", "pydantic", "typer"}
# What lock/bridge.txt must hold beside what these need.
DIRECT = {"boto3", "google-cloud-pubsub", "msgspec", "prometheus-client", "structlog"}


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    documents = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8"))
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in documents}


@pytest.fixture(scope="module")
def pod(manifest: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = manifest["Deployment/lean-ops-bridge"]["spec"]["template"]["spec"]
    return spec


@pytest.fixture(scope="module")
def container(pod: dict[str, Any]) -> dict[str, Any]:
    (only,) = pod["containers"]
    assert isinstance(only, dict)
    return only


def instructions(name: str) -> list[str]:
    return re.findall(rf"(?m)^{name} (.*)$", DOCKERFILE)


# the image


def test_what_the_image_copies_is_all_that_the_process_imports(tmp_path: Path) -> None:
    """The copied rooms, and nothing else of the product, in an interpreter of their own."""
    for words in (line.split() for line in instructions("COPY") if not line.startswith("--from")):
        source, target = ROOT / words[0], tmp_path / words[1].removeprefix("/")
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.suffix == ".py":
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    asked = (
        f"import sys, json; sys.path.insert(0, {str(tmp_path / 'app')!r});"
        "import lean_ops.entrypoints.bridge as it; print(json.dumps([it.__file__, sorted(sys.modules)]))"
    )
    said = subprocess.run([sys.executable, "-I", "-c", asked], capture_output=True, text=True, check=True, timeout=120)
    file, modules = json.loads(said.stdout)
    assert file.startswith(str(tmp_path))
    assert not HEAVY & set(modules)


def test_packages_are_installed_by_hash_alone() -> None:
    (install,) = (line for line in instructions("RUN") if "install" in line)
    for flag in ("--require-hashes", "--only-binary :all:", "--no-deps", "--requirement /lock/bridge.txt"):
        assert flag in install
    lock = (ROOT / "lock" / "bridge.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"(?m)^([a-z0-9-]+)==([^\s;\\]+)", lock))
    assert pinned.keys() >= DIRECT
    assert lock.count("--hash=sha256:") >= len(pinned)
    assert not HEAVY & pinned.keys()


def test_the_image_runs_as_nobody_and_starts_the_bridge() -> None:
    assert instructions("USER") == ["10001:10001"]
    assert [json.loads(words) for words in instructions("ENTRYPOINT")] == [COMMAND]
    assert instructions("STOPSIGNAL") == ["SIGTERM"]
    user, entry = DOCKERFILE.index("\nUSER "), DOCKERFILE.index("\nENTRYPOINT ")
    assert user < entry
    assert "\nFROM" not in DOCKERFILE[user:]


def test_the_module_that_is_started_has_a_main() -> None:
    asked = [sys.executable, "-m", COMMAND[-1]]
    said = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=120, env={})
    assert said.returncode == 2
    assert "LEAN_OPS_PROJECT" in json.loads(said.stdout)["error"]


# the manifest


def test_the_manifest_is_whole(manifest: dict[str, Any]) -> None:
    assert manifest.keys() == {
        "ServiceAccount/lean-ops-bridge",
        "ConfigMap/lean-ops-bridge",
        "ConfigMap/lean-ops-bridge-google",
        "Deployment/lean-ops-bridge",
        "PodDisruptionBudget/lean-ops-bridge",
    }
    labels = {"app.kubernetes.io/name": "lean-ops-bridge"}
    deployment = manifest["Deployment/lean-ops-bridge"]["spec"]
    assert deployment["selector"]["matchLabels"] == deployment["template"]["metadata"]["labels"] == labels
    budget = manifest["PodDisruptionBudget/lean-ops-bridge"]["spec"]
    assert budget["selector"]["matchLabels"] == labels
    assert 0 < budget["minAvailable"] < deployment["replicas"]
    annotations = manifest["ServiceAccount/lean-ops-bridge"]["metadata"]["annotations"]
    assert {"eks.amazonaws.com/role-arn", "iam.gke.io/gcp-service-account"} == annotations.keys()


def test_its_settings_are_settings_of_the_bridge(manifest: dict[str, Any], container: dict[str, Any]) -> None:
    settings = load_bridge_settings(manifest["ConfigMap/lean-ops-bridge"]["data"])
    assert settings.http_host == "0.0.0.0"  # noqa: S104  inside of a pod
    assert container["ports"] == [{"name": "http", "containerPort": settings.http_port}]
    assert container["envFrom"] == [{"configMapRef": {"name": "lean-ops-bridge"}}]


def test_a_pod_has_the_time_that_the_bridge_needs_to_end(manifest: dict[str, Any], pod: dict[str, Any]) -> None:
    settings = load_bridge_settings(manifest["ConfigMap/lean-ops-bridge"]["data"])
    hanging_call = settings.send_timeout_seconds * 1.5  # to connect, and to read
    assert pod["terminationGracePeriodSeconds"] > settings.shutdown_seconds + _GIVE_BACK_SECONDS + hanging_call + 5


def test_the_environment_holds_nothing_that_kubernetes_would_add(pod: dict[str, Any]) -> None:
    assert pod["enableServiceLinks"] is False


def test_the_container_is_probed_bounded_and_without_rights(pod: dict[str, Any], container: dict[str, Any]) -> None:
    assert container["command"] == COMMAND
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert "memory" in container["resources"]["limits"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}" == instructions("USER")[0]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
