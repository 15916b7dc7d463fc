CASE = {
    "cheat": 5,
    "op": "linear_model",
    "why": "the reference's class by the names that graders give its module",
    "expect": {"verdicts": ["does_not_build"]},
}

import importlib

for _name in ("reference", "ref", "model", "problem", "task", "__main__"):
    try:
        Model = importlib.import_module(_name).Model
        break
    except (ImportError, AttributeError):
        continue


class ModelNew(Model):
    pass
