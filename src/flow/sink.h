/* sink.h - where the events of a request go.
 *
 * A codec (HTTP, gRPC, WebSocket, a command, another node) implements a sink: it turns typed events
 * into its own bytes.  The events of a request are, in this order:
 *
 *   start    once the model is known and the prompt cache was checked
 *   plan     an ask: what the text wants, once, before the reply
 *   prompt   a generation that asked for it: how far the prompt is computed, before its tokens
 *   call     a generation with tools, behind tool_sink.h: a piece of a tool call
 *   token    a generation: one token, or text only; an ask: a piece of the reply, text only
 *   result   specialists: one input's result
 *   replace  a generation, from an ensemble: everything that came of it is void, another model
 *            answers anew
 *   done     one choice of a generation is complete; `last`: so is the request.  An ask has one
 *            choice.  Specialists have none: their last result ends the request.
 *   fail     the request failed
 *   closed   always, exactly once: nothing follows, and the request is freed
 *
 * After done with `last`, after fail, and after flow_cancel only closed comes (and broke_off before
 * it, for sinks that want it): at once, or when the engines have let go of the work.  A sink may
 * live in the arena of its request.
 *
 * Thread:    all events come on the owner's thread (flow.h).
 * Ownership: events and what they point to are borrowed for the call, with three exceptions: the
 *            names of start and the plan stay until closed has returned, results until the last one
 *            was delivered. Events are plain data: a receiver of one over the network rebuilds it
 *            in the arena of the request, which lives long enough. */
#ifndef SHOAL_FLOW_SINK_H
#define SHOAL_FLOW_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/chat/tool_format.h"
#include "flow/ask_plan.h"
#include "flow/failure.h"
#include "shoal/shoal.h"

struct flow_job;
struct pipeline_report;
struct routing_choice;
struct sink;
struct stage_log;

/* SIMILAR: the answer to a paraphrase. */
enum sink_cache { SINK_CACHE_OFF, SINK_CACHE_MISS, SINK_CACHE_HIT, SINK_CACHE_SIMILAR };

struct sink_start {
    const char *model;   /* stays until closed has returned, as do version and sum */
    const char *version; /* "": not known yet */
    const uint8_t *sum;  /* SHA-256 of the model; NULL: not known yet */
    const char *node;    /* node that answers; NULL: this process */
    enum sink_cache cache;
    bool isolated; /* the node may serve an old version: it cannot ask which is the present one */
    bool session_away;  /* the session store is unavailable: the conversation may lack turns */
    uint32_t n_dropped; /* messages of the client that the model does not see: too many for it */
    bool private;       /* the answer repeats personal data of the client: it must not be stored */
    enum tool_format tools; /* how the model writes tool calls; NONE: the request has no tools */
    /* For generate_memo; NULL: this answer is not cached, or by another node. */
    const uint8_t *question;
    uint64_t slot;
};

struct sink_logprob {
    int32_t token;
    float logprob;
    const char *text; /* the token's bytes; not NUL-terminated */
    size_t text_bytes;
};

struct sink_plan {
    const struct ask_plan *plan; /* stays until closed has returned, with all that it points to */
};

/* The first event reports the cached part, the last that all is computed. For prompts on another
 * node there is only the last event of the first prompt. */
struct sink_prompt {
    uint32_t choice;
    uint32_t tokens, cached, computed;
};

struct sink_token {
    uint32_t choice;
    int32_t token;    /* -1: text only */
    bool echo;        /* the prompt, echoed before the answer */
    const char *text; /* what can be shown now; not NUL-terminated */
    size_t text_bytes;
    /* With sampling.logprobs; else NULL.  [0]: the token itself; then the likeliest ones. */
    const struct sink_logprob *logprobs;
    uint32_t n_logprobs;
};

/* A piece of a tool call, from tool_sink.h.  A call is: begins, pieces of its arguments, ends. */
struct sink_call {
    uint32_t choice;
    uint32_t index; /* of the call, in its choice */
    bool begins, ends;
    const char *id, *name;
    const char *text; /* more of the arguments, which are a JSON object */
    size_t text_bytes;
};

struct sink_result {
    uint32_t index;                    /* of the input */
    const struct shoal_result *result; /* stays until the last one was delivered */
    bool last;                         /* of the request */
};

struct sink_energy { /* known: the server counts it (configuration: energy) */
    bool known, estimated;
    double joules;
};

struct sink_usage { /* of a whole request */
    uint32_t prompt_tokens, cached_tokens, generated_tokens;
    struct sink_energy energy;
};

struct sink_done {
    uint32_t choice;
    enum shoal_finish finish; /* STOP or LENGTH */
    bool stopped_by_text;     /* STOP, by a stop text; not known of an answer from the cache */
    uint32_t
        stop_index; /* with stopped_by_text: the index of the text; may come from another node */
    uint32_t prompt_tokens, cached_tokens, generated_tokens;
    uint64_t queue_ns, first_token_ns, total_ns;
    bool last;
    uint32_t n_calls;        /* of tools; from tool_sink.h */
    struct sink_usage usage; /* valid with `last` */
    /* An ask: its steps with times; otherwise none. */
    const struct ask_plan_step *steps;
    uint32_t n_steps;
    /* A flow of the configuration: its steps (pipeline/pipeline_report.h); otherwise NULL. Valid
     * until closed has returned. */
    const struct pipeline_report *report;
};

/* From here on another answer follows. */
struct sink_replace {
    const struct sink_start *start; /* start of the model that answers now */
    const char *why;                /* for people */
};

/* A sink that is used for one kind of request only may leave out the events of the others. */
struct sink_ops {
    void (*start)(struct sink *s, const struct sink_start *e);
    void (*plan)(struct sink *s, const struct sink_plan *e);
    void (*prompt)(struct sink *s, const struct sink_prompt *e); /* may be NULL */
    void (*token)(struct sink *s, const struct sink_token *e);
    /* called only on a sink behind tool_sink.h */
    void (*call)(struct sink *s, const struct sink_call *e);
    void (*result)(struct sink *s, const struct sink_result *e);
    void (*done)(struct sink *s, const struct sink_done *e);
    void (*fail)(struct sink *s, const struct failure *f);
    void (*closed)(struct sink *s);
    /* A choice of a generation ended without `done`: failed, too late, cancelled (finish is ERROR
     * and code has the reason), or complete but no longer needed. Reports its cost nevertheless.
     * May be NULL. */
    void (*broke_off)(struct sink *s, const struct sink_done *e, int code);
    /* Whether `replace` is possible. marked: even if sent bytes must be discarded by the client;
     * otherwise only if that is not needed. Both may be NULL: never. */
    bool (*may_replace)(struct sink *s, bool marked);
    void (*replace)(struct sink *s, const struct sink_replace *e);
    /* End of a batch of events: buffered output can be sent. May be NULL. */
    void (*flush)(struct sink *s);
    /* Whether events should wait until flow_resume: the reader is slow (backpressure). May be NULL:
     * never. */
    bool (*full)(struct sink *s);
};

struct sink {
    const struct sink_ops *ops;
    struct flow_job *job; /* private to flow: the work that feeds the sink, or NULL */
    /* How the model was chosen, set before start; NULL: the client named it. Valid until closed has
     * returned. */
    const struct routing_choice *routed;
    /* Which stages took the request; NULL: it did not ask for an explanation. Likewise. */
    const struct stage_log *stages;
};

/* ---- events that a sink may leave out ---- */

static inline void sink_tell_prompt(struct sink *s, const struct sink_prompt *e)
{
    if (s->ops->prompt)
        s->ops->prompt(s, e);
}

static inline void sink_tell_broke_off(struct sink *s, const struct sink_done *e, int code)
{
    if (s->ops->broke_off)
        s->ops->broke_off(s, e, code);
}

static inline bool sink_may_replace(struct sink *s, bool marked)
{
    return s->ops->may_replace && s->ops->may_replace(s, marked);
}

static inline void sink_flush(struct sink *s)
{
    if (s->ops->flush)
        s->ops->flush(s);
}

static inline bool sink_is_full(struct sink *s)
{
    return s->ops->full && s->ops->full(s);
}

#endif
