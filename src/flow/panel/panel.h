/* panel.h - the requests to several models that together answer one request.
 *
 * A member is one request to one model, a copy of the client's with changes. Its events go to the
 * ops of the panel's kind. The panel ends when the client has received its last event; running
 * members are then cancelled, and the panel closes with the last of them.
 *
 * Thread:    the owner's.
 * Ownership: lives in the arena of the client's request, which it takes.
 * Failure:   a member that fails is reported to the ops; the kind decides what that means. */
#ifndef SHOAL_FLOW_PANEL_PANEL_H
#define SHOAL_FLOW_PANEL_PANEL_H

#include "ensemble/ensemble.h"
#include "flow/flow.h"
#include "flow/panel/panel_tokens.h"
#include "flow/routing_choice.h"

struct panel;

struct panel_answer { /* one choice of a generation */
    struct panel_tokens tokens;
    struct ensemble_running running;
    struct sink_done done;
};

struct panel_member {
    struct sink sink; /* first */
    struct panel *panel;
    const char *model;
    uint32_t index;
    bool running, started;
    bool done;   /* everything has come */
    bool passed; /* its events go straight to the client: a slow reader applies backpressure */
    bool failed; /* with a reason */
    struct failure failure;
    struct sink_start start; /* in the panel's arena */
    /* A generation: one answer for each choice. */
    struct panel_answer *answers;
    uint32_t n_answers, n_done;
    /* A classification: copies of the results, and the client's input of each. */
    const struct shoal_result **results;
    const uint32_t *inputs; /* NULL: all */
    uint32_t n_results;
};

/* A kind has those of its requests. */
struct panel_ops {
    /* A generation: one token, or one choice that is complete; member->done: it was the last. */
    void (*token)(struct panel_member *m, const struct sink_token *e);
    void (*answer)(struct panel_member *m, const struct sink_done *e);
    /* A classification: all results have arrived. */
    void (*results)(struct panel_member *m);
    void (*failed)(struct panel_member *m);
};

struct panel {
    struct flow_job job; /* first */
    const struct panel_ops *ops;
    struct flow_owner *owner;
    struct request *request; /* the client's */
    struct sink *sink;       /* the client's */
    struct ensemble plan;    /* a copy: a reload may replace the configuration */
    struct routing_choice choice;
    struct routing_ensemble steps;
    struct routing_step lost;     /* stands for steps beyond ROUTING_MAX_STEPS */
    struct panel_member *members; /* [n_members]: the maximum number */
    uint32_t n_members;
    uint32_t n_running, busy;
    bool over, began; /* began: the client has received `start` */
    void *own;        /* private to the kind; in the arena */
};

/* NULL: out of memory, and nothing happened. */
struct panel *panel_create(struct flow_owner *o, const struct router_route *route,
                           struct request *r, struct sink *s, const struct panel_ops *ops,
                           uint32_t n_members);
/* A copy of the client's request for a member, to be changed and run; NULL: out of memory. */
struct request *panel_request(struct panel *p, uint32_t index, const char *model);
/* Takes q. Events may arrive before this returns. */
void panel_member_run(struct panel_member *m, struct request *q);
/* Between these two calls the panel is never closed. */
void panel_enter(struct panel *p);
void panel_leave(struct panel *p);

/* Records a model's result; sureness below 0: unknown. */
struct routing_step *panel_step(struct panel *p, const char *model, double sureness,
                                const char *fmt, ...) SHOAL_PRINTF(4, 5);
/* Sends the client's `start`, with the member's model, unless it was sent. */
void panel_begin(struct panel *p, const struct panel_member *m);
/* Sends the client's last `done`, for a member's answer; ends the panel. */
void panel_finish(struct panel *p, const struct sink_done *e);
void panel_fail(struct panel *p, const struct failure *f);
/* Ends the panel: cancels running members. */
void panel_end(struct panel *p);
/* Reports the cost of an answer that the client does not get. */
void panel_tell_cost(struct panel_member *m, const struct sink_done *e, int code);

#endif
