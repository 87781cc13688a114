"""Numbers, values, times and texts as people say them."""

from sites import UNITS

ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()


def spelled(n):
    if n < 0:
        return "minus " + spelled(-n)
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10] + ("" if n % 10 == 0 else (" " + ONES[n % 10]))
    if n < 1000:
        return ONES[n // 100] + " hundred" + ("" if n % 100 == 0 else " " + ("and " if n % 3 == 0 else "") + spelled(n % 100))
    return spelled(n // 1000) + " thousand" + ("" if n % 1000 == 0 else " " + spelled(n % 1000))


def number(r, n, decimals=0, spell=0.3):
    if decimals and r.random() < 0.4:
        d = r.randint(1, 9)
        if r.random() < spell:
            return (spelled(int(n)) + " point " + ONES[d]) if r.random() < 0.7 else spelled(int(n)) + " and a half"
        return f"{int(n)}{r.choice('...,')}{d}"
    if r.random() < spell:
        x = r.random()
        if x < 0.12 and 20 < n < 10000:  # digit by digit, as on the radio
            return " ".join(ONES[int(d)] for d in str(int(n)))
        return spelled(int(n)).replace(" ", "-", 1) if x < 0.25 and 20 < n < 100 else spelled(int(n))
    return f"{int(n):,}" if n >= 1000 and r.random() < 0.4 else str(int(n))


PERCENTS = ["half", "full", "maximum", "max", "minimum", "a quarter", "halfway", "a third", "three quarters", "the maximum", "full power", "the lowest", "the highest", "fifty fifty"]


def value(r, q, unit=None, bare=0.25, wild=0.06):
    """(text, whether a unit was said)"""
    words, lo, hi, dec = unit or r.choice(UNITS[q])
    if q == "temperature" and not unit:
        words, lo, hi, dec = (words, 15, 26, 1) if "celsius" in words else (words, 60, 80, 0)
    if words.startswith("percent") and r.random() < 0.08:
        return r.choice(PERCENTS), True
    n = r.uniform(lo, hi)
    if r.random() < wild:
        n = n * r.choice((3, 10, 50)) + r.choice((0, 1))
    n = round(n / 5) * 5 if r.random() < 0.5 and hi > 40 else int(n)
    text = number(r, n, dec)
    units = [u for u in words.split() if u != "-"]
    if not units or r.random() < bare:
        return text, False
    if words.startswith("degrees fahrenheit"):
        u = r.choice(("degrees fahrenheit", "degrees", "f", "fahrenheit", "°F", "degrees f"))
    elif words.startswith("liters per"):
        u = r.choice(("liters per minute", "l/min", "litres per minute", "liters a minute"))
    elif words.startswith("newton"):
        u = r.choice(("newton meters", "nm"))
    else:
        u = r.choice(units)
        if u == "celsius":
            u = "degrees celsius"
    glue = "" if u in ("%", "°", "°C", "°F", "C", "F") and text[-1].isdigit() and r.random() < 0.7 else " "
    return text + glue + u, True


DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
MONTHS = "january february march april may june july august september october november december".split()


def clock(r):
    h, m = r.randint(1, 12), r.choice((0, 0, 0, 15, 30, 45, 5, 10, 20, 40, 50))
    part = r.choice(("", "", "", " am", " pm", "am", "pm", " a.m.", " p.m.", " o'clock", " in the morning", " in the evening", " tonight", " sharp"))
    hw = ONES[h] if r.random() < 0.35 else str(h)
    if m == 0:
        if part in ("am", "pm") and not hw.isdigit():
            part = " " + part
        return r.choice((hw + part, hw + part, hw + part, f"{h}:00" + (part if "clock" not in part else "")))
    if part == " o'clock":
        part = ""
    style = r.random()
    if style < 0.5:
        return f"{h + r.choice((0, 0, 12)) if part == '' else h}:{m:02d}{part}"
    if style < 0.7:
        p = {15: "quarter past", 30: "half past", 45: "quarter to"}.get(m)
        if p:
            return f"{p} {hw}" + (part if part.startswith(" i") else "")
        return f"{spelled(m)} {r.choice(('past', 'to'))} {hw}"
    return f"{hw} {spelled(m)}" + (part if not part or part[0] == " " else " " + part)


SPELLED_DAYS = """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth
twentieth|twenty first|twenty second|twenty third|twenty fourth|twenty fifth|twenty sixth|twenty seventh|twenty eighth""".replace("\n", " ")
SPELLED_DAYS = SPELLED_DAYS.split("|")[0].split() + SPELLED_DAYS.split("|")[1:]


def date(r):
    x = r.random()
    if x < 0.3:
        return r.choice(("tomorrow", "tomorrow", "today", "tonight", "this evening", "tomorrow morning", "tomorrow night", "this afternoon", "the day after tomorrow", "next week", "this weekend"))
    if x < 0.7:
        d = r.choice(DAYS)
        return r.choice((d, d, "next " + d, "this " + d, d + " " + r.choice(("morning", "evening", "afternoon", "night"))))
    m, d = r.choice(MONTHS), r.randint(1, 28)
    suf = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd"}.get(d, "th")
    o = SPELLED_DAYS[d - 1]  # a recognizer writes no figures
    return r.choice((f"{m} {d}", f"{m} {d}{suf}", f"the {d}{suf} of {m}", f"{d} {m}", f"the {d}{suf}", f"{m} {o}", f"{m} {o}", f"the {o} of {m}", f"{o} {m}", f"{m} the {o}", f"the {o}"))


def at(r):
    """(preposition, phrase)"""
    x = r.random()
    if x < 0.45:
        return r.choice(("at ", "at ", "at ", "by ", "around ", "from ")), clock(r)
    if x < 0.6:
        return r.choice((("at ", r.choice(("noon", "midnight", "midday", "sunset", "sunrise", "dawn", "dusk", "dinner time", "lunchtime", "bedtime"))), ("", "half an hour before sunset"), ("when ", "the sun sets"), ("when ", "the sun goes down"), ("", "an hour after sunrise")))
    if x < 0.85:
        d = date(r)
        on = "" if d.split()[0] in ("tomorrow", "today", "tonight", "this", "next") or d.startswith("the day") else "on "
        return on, (d + " at " + clock(r)) if r.random() < 0.6 and "night" not in d else d
    d = date(r)
    return "at ", clock(r).replace(" tonight", "") + (" on " if d.split()[0] in DAYS or d.split()[0] in MONTHS else " ") + d


def duration(r):
    x = r.random()
    if x < 0.2:
        return r.choice(("half an hour", "an hour", "a minute", "an hour and a half", "three quarters of an hour", "a quarter of an hour", "a couple of minutes", "half a minute", "two and a half hours", "one and a half minutes", "a few minutes", "1 1/2 hours"))
    n, u = r.choice(((r.randint(1, 59), "minute"), (r.choice((5, 10, 15, 20, 25, 30, 45, 90)), "minute"), (r.randint(1, 12), "hour"), (r.choice((10, 20, 30, 40, 45, 50, 90)), "second"), (r.randint(1, 5), "day")) if r.random() < 0.95 else ((r.randint(1, 3), "week"),))
    s = number(r, n, 0, 0.35) + " " + u + ("s" if n != 1 else "")
    if x < 0.3 and u == "hour":
        s += r.choice((" and ", " ")) + number(r, r.randint(1, 55)) + " minutes"
    elif x < 0.35 and u == "minute":
        s += r.choice((" and ", " ")) + number(r, r.choice((10, 20, 30, 45))) + " seconds"
    elif x < 0.42:
        s = s.replace("minutes", "min").replace("seconds", "sec").replace("hours", r.choice(("h", "hrs")))
    return s


def every(r):
    day = r.choice(("every day", "every weekday", "every morning", "every evening", "every night", "daily", "each day", "on weekdays", "on weekends", "every " + r.choice(DAYS), "each " + r.choice(DAYS), "on " + r.choice(DAYS) + "s", "every monday and thursday", "every two hours", "every 30 minutes", "every hour"))
    if "hour" in day or "minutes" in day or r.random() < 0.25:
        return day
    return day + " at " + clock(r).replace(" tonight", "")


COLORS = "red blue green yellow purple orange pink white turquoise violet magenta cyan amber lavender teal gold|warm white|cool white|soft white|daylight|candlelight|dark blue|light green|sky blue|warm|cold white|ocean blue|rose|crimson|lime|black|brown|tomato red|rainbow"
COLORS = COLORS.split("|")[0].split() * 2 + COLORS.split("|")[1:]
MODES = "eco|auto|cool|heat|dry|quiet|turbo|sleep|night|boost|silent|low|medium|high|fan only|away|vacation|normal|intensive|delicate|quick wash|cotton|spot clean|manual|energy saving|comfort|party|frost protection|summer|winter|game|cinema|bluetooth|hdmi 2|aux|shuffle|repeat".split("|")
ITEMS = """milk|eggs|bread|butter|coffee|tea|apples|bananas|rice|pasta|olive oil|toilet paper|dish soap|batteries|light bulbs|cat food|dog food|cheese|yogurt|tomatoes|onions|potatoes|chicken|salt|sugar|flour|orange juice|water|wine|chocolate|cereal|shampoo|
toothpaste|detergent|air filter|paper towels|lemons|carrots|garlic|spinach|honey|avocados|trash bags|printer paper|stamps|vitamins|razor blades|oat milk|peanut butter|salmon|lettuce|mushrooms|blueberries|sandpaper|screws|paint|gloves|cable ties|two liters of milk|a dozen eggs|
three cans of tuna|six beers|macaroni and cheese|fish and chips|salt and pepper|a bag of rice|hops|yeast|caustic soda|gaskets|hose clamps|masking tape|mop heads|engine oil|impeller|fenders|rope|pipette tips|agar|seed trays|bone meal|flour type 55|nitrile gloves|toner|sticky notes|pears|oranges|a lamp|a timer|candles|new fan belt|kitchen light bulbs|door handles|window cleaner|ice cream|pizza|ham|turkey|beef|peas|corn|napkins|diapers|wipes|aspirin|cough syrup|birthday card|balloons""".replace("\n", "").split("|")
LISTS = "shopping|grocery|groceries|to do|todo|packing|wish|hardware|weekend|party|birthday|maintenance|chores|camping|work|pharmacy|spare parts|christmas|reading|bucket|guest|task|cleaning|brewing|crew|snag|{i}|ikea|costco|gift|summer".split("|")
TASKS = """take out the trash|call mom|water the plants|pay the rent|feed the cat|buy flowers|take my medicine|pick up the kids|check the oven|charge the car|send the report|walk the dog|change the filter|back up the server|check the boiler pressure|turn off the oven|move the laundry|
defrost the chicken|renew the insurance|book a table|close the windows|oil the hinges|order spare parts|lock the shed|read the meter|bring an umbrella|return the books|clean the gutters|test the smoke alarm|fill in the timesheet|sign the contract|drink some water|stretch|lubricate the conveyor|
unlock the front door|open the gate|turn on the lights|stop the mixer|dry hop tank three|rack the wine|check the anchor|calibrate the ph probe|empty the dust bag|ring 555 0192|call anna on 030 4412 887|buy milk|start the dishwasher|set the alarm|turn the heating down|let the dog out|get the cake out of the oven|switch the sprinklers off|bake a cake|meet john|go jogging|say happy birthday to tom""".replace("\n", "").split("|")
EVENTS = """dentist appointment|team meeting|lunch with anna|parent evening|yoga class|doctor's appointment|project review|birthday party|football practice|piano lesson|car inspection|board meeting|haircut|safety training|dinner with tom|maintenance window|stand-up|budget review|school concert|vet appointment|
flight to lisbon|call with the supplier|gym|book club|machine inspection|fire drill|weekly sync|job interview|chess club|swimming lesson|delivery|shift handover|audit|workshop|date night|movie night|brew day|tank cleaning|harvest|tasting|regatta|meeting with sean|mom's birthday|concert|picnic|doctor|dentist|meeting|party|appointment|conference call|reunion|wedding""".replace("\n", "").split("|")
OCCASIONS = "graduation|birthday|wedding|recital|concert|party|game|match|practice|lesson|interview|ceremony|anniversary|barbecue|show|performance|exam|checkup|baptism|retirement party|soccer practice|school play".split("|")
GATHERINGS = "meeting|lunch|dinner|call|appointment|brunch|coffee|drinks|date|session|video call|review|breakfast|conference".split("|")
WITH = "anna|tom|my boss|sarah|dan|mister lee|the team|mom|dad|my wife|john|dr smith|my husband|the accountant|maria|the kids|uncle joe|my sister|kate and ben|the landlord|sales".split("|")
PLACES = "goshen new york|the office|starbucks|central park|room four|the city hall|boston|the gym|san diego|the library|grandma's house|the new italian restaurant|conference room b|london|the school|mcdonalds".split("|")


def occasion(r):
    """What a calendar holds."""
    x = r.random()
    if x < 0.4:
        return r.choice(EVENTS)
    if x < 0.6:
        return r.choice(GATHERINGS) + " with " + r.choice(WITH)
    if x < 0.8:
        return r.choice(WITH) + "'s " + r.choice(OCCASIONS)
    return r.choice(("", "", "society ", "budget ", "staff ", "weekly ", "church ", "family ", "school ", "client ")) + r.choice(OCCASIONS + GATHERINGS)


MESSAGES = """i'm running late|dinner is ready|please call me back|the package has arrived|i'm on my way|the meeting starts in five minutes|come downstairs|the water is off until noon|happy birthday|i will be home at six|the kids are asleep|we need more malt|break in ten minutes|the gate is open|bring milk|turn off your lights|lock the door when you leave|stop the line|
all hands on deck|lunch is served|please clear the loading bay|i love you|can you pick up the kids|it's time for bed|the taxi is here|don't forget the keys|the show starts in two minutes|where are you""".replace("\n", "").split("|")
MUSIC = """jazz|some jazz|classical music|the beatles|bohemian rhapsody|my workout playlist|led zeppelin|the new album by adele|rock music|poker face by lady gaga|something relaxing|christmas songs|frank sinatra|radio paradise|bbc radio four|the news|npr|country roads|mozart|white noise|rain sounds|hotel california|taylor swift|my playlist|the daily podcast|
harry potter|techno|reggae|lo-fi beats|abba|shake it off|ninety eight point five|star wars|the office|the next episode|an audiobook|queen|some music|salsa|pink floyd|the light by common|turn the page|stop in the name of love|lights out|open the door|the pump song|heavy metal|blues|my favorite songs|songs from the eighties|the song of the whales|dark side of the moon|jingle bells|up by cardi b""".replace("\n", "").split("|")

TALK = []  # sentences of real people, for messages (build.Sources fills it)
ERRANDS = []  # what people ask of somebody else, "renew my library card" (build.Sources fills it)
DO = "call|buy|pick up|check|clean|water|return|pay for|book|bring|fix|order|renew|feed|charge|wash|sign|email|print|move|send|read|open|close|lock|take|get|cook|bake|paint|iron|collect|test|refill|replace|ring|text|visit|cancel|prepare|write".split("|")
WHOM = "the plumber|anna|the dentist|grandma|the bank|the school|our landlord|uncle bob|the report|the car|the dog|the bins|the laundry|the invoices|the garden|the filter|my shirt|the tyres|more towels to room 5|the new blade|the keys|the parcels|the curtains|the windows|the boiler|the fish fingers|my homework|the kitchen floor|a birthday card|the tickets".split("|")


def message(r):
    """Something to tell somebody."""
    x = r.random()
    if TALK and x < 0.45:
        return r.choice(TALK)
    if x < 0.6:
        return r.choice(("i will be ", "i'll be ", "we are ", "the train is ", "dad is ")) + duration(r) + " late"
    if x < 0.72:
        return r.choice(WHOM) + r.choice((" is ready", " is here", " is broken", " needs a new blade", " starts at " + clock(r), " has to go at " + clock(r)))
    return r.choice(MESSAGES)


def task(r):
    """Something to do."""
    if ERRANDS and r.random() < 0.25:
        return r.choice(ERRANDS)
    x = r.random()
    if x < 0.45:
        return r.choice(TASKS)
    return r.choice(DO) + " " + r.choice(r.choice((WHOM, WHOM, ITEMS))) + (r.choice((" and ", " and the ")) + r.choice(ITEMS) if r.random() < 0.15 else "")


def same_number(a, b):
    """ "4" and "four" """
    names = "zero one two three four five six seven eight nine ten eleven twelve".split()
    value = lambda x: names.index(x) if x in names else int(x) if x.isdigit() else x
    return value(a) == value(b)
