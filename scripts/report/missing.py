"""What to do about a Python that lacks a package."""

import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1]


def missing(error: ImportError) -> str:
    if (SCRIPTS / "install-deps").exists():
        remedy = "run scripts/install-deps"
    else:  # installed
        own = "" if error.name == "pyarrow" else "apt install python3-matplotlib, or "
        remedy = f"{own}set PATCHBAY_PYTHON to a Python that has what {SCRIPTS}/requirements-report.txt names"
    return f"{error.name or error} is missing for {sys.executable}: {remedy}"
