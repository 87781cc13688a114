/* shard_msg.h - the messages of nodes that compute one model together.
 *
 * A frame is a head of 8 bytes (length of the body, kind, version, two zeros) and the body, all
 * little-endian.  A conversation begins with HELLO and WELCOME.  The engine's node sends OPEN to
 * every other one, last part first; a part that is not the last attaches to the next one.  A STEP
 * goes from the engine's node to the first part, from each part to the next one, and comes back as
 * RESULT from the last part.
 *
 *   engine's node ---STEP (tokens)---> part 0 ---STEP (floats)---> part 1 ---RESULT (floats)---+
 *          ^                                                                                   |
 *          +-----------------------------------------------------------------------------------+
 *
 * By rows, STEP goes from the engine's node to every part, and all compute it at once.  Each result
 * that must be whole before the next product (model/decoder_rows.h) is gathered: a part sends its
 * columns as a SLICE to the engine's node, which sends its own and those of the others to each.
 *
 * Floats travel as they are, or in 8 bits (shard_q8.h) if the OPEN says so.
 *
 * Every STEP, RESULT and SLICE names its chain: a hash of the model's SHA-256, the version of
 * Shoal, the shape and the cuts.  Parts of another chain refuse it, so bytes of two models never
 * meet.
 *
 * Thread:    no state.
 * Ownership: reading borrows: strings and arrays point into the frame.
 * Failure:   SHOAL_EFORMAT with what is wrong.  Bytes of others are not trusted. */
#ifndef SHOAL_CLUSTER_SHARD_SHARD_MSG_H
#define SHOAL_CLUSTER_SHARD_SHARD_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "engine/native/layer_part.h"
#include "host/sha256.h"

#define SHARD_MSG_VERSION 1u
#define SHARD_MSG_HEAD 8u
#define SHARD_MSG_MAX_BODY ((size_t)128 << 20)
#define SHARD_MSG_MAX_RUNS 1024u
#define SHARD_MSG_MAX_TOKENS 4096u
#define SHARD_MSG_MAX_DIM 65536u
#define SHARD_MSG_MAX_COLS (1u << 20)
#define SHARD_MSG_SESSION 16u /* bytes of a session's name, random */

enum shard_msg_kind {
    SHARD_HELLO = 1, /* program version */
    SHARD_WELCOME,   /* what the node can do */
    SHARD_ECHO,      /* bytes that are counted: measures the link, and shows that it is alive */
    SHARD_ECHOED,
    SHARD_OPEN, /* a part of a model */
    SHARD_OPENED,
    SHARD_ATTACH, /* the part before that of a session */
    SHARD_STEP,
    SHARD_RESULT,
    SHARD_FAIL,
    SHARD_SLICE, /* columns of a result, by rows */
};

struct shard_frame {
    enum shard_msg_kind kind;
    const uint8_t *body;
    size_t body_bytes, bytes; /* bytes: with the head */
};

struct shard_hello {
    struct str version; /* SHOAL_VERSION */
};

struct shard_welcome {
    struct str version, name;
    uint64_t memory_bytes; /* left for models */
    uint64_t rate;         /* bytes of weights that it computes with in a second; 0: not known */
    uint32_t n_cores;
};

struct shard_open {
    uint8_t session[SHARD_MSG_SESSION];
    uint8_t sha256[SHA256_BYTES];
    uint64_t chain;
    uint32_t first, end; /* its layers */
    uint32_t n_layers, dim, n_ctx, max_batch, n_pages;
    bool kv_q8, wire_q8; /* keys and values in 8 bits; floats on the wire */
    struct str next;     /* address of the part after it; "": results go back to the opener */
    /* n_parts 0: by layers.  Otherwise all layers, no `next`, and not the last part, which is the
     * opener's. */
    struct decoder_rows rows;
};

struct shard_opened {
    uint64_t chain, memory_bytes;
};

struct shard_attach {
    uint8_t session[SHARD_MSG_SESSION];
    uint64_t chain;
};

struct shard_run {
    uint32_t pos0, n, n_pages;
    const uint8_t *pages; /* uint32_t [n_pages], unaligned */
};

/* A STEP, or a RESULT, which has no runs. */
struct shard_step {
    uint64_t chain, number;
    uint64_t compute_ns; /* so far, by the parts before */
    uint32_t n_runs, n_tokens;
    uint32_t dim; /* 0: tokens; otherwise floats of this many columns */
    bool q8;      /* they are in 8 bits */
    const uint8_t *runs;
    size_t runs_bytes;
    const uint8_t *data; /* int32_t [n_tokens], or [n_tokens] rows of shard_row_bytes; unaligned */
};

/* Columns of one result of a step. */
struct shard_slice {
    uint64_t chain, step;
    uint64_t compute_ns; /* by the sender, since the last gather or the step's begin */
    uint32_t gather;     /* number within the step */
    uint32_t part;       /* whose columns */
    uint32_t n_tokens, n_cols;
    bool q8;
    const uint8_t *data; /* [n_tokens] rows of shard_row_bytes, unaligned */
};

struct shard_fail {
    int32_t code; /* SHOAL_E* */
    struct str text;
};

/* The first frame of the bytes: 1; 0 if it is incomplete. */
SHOAL_MUST_CHECK int shard_frame_next(struct shard_frame *f, const uint8_t *p, size_t n,
                                      struct err *e);
SHOAL_MUST_CHECK int shard_hello_read(struct shard_hello *m, const struct shard_frame *f,
                                      struct err *e);
SHOAL_MUST_CHECK int shard_welcome_read(struct shard_welcome *m, const struct shard_frame *f,
                                        struct err *e);
SHOAL_MUST_CHECK int shard_open_read(struct shard_open *m, const struct shard_frame *f,
                                     struct err *e);
SHOAL_MUST_CHECK int shard_opened_read(struct shard_opened *m, const struct shard_frame *f,
                                       struct err *e);
SHOAL_MUST_CHECK int shard_attach_read(struct shard_attach *m, const struct shard_frame *f,
                                       struct err *e);
SHOAL_MUST_CHECK int shard_fail_read(struct shard_fail *m, const struct shard_frame *f,
                                     struct err *e);
/* Runs are complete and inside the body, their tokens add up, and their pages cover them. */
SHOAL_MUST_CHECK int shard_step_read(struct shard_step *m, const struct shard_frame *f,
                                     struct err *e);
SHOAL_MUST_CHECK int shard_slice_read(struct shard_slice *m, const struct shard_frame *f,
                                      struct err *e);
/* The next run; *at begins at m->runs. */
struct shard_run shard_step_next_run(const uint8_t **at);

/* Appends a whole frame; out->rc says whether there was memory.  floats and bytes: what of them
 * the message has. */
void shard_hello_put(struct buf *out, const struct shard_hello *m);
void shard_welcome_put(struct buf *out, const struct shard_welcome *m);
void shard_echo_put(struct buf *out, size_t n_bytes);
void shard_echoed_put(struct buf *out);
void shard_open_put(struct buf *out, const struct shard_open *m);
void shard_opened_put(struct buf *out, const struct shard_opened *m);
void shard_attach_put(struct buf *out, const struct shard_attach *m);
void shard_fail_put(struct buf *out, const struct shard_fail *m);
/* kind: STEP or RESULT.  m->runs and m->data are copied; RESULT has no runs. */
void shard_step_put(struct buf *out, enum shard_msg_kind kind, const struct shard_step *m);
void shard_slice_put(struct buf *out, const struct shard_slice *m);
/* A row of floats as messages have it: its size; from floats, appended; and back. */
size_t shard_row_bytes(bool q8, uint32_t n_cols);
void shard_row_put(struct buf *out, bool q8, const float *x, uint32_t n_cols);
void shard_row_get(float *x, bool q8, const uint8_t *bytes, uint32_t n_cols);
/* Appends one run to the bytes of a step's runs. */
void shard_run_put(struct buf *runs, uint32_t pos0, uint32_t n, const uint32_t *pages,
                   uint32_t n_pages);

#endif
