/* ask.h - the flow that is built in (docs/ASK.md): a text is split into clauses, an encoder says
 * what each of them wants, rules make actions of it, a small decoder says it.
 *
 * Nothing here waits: a request goes from step to step on the engines' threads, and its events come
 * there, one at a time.
 *
 * Thread:    ask_submit, ask_cancel and ask_free from any thread; the request's content may be read
 *            in its events and after ask_wait.
 * Ownership: ask_open opens the engines, ask_create borrows them; they must outlive every request.
 * Failure:   SHOAL_E* of ask_submit (then there is no request and no event), or of the DONE event.
 */
#ifndef SHOAL_FLOW_HOME_ASK_H
#define SHOAL_FLOW_HOME_ASK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "flow/home/ask_rules.h"
#include "shoal/shoal.h"
#include "wire/json_out.h"

#define ASK_MAX_TEXT 4096u
#define ASK_MAX_CLAUSES 16u
#define ASK_MAX_STEPS 48u

struct ask;
struct ask_request;

enum ask_event_kind {
    ASK_EVENT_PLAN, /* what is wanted is known: actions */
    ASK_EVENT_TEXT, /* a piece of the reply */
    ASK_EVENT_DONE, /* the last one */
};

struct ask_event {
    enum ask_event_kind kind;
    const char *text; /* TEXT; valid during the call, not NUL-terminated */
    size_t text_bytes;
    int code; /* DONE: 0 or SHOAL_E* */
    const char *message;
};

struct ask_opts {
    const char *text;
    size_t text_bytes;          /* at most ASK_MAX_TEXT */
    time_t now;                 /* 0: the clock's */
    bool no_reply;              /* actions only */
    struct shoal_engine *reply; /* that says it; NULL: the flow's */
    uint64_t deadline_ns;
    int32_t priority;
    void (*event)(void *ctx, const struct ask_request *r, const struct ask_event *ev);
    void *event_ctx;
};

struct ask_step { /* what happened when, for --explain and the page's waterfall */
    const char *name;
    const char *model; /* NULL: rules */
    uint64_t start_ns, ns;
    uint32_t tokens; /* read, or written */
};

/* The encoder must classify ("combined", "router") and tag ("home"); reply NULL: actions only. */
SHOAL_MUST_CHECK int ask_create(struct ask **out, struct shoal_engine *encoder,
                                struct shoal_engine *reply, struct err *e);
void ask_destroy(struct ask *a);

SHOAL_MUST_CHECK int ask_submit(struct ask *a, const struct ask_opts *o, struct ask_request **out,
                                struct err *e);
void ask_cancel(struct ask_request *r);
/* Waits for DONE; its code. */
int ask_wait(struct ask_request *r);
/* The caller's part of the request; before DONE it also cancels. */
void ask_free(struct ask_request *r);

const struct ask_plan *ask_plan_of(const struct ask_request *r);
const char *ask_reply_of(const struct ask_request *r, size_t *n);
uint32_t ask_steps_of(const struct ask_request *r, const struct ask_step **steps);
uint64_t ask_total_ns(const struct ask_request *r);
const char *ask_message_of(const struct ask_request *r); /* of a failure */
/* What was understood, in lines for a person. */
void ask_explain(struct buf *b, const struct ask_request *r);

/* What is known at PLAN as members of the open object: actions, clauses, contexts. */
void ask_plan_json(struct json_out *j, const struct ask_request *r);
/* {"actions":[...],"reply":"..."} as members of the open object; explain: also clauses with labels
 * and confidence, contexts and steps. */
void ask_json(struct json_out *j, const struct ask_request *r, bool explain);

#endif
