"""For every tier: properties have no deadline, because machines are noisy, and CI tries the same examples each time."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("lean-ops", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("lean-ops"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "lean-ops")
