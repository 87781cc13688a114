#!/usr/bin/env python3
"""Renders chat templates with Python's Jinja2, set up as transformers does.

Reads lines of JSON {"source", "context"} from stdin and writes a line {"ok", "text"} for each.
argv[1]: the time that strftime_now shows, in seconds since 1970, as UTC.
"""

import datetime
import json
import sys
import warnings

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = datetime.datetime.fromtimestamp(int(sys.argv[1]), datetime.timezone.utc)
warnings.simplefilter("ignore")


class Generation(jinja2.ext.Extension):
    """{% generation %}: what transformers calls AssistantTracker."""

    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_call")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(lineno)

    def _call(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


env = jinja2.sandbox.ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception
env.globals["strftime_now"] = NOW.strftime

source = template = None
for line in sys.stdin:
    job = json.loads(line)
    try:
        if job["source"] != source:
            source, template = job["source"], None
            template = env.from_string(source)
        if template is None:
            raise jinja2.exceptions.TemplateError("the template cannot be parsed")
        text = template.render(**json.loads(job["context"]))
        answer = {"ok": True, "text": text}
    except Exception as e:  # the next template is rendered whatever this one does
        answer = {"ok": False, "text": f"{type(e).__name__}: {e}"}
    print(json.dumps(answer), flush=True)
