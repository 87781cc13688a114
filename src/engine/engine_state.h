/* engine_state.h - the inside of an engine.  Private to src/engine.
 *
 * Thread: each group of fields states which threads may access it. */
#ifndef SHOAL_ENGINE_ENGINE_STATE_H
#define SHOAL_ENGINE_ENGINE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/decode/constraint.h"
#include "engine/cost.h"
#include "engine/decode/chain.h"
#include "engine/decode/draft.h"
#include "engine/fair.h"
#include "engine/decode/kv_pages.h"
#include "engine/decode/states.h"
#include "engine/decode/lm.h"
#include "engine/decode/sampler.h"
#include "engine/run_watch.h"
#include "engine/specialist.h"
#include "engine/chat/tool_format.h"
#include "format/model_file.h"
#include "shoal/shoal.h"
#include "text/tokenizer/tokenizer.h"

/* While tasks generate, prompts get only this fraction of a chunk per step, so that a long prompt
 * does not stall running answers. */
#define ENGINE_SHARED_CHUNK_PART 4u

/* Pending work, for estimates on any thread: the values are independent. Waiting work by client is
 * in fair.h. */
struct engine_load {
    _Atomic uint32_t n_active, n_waiting;
    _Atomic uint64_t active_prompt, active_decode; /* tokens to prefill, tokens expected */
};

struct shoal_engine {
    unsigned kinds;               /* enum shoal_kind */
    struct specialist specialist; /* ops NULL: a decoder */
    struct job **jobs;            /* [specialist.max_jobs]: the current batch */
    _Atomic uint64_t cost_ahead;  /* units of waiting and running jobs */
    struct cost cost;
    struct engine_load load;

    struct crew *crew; /* shared by all engines (shared_crew.h) */
    struct model_file *file;
    struct onnx_session *onnx; /* while an ONNX model is being opened */
    struct lm lm;
    struct chain chain;             /* until the model is open; ops NULL: the whole model is here */
    const struct kern_ops *kernels; /* for the sampler */
    struct tokenizer *tokenizer;
    struct chat_template *chat; /* NULL: chat_error has the reason */
    struct err chat_error;
    enum tool_format tool_format;   /* of the template */
    bool no_system;                 /* the template refuses system messages */
    bool tools_in_system;           /* the template reads tools from the system message */
    struct constraints constraints; /* has its own lock */
    struct kv_pages *pages;
    struct states *states; /* NULL: the model has no recurrent blocks */
    uint32_t n_states;     /* of the model: one for each slot, then checkpoints; 0: it has none */
    struct sampler *sampler;
    uint8_t *kv; /* NULL: the model keeps its own, and kv_bytes is its limit */
    size_t kv_bytes;
    uint32_t n_pages, max_tasks, max_queue, chunk;
    char *name;
    char *arch; /* of an ONNX model */
    double load_ms;
    char *path;                 /* as opened, for messages */
    _Atomic bool files_changed; /* see engine_files.h; never reset */

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* guards incoming, n_waiting, stop, done of tasks */
    pthread_cond_t wake, finished;
    bool idle;                   /* under lock: the thread sleeps and has not been woken */
    struct shoal_task *incoming; /* newest first */
    struct page_job *page_jobs;  /* under lock; see decode/page_exchange.h */
    uint32_t n_waiting;          /* incoming and waiting */
    bool stop;
    uint64_t next_serial;
    uint64_t fair_waiting_units; /* under lock: units of a specialist's waiting jobs */
    struct fair fair;            /* fair.h says which fields are under the lock */
    _Atomic uint32_t pages_free; /* for info */

    /* only the engine's thread, or the crew member that does its work between two steps
     * (scheduler.c) */
    struct shoal_task **active;        /* [max_tasks], best first */
    uint32_t n_active, pages_reserved; /* pages promised to active tasks */
    bool *slot_used;                   /* [max_tasks] */
    struct decoder_run *runs;          /* [max_tasks], like the next three */
    struct shoal_task **run_task;
    uint32_t *run_slot;
    int *run_code;
    uint32_t n_runs;                       /* runs of the current step */
    uint32_t step_decoded, step_prefilled; /* tasks, tokens */
    uint32_t step_guessed;                 /* tokens of drafts */
    struct draft_costs draft_costs;
    uint32_t guessed_steps;              /* with drafts, so far */
    uint64_t n_guessed, n_guessed_right; /* so far, for tests */
    bool context_shift;                  /* long answers drop the middle of their context */
    struct run_watch watch;              /* of the step or the batch */
    uint32_t shed_pause;                 /* steps until tasks may be ended early again */
    uint64_t files_next_ns;              /* next time that engine_files_check_at checks */
    bool files_checked; /* since the last step or batch; see engine_files_check_end */
};

/* As shoal_tokenize; SHOAL_ELIMIT: there are more than max_tokens. */
SHOAL_MUST_CHECK int engine_tokenize(const struct shoal_engine *en, const char *text, size_t n,
                                     unsigned flags, size_t max_tokens, int32_t **tokens,
                                     size_t *n_tokens, struct err *e);

#endif
