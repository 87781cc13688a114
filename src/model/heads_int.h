/* heads_int.h - internals of the heads of a model.  Private to src/model. */
#ifndef SHOAL_MODEL_HEADS_INT_H
#define SHOAL_MODEL_HEADS_INT_H

#include "model/heads.h"

#define HEADS_N_HEADS 2u /* HEADS_CLASSIFY, HEADS_TAG */

struct heads_head {
    uint32_t rows; /* 0: no such head */
    struct heads_set *sets;
    uint32_t n_sets, def;
};

struct heads {
    struct heads_info info;
    struct heads_head head[HEADS_N_HEADS];
    bool embeds, reranks, has_pre, pre_relu;
    void **owned;
    uint32_t n_owned;
};

#endif
