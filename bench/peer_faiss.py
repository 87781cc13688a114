# peer_faiss.py - the same search by FAISS (flat, inner product) and hnswlib, one query at a time, one thread.
# Arguments: FOLDER N_ROWS N_QUERIES DIMS K.  With "make" instead of a number of rows it only writes the vectors.
import json
import sys
import time

import numpy as np

folder, rows, queries, dims, k = sys.argv[1], *map(int, sys.argv[2:6])
if len(sys.argv) > 6:  # clustered like text embeddings: centres with noise around each, all of length 1
    rng = np.random.default_rng(7)
    centres = rng.standard_normal((rows // 50 + 1, dims)).astype(np.float32)
    pick = rng.integers(0, len(centres), rows + queries)
    x = centres[pick] + 0.7 * rng.standard_normal((rows + queries, dims)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x[:rows].tofile(f"{folder}/rows.f32")
    x[rows:].tofile(f"{folder}/queries.f32")
    sys.exit(0)

import faiss
import hnswlib

x = np.fromfile(f"{folder}/rows.f32", np.float32).reshape(-1, dims)
q = np.fromfile(f"{folder}/queries.f32", np.float32).reshape(-1, dims)
faiss.omp_set_num_threads(1)


def measure(name, build, search):
    start = time.perf_counter()
    index = build()
    out = {"name": name, "add_ms": (time.perf_counter() - start) * 1e3, "queries": []}
    for one in q:
        start = time.perf_counter()
        ids = search(index, one.reshape(1, -1))
        out["queries"].append({"us": (time.perf_counter() - start) * 1e6, "ids": [int(i) for i in ids]})
    return out


def flat():
    index = faiss.IndexFlatIP(dims)
    index.add(x)
    return index


def hnsw():
    index = hnswlib.Index(space="ip", dim=dims)
    index.init_index(max_elements=len(x), M=16, ef_construction=200)
    index.add_items(x, num_threads=2)
    index.set_ef(100)
    index.set_num_threads(1)
    return index


print(json.dumps([measure("faiss flat", flat, lambda i, v: i.search(v, k)[1][0]),
                  measure("hnswlib M=16 ef=100", hnsw, lambda i, v: i.knn_query(v, k)[0][0])]))
