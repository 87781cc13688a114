#!/usr/bin/env python3
"""Python clients against `shoal serve`: how many of their calls work, by client.

usage: python_clients.py SHOAL [CLIENT...]      (make conformance-python installs the clients and runs it)

Each call checks its answer.  A call that fails is printed with its error; the exit status is 1 if one failed that is not
listed in EXPECTED."""
import asyncio
import hashlib
import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASK = "act: turn_off; device: lights; room: kitchen; result: done"
MESSAGES = [{"role": "user", "content": ASK}]
KEY = "boss"
GREEDY = {"temperature": 0, "repeat_penalty": 1}

# Calls that Shoal does not support, and why.
EXPECTED = {}

os.environ.update(OPENAI_API_KEY=KEY, OLLAMA_API_KEY=KEY, LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_LOG="ERROR")


class Server:
    def __init__(self, shoal, tmp):
        config = tmp / "shoal.yaml"
        registry = tmp / "registry"
        registry.mkdir()
        (registry / "pulled.gguf").write_bytes((ROOT / "models/reply-draft.gguf").read_bytes())
        sha = hashlib.sha256(KEY.encode()).hexdigest()
        config.write_text(f"""listen: ["127.0.0.1:0"]
models:
  - {{name: reply, path: {ROOT}/models/reply-draft.gguf}}
  - {{name: long, path: {ROOT}/tests/data/refs/qwen3.gguf}}
  - {{name: enc, path: {ROOT}/models/encoder}}
ollama: {{dir: {tmp}/made, registry: {registry}}}
keys: [{{name: boss, sha256: {sha}, admin: true}}]
""")
        env = {**os.environ, "SHOAL_CACHE_DIR": str(tmp / "cache")}
        self.log = open(tmp / "log", "w")
        self.child = subprocess.Popen([shoal, "serve", "--only", "--config", config], stdout=subprocess.PIPE, stderr=self.log, env=env, text=True)
        self.url = None
        for line in self.child.stdout:
            found = re.search(r"listening on (http://\S+)", line)
            if found:
                self.url = found.group(1)
            if "models:" in line:
                break
        for _ in range(600):
            try:
                if urllib.request.urlopen(self.url + "/readyz").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise SystemExit("the server did not become ready")

    def stop(self):
        self.child.terminate()
        self.child.wait(30)


def use_openai(call, url):
    import openai
    import pydantic
    ai = openai.OpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0)
    want = ai.chat.completions.create(model="reply", messages=MESSAGES, temperature=0).choices[0].message.content
    chat = lambda **more: ai.chat.completions.create(model="reply", messages=MESSAGES, temperature=0, **more)
    text = lambda **more: ai.completions.create(**{"model": "long", "prompt": "Once upon a time", "temperature": 0, "max_tokens": 6, **more})
    joined = lambda stream: "".join(c.choices[0].delta.content or "" for c in stream if c.choices)
    call("chat", lambda: chat().choices[0].message.content == want)
    call("chat, streamed", lambda: joined(chat(stream=True)) == want)
    call("chat, usage of a stream", lambda: list(chat(stream=True, stream_options={"include_usage": True}))[-1].usage.total_tokens > 0)
    call("chat, parts", lambda: ai.chat.completions.create(model="reply", messages=[{"role": "user", "content": [{"type": "text", "text": ASK}]}], temperature=0).choices[0].message.content == want)
    call("chat, defaults", lambda: chat(tools=[], n=1, store=True, metadata={"a": "b"}, user="me", service_tier="auto", logit_bias={}, response_format={"type": "text"}, parallel_tool_calls=True).choices[0].message.content == want)
    call("chat, n", lambda: len(ai.chat.completions.create(model="reply", messages=MESSAGES, n=3).choices) == 3)
    call("chat, stop", lambda: "lights" not in chat(stop=[" lights"]).choices[0].message.content)
    call("chat, logprobs", lambda: len(chat(logprobs=True, top_logprobs=2).choices[0].logprobs.content[0].top_logprobs) == 2)
    call("chat, max_completion_tokens", lambda: chat(max_completion_tokens=2).choices[0].finish_reason == "length")
    call("chat, prefill", lambda: "The" + ai.chat.completions.create(model="reply", messages=MESSAGES + [{"role": "assistant", "content": "The"}], temperature=0).choices[0].message.content == want)
    call("chat, reasoning_effort", lambda: chat(reasoning_effort="low").choices[0].message.content == want)
    call("chat, json_object", lambda: chat(response_format={"type": "json_object"}, max_tokens=64).choices[0].message.content is not None)
    tool = {"type": "function", "function": {"name": "light", "description": "switch a light", "parameters": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}}}
    call("chat, tools", lambda: chat(tools=[tool], tool_choice="auto", max_tokens=32).choices[0].finish_reason in ("stop", "tool_calls", "length"))
    call("chat, name:latest", lambda: ai.chat.completions.create(model="reply:latest", messages=MESSAGES, temperature=0).choices[0].message.content == want)
    call("chat, raw response", lambda: ai.chat.completions.with_raw_response.create(model="reply", messages=MESSAGES).parse().choices)
    call("models", lambda: {m.id for m in ai.models.list()} >= {"reply", "long", "enc"})
    call("model", lambda: ai.models.retrieve("reply").id == "reply")
    call("completion", lambda: text().usage.completion_tokens == 6)
    call("completion, streamed", lambda: "".join(c.choices[0].text for c in text(stream=True)) == text().choices[0].text)
    call("completion, several", lambda: len(text(prompt=["a", "b"], n=2).choices) == 4)
    call("completion, token ids", lambda: text(prompt=[5, 6, 7]).usage.prompt_tokens == 3)
    call("completion, echo", lambda: text(echo=True).choices[0].text.startswith("Once upon a time"))
    call("completion, prompt logprobs", lambda: text(echo=True, logprobs=1, max_tokens=0).choices[0].logprobs.token_logprobs[0] is None)
    call("completion, best_of", lambda: len(text(best_of=3, n=2, temperature=1).choices) == 2)
    call("completion, suffix is refused by name", lambda: refused(lambda: text(suffix="end"), "fill"))
    call("embeddings", lambda: len(ai.embeddings.create(model="enc", input=["a", "b"]).data) == 2)
    call("embeddings, float", lambda: len(ai.embeddings.create(model="enc", input="a", encoding_format="float").data[0].embedding) > 100)
    call("embeddings, dimensions", lambda: len(ai.embeddings.create(model="enc", input="a", dimensions=8).data[0].embedding) == 8)
    call("embeddings, token ids", lambda: len(ai.embeddings.create(model="enc", input=[[2000, 2001], [2002]]).data) == 2)
    call("embeddings, 2048", lambda: len(ai.embeddings.create(model="enc", input=["a"] * 2048).data) == 2048)
    answer = lambda **more: ai.responses.create(**{"model": "reply", "input": ASK, "temperature": 0, **more})
    call("responses", lambda: answer().output_text == want)
    call("responses, instructions", lambda: answer(instructions="Be brief.").status == "completed")
    call("responses, messages", lambda: answer(input=MESSAGES).output_text == want)
    call("responses, streamed", lambda: "".join(e.delta for e in answer(stream=True) if e.type == "response.output_text.delta") == want)
    call("responses, stream helper", lambda: gathered(ai.responses.stream(model="reply", input=ASK, temperature=0)) == want)
    call("responses, goes on", lambda: answer(input="again", previous_response_id=answer().id).status == "completed")
    call("responses, retrieve", lambda: (lambda r: ai.responses.retrieve(r.id).output_text == want)(answer()))
    call("responses, input items", lambda: (lambda r: len(list(ai.responses.input_items.list(r.id))) == 1)(answer()))
    call("responses, delete", lambda: (lambda r: ai.responses.delete(r.id) is None)(answer()))
    call("responses, cut", lambda: answer(max_output_tokens=2).incomplete_details.reason == "max_output_tokens")
    call("an unknown model", lambda: refused(lambda: ai.chat.completions.create(model="no", messages=MESSAGES), "no"))
    required = lambda **more: chat(tools=[tool], tool_choice="required", max_tokens=200, **more).choices[0].message
    call("chat, required tool", lambda: json.loads(required().tool_calls[0].function.arguments)["on"] in (True, False))
    call("chat, result of a tool", lambda: ai.chat.completions.create(model="reply", max_tokens=16, tools=[tool], messages=MESSAGES + [required(), {"role": "tool", "tool_call_id": required().tool_calls[0].id, "content": "done"}]).choices[0].message)
    schema = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"], "additionalProperties": False}}}
    call("chat, json_schema", lambda: json.loads(chat(response_format=schema).choices[0].message.content)["on"] in (True, False))
    light = pydantic.create_model("Light", on=(bool, ...))
    call("chat, parse", lambda: ai.chat.completions.parse(model="reply", messages=MESSAGES, response_format=light).choices[0].message.parsed.on in (True, False))
    call("chat, stream helper", lambda: streamed(ai.chat.completions.stream(model="reply", messages=MESSAGES, temperature=0)) == want)
    call("chat, seed", lambda: len({ai.chat.completions.create(model="long", messages=MESSAGES, temperature=1.5, seed=7, max_tokens=8).choices[0].message.content for _ in range(2)}) == 1)
    call("chat, streaming response", lambda: raw_lines(ai.chat.completions.with_streaming_response.create(model="reply", messages=MESSAGES, stream=True))[-1] == "data: [DONE]")
    call("chat, async", lambda: asyncio.run(async_chat(openai.AsyncOpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0))) == [want, want])
    call("embeddings, base64", lambda: isinstance(ai.embeddings.with_raw_response.create(model="enc", input="a", encoding_format="base64").http_response.json()["data"][0]["embedding"], str))
    call("completion, logit_bias", lambda: text(logit_bias={"5": -100}).usage.completion_tokens == 6)
    call("responses, parse", lambda: ai.responses.parse(model="reply", input=ASK, text_format=light).output_parsed.on in (True, False))
    call("responses, tools", lambda: answer(tools=[{"type": "function", "strict": True, **{k: v for k, v in tool["function"].items()}}], tool_choice="required", max_output_tokens=200).output[0].name == "light")
    call("responses, truncation", lambda: answer(model="long", input=[{"role": "user", "content": "old " * 400}, {"role": "assistant", "content": "yes"}] * 20 + MESSAGES, truncation="auto", max_output_tokens=2).status == "incomplete")
    call("responses, background", lambda: waited(ai, answer(background=True).id).output_text == want)
    call("responses, cancel", lambda: cancelled(ai, answer(model="long", input="Once", background=True, max_output_tokens=900).id))
    call("responses, input tokens", lambda: ai.responses.input_tokens.count(model="reply", input=ASK).input_tokens > 3)
    call("moderations are refused by name", lambda: refused(lambda: ai.moderations.create(input="x"), "classify"))
    call("images are refused", lambda: refused(lambda: ai.images.generate(prompt="x"), "404"))
    conversation = ai.conversations.create(metadata={"topic": "lights"}, items=[{"role": "user", "content": "hello"}]).id
    call("conversations", lambda: ai.conversations.retrieve(conversation).metadata["topic"] == "lights")
    call("conversations, update", lambda: ai.conversations.update(conversation, metadata={"topic": "blinds"}).metadata["topic"] == "blinds")
    call("conversations, respond", lambda: answer(conversation=conversation).conversation.id == conversation)
    call("conversations, items", lambda: [i.role for i in ai.conversations.items.list(conversation, order="asc")] == ["user", "user", "assistant"])
    call("conversations, add items", lambda: len(ai.conversations.items.create(conversation, items=[{"role": "user", "content": "more"}]).data) == 1)
    item = ai.conversations.items.list(conversation, order="asc").data[0].id
    call("conversations, one item", lambda: ai.conversations.items.retrieve(item, conversation_id=conversation).content[0].text == "hello")
    call("conversations, delete an item", lambda: ai.conversations.items.delete(item, conversation_id=conversation).id == conversation)
    call("conversations, delete", lambda: ai.conversations.delete(conversation).deleted)


def streamed(manager):
    with manager as stream:
        return "".join(e.delta for e in stream if e.type == "content.delta")


def raw_lines(manager):
    with manager as response:
        return [line for line in response.iter_lines() if line]


async def async_chat(ai):
    whole = await ai.chat.completions.create(model="reply", messages=MESSAGES, temperature=0)
    parts = [c.choices[0].delta.content or "" async for c in await ai.chat.completions.create(model="reply", messages=MESSAGES, temperature=0, stream=True) if c.choices]
    return [whole.choices[0].message.content, "".join(parts)]


def waited(ai, name):
    for _ in range(600):
        r = ai.responses.retrieve(name)
        if r.status not in ("queued", "in_progress"):
            return r
        time.sleep(0.1)
    return r


def cancelled(ai, name):
    """Cancelled, or too late: an answer of a small model may be complete before."""
    try:
        return ai.responses.cancel(name).status == "cancelled"
    except Exception as e:
        return "not in progress" in str(e) and waited(ai, name).status in ("completed", "incomplete")


def gathered(manager):
    with manager as stream:
        for _ in stream:
            pass
        return stream.get_final_response().output_text


def refused(fn, word):
    try:
        fn()
    except Exception as e:  # the client's own kind of error
        return word in str(e)
    return False


def use_ollama(call, url):
    import ollama
    o = ollama.Client(host=url, headers={"Authorization": f"Bearer {KEY}"})
    want = o.chat(model="reply", messages=MESSAGES, options=GREEDY).message.content
    call("chat", lambda: len(want) > 0)
    call("chat, streamed", lambda: "".join(p.message.content for p in o.chat(model="reply", messages=MESSAGES, options=GREEDY, stream=True)) == want)
    call("chat, format and tools empty", lambda: o.chat(model="reply", messages=MESSAGES, tools=[], format="", options=GREEDY).message.content == want)
    call("chat, think", lambda: o.chat(model="reply", messages=MESSAGES, think=False, options=GREEDY).message.content == want)
    call("chat, keep_alive", lambda: o.chat(model="reply", messages=MESSAGES, keep_alive="5m", options=GREEDY).done)
    call("chat, format json", lambda: o.chat(model="reply", messages=MESSAGES, format="json", options={**GREEDY, "num_predict": 64}).done)
    call("chat, tools", lambda: o.chat(model="reply", messages=MESSAGES, options={"num_predict": 16}, tools=[{"type": "function", "function": {"name": "light", "description": "x", "parameters": {"type": "object", "properties": {}}}}]).done)
    call("chat, images are refused", lambda: refused(lambda: o.chat(model="reply", messages=[{"role": "user", "content": "x", "images": [b"abc"]}]), "images"))
    call("chat, an assistant's message", lambda: o.chat(model="reply", messages=MESSAGES + [{"role": "assistant", "content": "The"}], options=GREEDY).done)
    call("chat, options", lambda: o.chat(model="reply", messages=MESSAGES, options=ollama.Options(num_ctx=2048, num_predict=4, seed=1, top_k=40, mirostat=0, typical_p=1.0, stop=["x"])).eval_count <= 4)
    call("generate", lambda: o.generate(model="reply", prompt=ASK, options=GREEDY).response == want)
    call("generate, streamed", lambda: "".join(p.response for p in o.generate(model="reply", prompt=ASK, options=GREEDY, stream=True)) == want)
    call("generate, system", lambda: o.generate(model="reply", prompt=ASK, system="Be brief.", options=GREEDY).done)
    call("generate, raw", lambda: o.generate(model="reply", prompt=ASK, raw=True, options={"num_predict": 2}).eval_count <= 2)
    call("generate, context", lambda: o.generate(model="reply", prompt="again", context=o.generate(model="reply", prompt=ASK, options=GREEDY).context, options=GREEDY).done)
    call("generate, template", lambda: o.generate(model="reply", prompt="x", template="{{ messages[0].content }}", options={"num_predict": 1}).done)
    call("generate, suffix is refused by name", lambda: refused(lambda: o.generate(model="reply", prompt="x", suffix="y"), "fill"))
    call("generate, load", lambda: o.generate(model="reply", prompt="").done_reason == "load")
    call("list", lambda: {m.model for m in o.list().models} >= {"reply", "enc"})
    call("show", lambda: o.show("reply").details.quantization_level)
    call("ps", lambda: o.ps().models[0].expires_at.year > 2000)
    call("embed", lambda: len(o.embed(model="enc", input=["a", "b"]).embeddings) == 2)
    call("embed, one", lambda: len(o.embed(model="enc", input="a").embeddings) == 1)
    call("embed, dimensions", lambda: len(o.embed(model="enc", input="a", dimensions=8).embeddings[0]) == 8)
    call("embeddings", lambda: len(o.embeddings(model="enc", prompt="a").embedding) > 100)
    call("create", lambda: o.create(model="butler", from_="reply", system="Be a butler.", parameters={"num_predict": 2}).status == "success")
    call("create, streamed", lambda: list(o.create(model="butler2", from_="reply", stream=True))[-1].status == "success")
    call("what was created", lambda: o.generate(model="butler", prompt=ASK).eval_count == 2)
    call("create_blob", lambda: o.create_blob(ROOT / "models/reply-draft.gguf").startswith("sha256:"))
    call("create of a blob", lambda: o.create(model="sent", files={"a.gguf": o.create_blob(ROOT / "models/reply-draft.gguf")}).status == "success")
    call("copy", lambda: o.copy("butler", "copy").status == "success")
    call("delete", lambda: o.delete("copy").status == "success")
    call("pull", lambda: o.pull("pulled").status == "success")
    call("pull, streamed", lambda: list(o.pull("pulled", stream=True))[-1].status == "success")
    call("push", lambda: o.push("reply").status == "success")
    call("an unknown model", lambda: refused(lambda: o.chat(model="no", messages=MESSAGES), "no"))
    call("chat, unload", lambda: o.generate(model="pulled", prompt="", keep_alive=0).done_reason == "unload")
    schema = {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}
    call("chat, schema", lambda: json.loads(o.chat(model="reply", messages=MESSAGES, format=schema, options=GREEDY).message.content)["on"] in (True, False))
    call("generate, schema", lambda: json.loads(o.generate(model="reply", prompt=ASK, format=schema, options=GREEDY).response)["on"] in (True, False))

    def switch(on: bool) -> str:
        """Switch the light.

        Args:
            on: whether it shall be on
        """
        return "done"
    call("chat, a function as a tool", lambda: o.chat(model="reply", messages=MESSAGES, tools=[switch], options={"num_predict": 16}).done)
    calls = [{"function": {"name": "switch", "arguments": {"on": True}}}]
    call("chat, result of a tool", lambda: o.chat(model="reply", messages=MESSAGES + [{"role": "assistant", "content": "", "tool_calls": calls}, {"role": "tool", "content": "done", "tool_name": "switch"}], options={"num_predict": 8}).done)
    call("chat, logprobs", lambda: len(o.chat(model="reply", messages=MESSAGES, logprobs=True, top_logprobs=2, options=GREEDY).logprobs[0].top_logprobs) == 2)
    call("generate, logprobs", lambda: len(o.generate(model="reply", prompt=ASK, logprobs=True, options=GREEDY).logprobs) > 2)
    go = "{{ if .System }}{{ .System }} {{ end }}{{ .Prompt }}"
    call("generate, a Go template", lambda: o.generate(model="reply", prompt="x", template=go, options={"num_predict": 1}).done)
    call("create, template, license, messages", lambda: o.create(model="full", from_="reply", template=go, license="MIT", messages=[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]).status == "success")
    call("show, what was created", lambda: o.show("full").modelfile.count("MESSAGE") == 2)
    call("embed, token limit", lambda: len(o.embed(model="enc", input="word " * 2000, truncate=True).embeddings) == 1)
    call("async", lambda: asyncio.run(ollama.AsyncClient(host=url, headers={"Authorization": f"Bearer {KEY}"}).chat(model="reply", messages=MESSAGES, options=GREEDY)).message.content == want)


def use_grpcio(call, url):
    """Google's own gRPC library, with stubs made from our proto file."""
    import grpc
    sys.path.insert(0, str(ROOT / "proto"))
    protos, services = grpc.protos_and_services("shoal/v1/shoal.proto")
    channel = grpc.insecure_channel(url.removeprefix("http://"))
    stub, key = services.ShoalStub(channel), (("authorization", f"Bearer {KEY}"),)
    make = lambda kind, **fields: getattr(protos, kind)(**fields)
    ask = lambda **more: make("GenerateRequest", model="reply", messages=MESSAGES, temperature=0, **more)
    endless = lambda: make("GenerateRequest", model="long", prompt="Once", max_tokens=900, ignore_eos=True)
    want = stub.Generate(ask(), metadata=key).text
    call("Generate", lambda: len(want) > 3)
    call("GenerateStream", lambda: "".join(e.text for e in stub.GenerateStream(ask(), metadata=key)) == want)
    call("Generate, max_tokens", lambda: stub.Generate(ask(max_tokens=2), metadata=key).usage.completion_tokens == 2)
    call("Generate, future", lambda: stub.Generate.future(ask(), metadata=key).result().text == want)
    call("Generate, choice", lambda: stub.Generate(ask(choice=protos.Choices(texts=["on", "off"])), metadata=key).text in ("on", "off"))
    call("Generate, with_call", lambda: stub.Generate.with_call(ask(), metadata=key)[1].code() == grpc.StatusCode.OK)
    call("Classify", lambda: stub.Classify(make("ClassifyRequest", model="enc", input=["turn off the lights"]), metadata=key).data[0].labels)
    call("Tag", lambda: stub.Tag(make("TagRequest", model="enc", input=["turn off the kitchen lights"]), metadata=key).data)
    call("Embed", lambda: len(stub.Embed(make("EmbedRequest", model="enc", input=["a", "b"]), metadata=key).data) == 2)

    def status(fn):
        try:
            fn()
        except grpc.RpcError as e:
            return e.code()
    call("an unknown model", lambda: status(lambda: stub.Generate(make("GenerateRequest", model="no", prompt="x"), metadata=key)) == grpc.StatusCode.NOT_FOUND)
    call("no key", lambda: status(lambda: stub.Generate(ask())) == grpc.StatusCode.UNAUTHENTICATED)
    call("a deadline", lambda: status(lambda: stub.Generate(endless(), metadata=key, timeout=0.001)) == grpc.StatusCode.DEADLINE_EXCEEDED)

    def cancel():
        stream = stub.GenerateStream(endless(), metadata=key)
        next(stream)
        stream.cancel()
        return status(lambda: list(stream)) == grpc.StatusCode.CANCELLED
    call("a cancelled stream", cancel)
    health = channel.unary_unary("/grpc.health.v1.Health/Check", request_serializer=bytes, response_deserializer=bytes)
    call("health", lambda: health(b"") == b"\x08\x01")
    channel.close()


def use_home_assistant(call, url):
    """The calls that Home Assistant's integrations for Ollama, OpenAI and Anthropic make, with their clients and arguments."""
    import anthropic
    import ollama
    import openai
    names = {"on": {"type": "boolean", "description": "on or off"}}
    schema = {"type": "object", "properties": names, "required": []}
    system = "You are a voice assistant for Home Assistant.\nAnswer in plain text. Keep it simple and to the point."
    o = ollama.AsyncClient(host=url, headers={"Authorization": f"Bearer {KEY}"})
    tool = {"type": "function", "function": {"name": "HassTurnOff", "description": "Turns off", "parameters": schema}}
    turn = [{"role": "system", "content": system}, {"role": "user", "content": ASK}]
    done = turn + [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "HassTurnOff", "arguments": {"on": False}}}]},
                   {"role": "tool", "content": json.dumps({"speech": {}, "response_type": "action_done"})}]

    async def local(messages, **more):
        stream = await o.chat(model="reply", messages=messages, stream=True, keep_alive="-1s", options={"num_ctx": 8192}, **more)
        return [p async for p in stream]
    run = asyncio.new_event_loop().run_until_complete  # as there, one for all
    call("ollama: list", lambda: run(o.list()).models)
    call("ollama: chat", lambda: run(local(turn, tools=None, think=False))[-1].done)
    call("ollama: chat with tools", lambda: run(local(turn, tools=[tool]))[-1].done)
    call("ollama: result of a tool", lambda: run(local(done, tools=[tool]))[-1].done)
    call("ollama: structured", lambda: json.loads("".join(p.message.content for p in run(local(turn, format=schema | {"required": ["on"]}))))["on"] in (True, False))

    async def responses(items, **more):
        ai = openai.AsyncOpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0)
        stream = await ai.responses.create(model="reply", input=items, max_output_tokens=150, top_p=1.0, temperature=1.0, user="01K", store=False, stream=True, **more)
        return [e async for e in stream]
    items = [{"type": "message", "role": "developer", "content": system}, {"type": "message", "role": "user", "content": ASK}]
    function = {"type": "function", "name": "HassTurnOff", "parameters": schema, "description": "Turns off", "strict": False}
    later = items + [{"type": "function_call", "name": "HassTurnOff", "arguments": "{}", "call_id": "call_1"},
                     {"type": "function_call_output", "call_id": "call_1", "output": "{}"}]
    strict = {"format": {"type": "json_schema", "name": "x", "schema": schema | {"required": ["on"], "additionalProperties": False}, "strict": True}}
    ends = ("response.completed", "response.incomplete")
    call("openai: models", lambda: openai.OpenAI(base_url=url + "/v1", api_key=KEY).with_options(timeout=10.0).models.list().data)
    call("openai: response", lambda: run(responses(items))[-1].type in ends)
    call("openai: response with tools", lambda: run(responses(items, tools=[function]))[-1].type in ends)
    call("openai: result of a tool", lambda: run(responses(later, tools=[function]))[-1].type in ends)
    call("openai: reasoning settings", lambda: run(responses(items, reasoning={"effort": "low", "summary": "auto"}, include=["reasoning.encrypted_content"], text={"verbosity": "medium"}))[-1].type in ends)
    call("openai: structured", lambda: json.loads([e for e in run(responses(items, text=strict)) if e.type == "response.output_text.done"][0].text)["on"] in (True, False))

    async def claude(**more):
        client = anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0)
        stream = await client.messages.create(model="reply", messages=[{"role": "user", "content": ASK}], max_tokens=150, stream=True,
                                              system=[{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}], **more)
        return [e.type async for e in stream]
    call("anthropic: message", lambda: run(claude(thinking={"type": "disabled"}, extra_body={"temperature": 1.0}))[-1] == "message_stop")
    call("anthropic: message with tools", lambda: run(claude(tools=[{"name": "HassTurnOff", "description": "Turns off", "input_schema": schema}]))[-1] == "message_stop")


def use_litellm(call, url):
    import litellm
    litellm.suppress_debug_info = True
    litellm.drop_params = True
    base = {"api_base": url + "/v1", "api_key": KEY, "temperature": 0}
    ollama = {"api_base": url, "headers": {"Authorization": f"Bearer {KEY}"}, "api_key": KEY}
    call("completion", lambda: litellm.completion(model="openai/reply", messages=MESSAGES, **base).choices[0].message.content)
    call("completion, streamed", lambda: "".join(c.choices[0].delta.content or "" for c in litellm.completion(model="openai/reply", messages=MESSAGES, stream=True, **base)))
    call("completion, parameters", lambda: litellm.completion(model="openai/reply", messages=MESSAGES, max_tokens=3, stop=["x"], seed=1, user="me", n=1, **base).usage.completion_tokens <= 3)
    call("text_completion", lambda: litellm.text_completion(model="text-completion-openai/long", prompt="Once", max_tokens=3, **base).choices[0])
    call("embedding", lambda: len(litellm.embedding(model="openai/enc", input=["a", "b"], api_base=url + "/v1", api_key=KEY).data) == 2)
    call("responses", lambda: litellm.responses(model="openai/reply", input=ASK, **base).output)
    call("responses, streamed", lambda: [e.type for e in litellm.responses(model="openai/reply", input=ASK, stream=True, **base)][-1] == "response.completed")
    call("vllm provider", lambda: litellm.completion(model="hosted_vllm/reply", messages=MESSAGES, **base).choices[0].message.content)
    call("llama.cpp provider", lambda: litellm.completion(model="llamafile/reply", messages=MESSAGES, **base).choices[0].message.content)
    call("ollama_chat", lambda: litellm.completion(model="ollama_chat/reply", messages=MESSAGES, **ollama).choices[0].message.content)
    call("ollama_chat, streamed", lambda: "".join(c.choices[0].delta.content or "" for c in litellm.completion(model="ollama_chat/reply", messages=MESSAGES, stream=True, **ollama)))
    call("ollama", lambda: litellm.completion(model="ollama/reply", messages=MESSAGES, **ollama).choices[0].message.content)


def use_langchain(call, url):
    from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings
    base = {"base_url": url + "/v1", "api_key": KEY, "max_retries": 0}
    chat = ChatOpenAI(model="reply", temperature=0, **base)
    want = chat.invoke(ASK).content
    call("ChatOpenAI", lambda: len(want) > 0)
    call("ChatOpenAI, streamed", lambda: "".join(c.content for c in chat.stream(ASK)) == want)
    call("ChatOpenAI, batch", lambda: [m.content for m in chat.batch([ASK, ASK])] == [want, want])
    call("ChatOpenAI, system", lambda: chat.invoke([("system", "Be brief."), ("human", ASK)]).content is not None)
    call("ChatOpenAI, max_tokens and stop", lambda: ChatOpenAI(model="reply", max_tokens=3, stop=["x"], **base).invoke(ASK).content is not None)
    call("ChatOpenAI, usage", lambda: chat.invoke(ASK).usage_metadata["total_tokens"] > 0)
    call("ChatOpenAI, logprobs", lambda: chat.bind(logprobs=True).invoke(ASK).response_metadata["logprobs"])
    call("ChatOpenAI, responses", lambda: ChatOpenAI(model="reply", temperature=0, use_responses_api=True, **base).invoke(ASK).text)
    call("ChatOpenAI, responses, streamed", lambda: list(ChatOpenAI(model="reply", temperature=0, use_responses_api=True, **base).stream(ASK)))
    call("ChatOpenAI, tools", lambda: chat.bind_tools([{"name": "light", "description": "x", "parameters": {"type": "object", "properties": {}}}]).bind(max_tokens=16).invoke(ASK) is not None)
    call("OpenAI", lambda: OpenAI(model="long", max_tokens=3, **base).invoke("Once") is not None)
    call("OpenAI, streamed", lambda: list(OpenAI(model="long", max_tokens=3, **base).stream("Once")))
    embed = OpenAIEmbeddings(model="enc", check_embedding_ctx_length=False, **base)
    call("OpenAIEmbeddings", lambda: len(embed.embed_documents(["a", "b"])) == 2)
    call("OpenAIEmbeddings, query", lambda: len(embed.embed_query("a")) > 100)
    from langchain_ollama import ChatOllama, OllamaEmbeddings, OllamaLLM
    own = {"base_url": url, "client_kwargs": {"headers": {"Authorization": f"Bearer {KEY}"}}}
    call("ChatOllama", lambda: ChatOllama(model="reply", temperature=0, **own).invoke(ASK).content)
    call("ChatOllama, streamed", lambda: "".join(c.content for c in ChatOllama(model="reply", temperature=0, **own).stream(ASK)))
    call("OllamaLLM", lambda: OllamaLLM(model="reply", **own).invoke(ASK))
    call("OllamaEmbeddings", lambda: len(OllamaEmbeddings(model="enc", **own).embed_documents(["a", "b"])) == 2)


def use_llama_index(call, url):
    from llama_index.core.llms import ChatMessage
    from llama_index.embeddings.openai import OpenAIEmbedding
    from llama_index.llms.ollama import Ollama
    from llama_index.llms.openai_like import OpenAILike
    llm = OpenAILike(model="reply", api_base=url + "/v1", api_key=KEY, is_chat_model=True, temperature=0, max_tokens=64, context_window=1024)
    call("chat", lambda: llm.chat([ChatMessage(role="user", content=ASK)]).message.content)
    call("chat, streamed", lambda: list(llm.stream_chat([ChatMessage(role="user", content=ASK)]))[-1].message.content)
    call("complete", lambda: llm.complete(ASK).text)
    plain = OpenAILike(model="long", api_base=url + "/v1", api_key=KEY, is_chat_model=False, max_tokens=4)
    call("complete, text", lambda: plain.complete("Once") is not None)
    embed = OpenAIEmbedding(model_name="enc", api_base=url + "/v1", api_key=KEY, max_retries=0)
    call("embeddings", lambda: len(embed.get_text_embedding_batch(["a", "b"])) == 2)
    call("embeddings, query", lambda: len(embed.get_query_embedding("a")) > 100)
    import ollama
    own = Ollama(model="reply", base_url=url, client=ollama.Client(host=url, headers={"Authorization": f"Bearer {KEY}"}))
    call("Ollama, chat", lambda: own.chat([ChatMessage(role="user", content=ASK)]).message.content)
    call("Ollama, complete", lambda: own.complete(ASK).text)


def use_huggingface_hub(call, url):
    from huggingface_hub import InferenceClient
    of = lambda path="": InferenceClient(model=url + path, token=KEY)
    chat = InferenceClient(base_url=url + "/v1", token=KEY)
    call("chat_completion", lambda: chat.chat_completion(MESSAGES, model="reply", max_tokens=32).choices[0].message.content)
    call("chat_completion, streamed", lambda: [c for c in chat.chat_completion(MESSAGES, model="reply", max_tokens=32, stream=True)])
    call("chat.completions.create", lambda: chat.chat.completions.create(model="reply", messages=MESSAGES).choices[0])
    call("feature_extraction", lambda: of("/embed").feature_extraction("turn on the lamp").shape[-1] > 100)
    call("feature_extraction, normalize", lambda: of("/embed").feature_extraction("a", normalize=True, truncate=True).size > 100)
    call("sentence_similarity", lambda: of("/similarity").sentence_similarity("turn on the lamp", other_sentences=["switch the lamp on", "rain"])[0] > 0.8)
    call("text_classification", lambda: of("/predict").text_classification("turn off the lights")[0].label)
    call("text_generation", lambda: of("/generate").text_generation("Once", max_new_tokens=3))
    call("text_generation, details", lambda: of("/generate").text_generation("Once", max_new_tokens=3, details=True).details.generated_tokens == 3)
    call("text_generation, streamed", lambda: len(list(of("/generate").text_generation("Once", max_new_tokens=3, stream=True))) == 3)


def use_instructor(call, url):
    from typing import Literal
    import instructor
    import openai
    import pydantic

    class Weather(pydantic.BaseModel):
        mood: Literal["sunny", "rainy"]
        degrees: int = pydantic.Field(ge=-50, le=60)

    for mode in (instructor.Mode.JSON_SCHEMA, instructor.Mode.TOOLS_STRICT):
        client = instructor.from_openai(openai.OpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0), mode=mode)
        ask = lambda **more: client.chat.completions.create(model="reply", messages=MESSAGES, response_model=Weather, max_retries=0, temperature=0, **more)
        call(f"{mode.name}", lambda: -50 <= ask().degrees <= 60)
    partial = instructor.from_openai(openai.OpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0), mode=instructor.Mode.JSON_SCHEMA)
    call("partial", lambda: list(partial.chat.completions.create_partial(model="reply", messages=MESSAGES, response_model=Weather, max_retries=0))[-1].mood in ("sunny", "rainy"))


def use_pydantic_ai(call, url):
    import pydantic
    from pydantic_ai import Agent, NativeOutput
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    class Light(pydantic.BaseModel):
        on: bool

    provider = OpenAIProvider(base_url=url + "/v1", api_key=KEY)
    for kind in (OpenAIChatModel, OpenAIResponsesModel):
        model = kind("reply", provider=provider)
        call(f"{kind.__name__}", lambda: Agent(model).run_sync(ASK).output)
        call(f"{kind.__name__}, native output", lambda: Agent(model, output_type=NativeOutput(Light)).run_sync(ASK).output.on in (True, False))
        call(f"{kind.__name__}, tool output", lambda: Agent(model, output_type=Light).run_sync(ASK).output.on in (True, False))


def use_openai_agents(call, url):
    import agents
    import openai
    agents.set_tracing_disabled(True)
    client = openai.AsyncOpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0)
    for kind in (agents.OpenAIChatCompletionsModel, agents.OpenAIResponsesModel):
        agent = agents.Agent(name="a", instructions="Be brief.", model=kind(model="reply", openai_client=client))
        call(f"{kind.__name__}", lambda: agents.Runner.run_sync(agent, ASK).final_output)


def use_text_generation(call, url):
    import text_generation
    client = text_generation.Client(url, headers={"Authorization": f"Bearer {KEY}"}, timeout=60)
    call("generate", lambda: client.generate("Once", max_new_tokens=3).details.generated_tokens == 3)
    call("generate_stream", lambda: len(list(client.generate_stream("Once", max_new_tokens=3))) == 3)
    call("sampling", lambda: client.generate("Once", max_new_tokens=3, do_sample=True, temperature=0.7, top_p=0.9, top_k=20, seed=3, stop_sequences=["zz"]).generated_text)


def use_anthropic(call, url):
    import anthropic
    client = anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0)
    ask = lambda **more: client.messages.create(model="reply", max_tokens=20, messages=MESSAGES, **more)
    tool = {"name": "set_light", "input_schema": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}}
    call("create", lambda: ask().content[0].text)
    call("count_tokens", lambda: client.messages.count_tokens(model="reply", messages=MESSAGES).input_tokens > 3)
    forced = lambda: client.messages.create(model="reply", max_tokens=200, messages=MESSAGES, tools=[tool], tool_choice={"type": "any"})
    call("tool", lambda: forced().content[0].input["on"] in (True, False))

    def stream():
        with client.messages.stream(model="reply", max_tokens=20, messages=MESSAGES) as s:
            text = "".join(s.text_stream)
            return text and s.get_final_message().content[0].text == text
    call("stream", stream)


def use_dspy(call, url):
    import dspy
    lm = dspy.LM("openai/reply", api_base=url + "/v1", api_key=KEY, cache=False, num_retries=0, max_tokens=200)
    call("LM", lambda: lm(ASK))
    # dspy asks for a response format only of models whose names it knows
    one = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": [1]}}}
    call("LM, response_format", lambda: lm(ASK, response_format=one) == ["1"])
    embed = dspy.Embedder("openai/enc", api_base=url + "/v1", api_key=KEY, caching=False)
    call("Embedder", lambda: embed(["a", "b"]).shape[0] == 2)


def use_haystack(call, url):
    from haystack.components.embedders import OpenAITextEmbedder
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.tools import Tool
    from haystack.utils import Secret
    secret = Secret.from_token(KEY)
    chat = lambda **kw: OpenAIChatGenerator(model="reply", api_key=secret, api_base_url=url + "/v1", max_retries=0, **kw)
    ask = [ChatMessage.from_user(ASK)]
    call("chat", lambda: chat().run(messages=ask)["replies"][0].text)
    parts = []
    call("stream", lambda: chat(streaming_callback=lambda c: parts.append(c.content)).run(messages=ask)["replies"][0].text == "".join(parts))
    light = Tool(name="set_light", description="a light", parameters={"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}, function=lambda on: str(on))
    call("tool", lambda: chat(tools=[light], generation_kwargs={"tool_choice": "required"}).run(messages=ask)["replies"][0].tool_calls[0].arguments["on"] in (True, False))
    call("embedder", lambda: len(OpenAITextEmbedder(model="enc", api_key=secret, api_base_url=url + "/v1").run(text="a")["embedding"]) > 10)


def use_semantic_kernel(call, url):
    import asyncio
    import openai
    from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings, OpenAITextEmbedding
    from semantic_kernel.contents import ChatHistory
    client = openai.AsyncOpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0)
    chat, settings = OpenAIChatCompletion(ai_model_id="reply", async_client=client), OpenAIChatPromptExecutionSettings(max_tokens=20)
    history = ChatHistory()
    history.add_user_message(ASK)

    async def stream():
        return [str(c[0]) async for c in chat.get_streaming_chat_message_contents(history, settings)]

    async def all_calls():
        call_now = {}
        call_now["chat"] = str((await chat.get_chat_message_contents(history, settings))[0])
        call_now["stream"] = "".join(await stream())
        call_now["embeddings"] = len(await OpenAITextEmbedding(ai_model_id="enc", async_client=client).generate_embeddings(["a", "b"])) == 2
        return call_now
    got = asyncio.run(all_calls())
    for what in ("chat", "stream", "embeddings"):
        call(what, lambda: got[what])


def use_outlines(call, url):
    import openai
    import outlines
    import pydantic

    class Light(pydantic.BaseModel):
        on: bool
    model = outlines.from_openai(openai.OpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0), "reply")
    call("text", lambda: model(ASK, max_tokens=20))
    call("schema", lambda: Light.model_validate_json(model(ASK, Light)).on in (True, False))


def use_smolagents(call, url):
    from smolagents import OpenAIServerModel
    model = OpenAIServerModel(model_id="reply", api_base=url + "/v1", api_key=KEY, max_tokens=30)
    ask = [{"role": "user", "content": [{"type": "text", "text": ASK}]}]
    call("generate", lambda: model.generate(ask).content)
    call("generate_stream", lambda: "".join(d.content or "" for d in model.generate_stream(ask)))
    call("response_format", lambda: model.generate(ask, response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": [1]}}}).content == "1")


def use_autogen(call, url):
    import asyncio
    from autogen_agentchat.agents import AssistantAgent
    from autogen_core.models import UserMessage
    from autogen_ext.models.ollama import OllamaChatCompletionClient
    from autogen_ext.models.openai import OpenAIChatCompletionClient
    info = {"vision": False, "function_calling": True, "json_output": True, "family": "unknown", "structured_output": True}
    chat = OpenAIChatCompletionClient(model="reply", base_url=url + "/v1", api_key=KEY, model_info=info, max_retries=0)
    local = OllamaChatCompletionClient(model="reply", host=url, model_info=info)
    run = asyncio.new_event_loop().run_until_complete
    ask = [UserMessage(content=ASK, source="user")]
    call("OpenAI's", lambda: run(chat.create(ask)).content)
    call("Ollama's", lambda: run(local.create(ask)).content)
    call("agent", lambda: run(AssistantAgent("a", chat).run(task=ASK)).messages[-1].content)


def use_crewai(call, url):
    os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false")
    from crewai import LLM
    llm = LLM(model="openai/reply", base_url=url + "/v1", api_key=KEY, max_tokens=30)
    call("LLM", lambda: llm.call(MESSAGES))


def use_guidance(call, url):
    import guidance
    from guidance.models import OpenAI
    model = OpenAI("reply", api_key=KEY, base_url=url + "/v1")

    def gen():
        with guidance.user():
            lm = model + ASK
        with guidance.assistant():
            lm = lm + guidance.gen("x", max_tokens=10)
        return lm["x"]
    call("gen", gen)


def use_agno(call, url):
    from agno.agent import Agent
    from agno.models.openai.like import OpenAILike
    agent = Agent(model=OpenAILike(id="reply", base_url=url + "/v1", api_key=KEY, max_retries=0), telemetry=False)
    call("agent", lambda: agent.run(ASK).content)


CLIENTS = {"openai": use_openai, "ollama": use_ollama, "grpcio": use_grpcio, "home-assistant": use_home_assistant, "litellm": use_litellm, "langchain": use_langchain,
           "llama-index": use_llama_index, "huggingface_hub": use_huggingface_hub, "instructor": use_instructor,
           "pydantic-ai": use_pydantic_ai, "openai-agents": use_openai_agents, "text-generation": use_text_generation,
           "anthropic": use_anthropic, "dspy": use_dspy, "haystack": use_haystack, "semantic-kernel": use_semantic_kernel,
           "outlines": use_outlines, "smolagents": use_smolagents, "autogen": use_autogen, "crewai": use_crewai,
           "guidance": use_guidance, "agno": use_agno}
PACKAGES = {"home-assistant": "ollama", "langchain": "langchain-openai", "llama-index": "llama-index-core", "pydantic-ai": "pydantic-ai-slim", "haystack": "haystack-ai",
            "autogen": "autogen-agentchat"}


def main():
    shoal, wanted = sys.argv[1], sys.argv[2:] or list(CLIENTS)
    bad = 0
    with tempfile.TemporaryDirectory() as tmp:
        server = Server(shoal, pathlib.Path(tmp))
        for name in wanted:
            counts = [0, 0]

            def call(what, fn):
                counts[1] += 1
                try:
                    if fn():
                        counts[0] += 1
                        return
                    why = "the answer is not the expected one"
                except Exception as e:  # any exception of the client
                    why = f"{type(e).__name__}: {str(e)[:300]}"
                known = EXPECTED.get(f"{name} {what}")
                nonlocal bad
                bad += not known
                print(f"  {name}: {what}: {'expected, ' + known if known else why}")

            try:
                CLIENTS[name](call, server.url)
            except Exception as e:
                bad += 1
                print(f"  {name}: gave up: {type(e).__name__}: {str(e)[:500]}")
            version = importlib.metadata.version(PACKAGES.get(name, name))
            print(f"{name} {version}: {counts[0]}/{counts[1]}", flush=True)
        server.stop()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
