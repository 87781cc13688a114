/* heads.h - interprets an encoder's last layer: classes, tags of words, embeddings, scores.
 *
 * The description is parsed once from a model's metadata: config.json (id2label, problem_type, or
 * our own section "shoal" with several label sets over one head), the sentence-transformers
 * pooling, GGUF keys.  The rest is arithmetic: logits to calibrated probabilities, tags to spans of
 * text, token vectors to one embedding.
 *
 * Thread:    immutable after create, except heads_work, which belongs to its owner.
 * Ownership: create copies what it needs; names and sets are borrowed until destroy.
 * Failure:   SHOAL_EFORMAT: the metadata is wrong, the text says where; SHOAL_EINVAL: unknown label
 *            set.  Running allocates nothing and cannot fail. */
#ifndef SHOAL_MODEL_HEADS_H
#define SHOAL_MODEL_HEADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/kern.h"

struct encoder;
struct model_file;
struct heads;

enum heads_task { HEADS_CLASSIFY, HEADS_TAG, HEADS_EMBED, HEADS_RERANK };

/* Rows of a head that form one set of labels. */
struct heads_set {
    const char *name;      /* "" if the model has only one set */
    uint32_t first, count; /* rows of the head */
    const char *const *labels;
    float temperature;        /* logits are divided by it */
    float threshold;          /* a best probability below it means out of scope; 0: never */
    int32_t oos;              /* the out-of-scope label, -1: none */
    bool multi;               /* labels are independent (sigmoid), not exclusive (softmax) */
    bool cased;               /* TAG: the token types say which words have capitals */
    const float *transitions; /* TAG: [count + 1][count], from row to column, the last row starts a
                                 sentence; NULL: choose the best tag of each word alone */
};

enum heads_pooling {
    HEADS_POOLING_MEAN,
    HEADS_POOLING_CLS,    /* the first token */
    HEADS_POOLING_POOLER, /* the first token through a dense layer and tanh */
    HEADS_POOLING_MAX,
    HEADS_POOLING_LAST,
    HEADS_POOLING_MEAN_SQRT,     /* the sum, divided by the square root of the number of tokens */
    HEADS_POOLING_WEIGHTED_MEAN, /* token i (from 1) weighs i */
};
#define HEADS_MAX_POOLINGS 6

struct heads_info {
    /* EMBED: the results of several modes are concatenated */
    enum heads_pooling poolings[HEADS_MAX_POOLINGS];
    uint32_t n_poolings;
    uint32_t dim;           /* of the model's last layer */
    uint32_t vector_dim;    /* of its embeddings: after pooling and dense layers */
    uint32_t dimensions;    /* of an embedding by default, at most vector_dim */
    uint32_t room;          /* floats of memory that heads_vector needs */
    uint32_t max_tokens;    /* of a text, with its special tokens; 0: the model's own limit */
    bool keep_length;       /* embeddings are not scaled to length 1 */
    const char *similarity; /* "cosine", "dot", "euclidean" or "manhattan" */
    bool rerank_sigmoid;    /* RERANK: the score is a probability; false: it is the logit */
    bool whole_words;       /* TAG: only white space separates words; false: punctuation does too */
};

struct heads_source {              /* borrowed during create */
    const struct model_file *file; /* transitions and keys; may be NULL */
    const char *config, *pooling;  /* JSON texts; may be NULL */
    size_t n_config, n_pooling;
    const char *arch;                /* for keys "<arch>.pooling_type"; may be NULL */
    uint32_t dim, n_classes, n_tags; /* rows of the heads, 0: no such head */
    bool has_pooler;
    bool pools_itself; /* dim is of a finished embedding, which the model computes (ONNX) */
};

SHOAL_MUST_CHECK int heads_create(struct heads **out, const struct heads_source *s, struct err *e);
/* The same for a native encoder, from its metadata. */
SHOAL_MUST_CHECK int heads_open(struct heads **out, const struct model_file *file,
                                const struct encoder *d, struct err *e);
void heads_destroy(struct heads *h);
bool heads_has(const struct heads *h, enum heads_task task);
const struct heads_info *heads_info(const struct heads *h);
/* Label sets of CLASSIFY or TAG. */
uint32_t heads_n_sets(const struct heads *h, enum heads_task task);
const struct heads_set *heads_set(const struct heads *h, enum heads_task task, uint32_t i);
/* The text that goes before one to be embedded.  name NULL: the model's default; "": none. */
SHOAL_MUST_CHECK int heads_find_prompt(const struct heads *h, const char *name, const char **text,
                                       struct err *e);
/* Finds a set by name; NULL or "": the default set. */
SHOAL_MUST_CHECK int heads_find_set(const struct heads *h, enum heads_task task, const char *name,
                                    const struct heads_set **out, struct err *e);

/* ---- sequences ------------------------------------------------------------------------------- */

struct heads_answer {
    uint32_t label;   /* index in the set: the best label, or oos */
    float confidence; /* probability of that label; for oos by threshold: 1 - the best one */
};

/* Converts the logits [count] of a set to probabilities, in place. */
void heads_probabilities(const struct kern_ops *k, const struct heads_set *set, float *logits);
struct heads_answer heads_answer(const struct heads_set *set, const float *probabilities);
/* Relevance from a reranker's single logit. */
float heads_relevance(const struct heads *h, float logit, bool raw);
/* Scales the first n values of v to a vector of length 1, in place. */
void heads_normalize(const struct kern_ops *k, float *v, uint32_t n);
/* Pools one sequence's last layer, tokens: [n][dim], by one mode.  Not HEADS_POOLING_POOLER. */
void heads_pool(const struct kern_ops *k, enum heads_pooling pooling, const float *tokens,
                uint32_t n, uint32_t dim, float *out);

/* Every mode of the model, one after the other: [n_poolings][dim]. */
void heads_pool_all(const struct heads *h, const struct kern_ops *k, const float *tokens,
                    uint32_t n, float *out);
/* From the pooled vector in out (info.room floats) to the embedding: dense layers, then truncated
 * to n (0: the model's default) and scaled to length 1, unless keep_length. */
void heads_finish_vector(const struct heads *h, const struct kern_ops *k, uint32_t n, float *out);

/* The same on an encoder's last pass: logits [count] of a set for sequence seq; RERANK: set is
 * NULL and there is one logit. */
void heads_class_logits(const struct heads *h, struct encoder *d, uint32_t seq,
                        const struct heads_set *set, float *out);
/* The embedding of a sequence: pooled and finished.  out: info.room floats. */
void heads_vector(const struct heads *h, struct encoder *d, uint32_t seq, uint32_t n, float *out);

/* ---- words ----------------------------------------------------------------------------------- */

struct heads_word {
    uint32_t token;      /* index of its first token in the sequence */
    uint32_t start, end; /* bytes of the text */
};

/* Finds the words of a text from the byte ranges of its tokens (empty for special tokens).  Writes
 * at most n_tokens words. */
uint32_t heads_words(const struct heads *h, const char *text, size_t n_text, const uint32_t *start,
                     const uint32_t *end, uint32_t n_tokens, struct heads_word *words);

#define HEADS_CASES 3
/* What the capitals of each token's word say, as a token type: 0: none, 1: only the first
 * letter is one, 2: any other.  Only ASCII letters count.  Tokens of no word keep their type. */
void heads_cases(const char *text, const struct heads_word *words, uint32_t n_words,
                 const uint32_t *start, const uint32_t *end, uint32_t n_tokens, uint8_t *types);

/* Memory for decoding the tags of a given number of words. */
struct heads_work;
SHOAL_MUST_CHECK int heads_work_create(struct heads_work **out, const struct heads *h,
                                       uint32_t max_words, struct err *e);
void heads_work_destroy(struct heads_work *w);
/* The logits [n_words][count] that heads_tags reads.  Fill them, or call heads_word_logits. */
float *heads_work_logits(struct heads_work *w);
void heads_word_logits(const struct heads *h, struct encoder *d, uint32_t seq,
                       const struct heads_set *set, const struct heads_word *words,
                       uint32_t n_words, struct heads_work *w);
/* The best tags of the words (indices of the set's labels), with the probability of each. */
void heads_tags(const struct kern_ops *k, const struct heads_set *set, uint32_t n_words,
                struct heads_work *w, uint16_t *tags, float *scores);

struct heads_span {
    const char *label;             /* the type, without B-, I-, ... */
    uint32_t start, end;           /* bytes of the text */
    uint32_t start_char, end_char; /* characters of the text */
    uint32_t first_word, n_words;
    float score; /* mean probability of the span's tags */
};

/* Converts BIO, BIOES, BILOU and plain tags to spans; at most n_words of them. */
uint32_t heads_spans(const struct heads *h, const struct heads_set *set, const char *text,
                     size_t n_text, const struct heads_word *words, uint32_t n_words,
                     const uint16_t *tags, const float *scores, struct heads_span *spans);

#endif
