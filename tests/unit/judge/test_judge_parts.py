"""The judge's parts by themselves: the line to a worker, the filter, the shared memory, the statistics, the text's reader."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import socket
import struct
import threading
import time

import numpy as np
import pytest
import torch
from conftest import make_task, spec

from workbench.inputs import make_inputs
from workbench.judge.correctness import inputsets
from workbench.judge.isolation import seccomp
from workbench.judge.isolation.process import end_in_words
from workbench.judge.protocol import fingerprint, shared
from workbench.judge.protocol.transport import LINE_LIMIT, Channel, ChannelError
from workbench.judge.text import labels
from workbench.judge.timing import clock, statistics
from workbench.judge.workers.arena import MARGIN, Arena, PoisonedEmpty
from workbench.target import get_target
from workbench.task import Work


@pytest.fixture
def line():
    """A channel, the worker's end of its socket, and the worker's end of its log."""
    ours, theirs = socket.socketpair()
    log_read, log_write = os.pipe()
    said = []
    channel = Channel(ours, log_read, lambda: said[0] if said else None)
    yield channel, theirs, log_write, said
    channel.close()
    theirs.close()
    os.close(log_write)


def reply(theirs, *texts):
    def run():
        with contextlib.suppress(OSError):  # the test may be over first
            theirs.recv(1 << 20)
            for text in texts:
                theirs.sendall(text)

    threading.Thread(target=run, daemon=True).start()


def test_answers_match_their_questions(line):
    channel, theirs, _, _ = line
    reply(theirs, b'{"number": 7, "x": "stale"}\n{"number": 1, "x"', b': "right"}\n')
    assert channel.ask({"do": "hello"}, 5)["x"] == "right"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"{not json}\n", "garbled"),
        (b"[1, 2]\n", "garbled"),
        (b"[" * 100_000 + b"\n", "garbled"),
        (b'{"number": 9}\n' * 100, "timeout"),
        (b"", "timeout"),
    ],
)
def test_bad_answers_are_named(line, text, kind):
    channel, theirs, _, _ = line
    reply(theirs, text)
    with pytest.raises(ChannelError) as raised:
        channel.ask({"do": "hello"}, 0.5)
    assert raised.value.kind == kind


def test_an_endless_line_is_cut_off(line):
    channel, theirs, _, _ = line
    reply(theirs, b"x" * (LINE_LIMIT + (1 << 20)))
    with pytest.raises(ChannelError, match="too long"):
        channel.ask({"do": "hello"}, 30)


def test_a_worker_that_never_reads_holds_nobody(line):
    channel, _, _, _ = line
    begun = time.monotonic()
    with pytest.raises(ChannelError) as raised:
        channel.send({"do": "load", "source": "x" * (8 << 20)}, 0.5)
    assert raised.value.kind == "timeout" and time.monotonic() - begun < 3


def test_watching_ends_the_wait_and_a_closed_line_is_an_end(line):
    channel, theirs, log, said = line
    os.write(log, b"y" * 60_000)
    said.append("memory")
    with pytest.raises(ChannelError) as raised:
        channel.ask({"do": "hello"}, 5)
    assert raised.value.kind == "memory"
    assert len(channel.log) == 16 << 10
    said.clear()
    theirs.close()
    with pytest.raises(ChannelError) as raised:
        channel.ask({"do": "hello"}, 5)
    assert raised.value.kind == "ended"


def run_filter(code: bytes, arch: int, number: int, argument: int = 0) -> int:
    """What the kernel would do: interprets the program on one system call."""
    data = struct.pack("<iIQ6Q", number, arch, 0, argument, 0, 0, 0, 0, 0)
    accumulator, at = 0, 0
    while True:
        op, true, false, value = struct.unpack_from("<HBBI", code, 8 * at)
        at += 1
        if op == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif op == 0x06:
            return value
        else:
            hit = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[op]
            at += true if hit else false


@pytest.mark.parametrize(
    ("machine", "arch", "column", "clone", "read", "setuid"),
    [("x86_64", 0xC000003E, 0, 56, 0, 105), ("aarch64", 0xC00000B7, 1, 220, 63, 146)],
)
def test_the_filter_denies_its_list_and_nothing_else(machine, arch, column, clone, read, setuid):
    code = seccomp.program(machine)
    denied, allowed = 0x00050000 | errno.EPERM, 0x7FFF0000
    for name, numbers in seccomp.DENIED.items():
        if numbers[column] is not None:
            assert run_filter(code, arch, numbers[column]) == denied, name
    for number in (read, setuid, 9999):
        assert run_filter(code, arch, number) == allowed
    assert run_filter(code, arch, clone, 0x11) == allowed  # a fork
    assert run_filter(code, arch, clone, 0x3D0F00) == allowed  # a thread
    for flag in (0x10000000, 0x20000000, 0x40000000, 0x00020000, 0x08000000, 0x04000000, 0x02000000):
        assert run_filter(code, arch, clone, flag | 0x11) == denied
    assert run_filter(code, arch, 435) == 0x00050000 | errno.ENOSYS
    assert run_filter(code, 0x40000003, read) == denied  # another architecture's numbers
    assert run_filter(code, arch, 0x40000000 | read) == denied
    assert seccomp.program("riscv64") is None


def test_the_shared_memory_keeps_its_size_and_its_bounds():
    memory = shared.SharedFile.create(1 << 20)
    try:
        x = torch.randn(5, 7).t()
        memory.write(shared.PAGE, x)
        assert torch.equal(memory.read(shared.PAGE, (7, 5), torch.float32), x)
        with pytest.raises(OSError):
            os.ftruncate(memory.file, 4096)
        for offset in (0, (1 << 20) - 8):
            with pytest.raises(ValueError):
                memory.write(offset, x)
        memory.clear()
        assert not memory.read(shared.PAGE, (7, 5), torch.float32).any()
    finally:
        memory.close()


def test_fingerprints_see_every_change_and_no_layout():
    x = torch.randn(100, 30, generator=torch.Generator().manual_seed(0))
    print_of = fingerprint.of_tensor(x)
    assert fingerprint.of_tensor(x.t().contiguous().t()) == print_of
    changed = x.clone()
    changed[99, 29] = torch.nextafter(changed[99, 29], torch.tensor(9.0))
    swapped = x.clone()
    swapped[[0, 1]] = swapped[[1, 0]]
    assert len({print_of, fingerprint.of_tensor(changed), fingerprint.of_tensor(swapped)}) == 3
    assert fingerprint.of_inputs([x, 2]) != fingerprint.of_inputs([x, 3])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float8_e4m3fn])
def test_poison_fills_what_is_uninitialised_and_shows_what_is_overwritten(dtype):
    arena = Arena("nan")
    with PoisonedEmpty(arena):
        made = torch.empty(3, 5, dtype=dtype)
        like = torch.empty_like(made)
        new = made.new_empty(4)
    for tensor in (made, like, new):
        if dtype.is_floating_point:
            assert torch.isnan(tensor.float()).all()
    assert arena.broken() == ""
    made.zero_()
    assert arena.broken() == ""
    beyond = torch.empty(0, dtype=torch.uint8).set_(made.untyped_storage(), MARGIN + made.numel() * made.element_size() + 16, (4,), (1,))
    beyond.zero_()
    assert arena.broken().startswith("behind")


def test_placed_inputs_keep_content_and_strides():
    (x,) = make_inputs([spec("x", (6, 10))], 1)
    for view in (x, x.t(), x[:, ::2], x[:1].expand(4, 10)):
        placed = Arena("large").place(view, "x")
        assert torch.equal(placed, view) and placed.stride() == view.stride()


def test_intervals_cover_what_they_should():
    generator = np.random.default_rng(0)
    hits = 0
    for _ in range(25):
        blocks = 100 + generator.normal(0, 1, (5, 10)) + generator.normal(0, 0.5, (5, 1))
        timing = statistics.timing(blocks.tolist())
        assert timing.low_us <= timing.median_us <= timing.high_us and timing.p10_us < timing.p90_us
        hits += timing.low_us <= 100 <= timing.high_us
    assert hits >= 20
    same = statistics.speedup(blocks.tolist(), blocks.tolist(), "eager")
    assert same.low <= 1 <= same.high and same.ratio == 1
    twice = statistics.speedup((blocks * 2).tolist(), blocks.tolist(), "eager", paired=True)
    assert twice.low > 1.9 and twice.high < 2.1


def test_physics_allows_what_a_card_can_do():
    target = get_target("cuda:90")
    big = make_task("t", "", [spec("x", (8192, 8192))], [((8192, 8192), "float32")])
    floor = clock.physical_floor_us(big, target)
    assert 0.9 * 2 * 8192**2 * 4 / target.bandwidth * 1e6 - 15 < floor < 2 * 8192**2 * 4 / target.bandwidth * 1e6
    small = make_task("t", "", [spec("x", (64, 64))], [((8192, 512), "float32")])
    assert clock.physical_floor_us(small, target) < 0.02
    product = make_task("t", "", [spec("x", (64, 64))], [((64, 64), "float32")])
    product = type(product)(**{**product.__dict__, "work": Work(1, 10**12, 10**12, "float32")})
    assert math.isclose(clock.physical_floor_us(product, target), 0.8e18 / target.peak("tf32"))


def test_input_sets_vary_what_they_say():
    specs = (spec("x", (8, 32)), spec("w", (32,)), spec("i", (8,), "int64", "integers", lo=0, hi=9))
    assert inputsets.scaled(specs, 64)[0].values.args["std"] == 64 and inputsets.scaled(specs[2:], 64) is None
    assert inputsets.offset(specs, 1000)[1].values.args["mean"] == 1000
    assert inputsets.strided(specs)[0].strides == (48, 1) and inputsets.strided(specs[1:]) is None
    inputs = inputsets.arrange(make_inputs(specs, 1), specs, "sorted")
    assert (inputs[0].diff(dim=-1) >= 0).all() and inputs[0].abs().max() > 50
    assert inputsets.InputSet("a", specs).shape == "8×32"
    task = make_task("t", "", specs, [((8, 32), "float32")])
    assert inputsets.listed(task, specs) and not inputsets.listed(task, (spec("x", (9, 32)), *specs[1:]))


@pytest.mark.parametrize("structure", ["sorted", "outliers", "equal"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_inputs_of_every_floating_dtype_can_be_arranged(dtype, structure):
    specs = (spec("x", (6, 400), dtype),)
    drawn = make_inputs(specs, 1)
    arranged = inputsets.arrange([drawn[0].clone()], specs, structure)[0]
    assert arranged.dtype is drawn[0].dtype and bool(arranged.isfinite().all())
    assert not torch.equal(arranged, drawn[0])


def test_honest_text_gets_labels_and_no_refusal():
    source = """
import torch, os
import torch.nn.functional as F
import triton
from torch import matmul as product
# torch.cuda.Event.elapsed_time = fake
time = type("T", (), {})()
time.start = 3
torch.backends.cuda.matmul.allow_tf32 = True
class Model(torch.nn.Module):
    pass
@triton.jit
def kernel(x): pass
def op(x, self):
    self.time = os.environ.get("ARCH")
    try:
        exec("y = 1")
    except Exception:
        pass
    return F.gelu(product(x, x)) + torch.compile(op)(x)
"""
    reading = labels.read(source)
    assert not reading.tampering and not reading.error
    own = {label for label in reading.labels if not label.startswith("KernelGuard")}
    assert own == {
        "sets torch.backends.cuda.matmul.allow_tf32", "uses exec", "calls F.gelu", "calls torch.matmul", "uses torch.compile",
        "reads the environment",
    }  # fmt: skip


def test_ends_are_told_in_words():
    assert end_in_words(-11) == end_in_words(139) == "killed by SIGSEGV"
    assert end_in_words(0) == "the process ended itself (exit status 0)"
    assert json.dumps(end_in_words(None))
