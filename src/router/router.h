/* router.h - chooses the model and replica that answer a request: pure policy, no I/O.
 *
 * A route is a list of candidate models with a policy. The caller passes the known facts about the
 * request and every replica; router_decide returns the choice, and for each candidate why it was or
 * was not chosen.
 *
 * A decision narrows the candidates step by step: readiness, kind and length, the first rule that
 * matches, language, domain, least quality; then the steps of the policy (router_policy.h).
 *
 * Thread:    any; no state.  A table is immutable once it is in use.
 * Ownership: everything is borrowed for the call; a decision points into the candidates.
 * Failure:   a decision without a choice has the reason in `why`. */
#ifndef SHOAL_ROUTER_ROUTER_H
#define SHOAL_ROUTER_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ensemble/ensemble.h"
#include "privacy/privacy_policy.h"
#include "router/router_estimate.h"
#include "router/router_policy.h"
#include "router/router_rule.h"

#define ROUTER_MAX_CANDIDATES 128u /* models times replicas */
#define ROUTER_LEAST_BATTERY 20u   /* percent, the default of a route */

struct router_names {
    char **v;
    uint32_t n;
};

/* A model of a route. */
struct router_model {
    char *name;
    double quality;                         /* 0 to 1; 0: not known */
    double cost;                            /* of 1000 tokens, in any unit; 0: free */
    double watts;                           /* while it computes; 0: not known */
    struct router_names domains, languages; /* none: all */
};

/* The one of that name; NULL: none. */
const struct router_model *router_model_named(const struct router_model *list, uint32_t n,
                                              const char *name);

struct router_route {
    char *name;
    struct router_names callers; /* names of client keys; none: everyone */
    struct router_model *models;
    uint32_t n_models;
    struct router_rule *rules; /* the first match applies */
    uint32_t n_rules;
    struct router_policy policy;
    double min_quality;
    uint32_t budget_ms;     /* for requests without a deadline; 0: none */
    uint32_t max_budget_ms; /* 0: no ceiling */
    int32_t priority;       /* added to the request's */
    bool shares_cache;      /* clients share cached prefixes and answers */
    bool no_cache;          /* answers are neither cached nor taken from a cache */
    double similar;         /* similarity for the semantic cache (knowledge/); 0: off */
    uint32_t least_battery; /* percent; nodes below it are avoided */
    /* The router model: an encoder that finds the domain of a text. */
    char *classifier; /* NULL: none */
    char *labels;     /* its label set; NULL: the default one */
    double threshold; /* below it the text has no domain */
    struct privacy_policy privacy;
    char *flow; /* flow that answers instead of a model; NULL: none */
    /* Several models answer together; then models, rules and classifier are empty. */
    struct ensemble ensemble;
};

/* All routes of a configuration. */
struct router_table {
    struct router_route *routes;
    uint32_t n_routes;
    struct router_model *known; /* data about models outside of routes */
    uint32_t n_known;
    struct privacy_policy privacy; /* for requests whose route has no policy */
    bool private;                  /* this policy, or that of a route, is active */
};

/* The route of this name; NULL: none. "auto" always exists, over all models and with the policy
 * sla, unless a known model has that name. */
const struct router_route *router_table_find(const struct router_table *t, const char *name);
/* The same, as a client sees it: a route that it may not use does not exist.  "": no particular
 * client. */
const struct router_route *router_table_find_for(const struct router_table *t, const char *name,
                                                 const char *client);
void router_table_fini(struct router_table *t);

/* Facts about a request. */
struct router_request {
    struct router_facts facts; /* for rules */
    struct router_work work;
    double budget_ns;   /* remaining time of its deadline; 0: none */
    double min_quality; /* required; 0: the route's */
    const char *domain; /* from the router model; NULL: not classified, or no domain */
    double domain_p;
    uint64_t key;  /* requests with the same key stay together (hash) */
    uint64_t turn; /* counts up with every decision (round robin) */
};

enum router_state { ROUTER_READY, ROUTER_LOADING, ROUTER_GONE };

/* One replica of one model. */
struct router_candidate {
    const struct router_model *model;
    const char *node; /* NULL: this process */
    enum router_state state;
    uint32_t context; /* tokens; 0: not known */
    struct router_speed speed;
    bool on_battery;
    uint32_t battery; /* percent */
};

enum router_verdict {
    ROUTER_CHOSEN,
    ROUTER_NOT_READY,
    ROUTER_TOO_LONG,    /* the request does not fit into its context */
    ROUTER_BY_RULE,     /* a rule names others */
    ROUTER_LANGUAGE,    /* not one of its languages */
    ROUTER_DOMAIN,      /* not one of its domains */
    ROUTER_LOW_QUALITY, /* less than required */
    ROUTER_LATE,        /* it would miss the deadline */
    ROUTER_WORSE,       /* another one has a higher quality */
    ROUTER_DEARER,
    ROUTER_MORE_ENERGY,
    ROUTER_BATTERY, /* its node runs on a battery that should be spared */
    ROUTER_SLOWER,
    ROUTER_BUSIER,
    ROUTER_NOT_ITS_TURN,
    ROUTER_OTHER_HASH,
    ROUTER_NEXT, /* as good as the chosen one, which comes first */
    ROUTER_N_VERDICTS
};

struct router_decision {
    int32_t chosen; /* index of the candidate; -1: none */
    bool degraded;  /* nothing meets the deadline or the quality: the closest one was chosen */
    int32_t rule;   /* the one that matched; -1: none */
    enum router_verdict why; /* without a choice: what removed the last candidates */
    uint32_t n;
    struct router_estimate estimates[ROUTER_MAX_CANDIDATES];
    enum router_verdict verdicts[ROUTER_MAX_CANDIDATES];
};

/* At most ROUTER_MAX_CANDIDATES. */
void router_decide(struct router_decision *out, const struct router_route *route,
                   const struct router_request *q, const struct router_candidate *c, uint32_t n);

/* Whether a client may use the route; client "": no particular client. */
bool router_may_call(const struct router_route *r, const char *client);
/* For people: "it would miss the deadline". */
const char *router_verdict_text(enum router_verdict v);
/* For programs: "late". */
const char *router_verdict_name(enum router_verdict v);

void router_route_fini(struct router_route *r);

#endif
