/* request.h - what a client asks for, fully typed: one struct that every codec fills and that flows
 * and other nodes carry.
 *
 * Thread:    belongs to one thread at a time.
 * Ownership: everything that a request points to lives in its arena and is freed with it, or
 *            outlives the request (a command's own memory).  Nothing points into a parser's tree or
 *            a connection's buffer.
 * Failure:   allocation failures stick in arena.rc: a codec checks request_rc once at its end. */
#ifndef SHOAL_FLOW_REQUEST_H
#define SHOAL_FLOW_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/value.h"
#include "engine/chat/chat_messages.h"
#include "flow/stage.h"
#include "shoal/shoal.h"
#include "trace/trace.h"

struct fair_who; /* engine/fair.h */

struct privacy_policy;
struct router_tag;

#define REQUEST_MAX_CHOICES 128u
#define REQUEST_MAX_PROMPTS 64u
#define REQUEST_MAX_STOPS 256u
#define REQUEST_MAX_BIAS 1024u
#define REQUEST_MAX_PIECES 1024u /* of a prompt */
#define REQUEST_MAX_INPUTS 2048u
#define REQUEST_MAX_TOOLS 512u
#define REQUEST_MAX_CALLS 512u                /* of a message */
#define REQUEST_MAX_BYTES ((size_t)256 << 20) /* of its arena */
#define REQUEST_TOKEN_BYTES 4u /* of input_bytes: estimate for a text that was not tokenized */

enum request_kind { REQUEST_GENERATE, REQUEST_INFER, REQUEST_ASK, REQUEST_TOKENS };

/* A part of a prompt: a text or token ids. */
struct request_piece {
    const char *name; /* file that the text comes from; NULL: none */
    const char *text; /* NULL: ids */
    size_t text_bytes;
    const int32_t *ids;
    size_t n_ids;
};

/* One text to continue: as text, as token ids, or as pieces of both. */
struct request_prompt {
    const char *text; /* NULL: ids or pieces */
    size_t text_bytes;
    const int32_t *ids;
    size_t n_ids;
    const char *suffix; /* text after the answer, for infill; NULL: none */
    size_t suffix_bytes;
    /* With a suffix: related files. Otherwise, without text and ids: the prompt. */
    const struct request_piece *pieces;
    uint32_t n_pieces;
};

/* A bias for every token of a text. */
struct request_bias {
    const char *text;
    float bias;
};

/* Constraint on the answers; see enum shoal_constraint.  The text is a source that the engine
 * compiles, in the language of its kind: GBNF, a regular expression, JSON Schema, ... */
struct request_constraint {
    enum shoal_constraint kind;
    const char *text;
    size_t text_bytes;
};

/* A choice that another replica started. */
struct request_resume {
    bool done;             /* complete: not computed again, and without events */
    const int32_t *tokens; /* generated so far */
    uint32_t n_tokens;
};

struct request_generate {
    struct chat chat;                      /* n_messages 0: prompts */
    const struct request_prompt *prompts;  /* [n_prompts] */
    uint32_t n_prompts;                    /* a conversation counts as one */
    uint32_t n;                            /* answers to each prompt */
    uint32_t max_tokens;                   /* 0: until the context is full */
    struct shoal_sampling sampling;        /* its bias in the arena */
    const struct request_bias *bias_texts; /* [n_bias_texts]; prompt_make adds them to sampling */
    uint32_t n_bias_texts;
    const char *const *stop;
    uint32_t n_stop;
    struct request_constraint constraint;
    /* [request_choices], or NULL: nothing was started. There are events only for what follows,
     * without the echo; figures of `done` count the given tokens as part of the prompt. */
    const struct request_resume *resume;
    bool has_seed;   /* the client chose sampling.seed */
    bool seeded;     /* sampling.seed is set, by the client or by a forwarder */
    bool ignore_end; /* do not stop at the model's end token */
    bool special;    /* show special tokens */
    /* The prompts are in the model's own format: special tokens spelled there are parsed. */
    bool parse_special;
    bool echo; /* the prompt comes in front of the answer */
    /* With echo and sampling.logprobs, the prompt comes token by token with log-probabilities. */
    bool prompt_logprobs;
    bool prompt_only;    /* nothing is generated */
    bool progress;       /* the sink wants prefill progress */
    bool drawn_logprobs; /* see struct shoal_task_opts */
    bool fresh_prefix;   /* the same; and the answer is not taken from a cache */
    bool no_shift;       /* see struct shoal_task_opts */
    uint32_t keep_tokens;
    /* Of a model that is an adapter: how much it adds, in place of its own scale; 0: that.  Refused
     * by other models. */
    float adapter_scale;
};

struct request_input {
    const char *text; /* RERANK: a document.  NULL: ids, values, samples or an image */
    size_t text_bytes;
    const int32_t *ids; /* EMBED: the tokens of a text, without those that the model adds */
    uint32_t n_ids;
    const double *values; /* SCORE */
    uint32_t n_values;
    const int16_t *samples; /* TRANSCRIBE: one channel, 16,000 a second */
    uint32_t n_samples;
    const void *image; /* CLASSIFY, EMBED: a JPEG, PNG or WebP file */
    size_t image_bytes;
    uint32_t part; /* SPEAK: of the sound; 0: all */
};

struct request_infer {
    enum shoal_kind kind;
    const struct request_input *inputs;
    uint32_t n_inputs;
    const char *query;  /* RERANK */
    const char *labels; /* NULL: the model's default set */
    /* EMBED: NULL: the model's default prompt; "": none.  TRANSCRIBE: likely phrases */
    const char *prompt;
    const char *title; /* SUMMARIZE, extractive: title of the text; NULL: none */
    float temperature; /* SUMMARIZE, text is generated: above 0 samples, by the seed */
    uint64_t seed;
    const char *stream; /* SCORE: the rows continue this stream of the client; NULL: none */
    uint32_t n_columns, dimensions, max_sentences, max_tokens, beams;
    float speed, volume; /* SPEAK: 0: 1 */
    bool raw;
    bool words; /* TRANSCRIBE: with the times of words */
    bool whole; /* refuse an input that is too long, instead of truncating it */
};

struct request_ask {
    const char *text;
    const char *confirm; /* token of actions to carry out now; NULL: none */
    const char *room;    /* where the speaker is; NULL: not known */
    bool explain, reply;
    bool dry;    /* only the plan: nothing is carried out or remembered */
    float heard; /* confidence of the recognizer that heard the text; 0: it was typed */
};

/* Of a model's tokenizer. */
struct request_tokens {
    enum shoal_kind kind; /* required kind of the model; 0: GENERATE */
    bool decode;          /* ids to text; else text to ids */
    unsigned flags;       /* SHOAL_TEXT_* */
    const char *text;     /* NULL if decode */
    size_t text_bytes;
    const int32_t *ids;
    size_t n_ids;
    const char *metadata; /* instead of both: the model's metadata under this key */
};

struct request_client { /* the requesting client */
    char name[64];      /* "": no particular client */
    int32_t priority;
    float weight; /* of its share of a model; 0: 1 */
};

struct request {
    struct arena arena;
    char id[64];
    struct trace_at spans; /* held; where layers tell how long they took */
    char session[64];      /* its conversation or device, or "" */
    bool remembered;       /* session is a conversation that is kept: see knowledge/sessions.h */
    struct request_client client;
    uint64_t from;          /* its client's address, as a hash; 0: not known */
    bool has_once_key;      /* once_key: the client's idempotency key and its name, as a hash */
    uint8_t once_key[32];   /* a repeated key gets the first answer */
    const char *model;      /* NULL: the default model */
    const uint8_t *version; /* SHA-256 of the model that must answer; NULL: any.  Not for asks */
    uint64_t epoch;         /* all its models are those of this epoch; 0: not stamped yet */
    bool may_be_old;        /* no node knew its version to be the present one for too long */
    uint64_t held_epoch;    /* counted by flow_hold_epoch; 0: none */
    uint64_t received_ns;   /* CLOCK_MONOTONIC */
    uint64_t deadline_ns;   /* CLOCK_MONOTONIC; 0: none */
    int32_t priority;       /* added to the client's; 0 or less, except for a route's own */
    /* For routes (routing.h). */
    const char *path;              /* path called by the client; NULL: none */
    const char *language;          /* of the text, "de"; NULL: not known */
    const struct router_tag *tags; /* headers and JSON fields that rules test */
    uint32_t n_tags;
    const char *node;  /* preferred node, "": this one; NULL, or unavailable: any */
    bool explain;      /* report the decision in full */
    bool dry;          /* decide, but do not run */
    bool streams;      /* the client reads the answer as it is generated */
    bool shares_cache; /* cached prefixes and answers of all clients are used, and kept for all */
    /* The node that has read most of its prompt, with what part of it, 0 to 1; "": none. */
    char pages_from[160], pages_name[128];
    double pages_part;
    const uint64_t *beginnings; /* of its prompt, as in registry_want; in the arena */
    uint32_t n_beginnings;
    bool no_cache;   /* the answer is neither cached nor taken from a cache */
    bool screened;   /* already searched for personal data (privacy_run.h) */
    bool marked;     /* its texts contain pseudonyms, which only its client can resolve */
    bool here;       /* must not leave this server */
    bool truncates;  /* a chat that is too long for its model may lose its oldest turns (fit_sink.h)
                      */
    bool nul_hidden; /* texts are copied from a tree of json_nul.h */
    bool whole_calls; /* tool calls are reported when they are complete */
    /* Applies when the request leaves this server; set by the stage before STAGE_LEAVE. */
    const struct privacy_policy *leaving;
    const struct value *input; /* fields for a flow of the configuration, a map; NULL: none */
    uint32_t depth;            /* nesting depth of flows that led to it */
    size_t input_bytes;        /* texts and token ids that a model will read */
    struct stage_way way;      /* see stages.h */
    enum request_kind kind;
    union {
        struct request_generate generate;
        struct request_infer infer;
        struct request_ask ask;
        struct request_tokens tokens;
    };
};

/* NULL: out of memory. */
struct request *request_create(void);
void request_destroy(struct request *r); /* NULL is fine */
/* Empties a request for reuse; keeps a little of its memory. */
void request_reset(struct request *r);

/* Its spans belong there, too. */
void request_trace(struct request *r, const struct trace_at *at);

/* Makes `to` equal to `from`, sharing its memory: `from` must outlive it. */
void request_borrow(struct request *to, const struct request *from);

/* Copies into the arena, NUL-terminated. "" when out of memory, which request_rc reports. */
const char *request_copy(struct request *r, const char *p, size_t n);
/* The same; bytes that are not UTF-8 become U+FFFD.  *n_out: the copy's length; may be NULL. */
const char *request_copy_utf8(struct request *r, const char *p, size_t n, size_t *n_out);
/* Sets an earlier deadline; 0 ms: none given. */
void request_set_budget(struct request *r, double ms);
static inline int request_rc(const struct request *r)
{
    return r->arena.rc;
}

/* For a stage (stages.h): the request continues behind it, with events for s. */
static inline void request_pass_on(struct flow_owner *o, struct request *r, struct sink *s)
{
    r->way.pass_on(o, r, s);
}

/* Requests with equal keys get the same side of a canary. */
static inline const char *request_key(const struct request *r)
{
    return r->session[0] ? r->session : r->id;
}

/* Requests with equal keys stay at one replica (the policy `hash`): those of a session, else of a
 * client, else of an address. */
uint64_t request_stay_key(const struct request *r);

/* Its number for engines: clients with the same name are one; 0: it has none. */
uint64_t request_client_id(const struct request_client *c);
/* The client as engines see it. */
struct fair_who request_who(const struct request *r);

static inline enum shoal_kind request_tokens_kind(const struct request_tokens *q)
{
    return q->kind ? q->kind : SHOAL_KIND_GENERATE;
}

/* Prompts of a generation times answers to each. */
static inline uint32_t request_choices(const struct request_generate *g)
{
    return g->n_prompts * g->n;
}

#endif
