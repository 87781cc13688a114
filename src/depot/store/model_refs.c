/* model_refs.c - see model_refs.h. */
#include "depot/store/model_refs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/room.h"
#include "depot/store/store_lock.h"
#include "wire/json_in.h"
#include "wire/json_out.h"

#define MAX_REF_BYTES ((size_t)4 << 20)
#define MAX_ARENA_BYTES ((size_t)256 << 20)
#define MAX_REFS 65536u

struct model_refs {
    struct arena arena;
    struct model_ref *v;
    size_t n, cap;
};

/* Texts of a reference, and their keys. */
static const struct {
    const char *key;
    size_t at;
} texts[] = {{"path", offsetof(struct model_ref, path)},
             {"source", offsetof(struct model_ref, source)},
             {"from", offsetof(struct model_ref, from)},
             {"system", offsetof(struct model_ref, system)},
             {"template", offsetof(struct model_ref, template)},
             {"parameters", offsetof(struct model_ref, parameters)},
             {"license", offsetof(struct model_ref, license)},
             {"signer", offsetof(struct model_ref, signer)},
             {"messages", offsetof(struct model_ref, messages)},
             {"task", offsetof(struct model_ref, task)},
             {"labels", offsetof(struct model_ref, labels)}};
#define N_TEXTS (sizeof(texts) / sizeof(texts[0]))

/* ---- names ---- */

bool model_refs_is_name(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/@-");
    return n > 0 && n <= MODEL_REFS_NAME_BYTES && name[n] == '\0' && name[0] != '.' &&
           name[0] != '/' && name[0] != '-' && name[n - 1] != '/' && name[n - 1] != ':' &&
           !strstr(name, "..") && !strstr(name, "//");
}

/* DIR/names/NAME.json, with '/' and ':' as '%2f' and '%3a'. */
static int ref_path(char path[PATH_MAX], const char *dir, const char *name, struct err *e)
{
    char file[3 * MODEL_REFS_NAME_BYTES + 1];
    size_t n = 0;
    if (!model_refs_is_name(name))
        return err_set(e, SHOAL_EINVAL,
                       "'%.64s' cannot be the name of a model: letters, digits and ._:/@-", name);
    for (const char *p = name; *p; p++) {
        if (*p == '/' || *p == ':')
            n += (size_t)snprintf(file + n, 4, *p == '/' ? "%%2f" : "%%3a");
        else
            file[n++] = *p;
    }
    file[n] = '\0';
    int k = snprintf(path, PATH_MAX, "%s/names/%s.json", dir, file);
    return k > 0 && k < PATH_MAX ? 0 : err_set(e, SHOAL_ELIMIT, "the path of %s is too long", dir);
}

/* ---- reading ---- */

static int read_ref(struct model_refs *r, struct model_ref *ref, const char *path, struct err *e)
{
    static const char prefix[] = "sha256:";
    struct buf b;
    cJSON *json = NULL;
    buf_init(&b, MAX_REF_BYTES);
    int rc = file_read(path, &b, e);
    if (rc == 0)
        rc = json_in_object(&json, path, buf_str(&b), b.len, MAX_REF_BYTES, e);
    const char *name = cJSON_GetStringValue(json_in_item(json, "name"));
    const char *model = cJSON_GetStringValue(json_in_item(json, "model"));
    const cJSON *added = json_in_item(json, "added");
    *ref = (struct model_ref){0};
    for (size_t i = 0; i < N_TEXTS && rc == 0; i++) {
        const char *s = cJSON_GetStringValue(json_in_item(json, texts[i].key));
        if (s)
            *(const char **)(void *)((char *)ref + texts[i].at) =
                arena_copy(&r->arena, s, strlen(s) + 1);
    }
    ref->stored = model && strlen(model) == 7 + 2 * SHA256_BYTES &&
                  strncmp(model, prefix, 7) == 0 && sha256_read_hex(ref->sha256, model + 7);
    if (rc == 0 && (!name || !model_refs_is_name(name) || (!ref->stored && !ref->path)))
        rc = err_set(e, SHOAL_EFORMAT, "%s names no model", path);
    if (rc == 0)
        ref->name = arena_copy(&r->arena, name, strlen(name) + 1);
    ref->added_s =
        cJSON_IsNumber(added) && added->valuedouble > 0 ? (uint64_t)added->valuedouble : 0;
    ref->pinned = cJSON_IsTrue(json_in_item(json, "pinned"));
    if (rc == 0)
        rc = json_in_u32(json, "context", 0, 1 << 24, 0, &ref->context, e);
    if (rc == 0)
        rc = json_in_u32(json, "parallel", 0, 1024, 0, &ref->parallel, e);
    if (rc == 0 && r->arena.rc < 0)
        rc = err_set(e, r->arena.rc, "names of models");
    cJSON_Delete(json);
    buf_fini(&b);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    const struct model_ref *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int add(struct model_refs *r, const char *path, struct err *e)
{
    if (!room_make(&r->v, &r->cap, r->n, sizeof(*r->v), 16))
        return err_set(e, SHOAL_ENOMEM, "names of models");
    int rc = read_ref(r, &r->v[r->n], path, e);
    r->n += rc == 0;
    return rc;
}

int model_refs_open(struct model_refs **out, const char *dir, struct err *e)
{
    char path[PATH_MAX], file[PATH_MAX];
    struct model_refs *r = mem_zalloc(sizeof(*r));
    int rc = 0;
    *out = NULL;
    if (!r)
        return err_set(e, SHOAL_ENOMEM, "names of models");
    arena_init(&r->arena, MAX_ARENA_BYTES);
    snprintf(path, sizeof(path), "%.*s/names", PATH_MAX - 8, dir);
    DIR *d = opendir(path);
    if (!d && errno != ENOENT)
        rc = err_set(e, SHOAL_EIO, "cannot open %s: %s", path, strerror(errno));
    for (struct dirent *x; d && rc == 0 && r->n < MAX_REFS && (x = readdir(d));) {
        size_t n = strlen(x->d_name);
        struct err why = {0};
        if (n < 6 || strcmp(x->d_name + n - 5, ".json") != 0 ||
            snprintf(file, sizeof(file), "%s/%s", path, x->d_name) >= PATH_MAX)
            continue;
        int got = add(r, file, &why);
        if (got == SHOAL_ENOMEM)
            rc = err_set(e, got, "names of models");
        else if (got < 0 && access(file, F_OK) == 0) /* else it was removed just now */
            log_warn("store", "the name of a model is skipped: %s", why.msg);
    }
    if (d)
        closedir(d);
    if (rc < 0) {
        model_refs_close(r);
        return rc;
    }
    if (r->n > 1)
        qsort(r->v, r->n, sizeof(*r->v), by_name);
    *out = r;
    return 0;
}

void model_refs_close(struct model_refs *r)
{
    if (!r)
        return;
    arena_fini(&r->arena);
    mem_free(r->v);
    mem_free(r);
}

void model_refs_each(const struct model_refs *r, void (*fn)(void *ctx, const struct model_ref *ref),
                     void *ctx)
{
    for (size_t i = 0; i < r->n; i++)
        fn(ctx, &r->v[i]);
}

/* ---- finding ---- */

static const struct model_ref *find_exact(const struct model_refs *r, const char *name, size_t n)
{
    for (size_t i = 0; i < r->n; i++)
        if (strncmp(r->v[i].name, name, n) == 0 && !r->v[i].name[n])
            return &r->v[i];
    return NULL;
}

/* Where the tag of a name begins, with its colon; NULL: it has none. A host may have a port. */
static const char *tag_of(const char *name)
{
    const char *colon = strrchr(name, ':'), *slash = strrchr(name, '/');
    return colon && (!slash || colon > slash) ? colon : NULL;
}

const struct model_ref *model_refs_find(const struct model_refs *r, const char *name, bool exact)
{
    const struct model_ref *found = find_exact(r, name, strlen(name)), *only = NULL;
    const char *tag = tag_of(name);
    if (found || exact)
        return found;
    if (tag)
        return strcmp(tag, ":latest") == 0 ? find_exact(r, name, (size_t)(tag - name)) : NULL;
    size_t n = strlen(name), n_tags = 0;
    for (size_t i = 0; i < r->n; i++) {
        const char *its = tag_of(r->v[i].name);
        if (!its || (size_t)(its - r->v[i].name) != n || strncmp(r->v[i].name, name, n) != 0)
            continue;
        if (strcmp(its, ":latest") == 0)
            return &r->v[i];
        only = &r->v[i];
        n_tags++;
    }
    return n_tags == 1 ? only : NULL;
}

int model_refs_get(const struct model_refs *r, const char *name, const struct model_ref **out,
                   struct err *e)
{
    char list[400];
    size_t n = 0, k = strlen(name);
    *out = model_refs_find(r, name, false);
    if (*out)
        return 0;
    list[0] = '\0';
    for (size_t i = 0; i < r->n; i++) /* the name has several tags */
        if (strncmp(r->v[i].name, name, k) == 0 && r->v[i].name[k] == ':' && n < sizeof(list) - 1)
            n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n ? ", " : "", r->v[i].name);
    if (list[0])
        return err_set(e, SHOAL_EINVAL, "%.64s has several tags, choose one: %.300s", name, list);
    const char **names = mem_zalloc_n(r->n + 1, sizeof(*names));
    for (size_t i = 0; names && i < r->n; i++)
        names[i] = r->v[i].name;
    const char *nearest = names ? nearest_word(name, names) : NULL;
    int rc = err_set(e, SHOAL_ENOTFOUND, "the store has no model %.64s%s%.64s%s", name,
                     nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
    mem_free(names);
    return rc;
}

/* ---- writing ---- */

static void write_ref(struct buf *b, const struct model_ref *ref)
{
    struct json_out j = json_out_make(b);
    char model[7 + 2 * SHA256_BYTES + 1] = "sha256:";
    json_out_object(&j);
    json_out_member_str(&j, "name", ref->name);
    if (ref->stored) {
        sha256_hex(model + 7, ref->sha256);
        json_out_member_str(&j, "model", model);
    }
    for (size_t i = 0; i < N_TEXTS; i++) {
        const char *s = *(const char *const *)(const void *)((const char *)ref + texts[i].at);
        if (s)
            json_out_member_str(&j, texts[i].key, s);
    }
    json_out_member_uint(&j, "added", ref->added_s ? ref->added_s : (uint64_t)time(NULL));
    if (ref->context)
        json_out_member_uint(&j, "context", ref->context);
    if (ref->parallel)
        json_out_member_uint(&j, "parallel", ref->parallel);
    if (ref->pinned)
        json_out_member_bool(&j, "pinned", true);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

int model_refs_put(const char *dir, const struct model_ref *ref, struct err *e)
{
    char path[PATH_MAX];
    struct buf b;
    int rc = ref_path(path, dir, ref->name, e);
    if (rc < 0)
        return rc;
    buf_init(&b, MAX_REF_BYTES);
    write_ref(&b, ref);
    rc = b.rc < 0 ? err_set(e, b.rc, "what belongs to %s is too large", ref->name) : 0;
    int lock = rc == 0 ? store_lock(dir, e) : rc;
    rc = lock < 0 ? lock : file_replace(path, buf_str(&b), b.len, e);
    if (rc == 0) /* no secret: a server of another user reads it */
        (void)!chmod(path, 0644);
    if (lock >= 0)
        close(lock);
    buf_fini(&b);
    return rc;
}

int model_refs_remove(const char *dir, const char *name, struct err *e)
{
    char path[PATH_MAX];
    int rc = ref_path(path, dir, name, e);
    int lock = rc == 0 ? store_lock(dir, e) : rc;
    if (lock < 0)
        return lock;
    if (unlink(path) < 0)
        rc = errno == ENOENT ? err_set(e, SHOAL_ENOTFOUND, "the store has no model %.64s", name)
                             : err_set(e, SHOAL_EIO, "cannot remove %s: %s", path, strerror(errno));
    close(lock);
    return rc;
}
