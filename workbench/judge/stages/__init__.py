"""The stages of a judging, in order, each a module with one function that `Judge.evaluate` calls: text, build, run, correctness, timing.

Each takes the `Context` of the task and the `Trial` of the candidate, adds to the trial what it finds, and raises `trial.Stop` where the
verdict is known.
"""
