CASE = {
    "cheat": 5,
    "op": "linear_model",
    "why": "class ModelNew(Model): pass, where the grader's namespace has a Model",
    "expect": {"verdicts": ["does_not_build"], "words": "Model"},
}


class ModelNew(Model):  # noqa: F821
    pass
