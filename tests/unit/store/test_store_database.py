"""The database itself: its folder, projections, two processes, killed processes, and bad days."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from store_world import STARTED, turn, whole_run

from workbench.errors import StoreError
from workbench.events import Ended, Noted, StateChanged
from workbench.store import Store, default_location, open_default
from workbench.store.owners import owner

HERE = Path(__file__).parent


def rows(folder, query):
    with closing(sqlite3.connect(folder / "workbench.db")) as connection:
        return connection.execute(query).fetchall()


def python(code: str, *args) -> subprocess.Popen:
    environment = os.environ | {"PYTHONPATH": f"{HERE}{os.pathsep}{Path.cwd()}"}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)], stdout=subprocess.PIPE, env=environment, text=True
    )  # fmt: skip


# ---- place


def test_the_folder_lies_beside_the_notebook_and_ignores_itself(tmp_path, monkeypatch):
    monkeypatch.delenv("WORKBENCH_STORE", raising=False)
    with closing(open_default(tmp_path)) as store:
        assert store.place == default_location(tmp_path) == str(tmp_path / ".workbench")
    assert (tmp_path / ".workbench" / ".gitignore").read_text() == "*\n"


def test_the_environment_says_where(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_STORE", str(tmp_path / "elsewhere"))
    with closing(open_default(tmp_path / "notebooks")) as store:
        store.append("r1", STARTED)
    assert rows(tmp_path / "elsewhere", "select count(*) from events") == [(1,)]


def test_what_one_store_wrote_another_reads(tmp_path):
    with closing(Store(tmp_path)) as store:
        stamps = store.extend("r1", whole_run())
    with closing(Store(tmp_path)) as store:
        assert store.events("r1") == stamps


def test_importing_the_store_does_not_import_sqlalchemy():
    code = "import sys, workbench.store; print('sqlalchemy' in sys.modules, workbench.store.MemoryStore().runs())"
    process = python(code)
    assert process.communicate(timeout=60)[0].split() == ["False", "()"]


# ---- content


def test_candidates_and_evaluations_can_be_queried(tmp_path):
    with closing(Store(tmp_path)) as store:
        store.extend("r1", whole_run())
    assert rows(tmp_path, "select id, backend, brief_of from (select id, backend, source like '# 2%' as brief_of from candidates)") == [
        ("k1", "triton", 0), ("k2", "triton", 1), ("k3", "triton", 0),
    ]  # fmt: skip
    assert rows(tmp_path, "select id, verdict, time_us, parameters from evaluations order by seq") == [
        ("k1.0", "right", 12.5, '{"BLOCK":64}'), ("k2.0", "wrong", None, '{"BLOCK":64}'), ("k3.0", "right", 9.25, '{"BLOCK":64}'),
    ]  # fmt: skip
    assert rows(tmp_path, "select candidate, min(time_us) from evaluations where verdict = 'right'") == [("k3", 9.25)]


def test_a_task_and_a_parent_are_stored_once_a_run(tmp_path):
    with closing(Store(tmp_path)) as store:
        store.append("r1", STARTED)
        for number in range(1, 30):
            store.extend("r1", turn(number))
        asked = [stamped.event.brief for stamped in store.events("r1", types=("Asked",))]
    assert len(asked) == 29 and all(brief.task == STARTED.task and brief.parents[0].candidate.id == "k1" for brief in asked)
    assert rows(tmp_path, "select count(*) from parts") == [(2,)]
    assert rows(tmp_path, "select max(length(body)) < 2000 from events where type = 'Asked'") == [(1,)]


# ---- processes


def test_two_processes_append_to_one_run_without_a_gap(tmp_path):
    with closing(Store(tmp_path)) as store:
        store.append("r1", STARTED)
        code = """
            import sys
            from workbench.events import Noted
            from workbench.store import Store
            store = Store(sys.argv[1])
            for number in range(60):
                store.append("r1", Noted(f"{sys.argv[2]} {number}"))
        """
        processes = [python(code, tmp_path, name) for name in ("one", "two")]
        threads = [threading.Thread(target=lambda: [store.append("r1", Noted("here")) for _ in range(30)]) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [process.wait(timeout=60) for process in processes] == [0, 0]
        found = store.events("r1")
    assert [stamped.seq for stamped in found] == list(range(1, 182))
    for name in ("one", "two"):
        said = [stamped.event.message for stamped in found if getattr(stamped.event, "message", "").startswith(name)]
        assert said == [f"{name} {number}" for number in range(60)]


def test_two_processes_can_make_the_store_at_the_same_moment(tmp_path):
    code = "import sys; from workbench.store import Store; Store(sys.argv[1]); print('made')"
    processes = [python(code, tmp_path / "new") for _ in range(3)]
    assert [process.communicate(timeout=60)[0].strip() for process in processes] == ["made"] * 3


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.11])
def test_what_append_returned_outlives_kill_9(tmp_path, delay):
    code = """
        import sys
        from store_world import STARTED, turn
        from workbench.store import Store
        store = Store(sys.argv[1])
        store.append("r1", STARTED)
        number = 0
        while True:
            number += 1
            print(store.extend("r1", turn(number))[-1].seq, flush=True)
    """
    process = python(code, tmp_path)
    lines = [process.stdout.readline() for _ in range(3)]
    time.sleep(delay)
    os.kill(process.pid, signal.SIGKILL)
    lines += process.stdout.readlines()
    process.wait(timeout=10)
    process.stdout.close()
    said = max(int(line) for line in lines if line.endswith("\n"))
    with closing(Store(tmp_path)) as store:
        found = [stamped.seq for stamped in store.events("r1")]
        assert found == list(range(1, len(found) + 1))
        assert said <= len(found) <= said + 5
        assert (len(found) - 1) % 5 == 0  # a turn is there as a whole or not at all
        assert store.append("r1", Noted("goes on")).seq == len(found) + 1


# ---- bad days


def test_a_full_disk_is_one_line_and_leaves_the_run_as_it_was(tmp_path):
    with closing(Store(tmp_path)) as store:
        store.append("r1", STARTED)
        with store._engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        store.close()
        from sqlalchemy import event

        event.listen(store._engine, "connect", lambda raw, _: raw.execute(f"PRAGMA max_page_count={pages + 6}"))
        number = 0
        with pytest.raises(StoreError, match="the disk is full: free some space"):
            while number < 100:
                number += 1
                store.extend("r1", turn(number))
        found = store.events("r1")
        assert len(found) == 1 + 5 * (number - 1)
        assert [stamped.seq for stamped in found] == list(range(1, len(found) + 1))


def mounted(options: str, code: str, folder: Path) -> str:
    """Runs `code` where `folder` is mounted with `options`, in a mount namespace that ends with it; gives what it printed."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("this machine allows no mount namespaces")
    environment = os.environ | {"PYTHONPATH": f"{HERE}{os.pathsep}{Path.cwd()}"}
    script = f'mount {options} "$1" && exec "$2" -c "$3" "$1"'
    command = ["unshare", "-rm", "sh", "-c", script, "sh", str(folder), sys.executable, textwrap.dedent(code)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True).stdout.strip()


def test_a_really_full_file_system(tmp_path):
    said = mounted("-t tmpfs -o size=400k tmpfs", """
        import sys
        from store_world import STARTED, turn
        from workbench.errors import StoreError
        from workbench.store import Store
        store = Store(sys.argv[1])
        store.append("r1", STARTED)
        number = 0
        try:
            while number < 200:
                number += 1
                store.extend("r1", turn(number))
        except StoreError as error:
            print(error)
        print(len(store.events("r1")) == 1 + 5 * (number - 1))
    """, tmp_path)  # fmt: skip
    assert re.fullmatch(r".*the disk (is full|failed or is full): .*\nTrue", said), said


def test_a_database_that_another_process_holds(tmp_path):
    with closing(Store(tmp_path, timeout=0.2)) as store, closing(sqlite3.connect(tmp_path / "workbench.db")) as other:
        store.append("r1", STARTED)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process holds the database"):
            store.append("r1", Noted("x"))
        assert len(store.events("r1")) == 1  # reading goes on
        other.rollback()
        assert store.append("r1", Noted("x")).seq == 2


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_database_that_went_away(tmp_path, how):
    with closing(Store(tmp_path)) as store:
        store.append("r1", STARTED)
        (tmp_path / "workbench.db").rename(tmp_path / "kept")
        if how == "replaced":
            Store(tmp_path / "other").close()
            (tmp_path / "other" / "workbench.db").rename(tmp_path / "workbench.db")
        with pytest.raises(StoreError, match="removed or replaced"):
            store.append("r1", Noted("x"))
        with pytest.raises(StoreError, match="removed or replaced"):
            store.events("r1")
        (tmp_path / "kept").rename(tmp_path / "workbench.db")
        assert store.append("r1", Noted("put back")).seq == 2


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "workbench.db").write_bytes(b"not a database at all, only text" * 200)
    with pytest.raises(StoreError, match="the file is not a database: move it away"):
        Store(tmp_path)


def test_a_damaged_database(tmp_path):
    with closing(Store(tmp_path)) as store:
        store.append("r1", STARTED)
        for number in range(1, 40):
            store.extend("r1", turn(number))
        store.clean(older_than_days=9)
    with closing(sqlite3.connect(tmp_path / "workbench.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray((tmp_path / "workbench.db").read_bytes())
    content[8192:] = b"\xa5" * (len(content) - 8192)
    (tmp_path / "workbench.db").write_bytes(content)
    with pytest.raises(StoreError, match="the database is damaged"), closing(Store(tmp_path)) as store:
        store.events("r1")


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"can't be made or written .*set WORKBENCH_STORE"):
        Store(tmp_path / "file" / ".workbench")


def test_a_read_only_folder(tmp_path):
    with closing(Store(tmp_path)) as store:
        store.append("r1", STARTED)
    said = mounted(f"--bind -o ro '{tmp_path}'", """
        import sys
        from store_world import STARTED
        from workbench.errors import StoreError
        from workbench.store import Store
        try:
            Store(sys.argv[1]).append("r2", STARTED)
        except StoreError as error:
            print(error)
    """, tmp_path)  # fmt: skip
    assert said.endswith("the folder is read-only: set WORKBENCH_STORE to a folder that can be written"), said


def test_a_store_of_a_newer_workbench(tmp_path):
    Store(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "workbench.db")) as connection:
        connection.execute("update meta set value = '99' where key = 'schema'")
        connection.commit()
    with pytest.raises(StoreError, match=r"a newer workbench made this store \(schema 99, this one knows 1\): upgrade"):
        Store(tmp_path)


def test_a_server_that_is_not_there_is_one_line():
    with pytest.raises(StoreError) as caught:
        Store("postgresql://nobody@localhost:1/none")
    assert "\n" not in str(caught.value)


# ---- what is left of others


def test_a_run_whose_process_is_gone_is_seen_as_interrupted(tmp_path):
    code = """
        import sys
        from store_world import STARTED
        from workbench.events import StateChanged
        from workbench.store import Store
        from workbench.store.owners import owner
        store, name = Store(sys.argv[1]), owner()
        store.extend("theirs", (STARTED, StateChanged("running", "auto")), owner=name)
        print("ready", flush=True)
        sys.stdin.read()
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": f"{HERE}{os.pathsep}{Path.cwd()}"},
    )  # fmt: skip
    assert child.stdout.readline() == "ready\n"
    with closing(Store(tmp_path)) as store:
        store.extend("mine", (STARTED, StateChanged("running", "auto")), owner=owner())
        store.extend("done", (STARTED, StateChanged("running", "auto"), Ended("the budget is used up", "")))

        def seen():
            return {run.id: run.as_seen().state for run in store.runs()}

        assert seen() == {"theirs": "running", "mine": "running", "done": "ended"}
        child.kill()
        child.communicate()
        assert seen() == {"theirs": "interrupted", "mine": "running", "done": "ended"}
        assert store.run("theirs").state == "running"  # as it was stored
        done = subprocess.run(
            [sys.executable, "-m", "workbench", "runs"], capture_output=True, text=True,
            env=os.environ | {"WORKBENCH_STORE": str(tmp_path)},
        )  # fmt: skip
    assert "interrupted" in next(line for line in done.stdout.splitlines() if line.startswith("theirs"))


def test_inspections_go_with_the_last_run_of_their_task(tmp_path):
    with closing(Store(tmp_path)) as store:
        for run in ("r1", "r2"):
            store.extend(run, whole_run())
        folder = tmp_path / "inspections"
        folder.mkdir()
        kept, others = folder / f"memory-{STARTED.task.id}-abc.json.gz", folder / "memory-0123456789ab-abc.json.gz"
        for file in (kept, others):
            file.write_bytes(b"x")
        store.clean(("r1",))
        assert kept.exists() and not others.exists()
        store.clean(("r2",))
        assert not folder.exists()
