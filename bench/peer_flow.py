"""The flow of bench/flow.js as a Ray Serve application: a FastAPI front, two replicas of an encoder and two of a decoder.

Both models run in ONNX Runtime with one thread, tokenizers come from transformers.  A request embeds its text and then writes 16
tokens with a cache of keys and values.  Arguments: PORT ENCODER_FOLDER DECODER_FOLDER."""
import signal
import sys

import ray
from fastapi import FastAPI
from pydantic import BaseModel
from ray import serve

port, encoder_folder, decoder_folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def session_of(folder):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(f"{folder}/onnx/model_quantized.onnx", options, providers=["CPUExecutionProvider"])


def tokenizer_of(folder):
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json")


@serve.deployment(num_replicas=2, ray_actor_options={"num_cpus": 0.1}, max_ongoing_requests=16)
class Encoder:
    def __init__(self, folder):
        self.session, self.tokenizer = session_of(folder), tokenizer_of(folder)

    def __call__(self, text):
        import numpy

        ids = numpy.array([self.tokenizer(text)["input_ids"]], dtype=numpy.int64)
        hidden = self.session.run(["last_hidden_state"], {
            "input_ids": ids, "attention_mask": numpy.ones_like(ids), "token_type_ids": numpy.zeros_like(ids)})[0]
        return int(hidden.mean(axis=1).shape[1])


@serve.deployment(num_replicas=2, ray_actor_options={"num_cpus": 0.1}, max_ongoing_requests=16)
class Decoder:
    def __init__(self, folder):
        self.session, self.tokenizer = session_of(folder), tokenizer_of(folder)
        self.names = [i.name for i in self.session.get_inputs() if i.name.startswith("past_key_values")]
        self.outputs = [o.name for o in self.session.get_outputs()]

    def __call__(self, text):
        import numpy

        ids = numpy.array([self.tokenizer(text)["input_ids"]], dtype=numpy.int64)
        past = {name: numpy.zeros((1, 2, 0, 64), dtype=numpy.float32) for name in self.names}
        n, tokens = 0, []
        for _ in range(16):
            positions = numpy.arange(n, n + ids.shape[1], dtype=numpy.int64)[None]
            out = dict(zip(self.outputs, self.session.run(None, {
                "input_ids": ids, "attention_mask": numpy.ones((1, n + ids.shape[1]), dtype=numpy.int64),
                "position_ids": positions, **past})))
            n += ids.shape[1]
            past = {name: out[name.replace("past_key_values", "present")] for name in self.names}
            tokens.append(int(out["logits"][0, -1].argmax()))
            ids = numpy.array([[tokens[-1]]], dtype=numpy.int64)
        return {"text": self.tokenizer.decode(tokens), "tokens": len(tokens)}


app = FastAPI()


class Ask(BaseModel):
    text: str


@serve.deployment(num_replicas=1, ray_actor_options={"num_cpus": 0.1}, max_ongoing_requests=64)
@serve.ingress(app)
class Front:
    def __init__(self, encoder, decoder):
        self.encoder, self.decoder = encoder, decoder

    @app.post("/v1/process")
    async def process(self, ask: Ask):
        dimensions = await self.encoder.remote(ask.text)
        answer = await self.decoder.remote(f"{ask.text} {dimensions}")
        return {"text": str(answer["tokens"])}


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR", configure_logging=False)
serve.start(http_options={"host": "127.0.0.1", "port": port})
serve.run(Front.bind(Encoder.bind(encoder_folder), Decoder.bind(decoder_folder)), route_prefix="/")
print(f"listening on http://127.0.0.1:{port}", flush=True)
signal.sigwait({signal.SIGTERM, signal.SIGINT})
serve.shutdown()
ray.shutdown()
