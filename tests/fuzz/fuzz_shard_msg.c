/* fuzz_shard_msg.c - messages of nodes that compute one model together. What is read lies inside
 * the input, and is the same after another round trip. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cluster/shard/shard_msg.h"
#include "engine/native/layer_part.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static bool inside(const struct shard_frame *f, const void *p, size_t n)
{
    const uint8_t *at = p;
    return n == 0 || (at >= f->body && at + n <= f->body + f->body_bytes);
}

/* Every message has one form: written again, it is the same bytes. */
static void same(const struct shard_frame *f, const struct buf *b)
{
    expect(b->rc == 0 && b->len == f->bytes &&
           memcmp(b->data, f->body - SHARD_MSG_HEAD, b->len) == 0);
}

/* Any bytes of rows can be read as floats. */
static void check_rows(const struct shard_frame *f, const uint8_t *data, uint32_t n_tokens, bool q8,
                       uint32_t n_cols)
{
    const size_t row = shard_row_bytes(q8, n_cols);
    float *x = malloc(n_cols * sizeof(*x));
    expect(x && inside(f, data, n_tokens * row));
    for (uint32_t t = 0; t < n_tokens; t++)
        shard_row_get(x, q8, data + t * row, n_cols);
    free(x);
}

static void check_step(const struct shard_frame *f, const struct shard_step *s)
{
    const uint8_t *at = s->runs;
    uint64_t n = 0;
    expect(inside(f, s->runs, s->runs_bytes));
    if (s->dim)
        check_rows(f, s->data, s->n_tokens, s->q8, s->dim);
    else
        expect(inside(f, s->data, s->n_tokens * sizeof(int32_t)));
    for (uint32_t i = 0; i < s->n_runs; i++) {
        const struct shard_run r = shard_step_next_run(&at);
        expect(inside(f, r.pages, r.n_pages * sizeof(uint32_t)));
        expect((uint64_t)r.n_pages * LAYER_PART_PAGE >= (uint64_t)r.pos0 + r.n);
        n += r.n;
    }
    expect(at == s->runs + s->runs_bytes);
    expect(s->n_runs == 0 || n == s->n_tokens);
}

static void check_open(const struct shard_open *o)
{
    const struct decoder_rows *r = &o->rows;
    expect(o->first < o->end && o->end <= o->n_layers && o->n_pages > 0);
    expect((o->end == o->n_layers) == (r->n_parts > 0));
    expect(r->n_parts <= DECODER_ROWS_MAX && (r->n_parts == 0 || r->index + 1 < r->n_parts));
    for (uint32_t i = 0; i < r->n_parts; i++)
        expect(r->heads[i] <= r->heads[i + 1] && r->ffn[i] <= r->ffn[i + 1] &&
               r->dim[i] <= r->dim[i + 1]);
}

static int read_one(const struct shard_frame *f, struct buf *again, struct err *e)
{
    struct shard_hello hello;
    struct shard_welcome welcome;
    struct shard_open open;
    struct shard_opened opened;
    struct shard_attach attach;
    struct shard_step step;
    struct shard_slice slice;
    struct shard_fail fail;
    int rc = 0;
    switch (f->kind) {
    case SHARD_HELLO:
        if ((rc = shard_hello_read(&hello, f, e)) == 0)
            shard_hello_put(again, &hello);
        return rc;
    case SHARD_WELCOME:
        if ((rc = shard_welcome_read(&welcome, f, e)) == 0)
            shard_welcome_put(again, &welcome);
        return rc;
    case SHARD_OPEN:
        if ((rc = shard_open_read(&open, f, e)) == 0) {
            check_open(&open);
            shard_open_put(again, &open);
        }
        return rc;
    case SHARD_OPENED:
        if ((rc = shard_opened_read(&opened, f, e)) == 0)
            shard_opened_put(again, &opened);
        return rc;
    case SHARD_ATTACH:
        if ((rc = shard_attach_read(&attach, f, e)) == 0)
            shard_attach_put(again, &attach);
        return rc;
    case SHARD_STEP:
    case SHARD_RESULT:
        if ((rc = shard_step_read(&step, f, e)) == 0) {
            check_step(f, &step);
            shard_step_put(again, f->kind, &step);
        }
        return rc;
    case SHARD_FAIL:
        if ((rc = shard_fail_read(&fail, f, e)) == 0)
            shard_fail_put(again, &fail);
        return rc;
    case SHARD_SLICE:
        if ((rc = shard_slice_read(&slice, f, e)) == 0) {
            expect(slice.part < DECODER_ROWS_MAX);
            check_rows(f, slice.data, slice.n_tokens, slice.q8, slice.n_cols);
            shard_slice_put(again, &slice);
        }
        return rc;
    case SHARD_ECHO:
    case SHARD_ECHOED:
        break;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shard_frame f;
    for (int n = 0; n < 16 && size > 0; n++) {
        struct err e = {0};
        struct buf again;
        int rc = shard_frame_next(&f, data, size, &e);
        FUZZ_NOTE("%d %s", rc, e.msg);
        if (rc <= 0)
            return 0;
        expect(f.bytes <= size && f.body == data + SHARD_MSG_HEAD);
        buf_init(&again, SHARD_MSG_MAX_BODY + SHARD_MSG_HEAD);
        rc = read_one(&f, &again, &e);
        FUZZ_NOTE("%d %d %s", (int)f.kind, rc, e.msg);
        if (rc == 0 && again.len > 0)
            same(&f, &again);
        buf_fini(&again);
        data += f.bytes;
        size -= f.bytes;
    }
    return 0;
}
