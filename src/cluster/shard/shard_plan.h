/* shard_plan.h - which nodes compute which layers or rows of a model: a pure function of what was
 * measured.
 *
 * By layers, the engine's node has the last layers and the head, the others those before.  By rows,
 * each has a share of all layers, and the engine's node has the head.  A plan's figures:
 *
 *   a token     every part reads its weights once, one after the other, and between two parts half a
 *               round trip and the floats of one token
 *   a prompt    pieces of it follow each other through the parts, so that the slowest part (or link)
 *               counts once per piece and the others once per pass
 *   by rows     all compute a layer at once, the slowest counts; four times a layer the parts of a
 *               result travel to all, half a round trip, or a whole one from the third node on,
 *               since they go through the engine's
 *
 * Thread:    no state.
 * Failure:   SHOAL_ELIMIT: the model fits no plan; the text says what is missing. */
#ifndef SHOAL_CLUSTER_SHARD_SHARD_PLAN_H
#define SHOAL_CLUSTER_SHARD_SHARD_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define SHARD_PLAN_MAX_PARTS 8u
/* A plan must be this much faster than the whole model on one node. */
#define SHARD_PLAN_GAIN 0.15
#define SHARD_PLAN_PROMPT 512u /* tokens of the request that plans are compared by */
#define SHARD_PLAN_ANSWER 128u

enum shard_mode { SHARD_NONE, SHARD_AUTO, SHARD_LAYERS, SHARD_ROWS };

/* A model's setting: none, auto (by layers, if that pays), layers or rows over min to max nodes. */
struct shard_want {
    enum shard_mode mode;
    uint32_t min, max;
    bool q8; /* activations travel in 8 bits: answers may differ */
};

struct shard_plan_node { /* nodes[0] is the engine's own */
    const char *name;
    uint64_t memory_bytes; /* for models; 0: not limited */
    double rate;           /* bytes of weights in a second; 0: not measured */
    double rtt_s;          /* between it and the engine's node */
    double link_rate;      /* bytes in a second; 0: not measured */
};

struct shard_plan_model {
    uint32_t n_layers, dim;
    uint64_t layer_bytes, head_bytes, kv_bytes, scratch_bytes; /* kv: of one layer */
    uint32_t ffn_dim;
    bool rows; /* it can be cut by rows */
};

struct shard_plan_part {
    uint32_t node, first, end;
    double share; /* by rows: of all layers; otherwise 0 */
};

struct shard_plan {
    struct shard_plan_part parts[SHARD_PLAN_MAX_PARTS]; /* the last one is the engine's */
    uint32_t n_parts;
    bool rows;
    bool fits;
    double first_s; /* to the first token of a prompt of SHARD_PLAN_PROMPT tokens */
    double token_s; /* each further one */
    double rate_8;  /* tokens in a second of eight sequences together */
    double wire;    /* share of token_s */
    uint64_t bytes; /* over the wire for a token */
};

/* "auto", "none", "layers:2", "layers:2..4", "rows:2", "rows:2..4"; each but "none" may end in "
 * q8". */
SHOAL_MUST_CHECK int shard_want_read(struct shard_want *out, const char *text, struct err *e);
/* The best plan with exactly n_parts; false: none fits, and out says how far it came. */
bool shard_plan_with(struct shard_plan *out, const struct shard_plan_model *m,
                     const struct shard_plan_node *nodes, uint32_t n_nodes, uint32_t n_parts);
/* Chooses, also by rows if want says so.  forced_end: layers from there on are the engine's in any
 * case; 0: not decided. */
SHOAL_MUST_CHECK int shard_plan_choose(struct shard_plan *out, const struct shard_plan_model *m,
                                       const struct shard_plan_node *nodes, uint32_t n_nodes,
                                       struct shard_want want, uint32_t forced_end, struct err *e);
/* The same two by rows.  own: the share that the engine's node has in any case; 0: not decided. */
bool shard_plan_rows_with(struct shard_plan *out, const struct shard_plan_model *m,
                          const struct shard_plan_node *nodes, uint32_t n_nodes, uint32_t n_parts,
                          double own);
SHOAL_MUST_CHECK int shard_plan_rows(struct shard_plan *out, const struct shard_plan_model *m,
                                     const struct shard_plan_node *nodes, uint32_t n_nodes,
                                     struct shard_want want, double own, struct err *e);
/* Seconds of the request that plans are compared by. */
double shard_plan_request_s(const struct shard_plan *p);

#endif
