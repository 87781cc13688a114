/* home_table.h - one home application as data: its words, slots, actions, units and lines
 * (models/home.json; models/home.md explains every key).
 *
 * A table is read once, checked strictly, and compiled into lookup structures: afterwards a word, a
 * slot or an action is found by one hash.
 *
 * Thread:    immutable after open or parse; any number of threads may read it.
 * Ownership: open and parse give the table to the caller, close takes it back (NULL is fine).
 *            Everything reached through it lives as long as it does.
 * Failure:   SHOAL_EFORMAT or SHOAL_ELIMIT with the path of the key ("actions.open.slots[2]: ..."),
 *            SHOAL_EIO, SHOAL_ENOMEM; *out is then NULL. */
#ifndef SHOAL_APPS_HOME_HOME_TABLE_H
#define SHOAL_APPS_HOME_HOME_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/strmap.h"
#include "apps/home/table/home_template.h"
#include "apps/home/table/home_words.h"

#define HOME_TABLE_MAX_BYTES ((size_t)256 << 10)
#define HOME_MAX_SLOTS 8u /* of one action */
#define HOME_MAX_WHEN 8u

struct home_list { /* a few texts, in the order of the table */
    const char *const *w;
    uint32_t n;
};

struct home_pair { /* a word or phrase, and what it stands for */
    const char *from, *to;
    double number;
};

struct home_pairs {
    const struct home_pair *p;
    uint32_t n;
};

enum home_slot_type {
    HOME_SLOT_TEXT,
    HOME_SLOT_VALUE,
    HOME_SLOT_DURATION,
    HOME_SLOT_TIME,
    HOME_SLOT_DATE,
};

struct home_slot {
    const char *name; /* the entity's type, and the key in an action */
    enum home_slot_type type;
    bool lower, strip_articles;
    bool to_you;                    /* shown as said to the listener: "my" is "your" */
    const struct home_slot *until;  /* several texts are a list, until this slot is filled */
    const char *question;           /* the question for it; NULL: says.missing */
    struct strmap known;            /* allowed last words; none: any */
    struct home_list known_endings; /* endings to strip from that word */
    struct home_pairs means;        /* words and the name that programs know: "rot" is "red" */
    bool only;                      /* and no others */
};

struct home_when { /* when or how long, for an action that has no slot for it */
    const struct home_slot *slot;
    const char *show, *key; /* in the context line, in the action */
    const char *say;        /* in front of it in a sentence: "for" */
    bool later;             /* the action is then scheduled */
};

struct home_unit {
    const char *name;
    struct home_template show, show_one; /* show_one: for the number 1 */
    const char *of;                      /* the quantity that it measures: "pressure" */
    double factor, offset; /* n of it are n * factor + offset in the quantity's base unit */
};

struct home_default { /* the default of a missing slot */
    const struct home_slot *slot;
    const struct home_slot **with;    /* slots that must be there; NULL-terminated */
    const struct home_slot **without; /* slots that must be missing; NULL-terminated */
    const char *value;
};

enum home_live_kind { HOME_LIVE_NONE, HOME_LIVE_READING, HOME_LIVE_ALARM };

struct home_effect {     /* the effect of an action on its thing */
    const char *ability; /* "power" */
    const char *to;      /* the state that it sets: "on"; NULL: the value of `slot` */
    const struct home_slot *slot;
    const char
        *partly; /* the ability that a value of `slot` sets instead: "position"; NULL: none */
    const struct home_slot *named_by; /* the slot that names the ability; NULL: `ability` */
};

struct home_kind { /* of things: "light" */
    const char *name;
    struct home_list words;     /* words for things of this kind, singular: "lamp" */
    struct home_list named;     /* more words in names of such things, used for no other purpose */
    struct home_list abilities; /* abilities of such a thing unless its file says otherwise */
    const struct home_kind *is; /* the kind that this is a special case of; NULL: none */
    bool as_named;              /* its words in a name say nothing: a plug is what hangs on it */
};

struct home_quantity {              /* an ability whose value is a number */
    const char *ability;            /* "temperature" */
    const struct home_unit **units; /* that it is measured in; the first: of a bare number */
    uint32_t n_units;
    struct home_list words; /* words that name it */
};

enum home_later_kind { /* kinds of schedule entries */
                       HOME_LATER_ACTION,
                       HOME_LATER_TIMER,
                       HOME_LATER_ALARM,
                       HOME_LATER_REMINDER,
                       HOME_LATER_COUNT,
};

struct home_action {
    const char *name;
    const struct home_slot *slots[HOME_MAX_SLOTS];
    uint32_t n_slots;
    const struct home_slot *needs[HOME_MAX_SLOTS];
    uint32_t n_needs;
    const struct home_default **defaults; /* in order; NULL-terminated */
    bool can_wait;
    bool plain;   /* the reply model has no words for it: the program says it itself */
    bool amounts; /* "half" is a value here */
    const struct home_unit *unit; /* of a bare number; NULL: none */
    const struct home_slot *compute;
    struct home_template answer; /* n 0: none */
    const char *reason;          /* why it cannot be answered; NULL: it can, or is not a question */
    const struct home_slot *reason_if[HOME_MAX_SLOTS]; /* answer, except with one of these */
    uint32_t n_reason_if;
    bool relative;               /* "by 2 degrees" changes the value */
    struct home_template change; /* the words for that; n 0: those of say */
    struct home_template say;    /* what it does, in words: "unlock the {device}"; n 0: its name */
    const struct home_effect *effect; /* NULL: it changes nothing */
    enum home_live_kind live;         /* a question that sensors and alarms can answer */
    struct home_template state;       /* line of a question about a known state; n 0: none */
    enum home_later_kind rings; /* what it sets: a timer, ...; HOME_LATER_ACTION: none of these */
};

/* ---- safety of actions (home_table_safety.c, home_table_gate.c) ---- */

enum home_risk { HOME_RISK_HARMLESS, HOME_RISK_DISTURBING, HOME_RISK_DANGEROUS, HOME_RISK_COUNT };

struct home_rule {                   /* selects deeds; an empty list: any */
    struct home_list actions, kinds; /* kinds: of the thing */
    struct home_list abilities, to;  /* what is set, and to which state */
};

struct home_rules {
    const struct home_rule *v;
    uint32_t n;
};

struct home_risk_class {
    bool confirm; /* in words, before it happens */
    struct home_rules rules;
};

struct home_limit {        /* usual limits of a number; the first row that matches */
    struct home_rule when; /* by kinds and abilities */
    const struct home_unit *unit;
    double min, max;
};

enum home_stop_way {                 /* how the words bring a thing to rest */
                     HOME_STOP_HALT, /* it stops running */
                     HOME_STOP_OFF, /* "saw off": a machine stops running, a device is turned off */
                     HOME_STOP_POWER, /* its power is cut */
                     HOME_STOP_WAYS,
};

struct home_stop { /* words that always stop (apps/home/stop); device NULL: the table has none */
    struct home_list words;                    /* each phrase that stops has one of these */
    struct home_list patterns[HOME_STOP_WAYS]; /* phrases with {thing} */
    struct home_list alone;                    /* phrases that stop everything, said alone */
    struct home_list all, it;                  /* phrases for everything; for the last thing */
    struct home_list before_name;              /* words in front of a name: "that damned" saw */
    struct home_list number;                   /* pump "number" 3 */
    struct home_list beside;                   /* phrases that add nothing: "right now" */
    struct home_list reason;                   /* words that begin a reason: "someone" is inside */
    struct home_list danger;                   /* phrases that tell of danger */
    struct home_list asks;                     /* phrases in front of a command: "can you" */
    struct home_list not_before, not_after;    /* words that make it none, right beside it */
    struct home_list unless, unless_after;     /* the same, anywhere in the sentence */
    struct home_list deny;                     /* phrases that deny what follows */
    struct home_list back;                     /* phrases that take it back */
    struct home_list keep;                     /* phrases that disable those of the lists above */
    struct home_list not ;                     /* phrases that only look like it: "bus stop" */
    struct home_list questions;                /* words that begin a question */
    struct home_list verbs;                    /* words that begin another command */
    struct home_list wrap;                     /* polite phrases in front of those */
    struct strmap known;                       /* words that no name is misspelt in */
    struct home_pairs heard;                   /* words and the phrases that were said */
    struct home_list kinds, all_kinds, named_kinds; /* of things that rest safely */
    const char *everything;
    const struct home_action *device, *machine, *power;
};

enum home_say { /* texts that the program says itself */
                HOME_SAY_ASK,
                HOME_SAY_NEGATE,
                HOME_SAY_SUPPOSE,
                HOME_SAY_REPORT,
                HOME_SAY_RETRACT,
                HOME_SAY_UNSURE,
                HOME_SAY_CONFIRM,
                HOME_SAY_DECLINED,
                HOME_SAY_EXPIRED,
                HOME_SAY_LIMIT,
                HOME_SAY_DONE,
                HOME_SAY_SCHEDULED,
                HOME_SAY_FAILED,
                HOME_SAY_MISSING,
                HOME_SAY_UNKNOWN,
                HOME_SAY_REST,
                HOME_SAY_PRONOUN,
                HOME_SAY_NOT_HERE,
                HOME_SAY_WHICH,
                HOME_SAY_STATE,
                HOME_SAY_STATES,
                HOME_SAY_NO_STATES,
                HOME_SAY_DUE,       /* when exactly it will happen */
                HOME_SAY_LISTED,    /* what is scheduled */
                HOME_SAY_NOTHING,   /* nothing of that kind is scheduled */
                HOME_SAY_CANCELLED, /* it will not happen */
                HOME_SAY_PAUSED,    /* it waits, in this order with the two below */
                HOME_SAY_RESUMED,   /* it goes on */
                HOME_SAY_MOVED,     /* it happens at another time */
                HOME_SAY_NO_END,    /* "for 20 minutes", but without a schedule */
                HOME_SAY_QUANTITY,  /* a number, but of what? */
                HOME_SAY_LONG,      /* text that is too long for any sensible reply */
                HOME_SAY_PRETEND,   /* an action of the simulated home */
                HOME_SAY_SIMULATED, /* nothing is connected that does it */
                HOME_SAY_LIST_ADDED,
                HOME_SAY_LIST_REMOVED,
                HOME_SAY_LIST_MISSING,
                HOME_SAY_LIST_EMPTY,
                HOME_SAY_LIST_ITEMS,
                HOME_SAY_LIST_FULL,
                HOME_SAY_LIST_NAMES,
                HOME_SAY_LIST_NONE,
                HOME_SAY_READING,
                HOME_SAY_ALARM,
                HOME_SAY_ALARM_OVER,
                HOME_SAY_NO_ALARM,
                HOME_SAY_LEFT,    /* words that no part of the plan explains */
                HOME_SAY_NO_STOP, /* the home has nothing that can be stopped */
                HOME_SAY_COUNT,
};

enum home_part { /* parts of sentences: why something does not happen, and how words are joined */
                 HOME_PART_RISK,
                 HOME_PART_NO_LIMITS,
                 HOME_PART_PRESENT,
                 HOME_PART_ABOVE,
                 HOME_PART_BELOW,
                 HOME_PART_SPAN,
                 HOME_PART_UNIT,
                 HOME_PART_STATE,
                 HOME_PART_UNABLE,
                 HOME_PART_GONE,
                 HOME_PART_ACTION,
                 HOME_PART_UNCLEAR,
                 HOME_PART_NOTHING_HAS,
                 HOME_PART_NO_SUCH,
                 HOME_PART_NO_SUN,
                 HOME_PART_NO_SUN_THERE,
                 HOME_PART_NO_PLACE,
                 HOME_PART_NOT_KNOWN,
                 HOME_PART_BEGIN,
                 HOME_PART_REPEAT,
                 HOME_PART_OVER,
                 HOME_PART_OFTEN,
                 HOME_PART_FAR,
                 HOME_PART_TOO_LONG,
                 HOME_PART_CHANGED,
                 HOME_PART_NO_SCHEDULE,
                 HOME_PART_PAUSED,
                 HOME_PART_UNCONNECTED,
                 HOME_PART_OFFLINE,
                 HOME_PART_FAILED,
                 HOME_PART_IT,
                 HOME_PART_HERE,
                 HOME_PART_OR,
                 HOME_PART_PLUS,
                 HOME_PART_MINUS,
                 HOME_PART_PLACE,
                 HOME_PART_EXCEPT,
                 HOME_PART_EXCEPT_IN,
                 HOME_PART_COUNT,
};

enum home_later_turn { HOME_LATER_PAUSE, HOME_LATER_RESUME, HOME_LATER_CHANGE, HOME_LATER_TURNS };

struct home_later_table { /* list NULL: the table lacks this part */
    const struct home_action *cancel[HOME_LATER_COUNT], *list;
    const struct home_action *turn[HOME_LATER_TURNS]; /* NULL: not known */
    struct home_list words[HOME_LATER_COUNT];         /* words for each kind: "timer" */
    struct home_list cancel_words;                    /* phrases that cancel: "delete" */
    struct home_list all;                             /* "cancel all timers" */
    struct home_list skip;                            /* words that do not say which one */
    struct home_list each;                            /* "every" of "every two hours" */
    struct home_list other;                           /* "other" of "every other day" */
    struct home_pairs days;                           /* "tomorrow" is 1 */
    struct home_list past;                            /* days that are over: "yesterday" */
    struct home_pairs parts;                          /* "evening" is 19:00 */
    struct home_pairs every; /* "every weekday": bits from Monday on; 0: impossible */
    struct home_pairs sun;   /* "sunset": enum sun_event */
};

struct home_class {               /* a class of things in plans: "light" */
    const char *name;             /* a word of the plan language */
    struct home_list kinds;       /* of the home file */
    struct home_list words;       /* what people call one or several of them */
    const char *many;             /* several of them, in a reply: "lights" */
    struct home_list means;       /* kinds that are meant where no thing is called so */
    const struct home_class *but; /* meant where a home has none of these; NULL: nothing is */
};

struct home_plan_quantity {        /* what can be set and asked: "temperature" */
    const char *name;              /* a word of the plan language */
    struct home_list words, units; /* what people call it; units of sensors that measure it */
    struct home_list implied;      /* classes whose things have it anyway */
    const struct home_action *set; /* NULL: it cannot be set on a device */
    const char *step;              /* "10 percent": one step up or down; NULL: none */
    const char *leap;              /* the same for a large one */
};

struct home_plans { /* how plans of a reader become actions */
    float act_p;    /* smallest probability of a plan that is carried out */
    float ask_p;    /* ... of one that is offered */
    /* Confidence of a recognizer in words that are spoken: below `heard` they are offered, not
     * carried out; below `overheard` they are nothing. */
    float heard, overheard;
    struct home_class *classes;
    struct home_plan_quantity *quantities;
    uint32_t n_classes, n_quantities;
    struct home_pairs verbs;  /* "on" is "turn_on" */
    struct home_pairs called; /* "on" is "an": names of the program's own, in replies */
    struct home_pairs states; /* "is_on" is "on" */
    struct home_lists_of {
        struct home_list_of {
            const char *name;
            struct home_list list;
        } * p;
        uint32_t n;
    } senses,              /* kinds of sensors that know a state: "is_low" a "battery" */
        evidence,          /* parts of words of which a text must have one, for a verb */
        against,           /* ... must have none, unless it has one against the opposite, too */
        never;             /* ... must have none; also for a state that is asked for */
    struct home_list here; /* phrases for the speaker's room, beside what the reader takes for it */
};

struct home_lists_table { /* add NULL: the table lacks this part */
    const struct home_action *add, *remove, *clear, *create, *ask;
    const struct home_action *all; /* which lists there are */
    const char *usual;             /* the list without a name: "shopping" */
};

struct home_help_table { /* the answer to "what can you do", in parts; each only if it is true */
    struct home_template things, simulated, later, lists, live, always; /* n 0: none */
    struct home_template about; /* the answer to "who are you" */
};

struct home_opposite { /* two actions that undo each other: on and off */
    const struct home_action *action[2];
};

struct home_duration_unit {
    double seconds;
    const char *one, *many;
};

enum home_var { /* names in the templates of lines and answers; slots follow */
                HOME_VAR_ACTION,
                HOME_VAR_SLOTS, /* all slots, "; key: value" each */
                HOME_VAR_RESULT,
                HOME_VAR_REASON,
                HOME_VAR_ASK,
                HOME_VAR_TEXT,
                HOME_VAR_ANSWER,
                HOME_VAR_WEEKDAY,
                HOME_VAR_DAY,
                HOME_VAR_MONTH,
                HOME_VAR_YEAR,
                HOME_VAR_HOUR,
                HOME_VAR_MINUTE,
                HOME_VAR_N,
                HOME_VAR_DO,   /* the action in words */
                HOME_VAR_WHEN, /* when it happens, in words */
                HOME_VAR_STATE,
                HOME_VAR_SLOT, /* + index in the action's slots */
};

struct home_table {
    const char *name, *language;
    struct home_table *next;    /* the same in another language; owned; NULL: no more */
    const char *reader, *reply; /* names of the models; reply NULL: the program says it all */

    struct home_stop stop;
    struct home_risk_class risk[HOME_RISK_COUNT];
    struct home_rules rest; /* deeds that bring a thing to rest: never dangerous */
    struct home_limit *limits;
    struct home_quantity *quantities;
    uint32_t n_limits, n_quantities;
    struct home_list yes, no; /* answers to "shall I" */
    struct home_list articles;
    struct home_list join;     /* "and", "then" */
    struct home_list polite;   /* words that add nothing to a yes: "please" */
    struct home_list front;    /* words before a time or a room: "at", "in" */
    struct home_list elisions; /* articles that are written with the word: "l'" */
    struct home_list idle;     /* words that name nothing to act on: "moment", "kids" */
    struct home_template part[HOME_PART_COUNT];
    struct home_template say[HOME_SAY_COUNT]; /* n 0: the table lacks this line */

    struct strmap slots, actions, units, numbers, duration_units; /* map names to indices */
    struct home_slot *slot;
    struct home_action *action;
    struct home_unit *unit;
    struct home_list vague_units; /* words that leave the scale open: "degrees" */
    struct home_duration_unit *duration_unit;
    uint32_t n_slots, n_actions, n_units;
    struct home_opposite *opposites;
    uint32_t n_opposites;
    struct home_later_table later;
    struct home_plans plans;
    struct home_lists_table lists;
    struct home_help_table help;
    struct home_kind *kinds;
    uint32_t n_kinds;
    struct home_when when[HOME_MAX_WHEN];
    uint32_t n_when;
    const struct home_slot *id[HOME_MAX_SLOTS]; /* joined; the last one is required */
    uint32_t n_id;

    struct home_list hundred, thousand, point, minus, and_a_half;
    struct home_list number_join; /* "et" of "vingt et un" */
    char decimal;                 /* ',' of "21,5" */
    bool compounds; /* words are joined, the last part says the kind: "Küchenlampe" */
    const struct home_unit *amount_unit;
    struct home_pairs amounts;
    const char *duration_plural; /* ending of a unit's word; "": none */
    struct home_pairs duration_replace, duration_phrases;
    struct home_pairs time_replace, time_words, time_parts;
    struct home_pairs time_before; /* minutes before the hour behind it: "halb sieben" is 6:30 */
    bool hour_first;               /* "8 moins 10", not "10 to 8" */
    struct home_list time_am, time_pm, time_minutes, time_past, time_to;
    struct home_list weekdays, months, date_ordinals, date_drop, date_articles;
    struct strmap vocabulary; /* all words that the table is written in */
    struct strmap date_names; /* lower case, to an index: weekdays, then months */
    struct home_pairs operators;
    struct home_list root, percent_of;
    struct home_pairs you;

    struct home_template line_act, line_failed, line_ask, line_chat, line_out_of_scope;
    uint32_t together;    /* lines of actions in one context */
    const char *list_and; /* "and" of "milk, eggs and bread" */

    struct arena arena; /* everything above but the maps */
};

SHOAL_MUST_CHECK int home_table_open(struct home_table **out, const char *path, struct err *e);
SHOAL_MUST_CHECK int home_table_parse(struct home_table **out, const char *json, size_t n,
                                      struct err *e);
/* Closes those of other languages, too. NULL is fine. */
void home_table_close(struct home_table *t);
/* Takes a table of another language, to be found by home_table_in. */
void home_table_add(struct home_table *t, struct home_table *other);
/* The table of a language, "de" or "de-AT"; NULL or "": this one. NULL: there is none. */
const struct home_table *home_table_in(const struct home_table *t, const char *language);

/* NULL: not in the table. */
const struct home_slot *home_table_slot(const struct home_table *t, const char *name);
const struct home_action *home_table_action(const struct home_table *t, const char *name);

const char *home_table_risk_name(enum home_risk r);
/* "action", "timer", "alarm", "reminder" */
const char *home_table_later_name(enum home_later_kind k);
bool home_table_later_kind(const char *name, enum home_later_kind *out);
/* NULL: not in the table. */
const struct home_kind *home_table_kind(const struct home_table *t, const char *name);
/* Of the plan language; NULL: the table does not have it. */
const struct home_class *home_table_class(const struct home_table *t, const char *name);
const struct home_plan_quantity *home_table_plan_quantity(const struct home_table *t,
                                                          const char *name);
/* How a reply calls a name of the program's own: "on" is "an" in German. Names without a word are
 * what they are. */
const char *home_table_called(const struct home_table *t, const char *name);
/* Does a word end in another, in a language that joins them? "Küchenlampe" does in "lampe". */
bool home_table_ends_in(const struct home_table *t, const char *word, const char *end);
/* The word without an article that is written with it: "l'aspirateur". */
const char *home_table_bare(const struct home_table *t, const char *word);
/* The action of a verb of the plan language, what a state is called; NULL: none. */
const struct home_action *home_table_verb(const struct home_table *t, const char *verb);
/* Kinds of sensors that know a state: "is_low"; NULL: the table does not say. */
const struct home_list *home_table_senses(const struct home_table *t, const char *state);
/* Parts of words of which a text must have one, or else it does not mean the verb; NULL: any. */
const struct home_list *home_table_evidence(const struct home_table *t, const char *verb);
/* Those of which it must have none. */
const struct home_list *home_table_never(const struct home_table *t, const char *word);
const struct home_list *home_table_against(const struct home_table *t, const char *verb);
const char *home_table_state(const struct home_table *t, const char *state);
/* The kind that the words of a name suggest, the last ones first: that of "oven light" is "light",
 * that of "grill plug" is what hangs on the plug. NULL: none. */
const struct home_kind *home_table_kind_named(const struct home_table *t, const char *name);
/* Is a word one that the table is written in, a slip away from one, or joined from such? */
bool home_table_knows(const struct home_table *t, const char *word);
/* Is a kind, which may be NULL, of this name, or a special case of one? */
bool home_table_kind_is(const struct home_kind *k, const char *name);
/* Is there an action that sets this ability? */
bool home_table_ability(const struct home_table *t, const char *name);
/* A unit by its name or one of its words, in any case of letters; NULL: not in the table. */
const struct home_unit *home_table_unit(const struct home_table *t, const char *name);
/* NULL: the ability is no number, or not in the table. */
const struct home_quantity *home_table_quantity(const struct home_table *t, const char *ability);

/* A part of a sentence with {text} and {state} filled in; NULL: not needed. */
const char *home_table_part(struct arena *a, const struct home_table *t, enum home_part which,
                            const char *text, const char *state);
bool home_table_is_clock(const char *s); /* "07:30" */
bool home_table_lists(const struct home_list *l, const char *word);
/* How many words from the i-th on form the longest phrase of a list; 0: none. */
uint32_t home_table_phrase(const struct home_list *l, const struct home_words *w, uint32_t i);

#endif
