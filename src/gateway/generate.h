/* generate.h - a call that generates text: waits for its model, prepares the prompt, submits one
 * task per choice, and brings what comes to a sink on the loop's thread.
 *
 * The engine's thread only appends to a bounded queue and wakes the loop, so that a slow client
 * costs the engine nothing: when the queue is full, the work is cancelled.
 *
 * Thread:    the loop's, but for `prepare`, which may run on a thread of the pool while nobody
 *            else touches the generation.
 * Ownership: gen_create gives it to the handler, gen_run takes it; it frees itself. */
#ifndef SHOAL_GATEWAY_GENERATE_H
#define SHOAL_GATEWAY_GENERATE_H

#include "gateway/acquire.h"
#include "gateway/gw.h"
#include "gateway/pool.h"
#include "host/prompt_key.h"

#define GEN_MAX_CHOICES 128u
#define GEN_MAX_PROMPTS 64u
#define GEN_MAX_STOPS 16u
#define GEN_MAX_BIAS 1024u

struct gen;

struct gen_params {
    struct shoal_sampling sampling;
    struct shoal_bias *bias;         /* owned */
    const char *stop[GEN_MAX_STOPS]; /* point into the call's JSON */
    uint32_t n_stop, max_tokens;
    uint32_t n, n_prompts; /* choices of all prompts, as many of each, in order */
    bool stream, include_usage, has_seed, ignore_end, special;
    int32_t priority;
};

struct gen_token { /* points into the queue: valid during the call */
    uint32_t choice;
    int32_t token; /* -1: only text */
    const char *text;
    size_t text_bytes;
    float logprob;
    const struct shoal_logprob *top;
    uint32_t n_top;
};

struct gen_choice {
    struct gen *gen;
    struct shoal_task *task;
    struct shoal_event done; /* once is_done */
    bool is_done, seen;      /* is_done: under the lock */
    struct buf text, extra;  /* the sink's: the answer so far, log-probabilities */
    uint32_t n_extra;
};

struct gen_sink {
    const char *stream_type; /* Content-Type of a stream */
    /* All append to the call's out.  begin: before the first event of a stream. */
    void (*begin)(struct gen *g);
    void (*token)(struct gen *g, const struct gen_token *t);
    void (*done)(struct gen *g, uint32_t choice); /* one choice is complete */
    void (*finish)(struct gen *g);                /* all are: the answer, or the end of a stream */
    void (*error)(struct gen *g, int code, const char *msg); /* in a stream that has begun */
};

struct gen {
    struct call *call;
    struct gen_params p;
    const struct gen_sink *sink;
    /* Fills tokens; may look at the call's JSON and the engine. */
    int (*prepare)(struct gen *g, struct err *e);
    struct registry_model *model; /* held once it is there */
    int32_t *tokens;              /* of all prompts; mem_free */
    size_t n_tokens;
    size_t *ends; /* of several prompts: where each ends (before prepare: in `prompt`); mem_free */
    struct gen_choice *choices; /* [p.n] */
    char id[48];                /* of the answer: "chatcmpl-..." */
    uint64_t created_s;
    struct buf prompt; /* for prepare: the context of a template, a text */
    struct buf prefix; /* the sink's: what every chunk begins with */
    void *user;        /* the handler's and the sink's */
    enum prompt_kind prompt_kind;
    bool echo;       /* the prompt belongs in front of the answer */
    bool recallable; /* the body and p are all that the sink needs: see recall.h */

    /* private */
    const char *id_prefix;
    uint8_t question[SHA256_BYTES]; /* in the prompt cache */
    bool cacheable, hit;
    struct buf kept;      /* every token so far, as kept_answer.h has it */
    pthread_mutex_t lock; /* guards queue, posted, overflow, is_done */
    struct buf queue, taken;
    bool posted;
    int overflow; /* 0, or why tokens were lost */
    uint32_t n_left;
    bool held, failed, refused, counted, named; /* named: the request says which model */
    int prepare_rc;
    struct err error;
    struct loop_task wake, prepared;
    struct acquire acquire;
    struct pool_task pool_task;
};

/* NULL: no memory, and the call is answered. */
struct gen *gen_create(struct call *c, const struct gen_sink *sink, const char *id_prefix);
void gen_free(struct gen *g); /* of one that was never run */
/* model: NULL is the default one. */
void gen_run(struct gen *g, const char *model);

/* Answers a call whose body came before and whose answer is still in the prompt cache, as gen_run
 * would.  false: it is to be read. */
bool gen_recall(struct call *c);

/* The tokens of a choice's prompt. */
const int32_t *gen_prompt_of(const struct gen *g, uint32_t choice, size_t *n);
/* Of all prompts and choices. */
uint32_t gen_prompt_tokens(const struct gen *g);
uint32_t gen_completion_tokens(const struct gen *g);
uint32_t gen_cached_tokens(const struct gen *g);

#endif
