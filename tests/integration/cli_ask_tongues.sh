#!/usr/bin/env bash
# `shoal ask` in German, French and Spanish: the language of the home file chooses the table, commands are carried out, what is
# none does nothing, and replies are in the language. Arguments: shoal, cli_tool.
. "$(dirname "$0")/lib.sh"
sets=$root/tests/data/ask/tongues
export SHOAL_MODELS=$root/models
for language in de fr es; do
    run 0 eval ask --home "$sets/$language.yaml" "$sets/$language.jsonl" --json
    rows=$(field all.rows) right=$(field all.right)
    echo "$language: $right of $rows rows wholly right"
    checked=$((checked + 2))
    [ "$rows" -ge 13 ] || fail "$rows rows, expected 13 or more"
    [ $((right * 100)) -ge $((rows * 90)) ] || fail "$right of $rows rows in $language are wholly right, expected 90 %"
    same "non-commands in $language acted on" "$(field all.acted)" 0
done
run 0 ask --home "$sets/de.yaml" "Mach das Küchenlicht an"
has out "Erledigt: küchenlicht einschalten."
run 0 ask --home "$sets/fr.yaml" "Allume le plafonnier"
has out "C'est fait : allumer plafonnier"
run 0 ask --home "$sets/es.yaml" "¿Qué hora es?"
has out "Son las"
run 0 ask --home "$sets/de.yaml" "Bitte schließ die Haustür auf"
has out "Soll ich haustür aufschließen?"
printf 'rooms: []\ndevices: [{id: l, name: Stehlampe, kind: light}]\n' >plain.yaml
run 0 ask --language de --home plain.yaml "Mach die Stehlampe an"
has out "Erledigt: stehlampe einschalten."
run 1 ask --language xx "hello"
has err 'no words for the language "xx"'
run 0 ask --language fr --home "$sets/de.yaml" "Quelle heure est-il ?"
has out "Il est "
printf 'language: xx\nrooms: []\n' >xx.yaml
run 1 ask --home xx.yaml "hello"
has err 'no words for the language "xx"'
printf 'language: de\nrooms: []\n' >de.yaml
run 1 ask --table "$root/models/home.json" --home de.yaml "hallo"
has err "the home is in 'de', but the table of words in 'en'"
finish
