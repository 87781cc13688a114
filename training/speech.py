"""Generated texts with the speech act of every word: which words are a command to the assistant, and which only look like one.

A template is a text with marks: <c> command, <q> question, <n> negated, <s> supposed or conditional, <r> reported or
past, <x> retracted, <o> not meant for us. A mark holds until the next one. {vp} is a command in plain words ("turn off
the kitchen lights"), {ing}, {past}, {pp} and {s} the same with its verb inflected, {np} a thing, {p} a person.
"""

import random
import re

import home
import values as v
from grammar import expand

LABELS = {"c": "command", "q": "ask", "n": "negate", "s": "suppose", "r": "report", "x": "retract", "o": None}

IRREGULAR = {
    "set": ("setting", "set", "set"), "put": ("putting", "put", "put"), "shut": ("shutting", "shut", "shut"), "cut": ("cutting", "cut", "cut"), "make": ("making", "made", "made"),
    "run": ("running", "ran", "run"), "begin": ("beginning", "began", "begun"), "send": ("sending", "sent", "sent"), "tell": ("telling", "told", "told"), "write": ("writing", "wrote", "written"),
    "get": ("getting", "got", "gotten"), "bring": ("bringing", "brought", "brought"), "take": ("taking", "took", "taken"), "draw": ("drawing", "drew", "drawn"), "dim": ("dimming", "dimmed", "dimmed"),
    "stop": ("stopping", "stopped", "stopped"), "let": ("letting", "let", "let"), "give": ("giving", "gave", "given"), "drop": ("dropping", "dropped", "dropped"), "ring": ("ringing", "rang", "rung"),
    "find": ("finding", "found", "found"), "buy": ("buying", "bought", "bought"), "keep": ("keeping", "kept", "kept"), "wake": ("waking", "woke", "woken"), "undo": ("undoing", "undid", "undone"),
    "flip": ("flipping", "flipped", "flipped"), "skip": ("skipping", "skipped", "skipped"), "mop": ("mopping", "mopped", "mopped"), "read": ("reading", "read", "read"), "strike": ("striking", "struck", "struck"),
}
REGULAR = """turn switch power fire activate enable start kill deactivate disable change adjust brighten raise lower increase reduce heat cool warm open lift pull close lock
bolt secure unlock unbolt release launch kick vacuum clean mow pause halt abort end cancel crank mute silence use play arm disarm create count delete remove clear forget remind add note
cross restart boot limit schedule book text message call phone dial place announce broadcast say locate calculate compute work prepare resume continue dock mow wash brew water move""".split()


def inflect(verb):
    if verb in IRREGULAR:
        return IRREGULAR[verb]
    if verb.endswith("e"):
        return verb[:-1] + "ing", verb + "d", verb + "d"
    return verb + "ing", verb + "ed", verb + "ed"


def third(verb):
    return verb + ("es" if verb[-1] in "sxhz" else "s")


VERBS = {w: inflect(w) for w in list(IRREGULAR) + REGULAR}
RISKY = ["unlock", "open", "disarm_alarm", "start_machine", "turn_on", "set_temperature", "turn_off", "stop_machine", "lock", "close", "start", "stop", "set_machine"]


def plain(rng):
    """A command in plain words that begins with a verb: (verb, rest)."""
    while True:
        text, _, _ = home.command(rng, rng.choice(RISKY) if rng.random() < 0.6 else rng.choice(sorted(home.IMPERATIVE)), True)
        first, _, rest = text.partition(" ")
        if first in VERBS and rest and len(text) < 90:
            return first, rest


def thing(rng):
    d = rng.choice(v.LIGHTS + v.SWITCHES + v.COVERS + v.LOCKS + v.RUNNABLE + v.MACHINES)
    return rng.choice(["the ", "the ", "my ", "our "]) + (rng.choice(v.ROOMS) + " " if rng.random() < 0.4 else "") + d


THINGS = """drill press|grinder|sander|planer|router table|milling head|robot cell|stacker|hoist|crane|lift|blower|agitator|feeder|hopper|screw conveyor|chipper|mill|roller|winder|spindle|table saw|
chain saw|vacuum pump|dosing pump|printer|plotter|welder|cutter|slicer|blender|juicer|treadmill|ventilator|escalator|carousel|assembly line|filling line|washer|sprayer|wire saw|jigsaw""".replace("\n", "").split("|")
STATE = "on|off|open|closed|locked|unlocked|running|armed".split("|")

CONDITION = "(" + """it (rains|snows|thunders|gets windy|gets cold|gets dark|gets too hot)|the (sun|moon) (rises|sets|comes out)|(nobody|no one|everybody|somebody|anyone) is (home|awake|asleep|around|in the house)|{p} (calls|arrives|leaves|wakes up|knocks|comes home|goes to bed|rings|texts me)
the (battery|temperature|humidity|pressure|water level|power price) (is too low|drops|rises|falls below ten|goes above thirty|reaches fifty)|there is (a fire|smoke|a leak|a storm|an emergency|an alarm|nobody there)|the (kids|guests|neighbors|dogs) (come|arrive|leave|sleep|are gone|make noise)
i (leave|forget|fall asleep|come home late|say so|am away|get up|call you|start cooking)|we (go on holiday|run out of milk|have visitors|are late|watch a movie)|the (door|window|gate) (opens|is open|is left open)|the (washing|cake|film|game|meeting) (is done|is over|is finished|ends)
someone (rings the bell|breaks in|asks|complains)|that (happens|is true|works)|the (internet|light|heating|machine) (breaks|fails|goes out)""".replace("\n", "|") + ")"
CONNECT = """if|if|if|when|when|whenever|once|as soon as|unless|in case|as long as|so long as|in the event that|on the day that|every day that|until|before|after|while|only if|only when|even if|except when|by the time|immediately after|on days when|assuming that|on the off chance that""".split("|")

COMMAND = """
<c>{vp}
<c>{vp}
<c>{vp}
<c>please {vp}
<c>{vp} please
<c>(can|could|will|would) you {vp}( please|)
<c>(can|could) you please {vp}
<c>(would|do) you mind {ing}
<c>i (want|need|would like) you to {vp}
<c>i'd like you to {vp}( now|)
<c>go ahead and {vp}
<c>hey( shoal|) {vp}
<c>(ok|okay|alright|right) {vp}( now|)
<c>{vp} (now|right now|immediately|for me|would you|when you can|quickly|again)
<c>just {vp}
<c>make sure (to|you) {vp}
<c>(don't|do not) forget to {vp}
<c>(be sure|remember) to {vp}
<c>it would be (great|nice|good) if you (could|would) {vp}
<c>i was wondering if you could {vp}
<c>(it's|it is) time to {vp}
<c>let's {vp}
<c>(kindly|quickly) {vp}
<c>would you be so kind (as to|and) {vp}
<c>you (can|may) {vp}( now|)
<c>why don't you {vp}
<c>(mind|how about) {ing}
<c>i need to {vp}
<c>we (have|need) to {vp}
<c>any chance you could {vp}
<c>{vp} before i (forget|go|leave)
<c>{vp} (so|because) (i can sleep|it is cold|i am leaving|we have guests)
<c>{vp} and <c>{vp}
<c>{vp} and then <c>{vp}
<c>{vp}, <c>{vp}
<c>{vp} then <c>{vp} please
<c>{vp}. <c>{vp}.
<c>{vp}, <c>{vp} and <c>{vp}
<c>please {vp} and also <c>{vp}
<c>can you {vp} and <c>{vp}
<c>{np} (on|off)
<c>{np} (on|off) please
<c>remind me not to {vp}
<c>remind me to {vp}
<c>(text|tell|message) {p} not to {vp}
<c>(text|tell|message) {p} that i already {past}
<c>(ask|tell) {p} to {vp}
<c>text {p} (don't|do not) {vp}
<c>play don't stop (me now|believin|the music)
<c>play (never|don't|no) (gonna give you up|worry be happy|woman no cry)
<c>add (a do not disturb sign|never ending story|no parking sign) to (my|the) shopping list
<c>announce that nobody should {vp}
<c>stop
<c>stop (everything|all|it|that|them)( now|)
<c>(stop|halt|emergency stop)( now| right now| immediately|)
<c>(stop|halt|shut down|kill) {np}( now|)
<c>stop all (machines|the machines|motors|pumps)
<c>(everything off|all off|shut everything down|turn everything off)
<c>(louder|quieter|next|pause|resume|undo)
<c>(stop|halt|stop) (the|that|this) {thing}( now| please|)
<c>(stop|halt) {thing}
<c>{thing} stop
<c>(quickly|please|oh no|hey) stop the {thing}
<c>i would (love|appreciate) it if you (could|would) {vp}
<c>(be|would you be) so good (and|as to) {vp}
<c>feel free to {vp}
<c>i'd be (happy|glad|grateful) if you'd {vp}
<c>i would be (happy|glad) if you could {vp}
<c>{vp} (right this second|pronto|in a hurry|without fuss|for everyone|for the kids|once more|one more time|already)
<c>{vp}, (won't you|if you'd be so kind|there's a good one|chop chop|come on)
<c>(set|turn|switch) it {n} (degrees|percent)
<c>(close|open|lock|unlock|start|stop|dim|pause|mute) (it|them|these)( again| now| please|)
<c>turn (it|them) (on|off|up|down)( again| please|)
<c>(we|i) want to {vp}
<c>(do me a favor|help me out) and {vp}
<c>(how|what) about you {vp}
<c>{vp} (as soon as you can|as quickly as possible|right this minute|without delay|for the guests|like always)
<c>{vp}, (would you|could you|can you|ok|okay|thank you|thanks)
<c>(alright|good|great|fine|so|now) then, {vp}
<c>(first|next|finally|lastly) {vp}
<c>{vp} and (also|please|finally) <c>{vp}
<c>{vp}; <c>{vp}
<c>{vp}, after that <c>{vp}
<c>(first|to begin with) {vp} and <c>then {vp}
<c>(turn|switch|put) (it|them|that|those) (on|off|up|down|back on)
<c>(open|close|lock|unlock|start|stop) (it|them|that|those)( again|)
<c>(and|also) {np} too
<c>{np} too please
<c>a bit (brighter|warmer|louder|lower|higher) please
<c>only {vp}
<c>no problem, {vp}
<c>thanks, now {vp}
<c>yes, {vp}
<c>no, {vp}
<c>all but one: {vp}
<c>i can't see, {vp}
<c>i'm not home, {vp}
<c>nobody is home, {vp}
<c>it isn't warm enough, {vp}
<c>i don't need light, {vp}
<c>if you can, {vp}
<c>if it's not too much trouble {vp}
<c>if you don't mind {vp}
<c>when you get a chance {vp}
<c>{vp} if possible
<c>{vp} if you would
"""
ASK = """
<q>did (you|i|we|anyone|somebody|{p}) {vp}
<q>did (you|i) {vp} (already|yesterday|this morning|before)
<q>have (you|we|they) {pp}( yet|)
<q>has (anyone|somebody|{p}) {pp}
<q>why did (you|{p}|we) {vp}
<q>why (would|should) (i|you|we|anyone) {vp}
<q>who {past}
<q>who (told|asked) you to {vp}
<q>when did (you|i|{p}) {vp}
<q>when (should|do|can) (i|we) {vp}
<q>how (do|can|should|would) (i|you|we) {vp}
<q>how (long does it take|hard is it|much does it cost) to {vp}
<q>should (i|we|you) {vp}( now| today|)
<q>shall (i|we) {vp}
<q>(can|could|may) i {vp} (with|by|from|on) my (phone|watch|voice)
<q>is it (safe|ok|okay|possible|allowed|dangerous|a good idea|wise) to {vp}
<q>is it (bad|fine) if i {vp}
<q>do you know how to {vp}
<q>do (you|people) (usually|often|always|ever) {vp}
<q>are you able to {vp}
<q>are you (allowed|going) to {vp}
<q>were you {ing}
<q>was it you who {past}
<q>what (happens|would happen|will happen) (if|when) (i|you|we) {vp}
<q>what does it (mean|cost|take) to {vp}
<q>what is the (best|right|safest) (way|time) to {vp}
<q>where do i {vp}
<q>which (button|app|command) do i use to {vp}
<q>is {np} (on|off|open|closed|locked|unlocked|running)
<q>is {np} still (on|off|open|closed|locked|running)
<q>are {np} (on|off|open|closed)
<q>what (is|was) the (temperature|humidity|pressure) in the {room}
<q>what time is it
<q>how warm is it in the {room}
<q>what's the weather( like|)( tomorrow| today|)
<q>do i have to {vp}
<q>am i supposed to {vp}
<q>would you {vp} if you were me
<q>do you think i should {vp}
<q>isn't it better to {vp}
<q>does it save energy to {vp}
<q>can {p} {vp}
<q>could {p} {vp} by mistake
<q>who is allowed to {vp}
<q>is {p} going to {vp}
<q>will {p} {vp} (later|tonight|tomorrow)
<q>what if i {vp}
<q>what('s| is) your (opinion|view) (on|of) {ing}
<q>(how|what) do you feel about {ing}
<q>for how long (can|could|have) (you|we|they) {vp}
<q>(any idea|any clue) (who|why|when) (they|we|you|{p}) {past}
<q>(wasn't|weren't) (you|we|they) going to {vp}
<q>(which|what) (company|person|app) (can|could|would) {vp}
<q>is it (true|possible|normal) that (you|they|{p}) {past}
<q>(what|how) about the (time|day) (we|you) {past}
"""
NEGATE = """
<n>(don't|do not|dont) {vp}
<n>please (don't|do not) {vp}
<n>(don't|do not) {vp} (yet|now|please|again|under any circumstances|until i say so)
<n>never {vp}( again|)
<n>you (must|should|may|can|shall) not {vp}
<n>you (mustn't|shouldn't|can't) {vp}
<n>i (don't|do not) want (you|anyone|{p}) to {vp}
<n>i (didn't|did not|never) (ask|tell|told|asked) you to {vp}
<n>i never said to {vp}
<n>(there is |there's |)no need to {vp}
<n>you (don't|do not) (need|have) to {vp}
<n>(don't|do not) you dare {vp}
<n>let's not {vp}( today|)
<n>(better|rather) not {vp}
<n>(refrain from|avoid) {ing}
<n>hold off on {ing}
<n>i'd rather you didn't {vp}
<n>(not|nobody should|no one may) {vp}
<n>nobody (is allowed to|may|should|must) {vp}
<n>under no circumstances {vp}
<n>i (won't|will not|can't|cannot) {vp}( today| tonight|)
<n>we are not going to {vp}
<n>(stop|quit) {ing}
<n>(make sure|be careful) (you don't|not to|nobody does) {vp}
<n>try not to {vp}
<n>it's (not necessary|unnecessary) to {vp}
<n>(don't|do not) bother {ing}
<n>(don't|do not) even think (of|about) {ing}
<n>forget about {ing}
<n>{ing} is (forbidden|not allowed|not a good idea)
<n>leave {np} (alone|as it is|the way it is)
<n>keep your hands off {np}
<n>no {ing} (please|today|tonight)
<n>whatever you do (don't|do not) {vp}
<n>not {np}
<n>(i|we) (refuse|decline) to {vp}
<n>(it is|it's) (not the time|too early|too late|a bad idea|not allowed|not permitted|illegal|forbidden|not safe) to {vp}
<n>(nobody|no one|none of us) (wants|needs|asked|told) (you|us|me) to {vp}
<n>{ing} is (banned|not an option|off limits|a no go|the last thing we need)
<n>(i am|i'm|we are) (opposed to|not in favor of|not keen on|not okay with) {ing}
<n>(rather than|instead of) {ing} do nothing
<n>(keep|stay away) from {ing}
<n>(please |)(omit|forgo|postpone|put off) {ing}
<n>(you are|you're) (not allowed|not supposed|never) to {vp}
<n>you have no (right|reason|permission) to {vp}
<n>(don't|do not) let (anyone|{p}|the kids) {vp}
<n>(leave it to me|i'll handle it), (don't|do not) {vp}
<n>i (order|want|tell|urge|warn) you not to {vp}
<n>(never mind|forget) {ing}
<n>no (thanks|thank you), (don't|do not) {vp}
<n>(nope|no|nah|hell no), (i|we) (don't|do not) want to {vp}
<n>{vp}? (not today|never|no chance|certainly not|of course not|absolutely not|over my dead body)
<n>why on earth would you {vp}, don't
<n>{np} (has to|must|should|is to) stay (on|off|open|closed|locked|unlocked|running|as it is)
<n>{np} (stays|remains) (on|off|open|closed|locked|shut|where it is)
<n>keep {np} (on|off|open|closed|locked|shut|running)
<n>(on no account|in no case|not under any condition|not in a million years) {vp}
<n>do not (under any circumstances|ever|even try to) {vp}
<n>(nobody|neither of you|none of you) {vp}
<n>(neither|don't) {vp} nor {vp}
<n>(it's|it is|that's) (absolutely|totally|completely|utterly) (forbidden|wrong|unacceptable) to {vp}
<n>(fight|suppress) the urge to {vp}
<n>we can do without {ing}
<n>(leave out|cut out|drop) {ing} (for now|tonight|this time)
<n>(do nothing|touch nothing|leave everything as it is|change nothing)
<n>i don't (care|mind) whether you {vp}
<c>{vp} but <n>(don't|do not) {vp}
<c>{vp} and <n>(don't|do not) {vp}
<n>(don't|do not) {vp} but <c>{vp}
<n>(don't|do not) {vp}, <c>{vp} instead
<n>(don't|do not) {vp}. <c>{vp}
<c>{vp}, <n>but never {vp}
"""
SUPPOSE = """
<s>{if} {cond}, {vp}
<s>{if} {cond} {vp}
<s>{if} {cond}, please {vp}
<s>{if} {cond} then {vp}
<s>{if} {cond}, (you should|you may|you must|i want you to|could you|can you|remember to) {vp}
<s>{vp} {if} {cond}
<s>{vp}, but only {if} {cond}
<s>please {vp} {if} {cond}
<s>(can|could) you {vp} {if} {cond}
<s>i want you to {vp} {if} {cond}
<s>(should|had) (it rain|it get cold|{p} call|anyone knock|the power go out|i fall asleep|we be late), {vp}
<s>with (a bit of luck|your permission|more money) (i|we) could {vp}
<s>if i {vp}, (it gets dark|nothing happens|the alarm goes off|we save money|{p} gets angry)
<s>if you {vp} (i will be angry|the cat runs out|it will break|we are done for|the food spoils)
<s>(suppose|imagine|say|assume|let's say|let's assume|pretend|picture this:) (i|we|you) {vp}
<s>(suppose|imagine) (i|we|you) {past}
<s>(i|we|you|one|they) (would|could|might|may) {vp} if (it was cold|i were you|there was time|we had to)
<s>i (would|could) {vp} but (i am too tired|i won't|there is no time)
<s>unless you {vp} (it will freeze|we will be late)
<s>(i wish|if only) (i|you|we|someone) (could|would|had) {vp}
<s>i wish (you|somebody) {past}
<s>(maybe|perhaps|possibly) (i|we|you|they|{p}) (should|could|will|might|can) {vp}( later| some day|)
<s>(i|we|they|{p}) (might|may|could) {vp} (later|tonight|tomorrow|some day|eventually)
<s>i am (thinking about|thinking of|considering|debating) {ing}
<s>i'm (not sure|wondering|in two minds) (whether|if) (i|we|you) should {vp}
<s>for (emergencies|the weekend|the holidays) only: {vp}
<s>had you {pp} this would not have happened
<s>it would be (bad|dangerous|stupid|funny|silly|a shame) to {vp}
<s>it (might|may|could) be (better|worse|wise|smart) to {vp}
<s>you could {vp} but (i would not|it is up to you|please ask first)
<s>someone could {vp} (by accident|without asking)
<s>(i|we|they) (could|would) {vp} for (you|him|her|us)
<s>(one day|some day|sooner or later) (i|we) will {vp}
<s>(let me know|tell me|ask me|warn me) (if|when|before|whether) (i|you|we|they) (should |)(must |){vp}
<s>(wait|hold on) until {cond} (and|then|before you) {vp}
<s>before you {vp}, (ask me|wait|call {p}|think)
<s>it depends whether we {vp}
<s>theoretically (you|one|we) (could|can) {vp}
<s>{ing} (would|could|might) (help|be fun|be wrong|save energy)
<s>there may come a day when we {vp}
<c>{vp} and <s>{if} {cond} {vp}
<c>{vp}, and <s>{vp} {if} {cond}
<s>{if} {cond} {vp}. <c>{vp}
"""
REPORT = """
<r>(my wife|my husband|{p}|he|she|the manual|the doctor) (told|asked|wanted|reminded) me to {vp}( yesterday| last night| this morning|)
<r>(my wife|{p}|he|she|the boss) said(| that) (i|we|you) should {vp}
<r>(he|she|{p}) (said|shouted|yelled|wrote) {vp}
<r>the (manual|sign|instructions|note) (says|say|said) (to|you must|please) {vp}
<r>i (already|just|finally) {past}
<r>(yesterday|last night|this morning|an hour ago) (i|we|{p}|you) {past}
<r>(i|we|you|they|{p}) {past} (yesterday|last week|already|by mistake|earlier|again)
<r>you (should have|shouldn't have|could have|must have) {pp}
<r>you should not have {pp}
<r>i (forgot|meant|tried|wanted|used|was going|had) to {vp}
<r>i (have|had|had just) {pp}
<r>(i|you) was {ing} (when|while) (the phone rang|it happened|you called)
<r>{p} is {ing}( right now| at the moment|)
<r>{p} (always|usually|often|sometimes) {s}
<r>(thank you for|thanks for|sorry for) {ing}
<r>you were (supposed|told) to {vp}
<r>i remember {ing}
<r>(in the movie|on tv|in the book) they {past}
<r>the (kids|neighbors|guests) {past}( again|)
<r>someone {past} (and left|without asking|last night)
<r>i was told to {vp}
<r>(the technician|the plumber|{p}) has {pp}
<r>i dreamed that (i|you) {past}
<r>remember when (i|we|you) {past}
<r>{ing} (took|takes) (an hour|forever|all day)
<r>i heard (you|someone|{p}) {vp}
<r>we had to {vp} because (it was cold|the alarm rang)
<r>the (timer|robot|system) will {vp} (by itself|on its own|automatically)
<r>{p} wants (me|us|you) to {vp}
<r>{p} keeps {ing}
<r>{np} (is|was) (on|off|open|locked|running) (all day|again|all night)
<r>it was {p} who {past}
<r>i saw {p} {vp}
<r>i'm going to {vp} (myself|by hand)
<r>i'll {vp} (myself|by hand|later)
<r>they wanted to {vp} but (the power went out|it was broken)
<r>my (mother|father|boss) hates {ing}
<r>(i|we) (heard|saw|watched|caught) {p} {ing}
<r>{p} (shouted|yelled|cried|whispered|wrote|replied|mumbled): "{vp}"
<r>(and then|so then) (he|she|{p}) goes, {vp}
<r>when i was (young|little|a kid) (i|we) (liked|hated|loved|preferred) {ing}
<r>{p} (boasted|talked|wrote|dreamed|lied) about {ing}
<r>{ing} (is|was) (my|his|her|their) (job|hobby|favorite thing)
<r>{np} (makes|made) me (think of|happy about|sad about) (home|winter|childhood)
<r>(i|we|they) (love|like|hate|enjoy|prefer) {ing}
<r>the (memo|email|message|letter) (told|asks|asked) (everyone|us|them) to {vp}
"""
HESITATE = ["", "", "", "", "oh ", "hmm ", "uh ", "um ", "ah ", "well ", "sorry ", "oops ", "er ", "wait ", "no ", "actually "]
TAKE_BACK = """no wait|wait no|no|actually no|never mind|nevermind|forget it|forget that|forget i said that|scratch that|cancel that|ignore that|ignore me|stop|on second thought don't|no don't|actually don't|please don't|leave it|drop it|undo that|that's wrong|that was wrong|my mistake|i changed my mind|i've changed my mind|not that|don't bother|let it be|let's not|better not|false alarm|it's fine as it is|i didn't mean that|that's not what i meant|hold it|hold off|hang on a second|belay that|strike that|don't do that after all|no need|forget about it|don't|no thanks|you know what, don't|you know what, forget it|pass on that|leave that out|omit that|drop that idea|let me think first|not anymore|that was a joke|just kidding|no that is wrong|give me a moment|on reflection no|i take it all back|as you were|keep it as it was|not today|maybe later|wrong button""".split("|")
INSTEAD = """no wait|wait|no|i mean|i meant|sorry|or rather|actually|scratch that|hang on a sec|on second thought|hold on a moment|oh no|my mistake|forget that|make that|i'd rather|better|let me rephrase|rather|no sorry|sorry i mean|i should say|that is|excuse me|pardon|no no|not that|oops|what i want is|never mind that|strike that|wrong one|what i mean is|change of plan""".split("|")
PAUSE = [", ", ", ", ", ", " ", "... ", " - ", ". "]

RETRACT = """
<x>{vp}{pause}{hm}{back}
<x>{vp}{pause}{hm}{back}
<x>{vp}{pause}{hm}{back}
<x>{vp}{pause}{hm}{back}
<x>{vp}{pause}{hm}{back}
<x>{vp}{pause}{hm}{back}
<x>please {vp}{pause}{hm}{back}
<x>can you {vp}{pause}{hm}{back}
<x>{vp}{pause}{hm}{instead}{pause}<c>{vp}
<x>{vp}{pause}{hm}{instead}{pause}<c>{vp}
<x>{vp}{pause}{hm}{instead}{pause}<c>{vp}
<x>{vp}{pause}{hm}{instead} <c>{vp}
<x>{vp}{pause}{hm}{instead} <c>{vp} instead
<x>{vp}{pause}{instead} <c>please {vp}
<x>{vp}{pause}{instead} <c>just {vp}
<x>(open|close|lock|unlock|start|stop) {np}{pause}{hm}{instead}{pause}<c>(open|close|lock|unlock|stop) (it|that|them)
<x>turn (on|off) {np}{pause}{hm}{instead}{pause}<c>turn (it|them) (on|off)
<c>call <x>{p}{pause}{instead} call <c>{p}
<x>call {p}{pause}{instead}{pause}<c>call {p}
<c>wake me at <x>{h}{pause}{instead} at <c>{h}
<c>set the {room} to <x>{n}{pause}{instead} <c>{n} degrees
<c>turn on the <x>{room} lights{pause}{instead} the <c>{room} lights
<x>(never mind|forget it|forget what i said|scratch that|ignore that|nothing|no wait|oh nothing)
<c>{vp} and <x>{vp}, no leave that
<c>{vp}, and <x>{vp}, actually no, <c>{vp}
<c>open the <x>{room} blinds, i mean the <c>{room} blinds
<c>turn on the <x>{room} lights, no, the <c>{room} lights
<c>turn off the <x>{room} light no i mean the <c>{room} light
<c>set the {room} to <x>{n} degrees, no, <c>{n} degrees
<c>set the heating to <x>{n} no <c>{n} degrees
<c>set the heating to <x>{n} sorry <c>{n}
<c>dim the lights to <x>{n}, no wait, <c>{n} percent
<c>set a timer for <x>{n} no <c>{n} minutes
<c>wake me at <x>{h} no <c>{h}( tomorrow|)
<c>call <x>{p}, no, <c>{p}
<c>call <x>{p} i mean <c>{p}
<c>add <x>{item}, sorry, <c>{item} to the shopping list
<c>lock the <x>{lock}, i mean the <c>{lock}
<c>close the <x>{lock} no the <c>{lock}
"""
OTHER = """
<o>(honey|darling|mum|dad|{p}), (did|can|could|will) you {vp}
<o>(honey|sweetheart|{p}), please {vp}
<o>{p}, {vp}
<o>{p} can you {vp} please
<o>kids, {vp}
<o>i love (this song|this show|you|the smell of coffee|{np})
<o>{np} (is|looks) (nice|broken|old|new|expensive|great|terrible)
<o>(we should|i want to) (buy|sell|paint|replace|repair) {np}
<o>(how was|what did you do at) (school|work) today
<o>did you see {p}( today| at work| yesterday|)
<o>{p} bought (a new|another) (car|phone|lamp|dog|oven|door)
<o>the (movie|game|food|weather|traffic) was (great|terrible|boring|so good)
<o>(pass|give|hand) me the (salt|remote|towel|phone)
<o>(dinner|lunch|breakfast) is ready
<o>are you (hungry|tired|coming|ready|listening)
<o>where (have you been|are the kids|did you put my shoes)
<o>i'm (so |very |)(tired|hungry|cold|happy|late|bored)
<o>(open|close|stop|start) (question|minded|enough|reading your book|your eyes|your mouth|crying|laughing|talking)
<o>(set the table|turn the page|turn around|turn left at the corner|lock in your answer|play with your brother|play fair|call it a day|close call|run for it|switch seats with me)
<o>turn to page {n} (in|of) (your|the) (book|magazine|workbook)
<o>he (turned|opened|closed|stopped|started) (left|his mouth|his eyes|talking|the conversation)
<o>she turned {n} (last week|yesterday)
<o>open your (mouth|books|eyes|heart|presents)
<o>(take off|put on) your (shoes|coat|jacket)
<o>start with the (second|first) (chapter|question)
<o>stop (it|that) (tom|ben|mia|you two)
<o>(put|set) (it|that|the bag) (down|on the table|over there)
<o>call me (later|tomorrow|when you get home|maybe)
<o>remind me who (you are|that was|he is)
<o>(add|cut|mix) (the|two) (eggs|onions|cups of flour)
<o>cancel culture is a (topic|problem)
<o>the (play|call|start|stop) was (great|late|over)
<o>i can't (turn|open|start) (back time|this jar|over a new leaf)
<o>the lights in (paris|the city|his eyes) are (beautiful|bright)
<o>he is the light of my life
<o>that (lamp|door|window|machine) costs {n} (euros|dollars)
<o>we met at the (garage|gate|front door)
<o>i left (my keys|my phone) in the {room}
<o>the {room} needs (painting|cleaning|new curtains)
<o>i'll be in the {room}
<o>{o}
<o>{o}
<o>{o}
<o>{o}
<o>{o}
<o>{o}
<o>{o}
<o>{o}
<o>(this|that|it) (reminds|reminded) me (of|that) (my childhood|an old friend|we were young|a trip to rome|the war)
<o>{np} (reminds|reminded) me of (my mother|a toy|the old house)
<o>(play|behave|share) (fair|gently|quietly) with (the dog|each other|your sister)
<o>my (watch|laptop|battery|car) is (at|down to) {n} percent
<o>remember (to be kind|to smile|that i love you|to call your mother)
<o>(tell|show|remind) your (friends|brother|dad) (we love them|about the party)
<o>{o} <c>{vp}
<o>{o}. <c>{vp}
<c>{vp} <o>{o}
"""
SETS = {"command": COMMAND, "ask": ASK, "negate": NEGATE, "suppose": SUPPOSE, "report": REPORT, "retract": RETRACT, "other": OTHER}
SHARE = {"command": 0.34, "ask": 0.12, "negate": 0.12, "suppose": 0.09, "report": 0.10, "retract": 0.10, "other": 0.13}
TEMPLATES = {k: [x for x in t.strip().split("\n") if x] for k, t in SETS.items()}
OPENERS = ["", "", "", "", "", "", "hey ", "um ", "so ", "well ", "ok ", "look ", "listen ", "hey shoal ", "shoal ", "oh ", "and ", "yeah ", "come on, ", "dude ", "right, ", "computer, ", "assistant ", "house, ", "please ", "now ", "now do ", "ahem, ", "excuse me, ", "quickly, ", "here we go, ", "hello, ", "good, ", "fine, "]
OVERHEARD = []  # (text, label) of real talk and text, set by the training script


def fill(rng, name):
    if name == "cond":
        return "".join(p for p, _ in expand(CONDITION, rng, lambda n: [(fill(rng, n), None)]))
    lists = {"if": CONNECT, "hm": HESITATE, "back": TAKE_BACK, "instead": INSTEAD, "pause": PAUSE}
    if name in lists:
        return rng.choice(lists[name])
    if name in ("vp", "ing", "past", "pp", "s"):
        verb, rest = plain(rng)
        form = {"vp": verb, "ing": VERBS[verb][0], "past": VERBS[verb][1], "pp": VERBS[verb][2], "s": third(verb)}[name]
        return f"{form} {rest}"
    return {"np": thing, "thing": lambda r: r.choice(v.MACHINES + THINGS + v.RUNNABLE) if r.random() < 0.8 else v.machine(r), "p": v.person, "room": lambda r: r.choice(v.ROOMS), "n": lambda r: str(r.randint(2, 90)), "h": v.time_phrase, "item": lambda r: r.choice(v.ITEMS),
            "lock": lambda r: r.choice(v.LOCKS), "o": lambda r: r.choice(OVERHEARD)[0] if OVERHEARD else "the soup needs more salt"}[name](rng)


def words(rng, template):
    """(words, labels), a label per word: the name of the act, or None for nothing."""
    pieces = expand(template, rng, lambda name: [(fill(rng, name), None)])
    text = "".join(p for p, _ in pieces)
    out, labels, starts, label = [], [], [], None
    for part in re.findall(r"<[a-z]>|[^<]+", text):
        if part[0] == "<":
            label, fresh = LABELS[part[1]], True
            continue
        for w in part.split():
            if re.fullmatch(r"[,.]+", w) and out:  # a pause belongs to the word before it
                out[-1] += w
                continue
            out.append(w)
            labels.append(label)
            starts.append(fresh)
            fresh = False
    return out, labels, starts


def joins(words_, labels, starts):
    """A joining word belongs to the clause that it begins: "and", "but" move to the next label."""
    for i in range(len(words_) - 1, 0, -1):
        if words_[i - 1].strip(",.") in ("and", "but", "then", "also") and starts[i]:
            labels[i - 1] = labels[i]
            starts[i - 1], starts[i] = True, False
    return words_, labels, starts


def noisy(rng, w):
    """Imitates typing and speech: random capitals, commas and punctuation."""
    k = rng.random()
    out = list(w)
    if k < 0.25 and out:
        out[0] = out[0][:1].upper() + out[0][1:]
    if rng.random() < 0.35:
        out = [x.rstrip(",") for x in out]
    if rng.random() < 0.15:
        out = [x.replace("'", "") for x in out]
    elif rng.random() < 0.1:
        out = [x.replace("'", "’") for x in out]
    if rng.random() < 0.04:
        out = [x.upper() for x in out]
    return out


def sample(rng, kind=None):
    """(words, tags in BIO)"""
    kind = kind or rng.choices(list(SHARE), list(SHARE.values()))[0]
    template = rng.choice(TEMPLATES[kind])
    w, labels, starts = joins(*words(rng, template))
    opener = rng.choice(OPENERS).split()
    if opener and w and kind != "other":
        w, labels, starts = opener + w, [labels[0]] * len(opener) + labels, [True] + [False] * (len(opener) - 1) + [False] + starts[1:]
    if w and rng.random() < 0.3:
        w[-1] += "?" if kind == "ask" or w[0] in ("can", "could", "would", "will", "do") else rng.choice(".!.")
    tags, last = [], None
    for label, start in zip(labels, starts):
        tags.append("O" if not label else ("B-" if start or label != last else "I-") + label)
        last = label
    return noisy(rng, w), tags


if __name__ == "__main__":
    r = random.Random(1)
    for name in SETS:
        for _ in range(6):
            print(name, *zip(*sample(r, name)))
