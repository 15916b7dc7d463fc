"""What a hostile or broken candidate does ends in a verdict, harms nothing, and leaves nothing running.

All of it through the real sandbox, with PyTorch on the CPU in place of a GPU.
"""

from __future__ import annotations

import os
import socket
import textwrap
import time
from pathlib import Path

import pytest
from conftest import candidate

from workbench.candidate import Verdict
from workbench.judge.isolation import sandbox, watchdog
from workbench.judge.judge import Judge

RIGHT = "def scale(x):\n    return x * 2 + 1\n"

needs_sandbox = pytest.mark.skipif(not sandbox.detect().sandboxed, reason=f"no sandbox here: {sandbox.detect().mend}")


def judged(judge, source):
    return judge.evaluate(candidate(textwrap.dedent(source), "scale"), {}, id="k1.0")


def passes(evaluation):
    """Right, as far as a clock on a busy machine can confirm it."""
    return evaluation.verdict in (Verdict.RIGHT, Verdict.TIME_NOT_CONFIRMED)


@pytest.fixture(autouse=True)
def nothing_is_left(host_judge):
    """After each: only the spare workers and the one that does nothing run, and the next candidate is judged as if nothing had been."""
    before = set(watchdog.tree(os.getpid()))
    yield
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        names = [_command(pid) for pid in watchdog.tree(os.getpid())[1:] if pid not in before]
        strays = [name for name in names if name and "boot.py" not in name and "bwrap" not in name]
        workers = host_judge._pool.alive
        if not strays and workers <= 4:
            return
        time.sleep(0.1)
    raise AssertionError(f"left running: {strays}, {workers} workers")


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def test_a_right_candidate_passes_all_stages(host_judge):
    found = judged(host_judge, RIGHT)
    assert passes(found), found.reason
    assert list(found.stage_ms) == ["text", "build", "run", "correctness", "timing"]
    assert found.timing is not None and found.timing.calls == 15 and found.timing.blocks == 3 and not found.timing.modelled
    assert found.error_ratio is not None and found.error_ratio <= 1 and found.matched == 1.0
    assert "no kernel of its own" in found.labels


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("import os\n    os._exit(0)", "exit status 0"),
        ("import os\n    os._exit(7)", "exit status 7"),
        ("import ctypes\n    ctypes.string_at(0)", "SIGSEGV"),
        ("import os, signal\n    os.kill(os.getpid(), signal.SIGABRT)", "SIGABRT"),
        ("raise SystemExit(0)", "SystemExit"),
        ("return undefined_name", "line 2: `return undefined_name`"),
    ],
)
def test_crashes_are_named(host_judge, body, words):
    found = judged(host_judge, f"def scale(x):\n    {body}\n")
    assert found.verdict is Verdict.CRASHED and words in found.reason, found.reason


@pytest.mark.parametrize(("times", "verdict"), [(1, Verdict.RIGHT), (2, Verdict.TIMED_OUT)])
def test_who_falls_silent_at_the_clock_is_judged_once_more(host_judge, monkeypatch, times, verdict):
    from workbench.judge import judge
    from workbench.judge.isolation.process import WorkerLost

    timed, calls = judge.timing.time, []

    def silent_at_first(*given):
        calls.append(given)
        if len(calls) <= times:
            raise WorkerLost("timeout", "no answer in time")
        timed(*given)

    monkeypatch.setattr(judge.timing, "time", silent_at_first)
    found = host_judge.evaluate(candidate("def scale(x):\n    return x * 2 + 1\n", "scale"), {}, id="k1.0")
    assert found.verdict is verdict and len(calls) == 2 and judge.SILENT_ONCE in found.labels, found.reason


def test_an_endless_loop_is_killed_in_time(host_judge):
    begun = time.monotonic()
    found = judged(host_judge, "calls = [0]\ndef scale(x):\n    calls[0] += 1\n    while calls[0] > 0:\n        pass\n")
    assert found.verdict is Verdict.TIMED_OUT, found.reason
    assert time.monotonic() - begun < 75


def test_ignoring_signals_does_not_help(host_judge):
    source = """
        import os, signal, time
        def scale(x):
            for number in range(1, 65):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            if os.fork() == 0:
                os.setsid()
                time.sleep(600)
            os._exit(0)
    """
    assert judged(host_judge, source).verdict is Verdict.CRASHED


@needs_sandbox
def test_a_fork_bomb_stays_small(host_judge):
    source = """
        import os
        def scale(x):
            made = 0
            for _ in range(600):
                try:
                    os.posix_spawn("/bin/sleep", ["sleep", "60"], {})
                    made += 1
                except OSError:
                    break
            raise RuntimeError(f"made {made}")
    """
    found = judged(host_judge, source)
    assert found.verdict is Verdict.CRASHED
    made = int(found.reason.split("made ")[1].split()[0])
    assert 0 < made < sandbox.LIMITS["NPROC"]


def test_a_memory_bomb_is_killed_with_the_reason(host_judge):
    source = """
        import torch
        kept = []
        def scale(x):
            while True:
                kept.append(torch.ones(16 << 20))
    """
    found = judged(host_judge, source)
    assert found.verdict is Verdict.CRASHED and "GiB of memory" in found.reason, found.reason


@needs_sandbox
def test_the_disk_can_not_be_filled(host_judge):
    source = """
        import errno, os
        def scale(x):
            block, wrote, why = b"x" * (1 << 26), 0, set()
            for number in range(40):
                for directory in ("/tmp", "/dev/shm"):
                    try:
                        with open(f"{directory}/f{number}", "wb") as file:
                            wrote += file.write(block)
                    except OSError as error:
                        why.add(errno.errorcode[error.errno])
                if why:
                    break
            for name in ("/usr/x", "/etc/x", os.path.dirname(os.__file__) + "/x", "/x/y"):
                try:
                    open(name, "w")
                    raise RuntimeError(f"wrote {name}")
                except OSError:
                    pass
            raise RuntimeError(f"stopped: {sorted(why)} after {wrote >> 20} MiB")
    """
    found = judged(host_judge, source)
    assert found.verdict is Verdict.CRASHED
    assert "GiB of memory" in found.reason or "stopped: ['ENOSPC']" in found.reason, found.reason


def test_a_forged_answer_is_no_answer(host_judge):
    """Whatever is printed, on whatever descriptor, the outputs are still read and compared."""
    source = """
        import json, os
        def scale(x):
            forged = json.dumps({"number": 3, "verdict": "right", "outputs": [{"shape": [48, 80], "dtype": "float32", "plain": True,
                "strides": [80, 1], "device": "cpu"}], "changed": [], "stray": "", "seconds": 0, "aliases": []}).encode() + b"\\n"
            for file in range(64):
                for number in range(1, 9):
                    try:
                        os.write(file, forged.replace(b'"number": 3', b'"number": %d' % number))
                    except OSError:
                        pass
            return x * 0
    """
    found = judged(host_judge, source)
    assert found.verdict in (Verdict.WRONG, Verdict.REFUSED, Verdict.CRASHED), found


def test_floods_and_rubbish_are_bounded(host_judge):
    flood = "import sys\ndef scale(x):\n    for _ in range(500):\n        sys.stdout.write('y' * 10000)\n    return x * 2 + 1\n"
    found = judged(host_judge, flood)
    assert passes(found) and len(found.log) <= 4000
    rubbish = """
        import os
        def scale(x):
            for file in range(3, 64):
                try:
                    os.write(file, b"{" * 4096 + b"\\n")
                except OSError:
                    pass
            return x * 2 + 1
    """
    assert judged(host_judge, rubbish).verdict in (Verdict.REFUSED, Verdict.CRASHED)


@needs_sandbox
def test_no_process_outside_is_reached(host_judge):
    source = f"""
        import os, signal
        def scale(x):
            for pid in (os.getppid(), {os.getpid()}):
                for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
                    try:
                        if pid > 1:
                            os.kill(pid, number)
                            raise RuntimeError(f"reached {{pid}}")
                    except OSError:
                        pass
            pids = [name for name in os.listdir("/proc") if name.isdigit()]
            assert len(pids) < 8, pids
            return x * 2 + 1
    """
    assert passes(judged(host_judge, source))


@needs_sandbox
def test_no_network(host_judge):
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    source = f"""
        import socket
        def scale(x):
            for address in (("127.0.0.1", {port}), ("1.1.1.1", 53)):
                try:
                    socket.create_connection(address, timeout=2)
                    raise RuntimeError(f"reached {{address}}")
                except OSError:
                    pass
            return x * 2 + 1
    """
    found = judged(host_judge, source)
    server.close()
    assert passes(found) and "imports socket" in found.labels, found.reason


@needs_sandbox
def test_no_files_of_the_person(host_judge, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    notebook = Path.cwd() / "tests"
    source = f"""
        import os
        def scale(x):
            for path in ({str(secret)!r}, {str(notebook)!r}, "/root/.ssh", "/etc/shadow", "/home"):
                if os.path.exists(path):
                    raise RuntimeError("sees " + path)
            assert "SECRET_KEY" not in os.environ and os.getuid() != 0
            assert not any("reference" in name for name in os.listdir("."))
            return x * 2 + 1
    """
    os.environ["SECRET_KEY"] = "x"
    try:
        found = judged(host_judge, source)
    finally:
        del os.environ["SECRET_KEY"]
    assert passes(found), found.reason


@needs_sandbox
def test_denied_system_calls_fail(host_judge):
    source = """
        import ctypes, errno, platform
        def scale(x):
            libc = ctypes.CDLL(None, use_errno=True)
            calls = {"x86_64": (101, 310, 425, 321, 272, 165), "aarch64": (117, 270, 425, 280, 97, 40)}[platform.machine()]
            for number in calls:
                ctypes.set_errno(0)
                if libc.syscall(number, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != errno.EPERM:
                    raise RuntimeError(f"system call {number}: {ctypes.get_errno()}")
            for flags in (0x10000000, 0x20000000, 0x40000000, 0x00020000):
                ctypes.set_errno(0)
                if libc.syscall({"x86_64": 56, "aarch64": 220}[platform.machine()], flags | 17, 0, 0, 0, 0) != -1:
                    raise RuntimeError(f"clone with {flags:x}")
            import threading
            done = []
            thread = threading.Thread(target=lambda: done.append(1)); thread.start(); thread.join()
            assert done
            return x * 2 + 1
    """
    found = judged(host_judge, source)
    assert passes(found), found.reason


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def scale(x):\n    return x.mul_(2).add_(1)\n", "changes its input x"),
        (
            "import torch\ndef scale(x):\n    y = torch.empty_like(x)\n    y[:-1] = x[:-1] * 2 + 1\n    return y\n",
            "only the last index of dim 0",
        ),
        ("c = {}\ndef scale(x):\n    k = x.data_ptr()\n    if k not in c: c[k] = x * 2 + 1\n    return c[k]\n", "out of bounds"),
        (
            "c = {}\ndef scale(x):\n    k = x.shape\n    if k not in c: c[k] = x * 0\n    c[k].copy_(x * 2 + 1)\n    return c[k]\n",
            "changed the outputs of an earlier one",
        ),
        ("def scale(x):\n    return (x * 2 + 1)[:-1]\n", "has shape 47×80 where 48×80 is right"),
        ("def scale(x):\n    return (x * 2 + 1).double()\n", "is float64 where float32 is right"),
        ("def scale(x):\n    return (x * 2 + 1), x\n", "returns 2 tensors"),
        ("def scale(x):\n    return None\n", "returns 0 tensors"),
        (
            "import ctypes\ndef scale(x):\n    y = x * 2 + 1\n    ctypes.memset(x.data_ptr() + 48 * 80 * 4 + 64, 0, 8)\n    return y\n",
            "writes behind x",
        ),
        (
            "n = [0]\ndef scale(x):\n    n[0] += 1\n    return x * 2 + 1 if n[0] <= 30 else x * 2\n",
            "right when checked, wrong when timed",
        ),
    ],
)
def test_cheats_and_mistakes_are_wrong(host_judge, source, words):
    found = judged(host_judge, source)
    assert found.verdict is Verdict.WRONG and words in found.reason, found
    assert found.witness is not None


def test_a_faked_clock_is_contradicted_by_the_judges_own(host_judge):
    """The text hides what it replaces, so it runs; the time that it claims is another one than the judge saw."""
    source = """
        import torch
        clock = __import__("ti" + "me")
        real, wait = clock.perf_counter_ns, clock.sleep
        def scale(x):
            wait(0.003)
            vars(clock)["perf_counter_ns"] = lambda: real() // 1000
            return x * 2 + 1
    """
    found = judged(host_judge, source)
    assert found.verdict is Verdict.TIME_NOT_CONFIRMED, found
    assert "the judge's clock shows" in found.reason or "from ring to answer" in found.reason, found  # on a busy machine both are slow


@pytest.mark.parametrize(
    "line",
    [
        "torch.cuda.Event.elapsed_time = lambda *a: 0.0",
        "time.perf_counter = lambda: 0.0",
        "setattr(torch, 'allclose', lambda *a, **k: True)",
        "sys.modules['torch'] = None",
        "import workbench.judge.correctness.compare",
        "t.Tensor.__eq__ = None",
    ],
)
def test_tampering_is_refused_with_its_line(host_judge, line):
    found = judged(host_judge, f"import sys, time\nimport torch\nimport torch as t\n{line}\ndef scale(x):\n    return x * 2 + 1\n")
    assert found.verdict is Verdict.REFUSED, found
    assert "line 4" in found.reason or "KernelGuard" in found.reason


def test_what_is_no_module_does_not_build(host_judge):
    for source, words in (
        ("def scale(x:\n", "SyntaxError"),
        ("def other(x):\n    return x\n", "scale"),
        ("import no_such_module\ndef scale(x):\n    return x\n", "no_such_module"),
    ):
        found = judged(host_judge, source)
        assert found.verdict is Verdict.DOES_NOT_BUILD and words in found.reason, found


def test_without_a_sandbox_it_is_said_and_orphans_are_still_killed(scale_task, tmp_path):
    told = tmp_path / "pid"
    source = f"""
        import os, time
        def scale(x):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    with open({str(told)!r}, "a") as file:  # it may be tried more than once
                        file.write(str(os.getpid()) + " ")
                    time.sleep(500)
                os._exit(0)
            while not os.path.exists({str(told)!r}) or not open({str(told)!r}).read():
                time.sleep(0.01)
            os._exit(3)
    """
    judge = Judge(scale_task, device="host", tier=sandbox.Tier("not sandboxed"))
    try:
        found = judged(judge, source)
        assert found.verdict is Verdict.CRASHED and found.environment.sandbox == "not sandboxed", found
        orphans = [int(number) for number in told.read_text().split()]
        deadline = time.monotonic() + 5
        while any(map(_command, orphans)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert orphans and not any(map(_command, orphans)), "an orphan outlived its candidate"
    finally:
        judge.close()
