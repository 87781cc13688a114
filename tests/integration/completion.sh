#!/usr/bin/env bash
# Completions for one shell: the shell accepts the script, and offers what help shows.  Skipped (77)
# where the shell is not installed.  Arguments: shoal, cli_tool, bash|zsh|fish.
shell=$3
command -v "$shell" >/dev/null || { echo "skipped: $shell is not installed"; exit 77; }
. "$(dirname "$0")/lib.sh"

run 0 completion "$shell"
empty err
cp out script
checked=$((checked + 1))
"$shell" -n script || fail "$shell does not accept its script"

# offered WORD...: the completions that the shell offers for the last word of a command line.
case $shell in
    bash)
        offered() {
            bash -c '. ./script; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shoal 2>/dev/null; printf "%s\n" "${COMPREPLY[@]}"' - "$@" | sort
        }
        ;;
    fish)
        export HOME=$tmp
        # One fish for all questions, because it starts slower than it answers. The bar preserves an
        # empty last word.
        coproc fish { fish --no-config -c 'source script
            while read line; complete -C (string replace -r "\|\$" "" -- $line | string collect); echo .; end'; }
        exec {ask}>&"${fish[1]}" {answer}<&"${fish[0]}"
        offered() {
            local line
            echo "$*|" >&"$ask"
            while read -r line <&"$answer" && [ "$line" != . ]; do echo "$line"; done | cut -f 1 | sort
        }
        ;;
    zsh) # its completions need a terminal; check that it loads and has every name
        checked=$((checked + 1))
        zsh -f -c 'autoload -Uz compinit && compinit -D -u && source ./script && [ "${_comps[shoal]}" = _shoal ]' 2>err ||
            { fail "zsh does not load its script"; cat err; }
        offered() {
            case "$*" in
                "shoal ") sed -n "/shoal_commands=(/,/^    )/s/^ *'\([a-z]*\):.*/\1/p" script ;;
                "shoal "*" ") sed -n "/^        $2)/,/^    )/s/^ *'\([a-z-]*\):.*/\1/p" script ;;
                *-) # every option of the page's function
                    local name="${*:1:$#-1}"
                    name=${name// /_}
                    sed -n "/^_$name()/,/^}/p" script | grep -oE -- "--[a-z0-9-]+" ;;
            esac | sort -u
        }
        ;;
esac

commands=$("$shoal" help | sed -n '/^Examples/q; s/^  \([a-z]*\) .*/\1/p' | sort)
with_verbs=
for c in $commands; do
    "$shoal" "$c" --help | grep -q '^Verbs:$' && with_verbs="$with_verbs $c"
done
differ "commands with verbs" "$with_verbs" ""
verbs_of() { "$shoal" "$1" --help | sed -n '/^Verbs/,$s/^  \([a-z-]*\) .*/\1/p' | sort; }
differ "commands" "$commands" ""
same "commands" "$(offered shoal "" | grep -vE '^(help|version)$')" "$commands"
for c in $with_verbs; do
    same "verbs of $c" "$(offered shoal "$c" "")" "$(verbs_of "$c")"
done
page() { # command [verb]: exactly the long options of its help
    local want got
    want=$("$shoal" "$@" --help | grep -oE '^ {2}(-[a-zA-Z],|   ) --[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+' | sort -u)
    got=$(offered shoal "$@" - | grep -oE -- '^--[a-z0-9-]+$')
    differ "options of $*" "$want" ""
    same "options of $*" "$got" "$want"
}
for c in $commands; do
    case " $with_verbs " in
        *" $c "*) for v in $(verbs_of "$c"); do page "$c" "$v"; done ;;
        *) page "$c" ;;
    esac
done
if [ "$shell" != zsh ]; then
    same "the rest of an option" "$(offered shoal ask --expl)" "--explain"
    same "words of a choice" "$(offered shoal generate --kv "")" "$(printf 'f16\nq8')"
    same "words of a choice, begun" "$(offered shoal generate --log-level d)" "debug"
    touch here.gguf
    same "files" "$(offered shoal generate -m here)" "here.gguf"
    same "files as arguments" "$(offered shoal model show here)" "here.gguf"
    same "no files for numbers" "$(offered shoal generate --seed here)" ""
fi
finish
