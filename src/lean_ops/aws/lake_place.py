"""The lake's catalog on AWS by settings: the Glue Data Catalog, or any Iceberg REST catalog."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Final

from lean_ops.aws.clients import Limits, glue_client, s3_client
from lean_ops.aws.glue_tables import GlueTables
from lean_ops.lake.cloud_place import CloudPlace, rest_login
from lean_ops.model.errors import WrongUseError

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from pyiceberg.catalog import Catalog

    from lean_ops.settings import Settings

# A table of a thousand columns takes Glue a while.
_PATIENT: Final = Limits(read_seconds=15.0, attempts=4)


def use_region(region: str | None, environ: MutableMapping[str, str] | None = None) -> None:
    """Make a region known to every library of this process that talks to AWS: boto3, pyiceberg and Arrow's own SDK.

    They only agree if it is in the environment, where Lambda has put it already.
    """
    environ = os.environ if environ is None else environ
    chosen = region or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or _configured_region()
    if not chosen:
        remedy = "Set LEAN_OPS_REGION or AWS_REGION, or write `region` into lean-ops.toml."
        raise WrongUseError("no AWS region is known", where="key 'region'", remedy=remedy)
    environ["AWS_REGION"] = environ["AWS_DEFAULT_REGION"] = chosen


def _configured_region() -> str | None:
    import boto3

    return boto3.Session().region_name


def catalog_place(name: str, settings: Settings) -> CloudPlace:
    """Where the catalog is; nothing is connected yet."""
    if settings.catalog == "rest":
        return _rest_place(name, settings.given("catalog_uri"), settings.given("warehouse"), rest_login(settings))
    return _glue_place(name, settings.given("warehouse"))


def _glue_place(name: str, warehouse: str) -> CloudPlace:
    glue = glue_client(_PATIENT)
    tables = GlueTables(glue, s3_client())

    def open_catalog() -> Catalog:
        from lean_ops.aws.glue_catalog import LakeGlueCatalog
        from lean_ops.lake.object_store import io_properties

        return LakeGlueCatalog(name, glue, warehouse, io_properties())

    return CloudPlace(tables, open_catalog, warehouse, tables.metadata_files)


def _rest_place(name: str, uri: str, warehouse: str, more: dict[str, str]) -> CloudPlace:
    """Where tables lie is the catalog's own affair; more of its settings come by pyiceberg's own variables."""
    from lean_ops.lake.catalog_tables import CatalogTables
    from lean_ops.lake.object_store import io_properties, read_object

    @cache
    def open_catalog() -> Catalog:
        from pyiceberg.catalog import load_catalog

        kind = {"py-catalog-impl": "lean_ops.lake.rest_catalog.LakeRestCatalog"}
        return load_catalog(name, uri=uri, warehouse=warehouse, **kind, **more, **io_properties())

    return CloudPlace(CatalogTables(open_catalog, read_object), open_catalog, None, lambda _: ())
