#!/bin/sh
# run.sh PATCHBAY TEST.py: runs a test of this folder with the Python that `patchbay report` would take; exits with 77 to be skipped.
here=$(cd "$(dirname "$0")" && pwd)
python=${PATCHBAY_PYTHON:-$here/../../.venv/bin/python3}
if ! "$python" -c 'import matplotlib' 2>/dev/null; then
    echo "skipped: no Python with matplotlib at $python (scripts/install-deps makes .venv)"
    exit 77
fi
PATCHBAY=$1 exec "$python" -B "$here/$2"
