"""The flow of bench/flow.js as a Ray Serve application: a FastAPI front, two replicas of a classifier and two of a writer.

peer_flow.py make FOLDER ENCODER_TOKENIZER WRITER_TOKENIZER
    writes the two models with random weights: FOLDER/intent (DistilBERT, also as INT8 for ONNX Runtime), FOLDER/writer (a llama of 15 M)
peer_flow.py PORT FOLDER transformers|onnx
    serves: the writer runs in transformers; so does the classifier, or in ONNX Runtime
peer_flow.py PORT onnx-only ENCODER_FOLDER DECODER_FOLDER
    serves: an embedder and a decoder of 26 M, both in ONNX Runtime with a loop of our own, without torch

Each replica has one thread.  A request runs the first model on its text and then writes 16 tokens."""
import os
import shutil
import signal
import sys

N_TOKENS = 16


def make(folder, encoder_tokenizer, writer_tokenizer):
    import torch
    import transformers

    transformers.set_seed(7)
    intent = transformers.DistilBertForSequenceClassification(transformers.DistilBertConfig(num_labels=16)).eval()
    intent.save_pretrained(f"{folder}/intent")
    writer = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=32000, hidden_size=288, intermediate_size=768, num_hidden_layers=6, num_attention_heads=6,
        num_key_value_heads=6, max_position_embeddings=512, tie_word_embeddings=True))
    writer.save_pretrained(f"{folder}/writer")
    for source, name in ((encoder_tokenizer, "intent"), (writer_tokenizer, "writer")):
        for file in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(f"{source}/{file}", f"{folder}/{name}/{file}")

    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = intent

        def forward(self, input_ids, attention_mask):
            return self.model(input_ids=input_ids, attention_mask=attention_mask).logits

    ids = torch.ones((1, 24), dtype=torch.int64)
    length = torch.export.Dim("length", min=2, max=512)
    torch.onnx.export(Logits().eval(), (ids, ids), f"{folder}/intent.onnx", dynamo=True, input_names=["input_ids", "attention_mask"],
                      output_names=["logits"], dynamic_shapes=({1: length}, {1: length}))
    exported = onnx.load(f"{folder}/intent.onnx")
    del exported.graph.value_info[:]  # the quantizer infers the shapes again and gets different ones from the exporter's
    quantize_dynamic(exported, f"{folder}/intent.int8.onnx", weight_type=QuantType.QInt8)


def session_of(file):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def tokenizer_of(folder):
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json")


def models():
    """The deployments of the two models, as selected on the command line."""
    from ray import serve

    replicas = serve.deployment(num_replicas=2, ray_actor_options={"num_cpus": 0.1}, max_ongoing_requests=16)

    @replicas
    class Intent:  # in transformers
        def __init__(self, folder):
            import torch
            import transformers

            torch.set_num_threads(1)
            self.tokenizer = tokenizer_of(folder)
            self.model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()

        def __call__(self, text):
            import torch

            with torch.no_grad():
                logits = self.model(**self.tokenizer(text, return_tensors="pt", return_token_type_ids=False)).logits
            return int(logits.argmax(dim=-1)[0])

    @replicas
    class IntentOnnx:
        def __init__(self, folder):
            self.session, self.tokenizer = session_of(f"{folder}.int8.onnx"), tokenizer_of(folder)

        def __call__(self, text):
            import numpy

            ids = numpy.array([self.tokenizer(text)["input_ids"]], dtype=numpy.int64)
            logits = self.session.run(None, {"input_ids": ids, "attention_mask": numpy.ones_like(ids)})[0]
            return int(logits.argmax())

    @replicas
    class Writer:
        def __init__(self, folder):
            import torch
            import transformers

            torch.set_num_threads(1)
            self.tokenizer = tokenizer_of(folder)
            self.model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()

        def __call__(self, text):
            import torch

            inputs = self.tokenizer(text, return_tensors="pt", return_token_type_ids=False)
            with torch.no_grad():
                out = self.model.generate(**inputs, max_new_tokens=N_TOKENS, min_new_tokens=N_TOKENS, do_sample=False, pad_token_id=0)
            tokens = out[0, inputs["input_ids"].shape[1]:]
            return {"text": self.tokenizer.decode(tokens), "tokens": len(tokens)}

    @replicas
    class Encoder:
        def __init__(self, folder):
            self.session, self.tokenizer = session_of(f"{folder}/onnx/model_quantized.onnx"), tokenizer_of(folder)

        def __call__(self, text):
            import numpy

            ids = numpy.array([self.tokenizer(text)["input_ids"]], dtype=numpy.int64)
            hidden = self.session.run(["last_hidden_state"], {
                "input_ids": ids, "attention_mask": numpy.ones_like(ids), "token_type_ids": numpy.zeros_like(ids)})[0]
            return int(hidden.mean(axis=1).shape[1])

    @replicas
    class Decoder:
        def __init__(self, folder):
            self.session, self.tokenizer = session_of(f"{folder}/onnx/model_quantized.onnx"), tokenizer_of(folder)
            self.names = [i.name for i in self.session.get_inputs() if i.name.startswith("past_key_values")]
            self.outputs = [o.name for o in self.session.get_outputs()]

        def __call__(self, text):
            import numpy

            ids = numpy.array([self.tokenizer(text)["input_ids"]], dtype=numpy.int64)
            past = {name: numpy.zeros((1, 2, 0, 64), dtype=numpy.float32) for name in self.names}
            n, tokens = 0, []
            for _ in range(N_TOKENS):
                positions = numpy.arange(n, n + ids.shape[1], dtype=numpy.int64)[None]
                out = dict(zip(self.outputs, self.session.run(None, {
                    "input_ids": ids, "attention_mask": numpy.ones((1, n + ids.shape[1]), dtype=numpy.int64),
                    "position_ids": positions, **past})))
                n += ids.shape[1]
                past = {name: out[name.replace("past_key_values", "present")] for name in self.names}
                tokens.append(int(out["logits"][0, -1].argmax()))
                ids = numpy.array([[tokens[-1]]], dtype=numpy.int64)
            return {"text": self.tokenizer.decode(tokens), "tokens": len(tokens)}

    if sys.argv[2] == "onnx-only":
        return Encoder.bind(sys.argv[3]), Decoder.bind(sys.argv[4])
    folder = sys.argv[2]
    first = IntentOnnx if sys.argv[3] == "onnx" else Intent
    return first.bind(f"{folder}/intent"), Writer.bind(f"{folder}/writer")


def main():
    import ray
    from fastapi import FastAPI
    from pydantic import BaseModel
    from ray import serve

    port = int(sys.argv[1])
    app = FastAPI()

    class Ask(BaseModel):
        text: str

    @serve.deployment(num_replicas=1, ray_actor_options={"num_cpus": 0.1}, max_ongoing_requests=64)
    @serve.ingress(app)
    class Front:
        def __init__(self, first, writer):
            self.first, self.writer = first, writer

        @app.post("/v1/process")
        async def process(self, ask: Ask):
            label = await self.first.remote(ask.text)
            answer = await self.writer.remote(f"{ask.text} {label}")
            return {"text": str(answer["tokens"])}

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR", configure_logging=False)
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    serve.run(Front.bind(*models()), route_prefix="/")
    print(f"listening on http://127.0.0.1:{port}", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    serve.shutdown()
    ray.shutdown()


if sys.argv[1] == "make":
    os.makedirs(sys.argv[2], exist_ok=True)
    make(*sys.argv[2:5])
else:
    main()
