"""Writes a table of a results database as Parquet: parquet.py DATABASE TABLE --out FILE

Needs pyarrow (scripts/requirements-report.txt). `patchbay runs export --format parquet` calls it.
"""

import argparse
import os
import sqlite3
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from missing import missing

ROWS = 100_000  # of a row group


@contextmanager
def replacing(out: Path):
    """A file beside `out` that takes its place when it is whole; a device or a pipe is written to itself."""
    if out.exists() and not out.is_file():
        yield out
        return
    out = out.resolve()  # what a link leads to
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as folder:
        part = Path(folder) / out.name
        yield part
        os.replace(part, out)


def export(database: Path, table: str, out: Path) -> str | None:
    """What is wrong, or None."""
    import pyarrow
    import pyarrow.parquet

    with sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True) as db:
        names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        if table not in names:
            return f"no table '{table}', there are {', '.join(names)}"
        kinds = {"INTEGER": pyarrow.int64(), "REAL": pyarrow.float64(), "BLOB": pyarrow.binary()}
        columns = [(row[1], kinds.get(row[2], pyarrow.string())) for row in db.execute(f'PRAGMA table_info("{table}")')]
        schema = pyarrow.schema(columns)
        rows = db.execute(f'SELECT * FROM "{table}"')
        try:
            with replacing(out) as part, pyarrow.parquet.ParquetWriter(part, schema, compression="zstd") as writer:
                while some := rows.fetchmany(ROWS):
                    arrays = [pyarrow.array(column, kind) for column, (_, kind) in zip(zip(*some), columns)]
                    writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
        except pyarrow.ArrowException as error:
            return f"cannot export table '{table}' of {database}: {error}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="parquet", description=__doc__)
    parser.add_argument("database", type=Path)
    parser.add_argument("table")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    try:
        wrong = export(args.database, args.table, args.out)
    except ImportError as error:
        wrong = missing(error)
    except (sqlite3.Error, OSError) as error:
        wrong = f"cannot export {args.database}: {error}"
    if wrong:
        print(f"parquet: {wrong}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
