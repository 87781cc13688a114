"""models/home.json, the table of the home flow, for Python: models/home.md explains every key.

The training code does not duplicate the program's words and actions: it reads them here.
"""

import json
import pathlib

PATH = pathlib.Path(__file__).resolve().parent.parent / "models" / "home.json"
TABLE = json.loads(PATH.read_text(encoding="utf-8"))

ACTIONS = TABLE["actions"]  # including questions that have an answer or a reason
QUERIES = [a for a, x in ACTIONS.items() if "answer" in x or "reason" in x]
SLOTS = TABLE["slots"]
WEEKDAYS = TABLE["dates"]["weekdays"]
MONTHS = TABLE["dates"]["months"]
# Why a question has no answer, each once, in the order of the table.
REASONS = list(dict.fromkeys(x["reason"] for x in ACTIONS.values() if "reason" in x))
