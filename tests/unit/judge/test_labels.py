"""Labels from the text: what each is given for, that each is explained, and that honest text is never refused."""

from __future__ import annotations

import pytest

from workbench.judge.text import label_words, labels

HEAD = "import torch, triton, os, sys, subprocess, importlib, base64, threading, time\nimport torch.nn.functional as F\n"


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("y = torch.softmax(x, -1)", "calls torch.softmax"),
        ("y = F.gelu(x)", "calls F.gelu"),
        ("y = x.softmax(-1)", "calls x.softmax"),
        ("y = (x * 2).cumsum(0)", "calls ….cumsum"),
        ("y = x @ x", "multiplies matrices by @"),
        ("f = torch.compile(g)", "uses torch.compile"),
        ("@torch.compile\ndef f(x): return x", "uses torch.compile"),
        ("import flash_attn", "imports the library flash_attn"),
        ("from liger_kernel.ops import softmax", "imports the library liger_kernel"),
        ("try:\n    k(x)\nexcept Exception:\n    y = torch.matmul(x, x)", "falls back to PyTorch when its kernel fails"),
        ("try:\n    k(x)\nexcept Exception:\n    y = x @ x", "falls back to PyTorch when its kernel fails"),
        ("f = getattr(torch, 'mat' + 'mul')", "hides what it calls"),
        ("f = getattr(torch, name)", "hides what it calls"),
        ("m = __import__('ti' + 'me')", "hides what it calls"),
        ("m = importlib.import_module(name[::-1])", "hides what it calls"),
        ("f = vars(torch)['x' + 'y']", "hides what it calls"),
        ("exec(base64.b64decode(text))", "runs text that is encoded"),
        ("exec('y = 1')", "uses exec"),
        ("import urllib.request", "imports urllib"),
        ("mode = os.getenv('BENCH')", "reads the environment"),
        ("mode = os.environ['BENCH']", "reads the environment"),
        ("mode = sys.argv[1]", "reads its command line"),
        ("f = sys._getframe(1)", "looks around with sys._getframe"),
        ("m = sys.modules['a']", "reaches for modules through sys.modules"),
        ("if x.shape == (4096, 4096): pass", "hardcoded shapes"),
        ("if x.shape[0] == 4096: pass", "hardcoded shapes"),
        ("y = x.half()", "converts to float16"),
        ("y = x.to(torch.bfloat16)", "converts to bfloat16"),
        ("y = x.to(dtype=torch.float8_e4m3fn)", "converts to float8"),
        ("tl.dot(a, b, input_precision='tf32')", "asks for TF32"),
        ("torch.backends.cuda.matmul.allow_tf32 = True", "sets torch.backends.cuda.matmul.allow_tf32"),
        ("g = torch.cuda.CUDAGraph()", "uses CUDA graphs"),
        ("s = torch.cuda.Stream()", "uses CUDA streams"),
        ("t = threading.Thread(target=f)", "starts threads"),
        ("CODE = 'cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, n);'", "pins memory in the L2 cache"),
        ("CODE = 'auto y = at::softmax(x, -1);'", "C++ calls ATen"),
        ("y = seen[x.data_ptr()]", "remembers things by address"),
        ("if id(x) in seen: pass", "remembers things by address"),
        ("y = seen.get((x.data_ptr(), x.shape))", "remembers things by address"),
    ],
)
def test_what_a_line_is_labelled_for(line, label):
    reading = labels.read(HEAD + line + "\n")
    assert label in reading.labels, reading
    assert not reading.tampering and not reading.error
    assert label_words.explain(label)


@pytest.mark.parametrize(
    "line",
    [
        "f = getattr(x, 'stride')",
        "y = tl.sum(e, 0) + tl.softmax(e)",
        "kernel[grid](x.data_ptr(), n)",
        "if x.shape[0] == 0 or x.shape[1] != y.shape[1]: pass",
        "try:\n    from triton.language.extra import libdevice\nexcept ImportError:\n    libdevice = None",
        "# torch.cuda.Event.elapsed_time = fake; pip install x; sys.modules['torch']",
        "x.half_life = 3",
        "import numpy as np, math",
    ],
)
def test_what_is_not_worth_a_label(line):
    own = [label for label in labels.read("import torch, triton\n" + line + "\n").labels if not label.startswith("KernelGuard")]
    assert own == [labels.NO_KERNEL]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("subprocess.run([sys.executable, '-m', 'pip', 'install', 'x'])", "installs packages"),
        ("os.system('pip install x')", "installs packages"),
        ("vars(time)['perf_counter'] = f", "tampers"),
        ("torch.__dict__['allclose'] = f", "tampers"),
        ("delattr(torch, 'allclose')", "tampers"),
        ("torch.cuda.Event.elapsed_time = f", "tampers"),
    ],
)
def test_what_no_kernel_needs_is_refused_with_its_line(line, words):
    reading = labels.read(HEAD + line + "\n")
    assert words in reading.tampering and "line 3" in reading.tampering, reading


def test_every_label_has_one_line_and_unknown_ones_explain_themselves():
    assert all(text.endswith(".") and "\n" not in text for text in label_words.LABELS.values())
    assert label_words.explain("own kernels take 3% of the time").startswith("Measured")
    assert label_words.explain("imports the library apex") != label_words.explain("imports socket")
    assert label_words.explain("something else") == ""
