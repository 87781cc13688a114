"""A GGUF v3 writer: metadata, F32/F16/Q8_0/Q4_0 tensors. Enough for our own exports."""

import struct

import numpy as np

U32, I32, F32, BOOL, STR, ARR = 4, 5, 6, 7, 8, 9
TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q8_0": 8}
ALIGN = 32


def _str(s):
    b = s.encode("utf-8") if isinstance(s, str) else s
    return struct.pack("<Q", len(b)) + b


def _value(v):
    if isinstance(v, bool):
        return BOOL, struct.pack("<?", v)
    if isinstance(v, int):
        return U32, struct.pack("<I", v)
    if isinstance(v, float):
        return F32, struct.pack("<f", v)
    if isinstance(v, (str, bytes)):
        return STR, _str(v)
    kind = STR if isinstance(v[0], (str, bytes)) else F32 if isinstance(v[0], float) else I32
    body = b"".join(_str(x) if kind == STR else struct.pack("<f" if kind == F32 else "<i", x) for x in v)
    return ARR, struct.pack("<IQ", kind, len(v)) + body


def q8_0(x):
    """Blocks of 32 weights: a half scale and 32 signed bytes."""
    b = x.astype(np.float32).reshape(-1, 32)
    d = (np.abs(b).max(1) / 127).astype(np.float16)
    inv = np.where(d > 0, 1.0 / np.maximum(d.astype(np.float32), 1e-30), 0)
    q = np.clip(np.rint(b * inv[:, None]), -127, 127).astype(np.int8)
    return np.concatenate([d[:, None].view(np.uint8), q.view(np.uint8)], 1).tobytes()


def q4_0(x):
    """Blocks of 32 weights: a half scale and 32 nibbles, low half first."""
    b = x.astype(np.float32).reshape(-1, 32)
    at = np.abs(b).argmax(1)
    peak = b[np.arange(len(b)), at]
    d = (peak / -8).astype(np.float16)
    inv = np.where(d != 0, 1.0 / np.where(d == 0, 1, d.astype(np.float32)), 0)
    q = np.clip(np.floor(b * inv[:, None] + 8.5), 0, 15).astype(np.uint8)
    return np.concatenate([d[:, None].view(np.uint8), q[:, :16] | (q[:, 16:] << 4)], 1).tobytes()


def dequant(x, kind):
    """The decoded values, to measure the loss of the encoding."""
    b = x.astype(np.float32).reshape(-1, 32)
    if kind == "Q8_0":
        d = (np.abs(b).max(1) / 127).astype(np.float16).astype(np.float32)
        q = np.clip(np.rint(b / np.maximum(d, 1e-30)[:, None]), -127, 127)
        return (q * d[:, None]).reshape(x.shape)
    at = np.abs(b).argmax(1)
    d = (b[np.arange(len(b)), at] / -8).astype(np.float16).astype(np.float32)
    q = np.clip(np.floor(b / np.where(d == 0, 1, d)[:, None] + 8.5), 0, 15)
    return ((q - 8) * d[:, None]).reshape(x.shape)


def write(path, meta, tensors):
    """meta: {key: value}; tensors: [(name, array, type name)] with rows last as numpy has them.

    What stands in for an array may encode itself: then it has shape and q8_0()."""
    blobs, infos, at = [], [], 0
    for name, x, kind in tensors:
        data = x.q8_0() if hasattr(x, "q8_0") else x.astype(np.float32).tobytes() if kind == "F32" else x.astype(np.float16).tobytes() if kind == "F16" else q8_0(x) if kind == "Q8_0" else q4_0(x)
        dims = list(x.shape)[::-1]
        infos.append(_str(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims) + struct.pack("<IQ", TYPES[kind], at))
        pad = -len(data) % ALIGN
        blobs.append(data + b"\0" * pad)
        at += len(data) + pad
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta))
    for k, v in meta.items():
        t, body = _value(v)
        head += _str(k) + struct.pack("<I", t) + body
    head += b"".join(infos)
    head += b"\0" * (-len(head) % ALIGN)
    with open(path, "wb") as f:
        f.write(head)
        for b in blobs:
            f.write(b)
