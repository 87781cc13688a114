/* pipeline_live.h - a running flow: its steps, their work and results so far. Private to the files
 * of this folder that run flows.
 *
 * Thread:    the owner's.
 * Ownership: lives in the arena of its request. */
#ifndef SHOAL_PIPELINE_PIPELINE_LIVE_H
#define SHOAL_PIPELINE_PIPELINE_LIVE_H

#include "flow/flow.h"
#include "flow/routing_choice.h"
#include "pipeline/graph/graph.h"
#include "pipeline/pipeline_report.h"
#include "pipeline/pipeline_work.h"

#define PIPELINE_MAX_OUTPUT_BYTES ((size_t)4 << 20)

struct pipeline_live;
struct pipeline_site; /* pipeline_run.h */

/* One piece of work: a step, or one item of a map. */
struct pipeline_task {
    struct pipeline_work work; /* first */
    struct pipeline_live *run;
    struct pipeline_task *next;
    uint32_t step; /* the step it works for; an item of a map: the body */
    int32_t map;   /* the map it belongs to; -1: none */
    uint32_t index;
    const struct value *item; /* or NULL */
    bool open;                /* `done` has not come */
    bool over;                /* its result no longer counts: it has arrived, or was too late */
    struct executor_timer timer;
};

struct pipeline_live_step {
    enum pipeline_state state;
    bool degraded, late;
    char why[200];
    struct failure failure; /* of a failed step */
    uint64_t start_ns, end_ns;
    struct value value;
    int32_t waits_for;          /* PENDING: the step that runs in its place */
    bool replaced;              /* PENDING: as its fallback */
    double chosen;              /* switch: the case */
    struct pipeline_task *task; /* the running task */
    struct value *items;        /* map: the results of its items */
    uint32_t n_items, n_left;
};

struct pipeline_live {
    struct flow_job job; /* first */
    struct flow_owner *owner;
    struct request *request;
    struct sink *sink;
    struct graph *graph;
    const struct pipeline_site *site;
    uint64_t start_ns, end_ns; /* end_ns: when the answer must be sent; 0: no deadline */
    struct executor_timer timer;
    struct value input;
    struct pipeline_live_step *steps; /* [graph->n_steps] */
    struct pipeline_task *tasks;
    uint32_t n_open;
    bool late, cancelled, answered, advancing, again;
    /* Streaming answer: the pieces of the output before `piece` were sent, and n_of_piece bytes of
     * that one. */
    bool began;
    uint32_t piece;
    size_t n_sent, n_of_piece; /* bytes */
    uint64_t first_ns;
    struct routing_choice *choice;
    uint32_t prompt_tokens, generated_tokens;
};

static inline uint64_t pipeline_live_bit(uint32_t step)
{
    return 1ull << step;
}

static inline bool pipeline_live_is_over(const struct pipeline_live_step *s)
{
    return s->state >= PIPELINE_DONE;
}

/* The value of an argument; item: of a map, or NULL. */
SHOAL_MUST_CHECK int pipeline_live_eval(struct pipeline_live *x, const struct graph_arg *a,
                                        const struct value *item, struct value *out, struct err *e);
SHOAL_MUST_CHECK int pipeline_live_eval_expr(struct pipeline_live *x, const struct graph_expr *expr,
                                             enum graph_expr_form form, const struct value *item,
                                             struct value *out, struct err *e);
/* A record of a step's type with only its main field. */
struct value pipeline_live_main_only(struct pipeline_live *x, const struct graph_step *s,
                                     struct value v);
struct value pipeline_live_main_of(const struct graph_step *s, const struct value *v);
bool pipeline_live_needs_are_over(const struct pipeline_live *x, uint64_t needs);
/* Whether the next piece of the output is the result of this step, or of one that it replaces. */
bool pipeline_live_feeds_output(const struct pipeline_live *x, uint32_t i);

#endif
