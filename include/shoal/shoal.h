/* shoal.h - the C library: load a model, submit tasks, receive tokens or results.
 *
 * engine   one loaded model with its memory and its own thread.  Everything it will ever use is
 *          reserved by shoal_engine_open; a model that does not fit is refused there with the
 *          arithmetic.
 * task     one generation (prompt tokens in, token events out) or one inference of a specialist
 *          (text or numbers in, one result out).  Tasks of one engine run together, ordered by
 *          priority and deadline; prompts advance in chunks, so a long one does not stall the
 *          others; tasks that begin with the same tokens share that part of the memory.
 * session  a conversation: keeps its tokens, so that each turn costs only what is new.
 *
 * Threads: shoal_engine_open/close from one thread, when no task is left; everything else from any
 * thread.  Events come on threads of the engine's, never two at a time: handle them shortly, never
 * call shoal_task_wait or shoal_engine_close from one.
 * Errors: 0 or a negative SHOAL_E* (shoal_errors.h); the text goes into the caller's shoal_error.
 * Determinism: (model, tokens so far, sampling with its seed) is the whole state of a generation.
 * A task submitted with the prompt and the tokens that another one produced continues exactly as
 * that one would have, on any machine. */
#ifndef SHOAL_SHOAL_H
#define SHOAL_SHOAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shoal/shoal_errors.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHOAL_API __attribute__((visibility("default")))

struct shoal_error { /* filled only on failure */
    int code;
    char msg[320];
};

/* ---- engine --------------------------------------------------------------------------------- */

struct shoal_engine;

struct shoal_engine_opts { /* all zero means defaults */
    const char *kernels;   /* name of a kernel set; NULL: the best that runs here */
    uint32_t n_threads;    /* 0: by the size of the model and the cores here */
    uint32_t n_ctx;        /* longest sequence in tokens; 0: the model's own, at most 4096 */
    uint32_t max_tasks;    /* tasks that run at once; 0: 8 */
    uint32_t max_queue;    /* tasks that may wait; 0: 256 */
    uint32_t chunk;        /* prompt tokens per step; 0: 128 */
    size_t kv_bytes;       /* hard limit of the key-value cache; 0: n_ctx tokens for half of
                              max_tasks */
    bool kv_q8;            /* 8-bit keys and values: half the memory, a little less exact */
    bool int8;             /* specialists: compute with 8-bit weights, whatever the file has */
    size_t memory_bytes;   /* refuse a model that needs more in all; 0: what the machine has free */
    const char *cache_dir; /* packed weights are kept there; NULL: $SHOAL_CACHE_DIR, else
                              $XDG_CACHE_HOME/shoal, else ~/.cache/shoal; "": do not keep */
    /* Called while weights are packed the first time, part 0..1; return true to give up. */
    bool (*progress)(void *ctx, double part);
    void *progress_ctx;
};

/* What a model can do; an engine may have several bits. */
enum shoal_kind {
    SHOAL_KIND_GENERATE = 1 << 0,  /* shoal_task_submit */
    SHOAL_KIND_CLASSIFY = 1 << 1,  /* the others: shoal_infer_submit */
    SHOAL_KIND_TAG = 1 << 2,       /* spans of a text: entities, slots, personal data */
    SHOAL_KIND_EMBED = 1 << 3,     /* a vector for a text */
    SHOAL_KIND_RERANK = 1 << 4,    /* how well a document answers a query */
    SHOAL_KIND_SUMMARIZE = 1 << 5, /* a short text for a long one */
    SHOAL_KIND_SCORE = 1 << 6,     /* numbers for numbers */
};
/* "classify", ...; NULL when it is none. */
SHOAL_API const char *shoal_kind_name(enum shoal_kind kind);

struct shoal_engine_info {
    unsigned kinds;      /* enum shoal_kind bits; fields that make no sense for them are 0 */
    const char *arch;    /* "llama" */
    const char *name;    /* general.name of the file, or "" */
    const char *engine;  /* "native" or "onnx" */
    const char *kernels; /* the kernel set in use, or the library with its version */
    uint32_t n_vocab, n_ctx, n_ctx_train, n_layers, dim, n_threads, max_tasks;
    uint64_t n_params, file_bytes;
    size_t weights_bytes, scratch_bytes, kv_bytes; /* reserved */
    uint32_t kv_pages, kv_pages_free, page_tokens;
    double load_ms;
    bool from_cache;           /* packed weights were already there */
    const char *chat_template; /* or NULL */
};

SHOAL_API int shoal_engine_open(struct shoal_engine **out, const char *path,
                                const struct shoal_engine_opts *opts, struct shoal_error *err);
/* Cancels what is left and frees; NULL is fine. */
SHOAL_API void shoal_engine_close(struct shoal_engine *engine);
SHOAL_API void shoal_engine_info(const struct shoal_engine *engine, struct shoal_engine_info *info);
/* A text of the model's metadata, such as "huggingface.config" or "general.licence"; NULL: none.
 * Not NUL-terminated; lives as long as the engine. */
SHOAL_API const char *shoal_engine_metadata(const struct shoal_engine *engine, const char *key,
                                            size_t *n);

/* ---- text ----------------------------------------------------------------------------------- */

#define SHOAL_TEXT_ADD_SPECIAL 1u   /* tokenize: BOS and the like, as the model asks */
#define SHOAL_TEXT_PARSE_SPECIAL 2u /* tokenize: special tokens may be spelled in the text */
#define SHOAL_TEXT_SPECIAL 4u       /* detokenize: show special tokens */

/* *tokens and *text belong to the caller: shoal_free. */
SHOAL_API int shoal_tokenize(const struct shoal_engine *engine, const char *text, size_t n,
                             unsigned flags, int32_t **tokens, size_t *n_tokens,
                             struct shoal_error *err);
SHOAL_API int shoal_detokenize(const struct shoal_engine *engine, const int32_t *tokens,
                               size_t n_tokens, unsigned flags, char **text, size_t *n,
                               struct shoal_error *err);
/* Renders the model's chat template (or ChatML when it has none) to prompt text.  context_json:
 * {"messages":[{"role":"user","content":"..."}],"tools":[...],"add_generation_prompt":true,...} */
SHOAL_API int shoal_chat_prompt(const struct shoal_engine *engine, const char *context_json,
                                size_t n_json, char **text, size_t *n, struct shoal_error *err);
/* The same as tokens, ready to be submitted.  Only the template's own special tokens become such:
 * one that is spelled in a message stays text.  Use this for messages that others wrote. */
SHOAL_API int shoal_chat_tokens(const struct shoal_engine *engine, const char *context_json,
                                size_t n_json, int32_t **tokens, size_t *n_tokens,
                                struct shoal_error *err);
/* The bytes of one token as they stand inside a text (SHOAL_TEXT_SPECIAL: special ones too);
 * borrowed from the engine, not NUL-terminated, "" for an id that is not there. */
SHOAL_API const char *shoal_token_text(const struct shoal_engine *engine, int32_t token,
                                       unsigned flags, size_t *n);
SHOAL_API void shoal_free(void *p);

/* ---- tasks ---------------------------------------------------------------------------------- */

struct shoal_bias {
    int32_t token;
    float bias; /* added to the logit; -INFINITY forbids the token */
};

/* Applied in this order: bias, repetition, presence and frequency penalties, temperature, top-k,
 * top-p, min-p. */
struct shoal_sampling {
    float temperature;    /* 0: the likeliest token, always */
    uint32_t top_k;       /* 0: all */
    float top_p;          /* 0 or 1: all */
    float min_p;          /* keep tokens at least so likely as min_p times the likeliest; 0: all */
    float repeat_penalty; /* 0 or 1: none; above: tokens seen lately are less likely */
    uint32_t repeat_last_n;  /* how many tokens back; 0: 64 */
    float presence_penalty;  /* once for every token generated before */
    float frequency_penalty; /* for every time */
    uint64_t seed;           /* the draw at position p depends on (seed, p) alone */
    const struct shoal_bias *bias;
    uint32_t n_bias;
    uint32_t n_logprobs; /* alternatives to report with each token, at most 20 */
    bool logprobs;       /* report each token's log-probability */
};

enum shoal_event_kind {
    SHOAL_EVENT_TOKEN, /* one token; text may be empty while a character or stop string is open */
    SHOAL_EVENT_DONE,  /* the last event of a task */
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
    enum shoal_event_kind kind;
    int32_t token;    /* TOKEN */
    const char *text; /* what can be shown now; valid during the call, not NUL-terminated */
    size_t text_bytes;
    float logprob;
    const struct shoal_logprob *top; /* the likeliest, best first */
    uint32_t n_top;
    /* DONE */
    enum shoal_finish finish;
    int code; /* SHOAL_E* with SHOAL_FINISH_ERROR */
    uint32_t prompt_tokens, cached_tokens, generated_tokens;
    uint64_t queue_ns, first_token_ns, total_ns; /* from submit */
};

typedef void (*shoal_event_fn)(void *ctx, const struct shoal_event *event);

struct shoal_task_opts {
    const int32_t *tokens; /* the prompt; copied */
    uint32_t n_tokens;
    uint32_t n_continued; /* the last so many of them were generated before: penalties count them */
    uint32_t max_tokens;  /* 0: until the context is full */
    struct shoal_sampling sampling;
    const char *const *stop; /* texts that end the generation; copied, not part of the output */
    uint32_t n_stop;
    bool ignore_end;      /* do not stop at the model's own end token */
    bool special;         /* show special tokens in the text */
    uint64_t deadline_ns; /* absolute, CLOCK_MONOTONIC; 0: none */
    int32_t priority;     /* higher first */
    bool held;            /* an idle engine goes on sleeping until shoal_engine_wake */
    shoal_event_fn event; /* may be NULL */
    void *event_ctx;
};

struct shoal_task;

/* SHOAL_EBUSY: the queue is full.  SHOAL_ELIMIT: the prompt can never fit.  SHOAL_EDEADLINE: the
 * deadline is already past, or not even the first token can be there by then, as things go.  On
 * failure there is no task and no event. */
SHOAL_API int shoal_task_submit(struct shoal_engine *engine, const struct shoal_task_opts *opts,
                                struct shoal_task **task, struct shoal_error *err);
/* For tasks that were submitted with `held`: several are woken for once, and begin together. */
SHOAL_API void shoal_engine_wake(struct shoal_engine *engine);
/* Ends the task within one token; its DONE event still comes.  Any thread, any time before free. */
SHOAL_API void shoal_task_cancel(struct shoal_task *task);
/* Waits for DONE; returns the finish code (0 or SHOAL_E*). */
SHOAL_API int shoal_task_wait(struct shoal_task *task);
/* The caller's part of the task; before DONE it also cancels. */
SHOAL_API void shoal_task_free(struct shoal_task *task);

/* ---- specialists ---------------------------------------------------------------------------- */

struct shoal_result;

struct shoal_infer_opts { /* what does not belong to the kind is ignored; all zero: defaults */
    enum shoal_kind kind; /* one bit */
    const char *text;     /* copied; RERANK: the query */
    size_t text_bytes;
    const char *document; /* RERANK; SUMMARIZE: the text's title, or NULL; copied */
    size_t document_bytes;
    const double *values; /* SCORE: rows one after the other; copied.  NaN: missing */
    uint32_t n_values;
    uint32_t n_columns;     /* SCORE: values of a row; 0: the model's own, or 1 */
    const char *labels;     /* CLASSIFY, TAG: name of a label set; NULL: the model's default */
    uint32_t dimensions;    /* EMBED: the first so many; 0: all */
    uint32_t max_sentences; /* SUMMARIZE: 0: the model's default */
    uint32_t max_tokens;    /* SUMMARIZE, where text is generated; 0: the model's default */
    uint32_t beams;         /* SUMMARIZE, where text is generated; 1: no search; 0: the model's
                               default */
    float temperature;      /* SUMMARIZE, where text is generated: above 0 draws, by the seed */
    uint64_t seed;
    bool raw;             /* SCORE: before the objective's transform; RERANK: the logit */
    uint64_t deadline_ns; /* absolute, CLOCK_MONOTONIC; 0: none */
    int32_t priority;     /* higher first */
    bool held;            /* as of a task */
    /* Called once on the engine's thread; may be NULL.  The result lives until the task is freed.
     */
    void (*done)(void *ctx, const struct shoal_result *result);
    void *done_ctx;
};

struct shoal_label {
    const char *name;
    float score; /* calibrated probability; of several labels at once: each for itself */
};

struct shoal_span {
    const char *label;
    uint32_t start, end;           /* bytes of the text */
    uint32_t start_char, end_char; /* characters of the text */
    float score;
};

struct shoal_result {
    enum shoal_kind kind;
    int code;            /* 0 or SHOAL_E*: cancelled, deadline, ... */
    const char *message; /* with a code: what was wrong */
    /* CLASSIFY */
    const char *label; /* the answer: the best one, or the set's out-of-scope label */
    float confidence;  /* of label; out of scope by threshold: 1 - the best score */
    const struct shoal_label *labels; /* all of the set, best first */
    uint32_t n_labels;
    /* TAG, SUMMARIZE (the sentences that were taken, in their order) */
    const struct shoal_span *spans;
    uint32_t n_spans;
    /* EMBED */
    const float *vector;
    uint32_t n_dims;
    /* RERANK: values[0]; SCORE: n_outputs for each row */
    const double *values;
    uint32_t n_values;
    /* SUMMARIZE */
    const char *text;
    size_t text_bytes;

    uint32_t n_tokens;                   /* of the input */
    bool truncated;                      /* the input was longer than the model can read */
    uint32_t batch;                      /* tasks that were computed together */
    uint64_t queue_ns, run_ns, total_ns; /* from submit */
};

/* Fails as shoal_task_submit does; also SHOAL_EDEADLINE at once when what waits already and the
 * measured speed say that the deadline cannot be met. */
SHOAL_API int shoal_infer_submit(struct shoal_engine *engine, const struct shoal_infer_opts *opts,
                                 struct shoal_task **task, struct shoal_error *err);
/* Of a task that is done (in its callback, or after shoal_task_wait); NULL for a generation. */
SHOAL_API const struct shoal_result *shoal_task_result(const struct shoal_task *task);

/* Label set i of a kind (CLASSIFY, TAG), the default first; NULL behind the last. */
SHOAL_API const char *shoal_label_set(const struct shoal_engine *engine, enum shoal_kind kind,
                                      uint32_t i);
/* Label i of a set (NULL: the default), SCORE: name of output i; NULL behind the last. */
SHOAL_API const char *shoal_label(const struct shoal_engine *engine, enum shoal_kind kind,
                                  const char *set, uint32_t i);

/* SCORE: name of value i of a row (there are info.dim; 0: as many
 * as the caller has); NULL: it has none. */
SHOAL_API const char *shoal_input_name(const struct shoal_engine *engine, uint32_t i);

/* ---- sessions ------------------------------------------------------------------------------- */

struct shoal_session;

SHOAL_API int shoal_session_create(struct shoal_session **out, struct shoal_engine *engine,
                                   struct shoal_error *err);
SHOAL_API void shoal_session_destroy(struct shoal_session *session);
/* Adds tokens to the end of the conversation. */
SHOAL_API int shoal_session_append(struct shoal_session *session, const int32_t *tokens, size_t n,
                                   struct shoal_error *err);
/* Generates from what is there (opts->tokens is ignored); what is produced joins the conversation.
 * One task at a time. */
SHOAL_API int shoal_session_generate(struct shoal_session *session,
                                     const struct shoal_task_opts *opts, struct shoal_task **task,
                                     struct shoal_error *err);
SHOAL_API size_t shoal_session_tokens(const struct shoal_session *session, const int32_t **tokens);

SHOAL_API const char *shoal_version(void);

#ifdef __cplusplus
}
#endif

#endif
