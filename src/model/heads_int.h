/* heads_int.h - internals of the heads of a model.  Private to src/model. */
#ifndef SHOAL_MODEL_HEADS_INT_H
#define SHOAL_MODEL_HEADS_INT_H

#include <cjson/cJSON.h>

#include "model/heads.h"

#define HEADS_N_HEADS 2u /* HEADS_CLASSIFY, HEADS_TAG */

struct heads_head {
    uint32_t rows; /* 0: no such head */
    struct heads_set *sets;
    uint32_t n_sets, def;
};

/* What follows the pooling of a sentence embedder, in order. */
#define HEADS_MAX_STEPS 8
enum heads_act {
    HEADS_ACT_NONE,
    HEADS_ACT_TANH,
    HEADS_ACT_RELU,
    HEADS_ACT_GELU,
    HEADS_ACT_SIGMOID
};
struct heads_step {
    enum { HEADS_STEP_NORMALIZE, HEADS_STEP_DENSE } kind;
    enum heads_act act; /* this and the rest: DENSE */
    uint32_t n_in, n_out;
    const float *weight, *bias; /* [n_out][n_in]; [n_out] or NULL */
};

struct heads_prompt {
    const char *name, *text;
};

struct heads {
    struct heads_info info;
    struct heads_step steps[HEADS_MAX_STEPS];
    uint32_t n_steps, buffer; /* floats of each half of a vector's room */
    struct heads_prompt *prompts;
    uint32_t n_prompts;
    const struct heads_prompt *default_prompt; /* NULL: none */
    bool include_prompt;
    struct heads_head head[HEADS_N_HEADS];
    bool embeds, reranks, has_pre;
    enum heads_act pre_act; /* of the layer before the classes */
    bool mean_class;        /* classes are read from the mean of all tokens, not from the first */
    void **owned;
    uint32_t n_owned;
};

/* Keeps p until heads_destroy; NULL if p is NULL or memory runs out, and then p is freed. */
void *heads_keep(struct heads *h, void *p);
/* Reads the documents of a sentence-transformers folder (heads_sentence.c).  pooling: the parsed
 * 1_Pooling/config.json, or NULL. */
SHOAL_MUST_CHECK int heads_sentence_read(struct heads *h, const struct heads_source *src,
                                         const cJSON *pooling, struct err *e);

#endif
