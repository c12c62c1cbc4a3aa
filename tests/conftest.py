"""For every tier: properties have no deadline, because machines are noisy, and CI tries the same examples each time.

Programs that tests start listen to signals, also where a shell has started the tests in the background and turned some
of them off: a program inherits that from whoever starts it.
"""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile("lean-ops", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("lean-ops"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "lean-ops")

for number, heard in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, heard)
