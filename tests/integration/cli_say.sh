#!/usr/bin/env bash
# shoal say: what is said is heard again, from files of several forms and from a pipe; the words that are said; what is refused.
. "$(dirname "$0")/lib.sh"
text="The kitchen lights are on, and the heating is set to 19 degrees."

run 0 say -o x.wav "$text"
run 0 transcribe x.wav; same "wav" "$(cat out)" "$text"
run 0 say -o x.flac "$text"
run 0 transcribe x.flac; same "flac" "$(cat out)" "$text"
run 0 say "$text"; cp out piped.wav
cmp -s x.wav piped.wav; same "a pipe gets the same bytes" "$?" 0
echo "$text" >text.txt
"$shoal" say -o - <text.txt | cat >stream.wav
cmp -s <(tail -c +45 x.wav) <(tail -c +45 stream.wav); same "stdin, streamed" "$?" 0
run 0 say -r 2 -o fast.pcm "$text"; run 0 say -o usual.pcm "$text"
same "twice as fast" "$(($(stat -c %s fast.pcm) * 4 < $(stat -c %s usual.pcm) * 3))" 1
same "the same sound" "$(stat -c %s usual.pcm)" "$(($(stat -c %s x.wav) - 44))"

run 0 say --text "It's 21.5 °C at 7:05 p.m., 50 % of 3 kWh."
same "words" "$(cat out)" "it's twenty one point five degrees celsius at seven oh five p m, fifty percent of three kilowatt hours."

run 1 say -o x.wav ""; has err "nothing to say"
run 1 say -o x.wav "$(printf '\001\002')"; has err "nothing to say"
run 1 say -o x.doc hello; has err "must end in .wav"
run 1 say -o nowhere/x.wav hello; has err "nowhere/x.wav"
run 1 say --voice alloy -o x.wav hello; has err "there is no voice 'alloy'; the model has: joe"
run 2 say -r 9 -o x.wav hello; has err "rate"
run 2 say -r nan -o x.wav hello; has err "rate"
run 1 say -m "$root/models/hear.gguf" -o x.wav hello; has err "speak"
finish
