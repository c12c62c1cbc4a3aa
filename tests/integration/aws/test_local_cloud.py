"""The local cloud: functions, jobs and what Terraform asks for, each as AWS has it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError
from botocore.httpsession import URLLib3Session
from tests.aws_local.cloud_server import start_cloud
from tests.integration.aws.cloud_scene import Deployed, at_once, wait_until, zipped
from tests.integration.aws.lone_pytest import eventually
from tests.servers.server import Server
from tests.servers.sockets import children, is_alive

CALLS_AT_A_TIME = 2
JOBS_AT_A_TIME = 2
ECHO = "import os\ndef handler(event, context):\n    return {'event': event, 'told': os.environ.get('TOLD')}\n"
RECORDED = "import json, sys\njson.dump(sys.argv[1:], open(sys.argv[sys.argv.index('--to') + 1], 'w'))\n"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory, seaweed: Server) -> Iterator[tuple[Server, Path]]:
    folder = tmp_path_factory.mktemp("cloud")
    limits = ["--calls-at-a-time", str(CALLS_AT_A_TIME), "--jobs-at-a-time", str(JOBS_AT_A_TIME)]
    server = start_cloud(folder, [seaweed], [*limits, "--minute-seconds", "1"])
    yield server, folder
    server.stop()


@pytest.fixture
def deployed(cloud: tuple[Server, Path], seaweed: Server) -> Iterator[Deployed]:
    made = Deployed(*cloud, seaweed)
    yield made
    made.delete_functions()


# functions


def test_a_zip_runs_with_its_own_settings_and_is_led_to_the_servers(deployed: Deployed, seaweed: Server) -> None:
    tell = "import os\ndef handler(event, context):\n    return {name: os.environ.get(name) for name in event}\n"
    name = deployed.function("tell", {"index.py": tell}, Environment={"Variables": {"TOLD": "so"}})

    names = ["TOLD", "AWS_LAMBDA_FUNCTION_NAME", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "PYTHONPATH"]
    answer, error = deployed.call(name, names)

    assert error is None
    assert list(answer.values()) == ["so", name, deployed.cloud.url, seaweed.url, None]


def test_a_zip_finds_nothing_that_it_does_not_carry(deployed: Deployed) -> None:
    name = deployed.function("lacking", {"index.py": "import pydantic\ndef handler(event, context):\n    return 1\n"})

    answer, error = deployed.call(name, {})

    assert error == "Unhandled"
    assert answer["errorType"] == "Runtime.ImportModuleError"
    assert "No module named 'pydantic'" in answer["errorMessage"]


def test_a_package_compiled_for_another_python_is_taken_from_this_one_and_said_so(deployed: Deployed) -> None:
    code = "import msgspec\ndef handler(event, context):\n    return msgspec.json.decode(event).__len__()\n"
    alien = {"msgspec/__init__.py": "from . import _core\n", "msgspec/_core.cpython-39-x86_64-linux-gnu.so": b"\x7fELF"}
    name = deployed.function("compiled", {"index.py": code, **alien})

    assert deployed.call(name, "[1,2,3]") == (3, None)
    assert f"{name}: the zip's msgspec is compiled for another Python" in deployed.said()


def test_an_image_runs_the_repositorys_own_code_by_its_command(deployed: Deployed) -> None:
    name = f"{deployed.name}-image"
    deployed.functions.create_function(
        FunctionName=name,
        PackageType="Image",
        Role=deployed.role,
        Code={"ImageUri": "123456789012.dkr.ecr.eu-central-1.amazonaws.com/lake:1"},
        ImageConfig={"Command": ["lean_ops.entrypoints.lambdas.firehose_transform.handler"]},
        Environment={"Variables": {"LEAN_OPS_PROJECT": "lean-ops", "LEAN_OPS_ENVIRONMENT": "test"}},
        Timeout=60,
    )

    assert deployed.call(name, {"records": []}) == ({"records": []}, None)


def test_an_error_is_told_by_the_name_of_its_class(deployed: Deployed) -> None:
    code = "class TransientError(Exception): ...\ndef handler(event, context):\n    raise TransientError('a: b')\n"
    name = deployed.function("raises", {"index.py": code})

    assert deployed.call(name, {}) == ({"errorType": "TransientError", "errorMessage": "a: b"}, "Unhandled")


def test_a_function_that_is_late_is_killed_and_one_that_dies_is_replaced(deployed: Deployed, tmp_path: Path) -> None:
    code = f"""
import os, time
def handler(event, context):
    open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
    if event == "late": time.sleep(600)
    if event == "dies": os._exit(3)
    return event
"""
    name = deployed.function("late", {"index.py": code}, seconds=5)

    late, error = deployed.call(name, "late")
    assert (late["errorType"], error) == ("Sandbox.Timedout", "Unhandled")
    assert eventually(lambda: not is_alive(int((tmp_path / "pid").read_text())))
    died, error = deployed.call(name, "dies")
    assert (died["errorType"], error) == ("Runtime.ExitError", "Unhandled")
    assert deployed.call(name, "well") == ("well", None)


def test_an_asynchronous_call_is_taken_at_once_and_tried_again_when_it_fails(
    deployed: Deployed, tmp_path: Path
) -> None:
    tries = tmp_path / "tries"
    code = f"""
def handler(event, context):
    with open({str(tries)!r}, "a+") as file:
        file.write(event + "\\n")
        file.seek(0)
        if len(file.readlines()) < 2: raise RuntimeError("the first time")
"""
    name = deployed.function("asynchronous", {"index.py": code})

    answer = deployed.functions.invoke(FunctionName=name, InvocationType="Event", Payload=b'"now"')

    assert answer["StatusCode"] == 202
    wait_until(lambda: tries.is_file() and tries.read_text() == "now\nnow\n")


def test_calls_beyond_the_limit_wait_for_their_turn(deployed: Deployed) -> None:
    code = """
import time
def handler(event, context):
    begun = time.time()
    time.sleep(0.5)
    return [begun, time.time()]
"""
    name = deployed.function("busy", {"index.py": code})

    with ThreadPoolExecutor(6) as callers:
        spans = [answer for answer, _ in callers.map(lambda _: deployed.call(name, {}), range(6))]

    assert at_once(CALLS_AT_A_TIME, spans)
    assert not at_once(1, spans)


def test_new_code_and_new_settings_take_the_place_of_old_ones(deployed: Deployed) -> None:
    name = deployed.function("changing", {"index.py": "def handler(event, context):\n    return 'old'\n"})
    assert deployed.call(name, 1) == ("old", None)

    deployed.functions.update_function_code(FunctionName=name, ZipFile=zipped({"index.py": ECHO}))
    assert deployed.call(name, 1) == ({"event": 1, "told": None}, None)
    deployed.functions.update_function_configuration(FunctionName=name, Environment={"Variables": {"TOLD": "new"}})
    assert deployed.call(name, 1) == ({"event": 1, "told": "new"}, None)


def test_a_deleted_function_has_no_process(deployed: Deployed) -> None:
    name = deployed.function("gone", {"index.py": "import os\ndef handler(event, context):\n    return os.getpid()\n"})
    worker, _ = deployed.call(name, {})

    deployed.functions.delete_function(FunctionName=name)

    assert not is_alive(worker)


def test_a_mapping_leaves_the_messages_in_the_queue(deployed: Deployed) -> None:
    sqs = deployed.cloud.client("sqs")
    url = sqs.create_queue(QueueName=deployed.name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    name = deployed.function("mapped", {"index.py": ECHO})
    deployed.functions.create_event_source_mapping(EventSourceArn=arn, FunctionName=name)

    sqs.send_message(QueueUrl=url, MessageBody="mine")

    (message,) = sqs.receive_message(QueueUrl=url, AttributeNames=["All"])["Messages"]
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"


# jobs


def test_a_job_sees_its_arguments_and_the_runs_and_none_of_glues_own(deployed: Deployed, tmp_path: Path) -> None:
    defaults = {"--profile": "aws", "--topics": "[]", "--extra-jars": "s3://b/k.jar", "--enable-metrics": "true"}
    job = deployed.job("sees", RECORDED, DefaultArguments={**defaults, "--to": str(tmp_path / "seen")})

    run_id = deployed.start(job, topics='["events"]')
    run = deployed.ended(job, run_id)

    assert run["JobRunState"] == "SUCCEEDED"
    assert "ErrorMessage" not in run
    seen = json.loads((tmp_path / "seen").read_text())
    named = dict(zip(seen[::2], seen[1::2], strict=True))
    assert named == {
        "--JOB_NAME": job,
        "--JOB_RUN_ID": run_id,
        "--profile": "aws",
        "--topics": '["events"]',
        "--to": str(tmp_path / "seen"),
    }


def test_files_that_a_job_asks_for_lie_beside_its_script(deployed: Deployed) -> None:
    deployed.objects.client("s3").put_object(Bucket=deployed.bucket, Key="artifacts/1/own.toml", Body=b"a = 1")
    script = "assert open('own.toml').read() == 'a = 1'\n"
    job = deployed.job(
        "files", script, DefaultArguments={"--extra-files": f"s3://{deployed.bucket}/artifacts/1/own.toml"}
    )

    assert deployed.ended(job, deployed.start(job))["JobRunState"] == "SUCCEEDED"


def test_a_job_that_fails_says_how_and_why(deployed: Deployed) -> None:
    job = deployed.job("fails", "import sys\nprint('first', file=sys.stderr)\nsys.exit('orders: no table')\n")

    run = deployed.ended(job, deployed.start(job))

    assert (run["JobRunState"], run["ErrorMessage"]) == ("FAILED", "exit code 1: orders: no table")


def test_a_job_without_its_script_fails(deployed: Deployed) -> None:
    job = deployed.job("lost", "")
    deployed.objects.client("s3").delete_object(Bucket=deployed.bucket, Key="artifacts/1/lost.py")

    run = deployed.ended(job, deployed.start(job))

    assert run["JobRunState"] == "FAILED"
    assert "404" in run["ErrorMessage"]


def test_a_job_that_takes_too_long_times_out_and_its_process_is_gone(deployed: Deployed, tmp_path: Path) -> None:
    job = deployed.job("long", _sleeper(tmp_path / "pid"), Timeout=10)  # two Pythons start in that time

    run = deployed.ended(job, deployed.start(job))

    assert run["JobRunState"] == "TIMEOUT"
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_a_stopped_run_ends_and_its_process_is_gone(deployed: Deployed, tmp_path: Path) -> None:
    job = deployed.job("stopped", _sleeper(tmp_path / "pid"))
    run_id = deployed.start(job)
    wait_until((tmp_path / "pid").is_file)

    answer = deployed.glue.batch_stop_job_run(JobName=job, JobRunIds=[run_id, "jr_unknown"])

    assert [done["JobRunId"] for done in answer["SuccessfulSubmissions"]] == [run_id]
    assert [error["JobRunId"] for error in answer["Errors"]] == ["jr_unknown"]
    assert deployed.ended(job, run_id)["JobRunState"] == "STOPPED"
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_a_job_has_no_more_runs_than_it_may_and_the_machine_no_more_than_it_can(
    deployed: Deployed, tmp_path: Path
) -> None:
    job = deployed.job("many", _sleeper(tmp_path / "pid"), most_runs=JOBS_AT_A_TIME + 1)
    run_ids = [deployed.start(job) for _ in range(JOBS_AT_A_TIME + 1)]

    with pytest.raises(ClientError) as refused:
        deployed.start(job)
    states = lambda: sorted(deployed.run(job, run_id)["JobRunState"] for run_id in run_ids)  # noqa: E731
    wait_until(lambda: states() == ["RUNNING"] * JOBS_AT_A_TIME + ["STARTING"])
    deployed.glue.batch_stop_job_run(JobName=job, JobRunIds=run_ids)

    assert refused.value.response["Error"]["Code"] == "ConcurrentRunsExceededException"
    wait_until(lambda: states() == ["STOPPED"] * (JOBS_AT_A_TIME + 1))


def _sleeper(pid: Path) -> str:
    return f"""
import os, pathlib, time
draft = pathlib.Path({str(pid)!r} + str(os.getpid()))
draft.write_text(str(os.getpid()))
draft.replace({str(pid)!r})
time.sleep(600)
"""


# the rest of it


def test_an_update_of_an_older_version_of_a_table_is_refused(deployed: Deployed) -> None:
    table = {"Name": "events", "TableType": "EXTERNAL_TABLE"}
    deployed.glue.create_database(DatabaseInput={"Name": deployed.name})
    deployed.glue.create_table(DatabaseName=deployed.name, TableInput=table)
    read = deployed.glue.get_table(DatabaseName=deployed.name, Name="events")["Table"]["VersionId"]
    deployed.glue.update_table(DatabaseName=deployed.name, TableInput=table, VersionId=read)

    with pytest.raises(ClientError) as refused:
        deployed.glue.update_table(DatabaseName=deployed.name, TableInput=table, VersionId=read)

    assert refused.value.response["Error"]["Code"] == "ConcurrentModificationException"


def without_the_first_answer(client: Any, operation: str) -> list[int]:
    """From now on the first answer to this operation gets lost; the list gets its status."""
    lost: list[int] = []

    def lose_the_first(request: Any, **_: Any) -> None:
        if not lost:
            lost.append(URLLib3Session().send(request).status_code)
            raise ConnectionClosedError(endpoint_url=request.url)

    client.meta.events.register(f"before-send.{operation}", lose_the_first)
    return lost


def test_a_call_whose_answer_got_lost_is_answered_when_it_is_tried_again(deployed: Deployed) -> None:
    iam = deployed.cloud.client("iam")
    lost = without_the_first_answer(iam, "iam.CreateRole")
    role = {"RoleName": f"{deployed.name}-lost", "AssumeRolePolicyDocument": "{}"}

    assert iam.create_role(**role)["Role"]["RoleName"] == role["RoleName"]
    assert lost == [200]
    with pytest.raises(ClientError, match="already exists"):
        iam.create_role(**role)


def test_a_function_whose_answer_got_lost_is_made_once(deployed: Deployed) -> None:
    lost = without_the_first_answer(deployed.functions, "lambda.CreateFunction")
    name = deployed.function("lost", {"index.py": ECHO})

    assert lost == [201]
    assert deployed.call(name, 1) == ({"event": 1, "told": None}, None)


def test_a_call_that_is_tried_again_while_it_runs_runs_once(deployed: Deployed, tmp_path: Path) -> None:
    code = f"""
import time
def handler(event, context):
    time.sleep(2)
    with open({str(tmp_path / "calls")!r}, "a") as calls: calls.write("called ")
"""
    name = deployed.function("slow", {"index.py": code})
    tries: list[Any] = []

    def send_it_twice(request: Any, **_: Any) -> None:
        with ThreadPoolExecutor(2) as pool:
            tries.extend(pool.map(lambda _: URLLib3Session().send(request).status_code, range(2)))

    deployed.functions.meta.events.register("before-send.lambda.Invoke", send_it_twice)
    deployed.call(name, {})

    assert tries == [200, 200]
    assert (tmp_path / "calls").read_text() == "called "


def test_roles_that_are_made_at_the_same_time_are_all_there(deployed: Deployed) -> None:
    names = [f"{deployed.name}-{number}" for number in range(200)]
    iam = deployed.cloud.client("iam")
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda name: iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}"), names))

    pages = iam.get_paginator("list_roles").paginate()
    assert set(names) <= {role["RoleName"] for page in pages for role in page["Roles"]}


def test_terraform_is_told_of_a_machine_what_it_has_said_of_it(deployed: Deployed) -> None:
    states = deployed.cloud.client("stepfunctions")
    definition = json.dumps({"StartAt": "A", "States": {"A": {"Type": "Succeed"}}})
    said = {
        "loggingConfiguration": {
            "level": "ERROR",
            "includeExecutionData": False,
            "destinations": [{"cloudWatchLogsLogGroup": {"logGroupArn": "arn:aws:logs:eu-central-1:1:log-group:a:*"}}],
        },
        "tracingConfiguration": {"enabled": True},
        "encryptionConfiguration": {
            "type": "CUSTOMER_MANAGED_KMS_KEY",
            "kmsKeyId": "arn:aws:kms:eu-central-1:123456789012:key/a",
            "kmsDataKeyReusePeriodSeconds": 300,
        },
    }
    made = states.create_state_machine(name=deployed.name, definition=definition, roleArn=deployed.role, **said)
    arn = made["stateMachineArn"]

    shown = states.describe_state_machine(stateMachineArn=arn)

    assert {name: shown[name] for name in said} == said
    assert states.list_state_machine_versions(stateMachineArn=arn)["stateMachineVersions"] == []
    assert states.validate_state_machine_definition(definition=definition)["result"] == "OK"
    broken = json.dumps({"StartAt": "A", "States": {"A": {"Type": "Wrong"}}})
    assert states.validate_state_machine_definition(definition=broken)["result"] == "FAIL"


@pytest.mark.parametrize(
    ("whom", "end"), [("itself", signal.SIGTERM), ("itself", signal.SIGKILL), ("its guard", signal.SIGKILL)]
)
def test_it_ends_with_all_that_it_has_started(whom: str, end: int, tmp_path: Path, seaweed: Server) -> None:
    folder = tmp_path / "cloud"
    folder.mkdir()
    deployed = Deployed(start_cloud(folder, [seaweed]), folder, seaweed)
    try:
        tell = "import os\ndef handler(event, context):\n    return os.getpid()\n"
        worker, _ = deployed.call(deployed.function("worker", {"index.py": tell}), {})
        job = deployed.job("job", _sleeper(tmp_path / "pid"))
        deployed.start(job)
        wait_until((tmp_path / "pid").is_file)
        started = [worker, int((tmp_path / "pid").read_text())]
        assert all(map(is_alive, started))

        guard = deployed.cloud.process.guard.pid
        os.kill(guard if whom == "its guard" else children(guard)[0], end)

        assert eventually(lambda: not any(map(is_alive, started)), 30)
    finally:
        deployed.cloud.stop()


def test_without_a_guard_it_ends_when_it_is_asked_to_or_its_starter_is_gone(tmp_path: Path) -> None:
    main = Path(__file__).resolve().parents[2] / "aws_local" / "cloud_main.py"
    command = [sys.executable, "-I", str(main), "--folder", str(tmp_path)]
    asked = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert asked.stdout is not None
    assert b"listening" in asked.stdout.readline()
    asked.terminate()
    assert asked.wait(30) == 0
    asked.stdout.close()

    start = f"""
import subprocess
cloud = subprocess.Popen({command!r}, stdout=subprocess.PIPE)
cloud.stdout.readline()
print(cloud.pid)
"""
    left = int(subprocess.run([sys.executable, "-c", start], check=True, capture_output=True, timeout=300).stdout)
    assert eventually(lambda: not is_alive(left), 30)
