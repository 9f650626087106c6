"""What a machine with a GPU is to be given if it can fetch nothing: third-party headers and libraries to build with, copied
out of the Debian packages here; or the programs themselves, built here, with the libraries that they load."""
import glob
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile

LIBRARIES = "usr/lib/x86_64-linux-gnu"
LARGEST = 21 << 20  # bytes of the archive: with the tree it is to stay under 64 MiB
ARCHIVE = "third-party.tar.xz"
PROGRAMS = "programs.tar.xz"
BUILT = ("patchbay", "patchbay-probe", "test_cuda_gpu", "bench_cuda_kernels", "golden_test")
# Libraries that every Linux with a compiler has, in a version at least as new as Debian 12's.
EVERYWHERE = re.compile(r"^(ld-linux|libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s)[-.]")
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
        pack(folder, os.path.join(out, ARCHIVE), count)


def pack(folder, archive, count):
    os.makedirs(os.path.dirname(archive) or ".", exist_ok=True)
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        tar.add(folder, arcname=".")
    size = os.path.getsize(archive)
    if size > LARGEST:
        raise SystemExit(f"gpu-check: {archive} has {size >> 20} MiB, expected at most {LARGEST >> 20}")
    print(f"gpu-check: {archive}: {count} files, {size / (1 << 20):.1f} MiB")


def loaded_libraries(files):
    """Libraries of the system's packages that programs and plugins load, those of the C library and of CUDA left out."""
    shown = subprocess.run(["ldd", *files], capture_output=True, text=True).stdout
    paths = {found.group(1) for found in re.finditer(r"=> (/(?:usr/)?lib/\S+)", shown)}
    return sorted(p for p in paths if not EVERYWHERE.match(os.path.basename(p)))


def make_programs(root, build, out):
    """Programs and plugins of a finished build with the CUDA device, and what they load."""
    programs = [os.path.join(build, "bin", name) for name in BUILT]
    plugins = sorted(glob.glob(os.path.join(build, "lib/patchbay/plugins/*.so")))
    missing = [p for p in programs if not os.path.exists(p)]
    if missing or not any(p.endswith("device-cuda.so") for p in plugins):
        raise SystemExit(f"gpu-check: {build} has no {(missing or ['device-cuda.so'])[0]}; build it with the CUDA device first: "
                         f"cmake --preset release && ninja -C build/release patchbay all_plugins {' '.join(BUILT[2:])}")
    with tempfile.TemporaryDirectory() as folder:
        copies = [(p, os.path.join("build", os.path.relpath(p, build))) for p in programs + plugins]
        copies += [(p, os.path.join("third-party", LIBRARIES, os.path.basename(p)))
                   for p in loaded_libraries(programs + plugins)]
        for path, place in copies:
            to = os.path.join(folder, place)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(path, to)
            subprocess.run(["strip", to], check=True)
        with open(os.path.join(folder, "build", "built-in.json"), "w") as file: # where tests look for their files
            json.dump({"root": os.path.abspath(root), "build": os.path.abspath(build)}, file)
        pack(folder, os.path.join(out, PROGRAMS), len(copies))


def unpack_programs(bundle, root, work):
    """Whether the bundle has programs, which then lie in `work` as a build would have left them there. Tests know the
    folders of the machine that built them: if this one has nothing there, links lead from there to the ones here."""
    archive = os.path.join(bundle, PROGRAMS)
    if not os.path.exists(archive):
        return False
    with tarfile.open(archive) as tar:
        tar.extractall(work)
    build = os.path.join(work, "build")
    with open(os.path.join(build, "built-in.json")) as file:
        built = json.load(file)
    for there, here in ((built["root"], root), (built["build"], build)):
        if not os.path.lexists(there):
            os.makedirs(os.path.dirname(there), exist_ok=True)
            os.symlink(here, there)
            print(f"gpu-check: {there} is a link to {here} now, for the tests' sake")
    return True


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
