/* flow.h - the environment of requests: the host's parts that all threads share, and the state of
 * one owner thread.
 *
 * An owner is a thread that starts requests and gets their events: an event loop of the gateway, a
 * command, a node.  It provides an executor, through which other threads reach it.
 *
 * Thread:    struct flow: any, read only.  struct flow_owner and all jobs on it: the owner's. */
#ifndef SHOAL_FLOW_FLOW_H
#define SHOAL_FLOW_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread/executor.h"
#include "flow/request.h"
#include "flow/sink.h"

struct app;
struct audit_log;
struct dispatch;
struct page_source;
struct registry_model;
struct registry;
struct router_table;
struct routing_source;
struct pool;
struct prompt_cache;
struct pseudonyms;

#define FLOW_MAX_WAKES 8u
#define FLOW_MAX_TURNS 64u /* routes that have a counter of their own; further ones share */

#ifdef __SANITIZE_ADDRESS__
#define FLOW_MAX_SPARES 0u /* so that use-after-free is detected */
#else
#define FLOW_MAX_SPARES 16u
#endif

struct flow {
    struct registry *registry;
    struct prompt_cache *cache;   /* NULL: none */
    struct pool *pool;            /* for long prompts; NULL: the owner's thread prepares them */
    struct app *app;              /* answers asks; NULL: none does */
    struct dispatch *session;     /* continues conversations (STAGE_SESSION); NULL: none are kept */
    struct dispatch *similar;     /* the semantic cache (STAGE_SIMILAR); NULL: none */
    struct audit_log *audit;      /* of all requests; NULL: none */
    struct energy_ledger *energy; /* of requests; NULL: it is not counted */
    struct pseudonyms *pseudonyms; /* for personal data; NULL: it is masked instead */
};

/* How often each route has decided; by a hash of its name, since reloads replace routes. */
struct flow_turns {
    struct {
        uint64_t route; /* 0: free */
        uint64_t n;
    } list[FLOW_MAX_TURNS];
};

/* Freed objects of one size, for the next request. */
struct flow_spares {
    uint32_t n;
    void *list[FLOW_MAX_SPARES + 1];
};

struct flow_owner {
    const struct flow *flow;
    struct executor *executor;
    uint32_t load_wait_ms;     /* how long a request waits for its model to load */
    bool any_model;            /* an unknown name means the default model */
    uint64_t next_seed;        /* for requests without a seed */
    struct dispatch *once;     /* takes requests with an idempotency key; NULL: keys are ignored */
    struct dispatch *dispatch; /* remote destinations of requests; NULL: all are answered here */
    struct dispatch *apart;    /* for isolated models; NULL: there are none */
    struct page_source *pages; /* brings pages of prompts from other nodes; NULL: none does */
    struct dispatch *flows;    /* takes requests whose model is a flow; NULL: there are none */
    const struct router_table *routes; /* see routing.h; NULL: none.  Replaced by reloads */
    struct routing_source *replicas;   /* replicas on other nodes; NULL: there are none */
    struct flow_turns turns;           /* of routes, for round robin */
    uint32_t n_jobs;                   /* started and not closed */
    /* private */
    struct flow_spares requests, generations, inferences, asks;
    /* Models with tasks submitted in this turn, held: woken at its end, so that tasks that arrive
     * together are computed together. */
    struct registry_model *to_wake[FLOW_MAX_WAKES];
    uint32_t n_to_wake, n_held_tasks;
    struct executor_task wake_engines;
};

/* Work on a request, as its sink sees it. */
struct flow_job {
    const struct flow_job_ops *ops;
};

struct flow_job_ops {
    void (*cancel)(struct flow_job *j);
    void (*resume)(struct flow_job *j);
};

void flow_owner_init(struct flow_owner *o, const struct flow *flow, struct executor *executor);
void flow_owner_fini(struct flow_owner *o); /* no job may be left */

/* An empty request, or NULL: out of memory. Give back requests that were never run. */
struct request *flow_take_request(struct flow_owner *o);
void flow_give_request(struct flow_owner *o, struct request *r);
/* From now on the models of the request's epoch stay loaded until the request is given back, even
 * while none of them works on it. */
void flow_hold_epoch(struct flow_owner *o, struct request *r);
/* Fails a request that never ran: fail, closed, and r is given back. */
void flow_refuse(struct flow_owner *o, struct request *r, struct sink *s, const struct failure *f);
/* Fails a request with "out of memory": fail, closed, and r is given back (NULL: it stays with
 * whoever owns it). */
void flow_refuse_nomem(struct flow_owner *o, struct request *r, struct sink *s);

/* Cancels the job of the sink, if any: only `closed` (and `broke_off`) follow. */
void flow_cancel(struct sink *s);
/* Resumes events to a sink that was full. */
void flow_resume(struct sink *s);

/* A task was submitted to the model's engine with `held`: the engine is woken at the end of the
 * owner's turn, with all others of the turn. */
void flow_wake_later(struct flow_owner *o, struct registry_model *m);
/* Wakes them now. */
void flow_wake(struct flow_owner *o);

/* For jobs.  bytes: always the same for one s.  Zeroed, or NULL. */
void *flow_take(struct flow_spares *s, size_t bytes);
void flow_give(struct flow_spares *s, void *p);

#endif
