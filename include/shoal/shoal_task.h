/* shoal_task.h - generation: tasks, their token events, and sessions.
 *
 * Example: an answer, shown as it comes, that must be complete in two seconds.
 *
 *     static void show(void *ctx, const struct shoal_event *event)
 *     {
 *         if (event->kind == SHOAL_EVENT_TOKEN)
 *             fwrite(event->text, 1, event->text_bytes, (FILE *)ctx);
 *     }
 *
 *     static int answer(struct shoal_engine *engine, const int32_t *prompt, uint32_t n)
 *     {
 *         struct timespec now;
 *         clock_gettime(CLOCK_MONOTONIC, &now);
 *         struct shoal_task_opts opts = {
 *             .size = sizeof(opts),
 *             .tokens = prompt,
 *             .n_tokens = n,
 *             .max_tokens = 64,
 *             .sampling = {.temperature = 0.7f, .top_p = 0.9f, .seed = 42},
 *             .deadline_ns = ((uint64_t)now.tv_sec + 2) * 1000000000u,
 *             .event = show,
 *             .event_ctx = stdout,
 *         };
 *         struct shoal_task *task;
 *         struct shoal_error err;
 *         int rc = shoal_task_submit(engine, &opts, &task, &err);
 *         if (rc < 0) { // "needs about 3100 ms, 2000 ms remain"
 *             fprintf(stderr, "%s\n", err.msg);
 *             return rc;
 *         }
 *         rc = shoal_task_wait(task);
 *         shoal_task_free(task);
 *         return rc;
 *     }
 *
 * Thread:    any.  Events come on threads of the engine, one at a time per task: handle them
 *            quickly, and never call shoal_task_wait or shoal_engine_close from one.
 * Ownership: submit gives the caller a task to free; prompt, stop texts and biases are copied.
 * Lifetime:  an event and everything it points to are valid during the callback only. */
#ifndef SHOAL_SHOAL_TASK_H
#define SHOAL_SHOAL_TASK_H

#include "shoal/shoal_engine.h"

#ifdef __cplusplus
extern "C" {
#endif

struct shoal_bias {
    int32_t token;
    float bias; /* added to the logit; -INFINITY forbids the token */
};

#define SHOAL_MAX_LOGPROBS 256u

/* Applied in this order: bias, repetition, presence and frequency penalties, temperature, top-k,
 * top-p, min-p.  Keeps its layout: later versions add sampling options to shoal_task_opts. */
struct shoal_sampling {
    float temperature;    /* 0: always the likeliest token */
    uint32_t top_k;       /* 0: all */
    float top_p;          /* 0 or 1: all */
    float min_p;          /* keep tokens at least min_p times as likely as the likeliest; 0: all */
    float repeat_penalty; /* 0 or 1: none; above 1: recent tokens become less likely */
    uint32_t repeat_last_n;  /* how many tokens back; 0: 64 */
    float presence_penalty;  /* once for every token generated before */
    float frequency_penalty; /* for each time it was generated */
    uint64_t seed;           /* the draw at position p depends on (seed, p) alone */
    const struct shoal_bias *bias;
    uint32_t n_bias;
    uint32_t n_logprobs; /* alternatives to report with each token, SHOAL_MAX_LOGPROBS at most */
    bool logprobs;       /* report each token's log-probability */
};

/* The form of the answer. constraint_text gives the details: */
enum shoal_constraint {
    SHOAL_CONSTRAINT_NONE,
    SHOAL_CONSTRAINT_JSON,   /* any JSON object; the text is not used */
    SHOAL_CONSTRAINT_SCHEMA, /* a JSON Schema */
    SHOAL_CONSTRAINT_GBNF,   /* a grammar as llama.cpp writes them */
    SHOAL_CONSTRAINT_REGEX,  /* a regular expression for the whole answer */
    SHOAL_CONSTRAINT_CHOICE, /* a JSON list of texts, one of which is the answer */
    SHOAL_CONSTRAINT_PARTS,  /* JSON values with texts around them: docs/STRUCTURED.md */
};

enum shoal_event_kind {
    SHOAL_EVENT_TOKEN, /* one token; text may be empty while a character or stop string is open */
    SHOAL_EVENT_DONE,  /* the last event of a task */
    /* With prompt_logprobs: a token of the prompt, from its second on, with its log-probability;
     * before all tokens of the answer. */
    SHOAL_EVENT_PROMPT,
    /* With `progress`: computed_tokens of prompt_tokens are ready, cached_tokens of them because an
     * earlier prompt began the same way.  Comes before the first chunk and after each. */
    SHOAL_EVENT_PROGRESS,
};

enum shoal_finish {
    SHOAL_FINISH_NONE,
    SHOAL_FINISH_STOP,   /* the model ended, or a stop string came */
    SHOAL_FINISH_LENGTH, /* max_tokens or the context is used up */
    SHOAL_FINISH_ERROR,  /* see code: cancelled, deadline, ... */
};

struct shoal_logprob {
    int32_t token;
    float logprob;
};

struct shoal_event {
    size_t size;
    enum shoal_event_kind kind;
    int32_t token;    /* TOKEN; -1: text that was held back and follows the last token */
    const char *text; /* what can be shown now; not NUL-terminated */
    size_t text_bytes;
    float logprob;
    const struct shoal_logprob *top; /* the likeliest, best first */
    uint32_t n_top;
    /* DONE */
    enum shoal_finish finish;
    int code; /* SHOAL_E* with SHOAL_FINISH_ERROR */
    uint32_t prompt_tokens, cached_tokens, generated_tokens;
    uint64_t queue_ns, first_token_ns, total_ns; /* from submit */
    bool stopped_by_text;                        /* SHOAL_FINISH_STOP: by one of the stop texts */
    size_t stop_index;                           /* with stopped_by_text: by which of them */
    uint32_t computed_tokens;                    /* PROGRESS */
    bool last; /* TOKEN: DONE follows at once; a forwarder may wait and send both together */
};

typedef void (*shoal_event_fn)(void *ctx, const struct shoal_event *event);

struct shoal_task_opts { /* zero means default */
    size_t size;
    const int32_t *tokens; /* the prompt; copied */
    uint32_t n_tokens;
    /* This many of the last tokens were generated before, by an interrupted task: penalties count
     * them, their text is not sent again, and the output continues exactly as that task would have.
     * Such a task is admitted before others, since its client already has the beginning. */
    uint32_t n_continued;
    uint32_t max_tokens; /* 0: until the context is full */
    struct shoal_sampling sampling;
    const char *const *stop; /* texts that end the generation; copied, not part of the output */
    uint32_t n_stop;
    bool ignore_end;      /* do not stop at the model's own end token */
    bool special;         /* show special tokens in the text */
    uint64_t deadline_ns; /* absolute, CLOCK_MONOTONIC; 0: none */
    int32_t priority;     /* higher first */
    bool held;            /* do not wake an idle engine: shoal_engine_wake does */
    shoal_event_fn event; /* may be NULL */
    void *event_ctx;
    /* The client of the task: clients share an engine by the tokens computed for each. 0: no
     * particular client; such tasks count as one client. */
    uint64_t client;
    float weight; /* of the client's share; 0: 1.  Below 0: SHOAL_EINVAL */
    /* Report log-probabilities of the prompt's tokens too, with sampling.logprobs.  The prompt is
     * then computed token by token, and none of it is taken from the cache. */
    bool prompt_logprobs;
    bool prompt_only; /* with prompt_logprobs: nothing is generated */
    bool progress;    /* report prefill progress */
    /* Log-probabilities are those after bias, penalties, temperature, top-k, top-p and min-p, and
     * only tokens that could be sampled are reported. */
    bool drawn_logprobs;
    /* Only tokens that satisfy the constraint are sampled; the answer ends when it must, with
     * SHOAL_FINISH_STOP. SHOAL_EINVAL or SHOAL_EUNSUPPORTED at submit report an error in the text,
     * which is copied. */
    const char *constraint_text;
    size_t constraint_bytes;
    enum shoal_constraint constraint;
    /* Find and leave cached prompt prefixes among those of all clients. Otherwise a task finds only
     * those of its client: nobody learns by a fast answer what another client has sent. */
    bool shared_prefix;
    /* The whole prompt is computed: none of it is taken from the cache, of this client or others.
     */
    bool fresh_prefix;
    bool no_shift; /* the answer ends at the context, also with shoal_engine_opts.context_shift */
    uint8_t reserved[1]; /* for a later member */
    /* With context_shift: this many of the first tokens stay, in whole pages and at most half of
     * the context; 0: the prompt, at most a quarter. */
    uint64_t keep_tokens;
    /* An adapter of this engine (shoal_adapter_open), or NULL: the model alone.  Prefixes are
     * cached for each adapter and scale apart. */
    const struct shoal_adapter *adapter;
    double adapter_scale; /* in place of the adapter's own; 0: that */
};

struct shoal_task;

/* SHOAL_EBUSY: the queue is full. SHOAL_ELIMIT: the prompt can never fit. SHOAL_EDEADLINE: the
 * deadline is past, or at the measured speed the answer cannot be complete before it ("needs about
 * 12 ms, 5 ms remain"). On failure *task is NULL and there are no events. */
SHOAL_API int shoal_task_submit(struct shoal_engine *engine, const struct shoal_task_opts *opts,
                                struct shoal_task **task, struct shoal_error *err);
/* For tasks submitted with `held`: wakes the engine once for all of them, so that they begin
 * together. */
SHOAL_API void shoal_engine_wake(struct shoal_engine *engine);
/* Ends the task within one token; its DONE event still comes.  Any thread, any time before free. */
SHOAL_API void shoal_task_cancel(struct shoal_task *task);
/* Waits for DONE; returns the finish code (0 or SHOAL_E*; SHOAL_EINVAL: task is NULL). */
SHOAL_API int shoal_task_wait(struct shoal_task *task);
/* Gives up the caller's reference (NULL is fine); before DONE it also cancels. */
SHOAL_API void shoal_task_free(struct shoal_task *task);

/* ---- sessions --------------------------------------------------------------------------------
 * A conversation keeps its tokens, so that a turn costs only its new ones.
 *
 * Thread:    any, one call at a time for each session; shoal_session_tokens not while a task of
 *            the session runs.
 * Ownership: create gives, destroy takes back.
 * Failure:   SHOAL_ENOMEM; append: SHOAL_ELIMIT, the context is full; generate: as
 *            shoal_task_submit. */

struct shoal_session;

/* The engine must outlive the session. */
SHOAL_API int shoal_session_create(struct shoal_session **out, struct shoal_engine *engine,
                                   struct shoal_error *err);
/* After its last task is done; NULL is fine. */
SHOAL_API void shoal_session_destroy(struct shoal_session *session);
/* Adds tokens, which are copied, to the end of the conversation. */
SHOAL_API int shoal_session_append(struct shoal_session *session, const int32_t *tokens, size_t n,
                                   struct shoal_error *err);
/* Generates from the tokens so far (opts->tokens is ignored) and adds what is produced to the
 * conversation.  One task at a time. */
SHOAL_API int shoal_session_generate(struct shoal_session *session,
                                     const struct shoal_task_opts *opts, struct shoal_task **task,
                                     struct shoal_error *err);
/* The number of tokens; *tokens (NULL: not wanted) is the session's own array, valid until the
 * session changes. */
SHOAL_API size_t shoal_session_tokens(const struct shoal_session *session, const int32_t **tokens);

#ifdef __cplusplus
}
#endif

#endif
