"""Terraform is tried against moto; once for all tests, whichever worker they are in."""

from tests.integration.infra.applied import applied, roots, storage
from tests.servers.fixtures import moto

__all__ = ["applied", "moto", "roots", "storage"]
