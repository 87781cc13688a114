"""Random sites: places with floors, areas, things, people and scenes, named in many ways.

A site is made anew for every few examples, so that no name can be learned by heart: what a thing is called, what it can
do and where it is must be read from its line in the input.
"""

from plans import QUANTITIES

# What kinds can do without saying so in their line. Other quantities of a thing are written in its line.
IMPLIED = {
    "light": ["brightness", "color"], "climate": ["temperature", "mode"], "heating": ["temperature"], "cooling": ["temperature"],
    "media": ["volume", "mode"], "fan": ["speed"], "valve": ["position"], "cover": ["position"], "blind": ["position"],
    "curtain": ["position"], "shutter": ["position"], "shade": ["position"], "awning": ["position"], "garage": ["position"],
    "gate": ["position"], "window": ["position"],
}
POWER = set("light switch fan climate heating cooling media appliance machine pump camera".split())
COVERS = "cover blind curtain shutter shade awning".split()
OPENS = set(COVERS + "door garage gate window valve".split())
LOCKS = set("door lock gate garage".split())
RUNS = set("machine pump appliance vacuum mower".split())

# Words that name a whole class; a thing that is called no more than this is meant by its class.
CLASS_WORDS = {
    "light": ["lights", "light", "lamps", "lamp", "lighting"],
    "switch": ["switches", "plugs", "sockets", "outlets"],
    "fan": ["fans", "fan"],
    "blind": ["blinds", "blind"], "curtain": ["curtains", "curtain", "drapes"], "shutter": ["shutters", "roller shutters"],
    "shade": ["shades"], "awning": ["awnings", "awning"],
    "door": ["doors"], "garage": ["garage doors"], "gate": ["gates"], "window": ["windows", "window"], "lock": ["locks", "lock"],
    "climate": ["thermostats", "thermostat"], "heating": ["heating", "heat", "radiators", "heaters"],
    "cooling": ["air conditioning", "ac", "air conditioners", "aircon"],
    "media": ["speakers", "music", "media players", "stereo"], "vacuum": ["vacuums", "vacuum", "vacuum cleaner", "robot vacuum", "hoover"], "mower": ["mower", "lawn mower"],
    "camera": ["cameras"], "valve": ["valves"], "pump": ["pumps"], "machine": ["machines"],
    "everything": ["everything", "all devices", "all the devices", "everything electric"],
}
BARE = {w for ws in CLASS_WORDS.values() for w in ws} | {"door", "gate", "plug", "socket", "switch", "speaker", "shade", "shutter", "valve", "pump", "machine", "camera"}

QUANTITY_WORDS = {
    "brightness": ["brightness", "light level", "intensity"], "color": ["color", "colour"], "temperature": ["temperature", "temp", "heat", "target temperature", "setpoint"],
    "humidity": ["humidity", "moisture"], "position": ["position", "opening"], "volume": ["volume", "sound", "loudness"], "speed": ["speed", "pace"],
    "mode": ["mode", "program", "setting"], "pressure": ["pressure", "head pressure"], "power": ["power", "output", "wattage"], "energy": ["energy", "energy use"],
    "flow": ["flow", "flow rate"], "level": ["level", "fill level"], "charge": ["charge", "battery", "battery level", "state of charge"], "current": ["current", "amperage"],
    "voltage": ["voltage"], "weight": ["weight", "load", "mass"], "co2": ["co2", "carbon dioxide", "co2 level"], "air": ["air quality"], "light_level": ["light level", "illuminance", "lux"],
    "noise": ["noise level", "noise"], "distance": ["distance", "range"], "rpm": ["rpm", "revs", "rotation speed"], "ph": ["ph", "ph value", "acidity"],
    "concentration": ["concentration"], "time_left": ["remaining time", "time left"], "frequency": ["frequency"], "torque": ["torque"], "angle": ["angle", "tilt"],
    "dose": ["dose", "dosage"], "count": ["count", "counter"], "consumption": ["consumption", "usage"],
}
# unit words, lowest, highest, decimals
UNITS = {
    "brightness": [("percent %", 0, 100, 0)], "position": [("percent %", 0, 100, 0)], "volume": [("percent % -", 0, 100, 0)], "speed": [("percent %", 0, 100, 0), ("rpm", 10, 3000, 0)],
    "temperature": [("degrees degree celsius C °C °", -30, 300, 1), ("degrees fahrenheit F °F fahrenheit", 30, 500, 0)], "humidity": [("percent %", 10, 95, 0)],
    "pressure": [("bar bars", 0, 12, 1), ("psi", 5, 150, 0), ("kPa kilopascals", 10, 900, 0)], "power": [("percent %", 0, 100, 0), ("watts W watt", 50, 5000, 0), ("kilowatts kW", 1, 40, 1)],
    "flow": [("liters per minute l/min litres", 1, 200, 1)], "level": [("percent %", 0, 100, 0), ("liters litres", 10, 5000, 0)], "charge": [("percent %", 0, 100, 0)],
    "current": [("amps A amperes", 1, 64, 0)], "voltage": [("volts V", 3, 400, 0)], "weight": [("kilos kg kilograms", 1, 900, 0)], "rpm": [("rpm revolutions", 10, 9000, 0)],
    "ph": [("-", 3, 9, 1)], "frequency": [("hertz Hz", 1, 400, 0)], "torque": [("newton meters Nm", 1, 300, 0)], "angle": [("degrees °", 0, 90, 0)], "dose": [("milliliters ml", 1, 500, 0)],
    "concentration": [("percent %", 1, 60, 1)], "count": [("-", 1, 50, 0)],
}
OWN = """dose rate|spin|stroke|duty cycle|gain|carbonation|salinity|tension|feed rate|nozzle height|proofing|tilt|aperture|hardness|squelch|ec value|back pressure|
mix ratio|heel|trim|rudder|stack height|cut depth|belt gap|fan curve|bass|treble|balance|water hardness|grind size|steam|blade height|batch size|hold time|ramp|dew point|
turbidity|brix|gravity|lamp hours|draft|slope|preload|contrast|zoom|focus|exposure|shade factor|drip interval|lux target|suction|viscosity|idle speed|throttle""".replace("\n", "").split("|")

FIRST = """anna|tom|maria|lukas|sofia|david|emma|noah|mia|liam|olivia|ben|clara|felix|hannah|jonas|lena|paul|laura|max|nina|oscar|rosa|samuel|tara|victor|wendy|yusuf|zoe|
aisha|carlos|chen|diego|elena|fatima|george|hugo|ines|ivan|julia|karim|leila|marco|nadia|omar|priya|quentin|rahul|sara|theo|uma|vera|wei|ximena|yara|zain|alice|bob|
charlotte|daniel|ella|frank|grace|henry|isabel|jack|kate|leo|mohammed|nora|peter|ruth|steven|teresa|björn|søren|zoë|renée|josé|łukasz|siobhan|niamh|xiu|akiko|hiroshi|
ngozi|kwame|thabo|ioana|dragan|milica|aino|eero|gudrun|ingrid|agnes|bertie|dot|grandpa joe|big mike|little sam|john|mary|mike|sean|pawel|jane|sue|bill|will|mark|art|faith|hope|may|june|april""".replace("\n", "").split("|")
RELATIONS = "mum|mom|dad|grandma|grandpa|my wife|my husband|my sister|my brother|the plumber|the office|reception|the night shift|maintenance|the boss|the nurse|security|the doctor|granny|auntie|the landlord|housekeeping|the bridge|the captain".split("|")
LAST = "keller|novak|singh|meyer|lopez|smith|jones|brown|garcia|martin|rossi|dubois|tanaka|kim|nguyen|ali|khan|schmidt|weber|silva|kowalski|ivanov|hansen|murphy|walker|o'brien|van dijk|de luca|mcdonald".split("|")
SYLL = "ka ro mi ta lu ne zo vi sha dor ven pel gri tha mon ul bra kes fi jo ra lin dur vax qui os tri bel nor hal wyn ost em ix ar ond eth ill ga ze pu".split()
COMMON = """monday|justice|party|thunder|sunshine|bertha|rex|goliath|tiny|happy|lucky|the beast|old faithful|snowball|ghost|pepper|mango|rocket|titan|zeus|apollo|hermes|athena|buddy|sparky|big blue|little red|
phoenix|merlin|gandalf|yoda|elvis|rosie|betty|daisy|henry|dusty|turbo|blinky|noodle|pickle|biscuit|moby|nemo|neptune|saturn|echo|delta|bravo|alpha|omega|stop light|next door|morning glory|weather vane|alarm clock|second hand|time machine|night owl|
four seasons|open sky|close call|set piece|the play|volume one|up north|downtown|home base|offshore|red october|water lily|black pearl|green mile|blue moon""".replace("\n", "").split("|")
FOREIGN = """lampe du salon|küchenlicht|stehlampe|luz de la cocina|persiana|volet roulant|deckenlampe|heizung|chauffage|ventilador|puerta del garaje|rollo|jalousie|luce cucina|tapparella|kattolamppu|taklampa|żyrandol|lámpara|
spülmaschine|waschmaschine|lave linge|frigo|nevera|four|backofen|pompe|bomba de agua|wasserpumpe|kessel|cuve|tanque|sauna|kiuas|kotatsu|genkan|tatami light|onsen|shoji|fusuma|samovar|banya|piec|kachelofen|wintergarten|salle de bain|küche|wohnzimmer|cuisine|dormitorio|oficina|keller|grenier|cocina|soggiorno|makuuhuone|kontor|cave""".replace("\n", "").split("|")

HOME_AREAS = """kitchen|living room=lounge|bedroom|bathroom|hall=hallway,corridor|office=study|garage|garden=yard|basement=cellar|attic=loft|nursery|dining room|guest room=spare room|patio|balcony|laundry room|kids room|master bedroom=main bedroom|
entrance=entryway|staircase=stairs|terrace|pantry|library|workshop|conservatory|playroom|gym|den|porch|toilet=wc,loo|utility room|music room|sunroom|driveway|shed|greenhouse|pool|sauna|wine cellar|walk in closet=wardrobe|mudroom|home theater=home cinema|bedroom 2|bathroom 1|{p}'s room|{p}'s bedroom|roof|front yard|backyard|landing|carport|barn|stable|pool house|studio|games room""".replace("\n", "").split("|")
FLOORS = [["ground floor=downstairs", "first floor=upstairs", "basement floor=cellar level"], ["first floor=downstairs", "second floor=upstairs", "third floor=top floor"], ["main floor", "upper floor=upstairs", "lower floor=downstairs"],
          ["downstairs", "upstairs", "attic level"], ["level 1", "level 2", "level 3"], ["ground=ground level", "mezzanine", "top level"]]

# kind | names, = aliases | quantities; {n} is a number, {l} a letter, {p} a person, {i} an invented name
HOME_THINGS = """light|ceiling light;desk lamp;floor lamp=standing lamp;reading light;night light;chandelier;table lamp;wall lights;fairy lights;bedside lamp;pendant;string lights;counter lights;overhead light;porch light;spotlights=spots;led strip;lantern;aquarium light;mirror light;cabinet lights;picture light;lava lamp;christmas lights;stair lights;{p}'s lamp;lamp {n};light {n};{i};hue {n};corner light;uplighter;vanity light;flood light
light|lights;light;main light;lamp
switch|coffee plug;smart plug;power strip;tv socket;charger;christmas tree;router;fountain;electric blanket;server rack;fish tank;wemo;outlet {n};iron;garden socket;towel rail;computer=pc;printer;monitor;game console=playstation;doorbell;irrigation;sprinklers=sprinkler;plug {n}
fan|ceiling fan;fan;extractor=extractor fan;ventilation;tower fan;bathroom fan;desk fan;stand fan;air purifier;hood=cooker hood;attic fan
blind|blinds;kitchen blind;roof blind;venetian blinds;left blind;right blind;blackout blind
curtain|curtains;bedroom curtain;left curtain;right curtain;drapes;net curtain
shutter|shutters;roller shutter;window shutter;patio shutter
awning|awning;sun sail;terrace awning=marquee
shade|shades;roman shade;sun shade
door|front door=main door,entrance;back door;patio door;side door;cellar door;balcony door;cat flap;shed door;office door;terrace door;sliding door
garage|garage door;garage door {n};left garage door;double garage
gate|front gate;driveway gate;garden gate;side gate;gate
window|skylight=roof window;bathroom window;kitchen window;left window;window;velux;bay window
lock|front door lock;back door lock;safe;bike shed lock;smart lock;mailbox;gun cabinet;medicine cabinet;nuki
climate|thermostat;heating=heat;climate control;bedroom thermostat;nest;heat pump;living room thermostat;ecobee;tado
heating|radiator;oven;boiler=water heater;hot tub=jacuzzi;sauna;floor heating=underfloor heating;towel heater;space heater;fireplace;kettle;stove=cooker;grill=bbq,barbecue;toaster;heated floor;pool heater;immersion heater
cooling|air conditioner=ac,aircon;fridge=refrigerator;freezer;wine cooler;ice maker;minibar;chest freezer;beer fridge;evaporative cooler
media|tv=television,telly;radio;stereo;speaker;soundbar;projector;record player;sonos;{p}'s speaker;homepod;kitchen speaker;bluetooth speaker;cd player;jukebox;living room tv;chromecast;apple tv;cinema amp
vacuum|vacuum=robot vacuum,hoover;roomba;mop=mop robot;{i};vacuum robot {i};rosie
mower|mower=lawn mower;robot mower;{i}
appliance|dishwasher;washing machine=washer;dryer=tumble dryer;coffee machine=coffee maker,espresso machine;bread maker;rice cooker;slow cooker;microwave;litter box;cat feeder=feeder;humidifier;dehumidifier;diffuser;air fryer;blender;rice steamer;egg cooker;dog feeder;wallbox=car charger
camera|front camera;garden camera;doorbell camera;baby monitor;driveway camera;camera {n};nanny cam
siren|alarm=alarm system,burglar alarm;siren;smoke alarm;house alarm
valve|water valve=main valve;gas valve;garden valve;drip valve;radiator valve
pump|pool pump;well pump;pond pump;circulation pump;aquarium pump;sump pump
machine|elevator=lift;loom;3d printer;kiln;treadmill;telescope;organ;solar inverter;generator
sensor:temperature|temperature;thermometer;outside temperature;fridge sensor;weather station;aquarium thermometer
sensor:humidity|humidity;hygrometer;soil moisture
sensor:power|power meter;solar power;washer power;grid power
sensor:co2|co2 sensor;air monitor
sensor:charge|phone battery;car battery;{p}'s phone;house battery;remote battery
sensor:energy|energy meter;solar yield
sensor:light_level|lux sensor
sensor:pressure|barometer;water pressure
sensor:level|rain barrel;oil tank;salt level;cistern
motion|motion sensor;hall motion;garden motion=pir
smoke|smoke detector;fire detector
leak|leak sensor=water sensor;flood sensor
presence|presence sensor;bed sensor;couch sensor"""

KINDS = {
    "brewery": ("cellar|brewhouse=brew house|packaging hall|cold room|lab|taproom|malt store|boiler room|canning line|office|loading dock|barrel room",
        """machine:pressure,temperature|fermenter {N}=fv{n};bright tank {n}=bt{n};unitank {n};fv {n};ft-{n}
machine:temperature,level|mash tun;hot liquor tank=hlt;kettle=boil kettle;lauter tun;whirlpool;{i}
cooling:temperature|glycol chiller=chiller;cold room cooler;wort chiller
pump:speed,flow|wort pump;transfer pump;cip pump;pump {n};glycol pump
machine:speed|mill;canning line=canner;labeller;bottling line;mixer;keg washer;grist mill
valve|blow off valve;co2 valve;steam valve;drain valve {n}
sensor:temperature|cellar probe;wort temperature
sensor:pressure|header pressure;co2 pressure
sensor:co2|co2 monitor"""),
    "boat": ("saloon|galley|cockpit|foredeck|aft cabin|forepeak|engine room|heads=head|chart table=nav station|bridge|wheelhouse|flybridge|v berth|owner's cabin|lazarette|helm",
        """light|anchor light;nav lights=navigation lights;deck light;spreader lights;chart light;courtesy lights;red light;mast light;steaming light
pump|bilge pump=bilge;fresh water pump;deck wash pump;grey water pump;livewell pump
machine:rpm|engine=diesel,main engine;bow thruster;generator=genset;port engine;starboard engine
machine:speed|windlass=anchor winch;watermaker;winch {n};davit;capstan
switch|inverter;vhf=radio,wireless;autopilot;radar;plotter=chartplotter;shore power;horn;fridge switch
cooling:temperature|icebox;fridge;freezer
sensor:charge|house bank=house battery;starter battery
sensor:level|fresh water tank=water tank;fuel tank=diesel tank;black tank
sensor:temperature|engine temperature;sea temperature;cabin temperature
valve|seacock {n};diesel valve
cover|hatch=forehatch;saloon hatch;bimini"""),
    "hotel": ("room {r}|lobby=reception|bar|restaurant|spa|pool|conference room {n}=meeting room {n}|kitchen|laundry|corridor {n}|suite {n}|gym|ballroom|breakfast room|roof terrace|parking=car park|staff room|business lounge",
        """light|lobby lights;bar lights;chandelier;bedside lamp;corridor lights;stage light;sign=hotel sign;pool lights
climate|room {r} ac=ac {r};lobby climate;ballroom hvac;spa climate
media|lobby music;bar tv;conference projector;spa speaker;ballroom pa
lock|room {r};staff door;minibar {r};linen closet;safe {r}
door|revolving door;loading door;garden door
appliance|ice machine;dishwasher {n};linen dryer;dumbwaiter;towel warmer
heating:temperature|whirlpool;sauna;steam room;pool heater
pump:speed|pool pump;fountain pump
curtain|blackout curtains;suite drapes
machine|elevator {n}=lift {n};service lift;escalator"""),
    "office": ("meeting room {n}|open space|reception|kitchenette|server room|boardroom|phone booth {n}|canteen|print room|corridor|lobby|archive|training room|desk area {l}|conference room {i}|break room|{i}",
        """light|desk lights;ceiling panel {n};whiteboard light;exit light;lobby light
media|projector;meeting screen=screen;video bar;conference phone;pa system
blind|south blinds;window blinds;blind {n}
climate|hvac=air handling;ahu {n};server room ac;thermostat {n}
switch|coffee machine;printer {n};copier;badge reader;ups;vending machine
sensor:co2|co2 sensor;air quality monitor
sensor:temperature|rack temperature;room sensor
door|turnstile;main entrance;fire door {n}
lock|server room door;archive door;key cabinet
presence|desk sensor {n};occupancy sensor"""),
    "workshop": ("main hall|paint booth=spray booth|welding bay|tool room|assembly|loading bay|office|yard|saw room|cnc room|line {n}|bay {n}|store|finishing",
        """machine:speed|lathe=turning machine;band saw;table saw;drill press;cnc mill=mill;planer;sander;router table;belt {n}=conveyor {n};spindle;press {n};grinder;palletizer;robot {n}=arm {n};wrapper
machine:pressure|compressor=air compressor;hydraulic press;compressor {n};vacuum press
machine:temperature,speed|extruder;laminator;injection moulder
heating:temperature|kiln;curing oven;glue pot;heat gun
fan:speed|dust extractor=dust collection;booth fan;exhaust
switch|welder;air dryer;charger {n};radio
light|task light;booth light;hall lights;bench lamp
machine:speed|crane=hoist;gantry;forklift charger;turntable
sensor:pressure|line pressure;shop air
motion|light curtain;bay {n} motion
garage|roller door=rolling door;bay door {n};dock door {n}"""),
    "greenhouse": ("bay {n}|propagation=prop room|nursery|potting shed|zone {l}|house {n}|tunnel {n}|seed room|pump house|orchid house|vinery|field {l}",
        """valve|drip line {n};mist line;irrigation valve {n};fertigation valve;zone {l} valve
window|roof vent=vents;side vent {n};ridge vent;louvers
heating:temperature|boiler;bench heating;pipe heat
light|grow lights=grow lamps;led bar {n};inspection light;assimilation lamps
fan|circulation fan;exhaust fan {n};haf fan
shade|thermal screen;shade screen=shade cloth;blackout screen
machine:flow,concentration,dose|dosing unit=fertigator;co2 injector;acid doser;nutrient mixer
sensor:humidity|bay {n} humidity;leaf wetness
sensor:temperature|root zone;canopy temperature
sensor:ph|ph probe
sensor:level|nutrient tank;rain tank
pump|irrigation pump;booster pump;well"""),
    "lab": ("wet lab|cold room|clean room|microscopy|autoclave room|tissue culture|fume hood {n}|bench {l}|sample store|office|gas store|nmr room|glovebox room|balance room",
        """machine:temperature|incubator {n};water bath;oven {n};thermocycler=pcr machine;hot plate;sterilizer=autoclave
machine:rpm,temperature|centrifuge;shaker {n};stirrer;rotavap=rotary evaporator;vortex mixer
cooling:temperature|minus eighty freezer=ult freezer;sample fridge;cryostat;liquid nitrogen dewar
machine:pressure,flow|gas manifold;vacuum pump;peristaltic pump;syringe pump {n};chromatograph=hplc
fan:speed|fume hood {n};laminar flow hood;exhaust fan
light|uv lamp;bench light;microscope lamp
lock|chemical cabinet;clean room door;sample safe
sensor:temperature|freezer probe;room sensor
sensor:pressure|room pressure;nitrogen pressure
machine|sequencer;plate reader;pipetting robot=robot;glovebox"""),
    "farm": ("milking parlour=parlor|barn {n}|dairy|feed store|calf pen|machine shed|paddock {l}|stable|hen house=coop|silo yard|field {n}|pig house|hay loft",
        """machine:speed|milking machine;feed mixer;auger {n};manure scraper=scraper;conveyor;grain dryer;bale wrapper
fan|barn fan {n};ridge fan;silo fan
gate|paddock gate;barn gate {l};race gate;drafting gate
pump|slurry pump;water pump;well pump;milk pump
cooling:temperature|milk tank=bulk tank;egg cooler
light|barn lights;hen light;yard light;heat lamp
door|coop door=pop door;barn door;sliding door
valve|trough valve;silo slide {n}
sensor:level|silo {n};slurry pit;feed bin {l};milk level
sensor:temperature|hay temperature;milk temperature
switch|electric fence=fence;cow brush;chick brooder"""),
    "bakery": ("bakehouse|shop|proofing room|cold store|flour store|decorating|kitchen|office|delivery bay",
        """heating:temperature|deck oven {n}=oven {n};rack oven;stone oven;fryer;bain marie
machine:speed|dough mixer=spiral mixer;sheeter;planetary mixer;slicer;divider;bun line
machine:temperature,humidity|prover=proofer;retarder
cooling:temperature|blast chiller;walk in fridge;display case
light|shop lights;window display;sign
sensor:temperature|dough probe;oven temperature
switch|flour sifter;ice machine;till;coffee machine
sensor:weight|flour silo;scale"""),
    "datacentre": ("row {n}|cage {l}|rack {l}{n}|network room|battery room|generator yard|office|staging|cold aisle {n}|hot aisle {n}|noc|meet me room",
        """cooling:temperature|crac {n}=crah {n};chiller {n};row cooler {l}
machine|generator {n};ups {n};sts {l}
fan:speed|rack fan {n};ahu fan
switch|pdu {l}{n};rack {l}{n};kvm;switch {n};{i}-{n}
sensor:temperature|inlet temperature;rack {n} temperature
sensor:power|row {n} power;total load
lock|cage {l};rack door {n};mantrap
light|aisle lights;cage light
pump|chilled water pump {n}
leak|leak rope {n}"""),
    "restaurant": ("kitchen|bar|dining room|terrace|cold room|pass|cellar|private room|toilets|entrance|prep area|smoking area",
        """heating:temperature|fryer {n};pizza oven;griddle=plancha;salamander;combi oven;hot plate;coffee boiler
cooling:temperature|walk in;beer cooler;ice cream freezer;wine fridge
fan:speed|hood=extraction;bar fan
light|bar lights;table lamps;candles;neon sign;terrace heaters light;pendant lights
media|house music=music;bar tv;terrace speakers
appliance|dishwasher;glass washer;coffee machine;ice machine;rice cooker
awning|terrace awning;front awning
heating|terrace heater {n};patio heaters
door|kitchen door;back door
sensor:temperature|cellar temperature;fridge {n}"""),
    "theatre": ("stage|auditorium=house|foyer|green room|dressing room {n}|fly tower|control booth=booth|orchestra pit|box office|workshop|wings|rehearsal room",
        """light|house lights;follow spot=followspot;footlights;blues;cyc lights;work lights;ghost light;par {n};fresnel {n};profile {l}
curtain|house curtain=main curtain;safety curtain=iron;tabs;cyclorama;traveller
machine:speed|revolve=turntable;trap {n};fly bar {n}=bar {n};winch {n};orchestra lift
machine|fog machine=hazer,smoke machine;snow machine;wind machine;bubble machine
media|front of house pa=pa;stage monitor {n};intercom=cans;show relay
scene|blackout;preset {n};interval
door|stage door;scene dock;auditorium doors
climate|auditorium hvac;dressing room heating"""),
    "rv": ("cab|bed|kitchenette|bathroom|awning side|storage|lounge|bunk|outside",
        """light|awning light;bed light;entry light;reading lamp;running lights
switch|inverter;water heater;tv;shore power;usb ports
pump|water pump
heating:temperature|furnace=heater;floor heat
cooling:temperature|roof ac;fridge
awning|awning
machine|slide out=slide;levelling jacks=jacks;step
sensor:level|grey tank;black tank;fresh tank;propane
sensor:charge|leisure battery=house battery
lock|entry door;cargo bay {n}
fan|roof fan=maxxfan"""),
    # held out: see VALID_KINDS
    "winery": ("press room|barrel cellar|tank hall|tasting room|crush pad|bottle store|lab|vineyard block {l}|office|cave",
        """machine:temperature,level|tank {n}=t-{n};ferment vat {n};amphora {n};blending tank
machine:pressure,speed|basket press=press;destemmer;bladder press;crossflow filter
pump:speed,flow|must pump;racking pump;punch down arm
cooling:temperature|tank jacket {n};glycol unit;cellar cooler
light|tasting lights;cellar lights;barrel lamp
door|cave door;crush gate
sensor:humidity|cellar humidity
sensor:temperature|must temperature;barrel {n} probe
fan|cellar fan;co2 extractor
media|tasting room music"""),
    "studio": ("live room|control room|vocal booth|lounge|machine room|edit suite {n}|drum room|kitchen|reception",
        """media|main monitors=mains;nearfields;headphone amp {n};talkback;playback
light|red light=recording light;console lamp;booth light;mood lights;ring light
switch|tape machine;patchbay;preamp {n};plate reverb;guitar amp;rack {l};{i}
climate|machine room ac;booth climate
door|live room door;airlock
machine:speed|lathe;tape transport
fan|booth fan;amp fan
camera|vocal cam;drum cam
blind|lounge blinds
sensor:noise|noise meter"""),
    "observatory": ("dome|warm room|control room|spectrograph room|instrument lab|roof|library|visitor hall",
        """cover|dome shutter=shutter;mirror cover;wind screen;flap {n}
machine:speed,angle|dome=dome drive;mount=telescope mount;derotator;focuser;guider
camera|all sky camera=all sky;guide camera;ccd {n}
light|red lights;flat lamp;dome lights;calibration lamp
cooling:temperature|camera cooler;chiller;detector cooler
fan|mirror fan {n};dome fan
heating:temperature|dew heater {n};warm room heater
sensor:humidity|dome humidity;rain sensor
sensor:temperature|mirror temperature;ambient
pump|vacuum pump;glycol pump"""),
}
VALID_KINDS = ("winery", "studio", "observatory")
SCENES = """movie night=movie;good night;good morning;dinner;party;reading;relax;focus;away;romantic;bedtime;work;cozy;holiday;gaming;cleaning;wake up;sunset glow;yoga;guests;cooking;meditation;vacation;home cinema;lunch break;study time;rainy day;night shift;
opening;closing time;presentation;brew day;cip;night watch;at anchor;under way;lockdown;show time;all clear;siesta;bath time;story time;date night;storm;eco;{i};showtime;night mode;day mode;leaving home;coming home""".replace("\n", "").split(";")


class Area:
    __slots__ = ("name", "aliases", "floor", "words")

    def __init__(self, name, aliases=(), floor=None):
        self.name, self.aliases, self.floor = name, list(aliases), floor
        self.words = [tuple(x.split()) for x in [name, *self.aliases]]


class Floor(Area):
    pass


class Thing:
    __slots__ = ("kind", "name", "aliases", "area", "quantities", "own", "words", "units")

    def __init__(self, kind, name, aliases=(), area=None, quantities=(), own=(), units=None):
        self.kind, self.name, self.aliases, self.area = kind, name, list(aliases), area
        self.quantities, self.own, self.units = list(quantities), list(own), units or {}
        self.words = [tuple(x.split()) for x in [name, *self.aliases]]

    def can(self, quantity):
        return quantity in self.quantities or quantity in IMPLIED.get(self.kind, ())

    def settable(self):
        return [q for q in IMPLIED.get(self.kind, ()) if q not in ("color", "mode")] + [q for q in self.quantities if q in UNITS]


class Site:
    def __init__(self, kind):
        self.kind, self.floors, self.areas, self.things, self.people, self.scenes = kind, [], [], [], [], []

    def everything(self):
        return self.things + self.people + self.scenes


def invented(r):
    return "".join(r.choice(SYLL) for _ in range(r.choice((2, 2, 3))))


NUMBER = "one two three four five six seven eight nine ten eleven twelve".split()


_FILL = {
    "n": lambda r: str(r.randint(1, 9)) if r.random() < 0.8 else r.choice(NUMBER), "N": lambda r: r.choice(NUMBER[:9]), "r": lambda r: str(r.randint(1, 4) * 100 + r.randint(1, 30)),
    "l": lambda r: r.choice("abcdefgh"), "p": lambda r: r.choice(FIRST), "i": lambda r: invented(r) if r.random() < 0.6 else r.choice(COMMON),
}


def fill(r, text):
    """A name from its pattern."""
    while "{" in text:
        a, b = text.index("{"), text.index("}")
        text = text[:a] + _FILL[text[a + 1 : b]](r) + text[b + 1 :]
    return text


def named(r, pattern):
    """(name, aliases); the same number in all of them."""
    parts = pattern.split("=")
    name = fill(r, parts[0])
    aliases = []
    if len(parts) > 1:
        digits = [w for w in name.replace("-", " ").split() if w.isdigit() or w in NUMBER]
        for a in parts[1].split(","):
            if "{n}" in a and digits:
                d = digits[-1]
                a = a.replace("{n}", str(NUMBER.index(d) + 1) if d in NUMBER else d)
            a = fill(r, a)
            if r.random() < 0.6:
                aliases.append(a)
    return name, aliases


def _table(text):
    rows = []
    for line in text.split("\n"):
        kind, names = line.split("|")[:2] if "|" in line else (None, None)
        if kind is None or kind == "scene":
            continue
        kind, _, q = kind.partition(":")
        rows.append((kind, q.split(",") if q else [], names.split(";")))
    return rows


_HOME = _table(HOME_THINGS)
_TABLES = {k: (a.split("|"), _table(t)) for k, (a, t) in KINDS.items()}
_HOME_W = [9 if k == "light" else 3 if k in ("media", "blind", "curtain", "door", "climate", "heating", "switch", "appliance") else 1.5 for k, _, _ in _HOME]
TRAIN_KINDS = [k for k in KINDS if k not in VALID_KINDS]


def _thing_name(r, pattern):
    name, aliases = named(r, pattern)
    roll = r.random()
    if roll < 0.04:
        name = invented(r) + (" " + str(r.randint(1, 20)) if r.random() < 0.3 else "")
    elif roll < 0.07:
        name = r.choice(COMMON)
    elif roll < 0.09:
        name = r.choice(FOREIGN)
    elif roll < 0.12:
        name = "".join(r.choice("abcdefghklmprstvx") for _ in range(r.choice((1, 2, 2, 3)))) + r.choice(("", "-", " ")) + str(r.randint(1, 320))
    elif roll < 0.14:
        name = invented(r) + " " + name
    if roll < 0.14 and r.random() < 0.5:
        aliases = []
    return name, aliases


def _things(r, site, table, n, weights=None):
    used = {t.name for t in site.things}
    for _ in range(n):
        kind, qs, names = r.choices(table, weights)[0] if weights else r.choice(table)
        name, aliases = _thing_name(r, r.choice(names))
        area = r.choice(site.areas) if site.areas and r.random() < 0.85 else None
        if name in used and not (name in BARE and area):
            if area is None or any(t.name == name and t.area is area for t in site.things):
                continue
        if area is not None and kind != "sensor" and r.random() < 0.1 and area.name not in name and not any(t.name == area.name + " " + name for t in site.things):
            name, aliases = area.name + " " + name, []
        used.add(name)
        if kind in ("machine", "pump", "appliance", "heating", "cooling") and r.random() < 0.2:
            qs = r.sample(list(UNITS), r.randint(1, 3))
        elif kind == "sensor" and r.random() < 0.2:
            qs = [r.choice([q for q in QUANTITY_WORDS if q not in ("color", "mode", "position")])]
            name, aliases = r.choice(QUANTITY_WORDS[qs[0]]) + r.choice((" sensor", " meter", " probe", "", " reading")), []
            if name in used:
                continue
            used.add(name)
        qs = [q for q in qs if q in QUANTITIES]
        if qs and kind not in ("sensor",) and r.random() < 0.25:
            qs = qs[: r.randint(1, len(qs))]
        own = r.sample(OWN, r.randint(1, 3)) if kind in ("machine", "pump", "appliance", "switch") and r.random() < 0.12 else []
        site.things.append(Thing(kind, name, aliases, area, qs, own, {q: r.choice(UNITS[q]) for q in qs if q in UNITS}))


def make(r, kinds=None, size=None):
    """A site. kinds: the site kinds to draw from besides homes; None: those of training."""
    kinds = TRAIN_KINDS if kinds is None else kinds
    home = r.random() < (0.55 if kinds is TRAIN_KINDS else 0)
    kind = r.choice(("house", "flat", "villa")) if home else r.choice(kinds)
    s = Site(kind)
    if r.random() < 0.5:
        for f in r.choice(FLOORS)[: r.randint(1, 3)]:
            n, a = named(r, f)
            s.floors.append(Floor(n, a))
    names = HOME_AREAS if home else _TABLES[kind][0]
    n_areas = r.randint(1, min(len(names), 10)) if r.random() < 0.95 else 0
    seen = set()
    for p in r.sample(names, n_areas):
        n, a = named(r, p)
        if r.random() < 0.04:
            n, a = (invented(r) if r.random() < 0.5 else r.choice(COMMON + FOREIGN)), []
        if n in seen:
            continue
        seen.add(n)
        s.areas.append(Area(n, a, r.choice(s.floors) if s.floors and r.random() < 0.8 else None))
    n = size or int(r.triangular(3, 40, 14))
    if home:
        _things(r, s, _HOME, n, _HOME_W)
    else:
        _things(r, s, _TABLES[kind][1], n * 2 // 3)
        _things(r, s, _HOME, n // 3, _HOME_W)
    if r.random() < 0.7:
        for name in {r.choice(FIRST) if r.random() < 0.75 else r.choice(RELATIONS) if r.random() < 0.7 else r.choice(("mr ", "mrs ", "dr ", "")) + r.choice(LAST) for _ in range(r.randint(1, 5))}:
            s.people.append(Thing("person", name, [r.choice(RELATIONS[:10])] if r.random() < 0.15 else []))
    if r.random() < 0.7:
        for p in r.sample(SCENES, r.randint(1, 5)):
            n_, a = named(r, p)
            s.scenes.append(Thing("scene", n_, a, r.choice(s.areas) if s.areas and r.random() < 0.1 else None))
    return s


if __name__ == "__main__":
    import random
    import time
    rr = random.Random(1)
    t0 = time.time()
    for _ in range(1000):
        x = make(rr)
    print("ms per site", time.time() - t0)
    for t in x.everything():
        print(t.kind, t.name, t.aliases, t.area and t.area.name, t.quantities, t.own)
