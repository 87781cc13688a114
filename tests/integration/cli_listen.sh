#!/usr/bin/env bash
# shoal listen: turns of a pipe, as WAV and as samples, carried out with --ask; what is no sound.
. "$(dirname "$0")/lib.sh"
audio=$root/tests/data/audio
# two commands with a second of silence between them
{ cat "$audio/kitchen_lights.wav"; head -c 48000 /dev/zero; tail -c +45 "$audio/half_sentence.wav"; } >both.wav

run 0 listen --device - --json <both.wav
same "two turns" "$(wc -l <out)" 2
has out "bedroom light"
same "the first" "$(head -1 out >one; mv one out; field text)" "Please turn on the kitchen lights."

tail -c +45 "$audio/kitchen_lights.wav" >raw
run 0 listen --device - --ask --json <raw
same "samples" "$(field text)" "Please turn on the kitchen lights."
same "and what was done" "$(field 'actions[0].room')" kitchen
has out '"reply":"The kitchen lights are now on.'
run 0 listen --device - --ask <"$audio/kitchen_lights.wav"; has out "Please turn on the kitchen lights."; has out '"action":"turn_on"'
head -c 1000000 /dev/zero >silence; run 0 listen --device - <silence; same "silence" "$(cat out)" ""
: >empty; run 0 listen --device - <empty; same "nothing" "$(cat out)" ""
{ head -c 20 "$audio/kitchen_lights.wav"; printf '\007\000'; tail -c +23 "$audio/kitchen_lights.wav"; } >law.wav
run 1 listen --device - <law.wav; has err "samples of kind 7"
printf 'RIFF....WAVEdata....' >bare.wav; run 1 listen --device - <bare.wav; has err "says nothing about its samples"
{ head -c 4096 /dev/zero; printf '\000\000\300\177'; } >nan; run 1 listen --device - --format f32 <nan; has err "not a finite number"
# a wake word: what is said without it is not heard, and it is no part of what is said behind it
{ cat "$audio/kitchen_lights.wav"; head -c 48000 /dev/zero; tail -c +45 "$audio/hey_shoal.wav"; } >woken.wav
run 0 listen --device - --wake "hey shoal" --json <woken.wav
same "one turn" "$(wc -l <out)" 1
has out "turn on the kitchen lights"; same "the word is no part of it" "$(grep -c hoal out)" 0
same "behind the first command" "$(field start | cut -d. -f1)" 4
run 0 listen --device - --wake "Hey-Shoal" <"$audio/kitchen_lights.wav"; same "not woken" "$(cat out)" ""
run 1 listen --device - --wake computer <"$audio/kitchen_lights.wav"; has err 'the included wake word is "hey shoal"'
run 1 listen --device - --wake "$root/models/anomaly/" <"$audio/kitchen_lights.wav"; has err "anomaly"
run 0 wake "$audio/hey_shoal.wav" "$audio/kitchen_lights.wav"; has out "hey_shoal.wav: 1."; same "only there" "$(wc -l <out)" 1
run 0 wake --json --word "$root/models/wake/" "$audio/kitchen_lights.wav"; same "nothing found" "$(field 'words.length')" 0
run 1 wake "$root/README.md"; has err "README.md"
run 1 listen --device no-such-microphone </dev/null; has err "microphone"
finish
