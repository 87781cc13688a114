/* ask.h - the home flow (docs/ASK.md): a text is split into clauses, an encoder says what each of
 * them wants, the rules of a table turn that into actions, and a small decoder says it.
 *
 * Before that, a model says which words command something at all; nothing else acts.  Dangerous
 * actions wait for a yes, by a token or in words in the same conversation (home_memory.h).
 *
 * It needs neither the gateway nor the command line: ask_pack.h opens everything from the folder of
 * models, or the caller passes its own table and engines.
 *
 * Thread:    ask_create and ask_destroy: the thread that owns the flow. ask_submit, ask_cancel,
 *            ask_free: any thread, also inside an event, except that ask_free of the same
 *            request twice is an error. ask_wait: any thread but those that deliver events (it
 *            would wait for itself). The event callback: one call at a time for a request, on a
 *            thread of the encoder's engine (PLAN, or DONE after a failure), of the reply's
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
struct home_table;
struct home_things;
struct shoal_engine;

struct ask_opts {
    const char *text;            /* with `confirm` it may be NULL */
    size_t text_bytes;           /* at most ASK_MAX_TEXT */
    const char *conversation;    /* user and session, for "it" and "yes"; NULL: none */
    const char *owner;           /* the user whose scheduled actions are counted; NULL: nobody */
    const char *room;            /* the speaker's room: its id or a name; NULL: not known */
    const char *confirm;         /* the token of actions to carry out now; NULL: none */
    time_t now;                  /* 0: the clock's */
    bool no_reply;               /* actions only */
    struct shoal_engine *reply;  /* says it; NULL: the flow's */
    struct shoal_engine *act;    /* tells commands from other talk; NULL: the flow's */
    struct shoal_engine *reader; /* reads the text as well; NULL: the flow's */
    bool away_reads;             /* `away` has a reader */
    /* For models without an engine here, of the flow or of these options; NULL: none. Must live
     * until ask_free has returned. ask_cancel and ask_free are then called on the thread that it
     * belongs to. */
    struct ask_away *away;
    /* For an encoder without an engine: whether its tokenizer has the word as one token. */
    bool (*is_common)(void *ctx, const char *word);
    void *common_ctx;
    uint64_t deadline_ns; /* on clock_ns(); 0: none */
    int32_t priority;     /* as of tasks: higher first */
    uint64_t client;      /* as of tasks, with its weight */
    float weight;
    void (*event)(void *ctx, const struct ask_request *r, const struct ask_event *ev);
    void *event_ctx;
};

/* The encoder must have the table's label sets: it classifies and tags. act has the labels of the
 * speech acts; NULL: ask_opts provide it, or the table needs none. reply NULL: actions only, unless
 * ask_opts provide one. things: the home; NULL: none; things are then known only by their words,
 * and the caller carries actions out. */
SHOAL_MUST_CHECK int ask_create(struct ask **out, const struct home_table *table,
                                struct home_things *things, struct shoal_engine *encoder,
                                struct shoal_engine *act, struct shoal_engine *reply,
                                struct err *e);
/* The same for an encoder that has no engine here: config is its config.json, n bytes. Every
 * request provides access to it. */
SHOAL_MUST_CHECK int ask_create_away(struct ask **out, const struct home_table *table,
                                     struct home_things *things, const char *config, size_t n,
                                     struct err *e);
/* A reader for requests that bring none; NULL: the rules alone understand texts. Before the first
 * request. */
void ask_use_reader(struct ask *a, struct shoal_engine *reader);
void ask_destroy(struct ask *a); /* NULL is fine */
/* Calls fn for each word of the text that counts as a typo unless it is common. */
SHOAL_MUST_CHECK int ask_doubtful_words(const struct ask *a, const struct ask_opts *o,
                                        void (*fn)(void *ctx, const char *word), void *ctx,
                                        struct err *e);

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
