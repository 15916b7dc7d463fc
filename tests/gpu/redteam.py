"""The whole red-team corpus on this machine's GPU: ``python tests/gpu/redteam.py [NAME …]``.

Needs torch and triton alone, not pytest, so that it runs on a bare GPU node. Exit status 1 if a case does not get what it declares.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from workbench.bench.redteam import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main("cuda", ROOT / "tests" / "redteam", sys.argv[1:], as_json=False))
