"""Topics with an open gate and messages in RAW: python begin.py FOLDER TOPIC…

In a process of its own, because the tables keep the paths that the folder has for it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.e2e.faults.damaged_home import DamagedHome

if __name__ == "__main__":
    DamagedHome(Path(sys.argv[1])).begin(dict.fromkeys(sys.argv[2:], ("standardized", "curated")))
