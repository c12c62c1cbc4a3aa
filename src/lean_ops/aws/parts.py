"""The product's parts on AWS, by settings; each is made when it is first asked for, and nothing is connected before."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from lean_ops.aws.athena_views import AthenaViews
from lean_ops.aws.clients import dynamodb_client, glue_client, s3_client, secrets_client
from lean_ops.aws.lake_place import catalog_place, use_region
from lean_ops.aws.schema_objects import S3SchemaFiles
from lean_ops.aws.secrets import pii_key
from lean_ops.state.dynamodb import DynamoStateStore
from lean_ops.state.dynamodb_tables import DynamoTables

if TYPE_CHECKING:
    from lean_ops.lake.cloud_place import CloudPlace
    from lean_ops.settings import Settings


class AwsParts:
    """State, catalog and schema files of one environment."""

    def __init__(self, settings: Settings) -> None:
        use_region(settings.region)
        self._settings = settings

    @cached_property
    def state(self) -> DynamoStateStore:
        """Checkpoints, leases and the registry in DynamoDB."""
        tables = DynamoTables.of(self._settings.project, self._settings.given("environment"))
        return DynamoStateStore(dynamodb_client(), tables, self._settings.lease_seconds)

    def place(self, catalog_name: str) -> CloudPlace:
        """Where the catalog is."""
        return catalog_place(catalog_name, self._settings)

    def pii_key(self) -> str:
        """The key of `pii: hash`, from its secret."""
        return pii_key(secrets_client(), self._settings.given("pii_key_secret_arn"))

    @cached_property
    def athena_views(self) -> AthenaViews:
        """Views in the Glue catalog."""
        return AthenaViews(glue_client())

    @cached_property
    def schema_files(self) -> S3SchemaFiles:
        """The schema files in their bucket."""
        return S3SchemaFiles(s3_client(), self._settings.given("schema_bucket"))
