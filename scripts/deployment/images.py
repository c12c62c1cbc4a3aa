"""The functions' images: built from this checkout, pushed under a tag made of their content, named by their digest."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .aws import client, code_of
from .finding import DeployError, Finding
from .processes import found, run, said

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from .environment import Environment

_DOCKERFILE: Final = "deploy/lambdas/Dockerfile"
_PLATFORMS: Final = {"x86_64": "linux/amd64", "arm64": "linux/arm64"}
_BUILD_SECONDS: Final = 3600
_ASK_SECONDS: Final = 60
# What builders add for provenance makes of an image a list of images, which Lambda does not take.
_PLAIN: Final = {"BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}


@dataclass(frozen=True, slots=True)
class Image:
    """An image by its set of packages, with the variable that Terraform knows it by."""

    packages: str

    @property
    def variable(self) -> str:
        """The variable of infra/ that names it."""
        return f"{self.packages}_image_uri"


def needed(environment: Environment) -> list[Image]:
    """The images that the environment's functions take."""
    return [Image("lake"), *([Image("discovery")] if environment.values.get("pubsub_project") else [])]


def chosen(environment: Environment, given: Mapping[str, str]) -> dict[str, str]:
    """The images to deploy: those given, else the variable file's, else those pushed from here, else what is there."""
    pushed = environment.pushed()
    images: dict[str, str] = {}
    for image in needed(environment):
        key = image.variable
        named = given.get(key) or environment.values.get(key) or pushed.get(key) or _deployed(environment, image)
        if named:
            images[key] = str(named)
    return images


def _deployed(environment: Environment, image: Image) -> str | None:
    """The image that a function of the environment has now; a plan without new images is about the rest."""
    from botocore.exceptions import BotoCoreError, ClientError

    function = "discovery" if image.packages == "discovery" else "ensure-table"
    try:
        answer = client("lambda", environment.region).get_function(FunctionName=f"{environment.name}-{function}")
    except (BotoCoreError, ClientError):
        return None  # not deployed yet, or no credentials: what is missing is told by the checks
    uri: str | None = answer["Code"].get("ImageUri")
    return uri


def docker_findings(environment: Environment) -> list[Finding]:
    """Whether images can be built, and where to they can be pushed."""
    return [_docker(), *(_repository(environment, image) for image in needed(environment))]


def _docker() -> Finding:
    program = found("docker")
    remedy = "Install Docker and start it; or let the workflow `deploy` build the images (docs/deployment.md)."
    if program is None:
        return Finding("docker", "not on PATH", remedy)
    try:
        version = said([program, "version", "--format", "{{.Server.Version}}"], os.environ, _ASK_SECONDS).strip()
    except DeployError as error:
        return Finding("docker", f"does not answer: {error}", remedy)
    return Finding("docker", version)


def _repository(environment: Environment, image: Image) -> Finding:
    from botocore.exceptions import BotoCoreError, ClientError

    name = repository(environment, image)
    try:
        client("ecr", environment.region).describe_repositories(repositoryNames=[name])
    except (BotoCoreError, ClientError) as error:
        return Finding("repository", f"{name}: {error}", "infra/bootstrap makes it (docs/deployment.md).")
    return Finding("repository", name)


def repository(environment: Environment, image: Image) -> str:
    """Where an image is pushed to, as infra/bootstrap names it."""
    return f"{environment.name}-{image.packages}"


def push(environment: Environment) -> dict[str, str]:
    """Build and push what is not there yet; each image by its variable, as `…@sha256:…`."""
    ecr = client("ecr", environment.region)
    registry = _log_in(ecr)
    images = {image.variable: _pushed(environment, ecr, registry, image) for image in needed(environment)}
    environment.folder.mkdir(parents=True, exist_ok=True)
    environment.pushed_file.write_text(json.dumps(images, indent=2) + "\n", encoding="utf-8")
    return images


def _log_in(ecr: Any) -> str:
    token = ecr.get_authorization_token()["authorizationData"][0]
    user, _, password = base64.b64decode(token["authorizationToken"]).decode().partition(":")
    registry = str(token["proxyEndpoint"]).partition("://")[2]
    said([_program(), "login", "--username", user, "--password-stdin", registry], os.environ, _ASK_SECONDS, password)
    return registry


def _pushed(environment: Environment, ecr: Any, registry: str, image: Image) -> str:
    name, tag = repository(environment, image), content_tag(environment, image)
    digest = _digest(ecr, name, tag)
    if digest is None:
        address = f"{registry}/{name}:{tag}"
        run(_build_command(environment, image, address), {**os.environ, **_PLAIN}, _BUILD_SECONDS)
        run([_program(), "push", address], os.environ, _BUILD_SECONDS)
        digest = _digest(ecr, name, tag)
    if digest is None:
        raise DeployError(f"{name}:{tag} was pushed, but ECR does not know it")
    return f"{registry}/{name}@{digest}"


def _build_command(environment: Environment, image: Image, address: str) -> list[str]:
    platform = _PLATFORMS[str(environment.values.get("lambda_architecture", "x86_64"))]
    options = ["--platform", platform, "--build-arg", f"PACKAGES={image.packages}", "--tag", address]
    return [_program(), "build", "--file", str(environment.root / _DOCKERFILE), *options, str(environment.root)]


def _digest(ecr: Any, name: str, tag: str) -> str | None:
    from botocore.exceptions import ClientError

    try:
        found_images = ecr.describe_images(repositoryName=name, imageIds=[{"imageTag": tag}])["imageDetails"]
    except ClientError as error:
        if code_of(error) == "ImageNotFoundException":
            return None
        raise
    return str(found_images[0]["imageDigest"])


def content_tag(environment: Environment, image: Image) -> str:
    """The version and a hash of all that goes into the image: tags can't be moved, so another content needs another."""
    digest = hashlib.sha256(str(environment.values.get("lambda_architecture", "x86_64")).encode())
    for file in _content(environment.root, image):
        digest.update(file.relative_to(environment.root).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return f"{environment.version}-{digest.hexdigest()[:16]}"


def _content(root: Path, image: Image) -> Iterator[Path]:
    yield root / _DOCKERFILE
    yield root / "lock" / f"lambda-{image.packages}.txt"
    yield from sorted(
        file for file in (root / "src" / "lean_ops").rglob("*") if file.is_file() and file.suffix != ".pyc"
    )


def _program() -> str:
    program = found("docker")
    if program is None:
        raise DeployError("docker is not on PATH")
    return program
