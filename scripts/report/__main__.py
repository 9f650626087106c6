"""Makes report.html from a results database: python3 scripts/report results/NAME/results.sqlite [--out FILE]

Needs matplotlib (scripts/requirements-report.txt). `patchbay report` and the end of `patchbay run` call it.
"""

import argparse
import os
import sqlite3
import sys
import tempfile
from pathlib import Path

from missing import missing


def write_whole(path: Path, text: str) -> None:
    """All or nothing, so that a full disk leaves no half report."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="report", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("database", type=Path, help="results.sqlite, or the folder that holds it")
    parser.add_argument("--out", type=Path, help="default: report.html beside the database")
    args = parser.parse_args()
    database = args.database / "results.sqlite" if args.database.is_dir() else args.database
    out = args.out or database.parent / "report.html"
    try:
        import page
        import results
    except ImportError as error:
        print(f"report: {missing(error)}", file=sys.stderr)
        return 1
    try:
        write_whole(out, page.page(results.read(database)))
    except (results.BadDatabase, sqlite3.DatabaseError, OSError) as error:
        print(f"report: cannot make {out}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
