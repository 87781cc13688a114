/* engine_int.h - inside of an engine, shared by engine.c (open, text), task.c (submit, wait) and
 * scheduler.c (the engine's thread).  Private to src/runtime. */
#ifndef SHOAL_ENGINE_ENGINE_INT_H
#define SHOAL_ENGINE_ENGINE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "format/gguf.h"
#include "text/tokenizer/tokenizer.h"
#include "engine/kv_pages.h"
#include "engine/lm.h"
#include "engine/sampler.h"
#include "engine/specialist.h"
#include "engine/text_out.h"
#include "shoal/shoal.h"

#define TASK_NO_SLOT UINT32_MAX

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
    bool ignore_end;
    uint64_t deadline_ns, submitted_ns, serial;
    int32_t priority;
    shoal_event_fn event;
    void *event_ctx;

    /* the engine's thread only, from here on */
    int32_t *tokens; /* prompt and what was generated */
    uint32_t n_tokens, n_computed, n_cached;
    uint32_t *pages; /* [n_pages] held */
    uint32_t n_pages, n_published, need_pages;
    uint32_t slot; /* while active: its place in the model, else TASK_NO_SLOT */
    struct text_out text;
    uint64_t started_ns, first_token_ns;
};

struct shoal_engine {
    unsigned kinds;               /* enum shoal_kind */
    struct specialist specialist; /* ops NULL: a decoder */
    struct job **jobs;            /* [specialist.max_jobs]: of the batch under way */
    _Atomic uint64_t cost_ahead;  /* of jobs that wait or run */
    /* Measured, moving averages, 0: not yet.  What a unit of cost takes; what a decoder takes from
     * the beginning to the first token, per token of the prompt; how long tasks waited. */
    _Atomic double ns_per_cost, ns_per_prompt_token, ns_in_queue;

    struct gguf *gguf;
    struct onnx_session *onnx; /* of a model that is being opened */
    struct lm lm;
    const struct kern_ops *kernels; /* for the sampler */
    struct tokenizer *tokenizer;
    struct chat_template *chat; /* NULL: chat_error says why */
    struct err chat_error;
    struct kv_pages *pages;
    struct sampler *sampler;
    uint8_t *kv; /* NULL where the model keeps it; then kv_bytes is what it may grow to */
    size_t kv_bytes;
    uint32_t n_pages, max_tasks, max_queue, chunk;
    char *name;
    char *arch; /* of an ONNX model */
    double load_ms;

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* guards incoming, n_waiting, stop, done of tasks */
    pthread_cond_t wake, finished;
    bool idle;                   /* under lock: the thread waits to be woken, nobody has yet */
    struct shoal_task *incoming; /* newest first */
    uint32_t n_waiting;          /* incoming and waiting */
    bool stop;
    uint64_t next_serial;
    _Atomic uint32_t pages_free; /* for info */

    /* the engine's thread only, or who does its work between two steps (scheduler.c) */
    struct shoal_task *waiting;        /* best first */
    struct shoal_task **active;        /* [max_tasks], best first */
    uint32_t n_active, pages_reserved; /* pages promised to active tasks */
    bool *slot_used;                   /* [max_tasks] */
    struct decoder_run *runs;          /* [max_tasks], as what follows */
    struct shoal_task **run_task;
    uint32_t *run_slot;
    int *run_code;
    uint32_t n_runs; /* of the step under way */
};

/* Parses the model's chat template; one that cannot be parsed is reported when it is asked for
 * (chat.c). */
void chat_open(struct shoal_engine *en);
void chat_close(struct shoal_engine *en);
/* The engine thread's main function: of a decoder (scheduler.c), of a specialist (batcher.c). */
void *scheduler_main(void *engine);
void *batcher_main(void *engine);
/* Opens the model as a specialist when it is one: then en->specialist.ops is set (specialist.c). */
SHOAL_MUST_CHECK int specialist_open(struct shoal_engine *en, const char *path,
                                     const struct shoal_engine_opts *o, struct err *e);
/* How many pages of the key-value cache there will be: `wanted`, or what o says; refused with the
 * arithmetic when everything together does not fit (engine.c). */
struct engine_need { /* bytes */
    size_t weights, scratch, kv_page;
};
SHOAL_MUST_CHECK int engine_plan_pages(uint32_t *n_pages, const struct engine_need *need,
                                       size_t wanted, const struct shoal_engine_opts *o,
                                       struct err *e);
/* Fails with what the model can do instead (infer.c). */
int engine_lacks(const struct shoal_engine *en, enum shoal_kind kind, struct err *e);
void job_destroy(struct job *j);

/* Drops one reference; frees (task.c). */
void task_unref(struct shoal_task *t);
void task_destroy(struct shoal_task *t);

/* queue.c.  Into the engine's queue, or SHOAL_EBUSY. */
/* held: the engine is not woken for it. */
SHOAL_MUST_CHECK int task_submit(struct shoal_engine *en, struct shoal_task *t, bool held,
                                 struct err *e);
bool task_goes_before(const struct shoal_task *a, const struct shoal_task *b);
void task_enqueue(struct shoal_engine *en, struct shoal_task *t);
/* Takes *at out of the waiting list. */
void task_take_waiting(struct shoal_engine *en, struct shoal_task **at);
/* 0 or the reason to give the task up now. */
int task_gave_up(const struct shoal_task *t, uint64_t now);
/* A new figure for a moving average. */
void measured(_Atomic double *average, double value);
/* Refuses a task that needs so long and has less time, with the arithmetic.  The averages that say
 * so fade a little: else a slow moment would be held against everybody who comes later. */
SHOAL_MUST_CHECK int refuse_late(double need_ns, uint64_t deadline_ns,
                                 _Atomic double *const *averages, size_t n_averages, struct err *e);
/* Wakes who waits for it and drops the engine's reference. */
void task_done(struct shoal_engine *en, struct shoal_task *t, int code);
/* Moves new tasks into the queue; sleeps while there is nothing at all.  false: stop. */
bool engine_receive(struct shoal_engine *en);

#endif
