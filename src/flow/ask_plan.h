/* ask_plan.h - the answer of an ask, as plain data: the plan (actions for the program that carries
 * them out, and how the text was understood), the reply, and the steps with their times.
 *
 * The plan is an event of a sink, so a codec can encode it, and another node can build an equal
 * one: everything is strings, numbers and lists, and nothing points into an engine.
 *
 * Thread:    read-only once it is complete.
 * Ownership: one owner: the builder keeps it, and everything it points to, in one arena or table.
 *            sink.h says how long readers may use it. */
#ifndef SHOAL_FLOW_ASK_PLAN_H
#define SHOAL_FLOW_ASK_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "wire/json_out.h"

#define ASK_PLAN_MAX_FIELDS 24u
#define ASK_PLAN_MAX_ITEMS 32u  /* items that a text may list */
#define ASK_PLAN_MAX_LIST 2048u /* entries of a field: the things of a home */

struct ask_plan_field { /* one member of an action's JSON object */
    const char *key;
    const char *text; /* NULL: a number, or items */
    double number;
    const char *const *items;
    uint32_t n_items; /* 0: no items, a text or a number */
};

struct ask_plan_again {         /* repetition of an action; without days and a period: once */
    uint32_t days;              /* bits: 0 Monday to 6 Sunday; 0: none */
    int64_t period_s, first_s;  /* instead of days: period in seconds, and the first time */
    uint32_t minute;            /* minute of the day, local time */
    uint32_t sun;               /* enum sun_event instead of a minute; 0: none */
    double latitude, longitude; /* with `sun` */
    const char *words;          /* "every day" */
};

struct ask_plan_action {
    const char *name;
    struct ask_plan_field fields[ASK_PLAN_MAX_FIELDS];
    uint32_t n_fields;
    /* for the scheduler; not part of its JSON */
    int64_t due_s;    /* when it should happen, Unix time; 0: now */
    bool due_counted; /* relative to now: "in 20 minutes" */
    bool due_told;    /* the wording leaves the moment open, so the reply must state it */
    struct ask_plan_again again;
};

struct ask_plan_entity {
    const char *type, *text;
};

struct ask_plan_clause { /* a part of the text, as the models understood it; no string is NULL */
    const char *text;
    const char *intent, *router;
    const char *flow; /* the flow of the router's label; "": none */
    float intent_p, router_p;
    const char *act; /* the speech act: "command", "ask", "negate", ...; only a command acts */
    float act_p;     /* probability that there is a command */
    const struct ask_plan_entity *entities;
    uint32_t n_entities;
};

/* What a plan leaves open: another application may know it. Only for sinks in this process; nothing
 * carries it to another node. */
enum ask_plan_open {
    ASK_PLAN_SETTLED,
    ASK_PLAN_TALK,     /* it may be a question, and the plan has something to say to it */
    ASK_PLAN_QUESTION, /* a question that it cannot answer */
};

struct ask_plan {
    const struct ask_plan_action *const *actions;
    uint32_t n_actions;
    const struct ask_plan_clause *clauses;
    uint32_t n_clauses;
    const char *const *contexts; /* facts for the reply model: each is one generation */
    uint32_t n_contexts;
    enum ask_plan_open open;
};

struct ask_plan_step { /* steps with their times, for --explain and the page's waterfall */
    const char *name;
    const char *model;     /* "encoder", "reply"; NULL: rules */
    uint64_t start_ns, ns; /* start_ns: since the request began */
    uint32_t tokens;       /* encoder: prefill; reply: decode */
};

struct ask_plan_answer { /* the whole answer, once the request is done */
    const struct ask_plan *plan;
    const char *reply; /* not NUL-terminated */
    size_t reply_bytes;
    const struct ask_plan_step *steps;
    uint32_t n_steps;
    uint64_t total_ns;
};

/* A field of an action; NULL: it has none of that name. */
const struct ask_plan_field *ask_plan_field_of(const struct ask_plan_action *o, const char *key);
/* The text of a field; NULL: none, or it is not a text. */
const char *ask_plan_text_of(const struct ask_plan_action *o, const char *key);
/* A deep copy in the arena; NULL: out of memory. */
const struct ask_plan *ask_plan_copy(const struct ask_plan *plan, struct arena *a);
/* A copy of the name and the fields of an action, in the arena; NULL: its memory is out. */
struct ask_plan_action *ask_plan_action_copy(const struct ask_plan_action *action, struct arena *a);
/* The replacement of a text; NULL: out of memory. */
typedef const char *(*ask_plan_editor)(void *ctx, const char *text);
/* A copy with other texts; NULL: out of memory. */
const struct ask_plan *ask_plan_edit(const struct ask_plan *plan, struct arena *a,
                                     ask_plan_editor edit, void *ctx);
/* The action as a JSON object. */
void ask_plan_action_json(struct json_out *j, const struct ask_plan_action *action);
/* actions, clauses and contexts as members of the open object. */
void ask_plan_json(struct json_out *j, const struct ask_plan *plan);
/* {"actions":[...],"reply":"..."} as members of the open object; explain: also clauses with labels
 * and confidence, contexts and steps. */
void ask_plan_answer_json(struct json_out *j, const struct ask_plan_answer *a, bool explain);
/* Clauses and contexts in lines for a person. */
void ask_plan_explain(struct buf *b, const struct ask_plan *plan);

#endif
