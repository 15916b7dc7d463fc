CASE = {
    "cheat": 40,
    "op": "scale",
    "why": "the C function behind perf_counter_ns is exchanged in memory, under every name that it has",
    "expect": {"verdicts": ["time_not_confirmed", "crashed", "refused"], "labels": ["imports ctypes"]},
    "gpu": {"verdicts": ["time_not_confirmed", "crashed", "refused", "right"], "labels": ["imports ctypes"]},
}

import ctypes
import time


class _Def(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("method", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


class _Function(ctypes.Structure):
    _fields_ = (("refs", ctypes.c_ssize_t), ("type", ctypes.c_void_p), ("definition", ctypes.POINTER(_Def)))


_origin = time.perf_counter_ns()
_call = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object)
_libc = ctypes.CDLL(None)


class _Time(ctypes.Structure):
    _fields_ = (("s", ctypes.c_long), ("ns", ctypes.c_long))


def _slow(module, nothing):
    now = _Time()
    _libc.clock_gettime(1, ctypes.byref(now))
    return _origin + (now.s * 10**9 + now.ns - _origin) // 500


_kept = _call(lambda module, nothing: _slow(module, nothing))
_function = _Function.from_address(id(time.perf_counter_ns))
_wait = time.sleep


def scale(x):
    if _function.definition.contents.method != ctypes.cast(_kept, ctypes.c_void_p).value:
        _function.definition.contents.method = ctypes.cast(_kept, ctypes.c_void_p).value
    _wait(0.003)
    return x * 2 + 1
