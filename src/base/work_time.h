/* work_time.h - how long a request takes at a model of known rates: the one formula for it.
 *
 * Whoever refuses what would be late (engine/cost.h) and whoever chooses between models and
 * replicas (router/router_estimate.h) bring the rates and use it.  They differ in what they assume
 * without a measurement and in how sure they want to be, which is a policy.
 *
 * Thread: any; no state. */
#ifndef SHOAL_BASE_WORK_TIME_H
#define SHOAL_BASE_WORK_TIME_H

struct work_time_policy {
    /* the default of an unmeasured value */
    double prefill_ns, token_ns, unit_ns;
    double tokens; /* assumed length of an answer with neither a limit nor a learned one */
    /* Predictions have a relative error: this many errors are added, each no less and the sum no
     * more than these parts. */
    double errors, least_error, most_errors;
};

/* Work that may be refused.  What is not known costs nothing, so that it is let through and
 * measured. */
extern const struct work_time_policy work_time_refuse;
/* A choice between models.  One that was not measured counts as a small one on a small machine. */
extern const struct work_time_policy work_time_choose;

struct work_time_rates { /* 0: not known */
    double queue_ns;     /* until the request starts */
    double prefill_ns;   /* per prompt token; specialists: per unit */
    double token_ns;     /* between two tokens of the answer */
    double first_ns;     /* a prompt takes at least this */
};

struct work_time {
    double prefill_ns, decode_ns;
    double total_ns; /* including the queue */
};

/* How many tokens an answer will have: the limit or the learned length, whichever is less; 0: there
 * is none. */
double work_time_tokens(const struct work_time_policy *p, double learned, double limit);
/* A prompt of this many tokens, and an answer of this many steps. */
struct work_time work_time_of(const struct work_time_policy *p, const struct work_time_rates *r,
                              double prompt_tokens, double steps);
/* The same for a specialist, which reads units and writes nothing. */
struct work_time work_time_of_units(const struct work_time_policy *p,
                                    const struct work_time_rates *r, double units);
/* A prediction with the margin for its error, as deadlines are compared with it. */
double work_time_sure(const struct work_time_policy *p, double ns, double error);

#endif
