"""Step Functions that executes, with what moto's lacks for our machines and for Terraform.

What differs from AWS: groups of a Distributed Map have the execution id of the whole, and any share of failed groups
is tolerated, whatever the definition says.
"""

from __future__ import annotations

import json
import uuid
from typing import Any, Final

from moto.core.config import default_user_config
from moto.core.responses import ActionResult
from moto.stepfunctions.parser.api import ExecutionStatus, InvalidDefinition
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_aws_sdk import (
    StateTaskServiceAwsSdk,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_glue import (
    StateTaskServiceGlue,
)
from moto.stepfunctions.parser.backend.execution import Execution
from moto.stepfunctions.parser.models import StepFunctionsParserBackend
from moto.stepfunctions.responses import StepFunctionResponse

_start_execution: Final = StepFunctionsParserBackend.start_execution


def install() -> None:
    """State machines are executed from now on."""
    default_user_config["stepfunctions"] = {"execute_state_machine": True}
    StepFunctionsParserBackend.start_execution = _start_named_execution
    # Between being listed and being started an execution has no status, and asking for it is an error.
    Execution.status = property(lambda self: (self.exec_status or ExecutionStatus.RUNNING).value)
    StepFunctionResponse.validate_state_machine_definition = _validate_definition
    StepFunctionResponse.list_state_machine_versions = _list_versions
    StateTaskServiceGlue._eval_integration_pattern = _wait_for_job
    StateTaskServiceAwsSdk._normalise_parameters = _asked_as_boto_spells
    StateTaskServiceAwsSdk._normalise_response = _answered_as_states_spell


def _start_named_execution(self: StepFunctionsParserBackend, state_machine_arn: str, name: Any, *given: Any) -> Any:
    """An execution that nobody named has a name of its own; moto calls all of them None."""
    return _start_execution(self, state_machine_arn, name or str(uuid.uuid4()), *given)


# what Terraform asks for


def _validate_definition(self: StepFunctionResponse) -> ActionResult:
    problem = _problem_of(self._get_param("definition"))
    told = [{"severity": "ERROR", "code": "INVALID_DEFINITION", "message": problem}] if problem else []
    return ActionResult({"result": "FAIL" if told else "OK", "diagnostics": told, "truncated": False})


def _problem_of(definition: str) -> str | None:
    try:
        json.loads(definition)
        StepFunctionsParserBackend._validate_definition(definition)
    except (ValueError, InvalidDefinition) as error:
        return str(error)[:500] or "it can't be parsed"
    return None


def _list_versions(self: StepFunctionResponse) -> ActionResult:
    machine: Any = self.stepfunction_backend.describe_state_machine(self._get_param("stateMachineArn"))
    newest_first = sorted(machine.versions.values(), key=lambda one: int(one.version), reverse=True)
    shown = [{"stateMachineVersionArn": one.arn, "creationDate": one.creation_date} for one in newest_first]
    return ActionResult({"stateMachineVersions": shown})


# a job that a task waits for


def _wait_for_job(
    self: StateTaskServiceGlue,
    env: Any,
    resource_runtime_part: Any,
    normalised_parameters: dict[str, Any],
    state_credentials: Any,
) -> None:
    """Wait for the job that was started; one whose task has timed out or was stopped is ended, as on AWS.

    moto would do this too, were it not that it also looks for a task token, which a job has not.
    """
    begun: dict[str, str] = env.stack[-1]
    given = (env, resource_runtime_part, normalised_parameters, state_credentials)
    result = self._eval_sync(env, self._build_sync_resolver(*given), None, None, None)
    if result is None:
        glue = self._get_glue_client(resource_runtime_part, state_credentials)
        glue.batch_stop_job_run(JobName=begun["JobName"], JobRunIds=[begun["JobRunId"]])
    env.stack.append(result)


# aws-sdk integrations: names begin with capitals, whatever the service's own API has


def _asked_as_boto_spells(self: StateTaskServiceAwsSdk, parameters: dict[str, Any], *_: object) -> None:
    self._to_boto_request(parameters, _shapes(self).input_shape)


def _answered_as_states_spell(self: StateTaskServiceAwsSdk, response: Any, *_: object) -> None:
    self._from_boto_response(response, _shapes(self).output_shape)
    _spell_times(response)


def _shapes(task: StateTaskServiceAwsSdk) -> Any:
    from botocore.session import get_session

    model = get_session().get_service_model(task._get_boto_service_name())
    action = task.resource.api_action
    return model.operation_model(f"{action[0].upper()}{action[1:]}")


def _spell_times(value: Any) -> None:
    """Times as text, in place: what a state hands on is JSON."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(parts):
        if hasattr(part, "isoformat"):
            value[key] = part.isoformat()
        else:
            _spell_times(part)
