# peer_voice.py - Moonshine's own ONNX files with ONNX Runtime, for bench/voice.js: reads lines with names of files of 16-bit samples and
# answers each with one line of JSON: milliseconds, processor milliseconds, token ids.  Arguments: FOLDER THREADS.
import json
import resource
import sys
import time

import numpy as np
import onnxruntime

START, END, PER_SECOND, MOST = 1, 2, 6.5, 193
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2])
options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # spinning costs both programs: they share the cores
encoder, decoder = (onnxruntime.InferenceSession(f"{sys.argv[1]}/{x}.onnx", options) for x in ("encoder_model", "decoder_model_merged"))
names = [x.name.replace("present", "past_key_values") for x in decoder.get_outputs()][1:]
empty = {x.name: np.zeros([1, x.shape[1], 0, x.shape[3]], np.float32) for x in decoder.get_inputs() if x.name.startswith("past")}


def hear(x):
    state = encoder.run(None, {"input_values": x[None]})[0]
    past, ids = dict(empty), [START]
    for i in range(min(int(len(x) / 16000 * PER_SECOND) + 8, MOST)):
        out = decoder.run(None, {"input_ids": np.array([ids[-1:]]), "encoder_hidden_states": state, "use_cache_branch": np.array([i > 0]), **past})
        ids.append(int(out[0][0, -1].argmax()))
        if ids[-1] == END:
            return ids[1:-1]
        past.update({k: v for k, v in zip(names, out[1:]) if i == 0 or ".decoder." in k})
    return ids[1:]


def cpu():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return (r.ru_utime + r.ru_stime) * 1e3


for line in sys.stdin:
    x = np.fromfile(line.strip(), np.int16).astype(np.float32) / 32768
    start, used = time.perf_counter(), cpu()
    ids = hear(x)
    print(json.dumps(dict(ms=(time.perf_counter() - start) * 1e3, cpu_ms=cpu() - used, ids=ids)), flush=True)
