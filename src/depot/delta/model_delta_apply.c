/* model_delta_apply.c - model_delta_apply: see model_delta.h. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file_map.h"
#include "base/file/file_open.h"
#include "base/mem.h"
#include "depot/delta/delta_file.h"
#include "depot/delta/model_delta.h"

#define COPY_BYTES ((size_t)4 << 20)

struct applying {
    struct file_map old;
    int patch;
    const char *patch_path;
    struct delta_head head;
    struct delta_file out;
    struct delta_work work;
    struct sha256 sum;
    struct model_delta *done;
    uint8_t *packed, *made;
};

static int put(struct applying *a, const uint8_t *p, size_t n, struct err *e)
{
    sha256_add(&a->sum, p, n);
    return delta_file_put(&a->out, p, n, e);
}

/* Exactly n bytes of the patch. */
static int take(struct applying *a, void *p, size_t n, struct err *e)
{
    for (uint8_t *at = p; n > 0;) {
        ssize_t k = read(a->patch, at, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return err_set(e, SHOAL_EIO, "cannot read it: %s", strerror(errno));
        if (k == 0)
            return err_set(e, SHOAL_EFORMAT, "the patch ends too early: fetch it again");
        at += k;
        n -= (size_t)k;
    }
    return 0;
}

static int copy(struct applying *a, const struct delta_record *r, struct err *e)
{
    int rc = 0;
    a->done->copied += r->new_n;
    for (uint64_t i = 0; i < r->new_n && rc == 0; i += COPY_BYTES) {
        const uint64_t left = r->new_n - i;
        rc = put(a, a->old.bytes + r->old_at + i, left < COPY_BYTES ? left : COPY_BYTES, e);
    }
    return rc;
}

static int apply_record(struct applying *a, const struct delta_record *r, struct err *e)
{
    if (r->kind == DELTA_COPY)
        return copy(a, r, e);
    *(r->kind == DELTA_DIFF ? &a->done->differed : &a->done->packed) += r->new_n;
    int rc = take(a, a->packed, r->packed, e);
    if (rc == 0)
        rc = delta_unpack(&a->work, r, a->old.bytes + r->old_at, a->packed, a->made, e);
    return rc < 0 ? rc : put(a, a->made, r->new_n, e);
}

static int apply_records(struct applying *a, struct err *e)
{
    int rc = 0;
    while (rc == 0 && a->out.n < a->head.new_bytes) {
        uint8_t bytes[DELTA_RECORD_BYTES];
        struct delta_record r;
        rc = take(a, bytes, sizeof(bytes), e);
        if (rc == 0)
            rc = delta_record_read(&r, bytes, &a->head, a->head.new_bytes - a->out.n, e);
        if (rc == 0)
            rc = apply_record(a, &r, e);
    }
    uint8_t more;
    if (rc == 0 && read(a->patch, &more, 1) != 0)
        rc = err_set(e, SHOAL_EFORMAT, "the patch goes on after its end: fetch it again");
    return rc;
}

/* The old file is the one that the patch was made for. */
static int check_old(const struct applying *a, const char *path, struct err *e)
{
    uint8_t sum[SHA256_BYTES];
    char wanted[2 * SHA256_BYTES + 1];
    struct sha256 s;
    sha256_begin(&s);
    if (a->old.n_bytes == a->head.old_bytes)
        sha256_add(&s, a->old.bytes, a->old.n_bytes);
    if (!sha256_end(&s, sum))
        return err_set(e, SHOAL_ENOMEM, "a hash");
    if (a->old.n_bytes == a->head.old_bytes && memcmp(sum, a->head.old_sum, SHA256_BYTES) == 0)
        return 0;
    sha256_hex(wanted, a->head.old_sum);
    return err_set(e, SHOAL_EINVAL,
                   "it is for another file than %s: one of %llu bytes with the SHA-256 %s", path,
                   (unsigned long long)a->head.old_bytes, wanted);
}

static int apply_all(struct applying *a, const char *old_path, const char *out, struct err *e)
{
    uint8_t head[DELTA_HEAD_BYTES], sum[SHA256_BYTES];
    ssize_t n = read(a->patch, head, sizeof(head));
    int rc = delta_head_read(&a->head, head, n > 0 ? (size_t)n : 0, e);
    if (rc == 0)
        rc = check_old(a, old_path, e);
    if (rc == 0)
        rc = delta_file_open(&a->out, out, e);
    sha256_begin(&a->sum);
    if (rc == 0)
        rc = apply_records(a, e);
    const bool summed = sha256_end(&a->sum, sum);
    if (rc == 0 && (!summed || memcmp(sum, a->head.new_sum, SHA256_BYTES) != 0))
        rc = err_set(e, SHOAL_EFORMAT,
                     "what it makes is not the new file (its SHA-256 differs): fetch the patch "
                     "again, or the whole model");
    return rc;
}

int model_delta_head(struct delta_head *out, const char *path, struct err *e)
{
    uint8_t head[DELTA_HEAD_BYTES];
    struct err why = {0};
    struct stat st;
    int fd = file_open_regular(path, &st);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, head, sizeof(head));
    close(fd);
    if (n < 0 || !delta_is(head, (size_t)n))
        return 0;
    int rc = delta_head_read(out, head, (size_t)n, &why);
    return rc < 0 ? err_set(e, rc, "%s: %.200s", path, why.msg) : 1;
}

int model_delta_apply(const char *old_path, const char *patch, const char *out,
                      struct model_delta *done, struct err *e)
{
    struct applying a = {.patch = -1, .out = {.fd = -1}, .done = done};
    struct stat st;
    *done = (struct model_delta){0};
    a.patch = file_open_regular(patch, &st);
    if (a.patch < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", patch, file_open_reason(errno));
    int rc = file_map_open(&a.old, old_path, e);
    a.packed = mem_alloc(delta_bound(DELTA_MAX_NEW));
    a.made = mem_alloc(DELTA_MAX_NEW);
    if (rc == 0 && (!a.packed || !a.made))
        rc = err_set(e, SHOAL_ENOMEM, "a patch");
    if (rc == 0 && (rc = apply_all(&a, old_path, out, e)) < 0)
        err_wrap(e, "%s", patch);
    rc = delta_file_end(&a.out, out, rc, e);
    *done = (struct model_delta){.old_bytes = a.old.n_bytes,
                                 .new_bytes = a.out.n,
                                 .patch_bytes = (uint64_t)st.st_size,
                                 .copied = done->copied,
                                 .differed = done->differed,
                                 .packed = done->packed};
    close(a.patch);
    file_map_close(&a.old);
    delta_work_fini(&a.work);
    mem_free(a.packed);
    mem_free(a.made);
    return rc;
}
