"""Secrets that stay in AWS Secrets Manager until they are needed."""

from __future__ import annotations

from typing import Any, Final, Protocol

from lean_ops.aws.calls import calling
from lean_ops.model.errors import TerminalError

_SHORTEST: Final = 16


class SecretsApi(Protocol):
    """What is asked of the client."""

    def get_secret_value(self, *, SecretId: str) -> Any:  # noqa: N803  AWS' own name
        """A secret."""


def pii_key(client: SecretsApi, arn: str) -> str:
    """The key of `pii: hash`; TerminalError, without a word of it, if it is no text of at least 16 characters."""
    with calling(f"secret {arn}"):
        found = client.get_secret_value(SecretId=arn)
    key = found.get("SecretString") or ""
    if len(key) < _SHORTEST:
        raise TerminalError(
            "is no key for `pii: hash`",
            where=f"secret {arn}",
            found=f"a text of {len(key)} characters" if "SecretString" in found else "no text",
            expected=f"a text of at least {_SHORTEST} characters",
        )
    return key
