"""Workers as the judge holds them: what they hold is freed once, whoever closes them."""

import dataclasses
import shutil
import subprocess
import textwrap
import threading

import pytest

from workbench.judge.isolation import sandbox
from workbench.judge.isolation.pool import Nursery, Pool
from workbench.judge.isolation.process import Worker
from workbench.records import encode


def test_a_worker_closed_from_many_threads_frees_each_descriptor_once(host_judge):
    """A pool that closes meets workers that are just being buried."""
    faults: list[BaseException] = []
    pool = host_judge.context.pool
    for _ in range(4):
        worker = pool.take("device")
        together = threading.Barrier(8)

        def close(worker=worker, together=together):
            together.wait()
            try:
                worker.close()
            except BaseException as error:  # a test's own thread: what it raises would be lost
                faults.append(error)

        threads = [threading.Thread(target=close) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pool.discard(worker)
    assert not faults


@pytest.fixture
def baselines(host_judge):
    """Pools of a nursery of their own, since that keeps the environment in which it first forked a baseline."""
    made = []

    def pool():
        nursery = Nursery(host_judge.context.tier)
        made.append((Pool(host_judge.context.tier, (), target=host_judge.task.target, shared_bytes=1 << 20, nursery=nursery), nursery))
        return made[-1][0]

    yield pool
    for opened, nursery in made:
        opened.close()
        nursery.close()


def _answers(worker, task):
    """Whether it runs the person's code, in the person's environment."""
    source = """
        import os, torch
        assert os.environ["WORKBENCH_TEST"] == "mine"
        def scale(x):
            return x * 2 + 1
    """
    told = worker.ask(
        {
            "do": "load_reference",
            "task": encode(dataclasses.replace(task, reference=textwrap.dedent(source))),
            "device": "cpu",
            "seed": 0,
            "compile": False,
        },
        60,
    )
    return "error" not in told


def test_the_persons_own_code_is_forked_in_the_persons_environment(host_judge, baselines, monkeypatch):
    monkeypatch.setenv("WORKBENCH_TEST", "mine")
    pool = baselines()
    worker = pool.take("baseline")
    try:
        assert worker.forked or not sandbox.can_fork(host_judge.context.tier)
        assert _answers(worker, host_judge.task)
    finally:
        pool.discard(worker)


def test_a_baseline_starts_afresh_where_one_that_was_forked_could_not_warm_up(host_judge, baselines, monkeypatch):
    monkeypatch.setenv("WORKBENCH_TEST", "mine")
    pool, asked, plain = baselines(), [], Worker.ask

    def ask(worker, message, timeout):
        answer = plain(worker, message, timeout)
        asked.append(worker.forked)
        return {"error": {"type": "RuntimeError", "message": "CUDA error"}} if message["do"] == "hello" and worker.forked else answer

    monkeypatch.setattr(Worker, "ask", ask)
    worker = pool.take("baseline")
    try:
        assert not worker.forked
        assert any(asked) or not sandbox.can_fork(host_judge.context.tier)
        assert _answers(worker, host_judge.task)
    finally:
        pool.discard(worker)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_baseline_starts_afresh_where_its_forks_could_not_use_the_card(host_judge, baselines, monkeypatch, tmp_path):
    """A driver that says that it has been started."""
    (tmp_path / "driver.c").write_text("int cuDeviceGetCount(int* count) { *count = 1; return 0; }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", tmp_path / "driver.c"], check=True)
    monkeypatch.setenv("WORKBENCH_TEST", "mine")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    pool = baselines()
    for _ in range(2):
        worker = pool.take("baseline")
        try:
            assert not worker.forked
            assert _answers(worker, host_judge.task)
        finally:
            pool.discard(worker)
