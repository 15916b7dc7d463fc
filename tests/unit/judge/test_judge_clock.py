"""What the clock rests on: the challenge, the lock of a card, belief in a claim, and what is left behind."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from conftest import candidate, make_task, spec

from workbench.candidate import Environment, Timing, Verdict
from workbench.judge.correctness.ahead import Ahead
from workbench.judge.correctness.inputsets import InputSet
from workbench.judge.inspection import sanitizer
from workbench.judge.isolation import homes
from workbench.judge.protocol import challenge, gpu
from workbench.judge.stages import ablation
from workbench.judge.timing import belief, profile, statistics
from workbench.judge.timing.belief import Null
from workbench.judge.timing.player import Heard, Player, Setting
from workbench.judge.trial import Stop, Trial
from workbench.judge.workers import launchers


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.bool])
def test_a_fingerprint_is_the_same_for_the_same_elements_and_another_for_others(dtype):
    values = (torch.randn(37, 1000, generator=torch.Generator().manual_seed(1)) * 3).to(dtype)
    numbers = challenge.answer([values], 5)
    assert len(numbers) == 2 + challenge.SAMPLES
    assert challenge.same(numbers, challenge.answer([values.t().contiguous().t()], 5))
    assert not challenge.same(numbers, challenge.answer([values], 6))
    changed = values.clone()
    changed[20, 333] = ~changed[20, 333] if dtype is torch.bool else changed[20, 333] + 5
    one, two = (challenge.prints(challenge.answer([tensor], 5), 1)[0] for tensor in (values, changed))
    assert one.sums != two.sums
    places = challenge.sample_places(values.numel(), 5, 0)
    assert list(one.samples) == values.reshape(-1)[places].double().tolist()


def test_a_fingerprint_tells_exchanged_elements_and_nans_and_takes_every_shape():
    values = torch.randn(64, 64)
    exchanged = values.clone()
    exchanged[3, 5], exchanged[40, 9] = values[40, 9].item(), values[3, 5].item()
    assert challenge.answer([values], 1)[:2] != challenge.answer([exchanged], 1)[:2]
    odd = [torch.full((3,), math.nan), torch.empty(0), torch.tensor(2.0), torch.arange(7), torch.ones(5), torch.ones(5), torch.ones(2)]
    assert challenge.same(challenge.answer(odd, 1), challenge.answer([tensor.clone() for tensor in odd], 1))
    assert len(challenge.prints(challenge.answer(odd, 1), len(odd))) == challenge.MOST_OUTPUTS


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_what_is_said_of_each_call_of_a_ring_is_the_first_sum_of_its_fingerprint(dtype):
    calls = [[(torch.randn(37, 1000) * 3).round().clamp(0, 9).to(dtype), torch.randn(5).to(dtype)] for _ in range(4)]
    sums = challenge.commit(calls, 5)
    for said, outputs in zip(sums, calls, strict=True):
        prints = challenge.prints(challenge.answer(outputs, 5), 2)
        assert said == pytest.approx(sum(one.sums[0] for one in prints), abs=1e-2)
    assert len(set(sums)) == 4 and challenge.commit([[torch.empty(0)]] * 2, 5) == [0.0, 0.0]


@pytest.fixture
def card(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return "a-card"


def test_who_times_is_alone_and_who_checks_is_not(card):
    with gpu.lock(card, 1.0, shared=True) as one, gpu.lock(card, 1.0, shared=True) as two:
        assert one and two
        with gpu.lock(card, 0.05) as alone:
            assert not alone
    with gpu.lock(card, 1.0) as alone:
        assert alone
        with gpu.lock(card, 0.05, shared=True) as beside:
            assert not beside


def test_a_stream_of_checks_does_not_keep_out_the_one_who_times(card):
    held, order = threading.Event(), []

    def time_something():
        with gpu.lock(card, 10.0) as alone:
            order.append(("timed", alone))

    def check_something():
        with gpu.lock(card, 10.0, shared=True):
            order.append(("checked", True))

    with gpu.lock(card, 1.0, shared=True):
        timing = threading.Thread(target=time_something)
        timing.start()
        time.sleep(0.1)  # it stands in the gate now
        checking = threading.Thread(target=check_something)
        checking.start()
        time.sleep(0.1)
        held.set()
        assert not order
    timing.join()
    checking.join()
    assert order == [("timed", True), ("checked", True)]


def test_all_who_wait_to_time_go_before_who_checks(card):
    order = []

    def use(name, *, shared):
        with gpu.lock(card, 10.0, shared=shared) as held:
            order.append((name, held))
            time.sleep(0.2)

    with gpu.lock(card, 1.0):
        checking = threading.Thread(target=use, args=("checked",), kwargs={"shared": True})
        checking.start()
        time.sleep(0.1)
        timing = [threading.Thread(target=use, args=("timed",), kwargs={"shared": False}) for _ in range(2)]
        for thread in timing:
            thread.start()
        time.sleep(0.1)
    for thread in (checking, *timing):
        thread.join()
    assert order == [("timed", True), ("timed", True), ("checked", True)]


def _trial(task, median):
    trial = Trial(
        task, candidate("x = 1", "scale"), {}, id="k1.0", mode="quick", next_seed=lambda: 1, seed=None, environment=Environment()
    )  # fmt: skip
    trial.timing = Timing(median, median, median, median, median)
    return trial


def _player(task, *, walls, idles, replies=(10.0,), again=10.0, count=1, place="cpu"):
    player = Player("k1", SimpleNamespace(), SimpleNamespace(), Setting(task, place, 1.0, lambda: 1), count=count)
    player.walls, player.idles, player.again = [list(walls)], [list(idles)], [[again]]
    player.heard = [Heard(1, 0, 1, (), reply) for reply in replies]
    return player


@pytest.mark.parametrize(
    ("median", "walls", "idles", "replies", "floor", "words"),
    [
        (100.0, [205.0] * 8, [100.0] * 8, [10.0], 0.0, ""),
        (100.0, [260.0] * 8, [100.0] * 8, [10.0], 0.0, "the judge's clock shows 160.0"),
        (100.0, [900.0] * 2 + [205.0] * 6, [100.0] * 8, [10.0], 0.0, ""),  # some were put off the core
        (100.0, [505.0] * 8, [400.0] * 8, [10.0], 0.0, "when nothing is called"),
        (100.0, [205.0] * 8, [100.0] * 8, [90.0], 0.0, "before its output is there"),
        (100.0, [205.0] * 8, [100.0] * 8, [10.0, 10.0, 90.0], 0.0, ""),  # one slow answer is chance
        (100.0, [205.0] * 8, [100.0] * 8, [10.0], 120.0, "faster than physics"),
    ],
)
def test_a_claim_is_held_against_the_judges_clock(scale_task, median, walls, idles, replies, floor, words):
    trial, player = _trial(scale_task, median), _player(scale_task, walls=walls, idles=idles, replies=replies, place="cuda")
    if not words:
        belief.confirm_time(trial, player, Null(200.0, 12.0), floor)
        return
    with pytest.raises(Stop) as caught:
        belief.confirm_time(trial, player, Null(200.0, 12.0), floor)
    assert caught.value.verdict is Verdict.TIME_NOT_CONFIRMED and words in caught.value.reason


def _heard(task, outputs, *, handed=None, print_seed=77):
    numbers = tuple(challenge.answer(outputs, print_seed))
    return Heard(5, 0, print_seed, numbers, 10.0, handed)


@pytest.mark.parametrize(
    ("place", "replies", "again", "believed"),
    [
        ("cuda", [60.0], 58.0, True),
        ("cuda", [60.0], 20.0, False),
        ("cuda", [300.0], 290.0, False),
        ("cuda", [20.0, 90.0, 90.0], 20.0, False),  # early in most calls
        ("cpu", [2250.0], 1640.0, True),  # other work came after the process that does nothing had been measured
        ("cpu", [600.0, 2800.0, 2800.0], 900.0, True),
        ("cpu", [9000.0], 8500.0, False),
        ("cpu", [9000.0], 900.0, False),
    ],
)
def test_answers_are_measured_from_the_processs_own_as_far_as_those_are_usual(scale_task, place, replies, again, believed):
    times = {"walls": [205.0] * 8, "idles": [100.0] * 8}
    trial, player = _trial(scale_task, 100.0), _player(scale_task, **times, replies=replies, again=again, place=place)
    if believed:
        belief.confirm_time(trial, player, Null(200.0, 12.0), 0.0)
        return
    with pytest.raises(Stop, match="before its output is there"):
        belief.confirm_time(trial, player, Null(200.0, 12.0), 0.0)


@pytest.mark.parametrize("case", ["right", "one element", "a row", "not the bytes", "unread"])
def test_every_timed_output_is_held_against_the_reference(case):
    from workbench.capture.references import load_reference
    from workbench.inputs import make_inputs
    from workbench.judge.timing.stopwatch import call_seed

    source = "import torch\ndef scale(x):\n    return torch.softmax(x, -1)\n"
    task = make_task("scale", source, [spec("x", (256, 512))], [((256, 512), "float32")])
    reference = load_reference(task)
    right = torch.softmax(make_inputs(task.inputs, call_seed(5, 0))[0].double(), -1).float()
    bad = right.clone()
    if case == "a row":
        bad[7] = right[8]
    elif case in ("one element", "not the bytes"):
        bad[7, 9] += 1.0
    elif case == "unread":
        bad.zero_()
    player = _player(task, walls=[1.0], idles=[1.0])
    player.heard = [_heard(task, [right], handed=(right,))]
    if case == "not the bytes":
        player.heard.append(_heard(task, [bad], handed=(right,)))
    else:
        player.heard.append(_heard(task, [bad]))
    trial = _trial(task, 10.0)
    if case == "right":
        belief.confirm_outputs(trial, player, reference, None)
        return
    with pytest.raises(Stop) as caught:
        belief.confirm_outputs(trial, player, reference, None)
    wanted = Verdict.TIME_NOT_CONFIRMED if case == "not the bytes" else Verdict.WRONG
    assert caught.value.verdict is wanted, caught.value.reason


@pytest.mark.parametrize(("off", "believed"), [(0.0, True), (1.0, True), (2.0, True), (40.0, False)])
def test_one_number_may_be_rounded_otherwise_than_the_one_that_was_compared_in_full(off, believed):
    from workbench.capture.references import load_reference
    from workbench.inputs import make_inputs
    from workbench.judge.timing.stopwatch import call_seed

    source = "import torch\ndef total(x):\n    return x.float().square().mean().to(x.dtype)\n"
    task = make_task("total", source, [spec("x", (64, 64), "bfloat16")], [((), "bfloat16")])
    reference = load_reference(task)
    player = _player(task, walls=[1.0], idles=[1.0], replies=())
    for number in range(6):
        seed = 5 + number
        (right,) = reference(*make_inputs(task.inputs, call_seed(seed, 0)))
        shown = right if number == 0 else (right.double() * (1 + off * 2.0**-8)).to(right.dtype)
        numbers = tuple(challenge.answer([shown], 77 + number))
        player.heard.append(Heard(seed, 0, 77 + number, numbers, 10.0, (shown,) if number == 0 else None))
    trial = _trial(task, 10.0)
    if believed:
        belief.confirm_outputs(trial, player, reference, None)
        return
    with pytest.raises(Stop, match="right when checked, wrong when timed"):
        belief.confirm_outputs(trial, player, reference, None)


@pytest.mark.parametrize(("off", "believed"), [(0.0, True), (1.0, False), (math.nan, False)])
def test_who_computes_only_the_call_that_is_asked_about_is_not_believed(off, believed):
    from workbench.capture.references import load_reference
    from workbench.inputs import make_inputs
    from workbench.judge.timing.stopwatch import call_seed

    task = make_task("scale", "def scale(x):\n    return x * 2\n", [spec("x", (16, 16))], [((16, 16), "float32")])
    right = make_inputs(task.inputs, call_seed(5, 0))[0] * 2
    player = _player(task, walls=[1.0], idles=[1.0])
    heard = _heard(task, [right], handed=(right,))
    player.heard = [replace(heard, committed=challenge.commit([[right]], heard.print_seed)[0] + off)]
    if believed:
        belief.confirm_outputs(_trial(task, 10.0), player, load_reference(task), None)
        return
    with pytest.raises(Stop, match="of the calls that are timed together"):
        belief.confirm_outputs(_trial(task, 10.0), player, load_reference(task), None)


def test_seeds_of_what_is_worked_out_ahead_do_not_depend_on_how_far_it_got(scale_task):
    from workbench.capture.references import load_reference

    reference = load_reference(scale_task)
    kinds = [InputSet(f"set {number}", scale_task.inputs) for number in range(3)]
    eager, lazy = (Ahead(9, reference, "cpu") for _ in range(2))
    eager.plan((kind, 0) for kind in kinds[1:])
    first = eager.take(kinds[0], 0)
    eager.work(first, lambda: False)
    for kind in kinds:
        one, two = eager.take(kind, 0) if kind is not kinds[0] else first, lazy.take(kind, 0)
        assert one.seed == two.seed and torch.equal(one.inputs[0], two.inputs[0])
    assert first.expected is not None and eager.take(kinds[1], 1).seed != lazy.take(kinds[1], 0).seed


def test_what_a_killed_judge_leaves_is_removed_by_the_next_one():
    code = "from workbench.judge.isolation import homes; print(homes.make(), flush=True); import os; os.kill(os.getpid(), 9)"
    left = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stdout.strip()
    mine = homes.make()
    assert Path(left).is_dir()
    homes.clear_stale()
    assert not Path(left).is_dir() and mine.is_dir()
    homes.remove(mine)


def test_a_c_module_is_built_with_the_headers_ready(tmp_path, monkeypatch):
    pytest.importorskip("triton")
    if launchers._compiler() is None:
        pytest.skip("no C compiler")
    import importlib.util

    from triton import knobs

    monkeypatch.setattr(launchers, "_compiled", None)
    monkeypatch.setattr(launchers, "_place", None)
    launchers.prepare()
    monkeypatch.setattr(knobs.build, "impl", None)
    launchers.install()
    assert knobs.build.impl is launchers.build
    source = tmp_path / "answer.c"
    source.write_text(
        '#include "cuda.h"\n#define PY_SSIZE_T_CLEAN\n#include <Python.h>\n'
        "static PyObject* size_of(PyObject* self, PyObject* args) {\n"
        "    const char* bytes; Py_ssize_t size;\n"
        '    return PyArg_ParseTuple(args, "y#", &bytes, &size) ? PyLong_FromSsize_t(size) : NULL; }\n'
        'static PyMethodDef methods[] = {{"size_of", size_of, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};\n'
        'static struct PyModuleDef made = {PyModuleDef_HEAD_INIT, "answer", NULL, -1, methods};\n'
        "PyMODINIT_FUNC PyInit_answer(void) {\n"
        '    PyObject* m = PyModule_Create(&made); PyModule_AddIntConstant(m, "version", CUDA_VERSION); return m; }\n'
    )
    loaded = importlib.util.spec_from_file_location("answer", launchers.build("answer", str(source), str(tmp_path), [], [], []))
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)
    assert module.version >= 12000 and module.size_of(b"four") == 4
    knobs.build.impl = None


def test_times_of_kernels_that_overlap_count_once():
    assert profile._busy([(0, 10), (5, 12), (20, 25), (21, 22)]) == 17


def test_noise_bimodal_and_faster():
    assert statistics.noise([[10.0] * 3, [11.0] * 3, [10.0] * 3]) == pytest.approx(0.1) and statistics.noise([[1.0]]) == 0
    assert statistics.bimodal(Timing(10, 9, 11, 8, 14)) and not statistics.bimodal(Timing(10, 9, 11, 9, 11))
    fast, slow = [[10.0, 10.1, 9.9]] * 3, [[10.3, 10.2, 10.25]] * 3
    assert statistics.faster(statistics.speedup([[20.0, 20.2]] * 3, fast, "eager"))
    assert not statistics.faster(statistics.speedup(slow, [[10.15, 10.25, 10.2]] * 3, "eager")) and not statistics.faster(None)


SAID = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 2 bytes
=========     at softmax_rows(const __nv_bfloat16 *, __nv_bfloat16 *, int, int)+0x2d0
=========     by thread (0,0,0) in block (1,0,0)
========= ERROR SUMMARY: 1 error
"""


def test_the_sanitizers_first_finding_is_read_with_its_kernel():
    assert sanitizer.read(SAID) == ("Invalid __global__ write of size 2 bytes", "softmax_rows")
    race = "========= Error: Race reported between Write access at twice+0x90 and Read access at twice+0x100 [16 hazards]\n"
    assert sanitizer.read(race)[1] == "twice"
    assert sanitizer.read("========= ERROR SUMMARY: 0 errors\n") == ("", "")


def test_a_finding_refuses_and_labels_say_what_ran():
    from workbench.candidate import Evaluation
    from workbench.fleet.once import with_sanitized
    from workbench.judge.inspection.sanitized import Sanitized

    right = Evaluation("k1.0", "k1", "t", Verdict.RIGHT, "right")
    refused = with_sanitized(right, Sanitized(("memcheck",), "memcheck: Invalid write in f", ("not sanitized by racecheck: no",)))
    assert refused.verdict is Verdict.REFUSED and refused.reason.startswith("memcheck")
    assert set(refused.labels) == {"sanitized: memcheck", "not sanitized by racecheck: no"}
    assert with_sanitized(right, Sanitized(("memcheck",))).verdict is Verdict.RIGHT


def test_a_watched_worker_ends_by_itself_and_its_wrapper_has_the_last_word(host_judge, tmp_path):
    """As compute-sanitizer does it: a program that starts the worker's Python and says something when that has ended."""
    from workbench.judge.isolation.process import Worker
    from workbench.records import encode

    context = host_judge.context
    words = ("/bin/sh", "-c", '"$@"; echo "========= ERROR SUMMARY: 0 errors"', "sh")
    worker = Worker(
        "device", context.tier, target=context.task.target, shared_bytes=1 << 20, memory_cap=2 << 30, home=context.pool.home, wrapper=words,
        variables={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
    )  # fmt: skip
    try:
        worker.start()
        worker.wait_ready(60)
        source = "import os\nprint('caching off', os.environ['PYTORCH_NO_CUDA_MEMORY_CACHING'])\ndef scale(x):\n    return x * 2 + 1\n"
        worker.ask({
            "do": "load", "source": source, "entry": "scale", "parameters": {}, "format": "function", "init_args": [], "device": "cpu",
            "seed": 1,
        }, 30)  # fmt: skip
        assert worker.ask({"do": "run", "inputs": encode(context.task.inputs), "seed": 1}, 30)["outputs"] == 1
        said = worker.finish(30)
    finally:
        worker.close()
    assert "caching off 1" in said and said.strip().endswith("ERROR SUMMARY: 0 errors")


@pytest.mark.parametrize(("body", "decoration"), [("return x * 2 + 1", True), ("return made(x)", False)])
def test_whoever_is_right_without_its_kernels_only_wears_them(host_judge, body, decoration):
    source = f"""import torch, triton, triton.language as tl
@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + place, tl.load(x + place, mask=place < n) * 2 + 1, mask=place < n)
def made(x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
def scale(x):
    {body}
"""
    context = host_judge.context
    trial = Trial(
        context.task, candidate(source, "scale"), {}, id="k1.0", mode="full", next_seed=context.seeds("t"), seed=None,
        environment=Environment(),
    )  # fmt: skip
    assert ablation.is_decoration(context, trial, context.input_sets()[0]) is decoration
