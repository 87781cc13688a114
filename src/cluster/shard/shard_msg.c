/* shard_msg.c - see shard_msg.h. */
#include "cluster/shard/shard_msg.h"

#include "base/rd.h"
#include "cluster/shard/shard_q8.h"

#define MAX_TEXT 300u
#define Q8_COLS 0x80000000u /* with a number of columns: they are in 8 bits */
#define KV_Q8 1u            /* flags of an OPEN */
#define WIRE_Q8 2u

/* ---- reading ---- */

static int bad(struct err *e, const char *what)
{
    return err_set(e, SHOAL_EFORMAT, "shard message: %s", what);
}

int shard_frame_next(struct shard_frame *f, const uint8_t *p, size_t n, struct err *e)
{
    struct rd r = rd_make(p, n);
    if (n < SHARD_MSG_HEAD)
        return 0;
    const uint32_t bytes = rd_u32(&r);
    const uint8_t kind = rd_u8(&r), version = rd_u8(&r);
    const uint16_t zero = rd_u16(&r);
    if (version != SHARD_MSG_VERSION || zero != 0)
        return bad(e, "another version of the protocol");
    if (kind < SHARD_HELLO || kind > SHARD_SLICE)
        return bad(e, "unknown kind");
    if (bytes > SHARD_MSG_MAX_BODY)
        return bad(e, "too long");
    if (rd_left(&r) < bytes)
        return 0;
    *f = (struct shard_frame){.kind = (enum shard_msg_kind)kind,
                              .body = r.p,
                              .body_bytes = bytes,
                              .bytes = SHARD_MSG_HEAD + (size_t)bytes};
    return 1;
}

static struct rd begin(const struct shard_frame *f, enum shard_msg_kind kind)
{
    struct rd r = rd_make(f->body, f->body_bytes);
    r.bad = f->kind != kind;
    return r;
}

static struct str text(struct rd *r)
{
    const uint16_t n = rd_u16(r);
    const uint8_t *p = rd_take(r, n);
    if (n > MAX_TEXT)
        r->bad = true;
    return p && !r->bad ? (struct str){(const char *)p, n} : (struct str){"", 0};
}

static void raw(struct rd *r, uint8_t *out, size_t n)
{
    const uint8_t *p = rd_take(r, n);
    if (p)
        memcpy(out, p, n);
}

static int done(const struct rd *r, const char *what, struct err *e)
{
    return r->bad || rd_left(r) > 0 ? bad(e, what) : 0;
}

int shard_hello_read(struct shard_hello *m, const struct shard_frame *f, struct err *e)
{
    struct rd r = begin(f, SHARD_HELLO);
    *m = (struct shard_hello){.version = text(&r)};
    return done(&r, "no greeting", e);
}

int shard_welcome_read(struct shard_welcome *m, const struct shard_frame *f, struct err *e)
{
    struct rd r = begin(f, SHARD_WELCOME);
    m->version = text(&r);
    m->name = text(&r);
    m->memory_bytes = rd_u64(&r);
    m->rate = rd_u64(&r);
    m->n_cores = rd_u32(&r);
    return done(&r, "no answer to a greeting", e);
}

/* Cuts of one width: they rise, and the last one is the width. */
static void cuts(struct rd *r, uint32_t *out, uint32_t n_parts)
{
    for (uint32_t i = 1; i <= n_parts; i++) {
        out[i] = rd_u32(r);
        if (out[i] < out[i - 1] || out[i] > SHARD_MSG_MAX_COLS)
            r->bad = true;
    }
}

/* Rows follow an OPEN that is by rows. */
static void rows(struct rd *r, struct decoder_rows *m)
{
    if (rd_left(r) == 0)
        return;
    m->n_parts = rd_u32(r);
    m->index = rd_u32(r);
    if (m->n_parts < 2 || m->n_parts > DECODER_ROWS_MAX || m->index >= m->n_parts - 1)
        r->bad = true;
    if (r->bad)
        return;
    cuts(r, m->heads, m->n_parts);
    cuts(r, m->ffn, m->n_parts);
    cuts(r, m->dim, m->n_parts);
}

/* By layers the last one is the opener's; by rows all have all of them. */
static bool is_part(const struct shard_open *m)
{
    if (m->rows.n_parts)
        return m->first == 0 && m->end == m->n_layers && m->n_layers > 0 && m->next.n == 0;
    return m->first < m->end && m->end < m->n_layers;
}

int shard_open_read(struct shard_open *m, const struct shard_frame *f, struct err *e)
{
    struct rd r = begin(f, SHARD_OPEN);
    memset(m, 0, sizeof(*m));
    raw(&r, m->session, sizeof(m->session));
    raw(&r, m->sha256, sizeof(m->sha256));
    m->chain = rd_u64(&r);
    m->first = rd_u32(&r);
    m->end = rd_u32(&r);
    m->n_layers = rd_u32(&r);
    m->dim = rd_u32(&r);
    m->n_ctx = rd_u32(&r);
    m->max_batch = rd_u32(&r);
    m->n_pages = rd_u32(&r);
    const uint32_t flags = rd_u32(&r);
    m->kv_q8 = flags & KV_Q8;
    m->wire_q8 = flags & WIRE_Q8;
    m->next = text(&r);
    rows(&r, &m->rows);
    int rc = done(&r, "a damaged OPEN", e);
    if (rc < 0)
        return rc;
    if (!is_part(m))
        return bad(e, "an OPEN of layers that are no part");
    if (m->dim == 0 || m->dim > SHARD_MSG_MAX_DIM || m->n_ctx == 0 || m->n_ctx > 1u << 20 ||
        m->max_batch == 0 || m->max_batch > SHARD_MSG_MAX_TOKENS || m->n_pages == 0 ||
        m->n_pages > 1u << 30 || flags > (KV_Q8 | WIRE_Q8))
        return bad(e, "an OPEN with an impossible shape");
    return 0;
}

int shard_opened_read(struct shard_opened *m, const struct shard_frame *f, struct err *e)
{
    struct rd r = begin(f, SHARD_OPENED);
    m->chain = rd_u64(&r);
    m->memory_bytes = rd_u64(&r);
    return done(&r, "no answer to OPEN", e);
}

int shard_attach_read(struct shard_attach *m, const struct shard_frame *f, struct err *e)
{
    struct rd r = begin(f, SHARD_ATTACH);
    memset(m, 0, sizeof(*m));
    raw(&r, m->session, sizeof(m->session));
    m->chain = rd_u64(&r);
    return done(&r, "a damaged ATTACH", e);
}

int shard_fail_read(struct shard_fail *m, const struct shard_frame *f, struct err *e)
{
    struct rd r = begin(f, SHARD_FAIL);
    m->code = rd_i32(&r);
    m->text = text(&r);
    int rc = done(&r, "a damaged FAIL", e);
    return rc == 0 && (m->code >= 0 || m->code < SHOAL_ENOTOKEN) ? bad(e, "an unknown failure")
                                                                 : rc;
}

size_t shard_row_bytes(bool q8, uint32_t n_cols)
{
    return q8 ? shard_q8_row_bytes(n_cols) : n_cols * sizeof(float);
}

void shard_row_put(struct buf *out, bool q8, const float *x, uint32_t n_cols)
{
    if (q8)
        shard_q8_put(out, x, n_cols);
    else
        buf_put(out, x, n_cols * sizeof(*x));
}

void shard_row_get(float *x, bool q8, const uint8_t *bytes, uint32_t n_cols)
{
    if (q8)
        shard_q8_get(x, bytes, n_cols);
    else
        memcpy(x, bytes, n_cols * sizeof(*x));
}

static uint32_t columns(struct rd *r, bool *q8)
{
    const uint32_t n = rd_u32(r);
    *q8 = n & Q8_COLS;
    return n & ~Q8_COLS;
}

static size_t data_bytes(const struct shard_step *m)
{
    return m->n_tokens * (m->dim ? shard_row_bytes(m->q8, m->dim) : sizeof(int32_t));
}

/* One run: its tokens, and pages that cover them. */
static bool run_fits(struct rd *r, uint64_t *n_tokens)
{
    const uint64_t pos0 = rd_u32(r), n = rd_u32(r), pages = rd_u32(r);
    (void)rd_take(r, pages * sizeof(uint32_t));
    *n_tokens += n;
    return !r->bad && n > 0 && pages >= (pos0 + n + LAYER_PART_PAGE - 1) / LAYER_PART_PAGE;
}

int shard_step_read(struct shard_step *m, const struct shard_frame *f, struct err *e)
{
    const bool result = f->kind == SHARD_RESULT;
    struct rd r = begin(f, result ? SHARD_RESULT : SHARD_STEP);
    m->chain = rd_u64(&r);
    m->number = rd_u64(&r);
    m->compute_ns = rd_u64(&r);
    m->n_runs = rd_u32(&r);
    m->n_tokens = rd_u32(&r);
    m->dim = columns(&r, &m->q8);
    if (r.bad || m->n_tokens == 0 || m->n_tokens > SHARD_MSG_MAX_TOKENS ||
        m->dim > SHARD_MSG_MAX_DIM || m->n_runs > SHARD_MSG_MAX_RUNS ||
        (m->n_runs == 0) != result || ((result || m->q8) && m->dim == 0))
        return bad(e, "a step with an impossible shape");
    uint64_t sum = 0;
    m->runs = r.p;
    for (uint32_t i = 0; i < m->n_runs; i++)
        if (!run_fits(&r, &sum))
            return bad(e, "a step whose runs are damaged");
    if (!result && sum != m->n_tokens)
        return bad(e, "a step whose tokens do not add up");
    m->runs_bytes = (size_t)(r.p - m->runs);
    m->data = rd_take(&r, data_bytes(m));
    return done(&r, "a step of another length than its shape", e);
}

int shard_slice_read(struct shard_slice *m, const struct shard_frame *f, struct err *e)
{
    struct rd r = begin(f, SHARD_SLICE);
    m->chain = rd_u64(&r);
    m->step = rd_u64(&r);
    m->compute_ns = rd_u64(&r);
    m->gather = rd_u32(&r);
    m->part = rd_u32(&r);
    m->n_tokens = rd_u32(&r);
    m->n_cols = columns(&r, &m->q8);
    if (r.bad || m->part >= DECODER_ROWS_MAX || m->n_tokens == 0 ||
        m->n_tokens > SHARD_MSG_MAX_TOKENS || m->n_cols == 0 || m->n_cols > SHARD_MSG_MAX_COLS)
        return bad(e, "a slice with an impossible shape");
    m->data = rd_take(&r, (uint64_t)m->n_tokens * shard_row_bytes(m->q8, m->n_cols));
    return done(&r, "a slice of another length than its shape", e);
}

struct shard_run shard_step_next_run(const uint8_t **at)
{
    uint32_t head[3];
    memcpy(head, *at, sizeof(head));
    struct shard_run run = {head[0], head[1], head[2], *at + sizeof(head)};
    *at += sizeof(head) + (size_t)head[2] * sizeof(uint32_t);
    return run;
}

/* ---- writing ---- */

static void put_u16(struct buf *out, uint16_t v)
{
    buf_put(out, &v, sizeof(v));
}

static void put_u32(struct buf *out, uint32_t v)
{
    buf_put(out, &v, sizeof(v));
}

static void put_u64(struct buf *out, uint64_t v)
{
    buf_put(out, &v, sizeof(v));
}

static void put_text(struct buf *out, struct str s)
{
    const uint16_t n = (uint16_t)(s.n < MAX_TEXT ? s.n : MAX_TEXT);
    put_u16(out, n);
    buf_put(out, s.p, n);
}

static void put_head(struct buf *out, enum shard_msg_kind kind, size_t n)
{
    const uint8_t tail[4] = {(uint8_t)kind, SHARD_MSG_VERSION, 0, 0};
    put_u32(out, (uint32_t)n);
    buf_put(out, tail, sizeof(tail));
}

static size_t text_bytes(struct str s)
{
    return 2 + (s.n < MAX_TEXT ? s.n : MAX_TEXT);
}

void shard_hello_put(struct buf *out, const struct shard_hello *m)
{
    put_head(out, SHARD_HELLO, text_bytes(m->version));
    put_text(out, m->version);
}

void shard_welcome_put(struct buf *out, const struct shard_welcome *m)
{
    put_head(out, SHARD_WELCOME, text_bytes(m->version) + text_bytes(m->name) + 20);
    put_text(out, m->version);
    put_text(out, m->name);
    put_u64(out, m->memory_bytes);
    put_u64(out, m->rate);
    put_u32(out, m->n_cores);
}

void shard_echo_put(struct buf *out, size_t n_bytes)
{
    put_head(out, SHARD_ECHO, n_bytes);
    char *at = buf_room(out, n_bytes);
    if (!at)
        return;
    memset(at, 0, n_bytes);
    buf_used(out, n_bytes);
}

void shard_echoed_put(struct buf *out)
{
    put_head(out, SHARD_ECHOED, 0);
}

static void put_words(struct buf *out, const uint32_t *v, uint32_t n)
{
    buf_put(out, v, n * sizeof(*v));
}

void shard_open_put(struct buf *out, const struct shard_open *m)
{
    const uint32_t parts = m->rows.n_parts;
    put_head(out, SHARD_OPEN,
             SHARD_MSG_SESSION + SHA256_BYTES + 8 + 8 * 4 + text_bytes(m->next) +
                 (parts ? (2 + 3 * parts) * sizeof(uint32_t) : 0));
    buf_put(out, m->session, sizeof(m->session));
    buf_put(out, m->sha256, sizeof(m->sha256));
    put_u64(out, m->chain);
    put_u32(out, m->first);
    put_u32(out, m->end);
    put_u32(out, m->n_layers);
    put_u32(out, m->dim);
    put_u32(out, m->n_ctx);
    put_u32(out, m->max_batch);
    put_u32(out, m->n_pages);
    put_u32(out, (m->kv_q8 ? KV_Q8 : 0) | (m->wire_q8 ? WIRE_Q8 : 0));
    put_text(out, m->next);
    if (!parts)
        return;
    put_u32(out, parts);
    put_u32(out, m->rows.index);
    put_words(out, m->rows.heads + 1, parts); /* the first cut is always 0 */
    put_words(out, m->rows.ffn + 1, parts);
    put_words(out, m->rows.dim + 1, parts);
}

void shard_opened_put(struct buf *out, const struct shard_opened *m)
{
    put_head(out, SHARD_OPENED, 16);
    put_u64(out, m->chain);
    put_u64(out, m->memory_bytes);
}

void shard_attach_put(struct buf *out, const struct shard_attach *m)
{
    put_head(out, SHARD_ATTACH, SHARD_MSG_SESSION + 8);
    buf_put(out, m->session, sizeof(m->session));
    put_u64(out, m->chain);
}

void shard_fail_put(struct buf *out, const struct shard_fail *m)
{
    put_head(out, SHARD_FAIL, 4 + text_bytes(m->text));
    put_u32(out, (uint32_t)m->code);
    put_text(out, m->text);
}

void shard_step_put(struct buf *out, enum shard_msg_kind kind, const struct shard_step *m)
{
    const size_t data = data_bytes(m);
    put_head(out, kind, 3 * 8 + 3 * 4 + m->runs_bytes + data);
    put_u64(out, m->chain);
    put_u64(out, m->number);
    put_u64(out, m->compute_ns);
    put_u32(out, m->n_runs);
    put_u32(out, m->n_tokens);
    put_u32(out, m->dim | (m->q8 ? Q8_COLS : 0));
    buf_put(out, m->runs, m->runs_bytes);
    buf_put(out, m->data, data);
}

void shard_slice_put(struct buf *out, const struct shard_slice *m)
{
    const size_t data = m->n_tokens * shard_row_bytes(m->q8, m->n_cols);
    put_head(out, SHARD_SLICE, 3 * 8 + 4 * 4 + data);
    put_u64(out, m->chain);
    put_u64(out, m->step);
    put_u64(out, m->compute_ns);
    put_u32(out, m->gather);
    put_u32(out, m->part);
    put_u32(out, m->n_tokens);
    put_u32(out, m->n_cols | (m->q8 ? Q8_COLS : 0));
    buf_put(out, m->data, data);
}

void shard_run_put(struct buf *runs, uint32_t pos0, uint32_t n, const uint32_t *pages,
                   uint32_t n_pages)
{
    put_u32(runs, pos0);
    put_u32(runs, n);
    put_u32(runs, n_pages);
    buf_put(runs, pages, n_pages * sizeof(*pages));
}
