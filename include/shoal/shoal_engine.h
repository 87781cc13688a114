/* shoal_engine.h - an engine: one loaded model, and the text functions that need it.
 *
 * Example: what a model is, and how it splits a text.
 *
 *     static int describe(const char *path, const char *text)
 *     {
 *         struct shoal_engine_opts opts = {.size = sizeof(opts), .n_ctx = 2048};
 *         struct shoal_engine_info info = {.size = sizeof(info)};
 *         struct shoal_engine *engine;
 *         struct shoal_error err;
 *         int32_t *tokens;
 *         size_t n;
 *         int rc = shoal_engine_open(&engine, path, &opts, &err);
 *         if (rc < 0) {
 *             fprintf(stderr, "%s\n", err.msg);
 *             return rc;
 *         }
 *         if (shoal_engine_info(engine, &info) == 0)
 *             printf("%s, %u layers, %zu bytes\n", info.arch, info.n_layers, info.weights_bytes);
 *         rc = shoal_tokenize(engine, text, strlen(text), 0, &tokens, &n, &err);
 *         for (size_t i = 0; rc == 0 && i < n; i++) {
 *             size_t bytes;
 *             const char *piece = shoal_token_text(engine, tokens[i], SHOAL_TEXT_SPECIAL, &bytes);
 *             printf("%d %.*s\n", tokens[i], (int)bytes, piece);
 *         }
 *         shoal_free(rc == 0 ? tokens : NULL);
 *         shoal_engine_close(engine);
 *         return rc;
 *     }
 *
 * Thread:    open and close from one thread, close when no task is left; the rest from any thread.
 * Ownership: open gives the engine to the caller, close takes it back (NULL is fine).
 * Lifetime:  strings from shoal_engine_info, shoal_engine_metadata, shoal_token_text and the label
 *            functions are the engine's: valid until shoal_engine_close. */
#ifndef SHOAL_SHOAL_ENGINE_H
#define SHOAL_SHOAL_ENGINE_H

#include "shoal/shoal_base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct shoal_engine;

struct shoal_engine_opts { /* zero means default; strings are copied */
    size_t size;
    const char *kernels; /* name of a kernel set, or "cuda"; NULL: the best set for the CPU */
    /* Compute threads: the engine's own and others that all engines of the process share.  0: by
     * the size of the model and the number of cores; 1: only its own. */
    uint32_t n_threads;
    uint32_t n_ctx;      /* longest sequence in tokens; 0: the model's own, at most 4096 */
    uint32_t max_tasks;  /* tasks that run at once; 0: 8 */
    uint32_t max_queue;  /* tasks that may wait; 0: 256 */
    uint32_t chunk;      /* prompt tokens per step; 0: 128 */
    size_t kv_bytes;     /* hard limit of the key-value cache; 0: n_ctx tokens for half of
                            max_tasks */
    bool kv_q8;          /* 8-bit keys and values: half the memory, slightly less accurate */
    bool int8;           /* specialists: compute with 8-bit weights, whatever the file has */
    size_t memory_bytes; /* refuse a model that needs more than this in total; 0: the machine's free
                            memory */
    const char *cache_dir; /* tiled weights are kept there; NULL: $SHOAL_CACHE_DIR, else
                              $XDG_CACHE_HOME/shoal, else ~/.cache/shoal; "": do not keep */
    /* Called while weights are tiled the first time, on any thread, one call at a time.  part: 0
     * to 1.  Return true to give up: then opening fails with SHOAL_ECANCELLED. */
    bool (*progress)(void *ctx, double part);
    void *progress_ctx;
    /* Scorers: streams (shoal_infer_opts.stream). Their states are written to a file in cache_dir
     * this long after a change, and when the engine is closed; 0: they are not saved. */
    uint32_t stream_save_ms;
    uint32_t stream_ttl_ms; /* a stream without rows ends after this time; 0: one hour */
    uint32_t max_streams;   /* 0: 4096 */
    /* Further decoders with the same vocabulary, SHOAL_MAX_AVERAGE in all.  The engine then writes
     * one text: its next-token probabilities are the mean of all of them, by average_weights[0] for
     * the model at `path` and [i + 1] for average_paths[i] (NULL: equal).  A vocabulary that
     * differs is SHOAL_EINVAL. */
    uint32_t n_average;               /* paths; 0: the model alone */
    const char *const *average_paths; /* [n_average] */
    const double *average_weights;    /* [n_average + 1], none below 0, one above */
    /* Not 0: an answer with max_tokens may be longer than the context. When the context is full,
     * the start of the prompt (whole pages, up to a quarter) and the later half of the rest stay,
     * and are computed again; what is dropped is no longer seen. Not with a constraint or the
     * prompt's log-probabilities. SHOAL_EUNSUPPORTED: this engine cannot. */
    uint64_t context_shift;
    /* Whether several tokens of an answer may be guessed from its prompt and its beginning and
     * verified together; the answer is the same (enum shoal_drafts). */
    uint64_t drafts;
    /* The key or passphrase of a GGUF file that `shoal model encrypt` wrote.  It is decrypted into
     * memory only, and its tiled weights are kept encrypted.  NULL: the model is not encrypted. */
    const char *key_file;
};

enum shoal_drafts {
    SHOAL_DRAFTS_AS_THEY_PAY, /* measured; native decoders only, others never */
    SHOAL_DRAFTS_NEVER,
    SHOAL_DRAFTS_ALWAYS, /* whenever something repeats, whatever it costs */
};
#define SHOAL_MAX_AVERAGE 8u

/* What a model can do; an engine may have several bits. */
enum shoal_kind {
    SHOAL_KIND_GENERATE = 1 << 0,   /* shoal_task_submit */
    SHOAL_KIND_CLASSIFY = 1 << 1,   /* the others: shoal_infer_submit */
    SHOAL_KIND_TAG = 1 << 2,        /* spans of a text: entities, slots, personal data */
    SHOAL_KIND_EMBED = 1 << 3,      /* a vector for a text */
    SHOAL_KIND_RERANK = 1 << 4,     /* how well a document answers a query */
    SHOAL_KIND_SUMMARIZE = 1 << 5,  /* a short text for a long one */
    SHOAL_KIND_SCORE = 1 << 6,      /* numbers for numbers */
    SHOAL_KIND_TRANSCRIBE = 1 << 7, /* the words of a sound */
    SHOAL_KIND_SPEAK = 1 << 8,      /* the sound of a text */
};
/* "classify", ...; a constant, NULL when kind is not one of the bits. */
SHOAL_API const char *shoal_kind_name(enum shoal_kind kind);

struct shoal_engine_info { /* strings live as long as the engine */
    size_t size;
    unsigned kinds;      /* enum shoal_kind bits; members that do not apply to them are 0 */
    const char *arch;    /* "llama" */
    const char *name;    /* general.name of the file, or "" */
    const char *engine;  /* "native", "onnx" or "cuda" */
    const char *kernels; /* the kernel set in use, or the library with its version */
    uint32_t n_vocab, n_ctx, n_ctx_train, n_layers, dim, n_threads, max_tasks;
    uint64_t n_params, file_bytes;
    size_t weights_bytes, scratch_bytes, kv_bytes; /* reserved */
    uint32_t kv_pages, kv_pages_free, page_tokens;
    double load_ms;
    bool from_cache;           /* tiled weights were found in the cache */
    const char *chat_template; /* or NULL */
    const char *quantization;  /* as GGUF files name it: "Q4_K_M"; NULL: the file does not say */
    size_t constraint_bytes;   /* taken now by compiled constraints; they grow to 32 MiB */
    uint64_t images;           /* 1: it classifies and embeds images, not texts */
};

/* path: a GGUF file, a Hugging Face folder, an ONNX folder, ... opts may be NULL. Reserves all the
 * memory the engine will ever use, except for constraints; a model that does not fit is refused,
 * and the error shows the sum (SHOAL_ELIMIT). On failure *out is NULL. */
SHOAL_API int shoal_engine_open(struct shoal_engine **out, const char *path,
                                const struct shoal_engine_opts *opts, struct shoal_error *err);
/* Cancels the tasks that are left, waits for their last events and frees the engine; NULL is fine.
 * Not from an event. */
SHOAL_API void shoal_engine_close(struct shoal_engine *engine);
/* Fills *info, whose size the caller has set.  0, or SHOAL_EINVAL for a bad size or a NULL. */
SHOAL_API int shoal_engine_info(const struct shoal_engine *engine, struct shoal_engine_info *info);
/* A text of the model's metadata, such as "huggingface.config" or "general.licence"; not
 * NUL-terminated.  NULL: none. */
SHOAL_API const char *shoal_engine_metadata(const struct shoal_engine *engine, const char *key,
                                            size_t *n);

/* ---- adapters -------------------------------------------------------------------------------
 * A LoRA adapter beside the model: each task chooses one, or none, and tasks with different ones
 * are computed together (shoal_task_opts.adapter).
 *
 * Thread:    any, also while tasks run.
 * Ownership: open gives, close takes back (NULL is fine), before the engine is closed; tasks that
 *            were submitted with it keep what they need.
 * Failure:   SHOAL_EIO, SHOAL_EFORMAT (no adapter, or not one of this model), SHOAL_EUNSUPPORTED
 * (it
 *            does more than add matrices of a low rank, or the engine is not the native one),
 *            SHOAL_ENOMEM. */

struct shoal_adapter;

/* path: a GGUF file as llama.cpp has it, or a folder as PEFT writes it.  scale: factor on what it
 * adds; 0: 1. */
SHOAL_API int shoal_adapter_open(struct shoal_adapter **out, struct shoal_engine *engine,
                                 const char *path, double scale, struct shoal_error *err);
SHOAL_API void shoal_adapter_close(struct shoal_adapter *adapter);
/* Memory that it takes. */
SHOAL_API size_t shoal_adapter_bytes(const struct shoal_adapter *adapter);

/* ---- text ----------------------------------------------------------------------------------- */

#define SHOAL_TEXT_ADD_SPECIAL 1u   /* tokenize: add BOS and the like, as the model asks */
#define SHOAL_TEXT_PARSE_SPECIAL 2u /* tokenize: special tokens may be spelled in the text */
#define SHOAL_TEXT_SPECIAL 4u       /* detokenize: show special tokens */

/* *tokens and *text belong to the caller, who frees them with shoal_free; *text is NUL-terminated.
 * On failure they are NULL.  SHOAL_EUNSUPPORTED: the model reads no text (a scorer).  SHOAL_ELIMIT:
 * too long.  Ids that the model does not have have no text. */
SHOAL_API int shoal_tokenize(const struct shoal_engine *engine, const char *text, size_t n,
                             unsigned flags, int32_t **tokens, size_t *n_tokens,
                             struct shoal_error *err);
SHOAL_API int shoal_detokenize(const struct shoal_engine *engine, const int32_t *tokens,
                               size_t n_tokens, unsigned flags, char **text, size_t *n,
                               struct shoal_error *err);
/* Renders the model's chat template (or ChatML when it has none) to prompt text.  context_json:
 * {"messages":[{"role":"user","content":"..."}],"tools":[...],"add_generation_prompt":true,...}
 * A text with a NUL ("\u0000") is refused (SHOAL_EFORMAT), with the name of its member. */
SHOAL_API int shoal_chat_prompt(const struct shoal_engine *engine, const char *context_json,
                                size_t n_json, char **text, size_t *n, struct shoal_error *err);
/* The same as tokens, ready to be submitted. Only the template's own special tokens become special
 * tokens: one spelled out in a message stays text. Use this for untrusted messages. */
SHOAL_API int shoal_chat_tokens(const struct shoal_engine *engine, const char *context_json,
                                size_t n_json, int32_t **tokens, size_t *n_tokens,
                                struct shoal_error *err);
/* The bytes of one token as they appear inside a text (SHOAL_TEXT_SPECIAL: special ones too); not
 * NUL-terminated, "" for an unknown id. */
SHOAL_API const char *shoal_token_text(const struct shoal_engine *engine, int32_t token,
                                       unsigned flags, size_t *n);

#ifdef __cplusplus
}
#endif

#endif
