from __future__ import annotations

import pytest

from lean_ops.aws import lake_place
from lean_ops.aws.glue_tables import split_address
from lean_ops.aws.lake_place import use_region
from lean_ops.model.errors import TerminalError, WrongUseError


@pytest.mark.parametrize(
    ("setting", "environ", "configured", "region"),
    [
        ("eu-west-1", {"AWS_REGION": "us-east-1"}, None, "eu-west-1"),
        (None, {"AWS_REGION": "us-east-1"}, "eu-west-1", "us-east-1"),
        (None, {"AWS_DEFAULT_REGION": "us-east-2"}, None, "us-east-2"),
        (None, {}, "eu-north-1", "eu-north-1"),
    ],
)
def test_every_library_is_told_the_same_region(
    setting: str | None,
    environ: dict[str, str],
    configured: str | None,
    region: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lake_place, "_configured_region", lambda: configured)
    use_region(setting, environ)
    assert environ == {"AWS_REGION": region, "AWS_DEFAULT_REGION": region}


def test_no_region_at_all_is_an_error_that_says_where_to_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_place, "_configured_region", lambda: None)
    with pytest.raises(WrongUseError, match="LEAN_OPS_REGION"):
        use_region(None, {})


def test_an_address_in_s3_has_a_bucket_and_a_key() -> None:
    assert split_address("s3://b/k/x.json") == ("b", "k/x.json")
    assert split_address("s3a://b/") == ("b", "")
    for wrong in ("file:///x", "s3://", "x", ""):
        with pytest.raises(TerminalError, match="s3://BUCKET/KEY"):
            split_address(wrong)
