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

enum home_word { /* the roles of a word, as bits */
                 HOME_WORD_DROP = 1u << 0,
                 HOME_WORD_JOIN = 1u << 1,
                 HOME_WORD_JOIN_ALWAYS = 1u << 2,
                 HOME_WORD_VERB = 1u << 3,
                 HOME_WORD_POLITE = 1u << 4,
                 HOME_WORD_FREE_TEXT = 1u << 5,
                 HOME_WORD_TITLE = 1u << 6,
                 HOME_WORD_REPEAT_VERB = 1u << 7,
                 HOME_WORD_REPEAT_FIRST = 1u << 8,
                 HOME_WORD_REPEAT_BEFORE = 1u << 9,
                 HOME_WORD_REPEAT_LAST = 1u << 10,
                 HOME_WORD_REPEAT_ANY = 1u << 11,
                 HOME_WORD_ARTICLE = 1u << 12,
};

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
    bool gather;                   /* all pieces form one text, from the first word to the last */
    bool to_you;                   /* shown as said to the listener: "my" is "your" */
    const struct home_slot *until; /* several texts are a list, until this slot is filled */
    const char *question;          /* the question for it; NULL: says.missing */
    struct home_list known_words;
    struct strmap known;            /* allowed last words; none: any */
    struct home_list known_endings; /* endings to strip from that word */
};

struct home_when { /* when or how long, for an action that has no slot for it */
    const struct home_slot *slot;
    struct home_list after; /* preceding words that select this row; none: any other word */
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
    struct home_list words;           /* the clause must have one; none: always */
    const struct home_slot **with;    /* slots that must be there; NULL-terminated */
    const struct home_slot **without; /* slots that must be missing; NULL-terminated */
    bool alone;                       /* only if the clause names nothing else */
    const struct home_slot *from;     /* its text moves to `slot`; NULL: value */
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
    struct { /* entities that fill a slot with another name */
        const struct home_slot *entity, *slot;
    } accepts[HOME_MAX_SLOTS];
    uint32_t n_accepts;
    const struct home_default **defaults; /* in order; NULL-terminated */
    bool can_wait;
    bool read_only; /* only a reader finds it: the other models have no label for it */
    bool amounts;   /* "half" is a value here */
    const struct home_unit *unit; /* of a bare number; NULL: none */
    const struct home_slot *compute;
    struct home_template answer; /* n 0: none */
    const char *reason;          /* why it cannot be answered; NULL: it can, or is not a question */
    const struct home_slot *reason_if[HOME_MAX_SLOTS]; /* answer, except with one of these */
    uint32_t n_reason_if;
    struct home_list must;       /* the clause must contain one; none: any words */
    bool statement;              /* expressed as a statement: "there is a leak at pump 7" */
    bool relative;               /* "by 2 degrees" changes the value */
    struct home_template change; /* the words for that; n 0: those of say */
    struct home_template say;    /* what it does, in words: "unlock the {device}"; n 0: its name */
    const struct home_effect *effect; /* NULL: it changes nothing */
    enum home_live_kind live;         /* a question that sensors and alarms can answer */
    struct home_template state;       /* line of a question about a known state; n 0: none */
    enum home_later_kind rings; /* what it sets: a timer, ...; HOME_LATER_ACTION: none of these */
};

/* ---- safety of actions (home_table_safety.c, home_table_gate.c) ---- */

enum home_speech { /* the speech act of a clause */
                   HOME_SPEECH_COMMAND,
                   HOME_SPEECH_ASK,
                   HOME_SPEECH_NEGATE,
                   HOME_SPEECH_SUPPOSE,
                   HOME_SPEECH_REPORT,
                   HOME_SPEECH_RETRACT,
                   HOME_SPEECH_NONE, /* not addressed to us */
};

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
    float threshold; /* smallest confidence of the intent */
    bool confirm;    /* in words, before it happens */
    struct home_rules rules;
};

struct home_limit {        /* usual limits of a number; the first row that matches */
    struct home_rule when; /* by kinds and abilities */
    const struct home_unit *unit;
    double min, max;
};

struct home_unless {                            /* words that change or exclude an action */
    const struct home_action *action, *instead; /* instead NULL: none */
    struct home_list words;
    /* match only if its last word is one of them; NULL: anywhere in the clause */
    const struct home_slot *slot;
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
    struct home_pairs heard;                   /* words and the phrases that were said */
    struct home_list kinds, all_kinds, named_kinds; /* of things that rest safely */
    const char *everything;
    const struct home_action *device, *machine, *power;
};

enum home_say { /* texts that the program says itself */
                HOME_SAY_ASK = HOME_SPEECH_ASK,
                HOME_SAY_NEGATE = HOME_SPEECH_NEGATE,
                HOME_SAY_SUPPOSE = HOME_SPEECH_SUPPOSE,
                HOME_SAY_REPORT = HOME_SPEECH_REPORT,
                HOME_SAY_RETRACT = HOME_SPEECH_RETRACT,
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
                HOME_SAY_KEPT,      /* what stays as it is */
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
                HOME_SAY_READING,
                HOME_SAY_ALARM,
                HOME_SAY_ALARM_OVER,
                HOME_SAY_NO_ALARM,
                HOME_SAY_NO_STOP, /* the home has nothing that can be stopped */
                HOME_SAY_COUNT,
};

struct home_reword_table {       /* rewording into the words that the models know */
    struct home_list fillers;    /* phrases that say nothing: "um" */
    struct home_list gerund;     /* phrases before a verb in "ing": "would you mind" closing ... */
    struct home_pairs wants;     /* phrases that begin a text, as commands: "some light" */
    struct home_pairs tells;     /* verbs before a person, with their meaning: "ask" is "tell" */
    struct home_list reasons;    /* phrases that begin a reason: "it's" late, could you ... */
    struct home_list is;         /* words inside a reason: dinner "is" ready */
    struct home_list manner;     /* phrases before a word that adds nothing: "but not too" loud */
    struct home_list each;       /* "every", "each": the same as `all` and a plural */
    const char *all;             /* NULL: each is empty */
    struct home_list everywhere; /* phrases that add nothing to `all`: "in every room" */
    struct home_list except;     /* phrases before an exception */
    struct home_list beside;     /* words beside names there: "one" */
    struct home_list kept;       /* verbs that keep a state: "keep" */
    struct home_list corrects;   /* phrases before a correction */
    struct home_list from_now;   /* phrases behind a duration: in that time */
};

struct home_later_table { /* list NULL: the table lacks this part */
    const struct home_action *cancel[HOME_LATER_COUNT], *list;
    struct home_list words[HOME_LATER_COUNT]; /* words for each kind: "timer" */
    struct home_list cancel_words, list_words;
    struct home_list all;    /* "cancel all timers" */
    struct home_list skip;   /* words that do not say which one */
    struct home_list own;    /* words that make an alarm a person's, not a machine's */
    struct home_pairs days;  /* "tomorrow" is 1 */
    struct home_pairs parts; /* "evening" is 19:00 */
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

struct home_plans { /* how plans of a reader become actions; n_classes 0: no reader */
    float act_p;    /* smallest probability of a plan that is carried out */
    float ask_p;    /* ... of one that is offered */
    struct home_class *classes;
    struct home_plan_quantity *quantities;
    uint32_t n_classes, n_quantities;
    struct home_pairs verbs;  /* "on" is "turn_on" */
    struct home_pairs states; /* "is_on" is "on" */
    struct home_sense {
        const char *state;
        struct home_list kinds; /* of sensors that know it: "is_low" a "battery" */
    } * senses;
    uint32_t n_senses;
};

struct home_lists_table { /* add NULL: the table lacks this part */
    const struct home_action *add, *remove, *clear, *ask;
    struct home_list add_words, remove_words, clear_words; /* phrases that begin a text */
    struct home_list ask_words, has_words; /* "what is" on the list; "is" milk on the list */
    struct home_list places;               /* words in front of the list: "to", "from" */
    struct home_list words;                /* "list" */
    struct home_list all;                  /* "everything" */
    const char *usual;                     /* the list without a name: "shopping" */
};

struct home_help_table { /* the answer to "what can you do", in parts; each only if it is true */
    struct home_list phrases;
    struct home_template things, simulated, later, lists, live, always; /* n 0: none */
};

struct home_opposite { /* two actions that words separate better than the model */
    const struct home_action *action[2];
    struct home_list words[2];
    const struct home_action *both; /* used if words of both occur; NULL: the model decides */
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
    const char *encoder, *reply; /* names of the models */
    const char *intent_labels, *router_labels, *entity_labels, *out_of_scope;
    const char *reader;           /* model that reads texts into plans; NULL: none */
    const char *act, *act_labels; /* model and labels of the speech act; NULL: only rules */
    struct home_list chat_flows;

    float speech_confidence;                 /* smallest confidence of a command */
    struct home_list cues[HOME_SPEECH_NONE]; /* phrases that make a clause something else */
    struct home_list but;                    /* words that begin a separate sentence */
    struct home_list keep;                   /* phrases that disable a cue */
    struct home_stop stop;
    struct home_risk_class risk[HOME_RISK_COUNT];
    struct home_rules rest; /* deeds that bring a thing to rest: never dangerous */
    struct home_limit *limits;
    struct home_quantity *quantities;
    struct home_unless *unless;
    uint32_t n_limits, n_quantities, n_unless;
    struct home_list wrap, tail; /* polite phrases around a command */
    struct home_list yes, no;    /* answers to "shall I" */
    struct home_list pronouns;   /* "it", "them" */
    struct home_list places;     /* "there" */
    struct home_list front;      /* words before a time or a room: "at", "in" */
    struct home_list others;     /* phrases such as "other one" */
    struct home_list days;       /* phrases such as "tomorrow evening" */
    struct home_list again, too; /* around an additional room or thing */
    struct home_reword_table reword;
    struct home_list verbs;                   /* verbs that begin a command */
    struct home_list state_questions;         /* phrases that begin one: "what is" on? */
    struct home_list state_words;             /* filler words there: "still" */
    struct home_list change_by, change_after; /* "by" two degrees; two degrees "warmer" */
    struct home_list change_down;             /* "lower", "colder" */
    struct home_template say[HOME_SAY_COUNT]; /* n 0: the table lacks this line */

    /* maps a word to its index in word_bits */
    struct strmap words;
    uint32_t *word_bits;                                          /* HOME_WORD_* */
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
    struct home_pairs slips, slips_last; /* phrases that are always a slip; the last: a last word */
    struct home_list spell_words;        /* possible corrections of a misspelt word */
    struct strmap spell;                 /* those, and words that only look misspelt */
    struct home_kind *kinds;
    uint32_t n_kinds;
    struct home_when when[HOME_MAX_WHEN];
    uint32_t n_when;
    const struct home_slot *id[HOME_MAX_SLOTS]; /* joined; the last one is required */
    uint32_t n_id;

    struct home_list hundred, thousand, point, minus, and_a_half;
    const struct home_unit *amount_unit;
    struct home_pairs amounts;
    const char *duration_plural; /* ending of a unit's word; "": none */
    struct home_pairs duration_replace, duration_phrases;
    struct home_pairs time_replace, time_words, time_parts;
    struct home_list time_am, time_pm, time_minutes, time_past, time_to;
    struct home_list weekdays, months, date_ordinals, date_drop, date_articles;
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
void home_table_close(struct home_table *t);

/* HOME_WORD_* bits of a plain word. */
uint32_t home_table_word(const struct home_table *t, const char *word);
/* NULL: not in the table. */
const struct home_slot *home_table_slot(const struct home_table *t, const char *name);
const struct home_action *home_table_action(const struct home_table *t, const char *name);

/* "command", "ask", ... */
const char *home_table_speech_name(enum home_speech s);
enum home_speech home_table_speech(const char *name); /* HOME_SPEECH_NONE: no such name */
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
/* The action of a verb of the plan language, what a state is called; NULL: none. */
const struct home_action *home_table_verb(const struct home_table *t, const char *verb);
/* Kinds of sensors that know a state: "is_low"; NULL: the table does not say. */
const struct home_list *home_table_senses(const struct home_table *t, const char *state);
const char *home_table_state(const struct home_table *t, const char *state);
/* The kind that the words of a name suggest, the last ones first: that of "oven light" is "light",
 * that of "grill plug" is what hangs on the plug. NULL: none. */
const struct home_kind *home_table_kind_named(const struct home_table *t, const char *name);
/* Is a kind, which may be NULL, of this name, or a special case of one? */
bool home_table_kind_is(const struct home_kind *k, const char *name);
/* Is there an action that sets this ability? */
bool home_table_ability(const struct home_table *t, const char *name);
/* A unit by its name or one of its words, in any case of letters; NULL: not in the table. */
const struct home_unit *home_table_unit(const struct home_table *t, const char *name);
/* NULL: the ability is no number, or not in the table. */
const struct home_quantity *home_table_quantity(const struct home_table *t, const char *ability);

bool home_table_is_clock(const char *s); /* "07:30" */
bool home_table_lists(const struct home_list *l, const char *word);
/* How many words from the i-th on form the longest phrase of a list; 0: none. */
uint32_t home_table_phrase(const struct home_list *l, const struct home_words *w, uint32_t i);

#endif
