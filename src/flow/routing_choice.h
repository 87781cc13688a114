/* routing_choice.h - how a route chose the model of a request, for answers and explanations.
 *
 * Thread:    the owner's.
 * Ownership: lives in the arena of its request. */
#ifndef SHOAL_FLOW_ROUTING_CHOICE_H
#define SHOAL_FLOW_ROUTING_CHOICE_H

#include "router/router.h"

#define ROUTING_MAX_STEPS 48u

/* A candidate as an explanation shows it. */
struct routing_candidate {
    const char *model, *node; /* node NULL: this process */
    double quality, cost;
    struct router_estimate estimate;
    enum router_verdict verdict;
};

/* The result of one model of an ensemble. */
struct routing_step {
    const char *model;
    const char *what; /* for people: "left after 9 tokens" */
    double sureness;  /* from 0 to 1; below 0: not known */
    bool answered;    /* the client's answer comes from it */
};

struct routing_ensemble {
    const char *kind;
    struct routing_step steps[ROUTING_MAX_STEPS]; /* more may come until the answer is complete */
    uint32_t n_steps;
};

struct stage_log;

struct routing_choice {
    const char *route, *model;
    const char *node; /* the chosen node; NULL: this process */
    bool degraded;
    const char *domain; /* from the router model; NULL: not classified, or no domain */
    double domain_p;
    const struct routing_ensemble *ensemble; /* NULL: one model answers */
    /* With explain; otherwise none. */
    const struct routing_candidate *candidates;
    uint32_t n_candidates;
    int32_t rule; /* index of the rule that matched; -1: none */
    struct router_work work;
    double budget_ns;
    const char *policy;             /* its steps, with blanks between them */
    uint64_t decide_ns;             /* duration of the decision */
    const struct stage_log *stages; /* which took the request so far */
};

#endif
