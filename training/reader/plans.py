"""The plan language: its words, how a plan and its input are written, and how a plan is read back.

PLAN.md has the grammar. Every word of the language is one token of the model (`<on>`, `<t3>`, `<w7>`), so a plan of a
usual command has four to eight tokens, and no text of a user can contain one.
"""

MAX_THINGS, MAX_AREAS, MAX_FLOORS, MAX_OWN, MAX_WORDS = 16, 8, 4, 6, 64

VERBS = """on off toggle open close lock unlock set up down start stop pause resume next previous mute unmute play
dock find arm disarm scene call message announce ask add remove clear create timer alarm remind event
answer undo repeat cancel none other chat""".split()
CLASSES = """light switch fan cover blind curtain shutter shade awning door garage gate window lock climate heating cooling
media vacuum mower camera siren valve pump machine appliance sensor person everything
motion smoke gas leak co sound vibration presence battery problem""".split()
QUANTITIES = """brightness color temperature humidity position volume speed mode pressure power energy flow level
charge current voltage weight co2 air light_level noise distance rpm ph concentration time_left frequency torque angle
dose count consumption history state place""".split()
STATES = """is_on is_off is_open is_closed is_locked is_unlocked is_running is_stopped is_home is_away is_detected is_clear
is_low is_ok is_charging is_wet is_dry is_hot is_cold is_connected is_disconnected is_armed is_disarmed is_playing is_paused
is_full is_empty is_problem is_occupied is_plugged is_unplugged""".split()
MODES = "any all which count except everywhere here it unknown nothing same bit lot yes no one here_all".split()
ROLES = "to_value by_value at in for every what item list name with dur sun until".split()
TIMER = "set_one cancel_one pause_one resume_one more less change ask_one snooze all_of".split()
NONE = "talk negated reported question condition retracted unclear".split()
OTHER = """weather time date maths knowledge convert news joke recipe music_info like email contact social transport traffic
taxi ticket takeaway recommend stock game translate shop money travel health work car help about manual assistant""".split()
CHAT = "greet bye thanks praise wrong dontcare confirm again explain sorry how_are_you".split()
STATE_WORDS = "here_is last pending ask_value ask_which ask_time ask_text ask_yes ringing playing things areas text or room near exact".split()

SPECIAL = ["<pad>", "<eos>", "<unk>"]


def _tokens():
    names = ["sep"] + VERBS + CLASSES + QUANTITIES + STATES + MODES + ROLES + TIMER + NONE + OTHER + CHAT + STATE_WORDS
    names += [f"t{i}" for i in range(1, MAX_THINGS + 1)] + [f"a{i}" for i in range(1, MAX_AREAS + 1)]
    names += [f"f{i}" for i in range(1, MAX_FLOORS + 1)] + [f"q{i}" for i in range(1, MAX_OWN + 1)]
    names += [f"w{i}" for i in range(MAX_WORDS)]
    names += [f"spare{i}" for i in range(32)]
    seen = dict.fromkeys(names)
    return SPECIAL + [f"<{n}>" for n in seen]


TOKENS = _tokens()
IDS = {t: i for i, t in enumerate(TOKENS)}


class Span:
    """Words of the text that carry the tag `key`: written as their first and last index."""
    __slots__ = ("key",)

    def __init__(self, key):
        self.key = key

    def __repr__(self):
        return f"Span({self.key})"


# Verbs that change something outside the assistant. A wrong one is worse than none: evaluate.py counts them apart.
ACTING = set("""on off toggle open close lock unlock set up down start stop pause resume next previous mute unmute play dock find arm
disarm scene call message announce add remove clear create timer alarm remind event undo repeat answer""".split())


def acts(plan, asked=True):
    """True if a written plan does something. A question about a timer does not, nor does an answer if nothing was asked."""
    for act in plan.split(" ; "):
        words = act.split()
        if words and words[0] in ACTING and (asked or words[0] != "answer") and not (words[0] in ("timer", "alarm", "remind", "event") and "ask_one" in words):
            return True
    return False
