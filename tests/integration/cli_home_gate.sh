#!/usr/bin/env bash
# What the gate does to what is said, from the text to the reply: limits in any unit, changes, missing
# quantities, risk and confirmation, in a brewery. Arguments: shoal, cli_tool.
. "$(dirname "$0")/lib.sh"
export SHOAL_MODELS=$root/models
home=$root/tests/data/ask/homes/brewery.yaml
run 0 home check "$home"; empty err

# says TEXT RESULT REASON: the first action has the result, and the reason contains REASON.
says() {
    run 0 ask --home "$home" --json "$1"
    same "result of \"$1\"" "$(field 'actions[0].result')" "$2"
    [ -z "${3-}" ] || case $(field 'actions[0].reason') in
        *"$3"*) ;;
        *) fail "the reason of \"$1\" is \"$(field 'actions[0].reason')\", expected \"$3\"" ;;
    esac
    checked=$((checked + 1))
}
# replies TEXT: the reply to the last text.
replies() {
    same "reply" "$(field reply)" "$1"
}

# limits, in the unit of the thing
says "set the pressure of FV2 to 9" refused "the maximum is 2 bar"
replies "I can't set the pressure of fv2 to 9: the maximum is 2 bar."
says "set FV1 to 40 psi" refused "the maximum is 2 bar"
says "set the pressure of FV1 to 500 kPa" refused "the maximum is 2 bar"
says "set the temperature of fermenter one to 300 kelvin" simulated
says "set the temperature of fermenter one to 100 fahrenheit" refused "the maximum is 30 degrees"
says "set the temperature of the mash tun to 250" refused "the maximum is 100 degrees"
says "drop the chiller to minus 20 degrees" refused "the minimum is -4 degrees"
says "set the cold room to 20 degrees" refused "the maximum is 8 degrees"
says "set both fermenters to 3 bar" refused "the maximum is 2 bar"
says "set the speed of the mixer to 100 percent" refused 'cannot be set in "percent"'
says "set pump 2 to 400 bar" refused "the maximum is 20 bar"
says "set the flow of pump 2 to 10" confirm

# a number without a quantity, and no quantity that nobody said
says "set FV1 to 1" ask
same "asked for" "$(field 'actions[0].ask')" sensor
replies "Which one do you mean: pressure or temperature?"
says "set the lathe to 250" ask
replies "Which setting do you mean?"
says "set FV2 to 15" refused "the maximum is 2 bar"
says "set fermenter 1 to 1 bar" simulated
replies "The pressure of fv1 is now set to 1 bar. That was only simulated: nothing is connected."
says "set the mixer to 1200 rpm" simulated
replies "The speed of mixer is now set to 1200 rpm. That was only simulated: nothing is connected."

# changes: by their result, or bounded if it is not known
says "increase the pressure of FV1 by 5 bar" refused "whole range is only 2 bar"
says "turn the chiller up by 20 degrees" refused "whole range is only 10 degrees"
says "increase the mixer speed by 500,000 rpm" refused "whole range is only 1500 rpm"
says "increase the pressure of FV1 by 1 bar" confirm
run 0 ask --home "$home" --state states.json --no-reply "set the pressure of FV1 to 150 kPa"
has out '"result":"simulated"'
run 0 ask --home "$home" --state states.json --json "increase the pressure of FV1 by 1 bar"
same "reason" "$(field 'actions[0].reason')" "the maximum is 2 bar"
run 0 ask --home "$home" --state states.json --no-reply "increase the pressure of FV1 by 5 psi"
has out '"result":"simulated"'
grep -q '"ability":"pressure","value":1.84473' states.json || fail "the state is $(cat states.json)"

# what is dangerous waits for a yes, also inside a scene and at a time
says "start the scene opening time" confirm
says "activate baking" confirm
says "activate the night scene" simulated
says "start the lathe at 7" confirm
same "nothing is set to 7" "$(field 'actions[0].action') $(field 'actions[0].time')" "start_machine 07:00"
says "turn on the lathe" confirm
says "turn off the alarm" confirm
says "turn off the cold room" confirm
says "open the front door half way" refused "has no position"
says "open the front door" confirm
says "open the drain valve half way" confirm
says "open the blinds half way" simulated
says "remind me to unlock the front door at 9" scheduled
same "what is done at 9" "$(field 'actions[0].action')" set_reminder
run 0 ask --home "$home" --yes --no-reply "unlock the front door"
has out '"id":"door","result":"simulated"'

# stopping does not
says "stop the lathe" simulated
says "turn off the lathe" simulated
says "stop everything" simulated
finish
