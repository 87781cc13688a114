/* router_estimate.h - estimates how long a request would take at a replica, from its cost model.
 *
 * The formula is base/work_time.h, which refusals use too; this brings the telemetry.
 *
 * Thread: any; no state. */
#ifndef SHOAL_ROUTER_ROUTER_ESTIMATE_H
#define SHOAL_ROUTER_ROUTER_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

/* The work of a request. */
struct router_work {
    uint32_t prompt_tokens;
    uint32_t max_tokens; /* of an answer; 0: no limit */
    uint32_t n_answers;  /* 0: 1 */
    bool specialist;     /* reads only: generates no tokens */
};

/* A replica as its own cost model (engine/cost.h) describes it; 0: not known. */
struct router_speed {
    double prefill_ns;    /* for a token of a prompt */
    double token_ns;      /* between two tokens of an answer, at its present batch */
    double unit_ns;       /* specialists: cost of one input token */
    double queue_ns;      /* until a new request would start */
    double load_ns;       /* until it is loaded */
    double rtt_ns;        /* round trip to its node */
    double answer_tokens; /* learned length of an answer */
    double error;         /* recent relative error of its predictions */
    double held;          /* share of the prompt that it has read before, 0 to 1 */
    uint32_t in_flight, parallel;
};

struct router_estimate {
    bool known; /* something was measured */
    double queue_ns, prefill_ns, decode_ns, rtt_ns;
    double total_ns; /* their sum */
    double sure_ns;  /* with a margin for the error of predictions: compared with deadlines */
    double tokens;   /* read and written */
};

/* The caller has this many requests there, some of which the replica's last state may not show:
 * they are ahead of the next one. */
void router_speed_unseen(struct router_speed *s, uint32_t calls);
struct router_estimate router_estimate(const struct router_speed *s, const struct router_work *w);

#endif
