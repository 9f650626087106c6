"""A virtual environment with pinned packages, for the comparisons in this folder."""

import os
import pathlib
import subprocess
import sys


def into_environment(script, folder, requirements):
    """Runs the script again, under a Python that has the packages, unless this one is that Python."""
    python, noted = folder / "bin" / "python", folder / "installed.txt"
    if not noted.exists() or noted.read_text() != requirements.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", requirements], check=True)
        noted.write_text(requirements.read_text())
    if pathlib.Path(sys.prefix) != folder:
        os.execv(python, [python, script, *sys.argv[1:]])
    # A script here may have the name of a package that it uses.
    sys.path.remove(str(pathlib.Path(script).resolve().parent))
