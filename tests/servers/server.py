"""What a test knows of a server: where it is and which environment leads clients to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.servers.process import HOST, ServerProcess

from lean_ops.model.errors import TransientError

if TYPE_CHECKING:
    import pytest

REGION: Final = "eu-central-1"
ACCOUNT: Final = "000000000000"
ACCESS_KEY: Final = "leanopstests"
SECRET_KEY: Final = "not-a-secret"  # noqa: S105  as it says
# The same for all, so that the environments of several servers can be put together.
_COMMON: Final = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    # No file of the person who runs the tests, and no question to a cloud machine's address.
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is ready, on loopback; `endpoints` are the variables by which clients find it."""

    process: ServerProcess
    port: int
    endpoints: Mapping[str, str] = field(default_factory=dict)
    host: str = HOST

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Where HTTP clients find it."""
        return f"http://{self.address}"

    def environ(self) -> dict[str, str]:
        """The variables by which boto3 or Google's clients find it, credentials and region included."""
        return {**_COMMON, **self.endpoints}

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Lead the clients of this process and its children to it, until the test ends."""
        for name, value in self.environ().items():
            monkeypatch.setenv(name, value)

    def client(self, service: str) -> Any:
        """A boto3 client of it, whatever the environment says."""
        import boto3
        from botocore.config import Config

        limits = Config(connect_timeout=5, read_timeout=60, retries={"total_max_attempts": 3})
        session: Any = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
        return session.client(service, endpoint_url=self.url, config=limits)

    def stop(self) -> None:
        """Gone when this returns."""
        self.process.stop()

    def after(self, ask: Callable[[Server], object]) -> Server:
        """The server itself once it has answered; if it does not, stop it and raise TransientError with its words."""
        try:
            ask(self)
        except Exception as error:
            self.stop()
            raise TransientError(
                f"{self.process.name} does not answer: {error}", where=self.url, found=self.process.last_words()
            ) from error
        return self


def on_aws_endpoint(process: ServerProcess, port: int, variable: str) -> Server:
    """A server that stands for an AWS service, or for all of them."""
    return Server(process, port, {variable: f"http://{HOST}:{port}"})
