/* pipeline_work.h - the work of one step: a request to a model, a search, a check, a call.
 *
 * Thread:    the owner's.
 * Ownership: part of the caller's job, which must live until `done` was called.  Results lie in the
 *            arena.
 * Failure:   typed, to `done`. */
#ifndef SHOAL_PIPELINE_PIPELINE_WORK_H
#define SHOAL_PIPELINE_PIPELINE_WORK_H

#include "flow/flow.h"
#include "knowledge/retrieval.h"
#include "knowledge/support.h"
#include "pipeline/graph/graph.h"
#include "pipeline/pipeline_call.h"

struct collections;

struct pipeline_work;

struct pipeline_search { /* state of a retrieve step */
    struct pipeline_work *work;
    struct retrieval retrieval;
};

struct pipeline_check { /* state of a verify step */
    struct pipeline_work *work;
    struct embedding embedding;
    struct support support;
    struct str texts[SUPPORT_MAX_SENTENCES + SUPPORT_MAX_PASSAGES];
    const char *passages[SUPPORT_MAX_PASSAGES];
    const struct value *hits;
    uint32_t n_passages;
};

struct pipeline_work {
    struct flow_owner *owner;
    struct collections *collections;  /* NULL: there are none */
    struct pipeline_outside *outside; /* NULL: no external calls */
    const struct graph_step *step;
    const struct request *from; /* the client's request */
    struct trace_at spans;      /* borrowed: of the step */
    const struct value *args;   /* [step->n_args] */
    uint64_t deadline_ns;       /* 0: none */
    uint32_t index;             /* of an item of a map */
    struct arena *arena;
    void (*done)(struct pipeline_work *w, const struct failure *f); /* NULL: `result` is set */
    /* For a generation that is streamed; otherwise both are NULL. `text` has more; when it returns,
     * the work may have been freed. */
    void (*more)(struct pipeline_work *w);
    bool (*full)(struct pipeline_work *w); /* the reader is slow */
    /* results */
    struct value result;
    uint32_t prompt_tokens, generated_tokens;
    /* private */
    struct sink sink;
    struct buf text; /* text of a generation or an ask, so far */
    const char *input;
    bool cancelled, failed, has_result, cut;
    struct failure why;
    char model[128];
    struct pipeline_search *search;
    struct pipeline_check *check;
    struct pipeline_call *call;
    const struct value *actions;
    uint32_t n_actions;
};

/* All members are set except private ones and results, which are zero. done may be called before
 * this returns. */
void pipeline_work_start(struct pipeline_work *w);
/* done is still called. An external call is not interrupted. */
void pipeline_work_cancel(struct pipeline_work *w);

#endif
