"""What is not a command: negations, reports, questions, suppositions, withdrawals, talk. Mostly minimal pairs: the same
words as a command inside a frame that takes the command away, and frames that look like it but do not."""

import frames
import words as W
from sentences import NoFit
from sites import FIRST

NEGATED = """don't {c}|do not {c}|please don't {c}|never {c}|you must not {c}|no need to {c}|there's no need to {c}|i don't want you to {c}|nobody should {c}|you shouldn't {c}|better not {c}|let's not {c}|make sure not to {c}|under no circumstances {c}|
i'd rather you didn't {c}|whatever you do, don't {c}|you don't have to {c}|please do not {c} yet|don't you dare {c}|it's not necessary to {c}|dont {c}|you needn't {c}|no one is allowed to {c}|it's forbidden to {c}|i never said {c}|don't ever {c}|be careful not to {c}|do not under any circumstances {c}|try not to {c}|i do not want to {c}|
please never {c} again|we agreed not to {c}|stop trying to {c}|refuse to {c}|you can't {c}|we won't {c} today|hold off, don't {c}|not yet, don't {c}|no don't {c}|hey don't {c}""".replace("\n", "").split("|")
REPORTED = """she told me to {c}|he asked me to {c} yesterday|yesterday i wanted to {c}|i forgot to {c}|i already told him to {c}|my wife always wants to {c}|the manual says to {c}|anna said {c}|remember when we tried to {c}|i was about to {c} when the phone rang|he used to {c} every night|the sign says {c}|in the film they {c}|
she said please {c}|my boss told us to {c}|i have to {c} every single morning|they {c} every day at work|the kids always {c}|he shouted {c} and ran|i used to {c} a lot|someone wrote {c} on the wall|we had to {c} twice last night|dad keeps telling me to {c}|i just heard him say {c}|the neighbours {c} at night|last week i had to {c} by hand|
i saw her {c}|he wanted to {c} but couldn't|tom asked if he should {c}|i remember having to {c}|the guide told everyone to {c}|it took me an hour to {c}|they made us {c}|i managed to {c} myself|we decided to {c} next time|somebody tried to {c}|the radio said to {c}|nobody remembered to {c}|my mother would {c} before bed|i told the kids to {c}|i've been meaning to {c}|the captain ordered the crew to {c}|thanks for reminding me to {c}""".replace("\n", "").split("|")
QUESTION = """should i {c}|why would anyone {c}|how much does it cost to {c}|what happens if i {c}|is it safe to {c}|who wants to {c}|do i have to {c}|is it ok to {c}|would it help to {c}|why did you {c}|did you {c}|who told you to {c}|when should i {c}|does it make sense to {c}|did anna {c}|did someone {c}|do you think i should {c}|is it a good idea to {c}|
who is supposed to {c}|how often do you {c}|why can't i {c}|am i allowed to {c}|what would happen if we {c}|have you ever tried to {c}|is it possible to {c}|did he really {c}|when did they {c}|how long does it take to {c}|was it you who wanted to {c}|is it too late to {c}|how do people {c} without help""".replace("\n", "").split("|")
CONDITION = """if {if} {c}|when {if} {c}|{c} if {if}|{c} when {if}|{c} as soon as {if}|whenever {if}, {c}|unless {if} {c}|in case {if} {c}|once {if}, {c}|{c} only if {if}|{c} every time {if}|should {if2} {c}|{c} in case {if}|as soon as {if} {c}|{c} unless {if}|{c} the moment {if}|next time {if} {c}|if {if}, please {c}|after {if} {c}|{c} before {if}|{c} until {if}""".replace("\n", "").split("|")
IFS = """it rains|it starts raining|anna comes home|i get home|the temperature drops below 18|the door opens|somebody rings|it gets dark|everyone has left|the washing machine is done|motion is detected in the hall|nobody is here|the pressure goes above 2 bar|the window is open|the battery is low|it is too cold|the tank is full|i say so|
the alarm goes off|the level falls under ten percent|tom leaves work|the baby wakes up|the power comes back|the movie starts|i fall asleep|the wind picks up|humidity is over 70 percent|the guests arrive|the price drops|the kettle boils""".replace("\n", "").split("|")
SUPPOSE = """maybe we should {c} some day|i wish i could {c}|if only somebody would {c}|suppose we {c}|we could {c} but it's late|imagine we {c} now|i might {c} later|perhaps i will {c} tomorrow|i would {c} if i were you|it would be nice to {c} in summer|one could {c} in theory|if you {c} i'll be angry|if i {c} everything breaks|i could {c} but i won't|
we might have to {c} eventually|in theory you could {c}|i was thinking of asking someone to {c}|assuming we {c}, what then|someday robots will {c}|i'd love to {c} when i'm retired|if we {c} the neighbours complain|what if we {c}|let's pretend to {c}""".replace("\n", "").split("|")
RETRACTED = """{c}, no never mind|{c}... actually don't|{c} oh wait forget it|{c}, no wait, leave it|{c} no no cancel that|{c}. scratch that|{c} hmm no, forget it|{c}, just kidding|{c} no actually leave it as it is|{c}, on second thought don't|{c} wait no never mind|{c} sorry, ignore that|{c}, never mind|{c} - stop, don't do that|{c} actually no|
{c} or rather don't|{c}, i changed my mind|{c} no, belay that|{c}... no, better not""".replace("\n", "").split("|")
# Said to somebody else in the room.
ADDRESSED = """{p}, {c}|{p} can you {c}|hey {p}, {c}|{p} would you please {c}|mom, {c}|dad can you {c}|guys, {c}|{p} please {c}|kids, {c}|{c}, {p}|{c} please {p}|son, {c}|excuse me sir, could you {c}|{p} i told you to {c}|come on {p}, {c}|could one of you {c}|somebody get up and {c} by hand|{p}, i said {c}|boys, {c}|waiter, please {c}|{c} yourself, {p}""".split("|")
# Imperatives among people: nothing in them is a device.
AMONG = {
    "open": "your eyes|your mouth|your books on page ten|the letter|the bottle|a can of beans|a bank account|your heart|the wine|your presents|the envelope|a new restaurant", "close": "your eyes|the deal|your books|your mouth|ranks|the case|your laptop for a minute", "turn": "left at the corner|right after the bridge|around|the page|it over|over a new leaf|your head|your back on him|down the job offer|in your homework|into a frog|up late again",
    "switch": "seats with me|sides|jobs|places|schools|teams", "set": "the table|a good example|your mind on something|the record straight|foot in there|off early|sail for home", "start": "your homework|a family|running|a company together|over again|without me|the meeting without me|from the beginning", "stop": "it you two|crying|complaining|laughing|by my office later|at the red light|bothering your sister|teasing the dog|talking about work|worrying so much",
    "put": "your shoes on|on your coat|the plates on the table|your phone away|it over there|yourself in my place|the kettle in the box|some effort into it", "play": "outside|nicely|football with him|with your sister|dead|fair|cards with us", "lock": "your bike|horns with him|arms", "call": "me later|your mother back when you can|it a day|him an idiot|a spade a spade|the waiter", "raise": "your hand|some money|your voice if you like|the question tomorrow|a glass to the bride",
    "lower": "your voice|your expectations|your guard", "bring": "me a glass of water|your friend along|the kids home|it up at the meeting|the car around", "light": "a candle|a cigarette|the campfire", "cut": "the cake|the grass|it out|him some slack|to the chase", "run": "for mayor|home|a mile every day|after him|it by me again", "find": "your shoes|a seat|out what he wants|a better job", "add": "some salt to the soup|me on facebook|insult to injury|two eggs to the dough",
    "take": "off your coat|a seat|your time|the bus at nine|care of him|two of these a day|the dog for a walk", "pass": "me the salt|the ball|it on|the exam first", "give": "me a hand|him a chance|it back|up smoking|me a break|her my love", "help": "me with the sofa|yourself to cake|your brother", "wait": "for me at the door|a minute|until i come back", "remember": "to smile|the milk on your way|when we were young", "tell": "me about your day|a lie|it like it is", "wake": "up, sleepyhead|your brother gently", "kill": "time|two birds with one stone",
    "check": "your pockets|the mailbox on your way|out this video|in at the hotel", "keep": "your promise|the change|off the grass|calm", "make": "your bed|a wish|love not war|some friends|up your mind", "clean": "your room yourself|your plate|up your act", "pause": "for a moment and think|before you answer", "resume": "your seats please|eating", "skip": "the line|breakfast|to the good part of your story", "cancel": "your gym membership|our wedding", "dim": "sum for two please", "remind": "your brother of his promise", "schedule": "your tests early this year, students",
}
AMONG_FRAMES = "{c}|{c}|please {c}|can you {c}|could you {c}|would you {c}|why don't you {c}|let's {c}|you should {c}|i told him to {c}|don't {c}|go and {c}|{c} now|i want you to {c}|just {c}|{p}, {c}|{c}, {p}|and then {c}|you have to {c}".split("|")
# Still commands.
POLITE = """can you {c}|could you {c}|would you {c}|please {c}|{c} please|could you please {c}|can you please {c}|would you please {c}|will you {c}|i want you to {c}|i need you to {c}|i'd like you to {c}|it would be great if you could {c}|if you could {c} that would be great|when you get a chance {c}|be a dear and {c}|go ahead and {c}|
quickly {c}|don't forget to {c}|why don't you {c}|{c} for me|{c} if you can|{c} if possible|{c} would you|hey {c}|ok {c}|okay now {c}|now {c}|alright {c}|so {c}|just {c}|um {c}|uh can you {c}|hey computer {c}|computer {c}|shoal {c}|hey shoal {c}|olly {c}|alexa {c}|hey google {c}|siri {c}|jarvis, {c}|listen, {c}|i was wondering if you could {c}|is there any chance you could {c}|
do me a favor and {c}|kindly {c}|{c} now|{c} right now|{c} quickly|{c} thanks|{c} thank you|{c} when you can|would you be so kind and {c}|could you maybe {c}|could you quickly {c}|i think you should {c}|let's {c}|{c} mate|{c} buddy|{c} over|bridge here, {c}|{c}, over and out|control, {c}|i need to {c}|we need to {c}|can we {c}|
pretty please {c}|pwease {c}|well {c} then|and {c}|then {c}|also {c}|next {c}|{c} while you're at it|if it's not too much trouble {c}|if you don't mind {c}|my hands are full, {c}|i'm in bed, {c}|it's getting late, {c}|i'm leaving, {c}|we have guests, {c}|sorry to bother you but {c}|be so good as to {c}|
how about you {c}|time to {c}|it's time to {c}|it is time to {c}|try to {c}|make sure to {c}|i'd love it if you could {c}|i'd love it if somebody could {c}|it would be lovely if someone would {c}|could somebody {c}|could someone please {c}|i would love you to {c}|would somebody {c}|i'd be grateful if you could {c}|do you think you could {c}|you could {c} for me|remember to {c} now|you may {c}|you can {c} now|go and {c}|somebody please {c}|make it so that you {c}|i would appreciate it if you would {c}|would it be possible to {c}|any chance you can {c}|help me to {c}""".replace("\n", "").split("|")
POLITE_ANY = """{c} please|please {c}|hey, {c}|ok {c}|um {c}|{c} thanks|{c} now|hey computer {c}|shoal, {c}|so {c}|{c} will you|{c} ok|alright, {c}|uh {c}|yes {c}|well, {c}|{c} for me please|hey shoal {c}|computer, {c}""".replace("\n", "").split("|")

# Talk that names things of the site.
ABOUT = """{x} looks really nice|i bought {x} last year|{x} is broken again|{x} makes a strange noise|we should get a new {n}|i love {x}|anna wants to paint {a}|the cat sleeps in {a}|{x} was expensive|my friend has the same {n}|do you like {x}|i think {x} is too old|{x} needs cleaning one of these days|i spent all day in {a}|
there was a spider in {a}|{a} is so cozy|we had breakfast in {a}|{x} came with the house|{x} and i have a long history|the guy who sold us {x} was funny|it was dark in {a} and i could not see a thing|he fell over {x}|the light in {a} is beautiful in autumn|i dreamt about {x}|{x} is my favourite|have you seen the new {n} they sell|
i left my keys in {a}|the paint in {a} is still wet|she turned off {x} and went to bed|he opened {x} and walked in|they left {x} on all night|i turned {x} off an hour ago|{x} was on when i came home|we always keep {x} closed in winter|the electrician fixed {x} on monday|it's warm in {a} in july|{x} uses too much power|
someone should look at {x} sometime|the delivery guy came to {a}|that {n} in the shop was ten percent cheaper|this {n} is better than the old one|my {n} broke at 7 this morning|{x} stopped working last night|so then i told him that {x} was fine|we met in {a} at six|the kids were playing in {a} with {x}|i can't believe how big {a} is|
the open window in {a} let the rain in|lights like {x} are hard to find|turning on {x} costs a fortune|i was setting up {x} all morning|the stop near {a} is closed|{x} will be replaced next month|everyone loves {x}|did you hear what happened to his {n}|our {n} is the loudest in the street|{a} used to be a stable|i have no idea who designed {a}""".replace("\n", "").split("|")
UNCLEAR = """turn the|switch|set the|can you|could you please|the the|i want the|what about|and then|uh|um|hmm|ok so|so uh|in the|on the|turn|put|to the|set it to|make the|{x} {x2}|{a}|{n}|computer|shoal|hey shoal|please|turn it|the {n} in|set {x} to|open the|close the um|i need|what is the|is the|how|why|degrees|percent please|
blah blah {n}|twenty|the other one|this|that one|play|add|remind me|not the|and the|with the lights|for ten|up in the|of the|mumble {n} something|like the thing""".replace("\n", "").split("|")

# Talk among people that sounds like a command, a list, a time or an answer.
SMALL = """would you like some {i}|how about some {i}|how about {e}|{i}, please|{i} and {i2}, please|i'd like {i} please|i'd like to have {i}|can i have {i}|do you have {i}|do you sell {i}|we have {i} and {i2}|let's buy {i}|shall we buy {i}|i bought {i} and {i2} this morning|{i}, {i2} and everything|and {i}?|{i}?|what about {i}|
the {i} was delicious|could i get another {i}|is there any {i} left|i'm allergic to {i}|she ordered {i}|they ran out of {i} at the shop|i eat {i} every day|have some more {i}|help yourself to {i}|i prefer {i} to {i2}|this {i} costs {n} dollars|{n} dollars please|that will be {n} euros|it costs about {n} dollars|
i listen to {m} all the time|do you like {m}|i love {m}|can you play the guitar|can you play a musical instrument|he plays the piano very well|my brother plays football|we went to see {m} last year|{m} is my favourite|listen to that, it's like music|she sings {m} in the shower|i heard {m} on the way home|they were playing {m} at the party|what kind of music do you listen to|
see you at {t}|around {t}|at {t}|it's {t} already|until {t}|the train leaves at {t}|we close at {t}|we are open until {t}|it starts at {t}|the doors open at {t}|i get up at {t}|he arrived at {t}|let's meet at {t}|how about {t}|is {t} ok for you|i'll pick you up at {t}|my appointment is at {t}|the shop opens at {t} and closes late|i woke up at {t}|
for {d}|in {d}|it takes {d}|i waited for {d}|we stayed there for {d}|{d} ago|she has worked there for {d}|it will be ready in {d}|i've been here for {d}|i slept through my alarm|my alarm did not ring|that's my alarm|i was {d} late for work|you're {d} late|
{c}|{c} or {c2}|i want something in {c}|do you have it in {c}|it's too dark, any brighter colours|the {c} one looks better|she wore a {c} dress|my car is {c}|paint it {c} next year|something lighter please, this is too dark|i like the {c} one more|
{p}!|hi {p}|{p}, are you there|it's {p} speaking|this is {p}|may i speak to {p}|who is {p}|i'll call {p} tomorrow|i called {p} yesterday|{p} called you this morning|give {p} my regards|you may call me {p}|can you call me back later|i'll give you a call tonight|don't forget to give me a call|call me when you get there|tell me about {p}|{p} told me everything|i want to let your boss know that you work hard|
please sit down|please come in|please hop in|take a seat|go right ahead|go ahead, i'm listening|after you|you go back to the guests and i'll call the restaurant|turn left when you get to the third crossing|walk down this road and turn right|get off at the next stop|get off at the third station from here|go straight on for two blocks|it's on your left|the bus stops right there|keep going until you see the bank|
you can just skip that|lift this end, please|put that down, it's heavy|open wide, said the dentist|could you go a little lower, it's too expensive|can you make it cheaper|make it two, please|make it three, i'm hungry|two, please|one more, please|that's enough, thank you|no, that's enough|is that all|that is all for today|that was enough|anything else|
may i help you|what can i do for you|may i see your passport|how would you like to pay|cash or card|keep the change|here you are|the room has one bed and a window|we have one single room on the second floor|the room is on the fifth floor|my room number is {n}|i'd like a room for two nights|the light in the room was too bright to sleep|the heating in our hotel did not work|
i need to set up for my presentation|i suppose you need the projector set up|we set up the table together|he set the record|who set the table|why did you speed up|slow down, you are driving too fast|watch out, stop|stop, that tickles|why did you stop|we stopped at a gas station|i can't stop laughing|the rain stopped|i stopped smoking last year|
where did you find it|can you help me find something for my daughter|i found {n} euros on the street|i can't find my keys|did you find a parking spot|how did you turn it into a success|she turned forty last week|he turned down the offer|it turned out fine|turn around, let me see|you turn me on, baby|turns out he was right|
the meeting went on and on|go on, tell me more|come on|hold on a second|hang on|move on with your life|i'm on my way|you're on|we're off on holiday|i have a day off|take a day off|he took off early|the deal is off|it's all off now|we're completely open on saturday|i'm open to suggestions|close your account if you are not happy|the bank is closed on sunday|
my parents give me {n} pounds a week|i have {n} brothers|there are {n} people in my class|room {n}, we have just checked in|it was {n} degrees in spain|it's {n} degrees outside and sunny|the temperature here drops to {n} in winter|i got {n} percent off|we sold {n} percent more this year|the interest is {n} percent|page {n}, please|the answer is {n}|on may {n}|
i'm cold, lend me your jacket|you'd better get some warm clothes|please change your clothes first|i need to change my shoes|i changed my job|can you change a hundred dollar bill|record it and write down how many minutes|show me your hands|show me the photos|could you show me that watch|send me a postcard|i'll send you the report|i sent an email to the office|
it's my birthday today|today is my birthday|my birthday is in may|the party is on friday|we have a meeting every monday|i have a meeting at {t}|i had a meeting with {p}|sounds good, see you there|that sounds great|i think that would be perfect|that is good|got it|i see|oh really|you don't know|that's not easy for me|mmm, you may be right|ah|dad|mom|well done|good for you|of course you can|no problem at all|never mind him|don't worry about it|it doesn't matter|i don't care|forget about him|leave me alone|leave it to me|let me think|let me look in the guide first|let me know when you are done""".replace("\n", "").split("|")


def small(g):
    r = g.r
    text = r.choice(SMALL)
    for k, v in (("{i}", W.ITEMS), ("{i2}", W.ITEMS), ("{e}", W.EVENTS), ("{m}", W.MUSIC), ("{c}", W.COLORS), ("{c2}", W.COLORS), ("{p}", FIRST)):
        if k in text:
            text = text.replace(k, r.choice(v))
    text = text.replace("{t}", W.clock(r)).replace("{d}", W.duration(r)).replace("{n}", W.number(r, r.randint(1, 500)))
    if r.random() < 0.25:
        text = r.choice(("oh, ", "well, ", "yes, ", "no, ", "ok, ", "mm, ", "so ", "and ", "but ", "hey, ", "look, ", "thanks. ", "all right. ", "sure. ", "i see. ", "really? ", r.choice(FIRST) + ", ")) + text
    if r.random() < 0.25:
        text += r.choice((", right", ". thank you", ", you know", ". what do you think", ". ok", ", isn't it", ", sir", ", madam", ", my dear", ". " + r.choice(SMALL).split("{")[0].strip(" ,") or "well", ", " + r.choice(FIRST)))
    return [(text, None)], ["none", "talk"]


# What answers a question is nothing without one.
def bare(g):
    r = g.r
    x = r.choice((lambda: r.choice(W.ITEMS), lambda: r.choice(W.COLORS), lambda: W.clock(r), lambda: W.duration(r), lambda: W.number(r, r.randint(0, 300)), lambda: r.choice(W.EVENTS), lambda: r.choice(W.MESSAGES), lambda: r.choice(W.TASKS), lambda: r.choice(W.MUSIC), lambda: r.choice(FIRST),
                  lambda: W.number(r, r.randint(0, 100)) + r.choice((" percent", " degrees", " bar", "%", " rpm")), lambda: r.choice(W.ITEMS) + " and " + r.choice(W.ITEMS)))()
    return [(r.choice(("", "", "", "um ", "the ", "maybe ", "around ", "for ", "to ", "and ")) + x + r.choice(("", "", "", " please", " then", " i guess", " or so")), None)], ["none", "unclear"]


def frame(r, group):
    return r.choice(group)


def wrap(parts, text):
    """The parts of a clause in place of {c}."""
    a, _, b = text.partition("{c}")
    return [(a, None)] + parts + [(b, None)]


def about(g):
    """Talk about the things of the site: (parts, plan)"""
    r = g.r
    t = g.thing(None, None)
    u = g.thing(None, None)
    text = r.choice(ABOUT)
    area = g.say_area(r.choice(g.site.areas)) if g.site.areas else "the house"
    text = text.replace("{x}", "the " + " ".join(t.words[0])).replace("{n}", t.words[0][-1]).replace("{a}", area).replace("{x2}", u.words[0][-1])
    return [(text, None)], ["none", "talk"]


def unclear(g):
    r = g.r
    t = g.thing(None, None)
    u = g.thing(None, None)
    area = " ".join(r.choice(g.site.areas).words[0]) if g.site.areas else "house"
    text = r.choice(UNCLEAR).replace("{x2}", " ".join(u.words[0])).replace("{x}", " ".join(t.words[0])).replace("{n}", t.words[0][-1]).replace("{a}", area)
    return [(text, None)], ["none", "unclear"]


def among(g):
    """An imperative that means no device."""
    r = g.r
    v = r.choice(list(AMONG))
    text = r.choice(AMONG_FRAMES).replace("{c}", v + " " + r.choice(AMONG[v].split("|"))).replace("{p}", r.choice(FIRST))
    return [(text, None)], ["none", "talk"]


def not_a_command(g, draw):
    """draw() gives a command's clause. Returns (parts, plan)."""
    r = g.r
    x = r.random()
    if r.random() < 0.34:
        return frames.no_command(g, draw)
    if x < 0.07:
        return about(g)
    if x < 0.09:
        return unclear(g)
    if x < 0.11:
        return bare(g)
    if x < 0.19:
        return small(g)
    if x < 0.26:
        return among(g)
    for _ in range(20):
        c = draw()
        if c.imperative and c.plan[0] not in ("none", "other", "chat", "answer", "ask", "stop"):
            break
    else:
        raise NoFit
    if x < 0.31:
        return wrap(c.parts, r.choice(ADDRESSED).replace("{p}", r.choice(FIRST))), ["none", "talk"]
    if x < 0.42:
        return wrap(c.parts, r.choice(NEGATED)), ["none", "negated"]
    if x < 0.57:
        return wrap(c.parts, r.choice(REPORTED)), ["none", "reported"]
    if x < 0.71:
        return wrap(c.parts, r.choice(QUESTION)), ["none", "question"]
    if x < 0.84:
        cond = r.choice(IFS)
        text = r.choice(CONDITION).replace("{if2}", cond.replace("it rains", "it rain")).replace("{if}", cond)
        return wrap(c.parts, text), ["none", "condition"]
    if x < 0.92:
        return wrap(c.parts, r.choice(SUPPOSE)), ["none", "condition"]
    return wrap(c.parts, r.choice(RETRACTED)), ["none", "retracted"]
