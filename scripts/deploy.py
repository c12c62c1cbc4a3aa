"""Lean-Ops on an AWS account: `python scripts/deploy.py COMMAND ENV`; `make` has a target for each command.

ENV names the file infra/environments/ENV.tfvars. Every command first looks for what it needs and says what is missing
and what to do. Without STATE_BUCKET Terraform's state is kept on this machine; TF_PLUGIN_DIR is where the provider
lies on machines without a way to Terraform's registry. docs/deployment.md tells the whole way.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deployment import artifacts, checks, environment, images, schemas, trial
from deployment.aws import client, told_plainly
from deployment.finding import DeployError, Finding, require, shown
from deployment.terraform import Terraform

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deployment.environment import Environment

ROOT: Final = Path(__file__).resolve().parent.parent
_IMAGES: Final = ("lake_image_uri", "discovery_image_uri")


@dataclass(frozen=True, slots=True)
class Call:
    """A command's environment, its Terraform, the images to deploy, and what else was asked."""

    environment: Environment
    terraform: Terraform
    asked: argparse.Namespace

    def images(self) -> dict[str, str]:
        """The images to deploy, by their variables."""
        return images.chosen(self.environment, {key: getattr(self.asked, key) for key in _IMAGES})

    def variables(self) -> dict[str, str]:
        """What Terraform is told beside the variable file."""
        packages = json.dumps(artifacts.packages(self.environment))
        return {"artifact_version": self.environment.version, "glue_python_modules": packages, **self.images()}

    def account(self) -> list[Finding]:
        """What every command that talks to AWS needs."""
        return [checks.region(self.environment), checks.credentials(self.environment)]

    def deployable(self) -> list[Finding]:
        """What a plan needs."""
        here = self.environment
        findings = [*self.terraform.findings(), checks.aws_cli(here), *self.account()]
        findings += [*checks.buckets(here), checks.zips(here), checks.artifacts(here)]
        return findings + checks.images(here, self.images())

    def outputs(self) -> dict[str, Any]:
        """What the environment was applied as."""
        require([*self.terraform.findings(), *self.account()])
        self.terraform.init()
        return self.terraform.outputs()


def check(call: Call) -> int:
    """Everything that a deployment needs, with what is missing."""
    if shown(call.deployable()):
        return 0
    print("something is missing, as said above", file=sys.stderr)
    return 1


def plan(call: Call) -> int:
    """What an apply would change."""
    require(call.deployable())
    call.terraform.init()
    call.terraform.plan(call.variables(), lock=not call.asked.no_lock)
    return 0


def apply(call: Call) -> int:
    """Show what would change, ask, and do just that."""
    require(call.deployable())
    call.terraform.init()
    planned = call.terraform.plan(call.variables())
    _ask(call, f"apply this plan to {call.environment.name}?")
    call.terraform.apply(planned)
    label = call.environment.label
    print(f"applied. Next: make upload ENV={label}, make schemas ENV={label}, make try ENV={label}")
    return 0


def destroy(call: Call) -> int:
    """Take the environment down; buckets, their data and the key that reads them stay."""
    require([*call.terraform.findings(), *call.account(), checks.deletable(call.environment)])
    call.terraform.init()
    kept = [] if call.asked.everything else call.terraform.kept()
    _ask(call, _farewell(call, kept))
    if kept:
        call.terraform.forget(kept)
    # Only values that Terraform wants to hear are needed to destroy; which image there was no longer matters.
    images_there = {"lake_image_uri": "none", **call.images()}
    planned = call.terraform.plan({"artifact_version": call.environment.version, **images_there}, destroy=True)
    call.terraform.apply(planned)
    print(f"destroyed. {_left(call, kept)}")
    return 0


def _farewell(call: Call, kept: Sequence[str]) -> str:
    return (
        f"{call.environment.name} will be destroyed: queues with what is in them, functions, jobs, checkpoints, the "
        f"catalog's entries of all tables. {_left(call, kept)} Destroy {call.environment.name}?"
    )


def _left(call: Call, kept: Sequence[str]) -> str:
    buckets = " and ".join(f"s3://{name}" for name in call.environment.buckets.values())
    words = [f"What is left: {buckets} with all data in them."]
    if any("aws_kms_key" in address for address in kept):
        key = "the key that they are encrypted with: name it as kms_key_arn (alias "
        words.append(f"Also {key}{call.environment.name}) and say create_buckets = false before the next apply.")
    if call.asked.everything:
        words.append("A key that Terraform made is deleted in 30 days: then nobody can read them any more.")
    return " ".join(words)


def upload(call: Call) -> int:
    """The jobs' files to the bucket, as far as they are not there."""
    here = call.environment
    require([*call.account(), *checks.buckets(here), checks.artifacts(here)])
    written = artifacts.upload(here, force=call.asked.force)
    place = f"s3://{here.buckets['iceberg_bucket']}/artifacts/{here.version}/"
    print("\n".join(written) if written else f"{place} has all of it already")
    return 0


def push_images(call: Call) -> int:
    """The functions' images to ECR, as far as they are not there."""
    require([*call.account(), *images.docker_findings(call.environment)])
    for variable, uri in images.push(call.environment).items():
        print(f"{variable}={uri}")
    return 0


def submit_schemas(call: Call) -> int:
    """Schema files to the bucket; waits until each is active or refused."""
    here = call.environment
    require([*call.account(), *checks.buckets(here)])
    wanted = schemas.files(here.root / "schemas", here.topics, call.asked.topic)
    outcomes = schemas.submit(here, wanted, call.asked.wait)
    for outcome in outcomes:
        print(outcome)
    return 0 if all(outcome.ok for outcome in outcomes) else 1


def try_it(call: Call) -> int:
    """Messages in at a topic's queue, a run of the state machine, and the topic's books."""
    here, outputs = call.environment, call.outputs()
    clients = trial.Clients(*(client(service, here.region) for service in ("sqs", "lambda", "stepfunctions")))
    trying = trial.Trial(call.asked.topic, outputs, clients)
    before = trying.waiting()
    bodies = trial.generated(call.asked.topic, call.asked.messages, int(time.time()))
    trying.send(bodies)
    print(
        f"{len(bodies)} messages sent to {trying.queue_url}; Firehose writes them within about five minutes", flush=True
    )
    print(f"{trying.landed(before + len(bodies), call.asked.wait)} records wait in RAW; the run begins", flush=True)
    print(trying.run_master(), flush=True)
    trial.reconcile(call.asked.topic, trial.settings(outputs, here.values))
    return 0


def print_settings(call: Call) -> int:
    """The variables of a deployed environment, for `eval`; then `lean-ops status` and the others speak of it."""
    for key, value in trial.settings(call.outputs(), call.environment.values).items():
        print(f"export {key}={shlex.quote(value)}")
    return 0


def _ask(call: Call, question: str) -> None:
    """Go on if asked not to ask, or if a person types the environment's name."""
    if call.asked.yes:
        return
    print(f"{question} Type {call.environment.label} to go on: ", end="", flush=True)
    typed = sys.stdin.readline() if sys.stdin.isatty() else ""
    if typed.strip() != call.environment.label:
        raise DeployError("\nnothing was done: nobody said yes. Where nobody can, --yes does.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("env", metavar="ENV", help="infra/environments/ENV.tfvars")
    common.add_argument("--root", type=Path, default=ROOT, help="the repository")
    common.add_argument("--version", default=os.environ.get("ARTIFACT_VERSION"), help="of the jobs' files; else ours")
    common.add_argument("--state-bucket", default=os.environ.get("STATE_BUCKET") or None)
    common.add_argument("--state-region", default=os.environ.get("STATE_REGION") or None)
    for key in _IMAGES:
        common.add_argument(f"--{key.replace('_', '-')}", default=os.environ.get(key.upper()))
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, function: Callable[[Call], int]) -> argparse.ArgumentParser:
        added = commands.add_parser(name, parents=[common], help=(function.__doc__ or "").split("\n")[0])
        added.set_defaults(function=function)
        return added

    _add_commands(command)
    return parser


def _add_commands(command: Callable[[str, Callable[[Call], int]], argparse.ArgumentParser]) -> None:
    command("check", check)
    command("plan", plan).add_argument("--no-lock", action="store_true", help="for a role that may only look")
    command("apply", apply).add_argument("--yes", action="store_true", help="do not ask")
    leaving = command("destroy", destroy)
    leaving.add_argument("--yes", action="store_true", help="do not ask")
    leaving.add_argument(
        "--everything", action="store_true", help="the key that Terraform made, and empty buckets, too"
    )
    command("upload", upload).add_argument("--force", action="store_true", help="overwrite what a version has meant")
    command("images", push_images)
    sending = command("schemas", submit_schemas)
    sending.add_argument("--topic", action="append", default=[], help="else all topics that have a file in schemas/")
    sending.add_argument("--wait", type=float, default=300, metavar="SECONDS")
    trying = command("try", try_it)
    trying.add_argument("--topic", default="orders")
    trying.add_argument("--messages", type=int, default=100, metavar="N")
    trying.add_argument("--wait", type=float, default=900, metavar="SECONDS", help="for messages to land in RAW")
    command("env", print_settings)


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when it is done, 1 with the reason on stderr, 2 for wrong use."""
    asked = _parser().parse_args(arguments)
    try:
        here = environment.load(asked.root, asked.env, asked.version or None)
        plugins = os.environ.get("TF_PLUGIN_DIR") or None
        call = Call(here, Terraform(here, asked.state_bucket, asked.state_region, plugins), asked)
        with told_plainly():
            code: int = asked.function(call)
    except DeployError as error:
        print(error, file=sys.stderr)
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
