/* ask.h - the home flow (docs/ASK.md): a reader understands a text with the things of the home that
 * it may mean and writes a plan, the plan becomes actions of a table, and a small decoder says it.
 *
 * Before that, words that stop something act at once.  Dangerous actions wait for a yes, by a token
 * or in words in the same conversation (home_memory.h).
 *
 * It needs neither the gateway nor the command line: ask_pack.h opens everything from the folder of
 * models, or the caller passes its own table and engines.
 *
 * Thread:    ask_create and ask_destroy: the thread that owns the flow. ask_submit, ask_cancel,
 *            ask_free: any thread, also inside an event, except that ask_free of the same
 *            request twice is an error. ask_wait: any thread but those that deliver events (it
 *            would wait for itself). The event callback: one call at a time for a request, on a
 *            thread of the reader's engine (PLAN, or DONE after a failure), of the reply's
 *            (TEXT, DONE) or of the home's sink (PLAN); it may also run inside ask_submit.  It
 *            must not block: the engine waits for it. ask_plan_of: any thread, from the event
 *            PLAN on.  The other functions that read: inside an event, or after DONE (ask_wait
 *            returned).
 * Lifetime:  table and engines outlive the flow, the flow outlives every request.  The options
 *            of ask_submit, its text among them, are copied or used before it returns, except
 *            event_ctx, which must live until DONE.  Everything read from a request lives until
 *            ask_free; the text of an event only until the callback returns. Cancel: ask_cancel
 *            asks, DONE with SHOAL_ECANCELLED follows; a request that is just complete may still
 *            end with 0. A deadline ends it the same way with SHOAL_EDEADLINE.  Every request
 *            has exactly one DONE, and no event after it.
 * Failure:   SHOAL_E* of ask_submit (then there is no request and no event), or of DONE. */
#ifndef SHOAL_APPS_HOME_ASK_ASK_H
#define SHOAL_APPS_HOME_ASK_ASK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "flow/ask_plan.h"
#include "apps/home/ask/ask_away.h"
#include "apps/home/ask/ask_event.h"

struct ask;
struct ask_request;
struct home_file;
struct home_table;
struct home_things;
struct shoal_engine;

struct ask_opts {
    const char *text;         /* with `confirm` it may be NULL */
    size_t text_bytes;        /* at most ASK_MAX_TEXT */
    const char *conversation; /* user and session, for "it" and "yes"; NULL: none */
    const char *owner;        /* the user whose scheduled actions are counted; NULL: nobody */
    const char *language;     /* of the text, "de"; NULL: that of the home */
    const char *room;         /* the speaker's room: its id or a name; NULL: not known */
    const char *confirm;      /* the token of actions to carry out now; NULL: none */
    time_t now;               /* 0: the clock's */
    bool no_reply;            /* actions only */
    bool dry;                 /* only the plan: nothing is carried out or remembered */
    float heard; /* confidence of the recognizer that heard the text; 0: it was typed */
    struct shoal_engine *reply;  /* says it; NULL: the flow's */
    struct shoal_engine *reader; /* reads the text; NULL: the flow's */
    /* For models without an engine here, of the flow or of these options; NULL: none. Must live
     * until ask_free has returned. ask_cancel and ask_free are then called on the thread that it
     * belongs to. */
    struct ask_away *away;
    uint64_t deadline_ns; /* on clock_ns(); 0: none */
    int32_t priority;     /* as of tasks: higher first */
    uint64_t client;      /* as of tasks, with its weight */
    float weight;
    void (*event)(void *ctx, const struct ask_request *r, const struct ask_event *ev);
    void *event_ctx;
};

/* reader, reply NULL: requests provide them, or access to them; without a reply, actions only.
 * things: the home; NULL: none; the caller then carries actions out. SHOAL_EUNSUPPORTED: the engine
 * is no reader. */
SHOAL_MUST_CHECK int ask_create(struct ask **out, const struct home_table *table,
                                struct home_things *things, struct shoal_engine *reader,
                                struct shoal_engine *reply, struct err *e);
/* What texts may be about in a flow without a home; takes a reference. Without it, things are known
 * only by their words. Before the first request. */
void ask_use_file(struct ask *a, struct home_file *file);
void ask_destroy(struct ask *a); /* NULL is fine */

SHOAL_MUST_CHECK int ask_submit(struct ask *a, const struct ask_opts *o, struct ask_request **out,
                                struct err *e);
void ask_cancel(struct ask_request *r);
/* Waits for DONE; returns its code. */
int ask_wait(struct ask_request *r);
/* Releases the caller's reference to the request; before DONE it also cancels. NULL is fine. */
void ask_free(struct ask_request *r);

/* From PLAN on, on any thread; unchanged after that. */
const struct ask_plan *ask_plan_of(const struct ask_request *r);
/* After DONE; reply_of: also inside an event. */
const char *ask_reply_of(const struct ask_request *r, size_t *n);
struct ask_plan_answer ask_answer_of(const struct ask_request *r);
const char *ask_message_of(const struct ask_request *r); /* error message of a failure */

#endif
