"""The key of `pii: hash` from its secret; whatever is wrong with it, no word of it is told."""

from __future__ import annotations

from typing import Any

import pytest

from lean_ops.aws.secrets import pii_key
from lean_ops.model.errors import TerminalError

ARN = "arn:aws:secretsmanager:eu-central-1:000000000000:secret:pii-AbCdEf"


class Secrets:
    """Has one secret."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value
        self.asked: list[str] = []

    def get_secret_value(self, *, SecretId: str) -> Any:  # noqa: N803  AWS' own name
        self.asked.append(SecretId)
        return self.value


def test_the_key_is_the_secrets_text() -> None:
    client = Secrets({"SecretString": "k" * 16})
    assert pii_key(client, ARN) == "k" * 16
    assert client.asked == [ARN]


@pytest.mark.parametrize(
    "value", [{"SecretString": "much-too-short"}, {"SecretString": ""}, {"SecretBinary": b"x" * 40}]
)
def test_a_secret_that_is_no_key_is_refused_without_being_shown(value: dict[str, Any]) -> None:
    with pytest.raises(TerminalError, match="at least 16 characters") as refused:
        pii_key(Secrets(value), ARN)
    assert "much-too-short" not in str(refused.value)
    assert ARN in str(refused.value)
