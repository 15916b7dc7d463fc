"""Triton without a GPU: its interpreter, mended, and the device that launchers believe to see."""
