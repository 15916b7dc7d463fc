CASE = {
    "cheat": 56,
    "op": "scale",
    "why": "the same before there is anything to call",
    "expect": {"verdicts": ["does_not_build", "crashed"]},
}

import sys

sys.exit(0)
