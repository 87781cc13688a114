#!/usr/bin/env bash
# shoal ask: confirmation at a terminal and in scripts, and a conversation whose turns are lines.  Arguments: shoal, cli_tool.
. "$(dirname "$0")/lib.sh"
export SHOAL_MODELS=$root/models

# a script: nothing dangerous happens without --yes
run 0 ask --no-reply "unlock the front door"
has out '"result":"confirm"'; has err "add --yes"
same "actions" "$(wc -l <out)" 1
run 0 ask --no-reply --yes "unlock the front door"
same "both answers" "$(wc -l <out)" 2
has out '"result":"confirm"'; empty err
tail -n 1 out >last; grep -q '"action":"unlock"' last && ! grep -q confirm last || fail "not unlocked: $(cat last)"
run 0 ask --json "unlock the front door"
same "token" "$(field 'actions[0].token' | wc -c)" 33
run 0 ask --no-reply --yes "turn on the hall light"; same "nothing to confirm" "$(wc -l <out)" 1

# from a pipe: lines are turns of one conversation
printf 'turn on the kitchen lights\n\nturn them off\nunlock the back door\nyes\nyes\n' >in
run 0 ask --no-reply --json <in
same "turns" "$("$tool" jsonl <out)" 5
sed -n 2p out >two; sed -n 4p out >four; sed -n 5p out >five
same "them" "$("$tool" json 'actions[0].device' <two)/$("$tool" json 'actions[0].room' <two)" "lights/kitchen"
same "them" "$("$tool" json 'actions[0].action' <two)" turn_off
same "a yes" "$("$tool" json 'actions[0].action' <four)" unlock
same "a yes too many" "$("$tool" json actions.length <five)" 0
printf 'unlock the back door\nno\nyes\n' >in
run 0 ask --no-reply --json <in; sed -n 3p out >three
same "nothing after a no" "$("$tool" json actions.length <three)" 0
printf 'turn on the fan\n%s\n' "$(printf 'x%.0s' $(seq 5000))" >in
run 1 ask --no-reply <in; has err "maximum"

# things that must stay as they are
run 0 ask --no-reply "turn off all the lights but leave the kitchen lights on"
same "done to the kitchen" "$(grep -c '"result":"simulated".*kitchen_lights\|kitchen_lights.*"result":"simulated"' out)" 0

# a delayed command is understood, but the reply does not promise it
run 0 ask --json "in 20 minutes turn off the fan"
same "later" "$(field 'actions[0].result')/$(field 'actions[0].in_s')" scheduled/1200
has out "only a server (shoal serve) does things later"
run 0 ask --json "open the blinds and water the plants"
has out "I can't help with that"

# at a terminal
cat >script <<'S'
expect [y/N] 
send y\n
expect "unlock"
exit 0
S
checked=$((checked + 1))
"$tool" pty script "$shoal" ask --no-reply "unlock the front door" || fail "a yes at the terminal"
cat >script <<'S'
expect [y/N] 
send \n
expect nothing
exit 0
S
checked=$((checked + 1))
"$tool" pty script "$shoal" ask "unlock the front door" || fail "a no at the terminal"
cat >script <<'S'
expect > 
send open the garage door\n
expect [y/N] 
send actually turn on the hall light\n
expect "turn_on"
expect > 
send unlock the back door\n
expect [y/N] 
send Y\n
expect "unlock"
expect > 
key D
exit 0
S
checked=$((checked + 1))
"$tool" pty script "$shoal" ask --no-reply || fail "a conversation at the terminal"
finish
