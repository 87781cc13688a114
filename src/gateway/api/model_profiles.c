/* model_profiles.c - see model_profiles.h. */
#include "gateway/api/model_profiles.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/file/file_open.h"
#include "base/log.h"
#include "base/mem.h"
#include "depot/store/model_intake.h"
#include "depot/store/model_manifest.h"
#include "depot/store/model_refs.h"
#include "depot/store/model_store.h"
#include "flow/request.h"

#define COPY_BYTES ((size_t)1 << 20)
#define BLOB_FILE "model.gguf"

struct kept {
    struct model_profile profile; /* first; its texts are in the block */
    struct kept *next;
    uint32_t refs; /* the store's own is one of them */
};

struct model_profiles {
    pthread_mutex_t lock;
    struct model_store *store;
    struct kept *all;
};

static const size_t texts[] = {
    offsetof(struct model_profile, name),     offsetof(struct model_profile, path),
    offsetof(struct model_profile, from),     offsetof(struct model_profile, system),
    offsetof(struct model_profile, template), offsetof(struct model_profile, parameters),
    offsetof(struct model_profile, license),  offsetof(struct model_profile, messages),
    offsetof(struct model_profile, source),   offsetof(struct model_profile, task),
    offsetof(struct model_profile, labels)};
#define N_TEXTS (sizeof(texts) / sizeof(texts[0]))

static const char **text_at(struct model_profile *p, size_t i)
{
    return (const char **)(void *)((char *)p + texts[i]);
}

/* A copy in one block; NULL: out of memory. */
static struct kept *copy_profile(const struct model_profile *p)
{
    struct model_profile from = *p;
    size_t n = sizeof(struct kept);
    for (size_t i = 0; i < N_TEXTS; i++)
        n += *text_at(&from, i) ? strlen(*text_at(&from, i)) + 1 : 0;
    struct kept *k = mem_zalloc(n);
    if (!k)
        return NULL;
    k->profile = *p;
    char *at = (char *)(k + 1);
    for (size_t i = 0; i < N_TEXTS; i++) {
        const char *text = *text_at(&from, i);
        if (!text)
            continue;
        size_t bytes = strlen(text) + 1;
        memcpy(at, text, bytes);
        *text_at(&k->profile, i) = at;
        at += bytes;
    }
    k->refs = 1;
    return k;
}

static void unref(struct kept *k)
{
    if (--k->refs == 0)
        mem_free(k);
}

bool model_profiles_is_name(const char *name)
{
    return model_refs_is_name(name);
}

struct model_store *model_profiles_store(struct model_profiles *s)
{
    return s->store;
}

/* ---- names of the store ---- */

static int profile_of(struct model_profiles *s, const struct model_ref *ref, char path[PATH_MAX],
                      struct model_profile *out, struct err *e)
{
    int rc = ref->stored ? model_store_find(s->store, ref->sha256, path, e) : 0;
    *out = (struct model_profile){.name = ref->name,
                                  .path = ref->stored ? path : ref->path,
                                  .from = ref->from,
                                  .system = ref->system,
                                  .template = ref->template,
                                  .parameters = ref->parameters,
                                  .license = ref->license,
                                  .messages = ref->messages,
                                  .source = ref->source,
                                  .task = ref->task,
                                  .labels = ref->labels,
                                  .context = ref->context,
                                  .parallel = ref->parallel,
                                  .pinned = ref->pinned};
    return rc;
}

/* With the lock: the place of a profile, or of the end. */
static struct kept **find(struct model_profiles *s, const char *name)
{
    struct kept **at = &s->all;
    while (*at && strcmp((*at)->profile.name, name) != 0)
        at = &(*at)->next;
    return at;
}

/* In place of an older one of that name. */
static void keep(struct model_profiles *s, struct kept *k)
{
    pthread_mutex_lock(&s->lock);
    struct kept **at = find(s, k->profile.name), *old = *at;
    k->next = old ? old->next : NULL;
    *at = k;
    if (old)
        unref(old);
    pthread_mutex_unlock(&s->lock);
}

static int keep_ref(struct model_profiles *s, const struct model_ref *ref, struct err *e)
{
    char path[PATH_MAX];
    struct model_profile p;
    struct kept *k = NULL;
    int rc = profile_of(s, ref, path, &p, e);
    if (rc == 0 && !(k = copy_profile(&p)))
        rc = err_set(e, SHOAL_ENOMEM, "out of memory");
    if (rc == 0)
        keep(s, k);
    return rc;
}

static void read_ref(void *ctx, const struct model_ref *ref)
{
    struct model_profiles *s = ctx;
    struct err why = {0};
    if (keep_ref(s, ref, &why) < 0)
        log_warn("store", "the model %s cannot be offered: %s", ref->name, why.msg);
}

int model_profiles_open(struct model_profiles **out, const char *dir, const char *memo_dir,
                        struct err *e)
{
    const struct model_store_opts so = {.dir = dir, .memo_dir = memo_dir};
    struct model_profiles *s = mem_zalloc(sizeof(*s));
    struct model_refs *refs = NULL;
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory");
    pthread_mutex_init(&s->lock, NULL);
    int rc = model_store_open(&s->store, &so, e);
    if (rc == 0)
        rc = model_refs_open(&refs, model_store_dir(s->store), e);
    if (rc == 0)
        model_refs_each(refs, read_ref, s);
    model_refs_close(refs);
    if (rc < 0)
        model_profiles_close(s);
    else
        *out = s;
    return rc;
}

void model_profiles_close(struct model_profiles *s)
{
    if (!s)
        return;
    for (struct kept *k = s->all, *next; k; k = next) {
        next = k->next;
        unref(k);
    }
    pthread_mutex_destroy(&s->lock);
    model_store_close(s->store);
    mem_free(s);
}

int model_profiles_refresh(struct model_profiles *s, void (*gone)(void *ctx, const char *name),
                           void *ctx, struct err *e)
{
    struct model_refs *refs = NULL;
    int rc = model_refs_open(&refs, model_store_dir(s->store), e);
    if (rc < 0)
        return rc;
    struct kept *lost = NULL;
    pthread_mutex_lock(&s->lock);
    for (struct kept **at = &s->all; *at;) {
        struct kept *k = *at;
        if (model_refs_find(refs, k->profile.name, true)) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        k->next = lost;
        lost = k;
    }
    pthread_mutex_unlock(&s->lock);
    for (struct kept *k = lost, *next; k; k = next) {
        next = k->next;
        gone(ctx, k->profile.name);
        model_profiles_unref(s, &k->profile);
    }
    model_refs_each(refs, read_ref, s);
    model_refs_close(refs);
    return 0;
}

void model_profiles_each(struct model_profiles *s,
                         void (*fn)(void *ctx, const struct model_profile *p), void *ctx)
{
    size_t n = 0;
    pthread_mutex_lock(&s->lock);
    for (struct kept *k = s->all; k; k = k->next)
        n++;
    struct kept **list = mem_zalloc_n(n, sizeof(struct kept *));
    n = 0;
    for (struct kept *k = s->all; list && k; k = k->next) {
        k->refs++;
        list[n++] = k;
    }
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < n; i++) { /* without the lock: fn may take others */
        fn(ctx, &list[i]->profile);
        model_profiles_unref(s, &list[i]->profile);
    }
    mem_free(list);
}

const struct model_profile *model_profiles_get(struct model_profiles *s, const char *name)
{
    pthread_mutex_lock(&s->lock);
    struct kept *k = *find(s, name);
    if (k)
        k->refs++;
    pthread_mutex_unlock(&s->lock);
    return k ? &k->profile : NULL;
}

void model_profiles_unref(struct model_profiles *s, const struct model_profile *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&s->lock);
    unref((struct kept *)(uintptr_t)p); /* its first member */
    pthread_mutex_unlock(&s->lock);
}

int model_profiles_put(struct model_profiles *s, const struct model_profile *p, struct err *e)
{
    struct model_ref ref = {.name = p->name,
                            .from = p->from,
                            .system = p->system,
                            .template = p->template,
                            .parameters = p->parameters,
                            .license = p->license,
                            .messages = p->messages,
                            .source = p->source,
                            .task = p->task,
                            .labels = p->labels,
                            .context = p->context,
                            .parallel = p->parallel,
                            .pinned = p->pinned};
    ref.stored = model_store_owns(s->store, p->path, ref.sha256);
    ref.path = ref.stored ? NULL : p->path;
    if (!model_profiles_is_name(p->name))
        return err_set(e, SHOAL_EINVAL, "'%.64s' cannot be the name of a model", p->name);
    struct kept *k = copy_profile(p);
    int rc = k ? model_refs_put(model_store_dir(s->store), &ref, e)
               : err_set(e, SHOAL_ENOMEM, "out of memory");
    if (rc < 0)
        mem_free(k);
    else
        keep(s, k);
    return rc;
}

int model_profiles_adopt(struct model_profiles *s, const char *name, struct err *e)
{
    const struct model_ref *ref;
    struct model_refs *refs = NULL;
    int rc = model_refs_open(&refs, model_store_dir(s->store), e);
    if (rc == 0)
        rc = model_refs_get(refs, name, &ref, e);
    if (rc == 0)
        rc = keep_ref(s, ref, e);
    model_refs_close(refs);
    return rc;
}

struct sharing {
    const uint8_t *sum;
    bool shared;
};

static void find_sharing(void *ctx, const struct model_ref *ref)
{
    struct sharing *x = ctx;
    x->shared |= ref->stored && memcmp(ref->sha256, x->sum, SHA256_BYTES) == 0;
}

/* Removes a model of the store that has no name any more. */
static void remove_unnamed(struct model_profiles *s, const char *path)
{
    uint8_t sum[SHA256_BYTES];
    struct sharing x = {sum, false};
    struct model_refs *refs = NULL;
    if (!model_store_owns(s->store, path, sum) ||
        model_refs_open(&refs, model_store_dir(s->store), NULL) < 0)
        return;
    model_refs_each(refs, find_sharing, &x);
    model_refs_close(refs);
    if (!x.shared) /* engines that have it open are unaffected; a pinned one stays */
        (void)!model_store_remove(s->store, sum, NULL);
}

/* with_model: that has no other name. */
static int take_out(struct model_profiles *s, const char *name, bool with_model, struct err *e)
{
    pthread_mutex_lock(&s->lock);
    struct kept **at = find(s, name), *k = *at;
    if (k)
        *at = k->next;
    pthread_mutex_unlock(&s->lock);
    if (!k)
        return err_set(e, SHOAL_ENOTFOUND, "model '%.64s' not found", name);
    int rc = model_refs_remove(model_store_dir(s->store), name, e);
    if (rc == SHOAL_ENOTFOUND)
        rc = 0;
    if (rc == 0 && with_model)
        remove_unnamed(s, k->profile.path);
    model_profiles_unref(s, &k->profile);
    return rc;
}

int model_profiles_forget(struct model_profiles *s, const char *name, struct err *e)
{
    return take_out(s, name, false, e);
}

int model_profiles_remove(struct model_profiles *s, const char *name, struct err *e)
{
    return take_out(s, name, true, e);
}

/* ---- blobs ---- */

/* "sha256:HEX" or "sha256-HEX" */
static int read_digest(const char *digest, uint8_t sum[SHA256_BYTES], struct err *e)
{
    return strlen(digest) == 7 + 2 * SHA256_BYTES && strncmp(digest, "sha256", 6) == 0 &&
                   (digest[6] == ':' || digest[6] == '-') && sha256_read_hex(sum, digest + 7)
               ? 0
               : err_set(e, SHOAL_EINVAL, "the digest must be sha256: and 64 hex digits");
}

int model_profiles_find_blob(struct model_profiles *s, const char *digest, char path[PATH_MAX],
                             struct err *e)
{
    uint8_t sum[SHA256_BYTES];
    int rc = read_digest(digest, sum, e);
    if (rc < 0)
        return rc;
    return model_store_find(s->store, sum, path, NULL) == 0
               ? 0
               : err_set(e, SHOAL_ENOTFOUND, "there is no blob %.80s: send it to /api/blobs first",
                         digest);
}

int model_profiles_put_blob(struct model_profiles *s, const char *digest, const void *data,
                            size_t n, struct err *e)
{
    static const _Atomic bool never = false;
    struct model_intake *k = NULL;
    struct model_manifest m;
    uint8_t want[SHA256_BYTES];
    char path[PATH_MAX];
    uint64_t offset;
    uint32_t i;
    int rc = read_digest(digest, want, e);
    if (rc < 0 || model_store_find(s->store, want, path, NULL) == 0)
        return rc;
    model_manifest_init(&m);
    rc = model_manifest_single(&m, BLOB_FILE, n, want, e);
    if (rc == 0)
        rc = model_intake_open(&k, s->store, want, &never, e);
    if (rc == 0) /* what an earlier call left does not count */
        rc = model_intake_set_manifest(k, &m, e);
    if (rc == 0)
        rc = model_intake_next(k, &i, &offset, e);
    if (rc > 0)
        rc = model_intake_write(k, "client", data, n, e);
    if (rc == 0)
        rc = model_intake_finish(k, e);
    if (rc == SHOAL_EFORMAT)
        rc = err_set(e, rc, "the bytes do not have the digest %.80s", digest);
    if (rc == 0)
        rc = model_intake_commit(k, path, e);
    if (rc < 0)
        model_intake_discard(k);
    else
        model_intake_close(k);
    model_manifest_fini(&m);
    return rc;
}

static int copy_bytes(int from, int to, struct err *e)
{
    char *block = mem_alloc(COPY_BYTES);
    int rc = block ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory");
    while (rc == 0) {
        ssize_t n = read(from, block, COPY_BYTES);
        if (n < 0)
            rc = err_set(e, SHOAL_EIO, "cannot read the model: %s", strerror(errno));
        if (n <= 0)
            break;
        for (ssize_t at = 0; at < n && rc == 0;) {
            ssize_t k = write(to, block + at, (size_t)(n - at));
            if (k <= 0)
                rc = err_set(e, SHOAL_EIO, "cannot write the copy: %s", strerror(errno));
            at += k > 0 ? k : 0;
        }
    }
    mem_free(block);
    return rc;
}

/* Copies to a temporary file beside the destination; temp is its path. */
static int copy_file(const char *from, const char *to, char temp[PATH_MAX], struct err *e)
{
    int n = snprintf(temp, PATH_MAX, "%s.XXXXXX", to);
    int in = file_open_regular(from, NULL), out = -1, rc = 0;
    if (in < 0)
        rc = err_set(e, SHOAL_EIO, "cannot open %s: %s", from, file_open_reason(errno));
    else if (n < 0 || n >= PATH_MAX || (out = mkostemp(temp, O_CLOEXEC)) < 0)
        rc = err_set(e, SHOAL_EIO, "cannot write beside %s: %s", to, strerror(errno));
    if (rc == 0)
        rc = copy_bytes(in, out, e);
    if (rc == 0 && (fchmod(out, 0644) < 0 || fsync(out) < 0))
        rc = err_set(e, SHOAL_EIO, "cannot write %s: %s", temp, strerror(errno));
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    if (rc < 0 && out >= 0)
        unlink(temp);
    return rc;
}

static int rename_file(const char *temp, const char *to, struct err *e)
{
    if (rename(temp, to) == 0)
        return 0;
    int rc = err_set(e, SHOAL_EIO, "cannot rename %s: %s", temp, strerror(errno));
    unlink(temp);
    return rc;
}

int model_profiles_copy_out(const char *from, const char *to, struct err *e)
{
    char temp[PATH_MAX];
    int rc = copy_file(from, to, temp, e);
    return rc < 0 ? rc : rename_file(temp, to, e);
}

/* ---- using them ---- */

static bool has_system(const struct chat *chat)
{
    for (uint32_t i = 0; i < chat->n_messages; i++)
        if (strcmp(chat->messages[i].role, "system") == 0)
            return true;
    return false;
}

static void add_system(struct request *r, const char *text)
{
    struct chat *chat = &r->generate.chat;
    struct chat_message *all = arena_zalloc_n(&r->arena, chat->n_messages + 1u, sizeof(*all));
    if (!all)
        return; /* request_rc tells */
    all[0].role = "system";
    all[0].content = request_copy_utf8(r, text, strlen(text), &all[0].content_bytes);
    r->input_bytes += all[0].content_bytes;
    memcpy(all + 1, chat->messages, chat->n_messages * sizeof(*all));
    chat->messages = all;
    chat->n_messages++;
}

/* The profile's messages, behind the system message, in front of the client's. */
static void add_messages(struct request *r, const char *text)
{
    struct chat *chat = &r->generate.chat;
    cJSON *list = cJSON_Parse(text);
    const uint32_t n = (uint32_t)cJSON_GetArraySize(list);
    const cJSON *v = list ? list->child : NULL;
    const uint32_t first = strcmp(chat->messages[0].role, "system") == 0;
    struct chat_message *all = arena_zalloc_n(&r->arena, chat->n_messages + n, sizeof(*all));
    struct chat_message *m = all ? all + first : NULL;
    for (; m && v; v = v->next) {
        const char *role = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(v, "role"));
        const char *content = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(v, "content"));
        if (!role || !content)
            continue;
        m->role = request_copy(r, role, strlen(role));
        m->content = request_copy_utf8(r, content, strlen(content), &m->content_bytes);
        r->input_bytes += m->content_bytes;
        m++;
    }
    cJSON_Delete(list);
    if (!m)
        return; /* request_rc tells */
    memcpy(all, chat->messages, first * sizeof(*all));
    memcpy(m, chat->messages + first, (chat->n_messages - first) * sizeof(*all));
    chat->n_messages += (uint32_t)(m - all) - first;
    chat->messages = all;
}

void model_profiles_apply(struct model_profiles *s, struct request *r)
{
    struct chat *chat = &r->generate.chat;
    if (!s || !r->model || chat->n_messages == 0)
        return;
    const struct model_profile *p = model_profiles_get(s, r->model);
    if (!p)
        return;
    if (p->system && p->system[0] && !has_system(chat))
        add_system(r, p->system);
    if (p->messages)
        add_messages(r, p->messages);
    if (p->template && !chat->template)
        chat->template = request_copy_utf8(r, p->template, strlen(p->template), NULL);
    model_profiles_unref(s, p);
}
