/* onnx_encoder.c - see onnx_encoder.h. */
#include "engine/onnx/onnx_encoder.h"

#include <string.h>

#include "base/mem.h"
#include "engine/onnx/onnx_session.h"

#define DEFAULT_MAX_TOKENS 512u
#define MAX_BATCH 4096u

enum feed { FEED_IDS, FEED_MASK, FEED_TYPES, FEED_POSITIONS, N_FEEDS };

static const char *const feed_names[N_FEEDS] = {"input_ids", "attention_mask", "token_type_ids",
                                                "position_ids"};

struct result {
    float *data; /* [tokens or sequences of the pass][dims] */
    size_t cap;  /* floats */
};

struct onnx_encoder {
    struct onnx_session *s;
    struct onnx_encoder_info info;
    uint32_t max_batch;
    uint32_t fixed_len;     /* every run has this length; 0: any */
    void *feeds[N_FEEDS];   /* memory of the inputs */
    size_t feed_cap;        /* elements of each */
    enum feed *feed_of;     /* [n_in] of the session */
    struct onnx_value **in; /* [n_in] */
    uint32_t want[ONNX_ENCODER_N_OUTPUTS], n_want;
    enum onnx_encoder_output want_kind[ONNX_ENCODER_N_OUTPUTS];
    struct result results[ONNX_ENCODER_N_OUTPUTS];
    uint32_t *starts; /* [n_seqs + 1] first token of each sequence of the pass */
    uint32_t n_seqs;
    size_t starts_cap;
};

static bool by_token(enum onnx_encoder_output o)
{
    return o == ONNX_ENCODER_HIDDEN || o == ONNX_ENCODER_TOKEN_LOGITS;
}

const struct onnx_encoder_info *onnx_encoder_info(const struct onnx_encoder *enc)
{
    return &enc->info;
}

/* ---- inputs --------------------------------------------------------------------------------- */

static int match_input(struct onnx_encoder *enc, size_t i, struct err *e)
{
    const struct onnx_io *io = &enc->s->in[i];
    const struct onnx_shape *sh = &io->shape;
    int feed = 0;
    while (feed < N_FEEDS && strcmp(feed_names[feed], io->name) != 0)
        feed++;
    if (feed == N_FEEDS)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "input %s is not one of an encoder (input_ids, attention_mask, "
                       "token_type_ids, position_ids)",
                       io->name);
    if ((sh->type != ONNX_TYPE_I64 && sh->type != ONNX_TYPE_I32) || sh->n_dims != 2) {
        char shape[96];
        onnx_shape_print(shape, sizeof(shape), sh);
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "input %s is %s %s, expected int64 or int32 [batch, tokens]", io->name,
                       onnx_type_name(sh->type), shape);
    }
    if (sh->dims[0] > 0 && (uint64_t)sh->dims[0] != 1)
        return err_set(e, SHOAL_EUNSUPPORTED, "input %s has a fixed batch of %lld", io->name,
                       (long long)sh->dims[0]);
    if (sh->dims[0] == 1)
        enc->max_batch = 1;
    if (sh->dims[1] > 0) {
        if (sh->dims[1] > enc->info.max_tokens)
            return err_set(e, SHOAL_ELIMIT, "input %s has a fixed length of %lld, the limit is %u",
                           io->name, (long long)sh->dims[1], enc->info.max_tokens);
        enc->fixed_len = enc->info.max_tokens = (uint32_t)sh->dims[1];
    }
    enc->feed_of[i] = (enum feed)feed;
    return 0;
}

static int match_inputs(struct onnx_encoder *enc, struct err *e)
{
    enc->feed_of = mem_zalloc_n(enc->s->n_in + 1, sizeof(*enc->feed_of));
    enc->in = mem_zalloc_n(enc->s->n_in + 1, sizeof(struct onnx_value *));
    if (!enc->feed_of || !enc->in)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the inputs");
    for (size_t i = 0; i < enc->s->n_in; i++) {
        int rc = match_input(enc, i, e);
        if (rc < 0)
            return rc;
    }
    if (onnx_session_input(enc->s, "input_ids") < 0)
        return err_set(e, SHOAL_EUNSUPPORTED, "no input is named input_ids");
    return 0;
}

/* Room for n elements in each input. */
static int reserve_feeds(struct onnx_encoder *enc, size_t n, struct err *e)
{
    if (n <= enc->feed_cap)
        return 0;
    for (size_t f = 0; f < N_FEEDS; f++) {
        mem_free(enc->feeds[f]);
        enc->feeds[f] = mem_zalloc_n(n, sizeof(int64_t));
    }
    enc->feed_cap = 0;
    for (size_t f = 0; f < N_FEEDS; f++)
        if (!enc->feeds[f])
            return err_set(e, SHOAL_ENOMEM, "out of memory for a run of %zu tokens", n);
    enc->feed_cap = n;
    return 0;
}

static int64_t feed_value(enum feed f, const struct encoder_seq *q, uint32_t t)
{
    switch (f) {
    case FEED_IDS:
        return t < q->n ? q->tokens[t] : 0;
    case FEED_MASK:
        return t < q->n;
    case FEED_TYPES:
        return t < q->n && q->types ? q->types[t] : 0;
    default:
        return t;
    }
}

/* Fills the inputs with sequences, each padded to len. */
static int feed(struct onnx_encoder *enc, const struct encoder_seq *seqs, uint32_t n, uint32_t len,
                struct err *e)
{
    int rc = reserve_feeds(enc, (size_t)n * len, e);
    for (size_t i = 0; i < enc->s->n_in && rc == 0; i++) {
        enum feed f = enc->feed_of[i];
        struct onnx_shape sh = {.type = enc->s->in[i].shape.type, .n_dims = 2, .dims = {n, len}};
        for (uint32_t q = 0; q < n; q++)
            for (uint32_t t = 0; t < len; t++)
                onnx_put(enc->feeds[f], sh.type, (size_t)q * len + t, feed_value(f, &seqs[q], t));
        rc = onnx_value_wrap(&enc->in[i], enc->s, enc->feeds[f], &sh, e);
    }
    return rc;
}

/* ---- outputs -------------------------------------------------------------------------------- */

static void match_outputs(struct onnx_encoder *enc)
{
    static const struct {
        const char *name;
        enum onnx_encoder_output kind;
    } known[] = {{"last_hidden_state", ONNX_ENCODER_HIDDEN},
                 {"token_embeddings", ONNX_ENCODER_HIDDEN},
                 {"logits", ONNX_ENCODER_LOGITS},
                 {"sentence_embedding", ONNX_ENCODER_SENTENCE},
                 {"pooler_output", ONNX_ENCODER_POOLED}};
    for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++) {
        int at = onnx_session_output(enc->s, known[k].name);
        bool taken = false;
        for (uint32_t w = 0; w < enc->n_want; w++)
            taken |= enc->want_kind[w] == known[k].kind;
        if (at < 0 || taken)
            continue;
        enc->want_kind[enc->n_want] = known[k].kind;
        enc->want[enc->n_want++] = (uint32_t)at;
    }
    if (enc->n_want == 0 &&
        enc->s->n_out == 1) { /* a single output with another name: its shape decides */
        enc->want_kind[0] = ONNX_ENCODER_LOGITS;
        enc->want[enc->n_want++] = 0;
    }
}

static int reserve_result(struct result *r, size_t rows, size_t dims, struct err *e)
{
    size_t n;
    if (!mem_mul(&n, rows, dims))
        return err_set(e, SHOAL_ELIMIT, "%zu results of %zu floats", rows, dims);
    if (n <= r->cap)
        return 0;
    float *data = mem_realloc(r->data, n * sizeof(*data));
    if (!data)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu results of %zu floats", rows, dims);
    r->data = data;
    r->cap = n;
    return 0;
}

/* Copies output w of a run over sequences first .. first + n - 1 to its place, without padding. */
static int collect(struct onnx_encoder *enc, uint32_t w, struct onnx_value *v, uint32_t first,
                   uint32_t n, uint32_t len, struct err *e)
{
    enum onnx_encoder_output kind = enc->want_kind[w];
    struct onnx_shape sh;
    const void *data;
    int rc = onnx_value_get(enc->s, v, &sh, &data, e);
    if (rc < 0)
        return rc;
    bool tokens = by_token(kind);
    bool fits = (sh.type == ONNX_TYPE_F32 || sh.type == ONNX_TYPE_F16) &&
                sh.n_dims == (tokens ? 3 : 2) && sh.dims[0] == n &&
                (!tokens || sh.dims[1] == len) && sh.dims[sh.n_dims - 1] > 0 &&
                sh.dims[sh.n_dims - 1] == enc->info.dims[kind];
    if (!fits) {
        char shape[96];
        onnx_shape_print(shape, sizeof(shape), &sh);
        return err_set(e, SHOAL_EFORMAT, "output %s is %s %s for %u sequences of %u tokens",
                       enc->s->out[enc->want[w]].name, onnx_type_name(sh.type), shape, n, len);
    }
    size_t dims = enc->info.dims[kind];
    for (uint32_t q = 0; q < n; q++) {
        size_t row = tokens ? enc->starts[first + q] : first + q;
        size_t rows = tokens ? enc->starts[first + q + 1] - enc->starts[first + q] : 1;
        onnx_floats(enc->results[kind].data + row * dims, data, sh.type,
                    (size_t)q * (tokens ? len : 1) * dims, rows * dims);
    }
    return 0;
}

/* Learns from the first run what the outputs are: their last dimension, and whether logits belong
 * to tokens or to the sequence. */
static int learn(struct onnx_encoder *enc, uint32_t w, struct onnx_value *v, struct err *e)
{
    struct onnx_shape sh;
    const void *data;
    const char *name = enc->s->out[enc->want[w]].name;
    int rc = onnx_value_get(enc->s, v, &sh, &data, e);
    if (rc < 0)
        return rc;
    enum onnx_encoder_output *kind = &enc->want_kind[w];
    if (*kind == ONNX_ENCODER_LOGITS && sh.n_dims == 3)
        *kind = strcmp(name, "logits") == 0 ? ONNX_ENCODER_TOKEN_LOGITS : ONNX_ENCODER_HIDDEN;
    int64_t dims = sh.n_dims ? sh.dims[sh.n_dims - 1] : 0;
    if (dims <= 0 || dims > INT32_MAX)
        return err_set(e, SHOAL_EFORMAT, "output %s has a last dimension of %lld", name,
                       (long long)dims);
    enc->info.dims[*kind] = (uint32_t)dims;
    return 0;
}

/* ---- passes --------------------------------------------------------------------------------- */

static int run(struct onnx_encoder *enc, const struct encoder_seq *seqs, uint32_t first, uint32_t n,
               bool learning, struct err *e)
{
    struct onnx_value *out[ONNX_ENCODER_N_OUTPUTS] = {0};
    uint32_t len = enc->fixed_len;
    for (uint32_t i = 0; i < n; i++)
        len = seqs[first + i].n > len ? seqs[first + i].n : len;
    int rc = feed(enc, seqs + first, n, len, e);
    if (rc == 0)
        rc = onnx_session_run(enc->s, enc->in, enc->want, enc->n_want, out, e);
    for (uint32_t w = 0; w < enc->n_want && rc == 0 && learning; w++)
        rc = learn(enc, w, out[w], e);
    for (uint32_t w = 0; w < enc->n_want && rc == 0; w++) {
        enum onnx_encoder_output kind = enc->want_kind[w];
        rc = reserve_result(&enc->results[kind],
                            by_token(kind) ? enc->starts[enc->n_seqs] : enc->n_seqs,
                            enc->info.dims[kind], e);
        if (rc == 0)
            rc = collect(enc, w, out[w], first, n, len, e);
    }
    for (uint32_t w = 0; w < enc->n_want; w++)
        onnx_value_release(enc->s, out[w]);
    for (size_t i = 0; i < enc->s->n_in; i++) {
        onnx_value_release(enc->s, enc->in[i]);
        enc->in[i] = NULL;
    }
    return rc;
}

static int check(const struct onnx_encoder *enc, const struct encoder_seq *q, uint32_t i,
                 struct err *e)
{
    if (q->n == 0 || q->n > enc->info.max_tokens)
        return err_set(e, q->n ? SHOAL_ELIMIT : SHOAL_EINVAL,
                       "sequence %u has %u tokens, expected 1 to %u", i, q->n,
                       enc->info.max_tokens);
    for (uint32_t t = 0; t < q->n; t++)
        if (q->tokens[t] < 0)
            return err_set(e, SHOAL_EINVAL, "token %d at %u of sequence %u", q->tokens[t], t, i);
    return 0;
}

static int pass(struct onnx_encoder *enc, const struct encoder_seq *seqs, uint32_t n_seqs,
                bool learning, struct err *e)
{
    enc->n_seqs = 0;
    if (n_seqs >= enc->starts_cap) {
        uint32_t *starts = mem_realloc(enc->starts, ((size_t)n_seqs + 1) * sizeof(*starts));
        if (!starts)
            return err_set(e, SHOAL_ENOMEM, "out of memory for %u sequences", n_seqs);
        enc->starts = starts;
        enc->starts_cap = (size_t)n_seqs + 1;
    }
    enc->starts[0] = 0;
    for (uint32_t i = 0; i < n_seqs; i++) {
        int rc = check(enc, &seqs[i], i, e);
        if (rc < 0)
            return rc;
        if (__builtin_add_overflow(enc->starts[i], seqs[i].n, &enc->starts[i + 1]))
            return err_set(e, SHOAL_ELIMIT, "%u sequences in one pass", n_seqs);
    }
    enc->n_seqs = n_seqs;
    int rc = 0;
    for (uint32_t at = 0; at < n_seqs && rc == 0; at += enc->max_batch)
        rc = run(enc, seqs, at, n_seqs - at < enc->max_batch ? n_seqs - at : enc->max_batch,
                 learning, e);
    if (rc < 0)
        enc->n_seqs = 0;
    return rc;
}

int onnx_encoder_forward(struct onnx_encoder *enc, const struct encoder_seq *seqs, uint32_t n_seqs,
                         struct err *e)
{
    return pass(enc, seqs, n_seqs, false, e);
}

const float *onnx_encoder_get(const struct onnx_encoder *enc, enum onnx_encoder_output output,
                              uint32_t seq, uint32_t token)
{
    size_t dims = enc->info.dims[output];
    if (dims == 0 || seq >= enc->n_seqs)
        return NULL;
    size_t row = by_token(output) ? enc->starts[seq] + token : seq;
    if (by_token(output) && token >= enc->starts[seq + 1] - enc->starts[seq])
        return NULL;
    return enc->results[output].data + row * dims;
}

/* ---- opening -------------------------------------------------------------------------------- */

static int prepare(struct onnx_encoder *enc, struct err *e)
{
    static const int32_t tokens[2] = {0, 0};
    int rc = match_inputs(enc, e);
    if (rc < 0)
        return rc;
    match_outputs(enc);
    if (enc->n_want == 0)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "no output is named last_hidden_state, token_embeddings, logits, "
                       "sentence_embedding or pooler_output");
    struct encoder_seq probe = {.tokens = tokens, .n = enc->info.max_tokens < 2 ? 1 : 2};
    return pass(enc, &probe, 1, true, e);
}

int onnx_encoder_from_session(struct onnx_encoder **out, struct onnx_session *s,
                              const struct onnx_encoder_opts *o, struct err *e)
{
    *out = NULL;
    struct onnx_encoder *enc = mem_zalloc(sizeof(*enc));
    if (!enc) {
        onnx_session_close(s);
        return err_set(e, SHOAL_ENOMEM, "out of memory for an encoder");
    }
    enc->s = s;
    enc->max_batch = o->max_batch ? o->max_batch : 1;
    enc->info.max_tokens = o->max_tokens ? o->max_tokens : DEFAULT_MAX_TOKENS;
    int rc = enc->max_batch > MAX_BATCH
                 ? err_set(e, SHOAL_EINVAL, "%u sequences per run, %u at most", enc->max_batch,
                           MAX_BATCH)
                 : prepare(enc, e);
    if (rc < 0) {
        onnx_encoder_close(enc);
        return rc;
    }
    enc->info.library = s->lib->label;
    enc->info.n_threads = s->n_threads;
    enc->info.file_bytes = s->file_bytes;
    *out = enc;
    return 0;
}

int onnx_encoder_open(struct onnx_encoder **out, const char *path,
                      const struct onnx_encoder_opts *o, struct err *e)
{
    struct onnx_session_opts so = {.n_threads = o->n_threads};
    struct onnx_session *s;
    *out = NULL;
    int rc = onnx_session_open(&s, path, &so, e);
    if (rc == 0 && (rc = onnx_encoder_from_session(out, s, o, e)) < 0)
        err_wrap(e, "%s", path);
    return rc;
}

void onnx_encoder_close(struct onnx_encoder *enc)
{
    if (!enc)
        return;
    onnx_session_close(enc->s);
    for (size_t f = 0; f < N_FEEDS; f++)
        mem_free(enc->feeds[f]);
    for (size_t k = 0; k < ONNX_ENCODER_N_OUTPUTS; k++)
        mem_free(enc->results[k].data);
    mem_free(enc->feed_of);
    mem_free(enc->in);
    mem_free(enc->starts);
    mem_free(enc);
}
