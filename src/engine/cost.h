/* cost.h - the cost model of one loaded model: learned from finished work, used to predict new
 * work.
 *
 * One model of cost for everything that has to know: submitting to an engine and admission ask it,
 * and routing, here and for replicas on other nodes, works with what it tells (cost_tell).  The
 * formula from rates to a time is base/work_time.h for all of them.  The model lives in the engine,
 * the lowest folder that needs it; the host exposes it per model (registry_estimate).
 *
 * A decoder computes steps. A step decodes one token of every task that generates and may prefill
 * prompts beside that. It learns the time of a step by the number of tasks it decodes, with and
 * without interleaved prompts, the time to prefill a token, the length of answers and its spread,
 * and the cached part of a prompt. A specialist's work is measured in units.
 *
 * Unknown costs count as zero, so that work is admitted and measured. While nothing runs, old
 * measurements expire: the machine may have become faster, and a model that refuses everything
 * would never be measured again.  What the model tells others (cost_tell, cost_speed) returns to
 * the best recent figure for the same reason: a replica that looks slow gets no work, and without
 * work it would look slow forever.
 *
 * Time in which the process did not run is no work.  A process that was stopped (SIGSTOP, a frozen
 * container, a suspended machine) finds in its next step all the time that it missed; such a
 * measurement is odd and teaches nothing, unless several follow one another: then it is how things
 * are.
 *
 * Nor is the time in which threads of the process waited for a core that other programs had. It is
 * taken off what is learned, so that a busy neighbour changes no figure of the model's own, and
 * what is predicted is longer by the recent usual share of it (the median over two seconds). A
 * neighbour that has gone is forgotten with its share, not with every figure measured beside it.
 *
 * An idle model always accepts a request that it could answer undisturbed, at its best recent
 * speed: nobody else wants the time, and only work shows how things are.
 *
 * Thread:    cost_saw_* from one thread at a time; the others from any.  Relaxed atomics: each
 *            value stands for itself, and a reader may see one before another.
 * Failure:   none. */
#ifndef SHOAL_ENGINE_COST_H
#define SHOAL_ENGINE_COST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define COST_BATCHES 9u                    /* steps of up to 1, 2, 4, ... 256 tasks */
#define COST_FRESH_NS UINT64_C(2000000000) /* older measurements count less, see above */
#define COST_SHARES 32u                    /* of stolen time; one every 50 ms at most */

struct cost_mean { /* moving average */
    _Atomic double value;
    _Atomic double best;    /* the lowest value of late: falls at once, rises slowly */
    _Atomic uint64_t at_ns; /* when it was last measured; 0: never */
    _Atomic uint32_t n;     /* number of samples, up to a limit */
};

struct cost_share { /* of some time, 0 to 1 */
    _Atomic double value;
    _Atomic uint64_t at_ns; /* 0: none */
};

struct cost {                              /* all zero: nothing is known */
    struct cost_mean step[COST_BATCHES];   /* ns of a step without prompts */
    struct cost_mean pace[COST_BATCHES];   /* ns of a step including interleaved prompts */
    struct cost_mean prefill;              /* ns for each token of a prompt */
    struct cost_mean length;               /* tokens of an answer that ended by itself */
    struct cost_mean spread;               /* mean deviation from that length */
    struct cost_mean reused;               /* cached share of a prompt, 0 to 1 */
    struct cost_mean unit;                 /* ns for each unit of a specialist's cost */
    struct cost_mean error;                /* |actual - predicted| / predicted, of whole tasks */
    uint32_t n_odd;                        /* odd measurements in a row */
    struct cost_share stolen[COST_SHARES]; /* the newest, in a ring */
    uint32_t n_stolen;
};

struct cost_time { /* of a step or a batch */
    uint64_t ns;   /* by the clock */
    /* CPU time of the whole process meanwhile, or more; COST_RAN: not known, it ran */
    uint64_t ran_ns;
    double stolen; /* the share of it in which threads that could run had no core */
};
#define COST_RAN UINT64_MAX
#define COST_LONG_NS 20000000u /* less is never odd: the machine may be busy */

struct cost_load {                /* existing load */
    uint32_t n_active, n_waiting; /* tasks */
    uint32_t max_active;          /* how many can run at a time */
    uint32_t shared_chunk;        /* prefill tokens in a step that also decodes */
    uint64_t prompt_tokens;       /* not computed yet, over all tasks */
    uint64_t decode_tokens;       /* expected, over all tasks */
    uint64_t waiting_decode;      /* part of decode_tokens that belongs to waiting tasks */
    uint64_t units,
        batch_units; /* units of a specialist: waiting or running; maximum of one batch */
};

struct cost_request {
    uint32_t prompt_tokens; /* of all prompts */
    uint32_t cached_tokens; /* known to be in the KV cache; 0: unknown */
    uint32_t max_tokens;    /* of each choice; 0: no limit */
    uint32_t n_choices;     /* 0: 1 */
    bool ignore_end;        /* max_tokens will be used up */
    uint64_t units;         /* units of a specialist's request: only this counts */
};

struct cost_estimate {
    bool known;       /* something was measured */
    bool idle;        /* nothing waits or runs */
    uint32_t n_ahead; /* tasks that wait or run */
    double first_ns;  /* until the last choice's first token */
    double total_ns;  /* until the last choice is complete */
    double long_ns;   /* the same for an unusually long answer in a full model */
    double alone_ns;  /* as total_ns on an idle model, undisturbed, at its best recent speed */
    double error;     /* recent relative error of predictions; 0: unknown */
};

/* A model's report about itself, for choosing between models and replicas; 0: unknown. */
struct cost_telemetry {
    double prefill_ns;    /* per prompt token, beside running work */
    double token_ns;      /* between two tokens of one more answer */
    double unit_ns;       /* of a specialist */
    double queue_ns;      /* until one more request would start */
    double answer_tokens; /* learned length of an answer */
    double error;         /* as in cost_estimate */
    uint32_t in_flight, parallel;
};

/* A step decoded this many tasks and prefilled this many tokens. */
void cost_saw_step(struct cost *c, uint64_t now_ns, struct cost_time took, uint32_t n_decoded,
                   uint32_t n_prefilled);
/* An answer of this many tokens. ended: by itself; otherwise it was cut off, so its length is only
 * a lower bound. */
void cost_saw_answer(struct cost *c, uint64_t now_ns, uint32_t n_tokens, bool ended);
void cost_saw_prompt(struct cost *c, uint64_t now_ns, uint32_t n_tokens, uint32_t n_cached);
void cost_saw_units(struct cost *c, uint64_t now_ns, struct cost_time took, uint64_t units);
/* A task is complete; predicted_ns 0: there was no prediction. */
void cost_saw_total(struct cost *c, uint64_t now_ns, double predicted_ns, uint64_t actual_ns);

/* Expected tokens of an answer: the smaller of the limit and the learned length. 1: unknown. */
uint32_t cost_expected_tokens(struct cost *c, uint32_t max_tokens, bool ignore_end);
/* The same for an unusually long answer. */
uint32_t cost_longest_tokens(struct cost *c, uint32_t max_tokens, bool ignore_end);
/* Expected remaining tokens of an answer after `generated` ones. usual, most: results of the two
 * functions above. */
uint32_t cost_remaining_tokens(struct cost *c, uint32_t generated, uint32_t usual, uint32_t most);
/* ns between two tokens while n tasks run; 0: not known. */
double cost_pace(struct cost *c, uint32_t n, uint64_t now_ns);
struct cost_estimate cost_predict(struct cost *c, const struct cost_load *l,
                                  const struct cost_request *r, uint64_t now_ns);
/* SHOAL_EDEADLINE if the deadline (CLOCK_MONOTONIC; 0: none) comes before the estimated end: "needs
 * about 12 ms, 5 ms remain". An idle model is asked for alone_ns. If others are ahead, the typical
 * error is added to the estimate, and in a full model a long answer must fit too: an answer that is
 * cut off just before its end has wasted the others' time. */
SHOAL_MUST_CHECK int cost_check(const struct cost_estimate *x, uint64_t deadline_ns,
                                uint64_t now_ns, struct err *e);
struct cost_telemetry cost_tell(struct cost *c, const struct cost_load *l, uint64_t now_ns);
/* ns per prompt token, and between two tokens of an answer, at the batch size measured last; 0:
 * unknown. */
void cost_speed(struct cost *c, uint64_t now_ns, double *prefill_ns, double *token_ns);

#endif
