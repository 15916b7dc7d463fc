"""NumPy and its like: one line that says how an array becomes a tensor."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from workbench.capture import capture_call, capture_cell
from workbench.capture.arrays import is_array
from workbench.errors import CaptureError

CELLS = {
    "its own op": (
        "import numpy as np\nx = np.ones((4, 8), dtype=np.float32)\ndef scale(x):\n    return x * 2\ny = scale(x)\n",
        "scale is called with a NumPy array for x: give it a tensor, such as torch.from_numpy(x)",
    ),
    "an array beside a tensor": (
        "import numpy as np, torch\nw = np.ones(8, dtype=np.float32)\ndef scale(x, w):\n    return x * torch.from_numpy(w)\n"
        "y = scale(torch.ones(4, 8), w)\n",
        "scale is called with a NumPy array for w: give it a tensor, such as torch.from_numpy(w)",
    ),
    "in a list": (
        "import numpy as np\ndef total(parts):\n    return sum(parts)\ny = total([np.ones(3), np.ones(3)])\n",
        "total is called with a NumPy array for parts",
    ),
    "by keyword": (
        "import numpy as np\nscale = lambda x, by: x * by\ny = scale(by=np.ones(4), x=2.0)\n",
        "scale is called with a NumPy array for by: give it a tensor, such as torch.from_numpy(by)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_with_arrays_says_how_to_mend_it(name: str) -> None:
    source, said = CELLS[name]
    with pytest.raises(CaptureError) as raised:
        capture_cell(source, {})
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_arrays_that_only_make_the_inputs_do_no_harm() -> None:
    source = (
        "import numpy as np, torch\nraw = np.ones((4, 8), dtype=np.float32)\nx = torch.from_numpy(raw)\n"
        "def scale(x):\n    return x * 2\ny = scale(x)\n"
    )  # fmt: skip
    assert capture_cell(source, {}).task.entry == "scale"


def test_numpy_numbers_are_numbers() -> None:
    assert not is_array(np.float32(2.0))
    assert is_array(np.array(2.0))
    assert capture_call(lambda x, by: x * by, (torch.ones(4, 8), np.float32(2.0)), name="scale").task.entry == "scale"


def test_a_call_with_an_array_is_refused_by_name() -> None:
    with pytest.raises(CaptureError, match="scale is called with a NumPy array for x: give it a tensor"):
        capture_call(lambda x: x * 2, (np.ones(4, dtype=np.float32),), name="scale")
