#!/usr/bin/env python3
"""Renders chat templates with Python's Jinja2, set up as transformers does.

Reads lines of JSON {"source", "context"} from stdin and writes a line {"ok", "text"} for each.
argv[1]: the time that strftime_now shows, in seconds since 1970, as UTC.
"""

import datetime
import json
import sys

import jinja2
import jinja2.sandbox

NOW = datetime.datetime.fromtimestamp(int(sys.argv[1]), datetime.timezone.utc)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


env = jinja2.sandbox.ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception
env.globals["strftime_now"] = NOW.strftime

for line in sys.stdin:
    job = json.loads(line)
    try:
        text = env.from_string(job["source"]).render(**json.loads(job["context"]))
        answer = {"ok": True, "text": text}
    except Exception as e:  # whatever a template does, the next one is rendered
        answer = {"ok": False, "text": f"{type(e).__name__}: {e}"}
    print(json.dumps(answer), flush=True)
