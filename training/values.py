"""Values for generated commands and contexts: rooms, devices, people, numbers, times, units.

Every function takes a random.Random and returns display text: a reply must contain the values of its
context verbatim, so that a program can check it.
"""

import home_table

LIGHTS = """lights|light|lamp|ceiling light|desk lamp|floor lamp|spotlights|led strip|reading light|
night light|chandelier|table lamp|wall lights|fairy lights|bedside lamp|pendant lights|string lights|
counter lights|ceiling lights|overhead light|porch light""".replace("\n", "").split("|")
SWITCHES = """fan|ceiling fan|heater|space heater|tv|television|radio|speaker|speakers|coffee machine|
coffee maker|kettle|dishwasher|oven|air purifier|humidifier|dehumidifier|router|printer|projector|
computer|monitor|washing machine|dryer|towel heater|electric blanket|water heater|boiler|aquarium pump|
sprinklers|sprinkler|fountain|outlet|plug|smart plug|power strip|security camera|camera|doorbell|
air conditioner|ac|air conditioning|extractor fan|hood|stereo|game console|charger|christmas tree|
pool pump|hot tub|sauna|microwave|toaster|rice cooker|slow cooker|freezer|fridge|ventilation|
heated floor|screen|white noise machine|diffuser""".replace("\n", "").split("|")
CLIMATE = """heating|thermostat|heater|radiator|air conditioner|ac|air conditioning|floor heating|
underfloor heating|boiler|oven|fridge|freezer|water heater|hot tub|heat pump|climate control|
central heating""".replace("\n", "").split("|")
COVERS = """blinds|blind|curtains|curtain|shades|shutters|garage door|gate|window|windows|skylight|
awning|roller shutters|front gate|roof window|drapes|garage|pergola roof""".replace("\n", "").split("|")
LOCKS = """front door|back door|garage door|door|patio door|side door|gate|cellar door|balcony door|
safe|front gate|shed|main entrance|office door|server room door|medicine cabinet""".replace("\n", "").split("|")
RUNNABLE = """vacuum|robot vacuum|vacuum cleaner|robot mower|lawn mower|washing machine|dishwasher|dryer|
coffee machine|sprinklers|pool pump|irrigation|air purifier|bread maker|robot|mop""".replace("\n", "").split("|")
SPEAKERS = """speaker|speakers|tv|television|radio|stereo|soundbar|music|headphones|alarm|intercom|
doorbell""".replace("\n", "").split("|")
ROOMS = """kitchen|living room|bedroom|bathroom|hall|hallway|office|study|garage|basement|attic|nursery|
dining room|guest room|garden|patio|balcony|cellar|laundry room|kids room|master bedroom|entrance|
staircase|terrace|pantry|library|workshop|conservatory|playroom|gym|lounge|den|spare room|porch|
meeting room|conference room|lobby|server room|warehouse|loading dock|lab|reception|break room|
storage room|greenhouse|upstairs|downstairs|ground floor|first floor|second floor|bedroom 2|room 12|
room 204|hall b|conference room 3|anna's room|tom's bedroom|backyard|driveway|toilet|shower room|
utility room|music room|sunroom|open space|canteen|workshop 2""".replace("\n", "").split("|")
NO_ARTICLE = {"upstairs", "downstairs"}
PEOPLE = """Anna|Tom|Maria|Lukas|Sofia|David|Emma|Noah|Mia|Liam|Olivia|Ben|Clara|Felix|Hannah|Jonas|Lena|
Paul|Laura|Max|Nina|Oscar|Rosa|Samuel|Tara|Victor|Wendy|Yusuf|Zoe|Aisha|Carlos|Chen|Diego|Elena|Fatima|
George|Hugo|Ines|Ivan|Julia|Karim|Leila|Marco|Nadia|Omar|Priya|Quentin|Rahul|Sara|Theo|Uma|Vera|Wei|Ximena|
Yara|Zain|mom|dad|grandma|grandpa|my wife|my husband|my sister|my brother|the plumber|the office|Alice|Bob|
Charlotte|Daniel|Ella|Frank|Grace|Henry|Isabel|Jack|Kate|Leo|Mohammed|Nora|Peter|Ruth|Steven|Teresa|
Mr. Keller|Mrs. Novak|Dr. Singh|Dr. Meyer|Ms. Lopez|the night shift|the maintenance team|reception""".replace("\n", "").split("|")
LAST = """Keller|Novak|Singh|Meyer|Lopez|Smith|Jones|Brown|Garcia|Martin|Rossi|Dubois|Tanaka|Kim|Nguyen|Ali|
Khan|Schmidt|Weber|Fischer|Moreau|Silva|Costa|Kowalski|Ivanov|Andersson|Hansen|Jansen|Murphy|Walker|Young|
Carter|Hughes|Price|Ward|Bell|Reed|Cole|Stone|Hill""".replace("\n", "").split("|")
PLACES = """Paris|London|Berlin|Madrid|Rome|Lisbon|Vienna|Zurich|Oslo|Stockholm|Helsinki|Dublin|Warsaw|Prague|
Athens|Cairo|Nairobi|Lagos|Mumbai|Delhi|Tokyo|Osaka|Seoul|Beijing|Shanghai|Sydney|Melbourne|Auckland|Toronto|
Montreal|Vancouver|New York|Boston|Chicago|Denver|Seattle|San Francisco|Los Angeles|Austin|Dallas|Atlanta|Miami|
Mexico City|Bogota|Lima|Santiago|Buenos Aires|Sao Paulo|Reykjavik|Geneva|Lyon|Marseille|Munich|Hamburg|Cologne|
Milan|Naples|Turin|Barcelona|Valencia|Porto|Brussels|Amsterdam|Rotterdam|Copenhagen|Bergen|Krakow|Budapest|
Istanbul|Ankara|Dubai|Singapore|Bangkok|Hanoi|Manila|Jakarta|Cape Town|Leeds|Glasgow|Cardiff|York|Bristol|
Springfield|Portland|Phoenix|Houston|Kansas City|Salt Lake City|Grenoble|Annecy|Basel|Graz""".replace("\n", "").split("|")
COLORS = """red|blue|green|yellow|purple|orange|pink|white|warm white|cool white|turquoise|violet|magenta|
cyan|amber|lavender|soft white|daylight|teal|gold""".replace("\n", "").split("|")
SCENES = """movie night|good night|good morning|dinner|party|reading|relax|focus|away|romantic|bedtime|
work|cozy|holiday|gaming|cleaning|wake up|sunset|yoga|guests|cooking|meditation|vacation|home cinema|
lunch break|study time|rainy day""".replace("\n", "").split("|")
MODES = """eco|auto|cool|heat|dry|quiet|turbo|sleep|night|boost|silent|low|medium|high|fan only|away|
vacation|normal|intensive|delicate|quick wash|cotton|spot clean|manual|energy saving|comfort|max|
party|frost protection|presence|summer|winter""".replace("\n", "").split("|")
ITEMS = """milk|eggs|bread|butter|coffee|tea|apples|bananas|rice|pasta|olive oil|toilet paper|dish soap|
batteries|light bulbs|cat food|dog food|cheese|yogurt|tomatoes|onions|potatoes|chicken|salt|sugar|flour|
orange juice|water|wine|chocolate|cereal|shampoo|toothpaste|detergent|air filter|paper towels|lemons|
carrots|garlic|spinach|honey|avocados|trash bags|printer paper|stamps|vitamins|razor blades|oat milk|
peanut butter|salmon|lettuce|mushrooms|blueberries|sandpaper|screws|paint|gloves|cable ties""".replace("\n", "").split("|")
LISTS = """shopping|grocery|to-do|packing|wish|hardware store|weekend|party|birthday|maintenance|chores|
camping|work|pharmacy|spare parts""".replace("\n", "").split("|")
EVENTS = """dentist appointment|team meeting|lunch with Anna|parent evening|yoga class|doctor's appointment|
project review|birthday party|football practice|piano lesson|car inspection|board meeting|haircut|
safety training|dinner with Tom|maintenance window|stand-up|budget review|school concert|vet appointment|
flight to Lisbon|call with the supplier|gym|book club|machine inspection|fire drill|weekly sync|
job interview|chess club|swimming lesson|delivery|shift handover|audit|workshop|date night|movie night""".replace("\n", "").split("|")
TASKS = """take out the trash|call mom|water the plants|pay the rent|feed the cat|buy flowers|take my medicine|
pick up the kids|check the oven|charge the car|send the report|walk the dog|change the filter|back up the server|
check the boiler pressure|turn off the oven|move the laundry|defrost the chicken|renew the insurance|
book a table|close the windows|oil the hinges|order spare parts|lock the shed|read the meter|bring an umbrella|
return the books|clean the gutters|test the smoke alarm|reset the counter|fill in the timesheet|
sign the contract|drink some water|stretch|lubricate the conveyor|rotate the tires""".replace("\n", "").split("|")
MESSAGES = """I'm running late|dinner is ready|please call me back|the package has arrived|I'm on my way|
see you at 8|don't forget the keys|the meeting moved to 3 pm|can you pick up the kids|happy birthday|
I'll be home in 20 minutes|the boiler is leaking|please buy milk|we are leaving now|thanks for yesterday|
the door is open|line 2 is down|come to the garage|lunch is at noon|the technician is here|good luck today|
bring the charger|the kids are asleep|call the plumber|shift starts at 6|love you|the train is delayed|
I found the keys|I'm at the office|please open the gate""".replace("\n", "").split("|")
MEDIA = """Clair de Lune|Bohemian Rhapsody|Blue in Green|Here Comes the Sun|Take Five|Imagine|Yesterday|
Purple Rain|So What|The Four Seasons|Hotel California|Smooth Operator|Dancing Queen|Thunderstruck|
Moonlight Sonata|Billie Jean|Hallelujah|Let It Be|Africa|Wonderwall|Autumn Leaves|Lean on Me|
the morning news|the cooking podcast|the science podcast|rain sounds|white noise|ocean waves|
my workout playlist|my dinner playlist|discover weekly|chill mix|the jazz station|radio one|
some jazz|classical music|lo-fi beats|relaxing music|80s hits|piano music|the latest episode|
the audiobook|Dune|The Matrix|Planet Earth|the football match""".replace("\n", "").split("|")
ARTISTS = """Debussy|Queen|Miles Davis|The Beatles|Dave Brubeck|John Lennon|Prince|Vivaldi|Eagles|Sade|Abba|
Beethoven|Michael Jackson|Leonard Cohen|Toto|Oasis|Bill Withers|Norah Jones|Daft Punk|Adele|Coldplay|
Ludovico Einaudi|Radiohead|David Bowie|Nina Simone|Bob Marley|Mozart|Chopin|Tina Turner|Pink Floyd""".replace("\n", "").split("|")
MACHINES = """pump|compressor|conveyor|motor|fan|boiler|chiller|generator|turbine|mixer|press|lathe|robot arm|
furnace|valve|cooling tower|packaging line|extruder|drill|gearbox|centrifuge|freezer|cold room|server rack|
ups|transformer|heat pump|milling machine|hydraulic press|air handler|elevator|forklift|cnc machine|
water tank|exhaust fan|bottling line|labeler|oven|injection molder|welding robot|inverter""".replace("\n", "").split("|")
SENSORS = {
    "temperature": ("°C", -25, 140, 1),
    "humidity": ("%", 5, 99, 0),
    "vibration": ("mm/s", 0, 25, 1),
    "pressure": ("bar", 0, 20, 1),
    "current": ("A", 0, 60, 1),
    "voltage": ("V", 180, 420, 0),
    "power": ("W", 5, 6000, 0),
    "power draw": ("kW", 0, 90, 1),
    "flow rate": ("l/min", 0, 250, 0),
    "co2": ("ppm", 380, 2600, 0),
    "noise": ("dB", 25, 110, 0),
    "speed": ("rpm", 100, 6000, 0),
    "torque": ("Nm", 2, 90, 1),
    "water level": ("cm", 2, 300, 0),
    "oil temperature": ("°C", 20, 130, 0),
    "bearing temperature": ("°C", 20, 120, 1),
    "battery": ("%", 1, 100, 0),
    "air quality": ("AQI", 5, 300, 0),
    "cpu load": ("%", 1, 100, 0),
    "latency": ("ms", 1, 2400, 0),
    "tank level": ("%", 1, 100, 0),
    "soil moisture": ("%", 3, 80, 0),
    "radon": ("Bq/m3", 5, 500, 0),
    "light level": ("lux", 1, 20000, 0),
    "energy use": ("kWh", 1, 300, 1),
    "outdoor temperature": ("°C", -30, 45, 1),
    "water temperature": ("°C", 2, 90, 1),
    "queue length": ("requests", 0, 900, 0),
    "memory use": ("MB", 50, 64000, 0),
    "request rate": ("req/s", 0, 5000, 0),
    "acceleration": ("m/s2", 0, 40, 2),
    "volume flow": ("m3/h", 0, 120, 1),
}
CAUSES = """bearing wear|a blocked filter|low coolant|a loose belt|an air leak|a stuck valve|misalignment|
a failing fan|rotor imbalance|cavitation|a door left open|low oil|a power dip|sensor drift|a clogged nozzle|
overload|a worn seal|a frozen coil|dust in the intake|a loose connector|dry running|a water leak|
a traffic spike|a memory leak|a failing disk|a tripped breaker|low refrigerant|a cracked hose|a dead battery|
a calibration error|scale in the pipe|an open window""".replace("\n", "").split("|")
ADVICE = """check the bearing|replace the filter|top up the coolant|tighten the belt|stop the machine|
call maintenance|inspect the valve|realign the shaft|clean the fan|check for leaks|reduce the load|
close the door|add oil|recalibrate the sensor|clean the nozzle|replace the seal|check the wiring|
open the bypass|restart the unit|inspect the pump|replace the battery|check the intake|drain the tank|
schedule an inspection|switch to the backup unit|lower the speed|ventilate the room|check the breaker""".replace("\n", "").split("|")
WEATHER = """sunny|cloudy|light rain|heavy rain|snow|clear skies|thunderstorms|fog|windy|partly cloudy|
overcast|drizzle|sleet|hail|showers|light snow|mist|clear|hot and dry|mild and cloudy|sunny spells|
scattered showers|freezing rain|humid|a heatwave|strong winds|patchy fog|rain""".replace("\n", "").split("|")
DAYS, MONTHS = home_table.WEEKDAYS, home_table.MONTHS
REASONS = """the device does not answer|the hub is offline|no permission|guests may not do that|
the window is open|the child lock is on|the battery is empty|the network is down|it needs a PIN|
the safety switch is open|quiet hours are active|the value is out of range|it is in maintenance mode|
the door is not closed|the filter is full|the water tank is empty|it is locked by another user|
the service timed out|the account is not linked|a cycle is still running|it is too windy|
the limit is 25 degrees|the alarm is armed|an operator must approve it|the emergency stop is pressed|
the model is busy|the schedule does not allow it|the robot is stuck|the bin is full|the cable is unplugged|
the firmware is updating|the device was removed|the lid is open|the pressure is too high|no speaker is connected|
no calendar is connected""".replace("\n", "").split("|") + home_table.REASONS
SYL = """ba be bi bo bu ca ce co da de di do fa fe fi ga go ha he ho ja jo ka ke ki ko la le li lo lu ma me mi mo
mu na ne ni no pa pe pi po ra re ri ro ru sa se si so ta te ti to tu va ve vi vo wa we xa ya yo za ze zo tan
ber lin mar ker dor vel nor sen der lon ston wick field mont bran gar tri plex nova""".split()

_extra = {"words": [], "names": [], "titles": []}


def set_open_values(words, names, titles):
    """Open vocabularies from the training splits, so that copying is learned, not memorised."""
    _extra["words"], _extra["names"], _extra["titles"] = words, names, titles


def novel(rng, n_max=3):
    """A value that is in no list: real words, names, codes or made-up words."""
    k = rng.random()
    if k < 0.35 and _extra["words"]:
        return " ".join(rng.choice(_extra["words"]) for _ in range(rng.randint(1, n_max)))
    if k < 0.60 and _extra["titles"]:
        return rng.choice(_extra["titles"])
    if k < 0.80:
        w = "".join(rng.choice(SYL) for _ in range(rng.randint(2, 4)))
        if rng.random() < 0.5:
            w = w.capitalize()
        if rng.random() < 0.3:
            w += " " + rng.choice(MACHINES + LIGHTS + SWITCHES)
        return w
    letter = rng.choice("ABCDEFGHKLMNPQRSTUVWXYZ")
    return rng.choice(
        [
            f"{letter}{rng.randint(1, 99)}",
            f"{letter}-{rng.randint(10, 9999)}",
            f"unit {rng.randint(1, 60)}",
            f"{rng.choice(MACHINES)} {rng.randint(1, 40)}",
            f"{rng.choice(MACHINES)} {letter}{rng.randint(1, 12)}",
            f"line {rng.randint(1, 12)}",
            f"zone {rng.randint(1, 24)}",
            f"{rng.choice(LIGHTS)} {rng.randint(1, 9)}",
        ]
    )


def mostly(rng, pool, p_novel=0.12, n_max=2):
    return novel(rng, n_max) if rng.random() < p_novel else rng.choice(pool)


def room(rng):
    return mostly(rng, ROOMS, 0.08, 2)


def person(rng):
    k = rng.random()
    if k < 0.12 and _extra["names"]:
        return rng.choice(_extra["names"])
    if k < 0.25:
        return "".join(rng.choice(SYL) for _ in range(rng.randint(2, 3))).capitalize()
    if k < 0.35:
        return rng.choice(PEOPLE[:56]) + " " + rng.choice(LAST)
    return rng.choice(PEOPLE)


def place(rng):
    k = rng.random()
    if k < 0.12:
        return "".join(rng.choice(SYL) for _ in range(rng.randint(2, 4))).capitalize()
    return rng.choice(PLACES)


def machine(rng):
    k = rng.random()
    if k < 0.15:
        return novel(rng, 2)
    m = rng.choice(MACHINES)
    k = rng.random()
    if k < 0.55:
        return f"{m} {rng.randint(1, 30)}"
    if k < 0.70:
        return f"{m} {rng.choice('ABCDEFGH')}{rng.choice(['', rng.randint(1, 9)])}"
    if k < 0.80:
        return f"{m} {rng.choice('PKMVTCF')}-{rng.randint(10, 999)}"
    return m


def number(rng, lo, hi, dec):
    v = rng.uniform(lo, hi)
    if dec == 0 or rng.random() < 0.25:
        return str(int(round(v)))
    return f"{v:.{dec}f}"


def unit_value(rng, unit, lo, hi, dec):
    s = number(rng, lo, hi, dec)
    if unit == "%":
        return s + rng.choice(["%", "%", " %", " percent"])
    if unit == "°C":
        return s + rng.choice([" °C", " °C", "°C", " degrees", " C", "°"])
    if unit and rng.random() < 0.04:
        return s
    return f"{s} {unit}"


def temperature(rng, lo=14, hi=30):
    v = rng.randint(lo, hi)
    s = f"{v}.5" if rng.random() < 0.15 else str(v)
    return s + rng.choice([" degrees", " degrees", " degrees", " °C", "°C", "°", "", " degrees celsius", " C"])


def percent(rng):
    v = rng.choice([rng.randint(1, 100), rng.randint(1, 10) * 10])
    return f"{v}" + rng.choice(["%", "%", " percent", " %"])


def clock(rng):
    h, m = rng.randint(0, 23), rng.choice([0, 0, 5, 10, 15, 20, 30, 30, 40, 45, 50, rng.randint(0, 59)])
    k = rng.random()
    if k < 0.5:
        return f"{h:02d}:{m:02d}" if rng.random() < 0.7 else f"{h}:{m:02d}"
    h12, ap = (h - 1) % 12 + 1, rng.choice(["am", "pm"])
    if m == 0 or k < 0.62:
        return f"{h12} {ap}" if rng.random() < 0.8 else f"{h12}{ap}"
    return f"{h12}:{m:02d} {ap}"


def time_phrase(rng):
    return clock(rng) if rng.random() < 0.85 else rng.choice(
        ["noon", "midnight", "sunset", "sunrise", "half past seven", "quarter to nine", "6 o'clock", "lunchtime"]
    )


def date_phrase(rng):
    k = rng.random()
    if k < 0.35:
        return rng.choice(["today", "tomorrow", "tonight", "this evening", "the day after tomorrow", "this weekend",
                           "tomorrow morning", "this afternoon", "next week", "tomorrow evening"])
    if k < 0.65:
        return rng.choice(["", "", "next ", "this "]) + rng.choice(DAYS)
    d, m = rng.randint(1, 28), rng.choice(MONTHS)
    if k < 0.8:
        return f"{m} {d}"
    if k < 0.9:
        return f"{d} {m}" + (f" {rng.randint(2024, 2031)}" if rng.random() < 0.4 else "")
    return f"{rng.randint(2024, 2031)}-{rng.randint(1, 12):02d}-{d:02d}"


def duration(rng):
    k = rng.random()
    if k < 0.55:
        return f"{rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 45, 50, 60, 90])} minutes".replace(
            "1 minutes", "1 minute") if rng.random() < 0.85 else f"{rng.randint(2, 95)} minutes"
    if k < 0.75:
        h = rng.randint(1, 12)
        return "1 hour" if h == 1 else f"{h} hours"
    if k < 0.85:
        return f"{rng.randint(5, 90)} seconds"
    if k < 0.92:
        return rng.choice(["half an hour", "an hour and a half", "two hours", "ten minutes", "five minutes", "an hour"])
    h = rng.randint(1, 5)
    return f"{h} hour{'s' if h > 1 else ''} {rng.randint(1, 59)} minutes"


def money(rng):
    v = rng.choice([str(rng.randint(1, 999)), f"{rng.randint(1, 400)}.{rng.randint(0, 99):02d}", str(rng.randint(1, 9) * 100)])
    return rng.choice([f"${v}", f"{v} dollars", f"{v} euros", f"€{v}", f"£{v}", f"{v} pounds"])


def email(rng):
    a = rng.choice(PEOPLE[:56]).lower()
    b = rng.choice(LAST).lower()
    d = rng.choice(["example.com", "mail.com", "gmail.com", "acme.org", "shop.net", "firma.de", "uni.edu", "plant.io", "outlook.com"])
    return rng.choice([f"{a}.{b}", f"{a}{rng.randint(1, 99)}", f"{a[0]}{b}", f"{a}_{b}", f"{a}-{b}{rng.randint(1, 9)}", "info", "support"]) + "@" + d


def digits(rng, n):
    return "".join(rng.choice("0123456789") for _ in range(n))


def phone(rng):
    return rng.choice([
        lambda: f"+{rng.randint(1, 99)} {digits(rng, 3)} {digits(rng, 3)} {digits(rng, 4)}",
        lambda: f"({digits(rng, 3)}) {digits(rng, 3)}-{digits(rng, 4)}",
        lambda: f"{digits(rng, 3)}-{digits(rng, 3)}-{digits(rng, 4)}",
        lambda: f"{digits(rng, 3)}-{digits(rng, 4)}",
        lambda: f"0{digits(rng, 3)} {digits(rng, 6)}",
        lambda: f"+{rng.randint(1, 99)}{digits(rng, 10)}",
        lambda: f"0{digits(rng, 10)}",
        lambda: f"{digits(rng, 3)} {digits(rng, 3)} {digits(rng, 4)}",
        lambda: f"{digits(rng, 3)}.{digits(rng, 3)}.{digits(rng, 4)}",
    ])()


def card(rng):
    s = rng.choice("3456") + digits(rng, 15)
    return rng.choice([s, " ".join(s[i : i + 4] for i in range(0, 16, 4)), "-".join(s[i : i + 4] for i in range(0, 16, 4))])


def iban(rng):
    s = rng.choice(["DE", "FR", "GB", "CH", "ES", "IT", "NL", "AT"]) + digits(rng, 2) + digits(rng, rng.randint(12, 18))
    return s if rng.random() < 0.5 else " ".join(s[i : i + 4] for i in range(0, len(s), 4))


def ip(rng):
    if rng.random() < 0.15:
        return ":".join(f"{rng.randint(0, 65535):x}" for _ in range(8))
    return ".".join(str(rng.randint(0, 255)) for _ in range(4))


def ssn(rng):
    return f"{digits(rng, 3)}-{digits(rng, 2)}-{digits(rng, 4)}"


def address(rng):
    street = rng.choice(["Main", "Oak", "Station", "Mill", "Park", "Lake", "Church", "High", "Elm", "River", "Garden",
                         "Market", "School", "Hill", "North", "Maple", "King", "Queen", "Bridge"]) + " " + rng.choice(
        ["Street", "Road", "Avenue", "Lane", "Drive", "St", "Ave", "Way", "Square", "Boulevard"])
    s = f"{rng.randint(1, 2400)} {street}"
    if rng.random() < 0.3:
        s += f" {rng.choice(PLACES)}"
        if rng.random() < 0.5:
            s += f" {digits(rng, 5)}"
    return s


def plate(rng):
    L = lambda n: "".join(rng.choice("ABCDEFGHJKLMNPRSTUVWXYZ") for _ in range(n))
    return rng.choice([f"{L(3)} {digits(rng, 3)}", f"{L(2)}-{L(2)}-{digits(rng, 4)}", f"{L(2)}{digits(rng, 2)} {L(3)}", f"{L(3)}-{digits(rng, 4)}"])


def secret(rng):
    pool = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
    return rng.choice([
        lambda: rng.choice(["sunshine", "dragon", "letmein", "winter", "hunter", "monkey", "secret"]) + digits(rng, rng.randint(1, 4)) + rng.choice(["", "!", "#"]),
        lambda: "".join(rng.choice(pool) for _ in range(rng.randint(7, 14))) + rng.choice(["", "!", "$", "?"]),
        lambda: digits(rng, rng.choice([4, 4, 6])),
    ])()


def url(rng):
    return rng.choice(["https://", "http://", "www."]) + rng.choice(["example.com", "acme.org", "plant.io", "home.local", "shop.net", "news.site"]) + rng.choice(
        ["", "/login", f"/item/{rng.randint(1, 999)}", "/docs/manual.pdf", f"/?id={rng.randint(1, 9999)}"])
