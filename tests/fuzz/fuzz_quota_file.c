/* fuzz_quota_file.c - the file that keeps token quotas over a restart.  A parsed file is written
 * again with the same rows. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "host/quota_file.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    struct buf again;
    uint32_t n;
};

static void take(void *ctx, const struct quota_file_row *row)
{
    struct seen *s = ctx;
    if (strnlen(row->name, sizeof(row->name)) >= sizeof(row->name) || !row->name[0])
        abort();
    quota_file_put(&s->again, row);
    FUZZ_NOTE("%s ", row->name);
    s->n++;
}

/* Fixes the hash at the end, so that the rows are reached. */
static void read_rows(const char *p, size_t n)
{
    struct seen s = {.n = 0}, t = {.n = 0};
    struct err e;
    buf_init(&s.again, QUOTA_FILE_MAX_BYTES * 4);
    buf_init(&t.again, QUOTA_FILE_MAX_BYTES * 4);
    quota_file_begin(&s.again);
    if (quota_file_read(p, n, take, &s, &e) == 0) {
        quota_file_end(&s.again);
        if (s.again.rc == 0 && s.again.len <= QUOTA_FILE_MAX_BYTES &&
            (quota_file_read(buf_str(&s.again), s.again.len, take, &t, &e) < 0 || t.n != s.n))
            abort();
    } else if (FUZZ_NOTE("%s", e.msg), s.n > 0) {
        abort(); /* rows of a rejected file */
    }
    buf_fini(&s.again);
    buf_fini(&t.again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf b;
    read_rows((const char *)data, size);
    buf_init(&b, QUOTA_FILE_MAX_BYTES + 64);
    quota_file_begin(&b);
    buf_put(&b, data, size);
    quota_file_end(&b);
    if (b.rc == 0)
        read_rows(buf_str(&b), b.len);
    buf_fini(&b);
    return 0;
}
