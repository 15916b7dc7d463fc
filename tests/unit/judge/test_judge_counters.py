"""Hardware counters: what is asked of ncu, what is made of its words, and processes that stand where it stands, without figures."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.candidate import Candidate
from workbench.explain.inspection import Metric
from workbench.judge.inspection import counters, counting, ncu
from workbench.judge.isolation import sandbox
from workbench.judge.isolation.process import Worker, WorkerLost
from workbench.records import decode, encode

NAMES = counters.names(9)
READ, WRITTEN, TIME = "dram__bytes_read.sum", "dram__bytes_write.sum", "gpu__time_duration.sum"
HITS, REGISTERS = "lts__t_sector_hit_rate.pct", "launch__registers_per_thread"
LONG = "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"
BARRIER = "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"
E = "==ERROR=="
HEAD = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC"]


def table(columns, units, *rows):
    """ncu's raw page: what it says of the process, a head, a line of units, a line a launch."""
    lines = [[*HEAD, *columns], [""] * len(HEAD) + list(units)]
    for number, (kernel, *figures) in enumerate(rows):
        lines.append([str(number), "41", "python3.12", "127.0.0.1", kernel, "1", "7", "(128, 1, 1)", "(264, 1, 1)", "0", "9.0", *figures])
    quoted = "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines)
    return (
        '==PROF== Connected to process 41 (/usr/bin/python3.12)\n==PROF== Profiling "k" - 0: 0%....50%....100% - 9 passes\n'
        f"{quoted}\n==PROF== Disconnected from process 41\n"
    )


def shown(launches, kernel, least=0.0, capability=9):
    return {one.name: (one.value, one.unit) for one in counters.metrics(launches, capability, least) if one.kernel == kernel}


# ---- what ncu prints


def test_each_kernel_becomes_one_column_and_the_longest_comes_first():
    said = table(
        [READ, WRITTEN, TIME, HITS, REGISTERS, LONG, BARRIER], ["byte", "byte", "ns", "%", "register/thread", "inst", "inst"],
        ["first", "1,000,000", "10", "1,000", "50", "32", "2.5", "0.5"],
        ["main", "64,000,000", "32,000,000", "30,000.5", "10.25", "96", "1.0", "3"],
        ["first", "3,000,000", "30", "3,000", "90", "40", "0.5", "0.5"],
    )  # fmt: skip
    launches = counters.read(said)
    assert [launch.kernel for launch in launches] == ["first", "main", "first"]
    assert list(dict.fromkeys(one.kernel for one in counters.metrics(launches, 9, 0.0))) == ["main", "first", counters.WHOLE_CALL]
    main, first = shown(launches, "main"), shown(launches, "first")
    assert main["time under ncu"] == (pytest.approx(30.0005), "µs")
    assert main["DRAM read"] == (64e6, "B") and main["L2 hits"] == (10.25, "%") and main["waits most"] == (3.0, "cycles at a barrier")
    assert first["launches"] == (2.0, "") and first["DRAM read"] == (4e6, "B") and first["DRAM written"] == (40.0, "B")
    assert first["time under ncu"] == (pytest.approx(4.0), "µs") and first["registers"] == (40.0, "a thread")
    assert first["L2 hits"] == (pytest.approx(80.0), "%"), "three quarters of its time had 90 %"
    assert first["waits most"] == (pytest.approx(1.0), "cycles on global memory")
    assert "occupancy" not in main and "occupancy" in counters.lacking(launches, 9)


def test_the_whole_call_is_compared_with_what_it_can_not_do_without():
    launches = counters.read(table([READ, WRITTEN, TIME], ["byte", "byte", "ns"], ["a", "60", "30", "5"], ["b", "40", "70", "5"]))
    whole = shown(launches, counters.WHOLE_CALL, least=160.0)
    assert whole["DRAM read"] == (100.0, "B") and whole["DRAM over the least"] == (1.25, "×")
    assert "DRAM over the least" not in shown(launches, counters.WHOLE_CALL)
    (line,) = [one for one in counters.metrics(launches, 9, 2e8) if one.name == "DRAM over the least"]
    assert "200 MB" in line.meaning


@pytest.mark.parametrize(
    ("unit", "text", "micros"),
    [("ns", "1,500", 1.5), ("nsecond", "1500", 1.5), ("us", "1.5", 1.5), ("usecond", "1.5", 1.5), ("msecond", "0.5", 500), ("s", "2", 2e6)],
)
def test_units_are_read_from_their_line(unit, text, micros):
    assert shown(counters.read(table([TIME], [unit], ["k", text])), "k")["time under ncu"] == (pytest.approx(micros), "µs")


@pytest.mark.parametrize("nothing", ["n/a", "", "(!) n/a", "nan", "inf", "-3", "1e30", "0x3", "1.234.567", "one"])
def test_what_the_card_lacks_is_left_out_and_no_part_of_a_sum_is_shown(nothing):
    launches = counters.read(table([READ, HITS, TIME], ["byte", "%", "ns"], ["k", nothing, nothing, "10"], ["k", "100", "40", "10"]))
    found = shown(launches, "k")
    assert "DRAM read" not in found and found["L2 hits"] == (40.0, "%") and found["time under ncu"] == (pytest.approx(0.02), "µs")


def test_a_name_with_arguments_is_cut_to_the_function_and_a_monstrous_one_to_size():
    rows = [["void ns::copy<4, 1>(const float *, int)", "1"], ["<unnamed>::reduce(float *)", "2"], ["x" * 5000, "3"], ["a\x1b[31mred", "4"]]
    names = [launch.kernel for launch in counters.read(table([TIME], ["ns"], *rows))]
    assert names[:2] == ["ns::copy", "reduce"] and len(names[2]) == 120 and names[3].isprintable()


def test_a_file_that_breaks_off_gives_what_was_whole():
    said = table([TIME, READ], ["ns", "byte"], ["a", "10", "20"], ["b", "30", "40"])
    cut = said[: said.index('"b"') + 20]
    assert [launch.kernel for launch in counters.read(cut)] == ["a"]
    assert counters.read(said[: said.index('"ID"')]) == () == counters.read("")


def test_words_of_the_process_between_the_lines_do_no_harm():
    said = table([TIME], ["ns"], ["a", "10"], ["b", "30"]).replace('"1","41"', 'hello, "world"\n"half a line\n"1","41"')
    assert [launch.kernel for launch in counters.read(said)] == ["a", "b"]


def test_a_flood_of_launches_is_cut_and_then_there_is_no_whole():
    launches = counters.read(table([TIME], ["ns"], *([f"k{number}", "10"] for number in range(5000))))
    assert len(launches) == ncu.LAUNCHES
    assert counters.WHOLE_CALL not in {one.kernel for one in counters.metrics(launches, 9, 100.0)}


CELLS = st.one_of(st.sampled_from(["n/a", "1,2,3", "1e308", "-0", "∞", '""', "7" * 400, "\x00", "0", ""]), st.text(max_size=30))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(CELLS, min_size=1, max_size=16), max_size=40), st.text(max_size=300), st.booleans())
def test_no_text_makes_it_raise_or_gives_a_figure_that_is_none(rows, noise, headed):
    head = ",".join(f'"{name}"' for name in (*HEAD, TIME, READ, LONG, "launch__registers_per_thread", "x__y"))
    lines = [",".join(f'"{cell}"' for cell in row) for row in rows]
    lines += [",".join([f'"{place}"'] + ['"k"'] * 10 + [f'"{cell}"' for cell in (row * 5)[:5]]) for place, row in enumerate(rows)]
    said = "\n".join([noise, *([head] if headed else []), *lines])
    launches = counters.read(said)
    for one in counters.metrics(launches, 9, 1.0):
        assert 0.0 <= one.value < float("inf") and len(one.kernel) <= 120 and len(one.unit) <= 40
        assert decode(Metric, encode(one)) == one
    assert len(ncu.complaint(said)) < 400 and set(ncu.unknown(said, NAMES)) <= set(NAMES)


# ---- what it complains of


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (f"{E} ERR_NVGPUCTRPERM - The user does not have permission to access", "NVreg_RestrictProfilingToAdminUsers=0"),
        (
            f"{E} An error was reported by the counter measurement library:\n{E} Failed to initialize the profiler: LibraryNotLoaded. "
            f"Check that a compatible driver library is loaded.\n{E} The application returned an error code (9).",
            "profiling library",
        ),
        (f"{E} An error was reported by the driver:\n{E} Cuda driver is not compatible with Nsight Compute.", "don't go together"),
        (f"{E} Profiling failed because a driver resource was unavailable. Ensure that no other tool", "dcgmi profile"),
        (f"{E} InterprocessLockFailed", "lock file"),
        (f"{E} The application returned an error code (1).\n==WARNING== No kernels were profiled.", "failed under ncu (error code 1)"),
        ("==PROF== Disconnected from process 1\n==WARNING== No kernels were profiled.", "launches no kernel"),
        (f"{E} Failed to prepare kernel for profiling\n{E} The application returned an error code (9).", "ncu says: Failed to prepare"),
        ("==ERROR== unrecognised option '--print-kernel-base'. Use --help for further details.", "newer Nsight Compute"),
        ("==ERROR== " + "x" * 9000, "ncu says: xxx"),
    ],
)  # fmt: skip
def test_every_complaint_is_one_line_for_people(said, line):
    found = ncu.complaint(said)
    assert line in found and "\n" not in found and len(found) < 260


def test_what_it_says_of_its_work_is_no_complaint():
    assert ncu.complaint(table([TIME], ["ns"], ["k", "1"])) == ""
    assert ncu.complaint("==WARNING== Backing up device memory in system memory. Kernel replay might be slow.") == ""


@pytest.mark.parametrize(
    "said",
    [
        f"==ERROR== Failed to find metric {HITS}",
        "==ERROR== Failed to find metric regex:^lts__t_sector_hit_rate\\.(sum|min|max|avg|pct|ratio|max_rate)$",
        f"==ERROR== Failed to access the following 2 metrics: nvlrx__bytes.sum, {HITS}\n==PROF== Trying to shutdown target application",
    ],
)
def test_names_that_the_card_lacks_are_found(said):
    assert ncu.unknown(said, NAMES) == (HITS,)
    assert ncu.unknown(said.replace("Failed to", "Managed to"), NAMES) == ()


# ---- what is asked


def test_the_command_leaves_the_clocks_alone_and_counts_the_marked_call_only():
    command = ncu.command("/opt/ncu", NAMES, "counters.csv")
    options = dict(itertools.pairwise(command))
    assert options["--clock-control"] == "none", "no clock of a GPU is ever changed"
    assert options["--profile-from-start"] == "off" and options["--target-processes"] == "application-only"
    assert options["--replay-mode"] == "kernel" and options["--launch-count"] == str(ncu.LAUNCHES)
    assert options["--metrics"].split(",") == list(NAMES) and len(set(NAMES)) == len(NAMES)
    assert "--csv" in command and options["--page"] == "raw" and options["--log-file"] == "counters.csv"


def test_dram_has_another_name_on_newer_cards():
    assert READ in counters.names(7) and READ in counters.names(9) and READ not in counters.names(12)
    newer = counters.read(table(["dram__bytes_op_read.sum", "dram__bytes_op_write.sum"], ["byte", "byte"], ["k", "7", "3"]))
    assert shown(newer, "k", capability=12)["DRAM read"] == (7.0, "B") and "DRAM read" not in shown(newer, "k")


def executable(path, text="#!/bin/sh\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without any ncu."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    monkeypatch.setattr(ncu, "_APART", tmp_path / "apart")
    if Path("/usr/local/cuda/bin/ncu").exists():
        pytest.skip("a toolkit is installed where it is always found")
    return tmp_path


def test_where_the_tool_is_missing_it_says_what_to_install(bare):
    assert ncu.find() is None and "install NVIDIA Nsight Compute" in ncu.why_not()


def test_a_toolkits_script_brings_the_installations_that_it_may_go_to_and_nothing_else(bare):
    script = executable(bare / "cuda" / "bin" / "ncu")
    (bare / "cuda" / "nsight-compute-2025.3" / "target").mkdir(parents=True)
    (bare / "apart" / "2025.3.1" / "target").mkdir(parents=True)
    (bare / "cuda" / "private").mkdir()
    tool = ncu.find()
    assert tool is not None and tool.binary == str(script)
    assert set(tool.places) == {script, bare / "cuda" / "nsight-compute-2025.3", bare / "apart" / "2025.3.1"}


def test_a_link_on_the_path_leads_to_its_installation_and_the_newest_package_is_taken(bare, monkeypatch):
    for version in ("2024.3.2", "2025.10.0", "2025.3.1"):
        executable(bare / "apart" / version / "ncu")
        (bare / "apart" / version / "target").mkdir()
    newest = ncu.find()
    assert newest is not None and newest.binary == str(bare / "apart" / "2025.10.0" / "ncu")
    (bare / "bin").mkdir()
    (bare / "bin" / "ncu").symlink_to(bare / "apart" / "2024.3.2" / "ncu")
    monkeypatch.setenv("PATH", str(bare / "bin"))
    chosen = ncu.find()
    assert chosen is not None and chosen.binary == str(bare / "apart" / "2024.3.2" / "ncu")
    assert bare / "apart" / "2024.3.2" in chosen.places and bare / "bin" not in chosen.places


@pytest.mark.parametrize(("kept", "said"), [("1", "NVreg_RestrictProfilingToAdminUsers=0"), ("0", "")])
def test_a_driver_that_keeps_counters_for_root_is_known_beforehand(bare, monkeypatch, kept, said):
    executable(bare / "apart" / "2025.3.1" / "ncu")
    parameters = bare / "params"
    parameters.write_text(f"RegisterForACPIEvents: 1\nRmProfilingAdminOnly: {kept}\n")
    monkeypatch.setattr(ncu, "_PARAMETERS", parameters)
    assert said in ncu.why_not() if said else ncu.why_not() == ""


# ---- processes


TIERS = [tier for tier in (sandbox.detect(), sandbox.second_tier(""), sandbox.Tier("not sandboxed")) if tier is not None]
SOURCE = """import os
def scale(x):
    with open("calls", "a") as file:
        file.write(f"{os.getuid()}\\n")
    return x * 2 + 1
"""
SKIP = 'until [ "$1" = --log-file ]; do shift; done\nreport=$2; shift 2\n'


@pytest.fixture
def homes(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    for folder in (home, home.parent, home.parent.parent):  # a worker of another user goes through
        with contextlib.suppress(OSError):
            folder.chmod(stat.S_IMODE(folder.stat().st_mode) | 0o011)
    return home


class Stand:
    """Counts one call on the CPU with a program of the test's where ncu would stand."""

    def __init__(self, scale_task, home, tier, script, folder):
        # The folder lies where no worker could look without being let.
        self.tool = ncu.Tool(str(executable(folder / "ncu", "#!/bin/sh\n" + script)), (folder,))
        folder.chmod(0o755)
        self.task, self.home, self.tier = scale_task, home, tier
        self.workers, self.asked, self.left = [], [], {}

    @contextlib.contextmanager
    def start(self, wrapper, places):
        self.asked.append(wrapper)
        worker = Worker(
            "device",
            self.tier,
            target="cuda:90",
            shared_bytes=1 << 20,
            memory_cap=2 << 30,
            home=self.home,
            wrapper=wrapper,
            readable=places,
        )
        self.workers.append(worker)
        try:
            yield worker
        finally:
            self.left = {path.name: path.read_text() for path in worker.directory.iterdir() if path.is_file() and not path.is_symlink()}
            worker.close()

    def count(self, source=SOURCE):
        one = Candidate("k1", "triton", source, "scale")
        orders = (
            {"do": "load", "source": one.source, "entry": one.entry, "parameters": {}, "format": "function", "init_args": [], "seed": 1,
             "device": "cpu"},
            {"do": "inspect", "what": "counters", "inputs": encode(self.task.inputs), "seed": 1},
        )  # fmt: skip
        return counting.counted(self.tool, self.start, orders, capability=9, least_bytes=1.0, card=lambda shared: contextlib.nullcontext())


@pytest.fixture
def stand(scale_task, homes, tmp_path):
    return lambda script, tier=TIERS[0]: Stand(scale_task, homes, tier, script, tmp_path / "tool")


@pytest.mark.parametrize("tier", TIERS, ids=lambda tier: tier.name)
def test_a_worker_behind_it_calls_once_and_ends_with_the_rights_of_the_tool(stand, tier):
    found = stand(SKIP + 'id -u > who; exec "$@"\n', tier)
    with pytest.raises(counting.NotCounted, match="no table"):
        found.count()
    assert len(found.workers) == 1 and not found.workers[0].alive
    assert found.left["calls"].split() == [found.left["who"].strip()], "called once, by the same user"
    if os.getuid() == 0 and found.left["who"].strip() == "0":
        assert not tier.sandboxed, "a sandboxed tool is never root"


@pytest.mark.parametrize(
    ("last", "line"),
    [
        ('echo "==ERROR== ERR_NVGPUCTRPERM - no permission" > $report; exit 9', "NVreg_RestrictProfilingToAdminUsers=0"),
        ('echo "==ERROR== Something new" > $report; "$@"; exit 9', "ncu says: Something new"),
        ('"$@"; echo "==WARNING== No kernels were profiled." > $report', "launches no kernel"),
        ("echo '==ERROR== unrecognised option'; exit 1", "newer Nsight Compute"),
    ],
)
def test_what_it_says_is_passed_on_however_it_ends(stand, last, line):
    with pytest.raises(counting.NotCounted) as caught:
        stand(SKIP + last + "\n").count()
    assert line in str(caught.value)


def test_what_lies_in_place_of_a_report_is_read_only_if_it_is_a_plain_file_and_never_whole_if_it_is_huge(tmp_path):
    plain, link, pipe, huge = (tmp_path / name for name in ("plain", "link", "pipe", "huge"))
    plain.write_bytes(b"==ERROR== \xff")
    link.symlink_to(plain)
    os.mkfifo(pipe)
    huge.write_bytes(b"x" * (4 * counters.LARGEST))
    assert counting._report(plain) == "==ERROR== \ufffd"
    assert counting._report(link) == counting._report(pipe) == counting._report(tmp_path) == counting._report(tmp_path / "none") == ""
    assert counters.LARGEST <= len(counting._report(huge)) < 2 * counters.LARGEST


def test_a_metric_that_is_not_found_is_not_asked_for_again(stand):
    found = stand(
        f'asked="$*"; {SKIP}case $asked in *{HITS}*) echo "==ERROR== Failed to find metric {HITS}" > $report; exit 9;; esac\n'
        'echo "==WARNING== No kernels were profiled." > $report\n'
    )
    with pytest.raises(counting.NotCounted, match="launches no kernel"):
        found.count()
    first, second = found.asked
    assert HITS in " ".join(first) and HITS not in " ".join(second) and READ in " ".join(second)


def test_a_variant_that_fails_says_so_in_its_own_words(stand):
    with pytest.raises(counting.NotCounted, match=r"the variant fails when it runs: .*nothing to scale"):
        stand(SKIP + 'exec "$@"\n').count("def scale(x):\n    raise RuntimeError('nothing to scale')\n")


def test_one_that_never_comes_back_is_ended_in_time(stand, monkeypatch):
    monkeypatch.setattr(counting, "SECONDS", 2.0)
    found = stand(SKIP + "sleep 600\n")
    with pytest.raises(WorkerLost) as caught:
        found.count()
    assert caught.value.kind == "timeout" and not found.workers[0].alive


def test_cancelling_ends_it_and_all_that_it_started(scale_task, nursery, tmp_path):
    from workbench.judge.inspection.inspector import Inspector

    inspector = Inspector(scale_task, device="cpu", nursery=nursery)
    folder = tmp_path / "tool"
    tool = ncu.Tool(str(executable(folder / "ncu", f"#!/bin/sh\n{SKIP}sleep 600 & wait\n")), (folder,))
    try:
        with inspector._behind(counting.wrapper(tool, NAMES), tool.places) as worker:
            worker.start()
            threading.Timer(0.5, inspector.cancel).start()
            with pytest.raises(WorkerLost) as caught:
                worker.wait_awake(60)
            assert caught.value.kind == "cancelled"
            until = time.monotonic() + 10
            while worker.alive and time.monotonic() < until:
                time.sleep(0.01)
            assert not worker.alive
    finally:
        inspector.close()


@pytest.mark.parametrize(
    ("asked", "said"), [(True, "need an NVIDIA GPU"), ("true", "need an NVIDIA GPU"), ("maybe", "choose true or false")]
)
def test_without_a_gpu_or_with_another_word_it_is_one_line(scale_task, nursery, asked, said):
    from workbench.judge.inspection.inspector import Inspector

    inspector = Inspector(scale_task, device="cpu", nursery=nursery)
    try:
        assert said in inspector.inspect(Candidate("k1", "triton", SOURCE, "scale"), {}, "trace", {"counters": asked})["error"]
    finally:
        inspector.close()
