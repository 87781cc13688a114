#!/usr/bin/env bash
# shoal transcribe: real speech in several formats, as text, captions and JSON; long sounds; what is no
# sound.
. "$(dirname "$0")/lib.sh"
audio=$root/tests/data/audio
jfk="And so, my fellow Americans, ask not what your country can do for you, ask what you can do for your country."
amiable="He might even have been made amiable himself."

run 0 transcribe "$audio/jfk.flac"; same "flac" "$(cat out)" "$jfk"
run 0 transcribe "$audio/amiable.wav" "$audio/amiable.mp3" "$audio/amiable.opus"
same "three formats" "$(cat out)" "$(printf '%s\n%s\n%s' "$amiable" "$amiable" "$amiable")"
run 0 transcribe --json "$audio/jfk.flac"; same "json" "$(field text)" "$jfk"
same "duration" "$(field duration)" 11
same "end of speech" "$(field 'segments[0].end')" 10.692
run 0 transcribe --json --no-vad "$audio/jfk.flac"; same "without the detector of speech" "$(field text)" "$jfk"
same "the end of all" "$(field 'segments[0].end')" 11
run 0 transcribe --words -o srt "$audio/kitchen_lights.wav"; same "a caption for each word" "$(grep -c -e "-->" out)" 6; has out "kitchen"
run 0 transcribe "$audio/cards.flac"; has out "four of cloves"
run 0 transcribe --phrases "four of clubs, kitchen lamp" "$audio/cards.flac"; has out "four of clubs"
run 0 transcribe -o srt "$audio/amiable.wav"
same "srt" "$(cat out)" "$(printf '1\n00:00:00,000 --> 00:00:03,172\n%s' "$amiable")"
run 0 transcribe -o vtt "$audio/amiable.wav"; has out "WEBVTT"; has out "00:00:00.000 --> 00:00:03.172"

# half an hour of silence has no text, and costs as much memory as a minute
{ head -c 40 "$audio/amiable.wav"; printf '\000\350\156\003'; } >silence.wav && truncate -s 57600044 silence.wav
run 0 transcribe --json silence.wav; same "silence" "$(field text)" ""; same "its duration" "$(field duration)" 1800

run 2 transcribe; has err "FILE"
run 1 transcribe nothing.wav; has err "cannot open nothing.wav"
: >empty.wav; run 1 transcribe empty.wav; has err "empty.wav: the file is empty"
echo "no sound, but words of a text file" >text.wav; run 1 transcribe text.wav; has err "text.wav: this is not a sound"
run 1 transcribe .; has err "not a regular file"
run 1 transcribe -m "$root/models/reader.gguf" "$audio/jfk.flac"; has err "cannot transcribe; it can: classify"
run 1 classify -m "$root/models/hear.gguf" hello; has err "it can: transcribe"
run 1 generate -m "$root/models/hear.gguf" hello; has err "transcribe"

# Whisper with random weights: the file, and what model convert makes of it
whisper=$root/tests/data/whisper/whisper.bin
run 0 transcribe --json -m "$whisper" --language de "$audio/kitchen_lights.wav"; same "language" "$(field language)" de; text=$(field text)
run 0 model convert "$whisper" w.gguf
run 0 transcribe --json -m w.gguf --language de "$audio/kitchen_lights.wav"; same "converted" "$(field text)" "$text"
run 1 transcribe -m "$whisper" --language xx "$audio/kitchen_lights.wav"; has err "does not hear the language 'xx'"
run 1 transcribe --language de "$audio/kitchen_lights.wav"; has err "it hears: en"
run 1 transcribe --translate "$audio/kitchen_lights.wav"; has err "does not translate"
finish
