#!/usr/bin/env python3
"""Makes tests/data/vision: small image files of every form with what Pillow makes of them, and small random models that read
images, with the results of transformers. A developer's tool: the tests only read its output.

usage: tools/make_vision_refs.py

Needs PyPI; makes a Python environment of its own in .cache/refs-venv.  The files are described in tests/data/vision/README.md.
"""
import io
import json
import shutil
import struct
import zlib

from refs_common import ROOT, SEED, enter_venv, write_ref

enter_venv("pillow")

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers as tf  # noqa: E402
from PIL import Image, ImageOps  # noqa: E402

OUT = ROOT / "tests/data/vision"
LABELS = ["cat", "dog", "ship", "lamp", "tree"]
MODELS = {
    "vit-cls": (tf.ViTForImageClassification,
                tf.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=32,
                             patch_size=8, dtype="bfloat16", id2label=dict(enumerate(LABELS)), label2id={n: i for i, n in enumerate(LABELS)}),
                dict(size={"height": 32, "width": 32}, resample=2)),
    # a pooler, widths and patches that are no multiples of 32, no biases at attention, F16; resized and cut
    "vit": (tf.ViTModel, tf.ViTConfig(hidden_size=40, num_hidden_layers=2, num_attention_heads=2, intermediate_size=72,
                                      image_size=24, patch_size=6, qkv_bias=False, hidden_act="gelu_new", dtype="float16"),
            dict(size={"shortest_edge": 28}, crop_size={"height": 24, "width": 24}, do_center_crop=True, resample=3,
                 image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225])),
}


# ---- image files -----------------------------------------------------------------------------------------------------------

def scene(width, height, shift=0):
    """Slopes, a disc and a few lines: something that neither noise nor one colour is."""
    y, x = np.mgrid[0:height, 0:width].astype(float)
    disc = (x - width * 0.6) ** 2 + (y - height * 0.4) ** 2 < (height * 0.3) ** 2
    a = np.stack([255 * x / width, 255 * y / height, 128 + 100 * np.sin((x + y + shift) / 5)], -1)
    a[disc] = [230, 40 + shift, 60]
    a[:, :: max(width // 4, 2)] *= 0.5
    return Image.fromarray(a.clip(0, 255).astype("uint8"))


def interlaced(img):
    """A PNG file in Adam7's seven passes, which Pillow reads but does not write."""
    a = np.asarray(img)
    raw = b""
    for x0, y0, dx, dy in [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]:
        part = a[y0::dy, x0::dx]
        raw += b"".join(b"\0" + row.tobytes() for row in part) if part.size else b""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", img.width, img.height, 8, 2, 0, 0, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")


def saved(img, kind, **how):
    b = io.BytesIO()
    img.save(b, kind, **how)
    return b.getvalue()


def turned(img, orientation, kind="JPEG", **how):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return saved(img, kind, exif=exif, **how)


def files():
    img = scene(31, 25)
    small = scene(18, 12, 30)
    with_alpha = img.copy()
    with_alpha.putalpha(Image.fromarray((np.mgrid[0:25, 0:31][1] * 8).astype("uint8")))
    deep = Image.fromarray((np.asarray(img.convert("L")).astype("uint16") * 257))
    out = {
        "rgb.png": saved(img, "PNG"), "grey.png": saved(img.convert("L"), "PNG"), "palette.png": saved(img.quantize(16), "PNG"),
        "alpha.png": saved(with_alpha, "PNG"), "deep.png": saved(deep, "PNG"), "bits.png": saved(img.convert("1"), "PNG"),
        "passes.png": interlaced(img), "turned.png": turned(small, 8, "PNG"),
        "photo.jpg": saved(img, "JPEG", quality=85), "grey.jpg": saved(img.convert("L"), "JPEG"),
        "steps.jpg": saved(img, "JPEG", quality=80, progressive=True), "full.jpg": saved(img, "JPEG", subsampling=0),
        "lossy.webp": saved(img, "WEBP", quality=80), "exact.webp": saved(img, "WEBP", lossless=True),
        "alpha.webp": saved(with_alpha, "WEBP", lossless=True, exact=True), "turned.webp": turned(small, 6, "WEBP", lossless=True),
    }
    for i in range(1, 9):
        out[f"turned{i}.jpg"] = turned(small, i, quality=90)
    return out


def refused():
    """Files that must not be read: see tests/unit/image."""
    img = scene(24, 16)
    huge = interlaced(img)[:8] + struct.pack(">I", 13) + b"IHDR" + struct.pack(">IIBBBBB", 30000, 30000, 8, 2, 0, 0, 0)
    huge += struct.pack(">I", zlib.crc32(huge[12:])) + struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))
    return {"cmyk.jpg": saved(img.convert("CMYK"), "JPEG"),
            "moving.webp": saved(img, "WEBP", save_all=True, append_images=[scene(24, 16, 90)]),
            "huge.png": huge, "old.gif": saved(img, "GIF")}


def fitted(img, to, shortest, crop, how):
    """As transformers prepares an image: to: both sides, or the shorter one; then the middle."""
    if shortest:
        w, h = img.size
        to = (shortest, int(shortest * h / w)) if w <= h else (int(shortest * w / h), shortest)
    img = img.resize(to, how)
    if crop:
        top, left = (img.height - crop) // 2, (img.width - crop) // 2
        img = img.crop((left, top, left + crop, top + crop))
    return np.asarray(img)


FITS = {"b": ((14, 11), 0, 0, Image.BILINEAR), "c": (None, 20, 16, Image.BICUBIC)}
LARGER = {"l": ((50, 44), 0, 0, Image.LANCZOS), "w": ((50, 11), 0, 0, Image.BICUBIC), "h": ((31, 44), 0, 0, Image.BILINEAR)}


def make_images():
    folder = OUT / "images"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, data in refused().items():
        (folder / name).write_bytes(data)
    for name, data in files().items():
        (folder / name).write_bytes(data)
        img = Image.open(io.BytesIO(data))
        img.load()
        upright = ImageOps.exif_transpose(img)
        if upright.mode.startswith("I;16") or upright.mode == "I":  # 16 bits become their upper 8
            upright = Image.fromarray((np.asarray(upright) >> 8).astype("uint8"))
        upright = upright.convert("RGB")
        sections = [("whole", np.asarray(upright).reshape(upright.height, -1))]
        for key, how in (FITS | (LARGER if name == "photo.jpg" else {})).items():
            a = fitted(upright, *how)
            sections.append((key, a.reshape(a.shape[0], -1)))
        write_ref(folder / f"{name}.ref", sections)


# ---- models ----------------------------------------------------------------------------------------------------------------

def randomize(model, rng):
    """Makes weights as uneven as trained ones, so that every part of the computation matters."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            norm = "layernorm" in name and name.endswith("weight")
            spread = 0.1 if p.ndim == 1 else 0.5 if "cls_token" in name or "position" in name else 1.2 / p[0].numel() ** 0.5
            p.copy_(torch.tensor(rng.normal(1.0 if norm else 0.0, spread, p.shape), dtype=p.dtype))


def make_model(name):
    kind, config, how = MODELS[name]
    rng = np.random.default_rng([SEED, *name.encode()])
    model = kind(config).eval()
    randomize(model, rng)
    for p in model.parameters():
        p.data = p.data.to(config.dtype or torch.float32)
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    settings = dict(do_resize=True, do_rescale=True, rescale_factor=1 / 255, do_normalize=True, image_mean=[0.5] * 3,
                    image_std=[0.5] * 3, image_processor_type="ViTImageProcessor") | how
    (folder / "preprocessor_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    size = config.image_size
    images = [np.asarray(scene(size, size, 40 * i)) for i in range(3)]
    images += [rng.integers(0, 256, (size, size, 3)).astype("uint8") for _ in range(2)]
    photo = Image.open(OUT / "images/photo.jpg").convert("RGB")
    shortest = settings["size"].get("shortest_edge", 0)
    images.append(fitted(photo, (size, size), shortest, size, settings["resample"]))
    pixels = (np.stack(images) / 255 - np.array(settings["image_mean"])) / np.array(settings["image_std"])
    with torch.no_grad():
        out = model.double()(pixel_values=torch.tensor(pixels.transpose(0, 3, 1, 2)), output_hidden_states=True)
    base = model.vit if hasattr(model, "vit") else model
    hidden = base.layernorm(out.hidden_states[-1]).detach().numpy()
    sections = [("images", np.stack(images).reshape(len(images), -1)), ("hidden", hidden.reshape(-1, hidden.shape[-1]).astype("<f4"))]
    for key, value in (("pooled", getattr(out, "pooler_output", None)), ("logits", getattr(out, "logits", None))):
        if value is not None:
            sections.append((key, value.numpy().astype("<f4")))
    write_ref(OUT / f"{name}.ref", sections)
    print(name, sum(p.numel() for p in model.parameters()), [f"{s} {a.shape}" for s, a in sections], flush=True)


torch.set_num_threads(1)
make_images()
for model_name in MODELS:
    make_model(model_name)
