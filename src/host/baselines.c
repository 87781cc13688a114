/* baselines.c - see baselines.h. */
#include "host/baselines.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file/file_replace.h"
#include "base/hash.h"

#define MAX_BYTES 1024u

uint64_t baselines_key(const char *name, const char *path)
{
    struct stat st;
    uint64_t h = hash_bytes(path, strlen(path), hash_bytes(name, strlen(name), 0));
    if (stat(path, &st) < 0)
        return h;
    const int64_t facts[] = {st.st_mtim.tv_sec, st.st_mtim.tv_nsec, st.st_size};
    return hash_bytes(facts, sizeof(facts), h);
}

static void put_path(char out[PATH_MAX], const char *dir, uint64_t key)
{
    snprintf(out, PATH_MAX, "%s/confidence-%016" PRIx64, dir, key);
}

bool baselines_restore(struct confidence_watch *w, const char *dir, uint64_t key)
{
    char path[PATH_MAX], text[MAX_BYTES + 1], *p = text;
    double shares[CONFIDENCE_BINS], sum = 0.0;
    put_path(path, dir, key);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    text[fread(text, 1, MAX_BYTES, f)] = '\0';
    fclose(f);
    for (uint32_t i = 0; i < CONFIDENCE_BINS; i++) {
        char *end;
        shares[i] = strtod(p, &end);
        if (end == p || !(shares[i] >= 0.0))
            return false;
        p = end;
        sum += shares[i];
    }
    if (fabs(sum - 1.0) > 1e-3)
        return false;
    confidence_watch_restore(w, shares);
    return true;
}

int baselines_save(const char *dir, uint64_t key, const double shares[CONFIDENCE_BINS],
                   struct err *e)
{
    char path[PATH_MAX];
    struct buf b;
    put_path(path, dir, key);
    buf_init(&b, MAX_BYTES);
    for (uint32_t i = 0; i < CONFIDENCE_BINS; i++)
        buf_printf(&b, "%.9f\n", shares[i]);
    int rc = b.rc < 0 ? err_set(e, b.rc, "%s", path) : file_replace(path, buf_str(&b), b.len, e);
    buf_fini(&b);
    return rc;
}
