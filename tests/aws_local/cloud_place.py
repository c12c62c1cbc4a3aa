"""Where the local cloud is, and what it tells the processes that it starts."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.servers.server import ACCESS_KEY, REGION, SECRET_KEY

# Of the person's environment nothing reaches a function or job that could change what it does.
_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "JAVA_HOME", "LEAN_OPS_CACHE_DIR")
_CREDENTIALS: Final = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "AWS_EC2_METADATA_DISABLED": "true",
}
_LOG: Final = "what-happened.log"


@dataclass(frozen=True, slots=True)
class Place:
    """The server's own address, the variables that lead to other servers, and a folder for logs and unpacked code."""

    url: str
    folder: Path
    endpoints: Mapping[str, str] = field(default_factory=dict)
    _one_line: threading.Lock = field(default_factory=threading.Lock)

    def environ(self) -> dict[str, str]:
        """Of every function and job."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return {**kept, **_CREDENTIALS, "AWS_ENDPOINT_URL": self.url, **self.endpoints}

    def client(self, service: str) -> Any:
        """A boto3 client of the server that functions and jobs would be led to."""
        import boto3
        from botocore.config import Config

        url = self.endpoints.get(f"AWS_ENDPOINT_URL_{service.upper()}", self.url)
        session: Any = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
        # A call of a function takes as long as the function does.
        limits = Config(read_timeout=930, max_pool_connections=32, s3={"addressing_style": "path"})
        return session.client(service, endpoint_url=url, config=limits)

    def subfolder(self, *names: str) -> Path:
        """A folder in the folder, made if it is not there."""
        folder = self.folder.joinpath(*names)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def say(self, text: str) -> None:
        """A line in the cloud's own log."""
        with self._one_line, (self.folder / _LOG).open("a", encoding="utf-8") as log:
            log.write(f"{datetime.now(UTC):%H:%M:%S.%f} {text}\n")
