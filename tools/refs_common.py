"""Shared by the tools that make reference files: their Python environment and the file format."""
import os
import pathlib
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / ".cache/refs-venv"
PACKAGES = ["torch==2.15.0", "transformers==5.22.2", "gguf==0.19.0", "numpy"]
DTYPES = {"<f4": 0, "<u4": 1, "<u2": 2, "|u1": 3}
SEED = 20261115


def enter_venv(*more):
    """Restarts this program in its own environment, which is created on first use; more: packages that not all tools need."""
    if pathlib.Path(sys.prefix).resolve() == VENV.resolve():
        subprocess.run([VENV / "bin/pip", "install", "-q", *more], check=True) if more else None
        return
    if not (VENV / "bin/python").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        subprocess.run([VENV / "bin/pip", "install", "-q", *PACKAGES], check=True)
    os.execv(VENV / "bin/python", [str(VENV / "bin/python"), *sys.argv])


def write_ref(path, sections):
    """Writes named arrays to a file; tests/data/refs/README.md describes the format."""
    import numpy as np
    with open(path, "wb") as f:
        f.write(b"SHLREF1\n" + struct.pack("<I", len(sections)))
        for name, a in sections:
            a = np.ascontiguousarray(a)
            a = a.reshape(1, -1) if a.ndim == 1 else a
            f.write(struct.pack("<16sIII", name.encode(), DTYPES[a.dtype.str], *a.shape))
            f.write(a.tobytes() + b"\0" * (-a.nbytes % 4))
