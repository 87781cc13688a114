"""A plugin of pytest for llama.cpp's server tests: a table of files, every failure with its class and reason, and texts that
depend on llama.cpp's random numbers.  A failure without a reason (llama_server_classes.py) is listed and fails the run; others do
not.  With TABLE=FILE the table replaces the one in that file.

The tests expect words that llama-server draws at temperature 0.8 with its own random numbers.  Another server draws other
ones.  A test whose only difference are such words counts as `text differs`, not as passed."""
import collections
import importlib
import os
import pathlib

import llama_server_classes
from requests.structures import CaseInsensitiveDict

BEGIN, END = "<!-- made by make conformance-llama-server: begin -->\n", "<!-- end -->\n"
counts = collections.OrderedDict()
failures = []
unknown = []
differs = set()
current = None


def pytest_collection_finish(session):
    utils = importlib.import_module("utils")
    utils.ServerPreset.load_all = staticmethod(lambda: None)  # there is nothing to download
    utils.ServerProcess.make_request = forgiving(utils.ServerProcess.make_request)
    for item in session.items:
        for name in ("utils", item.module.__name__):
            module = importlib.import_module(name)
            if hasattr(module, "match_regex") and not hasattr(module.match_regex, "original"):
                module.match_regex = noting(module.match_regex)


def forgiving(original):
    """Header names are case-insensitive, but the tests look them up in a dict."""
    def make_request(*args, **kwargs):
        result = original(*args, **kwargs)
        result.headers = CaseInsensitiveDict(result.headers)
        return result
    return make_request


def noting(original):
    def match_regex(regex, text):
        if not original(regex, text):
            differs.add(current)
        return True
    match_regex.original = original
    return match_regex


def pytest_runtest_logstart(nodeid, location):
    global current
    current = nodeid


def pytest_runtest_logreport(report):
    file = report.nodeid.split("::")[0].split("/")[-1]
    n = counts.setdefault(file, collections.Counter())
    if report.when == "call" or report.outcome != "passed":
        word = "text differs" if report.outcome == "passed" and report.nodeid in differs else report.outcome
        n[word] += 1
    if report.outcome == "failed":
        crash = getattr(report.longrepr, "reprcrash", None)
        name = file.removesuffix(".py") + "::" + report.nodeid.split("::", 1)[1]
        failures.append((file, name, crash.message if crash else str(report.longrepr)))


def pytest_sessionfinish(session, exitstatus):
    lines, more = llama_server_classes.tables(counts, failures)
    session.config.llama_lines = lines
    unknown.extend(more)
    file = os.environ.get("TABLE")
    if file:
        text = pathlib.Path(file).read_text()
        before, rest = text.split(BEGIN)
        pathlib.Path(file).write_text(before + BEGIN + "\n".join(lines) + "\n" + END + rest.split(END, 1)[1])
    if exitstatus in (0, 1):
        session.exitstatus = 1 if unknown else 0


def pytest_terminal_summary(terminalreporter, config):
    for line in ["", *config.llama_lines, *(f"no reason: {u[:300]}" for u in unknown)]:
        terminalreporter.write_line(line)
