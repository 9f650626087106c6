"""Third-party headers and libraries for a machine that has none and can fetch none: those that a build of this tree uses,
copied out of the Debian packages here, in one archive."""
import glob
import os
import re
import shutil
import subprocess
import tarfile
import tempfile

LIBRARIES = "usr/lib/x86_64-linux-gnu"
LARGEST = 24 << 20  # bytes of the archive: with the tree it is to stay under 64 MiB
ARCHIVE = "third-party.tar.xz"
# What the target has: its own compiler and C library.
OF_THE_SYSTEM = re.compile(r"^/usr/(include/(c\+\+|x86_64-linux-gnu/(bits|sys|gnu|asm|c\+\+)|linux|asm|bits)/|lib/gcc/)")
PACKAGES_OF_THE_SYSTEM = {"libc6-dev", "libc6", "linux-libc-dev", "libstdc++6", "libgcc-s1"}


def packages(root):
    """The -dev packages that scripts/install-deps names, and the tool that reads their .pc files."""
    text = open(os.path.join(root, "scripts/install-deps")).read()
    names = re.search(r"packages=\(([^)]*)\)", text).group(1).split()
    return [n for n in names if n.startswith("lib") or n.endswith("-dev")] + ["pkgconf-bin", "libpkgconf3"]


def with_dependencies(names):
    """The packages and the libraries that they are linked to."""
    found, ahead = set(), list(names)
    while ahead:
        name = ahead.pop()
        if name in found or name in PACKAGES_OF_THE_SYSTEM:
            continue
        shown = subprocess.run(["dpkg-query", "-W", "-f=${Status}\t${Depends}", name], capture_output=True, text=True)
        if "ok installed" not in shown.stdout:
            continue
        found.add(name)
        for part in shown.stdout.split("\t", 1)[1].split(","):
            other = part.split("|")[0].split("(")[0].strip().split(":")[0]
            if other.startswith("lib") or other.startswith("zlib"):
                ahead.append(other)
    return found


def used_headers(build):
    """Headers of the system that the objects of a finished build were made from, as ninja remembers them."""
    shown = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    paths = {os.path.abspath(os.path.join(build, line.strip())) for line in shown.splitlines() if line[:1] == " "}
    return {p for p in paths if p.startswith("/usr/include/")}


def wanted(path, headers):
    """Whether a file of a package goes into the bundle."""
    if OF_THE_SYSTEM.match(path) or not os.path.exists(path) or os.path.isdir(path):
        return False
    if path.startswith("/usr/include/boost/"):  # thousands: those alone that are used
        return path in headers
    if path.startswith("/usr/include/"):
        return True
    if path.startswith("/usr/bin/pkgconf"):
        return True
    if not path.startswith(("/" + LIBRARIES, "/lib/x86_64-linux-gnu", "/usr/lib/lib")):
        return path.startswith(("/usr/lib/cmake", "/usr/share/cmake", "/usr/share/pkgconfig", "/usr/share/nlohmann"))
    if path.endswith(".a"):  # only where there is nothing else to link
        return not os.path.exists(path[:-2] + ".so")
    return ".so" in os.path.basename(path) or "/cmake/" in path or "/pkgconfig/" in path


def make(root, build, out):
    headers = used_headers(build)
    if not headers:
        raise SystemExit(f"gpu-check: {build} holds no finished build; run scripts/test first, or say --build FOLDER")
    with tempfile.TemporaryDirectory() as folder:
        count = 0
        for name in sorted(with_dependencies(packages(root))):
            for path in subprocess.run(["dpkg", "-L", name], capture_output=True, text=True).stdout.split("\n"):
                if not path or not wanted(path, headers):
                    continue
                to = os.path.join(folder, "usr" + path if path.startswith("/lib/") else path.lstrip("/"))
                os.makedirs(os.path.dirname(to), exist_ok=True)
                if os.path.islink(path) and not path.startswith("/usr/include"):
                    if not os.path.lexists(to):
                        os.symlink(os.path.basename(os.readlink(path)), to)
                else:
                    shutil.copy(path, to)
                count += 1
        for path in headers:  # made by a package's scripts, or of a package that nothing names
            to = os.path.join(folder, path.lstrip("/"))
            if not OF_THE_SYSTEM.match(path) and not os.path.exists(to) and "/cuda" not in path:
                os.makedirs(os.path.dirname(to), exist_ok=True)
                shutil.copy(path, to)
                count += 1
        for library in glob.glob(os.path.join(folder, LIBRARIES, "*.so.*")):
            if not os.path.islink(library):
                subprocess.run(["strip", "--strip-debug", library], check=False)
        os.makedirs(out, exist_ok=True)
        archive = os.path.join(out, ARCHIVE)
        with tarfile.open(archive, "w:xz", preset=6) as tar:
            tar.add(folder, arcname=".")
    size = os.path.getsize(archive)
    if size > LARGEST:
        raise SystemExit(f"gpu-check: {archive} has {size >> 20} MiB, expected at most {LARGEST >> 20}")
    print(f"gpu-check: {archive}: {count} files, {size / (1 << 20):.1f} MiB")


def unpack(bundle, to):
    archive = os.path.join(bundle, ARCHIVE)
    if not os.path.exists(archive):
        raise SystemExit(f"gpu-check: no {ARCHIVE} in {bundle}; make it where there is a network, by --bundle {bundle}")
    stamp = os.path.join(to, "unpacked")
    seen = f"{os.path.getsize(archive)} {os.path.getmtime(archive)}"
    if os.path.exists(stamp) and open(stamp).read() == seen:
        return
    shutil.rmtree(to, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(to)
    # .pc files and CMake's name absolute folders of the machine that they come from.
    for folder, _, names in os.walk(to):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith((".pc", ".cmake")) and not os.path.islink(path):
                text = open(path, errors="surrogateescape").read()
                changed = re.sub(r'(?<![\w./}])/usr/(include|lib)', lambda m: f"{to}/usr/{m.group(1)}", text)
                changed = re.sub(r"^prefix=/usr$", f"prefix={to}/usr", changed, flags=re.M)
                if changed != text:
                    open(path, "w", errors="surrogateescape").write(changed)
                # Programs and static libraries that nothing here uses, yet CMake wants them to be there.
                for named in re.findall(r"\$\{_IMPORT_PREFIX\}/((?:bin|lib)/[\w./+-]+)", text):
                    missing = os.path.join(to, "usr", named)
                    if not os.path.lexists(missing):
                        os.makedirs(os.path.dirname(missing), exist_ok=True)
                        open(missing, "w").close()
    open(stamp, "w").write(seen)
