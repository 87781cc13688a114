/* intake_fill.c - see intake_fill.h. */
#include "depot/source/intake_fill.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "depot/source/byte_sink.h"
#include "depot/store/model_intake.h"
#include "depot/store/model_store.h"

#define MS_NS 1000000u
#define SLICE_NS (50u * MS_NS)
#define MAX_ATTEMPTS 5u
#define RETRY_MS 500u
#define WAIT_MS 200u

struct filling {
    struct model_intake *intake;
    const struct model_source_opts *o;
    struct model_progress progress;
    char digest[7 + 2 * SHA256_BYTES + 1];
};

/* In slices, so that a cancel is noticed. */
static int wait_ms(const struct model_source_opts *o, uint32_t ms, struct err *e)
{
    const uint64_t until = clock_ns() + (uint64_t)ms * MS_NS;
    for (uint64_t now; (now = clock_ns()) < until;) {
        const struct timespec t = {.tv_nsec =
                                       (long)(until - now < SLICE_NS ? until - now : SLICE_NS)};
        if (model_source_stopped((void *)(uintptr_t)o))
            return err_set(e, SHOAL_ECANCELLED, "stopped");
        (void)nanosleep(&t, NULL);
    }
    return 0;
}

int intake_fill_open(struct model_intake **out, const struct model_source_opts *o,
                     const uint8_t sha256[SHA256_BYTES], struct err *e)
{
    char path[PATH_MAX];
    for (bool told = false;; told = true) {
        if (model_store_find(o->store, sha256, path, NULL) == 0) {
            *out = NULL;
            return 1;
        }
        int rc = model_intake_open(out, o->store, sha256, o->stop, e);
        if (rc != SHOAL_EBUSY)
            return rc;
        if (!told && o->note)
            o->note(o->ctx, "another process fetches the same: waiting for it");
        rc = wait_ms(o, WAIT_MS, e);
        if (rc < 0)
            return rc;
    }
}

static int on_bytes(void *ctx, const void *p, size_t n, struct err *e)
{
    struct filling *f = ctx;
    int rc = model_intake_write(f->intake, "source", p, n, e);
    f->progress.done += rc == 0 ? n : 0;
    if (rc == 0 && f->o->progress)
        f->o->progress(f->o->ctx, &f->progress);
    if (rc == 0 && model_source_stopped((void *)(uintptr_t)f->o))
        rc = err_set(e, SHOAL_ECANCELLED, "stopped");
    return rc;
}

/* The rest of one file. */
static int fill_file(struct filling *f, struct model_source *s, uint32_t i, uint64_t offset,
                     struct err *e)
{
    const struct byte_sink to = {f, on_bytes};
    const struct model_manifest *m = model_intake_manifest(f->intake);
    char hex[2 * SHA256_BYTES + 1];
    sha256_hex(hex, m->files[i].sum);
    snprintf(f->digest, sizeof(f->digest), "sha256:%s", hex);
    f->progress = (struct model_progress){
        .what = m->files[i].name, .digest = f->digest, .done = offset, .total = m->files[i].bytes};
    if (f->o->progress)
        f->o->progress(f->o->ctx, &f->progress);
    int rc = offset < m->files[i].bytes ? s->ops->file(s, m, i, offset, &to, e) : 0;
    if (rc < 0)
        return rc;
    rc = model_intake_finish(f->intake, e);
    return rc == SHOAL_ECHANGED
               ? err_set(e, SHOAL_EIO, "the transfer of %s was cut off", m->files[i].name)
               : rc;
}

int intake_fill_again(const struct model_source_opts *o, uint32_t attempt, struct err *e)
{
    if (attempt >= MAX_ATTEMPTS)
        return e->code;
    if (o->note && attempt == 1) { /* the rest of them would say the same */
        struct err note = *e;
        err_set(&note, e->code, "%s; trying again", e->msg);
        o->note(o->ctx, note.msg);
    }
    return wait_ms(o, (o->retry_ms ? o->retry_ms : RETRY_MS) << (attempt - 1), e);
}

int intake_fill(struct model_intake *k, struct model_source *s, struct model_manifest *m,
                const struct model_source_opts *o, struct err *e)
{
    struct filling f = {.intake = k, .o = o};
    uint32_t attempt = 0, i;
    bool damaged = false;
    uint64_t offset;
    int rc = model_intake_manifest(k) ? 1 : model_intake_set_manifest(k, m, e);
    for (rc = rc < 0 ? rc : 1; rc > 0;) {
        rc = model_intake_next(k, &i, &offset, e);
        if (rc <= 0)
            break;
        rc = fill_file(&f, s, i, offset, e);
        if (rc == 0) {
            attempt = 0;
            damaged = false;
            rc = 1;
            continue;
        }
        bool again = rc == SHOAL_EIO || rc == SHOAL_EBUSY || (rc == SHOAL_EFORMAT && !damaged);
        attempt = f.progress.done > offset && rc != SHOAL_EFORMAT ? 1 : attempt + 1;
        damaged |= rc == SHOAL_EFORMAT;
        if (!again)
            break;
        rc = intake_fill_again(o, attempt, e);
        rc = rc < 0 ? rc : 1;
    }
    return rc;
}
