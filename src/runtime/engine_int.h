/* engine_int.h - inside of an engine, shared by engine.c (open, text), task.c (submit, wait) and
 * scheduler.c (the engine's thread).  Private to src/runtime. */
#ifndef SHOAL_RUNTIME_ENGINE_INT_H
#define SHOAL_RUNTIME_ENGINE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "model/gguf.h"
#include "model/tokenizer.h"
#include "runtime/kv_pages.h"
#include "runtime/lm.h"
#include "runtime/sampler.h"
#include "runtime/text_out.h"
#include "shoal/shoal.h"

#define TASK_NO_SLOT UINT32_MAX

struct shoal_task {
    struct shoal_engine *engine;
    struct shoal_task *next; /* in one list at a time */
    _Atomic uint32_t refs;   /* the caller's and the engine's */
    _Atomic bool cancel;
    bool done; /* under the engine's lock */
    int code;

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
    struct gguf *gguf;
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
    double load_ms;

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* guards incoming, n_waiting, stop, done of tasks */
    pthread_cond_t wake, finished;
    struct shoal_task *incoming; /* newest first */
    uint32_t n_waiting;          /* incoming and waiting */
    bool stop;
    uint64_t next_serial;
    _Atomic uint32_t pages_free; /* for info */

    /* the engine's thread only */
    struct shoal_task *waiting;        /* best first */
    struct shoal_task **active;        /* [max_tasks], best first */
    uint32_t n_active, pages_reserved; /* pages promised to active tasks */
    bool *slot_used;                   /* [max_tasks] */
    struct decoder_run *runs;          /* [max_tasks], as what follows */
    struct shoal_task **run_task;
    uint32_t *run_slot;
    int *run_code;
};

/* Parses the model's chat template; one that cannot be parsed is reported when it is asked for
 * (chat.c). */
void chat_open(struct shoal_engine *en);
void chat_close(struct shoal_engine *en);
/* The engine thread's main function (scheduler.c). */
void *scheduler_main(void *engine);
/* Drops one reference (task.c). */
void task_unref(struct shoal_task *t);

#endif
