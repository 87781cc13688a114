"""Sentences for plans over a site, by grammar templates. Each family draws a plan and words for it.

A clause is what one command says: parts of text with tags for the spans that the plan copies, and the plan, whose things
and areas are objects until build.py has chosen the lines of the input.
"""

import words as W
from plans import Span
from sites import BARE, CLASS_WORDS, COMMON, COVERS, LOCKS, OPENS, OWN, POWER, QUANTITY_WORDS, RUNS, UNITS, Area, Floor, fill as fill_name, invented
from template import expand, held_out

RULES = {
    "pl": "[please]", "turn": "(turn|switch)", "the": "(the|my|our)", "set": "(set|put|change|adjust|bring)", "want": "(i want|i'd like|i need|we need|let's have|let me have|can i have|give me)",
    "raise": "(raise|increase|turn up|bump up|crank up|bring up|push up|boost)", "lower": "(lower|reduce|decrease|turn down|drop|bring down|cut)",
    "start": "(start|run|launch|begin|kick off|fire up|get going|set off)", "is": "(is|are)", "whatis": "(what's|what is|whats|tell me|give me|show me|check|do you know|can you tell me|i want to know|i'd like to know)",
    "now": "[(now|right now|immediately|at once|straight away|quickly)]", "list": "[shopping|to do] list", "which": "(which|what)", "bit": "(a bit|a little|a little bit|slightly|a tad|a touch|somewhat|a notch|just a bit)",
    "lot": "(a lot|much|way|considerably|loads)",
}

T = {
    "on": ["<turn> on {x}", "<turn> {x} on", "{x} on", "{x} on <pl>", "put {x} on", "put on {x}", "activate {x}", "enable {x}", "power up {x}", "power on {x}", "<want> {x} on", "<want> {x} <turn>ed on", "get {x} on",
           "make sure {x} (is|are) on", "let {x} be on", "flip {x} on", "flick on {x}", "have {x} on", "{x} please", "{x} to on", "change {x} to on", "can we have {x} on", "get me {x} on", "stick {x} on", "pop {x} on", "{x} should go on now", "{x} should be on", "{x} ought to be on now", "see that {x} (is|are) on", "{x} on again", "throw on {x}", "light {x}"],
    "off": ["<turn> off {x}", "<turn> {x} off", "{x} off", "{x} off <pl>", "put {x} off", "deactivate {x}", "disable {x}", "power down {x}", "power off {x}", "shut off {x}", "shut {x} off", "kill {x}", "kill {x} <now>", "<want> {x} off", "<want> {x} <turn>ed off",
            "get {x} off", "make sure {x} (is|are) off", "flip {x} off", "flick off {x}", "{x} can go off now", "shut {x} down", "shut down {x}", "have {x} off", "turn {x} of", "{x} to off", "change {x} to off", "i'm done with {x}, turn it off", "we don't need {x} anymore, switch it off", "i don't need {x} on", "stop wasting power, {x} off", "{x} should be off", "{x} should go off now", "see that {x} (is|are) off", "{x} off again", "{x} out", "douse {x}", "i want {x} to be off", "no need for {x} now, switch it off"],
    "lights_on": ["light up {place}", "illuminate {place}", "lights on {in}", "lights (in|on) {place}", "<turn> on the lights {in}", "let there be light {in}", "it's too dark {in}", "i need some light {in}", "some light {in} please", "give me light {in}", "make light {in}", "brighten up {place} with some light", "hit the lights {in}", "(get|put) the lights {in} on"],
    "lights_off": ["lights (off|out) {in}", "lights (in|on) {place} off", "<turn> (off|out) the lights {in}", "put out the lights {in}", "kill the lights {in}", "make it dark {in}", "darken {place}", "black out {place}", "no more light {in} please", "plunge {place} into darkness"],
    "toggle": ["toggle {x}", "flip the state of {x}", "toggle {x} <pl>", "toggle the state of {x}", "do a toggle on {x}", "invert {x}"],
    "open": ["open {x}", "open up {x}", "raise {x}", "lift {x}", "{x} open", "(get|have) {x} open", "<want> {x} open", "let {x} up", "pull {x} up", "{x} up", "pop {x} open", "let's open {x}", "roll up {x}", "draw back {x}", "draw {x} back", "put {x} up", "wind {x} up", "let some light in, open {x}"],
    "open_plain": ["open {x}", "open up {x}", "{x} open", "(get|have) {x} open", "<want> {x} open", "let's open {x}", "pop open {x}", "get {x} opened"],
    "close": ["close {x}", "shut {x}", "lower {x}", "{x} closed", "{x} shut", "close {x} up", "<want> {x} closed", "let {x} down", "pull {x} down", "{x} down", "roll {x} down", "make sure {x} (is|are) closed", "draw {x}"],
    "close_plain": ["close {x}", "shut {x}", "{x} closed", "{x} shut", "<want> {x} closed", "make sure {x} (is|are) (closed|shut)", "get {x} closed", "slam {x} shut", "close up {x}"],
    "lock": ["lock {x}", "lock up {x}", "{x} locked please", "make sure {x} (is|are) locked", "<want> {x} locked", "secure {x}", "bolt {x}", "get {x} locked", "latch {x}"],
    "unlock": ["unlock {x}", "{x} unlocked please", "<want> {x} unlocked", "unbolt {x}", "unlatch {x}", "get {x} unlatched", "get {x} unlocked", "unlatch {x} <now>", "unlock {x} for me", "undo the lock on {x}", "release the lock of {x}", "undo the lock of {x}", "open the lock of {x}", "take the lock off {x}"],
    "set": ["set {x} to {v}", "<set> {x} to {v}", "{x} to {v}", "{x} at {v}", "make {x} {v}", "<want> {x} at {v}", "get {x} (to|up to|down to) {v}", "take {x} to {v}", "turn {x} (up|down) to {v}", "turn {x} to {v}", "(raise|lower|increase|reduce|drop) {x} to {v}", "{x} {v}", "put {x} on {v}", "bring {x} to {v}", "i'd like {x} to be {v}", "let's have {x} at {v}", "run {x} at {v}", "i want {v} on {x}", "leave {x} at {v}", "keep {x} at {v}"],
    "set_q": ["set [the] {q} of {x} to {v}", "set {x} {q} to {v}", "<set> [the] {q} (on|of|in|for) {x} to {v}", "{x} {q} {v}", "{x} {q} to {v}", "{q} of {x} to {v}", "<raise> [the] {q} (on|of) {x} to {v}", "<lower> [the] {q} (on|of) {x} to {v}", "make the {q} of {x} {v}", "i want the {q} (of|on) {x} at {v}", "on {x} set the {q} to {v}", "get the {q} (of|on) {x} (up|down) to {v}", "{v} {q} (on|for) {x}", "adjust {x} to a {q} of {v}", "change {x}'s {q} to {v}", "<set> {x} to {v} {q}", "for {x} i want a {q} of {v}"],
    "set_light": ["dim {x} to {v}", "brighten {x} to {v}", "{x} {v}", "turn {x} (down|up) to {v}", "set {x} to {v} brightness", "{v} brightness (on|in) {x}", "dim {x} down to {v}"],
    "set_cover": ["open {x} to {v}", "close {x} to {v}", "open {x} {v}", "open {x} just {v}", "{x} {v} up", "get {x} {v} open", "raise {x} to {v}", "lower {x} to {v}", "move {x} to {v}", "{x} {v} open", "close {x} {v}", "put {x} at {v}"],
    "set_color": ["set {x} to {v}", "make {x} {v}", "turn {x} {v}", "change {x} to {v}", "{x} {v}", "change the (color|colour) of {x} to {v}", "set the (color|colour) of {x} to {v}", "<want> {x} in {v}", "color {x} {v}", "{x} in {v} please", "paint {x} {v}", "give {x} a {v} (color|colour|tint)", "i want {v} light from {x}", "i'd like {x} to be {v}"],
    "set_mode": ["set {x} to {v} mode", "put {x} (in|into|on) {v} mode", "switch {x} to {v} mode", "{x} {v} mode", "change {x} to {v} mode", "set the mode of {x} to {v}", "run {x} in {v} mode", "use {v} mode on {x}", "<want> {x} in {v} mode"],
    "up": ["<raise> {x}", "turn {x} up", "{x} up", "crank {x} up", "<raise> {x} by {v}", "turn {x} up by {v}", "turn up {x} {amount}", "{x} up {amount}", "turn {x} up {amount}", "<raise> {x} {amount}", "{x} up by {v}", "{v} more on {x}", "{v} more for {x}", "{x} {v} more", "{v} higher on {x}", "<want> {x} higher", "<raise> {x} (another|an extra) {v}"],
    "down": ["<lower> {x}", "turn {x} down", "{x} down", "<lower> {x} by {v}", "turn {x} down by {v}", "turn down {x} {amount}", "{x} down {amount}", "turn {x} down {amount}", "<lower> {x} {amount}", "{x} down by {v}", "{v} less on {x}", "{v} less for {x}", "{x} {v} less", "{v} lower on {x}", "take {x} down by {v}", "bring {x} down {amount}", "ease off {x} {amount}"],
    "up_q": ["<raise> [the] {q} (of|on|in) {x}", "<raise> [the] {q} (of|on|in) {x} by {v}", "<raise> [the] {q} (of|on) {x} {amount}", "{x} {q} up", "more {q} on {x}", "turn [the] {q} (of|on) {x} up {amount}", "turn up the {q} of {x} by {v}", "increase {x} {q} by {v}", "add {v} to the {q} of {x}", "give {x} {v} more {q}"],
    "down_q": ["<lower> [the] {q} (of|on|in) {x}", "<lower> [the] {q} (of|on|in) {x} by {v}", "<lower> [the] {q} (of|on) {x} {amount}", "{x} {q} down", "less {q} on {x}", "turn [the] {q} (of|on) {x} down {amount}", "decrease {x} {q} by {v}", "take {v} off the {q} of {x}", "cut the {q} of {x} by {v}"],
    "start": ["<start> {x}", "get {x} going", "{x} go", "{x} start", "{x} run", "get {x} running", "let {x} run", "switch {x} into gear", "start {x} up", "start up {x}", "set {x} in motion", "<want> {x} running", "have {x} start", "send {x} off", "start running {x}", "turn {x} on and let it run", "put {x} to work", "let {x} start", "trigger {x}", "commence with {x}", "{x} begin"],
    "stop": ["stop {x}", "halt {x}", "{x} stop", "stop {x} now", "stop {x} immediately", "abort {x}", "emergency stop {x}", "e-stop {x}", "cut power to {x}", "cut the power of {x}", "somebody stop {x}", "no no no stop {x}", "{x} stop, someone's inside", "{x} must stop", "hold {x}", "stop {x} right now", "freeze {x}", "stop {x} for god's sake", "{x} halt", "quick, stop {x}", "stop stop stop {x}", "get {x} stopped", "stop that {x0}", "bring {x} to a stop", "make {x} stop", "stop running {x}", "{x} needs to stop", "interrupt {x}", "interrupt {x} now", "break off {x}", "cease {x}", "quit {x}", "suspend {x}", "stop using {x}", "have {x} stop", "turn {x} off now, emergency", "stop the {x0} please"],
    "stop_all": ["stop everything", "stop all machines", "everything stop", "emergency stop", "e-stop", "emergency stop now", "halt everything", "stop all", "shut everything down", "all stop", "full stop everything", "abort everything", "stop it all", "cut the power to everything", "kill power", "kill everything", "freeze everything", "stop all of it now", "stop every machine", "everything off, emergency", "someone is hurt stop everything", "stop the whole place", "fire, shut everything down", "halt all", "stop all the machines right now", "hit the emergency stop", "shut it all down", "stop everything immediately", "stop the lot", "halt the lot", "kill the lot now", "shut the lot down"],
    "stop_it": ["stop", "stop it", "stop that", "stop please", "halt", "abort", "stop now", "stop stop stop", "please stop", "stop right there", "whoa stop", "no stop", "cut it out", "enough stop", "hold it", "would you stop please", "just stop it", "quiet please stop", "stop talking", "shut up", "be quiet", "silence"],
    "pause": ["pause {x}", "pause", "pause the (music|movie|film|song|show|video|playback) {on}", "put {x} on pause", "hold the music {on}", "{x} pause", "pause playback {on}", "pause that", "freeze the picture {on}", "take a break {x}"],
    "resume": ["resume {x}", "resume", "unpause {x}", "unpause", "continue {x}", "resume the (music|movie|film|song|show|video) {on}", "carry on playing {on}", "keep playing {on}", "continue playing {on}", "go on with the music {on}", "play again {on}", "continue the (movie|show|song) {on}", "{x} resume", "pick up where we left off {on}", "resume playback {on}"],
    "next": ["next", "next (song|track|one|episode|item) {on}", "skip", "skip chapter {on}", "skip (this|this song|this track|the song|it|to the next song|to the next track) {on}", "play the next (song|track|one) {on}", "next on {x}", "skip ahead {on}", "next please", "another song {on}", "i don't like this song, skip it", "go to the next (song|track|chapter) {on}", "move on to the next (track|song) {on}", "jump to the next (one|song|title) {on}", "skip song"],
    "previous": ["previous (song|track|one|episode|item) {on}", "go back to the (previous|last) (song|track) {on}", "play the (previous|last) (song|track|one) again {on}", "previous", "back one (song|track) {on}", "replay the last (song|track) {on}", "last song again {on}", "go back one (track|song) {on}", "skip back {on}", "one song back {on}", "play that last one again {on}", "rewind to the previous (track|song) {on}", "replay the song", "replay it {on}", "replay this song {on}", "replay that one", "replay that", "play it again {on}"],
    "mute": ["mute {x}", "mute", "mute the (sound|volume|audio|tv|music) {on}", "silence {x}", "no sound {on} please", "sound off {on}", "turn off the sound {on}", "turn the sound off {on}", "{x} mute", "put {x} on mute", "kill the sound {on}"],
    "unmute": ["unmute {x}", "unmute", "unmute the (sound|volume|tv|music) {on}", "sound on {on}", "turn the sound back on {on}", "turn the sound on {on}", "{x} unmute", "bring back the sound {on}", "give me the sound back {on}", "i want the sound back {on}"],
    "play": ["play {what} {on}", "play {what}", "put on {what} {on}", "put {what} on {on}", "i want to hear {what} {on}", "i'd like to listen to {what} {on}", "start playing {what} {on}", "let me hear {what} {on}", "can you play {what} {on}", "listen to {what} {on}", "play me {what}", "{what} on {x} please", "play {what} for me {on}", "queue {what} {on}", "let's hear {what} {on}", "turn on {what} on {x}", "i feel like listening to {what}", "tune in to {what} {on}"],
    "volume": ["volume {v}", "volume to {v}", "set the volume to {v} {on}", "set {x} volume to {v}", "turn the volume (up|down) to {v} {on}", "change the volume {on} to {v}", "{x} volume {v}", "make the volume {v} {on}", "<raise> the volume to {v} {on}", "<lower> the volume to {v} {on}", "sound at {v} {on}", "volume level {v}"],
    "volume_up": ["volume up {on}", "louder {on}", "turn it up", "turn up the volume {on}", "turn the volume up {on}", "turn the volume up {amount} {on}", "<raise> the volume {on}", "i can't hear {x}", "make {x} louder", "make it louder", "{amount} louder {on}", "turn the music up {on}", "turn up the (music|sound) {on}", "volume up by {v} {on}", "<raise> the volume by {v} {on}", "more volume {on}", "speak up", "crank it up", "it's too quiet {on}", "pump up the volume", "turn the volume up {v} {on}", "turn up volume {v}", "volume up {v} {on}"],
    "volume_down": ["volume down {on}", "quieter {on}", "turn it down", "turn down the volume {on}", "turn the volume down {on}", "turn the volume down {amount} {on}", "<lower> the volume {on}", "it's too loud {on}", "make {x} quieter", "make it quieter", "{amount} quieter {on}", "turn the music down {on}", "turn down the (music|sound) {on}", "volume down by {v} {on}", "<lower> the volume by {v} {on}", "less volume {on}", "not so loud {on}", "softer {on}", "keep it down {on}", "that's too loud", "turn the volume down {v} {on}", "turn down volume {v}", "volume down {v} {on}", "take the volume down {v}"],
    "vacuum": ["vacuum {place}", "clean {place}", "hoover {place}", "vacuum {in}", "start vacuuming {in}", "start cleaning {in}", "run the vacuum {in}", "start the vacuum {in}", "sweep {place}", "send the vacuum to {place}", "get the vacuum going {in}", "mop {place}", "{place} needs vacuuming, please do it", "have the robot clean {place}", "clean up {place}"],
    "vacuum_x": ["start {x}", "run {x}", "send out {x}", "let {x} clean", "let {x} clean {place}", "get {x} to clean {place}", "have {x} vacuum {place}", "start cleaning with {x}", "{x} clean {place}", "tell {x} to start", "make {x} do {place}"],
    "dock": ["dock {x}", "send {x} home", "return {x} to base", "return {x} to its dock", "{x} go home", "send {x} back to its base", "{x} back to the charger", "bring {x} home", "park {x}", "{x} return to base", "call {x} back", "dock {x} please", "{x} dock", "dock {x} now", "{x} back to its dock", "put {x} on its dock"],
    "find": ["find {x}", "where did i put {x}", "locate {x}", "make {x} beep", "help me find {x}", "i can't find {x}"],
    "scene": ["activate {x}", "activate the {x0} scene", "{x0} scene", "{x0} mode", "{x0}", "start {x0}", "set the scene to {x0}", "switch to {x0}", "turn on {x0}", "turn on the {x0} scene", "run {x0}", "it's time for {x0}", "{x0} please", "{x0} time", "change to the {x0} scene", "go to {x0} mode", "put the house in {x0} mode", "transition to {x0}", "load {x0}", "fade to {x0}", "do {x0}", "do the {x0} thing", "get ready for {x0}", "set everything up for {x0}", "set the mood to {x0}", "apply {x0}", "let's do {x0}", "{x0} on", "load the {x0} scene"],
    "arm": ["arm {x}", "arm the alarm", "arm the alarm system", "set the alarm system", "turn on the burglar alarm", "activate the alarm system", "arm the house", "arm the security system", "switch the alarm system on", "secure the premises", "arm away", "arm the alarm for the night", "put {x} on armed", "<turn> on {x}", "<turn> {x} on", "{x} on", "activate {x}"],
    "disarm": ["disarm {x}", "disarm the alarm", "disarm the alarm system", "turn off the burglar alarm", "deactivate the alarm system", "disarm the house", "disarm the security system", "switch the alarm system off", "turn {x} to disarmed", "<turn> off {x}", "<turn> {x} off", "{x} off", "deactivate {x}", "disable {x}"],
    "call": ["call {x}", "phone {x}", "ring {x}", "give {x} a call", "dial {x}", "call {x} please", "make a call to {x}", "get {x} on the phone", "can you call {x}", "i need to talk to {x}, call them", "call up {x}", "video call {x}", "start a call with {x}", "ring up {x}"],
    "message": ["tell {x} {that} {what}", "tell {x} {what}", "text {x} {what}", "text {x} that {what}", "send {x} a message saying {what}", "send a message to {x} saying {what}", "message {x} {what}", "message {x} that {what}", "let {x} know that {what}", "let {x} know {what}", "write to {x} that {what}", "send {x} a text saying {what}", "inform {x} that {what}", "send the message {what} to {x}", "ask {x} {what}"],
    "announce": ["announce that {what}", "announce {what}", "broadcast {what}", "broadcast that {what}", "tell everyone {what}", "tell everybody that {what}", "make an announcement {what}", "say {what} on all speakers", "announce {in} that {what}", "broadcast {what} {in}", "let everybody know that {what}", "broadcast everywhere {what}", "shout {what} through the house", "shout out {what}", "call out through the house that {what}", "page the whole house {what}", "pass on to everyone that {what}", "put out a call that {what}", "page everyone {what}", "let the whole house know {what}", "spread the word that {what}", "inform everyone that {what}"],
    "add": ["add {items} to {list}", "put {items} on {list}", "add {items}", "we need {items}", "we're out of {items}", "put {items} down on {list}", "{items} on {list}", "{items} to {list}", "write {items} on {list}", "i need to buy {items}", "please add {items} to {list}", "include {items} in {list}", "get {items} on {list}", "stick {items} on {list}", "note {items} on {list}", "could you put {items} in {list}", "buy {items}", "we have run out of {items}, add it to {list}", "don't let me forget to buy {items}", "we ran out of {items}, put it on {list}", "we have run out of {items}", "i need {items} on {list}", "get {items} onto {list}", "i have to buy {items}", "need to buy {items}"],
    "remove": ["remove {items} from {list}", "take {items} off {list}", "delete {items} from {list}", "cross {items} off {list}", "check off {items} on {list}", "check {items} off {list}", "tick off {items}", "scratch {items} from {list}", "i got {items}, take it off {list}", "we don't need {items} anymore, remove it from {list}", "complete {items} on {list}", "mark {items} as done on {list}", "get rid of {items} on {list}", "drop {items} from {list}", "erase {items} from {list}"],
    "ask_list": ["what's on {list}", "what is on {list}", "read me {list}", "read {list}", "show me {list}", "tell me what's on {list}", "what do i have on {list}", "is there anything on {list}", "what do we need to buy", "open {list}", "give me {list}", "check {list}", "do i have anything on {list}", "is {item} on {list}", "list everything on {list}", "how many things are on {list}"],
    "clear_list": ["clear {list}", "empty {list}", "delete everything on {list}", "wipe {list}", "remove everything from {list}", "delete {list}", "get rid of {list}"],
    "create_list": ["create a list called {name}", "make a new list called {name}", "create a {name} list", "start a new {name} list", "new list {name}", "i want a list named {name}", "create a new list", "make me a new list for {name}", "start a list for {name}"],
    "timer_set": ["set a timer for {d}", "set a {d} timer", "start a timer for {d}", "timer {d}", "{d} timer", "timer for {d}", "give me a {d} timer", "count down {d}", "set a timer for {d} called {name}", "set a {name} timer for {d}", "start a {d} {name} timer", "{d} timer for {name}", "set a {d} timer for {name}", "put {d} on the clock", "countdown of {d}", "time {d} for me", "let me know when {d} are over", "new timer {d}", "start a countdown for {d}", "time the {name} for {d}", "create a timer for {d} named {name}", "ping me in {d}", "i need a timer for {d}", "set timer {d}", "make a timer of {d}", "wake me in {d}"],
    "timer_cancel": ["cancel {timer}", "stop {timer}", "delete {timer}", "turn off {timer}", "kill {timer}", "remove {timer}", "i don't need {timer} anymore", "end {timer}", "clear {timer}", "forget {timer}", "abort {timer}", "never mind {timer}, cancel it"],
    "timer_pause": ["pause {timer}", "hold {timer}", "freeze {timer}", "put {timer} on hold", "stop {timer} for now, i'll continue it later", "halt {timer} for a moment", "stop {timer} for a moment, i'll go on later", "halt {timer} for now, i'll continue soon"],
    "timer_resume": ["resume {timer}", "continue {timer}", "unpause {timer}", "restart {timer} where it stopped", "let {timer} go on", "carry on with {timer}"],
    "timer_more": ["add {d} to {timer}", "increase {timer} by {d}", "extend {timer} by {d}", "give {timer} {d} more", "{d} more on {timer}", "make {timer} {d} longer", "put another {d} on {timer}", "add another {d} to {timer}", "lengthen {timer} by {d}"],
    "timer_less": ["take {d} off {timer}", "remove {d} from {timer}", "decrease {timer} by {d}", "shorten {timer} by {d}", "{d} less on {timer}", "make {timer} {d} shorter", "reduce {timer} by {d}", "subtract {d} from {timer}"],
    "timer_change": ["change {timer} to {d}", "set {timer} to {d} instead", "make {timer} {d}", "{timer} should be {d}", "i want {timer} to be {d}", "reset {timer} to {d}", "restart {timer} with {d}"],
    "timer_ask": ["how much time is left on {timer}", "how long is left on {timer}", "what's left on {timer}", "time left on {timer}", "how long until {timer} goes off", "status of {timer}", "timer status", "how is {timer} doing", "when does {timer} end", "how many minutes left on {timer}", "do i have a timer running", "are any timers set", "what timers are running", "check {timer}", "list my timers", "how much longer on {timer}", "is {timer} done yet", "how long has {timer} got", "how much time left"],
    "alarm_set": ["set an alarm for {t}", "set an alarm {t}", "wake me up {t}", "wake me {t}", "alarm {t}", "set my alarm for {t}", "i need to be up {t}", "get me up {t}", "i want to wake up {t}", "alarm for {t}", "can you wake me {t}", "set a wake-up call for {t}", "alert me {t}", "make an alarm for {t}", "please set the alarm clock to {t}", "set an alarm {e}", "wake me up {e}", "schedule an alarm for {t}", "new alarm {t}", "i have to get up {t}, wake me", "create an alarm for {t}", "don't let me sleep past {t}"],
    "alarm_cancel": ["cancel my alarm", "delete my alarm", "turn off my alarm", "cancel the alarm for {t}", "delete the {t} alarm", "remove the alarm {t}", "cancel all alarms", "remove all of my alarms", "no alarm tomorrow", "switch off the wake-up alarm", "turn off the alarm clock", "delete the alarm set for {t}", "i don't need the alarm {t}", "get rid of my {t} alarm", "disable my morning alarm", "clear all my alarms", "stop my alarm"],
    "alarm_ask": ["what alarms are set", "do i have an alarm set", "when is my alarm", "what time is my alarm set for", "is there an alarm {t}", "show me my alarms", "list all alarms", "when will you wake me", "tell me my alarms", "is my alarm on", "what time does the alarm go off", "check my alarms for {t}", "do i have any alarms {t}", "which alarms do i have", "is an alarm set for {t}", "alarms", "my alarms", "list alarms", "tell me my alarms", "what alarms do i have"],
    "snooze": ["snooze", "snooze the alarm", "snooze for {d}", "five more minutes", "give me {d} more", "let me sleep {d} more", "hit snooze", "snooze {d}"],
    "remind": ["remind me to {what} {t}", "remind me {t} to {what}", "set a reminder to {what} {t}", "set a reminder for {t} to {what}", "remind me to {what}", "remind me {i} to {what}", "remind me to {what} {i}", "don't let me forget to {what} {t}", "don't forget to remind me to {what} {t}", "reminder {what} {t}", "make a reminder to {what} {t}", "{t} remind me to {what}", "i need to remember to {what} {t}", "i have to remember to {what} {t}", "help me remember to {what} {t}", "i must not forget to {what} {t}", "make me remember to {what} {t}", "can you remind me to {what} {t}", "remember to tell me to {what} {t}", "remind me {e} to {what}", "remind me about {what} {t}", "add a reminder to {what} {t}", "set a reminder that i have to {what} {t}", "please remind me that i must {what} {t}", "alert me {t} to {what}", "nudge me {t} to {what}"],
    "remind_ask": ["what reminders do i have", "what are my reminders for {t}", "do i have any reminders", "read my reminders", "list my reminders", "show reminders", "what did i ask you to remind me of"],
    "remind_cancel": ["cancel my reminder", "delete the reminder to {what}", "cancel all reminders", "remove the reminder about {what}", "forget the reminder to {what}", "clear my reminders", "i don't need the reminder to {what} anymore"],
    "event_set": ["add {what} to my calendar {t}", "put {what} in my calendar {t}", "schedule {what} {t}", "create an event {what} {t}", "i have {what} {t}, add it to my calendar", "book {what} {t}", "add an event called {what} {t}", "set up {what} {t}", "new appointment {what} {t}", "mark {what} on my calendar {t}", "make an appointment for {what} {t}", "plan {what} {t}", "schedule a {what} for {t}", "put a {what} on the calendar for {t}", "enter {what} {t} into the calendar", "calendar entry {what} {t}", "set {what} for {t} in the calendar", "book a {what} {t}", "book me {what} {t}", "please book {what} {t}"],
    "event_ask": ["what's on my calendar {t}", "what do i have {t}", "do i have anything {t}", "when is my {what}", "what's on my schedule {t}", "am i free {t}", "what meetings do i have {t}", "show my calendar for {t}", "when is {what}", "what's next on my calendar", "do i have any appointments {t}", "what time is my {what}", "is there anything planned {t}", "read my calendar", "how many meetings do i have {t}", "what events do i have {t}", "tell me my agenda for {t}", "is my {what} {t}", "am i busy {t}", "what's my next appointment", "what do i have to do {t}", "what do i have {t}", "what am i doing {t}", "do i have anything {t}", "am i free {t}", "is there anything on {t}", "what's on {t}"],
    "event_cancel": ["cancel my {what}", "delete {what} from my calendar", "remove {what} {t} from my calendar", "cancel the {what} {t}", "take {what} off my calendar", "clear my calendar for {t}", "erase the {what} {t}", "i won't go to the {what}, remove it from the calendar", "delete the event {what}", "drop the {what} from my schedule"],
    "event_change": ["move my {what} to {t}", "reschedule {what} to {t}", "postpone the {what} to {t}", "change my {what} to {t}", "push the {what} to {t}", "shift the {what} to {t}"],
    "ask_is": ["is {x} {st}", "are {x} {st}", "is {x} {st} right now", "is {x} still {st}", "<whatis> if {x} is {st}", "check if {x} is {st}", "check whether {x} is {st}", "{x} {st}?", "can you see if {x} is {st}", "did i leave {x} {st}", "did someone leave {x} {st}", "have i left {x} {st}", "tell me whether {x} is {st}", "is {x} currently {st}", "i wonder if {x} is {st}", "are you sure {x} is {st}", "is {x} really {st}", "was {x} left {st}", "please check that {x} is {st}"],
    "ask_state": ["what's the state of {x}", "what is the status of {x}", "how is {x} doing", "what's {x} doing", "status of {x}", "{x} status", "what's up with {x}", "tell me the state of {x}", "give me the status of {x}", "how's {x}", "what's going on with {x}", "is {x} ok", "check {x}", "report on {x}", "give me a report on {x}", "what state is {x} in"],
    "ask_history": ["what happened with {x}", "what happened to {x}", "did anything happen with {x}", "has {x} had any problems", "any trouble with {x} today", "what went wrong with {x}", "show me the history of {x}", "what did {x} do last night", "when was {x} last used", "when did {x} last run", "any alarms on {x}", "were there alarms on {x}", "how often did {x} trip", "why did {x} stop", "how long has {x} been running", "when was {x} turned on", "log of {x}"],
    "ask_q": ["what's the {q} of {x}", "what is the {q} (in|of|on|at) {x}", "<whatis> the {q} of {x}", "how much {q} does {x} have", "{x} {q}", "{x} {q}?", "what {q} is {x} at", "what {q} is {x} set to", "read me the {q} of {x}", "tell me {x}'s {q}", "what's {x} {q}", "check the {q} (on|of|in) {x}", "current {q} of {x}", "{q} of {x}", "give me the {q} reading of {x}", "is the {q} of {x} ok", "what does {x} show for {q}", "how is the {q} of {x}", "what's the current {q} on {x}"],
    "ask_sensor": ["what's {x}", "what is {x}", "<whatis> {x}", "what does {x} say", "what does {x} show", "read {x}", "{x}?", "what's the value of {x}", "how is {x}", "check {x}", "current {x}", "what is {x} reading", "give me {x}"],
    "ask_temp": ["how (warm|hot|cold|cool) is it {in}", "what's the temperature {in}", "what is the temperature {in}", "<whatis> the temperature {in}", "temperature {in}", "how many degrees {in}", "how many degrees is it {in}", "is it (warm|cold|hot|chilly) {in}", "what temperature is it {in}", "what's the temp {in}", "{place} temperature", "tell me how warm it is {in}", "what does the thermometer say {in}"],
    "ask_hum": ["what's the humidity {in}", "how humid is it {in}", "<whatis> the humidity {in}", "humidity {in}", "is it humid {in}", "how damp is it {in}"],
    "ask_any": ["(is|are) (any|some) [of the] {c} {st} {in}", "(is|are) there any {c} {st} {in}", "any {c} {st} {in}", "any {place} {c} {st}", "do i have any {c} {st} {in}", "did anybody leave any {c} {st} {in}", "have we left any {c} {st} {in}", "is there a {c1} {st} {in}", "anything {st} {in}", "is anything {st} {in}", "is there anything {st} {in}"],
    "ask_all": ["(is|are) all [the] {c} {st} {in}", "(is|are) all [of the] {place} {c} {st}", "is every {c1} {st} {in}", "are {c} all {st} {in}", "is everything {st} {in}", "tell me if all {c} are {st} {in}"],
    "ask_which": ["<which> {c} (is|are) {st} {in}", "<which> {place} {c} (is|are) {st}", "<which> of the {c} (is|are) {st} {in}", "tell me which {c} are {st} {in}", "show me the {c} that are {st} {in}", "what is {st} {in}", "what's {st} {in}", "list the {c} that are {st} {in}", "what {c} did we leave {st} {in}"],
    "ask_count": ["how many {c} (is|are) {st} {in}", "how many of the {c} (is|are) {st} {in}", "how many {place} {c} are {st}", "count the {c} that are {st} {in}", "tell me how many {c} are {st} {in}"],
    "ask_detect": ["is there {any} {thing} {in}", "is {any} {thing} detected {in}", "{thing} detected {in}?", "any {thing} {in}", "is there a {thing} {in}", "has {thing} been detected {in}", "was there {any} {thing} {in}", "do we have {thing} {in}"],
    "ask_where": ["where is {x}", "where's {x}", "do you know where {x} is", "is {x} {home}", "is {x} in {place}", "has {x} {arrived}", "when did {x} {arrive}", "find out where {x} is", "can you locate {x}", "{x} where are they", "tell me where {x} is", "is {x} back yet", "which room is {x} in", "where has {x} gone"],
    "ask_who": ["who is {home}", "who's {home}", "is anyone {home}", "is anybody {home}", "is everyone {home}", "is everybody {home}", "how many people are {home}", "who is in {place}", "is anyone in {place}", "is somebody in {place}", "is there anybody in {place}", "how many people are in {place}", "who's here", "is the house empty", "is there anyone {home}"],
    "ask_alert": ["any alarms right now", "are there any alerts", "is everything ok", "is everything all right", "anything wrong", "are there any problems", "any faults", "what alarms are active", "what's wrong", "any warnings", "did anything happen last night", "what happened today", "is there a problem", "give me a status report", "how is everything", "what's the overall status", "anything i should know", "system status", "status of the system", "overall system status", "show the system status", "how is the system", "status please", "anything broken"],
    "schedule_ask": ["what is scheduled", "what's scheduled for today", "what have you got planned", "list the scheduled actions", "what will you switch on later", "which actions are pending", "what actions are still pending", "are any actions pending", "what will you do later", "what did i schedule", "which commands are waiting", "show the schedule of the house", "what's on the schedule for the machines", "any actions pending", "show pending actions"],
    "schedule_cancel": ["cancel all scheduled actions", "cancel the schedule", "cancel the schedule of the house", "drop the planned switching", "delete all schedules", "forget what you were going to do later", "clear the planned actions"],
    "undo": ["undo that", "undo", "undo it", "take that back", "revert that", "put it back the way it was", "reverse that", "change it back", "undo the last thing", "set it back", "switch it back", "no, undo that", "oops undo"],
    "repeat": ["do it again", "once more", "again", "same again", "one more time", "do that again please", "and again"],
    "cancel": ["never mind", "nevermind", "forget it", "forget about it", "cancel", "cancel that", "ignore that", "scratch that", "oh never mind", "leave it", "no never mind", "skip it", "don't bother", "drop it", "disregard that", "it's fine, forget it", "not now", "never mind then"],
    "yes": ["yes", "yeah", "yep", "yup", "sure", "ok", "okay", "yes please", "do it", "go ahead", "please do", "yes do it", "of course", "correct", "affirmative", "that's right", "absolutely", "yes i am sure", "confirm", "confirmed", "right", "exactly", "yes go ahead", "ja", "fine", "sounds good", "roger", "aye", "aye aye", "go on then", "make it so", "yes that one", "by all means", "ok do it", "yes i'm sure", "i confirm"],
    "no": ["no", "nope", "nah", "no thanks", "don't", "no don't", "no thank you", "negative", "don't do it", "rather not", "better not", "absolutely not", "no way", "please don't", "no stop", "wrong", "no cancel", "definitely not", "not now", "no leave it", "no, i changed my mind", "hell no", "no no"],
    "greet": ["hello", "hi", "hey", "good morning", "good evening", "hello there", "hi there", "hey you", "good afternoon", "morning", "hiya", "howdy", "what's up", "hello computer"],
    "bye": ["bye", "goodbye", "see you later", "see you", "good night then", "bye bye", "take care", "talk to you later"],
    "thanks": ["thanks", "thank you", "thanks a lot", "thank you very much", "cheers", "much appreciated", "thanks mate", "ta", "thx", "great thanks", "perfect thank you", "ok thanks"],
    "how_are_you": ["how are you", "how are you doing", "how's it going", "are you well", "how do you feel", "you ok", "how is it going", "how's it going with you", "how is life", "are you doing well"],
    "help": ["what can you do", "help", "help me", "what can i say", "what are your abilities", "how do you work", "what do you understand", "can you control the lights", "are you able to open doors", "do you know how to set a timer", "what can i ask you", "how can you help me", "what commands are there", "which devices do you know", "are you able to set alarms", "what rooms do you know", "list your functions"],
    "about": ["who are you", "what's your name", "who made you", "are you a robot", "are you always listening", "where does my data go", "are you recording me", "what version are you", "do you have feelings", "how old are you", "are you there", "are you awake", "can you hear me", "where do you live", "are you still there", "are you listening", "you there"],
    "manual": ["how do i {cmd}", "how do you descale {x}", "how do i clean {x}", "what does the error on {x} mean", "how often must i service {x}", "where is the fuse of {x}", "what does code e4 on {x} mean", "how do i reset {x}", "what is the maximum pressure of {x}", "what oil does {x} need", "explain how {x} works", "what is the warranty of {x}", "how do i change the filter of {x}", "what does the manual say about {x}"],
    "time": ["what time is it", "what's the time", "tell me the time", "time please", "current time", "do you have the time", "what time is it now", "what time is it in tokyo", "how late is it", "have you got the time"],
    "date": ["what day is it", "what's the date", "what is today's date", "what date is it today", "which day of the week is it", "what month is it", "tell me the date", "what's today", "what day is tomorrow", "what year is it", "is it monday today"],
    "weather": ["what's the weather", "what's the weather like", "how is the weather in paris", "will it rain tomorrow", "is it going to rain", "weather forecast", "do i need an umbrella", "how cold is it outside today in oslo", "is it sunny", "what's the forecast for friday", "will it snow this week", "how windy is it", "should i wear a coat", "is it raining outside", "are there any tornado warnings", "any storm warnings today", "is a storm coming", "what is the temperature outside in chicago", "what was the temperature in our city at noon", "should i take an umbrella", "will it be hot today", "do i need sunscreen today", "is it freezing in boston", "how hot will it get this afternoon", "is it humid in miami", "show me the weather", "tell me the week's weather", "is there a chance of rain", "will it be sunny on saturday", "is it snowing in denver", "what are the current weather conditions", "do i need a jacket tonight", "is it good weather for a walk", "when will it stop raining", "what's the high for today", "how is it outside", "does it look like rain"],
    "maths": ["what is {n} plus {n}", "what's {n} times {n}", "{n} divided by {n}", "how much is {n} minus {n}", "what is the square root of {n}", "calculate {n} percent of {n}", "what's {n} squared", "add {n} and {n}", "how many feet are in {n} meters", "convert {n} miles to kilometers", "{n} plus {n}", "what is half of {n}"],
    "knowledge": ["who was albert einstein", "what is the capital of france", "how tall is mount everest", "who invented the light bulb", "when was the french revolution", "what is a thermostat", "how does a pump work", "what does entropy mean", "define osmosis", "how far is the moon", "who wrote hamlet", "why is the sky blue", "how many people live in spain", "what is the boiling point of water", "who is the president", "how long do cats live", "what is the speed of light", "how hot is the sun", "what is the fastest car", "when do the clocks change", "how many lights does the eiffel tower have", "what opens at nine in london"],
    "joke": ["tell me a joke", "make me laugh", "do you know a joke", "say something funny", "another joke please", "tell me a story", "sing a song for me"],
}


# Further ways, as people say them.
MORE = {
    "on": ["get {x}", "{x}, on", "do put {x} on", "make {x} go on", "pop on {x}", "could i have {x} on", "start using {x}", "bring {x} on", "bring {x} up", "make on {x}"],
    "off": ["{x}, off", "do turn {x} off", "{x} off it please", "make {x} go off", "cut {x}", "lose {x}", "shut {x}", "out with {x}", "no more {x0}", "bring {x} off", "make off {x}", "get rid of {x}"],
    "open_plain": ["{x}, open", "let me in, open {x}", "let him in, open {x}", "let the courier in, open {x}", "make {x} open"],
    "close_plain": ["{x}, close", "make {x} close", "push {x} shut", "{x} to be closed please"],
    "lock": ["{x}, lock", "{x} lock", "make {x} lock", "put the lock on {x}"],
    "start": ["{x}, start", "let {x} do its job", "let {x} do its thing", "make {x} go", "get {x} to work", "give {x} a go", "have {x} do its work", "get {x} going now"],
    "set_cover": ["{v} {x}", "open {x} by {v}", "leave {x} {v} open", "lower {x} {v}", "raise {x} {v}"],
    "set": ["{x}, {v}", "{v} for {x}", "get {x} going at {v}", "i'd like {x} at {v}", "{x} up to {v}", "{x} down to {v}", "{x} should be at {v}", "fix {x} at {v}", "hold {x} at {v}"],
    "play": ["shall we have {what} {on}", "let's have {what} {on}", "i want {what} {on}", "i want to listen to {what} now {on}", "give me some {what}", "how about some {what} {on}", "i'm in the mood for {what}", "bring up {what} {on}", "open {what} {on}", "launch {what} {on}", "go to {what} {on}", "comfort my ears with {what}", "keep playing {what}", "read me {what}", "start chapter five of {what}", "resume {what} where i stopped"],
    "volume_up": ["i can't hear that", "a little louder please", "speak louder", "not loud enough {on}"],
    "mute": ["don't make any noise", "no noise please", "be silent", "shut up for a while", "quiet", "quiet please", "stop speaking", "stop talking to me", "don't talk until i say so", "hush"],
    "create_list": ["make a {name} list", "make a new {name} list", "please create a new list", "help me start my {name} list", "i want to make this week's {name} list", "add a list of things for {name}", "open a new list", "i need a {name} list", "make me a list", "begin a {name} list", "start a new list please", "create {name} list", "please add a new list called {name}", "create a playlist called {name}"],
    "add": ["add {items} to my list of things to buy", "get me {items}", "put down {items}", "write down {items}", "remember {items} for {list}", "{items} should be on {list}", "could {list} get {items}", "please include {items}"],
    "ask_list": ["what's left on {list}", "what lists do i have", "list my lists", "which lists are there", "read out {list}", "find {item} on {list}", "what is there on {list}", "let me hear {list}"],
    "clear_list": ["erase {list}", "throw {list} away", "remove {list}", "start {list} over", "delete all of {list}"],
    "alarm_set": ["turn my alarm on for {t}", "i need an alarm {t}", "be sure to wake me {t}", "wake us up {t}", "my alarm should ring {t}", "ring the alarm {t}", "i must be awake {t}"],
    "alarm_cancel": ["set my alarm off", "take away my alarm", "i don't want the alarm anymore", "stop the {t} alarm", "no alarm please"],
    "alarm_ask": ["did i set an alarm", "how many alarms are set", "what have i set my alarm to"],
    "remind": ["don't let me forget to {what}", "don't let me forget {what} {t}", "alert me about {what} {t}", "notify me about {what} {t}", "set a notification for {what} {t}", "set a notification to {what} {t}", "i need to be notified about {what} {t}", "tell me {t} to {what}", "i want to {what} {t} create a reminder", "i have to {what} {t}, remind me", "ping me about {what} {t}", "a reminder for {what} {t} please", "remember me to {what} {t}", "do please remember to remind me about {what} {t}", "remind me of {what} {t}", "make sure i {what} {t}", "i need a reminder for {what} {i}"],
    "remind_ask": ["which reminders are pending", "what reminders are there {t}", "any reminders {t}", "did you place the reminder about {what}", "do i have a reminder about {what}"],
    "event_set": ["i have a {what} {t}", "i have {what} {t} make a note of it", "note {what} {t}", "mark {t} for {what}", "make a note that i have {what} {t}", "tag {what} {t} as an event", "add event {what}", "add an event for {what}", "make an event", "create a new event", "set {what} {t}", "set {what} every day {t}", "please schedule a {what}", "i'm going to {what} {t}, put it in my calendar", "save the date for {what} {t}", "block {t} for {what}", "my {what} is {t}, remember that", "put down {what} {t}"],
    "event_ask": ["what is happening {t}", "what's happening {t}", "where is my {what}", "where is the {what}", "show me my meetings {t}", "show my events {t}", "upcoming events", "what events are upcoming {t}", "any events planned {t}", "is there any event {t}", "who is coming to my {what}", "meetings {t}", "my appointments {t}", "let me know my meetings {t}", "can i know what i have to do {t}", "what time does my {what} start", "how long is my {what}", "tell me about my {what}", "give me my schedule {t}"],
    "event_cancel": ["remove that event", "delete upcoming events", "delete the next event", "erase the {what} i have scheduled {t}", "can you erase the {what}", "cancel all my meetings {t}", "cancel my plans to go to {what}", "delete all of my {what} events {t}", "clear my {what}", "call off the {what} {t}", "get rid of the {what} {t}", "unschedule {what}"],
    "ask_is": ["has {x} been {st}", "is {x} {st} i wonder", "is {x} still {st}, i wonder", "i think {x} is {st}, is it", "would you check if {x} is {st}", "{x}, is it {st}", "is {x} {st} dear", "was {x} {st}"],
    "ask_any": ["anything still {st} {in}", "is anything still {st} {in}", "did i leave anything {st} {in}", "did we leave anything {st} {in}"],
    "ask_which": ["what's still {st} {in}", "what did i leave {st} {in}", "tell me what is {st} {in}", "everything that is {st} {in}"],
    "call": ["could you ring {x} for me", "get me {x}", "i want to speak to {x}", "put me through to {x}", "give {x} a ring", "ring {x} for me"],
    "message": ["will you tell {x} that {what}", "please tell {x} {what}", "say to {x} that {what}", "pass on to {x} that {what}"],
    "vacuum": ["vacuum", "do the floors {in}", "clean the floor {in}", "vacuum the floor {in}", "get rid of the dust {in}", "the floor {in} is dirty, clean it", "hoover the carpets {in}"],
    "lights_on": ["put the light on {in}", "put the light on {in} it's dark", "a bit of light {in} please", "light {in} please", "i need light {in}", "can i have light {in}", "lights {in}", "get some light {in}"],
    "lights_off": ["lights out", "lights out {in}, everybody", "put the light out {in}", "the lights {in}, out", "no lights {in} please, switch them off", "shut the lights {in}"],
}
MORE["event_ask"] += ["do i have anything booked {t}", "is anything booked {t}", "what's planned {t}", "what have i got on {t}", "what have i got {t}", "check my calendar {t}", "check my schedule {t}", "am i available {t}", "where do i have to be {t}", "how does my calendar look {t}", "events {t}",
                      "all events {t}", "my events {t}", "events happening {t}", "what do i have to do {t}", "what should i do {t}", "what do i need to do {t}", "which appointments are there {t}", "show me what's on my calendar {t}", "is there a {what} {t}", "do i have a {what} {t}", "when does my {what} start", "what time is the {what} {t}", "list my events {t}",
                      "tell me about my day", "what does my day look like", "what does my week look like", "give me the details of my {what}", "what's coming up", "am i doing anything {t}", "have i anything planned {t}"]
MORE["pause"] = ["stop the music {on}", "stop playing {on}", "stop the (song|film|show|radio) {on}", "you can stop the music now {on}", "halt the music {on}"]
MORE["timer_set"] = ["timer {d} for the {name}", "{d} for the {name}", "set {d} for the {name}", "start {d} for {name}", "wake me in {d}"]
for _k, _v in MORE.items():
    T[_k] = T[_k] + _v
T["message_to"] = ["ask {x} to {what}", "tell {x} to {what}", "text {x} to {what}", "could you ask {x} to {what}", "let {x} know to {what}", "send {x} a message to {what}", "message {x} to {what}", "have {x} {what}"]
ADJ = "vanity stair corner piano star globe bar standing red blue green old new north south east west left right upper lower small big tall copper glass wooden garden terrace attic loft hobby sewing tv box family dressing guest utility spare music winter summer main second third outer inner velvet linen bamboo roller barn bike shed fish egg tabletop record tablet floor window wall ceiling desk night party disco laser salt lava crystal paper antique industrial secret front back side rear".split()
NOUN = "lamp lights light lamps fan heater radio speaker blind blinds curtain curtains shutter awning door gate window lock robot charger kettle oven dryer washer pump crusher shredder press saw kiln mixer conveyor filler station cutter dryer freezer cooler camera sensor plug fountain projector screen grill sauna bath bell bulb lantern chandelier spotlight winch hoist drill lathe grinder".split()

STATES = {
    "power": [("is_on", ["on", "turned on", "switched on"]), ("is_off", ["off", "turned off", "switched off"])],
    "open": [("is_open", ["open", "opened", "wide open"]), ("is_closed", ["closed", "shut", "down"])],
    "door": [("is_open", ["open", "opened", "ajar"]), ("is_closed", ["closed", "shut"])],
    "lock": [("is_locked", ["locked", "securely locked", "bolted"]), ("is_unlocked", ["unlocked", "not locked"])],
    "run": [("is_running", ["running", "working", "going", "in operation", "done yet"]), ("is_stopped", ["stopped", "standing still", "not running", "idle"])],
    "media": [("is_playing", ["playing", "playing anything"]), ("is_paused", ["paused"]), ("is_on", ["on"]), ("is_off", ["off"])],
    "battery": [("is_low", ["low", "almost empty"]), ("is_charging", ["charging", "being charged"]), ("is_ok", ["ok", "fine", "charged"]), ("is_full", ["full"])],
    "siren": [("is_armed", ["armed", "set", "active", "on"]), ("is_disarmed", ["disarmed", "off"])],
    "leak": [("is_wet", ["wet"]), ("is_dry", ["dry"])],
    "detect": [("is_detected", ["detected", "triggered", "on"]), ("is_clear", ["clear"])],
    "plug": [("is_plugged", ["plugged in"]), ("is_unplugged", ["unplugged"])],
    "net": [("is_connected", ["connected", "online"]), ("is_disconnected", ["disconnected", "offline"])],
    "heat": [("is_hot", ["hot"]), ("is_cold", ["cold"])],
    "occupied": [("is_occupied", ["occupied", "in use", "taken"]), ("is_clear", ["free", "empty"])],
}


class Clause:
    """parts: [(text, tag)]; plan: symbols. imperative: begins with a bare verb, so that "don't" can stand in front."""
    __slots__ = ("parts", "plan", "imperative", "state", "last", "family")

    def __init__(self, parts, plan, imperative=False):
        self.parts, self.plan, self.imperative, self.state, self.last, self.family = parts, plan, imperative, {}, None, ""


class NoFit(Exception):
    """The site has nothing that the family could use."""


VERB_FIRST = set("""turn switch put activate enable power fire get make let flip flick bring have change stick pop deactivate disable shut kill cut open raise lift close lower lock secure unlock set adjust dim brighten increase reduce drop start run
launch begin kick stop halt abort pause hold resume unpause continue skip play mute unmute vacuum clean hoover sweep dock send return park find locate arm disarm call phone ring dial tell text message announce broadcast add remove take delete cancel remind schedule light illuminate
toggle keep leave move wake crank boost bump decrease push pull roll cross check snooze extend create book mark""".split())


NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()
NUMBERED = "pump press mill line motor tank valve zone mixer boiler lamp camera door bay unit oven lathe robot conveyor chiller gate fan".split()
# What stands in front of names that a site might have and has not.
OTHERS = """terrace barn basement tower window desk star piano bar stair corner globe patio attic side back hallway nursery shed cellar landing porch pool loft gallery library
chapel stable conservatory guest study utility cabin dock rear west east north south upper lower second spare main inner outer glass wooden metal roof ceiling wall floor bedside
reading vanity egg rice wine bread fish plant bike tool boat horse roller velvet bamboo linen paper crystal lava string rope tumble sun storm night""".split()


class Gen:
    """Draws clauses for one site. mode: "train" leaves the held-out templates aside, "held" uses only those."""

    def __init__(self, r, site, mode="train", here=None):
        self.r, self.site, self.mode, self.here, self.n = r, site, mode, here, 0
        self.names = {}
        for t in site.everything():
            for w in t.words:
                for x in set(w):
                    self.names[x] = self.names.get(x, 0) + 1
        for a in site.areas:
            for w in a.words:
                for x in w:
                    self.names[x] = self.names.get(x, 0) + 1

    # ---- choosing ----
    def things(self, kinds=None, test=None, bare=False):
        out = [t for t in self.site.things if (kinds is None or t.kind in kinds) and (bare or t.name not in BARE) and (test is None or test(t))]
        if not out:
            raise NoFit
        return out

    def thing(self, kinds=None, test=None):
        return self.r.choice(self.things(kinds, test))

    def template(self, key):
        pool = T[key]
        if self.mode == "held":
            pool = [t for t in pool if held_out(t)]
            if not pool:
                raise NoFit
        elif self.mode == "train":
            pool = [t for t in pool if not held_out(t)] or pool
        return self.r.choice(pool)

    def clause(self, key, slots, plan):
        """plan: symbols, or a function that makes them from the set of slots that the template had."""
        used = set()

        def put(name):
            used.add(name)
            return slots[name]()

        parts = expand(self.template(key), self.r, put, RULES)
        text = "".join(p[0] for p in parts).strip()
        return Clause(parts, plan(used) if callable(plan) else plan, text.split(" ", 1)[0] in VERB_FIRST)

    def key(self, name):
        self.n += 1
        return f"{name}{self.n}"

    # ---- saying things ----
    def say_area(self, a):
        w = " ".join(self.r.choice(a.words))
        if w in ("upstairs", "downstairs"):
            return w
        return ("the " if self.r.random() < 0.75 and "'s" not in w else "my " if self.r.random() < 0.1 else "") + w

    def say(self, t, article=None):
        """A way to name a thing that means this one only."""
        r = self.r
        same = [x for x in self.site.everything() if x is not t and set(x.words) & set(t.words)]
        w = r.choice(t.words) if len(t.words) > 1 and r.random() < 0.4 else t.words[0]
        if len(w) > 1 and r.random() < 0.1 and self.names.get(w[-1], 0) == 1 and w[-1] not in BARE and not w[-1].isdigit() and len(w[-1]) > 3:
            w = w[-1:]
        name = " ".join(w)
        if t.kind == "person":
            return name
        the = (r.choice(("the ", "the ", "the ", "", "my ", "our ")) if article is None else article) if not name.split()[0] in ("the", "my") and "'s" not in name else ""
        if t.area is not None and not (set(" ".join(t.area.words[0]).split()) & set(w)) and (same or r.random() < 0.3):
            area = " ".join(r.choice(t.area.words))
            if r.random() < 0.5 and area not in ("upstairs", "downstairs"):
                return the + area + " " + name
            return the + name + " " + (r.choice(("in ", "in ", "in ", "on ", "of ", "at ")) + ("the " if r.random() < 0.75 and "'s" not in area else "") if area not in ("upstairs", "downstairs") else "") + area
        if same:
            raise NoFit
        return the + name

    def x(self, t, article=None):
        s = self.say(t, article)
        return {"x": lambda: [(s, None)], "x0": lambda: [(" ".join(t.words[0]), None)]}

    def place(self, floors=True, none=0.0, unknown=0.03):
        """(symbols, say_in, say_place)"""
        r, s = self.r, self.site
        roll = r.random()
        if roll < none:
            return [], None, None
        if roll < none + unknown:
            k = self.key("area")
            known = {w for a in s.areas + s.floors for w in a.words}
            for _ in range(10):
                name = r.choice(("attic", "roof", "sauna", "bunker", "observatory", "cellar", "tower", "wine cellar", "balcony", "east wing", "pool", "kitchen", "bathroom", "garage", "nursery", "barn", "crypt", "annex", invented(r), "pantry", "lounge", "moat"))
                if tuple(name.split()) not in known and not any(name in a.name or a.name in name for a in s.areas):
                    break
            else:
                raise NoFit
            return ["unknown", Span(k)], [(r.choice(("in the ", "in the ", "on the ", "at the ")), None), (name, k)], [("the ", None), (name, k)]
        if floors and s.floors and roll < none + unknown + 0.15:
            f = r.choice(s.floors)
            w = self.say_area(f)
            return [f], [(("on " if w not in ("upstairs", "downstairs") else "") + w, None)], [(w, None)]
        if roll < none + unknown + 0.25:
            w = r.choice(("in here", "here", "in this room", "in the room", "around here", "in this area"))
            return ["here"], [(w, None)], [(r.choice(("this room", "the room", "this place")), None)]
        if roll < none + unknown + 0.35:
            w = r.choice(("everywhere", "in the whole house", "in the entire house", "all over the house", "throughout the house", "in every room", "in all rooms", "around the house", "in the whole building", "across the site", "in the whole place"))
            return ["everywhere"], [(w, None)], [(r.choice(("the whole house", "the entire house", "the whole place", "every room", "the house", "the whole building", "all rooms")), None)]
        if not s.areas:
            raise NoFit
        a = r.choice(s.areas)
        if r.random() < 0.06 and len(s.areas) > 1:
            b = r.choice([x for x in s.areas if x is not a])
            w = self.say_area(a) + " and " + self.say_area(b)
            return [a, b], [("in " + w, None)], [(w, None)]
        w = self.say_area(a)
        if w in ("upstairs", "downstairs"):
            return [a], [(w, None)], [(w, None)]
        return [a], [(r.choice(("in ", "in ", "in ", "in ", "on ", "at ", "of ", "inside ")) + w, None)], [(w, None)]

    def group(self, classes, floors=True):
        """A class at a place, as one noun phrase: (symbols, slot)"""
        r = self.r
        cls = r.choice(classes)
        word = r.choice(CLASS_WORDS[cls])
        sym, in_, pl = self.place(floors, none=0.3)
        all_ = r.random()
        plural = word.endswith("s") or word in ("heating", "lighting", "music")
        pre, mode = "", []
        if all_ < 0.25 and plural:
            pre, mode = r.choice(("all the ", "all ", "all of the ", "every single one of the ", "all my ")), ["all"]
        elif all_ < 0.32 and not plural:
            pre, mode = r.choice(("every ", "each ")), ["all"]
        elif all_ < 0.85:
            pre = r.choice(("the ", "the ", "the ", "my ", "our "))
        parts = [(pre, None)]
        if sym and sym[0].__class__ is Area and len(sym) == 1 and r.random() < 0.5:
            w = " ".join(r.choice(sym[0].words)) + " " + word
            if any(tuple(w.split()) in t.words for t in self.site.things):
                raise NoFit  # that is the name of one thing
            parts += [(w, None)]
        else:
            parts += [(word, None)]
            if in_:
                parts += [(" ", None)] + in_
        return mode + [cls] + sym, parts, cls

    def target(self, kinds, classes, group=0.4):
        """A thing, several things or a class at a place: (symbols, slots, thing or class)"""
        r = self.r
        if classes and r.random() < group:
            sym, parts, cls = self.group(classes)
            if r.random() < (0.06 if sym[0] == "all" else 0.3 if cls == "everything" else 0):
                t = self.thing(kinds if cls == "everything" else [cls])
                w = self.say(t)
                parts = parts + [(r.choice((" except ", " but not ", " apart from ", " other than ")) + w, None)]
                sym = sym + ["except", t]
            return sym, {"x": lambda: parts, "x0": lambda: parts}, cls
        pool = self.things(kinds)
        t = r.choice(pool)
        if r.random() < 0.07 and len(pool) > 1:
            u = r.choice([p for p in pool if p is not t])
            a, b = self.say(t), self.say(u)
            w = a + r.choice((" and ", " and ", ", ", " plus ", " as well as ")) + b
            return [t, u], {"x": lambda: [(w, None)], "x0": lambda: [(w, None)]}, t
        return [t], self.x(t), t

    def unknown(self):
        """A thing that this site has not."""
        r = self.r
        said = {w for t in self.site.everything() for ws in t.words for w in ws}
        for _ in range(12):
            name = r.choice(ADJ) + " " + r.choice(NOUN) if r.random() < 0.45 else r.choice(NOUN) if r.random() < 0.3 else r.choice(("television", "dishwasher", "sauna", "chandelier", "fountain", "jacuzzi", "lathe", "kiln", "drawbridge", "toaster", "projector", "telescope", "wine cooler", "chicken coop", "boiler", "espresso machine", "spotlight", "lava lamp", "neon sign", "pump 9", "mixer",
                             "garage door", "humidifier", "radio", "cement mixer", "xylophone", "hot tub", "server", "doorbell", "robot", "microwave", "treadmill", "laser", "fog machine", "piano", "electric chair", "flux capacitor", invented(r), invented(r), r.choice(COMMON)))
            if r.random() < 0.55:
                name = self.almost(said)
            elif set(name.split()) & said or name in BARE:
                continue
            if name:
                k = self.key("unknown")
                area = ""
                parts = [(r.choice(("the ", "the ", "my ", "")), None), (name, k)]
                if self.site.areas and r.random() < 0.2:
                    area = r.choice(self.site.areas)
                    parts.append((" in " + self.say_area(area), None))
                return ["unknown", Span(k)] + ([area] if area else []), {"x": lambda: parts, "x0": lambda: [(name, k)]}
        raise NoFit

    def almost(self, said):
        """The name of a thing here with another first word: "terrace door" where there is a front door. None if there is no such name."""
        r = self.r
        numbered = [ws for t in self.site.things for ws in t.words if len(ws) > 1 and ws[-1].isdigit()]
        if numbered and r.random() < 0.6:
            ws = list(r.choice(numbered))
            if r.random() < 0.6:
                ws[-1] = r.choice((str(r.randint(1, 9)), str(r.randint(1, 40)), r.choice(NUMBERS)))
            else:
                ws = [r.choice(NUMBERED)] + ws[-1:]
            return None if any(tuple(ws) == tuple(w) or ws[:-1] == list(w[:-1]) and W.same_number(ws[-1], w[-1]) for t in self.site.things for w in t.words) else " ".join(ws)
        names = [ws for t in self.site.things for ws in t.words if len(ws) > 1 and ws[-1].isalpha()]
        if not names:
            return None
        other = r.choice(OTHERS) if r.random() < 0.6 else r.choice(ADJ)
        last = r.choice(names)[-1]
        return None if other in said or any(other in ws for a in self.site.areas for ws in a.words) else other + " " + last

    # ---- values ----
    def v(self, q, thing=None, by=False):
        text, unit = W.value(self.r, q, thing.units.get(q) if thing is not None else None)
        k = self.key("v")
        return k, unit, [(text, k)]

    def amount(self):
        r = self.r
        x = r.random()
        if x < 0.65:
            return ["bit"], r.choice(("a bit", "a little", "a little bit", "slightly", "a tad", "a touch", "a notch", "just a bit", "somewhat", "one notch"))
        return ["lot"], r.choice(("a lot", "much", "a whole lot", "way", "significantly", "quite a bit"))
