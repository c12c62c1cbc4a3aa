"""What the commands do: Terraform's calls, files to the bucket, images to ECR, and nothing that was not agreed to."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from tests.integration.deploy.deploy_scene import ACCOUNT, VERSION, Scene, module
from tests.servers.server import REGION

from lean_ops.settings import load_settings

Words = pytest.CaptureFixture[str]
OUTPUTS = {
    "warehouse": "s3://a-lake/warehouse",
    "schema_bucket": "some-schemas",
    "iceberg_bucket": "a-lake",
    "stream_name": "lean-ops-trial-raw",
    "alert_topic_arn": f"arn:aws:sns:{REGION}:{ACCOUNT}:lean-ops-trial-alerts",
}


def option(arguments: list[str], name: str) -> str:
    return next(each.removeprefix(f"{name}=") for each in arguments if each.startswith(f"{name}="))


# plan and apply


def test_a_plan_is_made_of_the_variable_file_the_version_and_the_image(scene: Scene) -> None:
    image = scene.image
    assert scene.deploy("plan", "--lake-image-uri", image) == 0
    init, plan = scene.calls("terraform")
    assert init == ["init", "-input=false"]
    assert plan[0] == "plan"
    assert {"-var-file=environments/trial.tfvars", f"-var=artifact_version={VERSION}"} <= set(plan)
    assert f"-var=lake_image_uri={image}" in plan
    assert '-var=glue_python_modules=["duckdb==2.0.0", "pydantic==2.14.3"]' in plan
    assert option(plan, "-state") == str(scene.work / "terraform.tfstate")
    assert option(plan, "-out") == str(scene.work / "plan")


def test_terraform_works_in_infra_with_files_of_this_environment(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(tmp_path / "nothing here"))
    monkeypatch.setenv("TF_PLUGIN_DIR", "/some/plugins")
    assert scene.deploy("plan", "--lake-image-uri", scene.image) == 0
    call = next(call for call in scene.logged("terraform") if call["arguments"][0] == "init")
    assert call["chdir"] == f"-chdir={scene.root / 'infra'}"
    assert call["environ"] == {"TF_DATA_DIR": str(scene.work / "data"), "TF_CLI_CONFIG_FILE": None}
    assert "-plugin-dir=/some/plugins" in call["arguments"]


def test_a_state_bucket_is_told_to_terraform_once_and_the_state_is_no_file_then(scene: Scene) -> None:
    options = ["--lake-image-uri", scene.image, "--state-bucket", "states"]
    assert scene.deploy("plan", *options, "--state-region", "eu-west-1", "--no-lock") == 0
    assert 'backend "s3"' in (scene.root / "infra" / "backend.tf").read_text()
    init, plan = scene.calls("terraform")
    told = [each.removeprefix("-backend-config=") for each in init if each.startswith("-backend-config=")]
    assert told == ["bucket=states", f"key=lean-ops/{scene.mark}.tfstate", "region=eu-west-1"]
    assert not [each for each in plan if each.startswith("-state=")]
    assert "-lock=false" in plan


def test_an_apply_that_nobody_agreed_to_does_nothing(scene: Scene, capsys: Words) -> None:
    assert scene.deploy("apply", "--lake-image-uri", scene.image) == 1
    assert "nothing was done" in capsys.readouterr().err
    assert [call[0] for call in scene.calls("terraform")] == ["init", "plan"]


def test_an_apply_does_what_was_planned_and_nothing_else(scene: Scene, capsys: Words) -> None:
    assert scene.deploy("apply", "--lake-image-uri", scene.image, "--yes") == 0
    applied = scene.calls("terraform")[-1]
    assert applied == ["apply", "-input=false", f"-state={scene.work / 'terraform.tfstate'}", str(scene.work / "plan")]
    assert not (scene.work / "plan").exists()
    assert "make upload ENV=trial" in capsys.readouterr().out


def test_a_plan_that_fails_is_not_applied(scene: Scene, capsys: Words) -> None:
    scene.answers(failing=["plan"])
    assert scene.deploy("apply", "--lake-image-uri", scene.image, "--yes") == 1
    assert "terraform plan failed with 1" in capsys.readouterr().err
    assert [call[0] for call in scene.calls("terraform")] == ["init", "plan"]


def test_topics_that_were_discovered_count_unless_the_variable_file_has_its_own(scene: Scene) -> None:
    (scene.root / "infra" / "topics.auto.tfvars.json").write_text('{"topics": ["found"]}')
    load = module("deployment.environment").load
    assert load(scene.root, "trial").topics == ["events", "orders"]
    scene.write_variables(topics=None)
    assert load(scene.root, "trial").topics == ["found"]


# destroy


def as_applied(scene: Scene) -> None:
    """As if it had been applied from here."""
    scene.answers(state=STATE)
    scene.work.mkdir(parents=True)
    (scene.work / "terraform.tfstate").write_text("{}")


KEY = 'module.storage.aws_kms_key.this["this"]'
STATE = [
    "data.aws_partition.current",
    'module.messaging.aws_sqs_queue.topic["orders"]',
    'module.storage.data.aws_s3_bucket.given["schema"]',
    'module.storage.aws_kms_alias.this["this"]',
    KEY,
    'module.storage.aws_s3_bucket.this["iceberg"]',
    'module.storage.aws_s3_bucket_notification.schema["schema"]',
    'module.storage.aws_s3_bucket_public_access_block.this["iceberg"]',
]


def test_a_destroy_that_nobody_agreed_to_changes_nothing(scene: Scene, capsys: Words) -> None:
    as_applied(scene)
    assert scene.deploy("destroy") == 1
    said = capsys.readouterr()
    assert f"What is left: s3://{scene.lake} and s3://{scene.schemas} with all data in them." in said.out
    assert "nothing was done" in said.err
    assert [call[:2] for call in scene.calls("terraform")] == [["init", "-input=false"], ["state", "list"]]


def test_a_destroy_leaves_buckets_and_the_key_that_reads_them(scene: Scene, capsys: Words) -> None:
    as_applied(scene)
    assert scene.deploy("destroy", "--yes") == 0
    _, _, forgotten, plan, applied = scene.calls("terraform")
    assert forgotten[:2] == ["state", "rm"]
    assert forgotten[3:] == [STATE[3], KEY, STATE[5], STATE[7]]
    assert "-destroy" in plan
    assert applied[-1] == str(scene.work / "plan")
    assert f"(alias lean-ops-{scene.mark})" in capsys.readouterr().out


def test_a_destroy_of_everything_says_what_that_means_for_the_data(scene: Scene, capsys: Words) -> None:
    as_applied(scene)
    assert scene.deploy("destroy", "--yes", "--everything") == 0
    assert [call[0] for call in scene.calls("terraform")] == ["init", "plan", "apply"]
    assert "nobody can read them any more" in capsys.readouterr().out


def test_what_was_not_applied_from_here_is_not_destroyed(scene: Scene, capsys: Words) -> None:
    assert scene.deploy("destroy", "--yes") == 1
    assert "there is nothing to destroy" in capsys.readouterr().err
    assert [call[0] for call in scene.calls("terraform")] == ["init"]


def test_tables_that_refuse_to_be_deleted_are_found_before_anything_is(scene: Scene, capsys: Words) -> None:
    scene.write_variables(deletion_protection=None)
    assert scene.deploy("destroy", "--yes") == 1
    assert "deletion_protection = false" in capsys.readouterr().err
    assert scene.calls("terraform") == []


# upload


def test_files_are_uploaded_once(scene: Scene, capsys: Words) -> None:
    assert scene.deploy("upload") == 0
    names = ["standardized.py", "curated.py", "modules.txt", "manifest.json"]
    assert capsys.readouterr().out.split() == [f"artifacts/{VERSION}/{name}" for name in names]
    assert scene.keys(scene.lake) == {f"artifacts/{VERSION}/{name}" for name in names}
    assert scene.deploy("upload") == 0
    assert "has all of it already" in capsys.readouterr().out


def test_a_version_that_means_something_else_is_not_overwritten(scene: Scene, capsys: Words) -> None:
    assert scene.deploy("upload") == 0
    scene.write_artifacts({"standardized.py": b"one", "curated.py": b"changed", "new.py": b"new"})
    assert scene.deploy("upload") == 1
    assert "has other content of curated.py, manifest.json" in capsys.readouterr().err
    assert f"artifacts/{VERSION}/new.py" not in scene.keys(scene.lake)
    assert scene.deploy("upload", "--force") == 0
    content = scene.s3.get_object(Bucket=scene.lake, Key=f"artifacts/{VERSION}/curated.py")["Body"].read()
    assert content == b"changed"


def test_files_that_somebody_else_brought_are_compared_by_their_content(scene: Scene, capsys: Words) -> None:
    scene.s3.put_object(Bucket=scene.lake, Key=f"artifacts/{VERSION}/curated.py", Body=b"two")
    assert scene.deploy("upload") == 0
    assert "curated.py" not in capsys.readouterr().out


def test_a_bucket_that_terraform_is_still_to_make(scene: Scene, capsys: Words) -> None:
    scene.write_variables(iceberg_bucket=f"not-yet-{scene.mark}", create_buckets=True)
    assert scene.deploy("upload") == 1
    assert "AWS says: " in capsys.readouterr().err


# images


@pytest.fixture
def repositories(scene: Scene) -> None:
    for image in ("lake", "discovery"):
        scene.server.client("ecr").create_repository(repositoryName=f"lean-ops-{scene.mark}-{image}")


def test_without_docker(scene: Scene, capsys: Words) -> None:
    (scene.bin / "docker.stopped").touch()
    assert scene.deploy("images") == 1
    assert "docker: does not answer" in capsys.readouterr().err
    (scene.bin / "docker").unlink()
    assert scene.deploy("images") == 1
    assert "docker: not on PATH\n    Install Docker" in capsys.readouterr().err


def test_without_repositories(scene: Scene, capsys: Words) -> None:
    assert scene.deploy("images") == 1
    said = capsys.readouterr().err
    assert f"repository: lean-ops-{scene.mark}-lake" in said
    assert "infra/bootstrap makes it" in said


@pytest.mark.usefixtures("repositories")
def test_an_image_is_built_pushed_and_planned_by_its_digest(scene: Scene) -> None:
    scene.write_variables(lambda_architecture="arm64")
    assert scene.deploy("images") == 0
    login, build, push = scene.calls("docker")
    assert login[:3] == ["login", "--username", "AWS"]
    address = build[build.index("--tag") + 1]
    assert f"/lean-ops-{scene.mark}-lake:{VERSION}-" in address
    assert build[build.index("--platform") + 1] == "linux/arm64"
    assert build[build.index("--build-arg") + 1] == "PACKAGES=lake"
    assert push == ["push", address]
    pushed = json.loads((scene.work / "images.json").read_text())["lake_image_uri"]
    assert pushed.startswith(f"{address.partition(':')[0]}@sha256:")
    assert scene.deploy("plan") == 0
    assert f"-var=lake_image_uri={pushed}" in scene.calls("terraform")[-1]


@pytest.mark.usefixtures("repositories")
def test_an_image_is_built_again_only_if_something_in_it_changed(scene: Scene) -> None:
    assert scene.deploy("images") == 0
    assert scene.deploy("images") == 0
    assert [call[0] for call in scene.calls("docker")] == ["login", "build", "push", "login"]
    (scene.root / "src" / "lean_ops" / "one.py").write_text("something else\n")
    assert scene.deploy("images") == 0
    assert [call[0] for call in scene.calls("docker")][4:] == ["login", "build", "push"]


@pytest.mark.usefixtures("repositories")
def test_discovery_has_an_image_where_there_is_something_to_discover(scene: Scene) -> None:
    scene.write_variables(pubsub_project="a-project")
    assert scene.deploy("images") == 0
    assert set(json.loads((scene.work / "images.json").read_text())) == {"lake_image_uri", "discovery_image_uri"}


# env


def test_the_settings_of_a_deployed_environment_are_settings_of_the_product(scene: Scene, capsys: Words) -> None:
    scene.answers(outputs={key: {"value": value} for key, value in OUTPUTS.items()})
    scene.write_variables(database_prefix="dev_")
    assert scene.deploy("env") == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("export LEAN_OPS_") for line in lines)
    environ = dict(shlex.split(line)[1].split("=", 1) for line in lines)
    settings = load_settings({}, environ).settings
    assert (settings.profile, settings.environment, settings.region) == ("aws", scene.mark, REGION)
    assert (settings.warehouse, settings.schema_bucket) == (OUTPUTS["warehouse"], "some-schemas")
    assert (settings.archive_bucket, settings.database_prefix) == ("a-lake", "dev_")


def test_settings_of_what_is_not_applied(scene: Scene, capsys: Words) -> None:
    assert scene.deploy("env") == 1
    assert "is not applied from here: `make apply` comes first" in capsys.readouterr().err
