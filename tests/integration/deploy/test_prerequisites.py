"""Whatever a deployment lacks is named, with what to do about it, before anything is done."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from tests.integration.deploy.deploy_scene import ACCOUNT, VERSION, Scene
from tests.servers.server import REGION

Words = pytest.CaptureFixture[str]


def missing(scene: Scene, words: Words, *options: str) -> str:
    """What `check` says is missing; it ends with 1."""
    assert scene.deploy("check", *options) == 1
    lines = words.readouterr().out.splitlines()
    return "\n".join(
        line for number, line in enumerate(lines) if line.startswith("NO") or lines[number - 1].startswith("NO")
    )


def test_what_is_all_there_is_shown_with_the_account(scene: Scene, capsys: Words) -> None:
    assert scene.deploy("check", "--lake-image-uri", scene.image) == 0
    said = capsys.readouterr().out
    assert f"account {ACCOUNT} as arn:aws:" in said
    assert "NO" not in said
    for what in ("terraform: 1.11.4", f"region: {REGION}", scene.lake, scene.schemas, "zips: 5 of 5", "files: 3 of 3"):
        assert what in said


def test_without_terraform(scene: Scene, capsys: Words) -> None:
    (scene.bin / "terraform").unlink()
    assert "terraform: not on PATH\n    Install Terraform" in missing(scene, capsys)


@pytest.mark.parametrize(("version", "options"), [("1.6.9", ()), ("1.9.8", ("--state-bucket", "states"))])
def test_terraform_that_is_too_old_for_where_its_state_is(
    scene: Scene, capsys: Words, version: str, options: tuple[str, ...]
) -> None:
    scene.answers(version={"terraform_version": version})
    assert f"terraform: {version}\n    1." in missing(scene, capsys, *options)


def test_terraform_that_is_just_new_enough(scene: Scene, capsys: Words) -> None:
    scene.answers(version={"terraform_version": "1.10.0"})
    assert "terraform: 1.10.0" not in missing(scene, capsys, "--state-bucket", "states")


def test_a_bucket_that_nobody_names_any_more(scene: Scene, capsys: Words) -> None:
    (scene.root / "infra" / "backend.tf").write_text("")
    assert "infra/backend.tf says that a bucket keeps it\n    Name the bucket, STATE_BUCKET=" in missing(scene, capsys)


def test_state_on_this_machine_is_not_left_behind(scene: Scene, capsys: Words) -> None:
    scene.work.mkdir(parents=True)
    (scene.work / "terraform.tfstate").write_text("{}")
    said = missing(scene, capsys, "--state-bucket", "states")
    assert f"aws s3 cp {scene.work}/terraform.tfstate s3://states/lean-ops/{scene.mark}.tfstate" in said


def test_without_credentials(scene: Scene, capsys: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert "credentials: Unable to locate credentials\n    Log in" in missing(scene, capsys)


def test_a_region_that_is_none(scene: Scene, capsys: Words) -> None:
    scene.write_variables(region="eu-centrel-1")
    assert "region: eu-centrel-1\n    Correct `region`" in missing(scene, capsys)


def test_without_the_aws_cli_unless_it_is_not_needed(scene: Scene, capsys: Words) -> None:
    (scene.bin / "aws").unlink()
    assert "aws cli: not on PATH" in missing(scene, capsys)
    scene.write_variables(raise_message_size=False)
    assert "aws cli" not in missing(scene, capsys)


def test_a_bucket_that_is_not_there_unless_terraform_makes_it(scene: Scene, capsys: Words) -> None:
    name = f"nobody-made-{scene.mark}"
    scene.write_variables(iceberg_bucket=name)
    assert f"there is no bucket {name}\n    Make it, `aws s3 mb s3://{name} --region {REGION}`" in missing(
        scene, capsys
    )
    scene.write_variables(iceberg_bucket=name, create_buckets=True)
    assert name not in missing(scene, capsys)


def test_a_bucket_in_another_region(scene: Scene, capsys: Words) -> None:
    name = f"elsewhere-{scene.mark}"
    s3: Any = boto3.Session(region_name="eu-west-1").client("s3")
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    scene.write_variables(schema_bucket=name)
    assert f"schema_bucket: {name} is in eu-west-1" in missing(scene, capsys)


def test_zips_that_are_not_built_or_are_not_what_was_built(scene: Scene, capsys: Words) -> None:
    folder = scene.root / "build" / "lambdas"
    (folder / "sqs_processor.zip").unlink()
    (folder / "check_schema.zip").write_bytes(b"another")
    said = missing(scene, capsys)
    assert "functions' zips: 3 of 5" in said
    assert "`make lambdas` builds check_schema, sqs_processor." in said


def test_files_of_the_jobs_that_are_not_built_or_are_not_what_was_built(scene: Scene, capsys: Words) -> None:
    folder = scene.root / "build" / "glue" / VERSION
    (folder / "curated.py").write_bytes(b"another")
    assert "`make glue` builds curated.py again." in missing(scene, capsys)
    (folder / "manifest.json").unlink()
    assert "jobs' files: no " in missing(scene, capsys)


def test_no_image(scene: Scene, capsys: Words) -> None:
    said = missing(scene, capsys)
    assert "lake_image_uri: no image is named, pushed from here or deployed" in said
    assert "`make images ENV=trial` pushes it" in said
    assert "discovery_image_uri" not in said
    scene.write_variables(pubsub_project="a-project")
    assert "discovery_image_uri: no image is named" in missing(scene, capsys)


def test_an_image_that_lambda_does_not_take(scene: Scene, capsys: Words) -> None:
    assert "Lambda takes images of ECR only" in missing(scene, capsys, "--lake-image-uri", "docker.invalid/lake:1")
    elsewhere = scene.image.replace(REGION, "eu-west-1")
    assert "is in eu-west-1\n" in missing(scene, capsys, "--lake-image-uri", elsewhere)


def test_an_image_that_nobody_pushed(scene: Scene, capsys: Words) -> None:
    uri = scene.image.partition("@")[0] + ":another"
    assert f"{uri}: ImageNotFoundException\n" in missing(scene, capsys, "--lake-image-uri", uri)


@pytest.mark.parametrize("command", ["plan", "apply"])
def test_nothing_is_planned_while_something_is_missing(scene: Scene, capsys: Words, command: str) -> None:
    options = ["--yes"] if command == "apply" else []
    assert scene.deploy(command, *options) == 1
    said = capsys.readouterr().err
    assert "lake_image_uri" in said
    assert "ok" not in said
    assert scene.calls("terraform") == []


def test_an_environment_that_there_is_not(scene: Scene, capsys: Words) -> None:
    (scene.root / "infra" / "environments" / "trial.tfvars").rename(
        scene.root / "infra" / "environments" / "dev.tfvars"
    )
    assert scene.deploy("check") == 1
    said = capsys.readouterr().err
    assert "there is no infra/environments/trial.tfvars; environments: dev. Name one: ENV=dev" in said


def test_a_variable_file_that_says_too_little(scene: Scene, capsys: Words) -> None:
    scene.write_variables(region=None, schema_bucket=None)
    assert scene.deploy("check") == 1
    assert "infra/environments/trial.tfvars does not say region, schema_bucket" in capsys.readouterr().err


def test_a_variable_file_that_is_none(scene: Scene, capsys: Words) -> None:
    file = scene.root / "infra" / "environments" / "trial.tfvars"
    file.write_text('environment = "trial"\nregion = upper("x")\n')
    assert scene.deploy("check") == 1
    assert f"{file} can't be understood: line 2: '(\"x\")" in capsys.readouterr().err
