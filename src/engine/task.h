/* task.h - one request to an engine: a generation or an inference.
 *
 * Thread:    the fields below "fixed at submit" are read by any thread; those below "the engine's
 *            thread only" belong to the engine.
 * Ownership: two references, the caller's and the engine's; the last task_unref frees the task. */
#ifndef SHOAL_ENGINE_TASK_H
#define SHOAL_ENGINE_TASK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/decode/constraint.h"
#include "engine/decode/draft.h"
#include "engine/decode/text_out.h"
#include "shoal/shoal.h"

#define TASK_NO_SLOT UINT32_MAX
#define TASK_MAX_WEIGHT 1000.0F

struct fair_client;
struct job;

struct shoal_task {
    struct shoal_engine *engine;
    struct shoal_task *next; /* in one list at a time */
    _Atomic uint32_t refs;   /* the caller's and the engine's */
    _Atomic bool cancel;
    bool done; /* under the engine's lock */
    int code;
    struct job *job; /* an inference; NULL: a generation */

    /* fixed at submit */
    struct shoal_sampling sampling;
    struct shoal_bias *bias;
    uint32_t n_prompt, n_continued, max_tokens, capacity; /* capacity of tokens */
    bool ignore_end, prompt_logprobs, prompt_only, progress, drawn_logprobs;
    bool stopped; /* by a stop string; at submit: the continued tokens already end with one */
    uint64_t deadline_ns, submitted_ns, serial;
    uint32_t expected;   /* tokens of the answer */
    uint32_t longest;    /* few answers exceed this */
    double predicted_ns; /* from submit to the end; 0: no prediction */
    int32_t priority;
    uint64_t client_id;
    uint64_t scope;                /* of cached prefixes, see kv_pages.h */
    struct shoal_adapter *adapter; /* a reference; NULL: none */
    float adapter_scale;
    float weight;               /* of its client, above 0 */
    struct fair_client *client; /* from queue_submit to queue_done */
    shoal_event_fn event;
    void *event_ctx;

    /* the engine's thread only, from here on */
    int32_t *tokens; /* the prompt and the generated tokens */
    uint32_t n_tokens, n_computed, n_cached;
    bool fresh;           /* computes all of its prompt */
    uint32_t keep_tokens; /* by a shift; 0: part of the prompt */
    bool shifts;          /* the context may be shifted, see shoal_engine_opts */
    uint32_t n_shifted;   /* tokens that were dropped for it */
    uint32_t n_scored;    /* tokens of the prompt whose log-probabilities were sent */
    bool reported;        /* progress: the first event was sent */
    uint32_t *pages;      /* [n_pages] held */
    uint32_t n_pages, n_published, need_pages;
    uint32_t state_from;   /* checkpoint that its next run goes on from (states.h), or none */
    uint32_t passing_page; /* page of its last checkpoint that the next one replaces */
    uint32_t parts_at;     /* tokens at which its prompt parts from earlier ones; 0: not known */
    uint32_t slot;         /* while active: its slot in the model, else TASK_NO_SLOT */
    double charged;        /* charged to its client at the start, see fair.h */
    uint32_t n_served;     /* tokens computed since then */
    bool due;              /* its class has waited for its share: it goes first, see fair.h */
    uint32_t reached;      /* tokens computed before it was last preempted */
    double overtaken;      /* tokens of shorter tasks of its client that went before it */
    struct text_out text;
    struct constraint_run constraint;
    struct draft draft;
    uint64_t started_ns, first_token_ns;
};

void task_unref(struct shoal_task *t);
/* Frees a task that was never submitted. */
void task_destroy(struct shoal_task *t);
/* A weight that a caller asks for: 0 (the default) or a positive number.  SHOAL_EINVAL otherwise.
 */
SHOAL_MUST_CHECK int task_check_weight(float weight, struct err *e);
/* The weight of a client as it counts. */
static inline float task_weight(uint64_t client, float asked)
{
    return client == 0 || !(asked > 0.0F)   ? 1.0F
           : asked > TASK_MAX_WEIGHT        ? TASK_MAX_WEIGHT
           : asked < 1.0F / TASK_MAX_WEIGHT ? 1.0F / TASK_MAX_WEIGHT
                                            : asked;
}
/* Tokens of the answer so far. */
static inline uint32_t task_generated(const struct shoal_task *t)
{
    return t->n_tokens + t->n_shifted - t->n_prompt;
}
/* Expected remaining tokens of a generation. */
static inline uint32_t task_remaining(const struct shoal_task *t)
{
    uint32_t generated = task_generated(t);
    return t->expected > generated ? t->expected - generated : 0;
}
/* Whether the prompt is prefilled and the answer begun. */
static inline bool task_answers(const struct shoal_task *t)
{
    return task_generated(t) > 0 && (t->n_shifted > 0 || t->n_computed >= t->n_prompt);
}
/* Order among tasks of one client: what is due, then priority, then deadline, then partly delivered
 * answers. Negative: a goes first; 0: neither. */
int task_rank(const struct shoal_task *a, const struct shoal_task *b);
/* The same, and among equals by order of submission. */
bool task_goes_before(const struct shoal_task *a, const struct shoal_task *b);
/* Whether a may take the place of b, which runs, whatever clients they belong to. */
static inline bool task_outranks(const struct shoal_task *a, const struct shoal_task *b)
{
    return a->due == b->due ? a->priority > b->priority : a->due;
}
/* 0, or the code to end the task with: cancelled, or its deadline has passed. */
int task_gave_up(const struct shoal_task *t, uint64_t now);

#endif
