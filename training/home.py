"""The home and workplace actions: wordings that request them and wordings that report them.

One table serves two models: commands with slot tags for the encoders (command()), and contexts with
replies for the decoder (reply_corpus.py).
"""

import typing

import home_table
import values as v
from grammar import expand

DEVICE_POOLS = {
    "switch": (v.LIGHTS * 2 + v.SWITCHES, 0.10),
    "light": (v.LIGHTS, 0.08),
    "climate": (v.CLIMATE, 0.06),
    "cover": (v.COVERS, 0.06),
    "lock": (v.LOCKS, 0.06),
    "run": (v.RUNNABLE, 0.08),
    "speaker": (v.SPEAKERS, 0.05),
    "any": (v.LIGHTS + v.SWITCHES + v.CLIMATE + v.COVERS + v.LOCKS + v.RUNNABLE, 0.10),
}

# What models/home.json does not contain: commands, clauses that report success, and the verb
# phrase used for everything else ("I could not ...", "Shall I ...").  The slots come from there; kinds says
# which values training draws for them, drawn which it draws and in which order where that is not all in
# the table's order, always which optional ones it always draws.
# {dev} is the device with its room in some wording, {D} the same in a reply; {is} agrees with it.
WORDINGS = {
    "turn_on": dict(
        kinds=dict(device="switch"), drawn=["device", "room"], say=[
            "turn on {dev}", "(switch|put|flip) on {dev}", "turn {dev} on", "(switch|put) {dev} on", "{dev} on",
            "i (need|want) {dev} on", "power up {dev}", "(power|fire) {dev} up", "get {dev} going", "activate {dev}", "enable {dev}",
            "it is (too |)dark in {the_room} turn on {dev_nr}", "let there be light in {the_room}",
            "make sure {dev} is on", "i want {dev} to be on", "start up {dev}", "can i have {dev} on"],
        done=["{D} {is} (now |)on", "I(('ve| have)| just|) turned on {D}", "{D} {has} been (turned|switched) on",
              "I switched {D} on", "{D} {is} switched on(| now)"], will="turn on {D}", state="on"),
    "turn_off": dict(
        kinds=dict(device="switch"), drawn=["device", "room"], say=[
            "turn off {dev}", "(switch|shut) off {dev}", "turn {dev} off", "(switch|shut) {dev} (off|down)", "{dev} off",
            "power down {dev}", "kill {dev}", "cut {dev}", "i (do not|don't) need {dev} (anymore|any more)", "no more {dev}",
            "deactivate {dev}", "disable {dev}", "make sure {dev} is off", "{dev} should be off", "get {dev} off",
            "it is too bright in {the_room} turn off {dev_nr}", "i forgot to turn off {dev}"],
        done=["{D} {is} (now |)off", "I(('ve| have)| just|) turned off {D}", "{D} {has} been (turned|switched) off",
              "I switched {D} off", "{D} {is} switched off(| now)"], will="turn off {D}", state="off"),
    "set_brightness": dict(
        kinds=dict(device="light", value="percent"), say=[
            "(set|dim|change|adjust) {dev} to {value}", "(make|turn) {dev} (brighter|dimmer)( to {value}|)", "(dim|brighten) {dev}",
            "{dev} (to|at) {value}( brightness|)", "brightness (of|for) {dev} (to|at) {value}", "put {dev} at {value}",
            "(raise|lower|turn up|turn down|increase|reduce) the brightness of {dev}( to {value}|)", "dim {dev} down to {value}",
            "i want {dev} at {value}", "{dev} {value}", "it is too bright in {the_room} dim {dev_nr} to {value}"],
        done=["{D} {is} (now |)at {value}", "I set {D} to {value}", "I dimmed {D} to {value}", "{D} {is} set to {value}( brightness|)",
              "brightness of {D} is (now |){value}"], will="set {D} to {value}"),
    "set_color": dict(
        kinds=dict(device="light"), say=[
            "(make|turn|set|change|switch) {dev} {color}", "(set|change|switch) {dev} to {color}", "{color} light in {the_room}",
            "i want {dev} {color}", "(set|change) the color of {dev} to {color}", "give me {color} {dev}", "{dev} in {color}"],
        done=["{D} {is} (now |){color}", "I turned {D} {color}", "I set {D} to {color}", "{D} {has} changed to {color}"],
        will="turn {D} {color}"),
    "set_temperature": dict(
        kinds=dict(device="climate", value="temperature"), say=[
            "set {dev} to {value}", "(turn|put|bring) {dev} (up|down|) to {value}", "{dev} (to|at) {value}", "make it {value} in {the_room}",
            "i want {value} in {the_room}", "(heat|cool|warm) {the_room} to {value}", "(raise|lower|increase|reduce|drop) the temperature (in {the_room} |)to {value}",
            "set the temperature (in {the_room} |)to {value}", "(make|keep) {the_room} at {value}", "change {dev} to {value}", "adjust {dev} to {value}",
            "it is (cold|hot|freezing|too warm) in {the_room} set it to {value}", "get {the_room} to {value}", "temperature {value} in {the_room}"],
        done=["{D} {is} (now |)set to {value}", "I set {D} to {value}", "{D} {is} (now |)at {value}", "I(('ve| have)|) changed {D} to {value}",
              "{D} {is} going to {value}"], will="set {D} to {value}"),
    "open": dict(
        kinds=dict(device="cover", value="percent"), say=[
            "open {dev}", "open up {dev}", "(raise|lift|pull up) {dev}", "open {dev} (to|by) {value}", "get {dev} open", "let some light in open {dev}", "{dev} open", "{dev} up",
            "can i have {dev} open", "i want {dev} open"],
        done=["{D} {is} (now |)open", "I opened {D}", "{D} {has} been opened", "{D} {is} opening"], will="open {D}", state="open",
        done_v=["{D} {is} (now |)open to {value}", "I opened {D} to {value}", "{D} {is} at {value}"]),
    "close": dict(
        kinds=dict(device="cover", value="percent"), say=[
            "close {dev}", "shut {dev}", "(lower|pull down|draw) {dev}", "close {dev} (to|by) {value}", "get {dev} (closed|shut)", "{dev} (closed|shut|down)", "{dev} should be closed",
            "make sure {dev} is (closed|shut)"],
        done=["{D} {is} (now |)closed", "I closed {D}", "{D} {has} been closed", "{D} {is} closing"], will="close {D}", state="closed",
        done_v=["{D} {is} (now |)closed to {value}", "I closed {D} to {value}", "{D} {is} at {value}"]),
    "lock": dict(
        kinds=dict(device="lock"), say=["lock {dev}", "lock up {dev}", "(bolt|secure) {dev}", "make sure {dev} is locked", "{dev} should be locked", "get {dev} locked", "did i lock {dev} if not lock it"],
        done=["{D} {is} (now |)locked", "I locked {D}", "{D} {has} been locked"], will="lock {D}", state="locked"),
    "unlock": dict(
        kinds=dict(device="lock"), say=["unlock {dev}", "unbolt {dev}", "(open the lock of|release|undo the lock on) {dev}", "let {person} in unlock {dev}", "get {dev} unlocked", "i am locked out unlock {dev}"],
        done=["{D} {is} (now |)unlocked", "I unlocked {D}", "{D} {has} been unlocked"], will="unlock {D}", state="unlocked"),
    "start": dict(
        kinds=dict(device="run"), say=[
            "start {dev}", "run {dev}", "(begin|launch|kick off) {dev}", "start {dev} for {duration}", "run {dev} for {duration}", "have {dev} clean {the_room}", "(vacuum|mop|clean|mow) {the_room}",
            "send {dev} to {the_room}", "get {dev} started", "let {dev} run"],
        done=["{D} {is} (now |)running", "I started {D}", "{D} {has} started", "{D} {is} on its way"], will="start {D}", state="running",
        done_d=["{D} {is} (now |)running for {duration}", "I started {D} for {duration}", "{D} will run for {duration}"]),
    "stop": dict(
        kinds=dict(device="run"), say=["stop {dev}", "(pause|halt|abort|end|cancel) {dev}", "make {dev} stop", "tell {dev} to stop", "send {dev} (home|back to its dock|to the dock)", "that is enough stop {dev}"],
        done=["{D} {has} stopped", "I stopped {D}", "{D} {is} (now |)stopped", "{D} {is} no longer running"], will="stop {D}", state="stopped"),
    "set_volume": dict(
        kinds=dict(device="speaker", value="volume"), say=[
            "(set|turn|put|change) the volume (of {dev} |)(to|at) {value}", "volume {value}( on {dev}|)", "(turn|crank) {dev} (up|down)( to {value}|)",
            "(louder|quieter|softer)( please|)", "make {dev} (louder|quieter)", "{dev} volume (to|at) {value}", "(raise|lower) the volume( of {dev}|)( to {value}|)", "i can't hear {dev} turn it up to {value}"],
        done=["(the |)volume of {D} is (now |){value}", "I set the volume of {D} to {value}", "{D} {is} (now |)at volume {value}", "I set {D} to volume {value}"],
        will="set the volume of {D} to {value}"),
    "mute": dict(kinds=dict(device="speaker"), say=["mute {dev}", "silence {dev}", "(unmute|un-mute) {dev}", "turn off the sound (of|on) {dev}", "be quiet {dev}", "no sound on {dev}"],
        done=["{D} {is} (now |)muted", "I muted {D}", "{D} {is} silent( now|)"], will="mute {D}", state="muted"),
    "set_mode": dict(
        kinds=dict(device="any"), say=[
            "(set|switch|put|change) {dev} to {mode}( mode|)", "{dev} (in|on|to) {mode}( mode|)", "use {mode} mode (on|for) {dev}", "turn on {mode} mode (on|for) {dev}", "{mode} mode for {dev}",
            "i want {dev} on {mode}", "enable {mode} mode on {dev}"],
        done=["{D} {is} (now |)in {mode} mode", "I set {D} to {mode}( mode|)", "{D} {has} switched to {mode}( mode|)"], will="set {D} to {mode}"),
    "activate_scene": dict(
        drawn=["scene", "room"], say=[
            "(activate|start|run|set|turn on|launch|play) (the |){scene}( scene|)", "{scene} (scene|mode)( please|)", "(it is|it's|time for) {scene}( time|)", "set the mood for {scene}", "(activate|start|set) (the |){scene} scene in {the_room}",
            "put {the_room} in {scene} mode", "prepare {the_room} for {scene}"],
        done=["(the |){scene} scene is (now |)(active|on|set)", "I(('ve| have)|) started the {scene} scene", "{scene} is set"],
        done_r=["(the |){scene} scene is (now |)(active|on) in {R}", "I(('ve| have)|) started the {scene} scene in {R}", "{R} is set for {scene}"], will="start the {scene} scene"),
    "arm_alarm": dict(say=["(arm|activate|set|turn on|enable) the (alarm|security|burglar alarm|alarm system|security system)", "arm the (alarm|house|system) in {mode} mode", "set the security to {mode}",
            "i am leaving arm the (alarm|house)", "secure the house"],
        done=["the alarm is (now |)armed", "I armed the (alarm|security system)", "the (alarm|security system) is (now |)on"], done_m=["the alarm is (now |)armed in {mode} mode", "I armed the alarm in {mode} mode"], will="arm the alarm"),
    "disarm_alarm": dict(say=["(disarm|deactivate|turn off|disable|switch off) the (alarm|security|burglar alarm|alarm system|security system)", "i am home disarm the (alarm|house)", "alarm off", "take the (alarm|security) down"],
        done=["the alarm is (now |)(disarmed|off)", "I disarmed the (alarm|security system)"], will="disarm the alarm"),
    "set_timer": dict(
        kinds=dict(name="task"), say=[
            "(set|start|make|create) a timer for {duration}", "(set|start) a {duration} timer", "timer (for|of) {duration}", "{duration} timer", "(set|start) a timer for {duration} to {task}", "count down {duration}",
            "wake me in {duration}", "tell me when {duration} (is|are) (up|over)", "time {duration}", "i need a timer for {duration}", "ring in {duration}"],
        done=["(your |a |the |){duration} timer is (running|set)", "(a |the |your |)timer is set for {duration}", "I started a timer for {duration}", "{duration}, (starting now|counting down)"],
        done_n=["(a |the |your |)timer to {task} is set for {duration}", "I started a timer for {duration} to {task}", "I'll tell you to {task} in {duration}"], will="set a timer for {duration}"),
    "cancel_timer": dict(say=["(cancel|stop|delete|remove|clear|end) (the|my) timer", "(cancel|stop|delete) (the|my) {duration} timer", "forget the timer", "no more timer", "turn the timer off"],
        done=["(the|your) timer is (canceled|cancelled|off|cleared)", "I (canceled|stopped|deleted) (the|your) timer"], done_n=["(the|your) {duration} timer is (canceled|off)", "I (canceled|stopped) the {duration} timer"], will="cancel the timer"),
    "query_timer": dict(say=["how (long|much time) is left( on (the|my) timer|)", "how much longer( on (the|my) timer|)", "(check|show) (the|my) timer", "when does (the|my) timer (end|ring|go off)", "how many minutes (are |)left on (the|my) timer"], done=[], will="check the timer"),
    "set_alarm": dict(
        say=[
            "(set|make|create|put) an alarm (for|at) {time}", "wake me( up|) at {time}", "(set|make) an alarm (for|at) {time} {on_date}", "wake me( up|) {on_date} at {time}", "alarm (at|for) {time}( {on_date}|)", "i (need|have) to (get up|wake up) at {time}( {on_date}|)", "(set|put) my alarm clock to {time}", "get me up at {time}( {on_date}|)"],
        done=["(your |the |)alarm is set for {time}", "I(('ll| will)) wake you at {time}", "I set an alarm for {time}"],
        done_t=["(your |the |)alarm is set for {time} {ON_DATE}", "I(('ll| will)) wake you {ON_DATE} at {time}", "I set an alarm for {time} {ON_DATE}"], will="set an alarm for {time}"),
    "cancel_alarm": dict(say=["(cancel|delete|remove|stop|turn off) (my|the) (alarm clock|wake up alarm|{time} alarm|alarm (at|for) {time})", "(don't|do not) wake me( up|)( at {time}|)", "no alarm( at {time}|) please", "snooze( the alarm|)"],
        done=["(your|the) alarm is (canceled|off)", "I (canceled|deleted) (your|the) alarm"], done_x=["(your|the) {time} alarm is (canceled|off)", "I (canceled|deleted) (your|the) alarm for {time}"], will="cancel the alarm"),
    "set_reminder": dict(
        say=[
            "remind me to {task}", "remind me to {task} at {time}", "remind me {on_date} to {task}", "remind me to {task} {on_date}( at {time}|)", "(set|create|make|add) a reminder to {task}( {on_date}|)( at {time}|)", "(don't|do not) let me forget to {task}( {on_date}|)", "at {time} remind me to {task}",
            "i need to {task} {on_date} remind me", "put {task} on my reminders"],
        done=["I(('ll| will)) remind you to {task}", "(a |your |the |)reminder to {task} is set", "I added a reminder to {task}"],
        done_x=["I(('ll| will)) remind you to {task} {WHEN}", "(a |your |the |)reminder to {task} is set {FOR_WHEN}", "I added a reminder {WHEN} to {task}"], will="remind you to {task}"),
    "add_to_list": dict(
        say=[
            "(add|put) {item} (to|on) (my|the) {list} list", "(add|put) {item} (to|on) (my|the) list", "we (need|are out of) {item}", "i need to buy {item}", "{item} on the {list} list", "note {item} on the {list} list", "write {item} on my {list} list", "buy {item}", "we are running low on {item}"],
        done=["{item} is (now |)on (your|the) {list} list", "I added {item} to (your|the) {list} list", "I put {item} on (your|the) {list} list"], will="add {item} to the {list} list"),
    "remove_from_list": dict(say=["(remove|delete|take|cross|strike) {item} (from|off) (my|the) {list} list", "i (got|bought|have) {item} take it off the {list} list", "scratch {item} from my {list} list", "{item} is done on the {list} list", "no {item} on the {list} list"],
        done=["{item} is off (your|the) {list} list", "I removed {item} from (your|the) {list} list", "I took {item} off (your|the) {list} list"], will="remove {item} from the {list} list"),
    "query_list": dict(say=["what is on (my|the) {list} list", "(read|show|tell) me (my|the) {list} list", "what do i (need|have) on (my|the) {list} list", "is there anything on (my|the) {list} list", "open my {list} list"], done=[], will="read the {list} list"),
    "play_media": dict(
        drawn=["media", "artist", "room"], say=[
            "play {media}", "play {media} by {artist}", "(put on|start|stream) {media}", "(play|put on) {media} in {the_room}", "play {media} by {artist} in {the_room}", "i (want|would like) to (hear|listen to|watch) {media}", "let me hear {media}( by {artist}|)", "can we (hear|have) {media}", "listen to {artist}", "play something by {artist}", "play {artist}", "some {artist} in {the_room}"],
        done=["(now |)playing {media}", "I(('m| am)) playing {media}", "here is {media}", "{media} is (now |)playing"],
        done_a=["(now |)playing {media} by {artist}", "here is {media} by {artist}", "I(('m| am)) playing {media} by {artist}"],
        done_r=["(now |)playing {media} in {R}", "I(('m| am)) playing {media} in {R}", "{media} is (now |)playing in {R}"],
        done_ar=["(now |)playing {media} by {artist} in {R}", "I(('m| am)) playing {media} by {artist} in {R}"], will="play {media}"),
    "pause_media": dict(say=["(pause|stop) (the |)(music|song|playback|video|movie|podcast|radio)( in {the_room}|)", "(pause|stop) (playing|it)", "hold the music", "(freeze|pause) the (film|show)", "stop the music in {the_room}", "(resume|continue)( the (music|song|playback|video|movie|podcast)|)( in {the_room}|)"],
        done=["playback is (now |)paused", "I paused the music", "the music is (now |)paused"], done_r=["I paused the music in {R}", "playback in {R} is (now |)paused"], will="pause the music"),
    "next_track": dict(say=["(next|skip)( song| track| one| episode|)( please|)", "skip (this|that|the)( song| track|)", "(play|go to) the next (song|track|episode)", "i don't like this song( skip it|)", "(previous|last) (song|track)", "go back (one|a) (song|track)", "play that (again|song again)", "repeat this (song|track)"], done=["skipping to the next (track|song)", "here is the next (track|song)"], will="skip the track"),
    "get_state": dict(
        kinds=dict(device="any"), say=[
            "(is|are) {dev} (on|off|open|closed|locked|unlocked|running)", "(is|are) {dev} (still |)(on|off|open|closed|locked|running)", "what is the (state|status) of {dev}", "did i (close|lock|turn off|leave on|shut) {dev}", "(check|tell me|see) if {dev} is (on|off|open|closed|locked)", "check {dev}", "how is {dev} doing", "is {dev} done", "did (anyone|someone) leave {dev} (on|open)", "status of {dev}"],
        done=[], will="check {D}"),
    "get_sensor": dict(
        say=[
            "what is the {sensor} in {the_room}", "how (warm|cold|hot|humid|bright|loud) is it in {the_room}", "what is the {sensor}", "(tell me|check|give me|read|show) the {sensor}( in {the_room}|)", "how high is the {sensor}( in {the_room}|)", "{sensor} in {the_room}", "what does the {sensor} sensor (say|read|show)", "how much (power|energy|water) are we using", "is the air (good|bad) in {the_room}"],
        done=[], will="read the {sensor}"),
    "machine_status": dict(
        say=["(what is|what's|give me|show|check) the (status|state|health) of {machine}", "how is {machine} (doing|running|feeling)", "is {machine} (ok|okay|running|down|up|fine|healthy)", "status {machine}", "report on {machine}", "any (problems|issues|faults|alarms) (with|on) {machine}", "when was {machine} last serviced", "is anything wrong with {machine}"], done=[], will="check {machine}"),
    "start_machine": dict(say=["(start|run|restart|boot|power up) {machine}", "bring {machine} (up|online|back online)", "put {machine} (in service|into operation)", "switch {machine} on", "get {machine} running( again|)"],
        done=["{machine} is (now |)running", "I started {machine}", "{machine} has started"], will="start {machine}"),
    "stop_machine": dict(say=["(stop|halt|shut down|power down) {machine}", "take {machine} (down|offline|out of service)", "emergency stop( on|) {machine}", "switch {machine} off", "{machine} must stop( now|)"],
        done=["{machine} is (now |)stopped", "I stopped {machine}", "{machine} has been shut down"], will="stop {machine}"),
    "set_machine": dict(kinds=dict(value="sensor"), always=["sensor"], say=["set the {sensor} of {machine} to {value}", "(raise|lower|bring|change|adjust) the {sensor} (of|on) {machine} to {value}", "run {machine} at {value}", "{machine} {sensor} to {value}", "limit the {sensor} of {machine} to {value}"],
        done=["the {sensor} of {machine} is (now |)set to {value}", "I set the {sensor} of {machine} to {value}", "{machine} now runs at a {sensor} of {value}"], will="set the {sensor} of {machine} to {value}"),
    "explain_alarm": dict(say=["why (is|did) the alarm (ringing|go off|on)", "what (caused|triggered|is) the (alarm|alert|warning)( on {machine}|)", "why is {machine} (beeping|in alarm|red|vibrating|so loud|so hot)", "what is wrong with {machine}", "explain the (alarm|alert|anomaly|warning)( on {machine}|)", "what happened (to|with) {machine}", "what does the warning on {machine} mean", "any anomalies( today| on {machine}|)", "did you (see|find|detect) anything (strange|unusual|odd)( on {machine}| today|)"], done=[], will="explain the alarm"),
    "report_fault": dict(say=["{machine} is (broken|leaking|making a noise|stuck|not working|overheating|jammed)", "report a (fault|problem|defect|leak) (on|with|at) {machine}", "there is a (problem|leak|fault|strange noise) (with|at|on) {machine}", "(open|create|file) a ticket for {machine}", "something is wrong with {machine} call maintenance", "{machine} needs (service|maintenance|repair)"],
        done=["I (reported|filed) the fault on {machine}", "a ticket for {machine} is open", "maintenance has been told about {machine}"], will="report the fault on {machine}"),
    "get_weather": dict(say=[
            "what is the weather( like|)( {on_date}|)", "(how is|what's) the weather in {place}( {on_date}|)", "(will|is) it (going to |)(rain|snow|be sunny|be cold|freeze|be windy)( {on_date}|)( in {place}|)", "do i need (an umbrella|a coat|sunscreen|a jacket)( {on_date}|)", "(weather|forecast)( for| in|) {place}( {on_date}|)", "give me the (weather|forecast)( for {place}|)( {on_date}|)", "how (hot|cold|warm|windy) (is it|will it be)( outside|)( {on_date}|)( in {place}|)", "is it raining( in {place}|)"], done=[], will="get the weather"),
    "get_time": dict(say=["what time is it", "what is the time", "what time is it in {place}", "(tell|give) me the time( in {place}|)", "(current|local) time( in {place}|)", "how late is it", "do you have the time", "what's the time over in {place}", "time please"], done=[], will="tell the time"),
    "get_date": dict(say=["what (day|date) is (it|today)", "what is today's date", "which day (of the week |)is (it|today)", "(tell|give) me the date", "what's the date( today|)", "is (it|today) (monday|friday|sunday)"], done=[], will="tell the date"),
    "query_calendar": dict(say=["what is on my (calendar|schedule|agenda)( {on_date}|)", "do i have (anything|any meetings|any appointments|plans)( {on_date}|)", "what (do i have|am i doing)( {on_date}|)", "(show|read|check) my (calendar|agenda|schedule)( for {date}|)", "when is my next (meeting|appointment)", "am i (free|busy) {on_date}", "what is next"], done=[], will="read the calendar"),
    "add_event": dict(
        say=["(add|put|schedule|create|book) (a |the |){event} {on_date}( at {time}|)", "(add|put) {event} (to|on|in) my calendar {on_date}( at {time}|)", "i have (a |){event} {on_date}( at {time}|)", "schedule {event} for {date}( at {time}|)", "new (event|appointment) {event} {on_date}( at {time}|)", "mark {date} for {event}"],
        done=["{event} is (in your calendar|booked|scheduled) {FOR_WHEN}", "I added {event} {WHEN}", "I put {event} in your calendar {FOR_WHEN}"], will="add {event} to your calendar"),
    "send_message": dict(
        say=["(text|message|tell) {person} {message}", "(send|write) a (message|text) to {person} saying {message}", "send {person} a (message|text) {message}", "(tell|let) {person} (know |)that {message}", "message to {person} {message}", "write {person} that {message}"],
        done=["I told {person}: {message}", "(the |your |)message to {person} (is|has been) sent: {message}", "I sent {person}: {message}"], will="message {person}: {message}"),
    "call": dict(say=["(call|phone|ring|dial) {person}", "(call|phone|ring) {person} (please|now|on speaker)", "(make|place|start) a call (to|with) {person}", "get {person} on the (phone|line)", "i (want|need) to (talk|speak) (to|with) {person}", "video call {person}"],
        done=["calling {person}( now|)", "I(('m| am)) calling {person}( now|)", "ringing {person}"], will="call {person}"),
    "announce": dict(drawn=["message", "room"], say=["(announce|broadcast)( that|) {message}", "(say|announce) {message} (in|on the speaker in) {the_room}", "tell everyone( that|) {message}", "make an announcement {message}", "let the (family|house|team) know( that|) {message}"],
        done=["I announced: {message}", "everyone has heard: {message}", "announced: {message}"], done_r=["I announced in {R}: {message}", "announced in {R}: {message}"], will="announce: {message}"),
    "find": dict(kinds=dict(item="findable"), say=["(find|locate|ring) my {item}", "where (is|are|did i leave) my {item}", "i (lost|can't find|misplaced) my {item}", "(help me|can you) find my {item}", "have you seen my {item}"],
        done=["I(('m| am)) ringing your {item}( now|)", "your {item} {is_item} ringing( now|)"], will="find your {item}"),
    "calculate": dict(say=["what is {expr}", "(calculate|compute|work out) {expr}", "how much is {expr}", "{expr} (is what|equals)", "what do you get for {expr}"], done=[], will="work that out"),
}
# Sentences that are not an action of the table.
SMALL_TALK = {
    "help": dict(say=["what can you do", "help( me|)", "how does this work", "what (commands|things) (do you know|can i say|can i ask)", "what are your (functions|abilities|features)", "i need help", "show me what you can do", "give me some examples"], done=[], will="help"),
    "greet": dict(say=["(hello|hi|hey|good morning|good evening|good afternoon|howdy|hi there|hey there|hello there|good day)", "how are you( doing| today|)", "what's up", "nice to (meet|see) you", "(hi|hello) how is it going", "i am (home|back)", "(good morning|hello) shoal"], done=[], will="say hello"),
    "thanks": dict(say=["(thanks|thank you|thank you very much|thanks a lot|cheers|many thanks|great thanks|perfect thank you)", "(that was|you are) (great|helpful|awesome|nice|very kind)", "i appreciate (it|your help|that)", "well done", "good job", "nice work"], done=[], will="say thanks"),
    "goodbye": dict(say=["(bye|goodbye|see you|see you later|good night|bye bye|talk to you later|have a nice day|farewell|until tomorrow|catch you later|i am off|that is all( for now|))"], done=[], will="say goodbye"),
    "yes": dict(say=["(yes|yeah|yep|sure|ok|okay|of course|please do|go ahead|do it|correct|that is right|right|exactly|absolutely|yes please|affirmative|sounds good|confirm|confirmed|i do|indeed|fine)"], done=[], will="go on"),
    "no": dict(say=["(no|nope|nah|no thanks|no thank you|not now|do not|don't|don't do that|negative|absolutely not|wrong|that is wrong|not really|please don't|i don't think so|no way|never)"], done=[], will="stop"),
    "cancel": dict(say=["(cancel|cancel that|never mind|nevermind|forget it|forget that|stop|stop that|abort|undo|undo that|drop it|leave it|scratch that|ignore that|that was a mistake|go back|cancel everything)"], done=["(canceled|cancelled)", "I stopped that", "all right, nothing is changed"], will="cancel that"),
    "repeat": dict(say=["(repeat|say) that( again|)( please|)", "(what|pardon|sorry)( did you say|)", "come again", "once more( please|)", "i (didn't|did not) (hear|catch|understand) (that|you)", "can you repeat( that|)", "say again"], done=[], will="repeat that"),
}


class Slot(typing.NamedTuple):
    name: str
    kind: str  # which values training draws for it
    optional: bool


def slots_of(name, words):
    """The slots of an action, as models/home.json has them."""
    table = home_table.ACTIONS[name]
    always = table.get("needs", []) + words.get("always", [])
    kinds, drawn = words.get("kinds", {}), words.get("drawn", table["slots"])
    for s in [*kinds, *drawn, *always]:
        if s not in table["slots"]:
            raise ValueError(f"{name} has no slot {s} in models/home.json")
    return [Slot(s, kinds.get(s, ""), s not in always) for s in drawn]


ACTIONS = {a: dict(x, slots=slots_of(a, x)) for a, x in WORDINGS.items() if a in home_table.ACTIONS} | {a: dict(x, slots=[]) for a, x in SMALL_TALK.items()}
OOS = "oos"
LABELS = sorted(ACTIONS) + [OOS]
PII = ["person", "email", "phone", "card_number", "iban", "ip_address", "ssn", "address", "license_plate", "password", "url"]
TAGS = sorted(set(home_table.SLOTS) - {"name"} | set(PII))  # a timer is named after an item, a task, ...
FINDABLE = "phone|keys|wallet|glasses|tablet|headphones|bag|watch|laptop|car keys|earbuds|umbrella|remote|charger|passport".split("|")


def fill_slot(name, kind, rng):
    """One display value of a slot."""
    if name == "device":
        pool, p = DEVICE_POOLS[kind or "any"]
        return v.mostly(rng, pool, p)
    if name == "room":
        return v.room(rng)
    if name == "value":
        if kind == "percent":
            return v.percent(rng) if rng.random() < 0.92 else rng.choice(["half", "maximum", "minimum", "full"])
        if kind == "temperature":
            return v.temperature(rng)
        if kind == "volume":
            return rng.choice([str(rng.randint(1, 20)), v.percent(rng), rng.choice(["half", "maximum", "low", "medium"])])
        s = rng.choice(list(v.SENSORS))
        u = v.SENSORS[s]
        return v.unit_value(rng, *u)
    if name == "item":
        return rng.choice(FINDABLE) if kind == "findable" else v.mostly(rng, v.ITEMS, 0.12)
    if name == "expr":
        a, b = rng.randint(1, 999), rng.randint(1, 99)
        return rng.choice([f"{a} plus {b}", f"{a} times {b}", f"{a} minus {b}", f"{a} divided by {b}", f"{b} percent of {a}", f"{a} + {b}", f"{a} * {b}", f"the square root of {a}"])
    pools = {"color": (v.COLORS, 0.03), "scene": (v.SCENES, 0.12), "mode": (v.MODES, 0.05), "list": (v.LISTS, 0.08), "media": (v.MEDIA, 0.35),
             "artist": (v.ARTISTS, 0.35), "event": (v.EVENTS, 0.12), "task": (v.TASKS, 0.06), "message": (v.MESSAGES, 0.08)}
    if name in pools:
        return v.mostly(rng, *pools[name], n_max=3)
    return {"duration": v.duration, "time": v.time_phrase, "date": v.date_phrase, "person": v.person, "place": v.place, "machine": v.machine,
            "sensor": lambda r: r.choice(list(v.SENSORS))}[name](rng)


def draw_slots(action, rng, p_optional=0.5):
    """The slots of one action as {slot: value}, optional ones by chance."""
    out = {}
    for name, kind, optional in ACTIONS[action]["slots"]:
        if optional and rng.random() > p_optional:
            continue
        if name == "name":  # a timer's purpose: a task or a duration
            name = kind
        out[name] = fill_slot(name, kind, rng)
    return out


# ------------------------------------------------------------------ commands with tags

PREFIX = ["", "", "", "", "", "", "please ", "can you ", "could you ", "would you ", "hey shoal ", "shoal ", "okay shoal ", "i want you to ",
          "can you please ", "could you please ", "hey ", "i need you to ", "i'd like you to ", "now ", "just ", "go ahead and ", "quickly ", "hi could you "]
SUFFIX = ["", "", "", "", "", "", " please", " now", " for me", " right away", " thanks", " would you", " if you can", " right now", " thank you", " immediately"]
IMPERATIVE = {"turn_on", "turn_off", "set_brightness", "set_color", "set_temperature", "open", "close", "lock", "unlock", "start", "stop", "set_volume", "mute",
              "set_mode", "activate_scene", "arm_alarm", "disarm_alarm", "set_timer", "cancel_timer", "set_alarm", "cancel_alarm", "set_reminder", "add_to_list",
              "remove_from_list", "play_media", "pause_media", "start_machine", "stop_machine", "set_machine", "send_message", "call", "announce", "find", "calculate", "add_event"}


def article(rng, noun):
    low = noun.lower()
    if low in v.NO_ARTICLE or low.split()[0].endswith("'s") or low.split()[0] in ("the", "my", "all", "some", "a", "an", "our"):
        return ""
    return rng.choice(["the ", "the ", "the ", "my ", "our ", ""])


def room_pieces(rng, slots):
    r = slots.setdefault("room", v.room(rng))
    a = "" if r in v.NO_ARTICLE or any(c.isdigit() for c in r) or "'s" in r else rng.choice(["the ", "the ", "the ", "my ", "our ", ""])
    return [(a, None), (r, "room")]


def device_pieces(rng, slots, with_room=True):
    pool = ACTIONS_POOL.get(slots.get("_action"), "any")
    d = slots.setdefault("device", fill_slot("device", pool, rng))
    a = article(rng, d)
    if "room" in slots and with_room:
        r = slots["room"]
        k = rng.random()
        if k < 0.5:
            return [(article(rng, r), None), (r, "room"), (" ", None), (d, "device")]
        ra = "" if r in v.NO_ARTICLE else rng.choice(["the ", "the ", "my ", ""])
        return [(a, None), (d, "device"), (rng.choice([" in ", " in ", " in ", " of ", " from ", " at "]) if ra or r not in v.NO_ARTICLE else " ", None), (ra, None), (r, "room")]
    return [(a or rng.choice(["", "", "all ", "every ", "both "]), None), (d, "device")]


def _pool_of(action):
    return next((s.kind for s in ACTIONS[action]["slots"] if s.name == "device"), "any")


ACTIONS_POOL = {a: _pool_of(a) for a in ACTIONS}


def command(rng, action=None, plain=False):
    """One spoken or typed command: (text, action, [(start, end, tag)]); plain: without "please" and the like."""
    action = action or rng.choice(list(ACTIONS))
    spec = ACTIONS[action]
    slots = draw_slots(action, rng)
    slots["_action"] = action
    kinds = {s.name: s.kind for s in spec["slots"]}

    def fill(name):
        if name == "dev":
            return device_pieces(rng, slots)
        if name == "dev_nr":
            return device_pieces(rng, slots, False)
        if name == "the_room":
            return room_pieces(rng, slots)
        if name == "on_date":
            d = slots.setdefault("date", v.date_phrase(rng))
            return [("on " if d[0].isupper() or d[0].isdigit() else "", None), (d, "date")]
        if name not in slots:
            slots[name] = fill_slot(name, kinds.get(name, ""), rng)
        return [(slots[name], name)]

    pieces = expand(rng.choice(spec["say"]), rng, fill)
    if plain:
        pass
    elif action in IMPERATIVE:
        pieces = [(rng.choice(PREFIX), None)] + pieces + [(rng.choice(SUFFIX), None)]
    elif rng.random() < 0.2:
        pieces = [(rng.choice(["hey shoal ", "shoal ", "hey ", "okay shoal ", "please tell me ", "so ", "well "]), None)] + pieces
    return pieces_to_text(pieces) + (action,)


def two_commands(rng):
    """Two commands in one sentence; the label is the first one's."""
    a = rng.choice(sorted(IMPERATIVE))
    b = rng.choice(sorted(IMPERATIVE))
    t1, s1, _ = command(rng, a)
    t2, s2, _ = command(rng, b)
    joint = rng.choice([" and ", " and ", " and then ", " then ", ", ", " and also "])
    off = len(t1) + len(joint)
    return t1 + joint + t2, s1 + [(x + off, y + off, t) for x, y, t in s2], a


def pieces_to_text(pieces):
    text, spans = "", []
    for s, tag in pieces:
        if not s:
            continue
        if text.endswith(" ") or not text:
            s = s.lstrip(" ")
        if tag and s:
            spans.append((len(text), len(text) + len(s), tag))
        text += s
    stripped = text.rstrip(" ")
    return stripped, spans


PII_SAY = [
    "my email is {email}", "send it to {email}", "you can reach me at {phone}", "my (phone |)number is {phone}", "call {person} (on|at) {phone}", "my card number is {card_number}",
    "please charge {card_number}", "(my |the |)iban is {iban}", "transfer {money} to {iban}", "the server is at {ip_address}", "ping {ip_address}", "my social security number is {ssn}",
    "ssn {ssn}", "i live at {address}", "deliver it to {address}", "(ship|send) the parcel to {person} {address}", "my (license |number |)plate is {license_plate}", "the car with plate {license_plate} is blocking the gate",
    "(my |the |)password is {password}", "the wifi password is {password}", "use pin {password} to unlock", "my name is {person}", "this is {person} speaking", "write to {person} at {email}",
    "{person} lives at {address}", "contact {person} {phone} or {email}", "(go to|open|see) {url}", "the manual is at {url}", "log in at {url} with {email} and {password}",
    "{person}, {address}, {phone}", "patient {person} ssn {ssn}", "from {email} to {email}", "user {email} connected from {ip_address}", "invoice for {person}, iban {iban}, amount {money}",
    "hi i am {person} and my number is {phone}", "the door code is {password}", "block {ip_address} (and|then) notify {email}", "my credit card {card_number} was declined",
    "the order of {person} goes to {address}", "please update my address to {address}", "i (saw|met) {person} (yesterday|today) in {place}", "forward this to {person} ({email})"]


def pii(rng):
    gen = {"email": v.email, "phone": v.phone, "card_number": v.card, "iban": v.iban, "ip_address": v.ip, "ssn": v.ssn, "address": v.address,
           "license_plate": v.plate, "password": v.secret, "url": v.url, "money": v.money, "place": v.place,
           "person": lambda r: r.choice(v.PEOPLE[:56]) + (" " + r.choice(v.LAST) if r.random() < 0.7 else "")}

    def fill(name):
        return [(gen[name](rng), None if name == "money" else name)]

    t = rng.choice(PII_SAY)
    return pieces_to_text(expand(t, rng, fill)) + (OOS,)
