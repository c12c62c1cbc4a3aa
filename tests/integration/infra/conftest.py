"""Terraform is tried against moto; once for all tests of a worker."""

from tests.integration.infra.applied import applied, storage
from tests.servers.fixtures import moto

__all__ = ["applied", "moto", "storage"]
