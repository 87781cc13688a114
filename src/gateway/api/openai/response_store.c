/* response_store.c - see response_store.h.
 *
 * A list from the newest to the oldest with a table of buckets by id. */
#include "gateway/api/openai/response_store.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/holdings.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "gateway/api/openai/response_file.h"

#define N_BUCKETS 1024u /* a power of 2 */
#define MAX_FILE_BYTES ((size_t)4 << 30)
#define APART_S 1 /* between two versions of the file */

struct kept {
    struct response_entry entry;       /* first */
    struct kept *newer, *older, *next; /* next: in its bucket */
    uint64_t until_ns, who;            /* who: the owner, in holdings */
    size_t bytes;
    uint32_t refs; /* the store's own is one of them */
    /* the messages, their calls, then all texts */
};

struct response_store {
    pthread_mutex_t lock, edits;
    size_t max_bytes, bytes;
    uint64_t ttl_ns;
    uint32_t n;
    struct kept *newest, *oldest;
    struct holdings holdings; /* bytes of each owner */
    struct kept *buckets[N_BUCKETS];
    struct response_run *runs;
    char *path; /* NULL: no file */
    pthread_t thread;
    pthread_cond_t changed;
    bool has_thread, dirty, stop;
};

int response_store_create(struct response_store **out, size_t max_bytes, uint32_t ttl_ms,
                          struct err *e)
{
    struct response_store *s = mem_zalloc(sizeof(*s));
    *out = s;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the store of responses");
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->edits, NULL);
    cond_init(&s->changed);
    s->max_bytes = max_bytes;
    s->ttl_ns = (uint64_t)ttl_ms * 1000000u;
    return 0;
}

static struct kept **bucket_of(struct response_store *s, const char *id)
{
    return &s->buckets[hash_bytes(id, strlen(id), 0) & (N_BUCKETS - 1)];
}

static void unref(struct kept *k)
{
    if (--k->refs == 0)
        mem_free(k);
}

/* Takes k out of the list and its bucket. */
static void forget(struct response_store *s, struct kept *k)
{
    struct kept **at = bucket_of(s, k->entry.id);
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    *(k->newer ? &k->newer->older : &s->newest) = k->older;
    *(k->older ? &k->older->newer : &s->oldest) = k->newer;
    s->bytes -= k->bytes;
    holdings_sub(&s->holdings, k->who, k->bytes);
    s->n--;
    s->dirty = true;
    unref(k);
}

/* An older one may stay for longer: it came from a file of a server that keeps them so. */
static void forget_old(struct response_store *s, uint64_t now_ns)
{
    while (s->oldest && s->oldest->until_ns <= now_ns)
        forget(s, s->oldest);
}

/* The oldest of the client that holds most go until all others fit. */
static void make_room(struct response_store *s, uint64_t who)
{
    while (s->bytes > s->max_bytes) {
        const uint64_t most = holdings_most(&s->holdings, who);
        struct kept *k = s->oldest;
        while (k->who != most)
            k = k->newer;
        forget(s, k);
    }
}

void response_store_destroy(struct response_store *s)
{
    if (!s)
        return;
    if (s->has_thread) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_cond_signal(&s->changed);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
    }
    while (s->oldest)
        forget(s, s->oldest);
    holdings_fini(&s->holdings);
    mem_free(s->path);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->edits);
    mem_free(s);
}

static size_t bytes_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* Copies n bytes and a NUL to *at, which moves after them; NULL stays NULL. */
static const char *put_text(char **at, const char *text, size_t n)
{
    char *copy = *at;
    if (!text)
        return NULL;
    memcpy(copy, text, n);
    *at += n + 1;
    return copy;
}

static const char *put_str(char **at, const char *text)
{
    return put_text(at, text, text ? strlen(text) : 0);
}

/* Of the block that holds a copy of the entry; *n_calls: of all messages. */
static size_t block_bytes(const struct response_entry *e, size_t *n_calls)
{
    size_t n =
        sizeof(struct kept) + e->n_messages * sizeof(struct chat_message) + e->json_bytes + 1;
    *n_calls = 0;
    for (uint32_t i = 0; i < e->n_messages; i++) {
        const struct chat_message *m = &e->messages[i];
        n += m->content_bytes + 1 + bytes_of(m->name) + bytes_of(m->call_id);
        *n_calls += m->n_calls;
        for (uint32_t k = 0; k < m->n_calls; k++)
            n += bytes_of(m->calls[k].id) + bytes_of(m->calls[k].name) +
                 m->calls[k].arguments_bytes + 1;
    }
    return n + *n_calls * sizeof(struct chat_call);
}

/* A copy of the entry in one block; NULL: out of memory, or it is too large. */
static struct kept *copy_entry(const struct response_entry *e, size_t max_bytes)
{
    size_t n_calls, n = block_bytes(e, &n_calls);
    struct kept *k = n <= max_bytes ? mem_zalloc(n) : NULL;
    if (!k)
        return NULL;
    struct chat_message *messages = (struct chat_message *)(void *)(k + 1);
    struct chat_call *calls = (struct chat_call *)(void *)(messages + e->n_messages);
    char *p = (char *)(calls + n_calls);
    k->entry = *e;
    k->entry.messages = messages;
    k->entry.json = put_text(&p, e->json, e->json_bytes);
    for (uint32_t i = 0; i < e->n_messages; i++) {
        const struct chat_message *m = &e->messages[i];
        messages[i] = (struct chat_message){.role = m->role,
                                            .name = put_str(&p, m->name),
                                            .content = put_text(&p, m->content, m->content_bytes),
                                            .content_bytes = m->content_bytes,
                                            .calls = m->n_calls > 0 ? calls : NULL,
                                            .n_calls = m->n_calls,
                                            .call_id = put_str(&p, m->call_id)};
        for (uint32_t c = 0; c < m->n_calls; c++, calls++)
            *calls = (struct chat_call){
                .id = put_str(&p, m->calls[c].id),
                .name = put_str(&p, m->calls[c].name),
                .arguments = put_text(&p, m->calls[c].arguments, m->calls[c].arguments_bytes),
                .arguments_bytes = m->calls[c].arguments_bytes};
    }
    k->bytes = n;
    k->refs = 1;
    return k;
}

/* With the lock. */
static struct kept *find(struct response_store *s, const char *id, const char *owner,
                         uint64_t now_ns)
{
    forget_old(s, now_ns);
    struct kept *k = *bucket_of(s, id);
    while (k && (strcmp(k->entry.id, id) != 0 || strcmp(k->entry.owner, owner) != 0))
        k = k->next;
    return k && k->until_ns > now_ns ? k : NULL;
}

static bool put_until(struct response_store *s, const struct response_entry *e, uint64_t now_ns,
                      uint64_t until_ns)
{
    struct kept *k = copy_entry(e, s->max_bytes), *old;
    if (!k)
        return false;
    k->until_ns = until_ns;
    k->who = holdings_who(e->owner);
    k->refs++; /* until it is known whether it stays */
    pthread_mutex_lock(&s->lock);
    if ((old = find(s, e->id, e->owner, now_ns)))
        forget(s, old);
    if (!holdings_add(&s->holdings, k->who, k->bytes)) {
        pthread_mutex_unlock(&s->lock);
        mem_free(k);
        return false;
    }
    struct kept **at = bucket_of(s, e->id);
    k->next = *at;
    *at = k;
    k->older = s->newest;
    *(s->newest ? &s->newest->newer : &s->oldest) = k;
    s->newest = k;
    s->bytes += k->bytes;
    s->n++;
    s->dirty = true;
    make_room(s, k->who);
    const bool stays = k->refs > 1;
    unref(k);
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return stays;
}

bool response_store_put(struct response_store *s, const struct response_entry *e, uint64_t now_ns)
{
    return put_until(s, e, now_ns, now_ns + s->ttl_ns);
}

const struct response_entry *response_store_get(struct response_store *s, const char *id,
                                                const char *owner, uint64_t now_ns)
{
    pthread_mutex_lock(&s->lock);
    struct kept *k = find(s, id, owner, now_ns);
    if (k)
        k->refs++;
    pthread_mutex_unlock(&s->lock);
    return k ? &k->entry : NULL;
}

void response_store_unref(struct response_store *s, const struct response_entry *e)
{
    pthread_mutex_lock(&s->lock);
    unref((struct kept *)(uintptr_t)e); /* its first member */
    pthread_mutex_unlock(&s->lock);
}

bool response_store_delete(struct response_store *s, const char *id, const char *owner,
                           uint64_t now_ns)
{
    pthread_mutex_lock(&s->lock);
    struct kept *k = find(s, id, owner, now_ns);
    if (k)
        forget(s, k);
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return k != NULL;
}

void response_store_lock_edits(struct response_store *s)
{
    pthread_mutex_lock(&s->edits);
}

void response_store_unlock_edits(struct response_store *s)
{
    pthread_mutex_unlock(&s->edits);
}

/* ---- runs ---- */

void response_store_add_run(struct response_store *s, struct response_run *r)
{
    pthread_mutex_lock(&s->lock);
    r->next = s->runs;
    s->runs = r;
    pthread_mutex_unlock(&s->lock);
}

bool response_store_remove_run(struct response_store *s, struct response_run *r)
{
    pthread_mutex_lock(&s->lock);
    struct response_run **at = &s->runs;
    while (*at && *at != r)
        at = &(*at)->next;
    if (*at)
        *at = r->next;
    const bool posted = r->posted;
    pthread_mutex_unlock(&s->lock);
    return posted;
}

bool response_store_cancel(struct response_store *s, const char *id, const char *owner)
{
    pthread_mutex_lock(&s->lock);
    struct response_run *r = s->runs;
    while (r && (strcmp(r->id, id) != 0 || strcmp(r->owner, owner) != 0))
        r = r->next;
    if (r && !r->posted) {
        r->posted = true;
        executor_post(r->executor, &r->cancel);
    }
    pthread_mutex_unlock(&s->lock);
    return r != NULL;
}

/* ---- the file ---- */

/* With the lock: all lines, the oldest first. */
static void write_lines(struct response_store *s, struct buf *out)
{
    const uint64_t now_ns = clock_ns();
    forget_old(s, now_ns);
    for (const struct kept *k = s->oldest; k; k = k->newer)
        if (!k->entry.running && k->until_ns > now_ns)
            response_file_put(out, &k->entry,
                              (int64_t)time(NULL) +
                                  (int64_t)((k->until_ns - now_ns) / 1000000000u));
    s->dirty = false;
}

static void *write_file(void *arg)
{
    struct response_store *s = arg;
    struct timespec until;
    bool stop = false;
    while (!stop) {
        struct err e = {0};
        struct buf lines;
        buf_init(&lines, MAX_FILE_BYTES);
        pthread_mutex_lock(&s->lock);
        while (!s->dirty && !s->stop)
            pthread_cond_wait(&s->changed, &s->lock);
        stop = s->stop;
        const bool dirty = s->dirty;
        if (dirty)
            write_lines(s, &lines);
        pthread_mutex_unlock(&s->lock);
        const bool failed =
            dirty && (lines.rc < 0 || file_replace(s->path, buf_str(&lines), lines.len, &e) < 0);
        if (failed)
            log_warn("responses", "cannot write %s: %s", s->path,
                     lines.rc < 0 ? err_text(lines.rc) : e.msg);
        buf_fini(&lines);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += APART_S;
        pthread_mutex_lock(&s->lock);
        s->dirty |= failed; /* the disk may have room by the next round */
        while (!s->stop && pthread_cond_timedwait(&s->changed, &s->lock, &until) == 0)
            ; /* later changes are written in the next round */
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

static void read_lines(struct response_store *s, const struct buf *all, uint64_t now_ns)
{
    const int64_t now_s = (int64_t)time(NULL);
    uint32_t n_bad = 0;
    for (size_t at = 0, end; at < all->len; at = end + 1) {
        const char *line = all->data + at, *nl = memchr(line, '\n', all->len - at);
        struct response_entry entry;
        struct arena arena;
        int64_t until_s;
        end = nl ? (size_t)(nl - all->data) : all->len;
        arena_init(&arena, s->max_bytes);
        if (!response_file_read(&entry, &until_s, line, end - at, &arena))
            n_bad++;
        else if (until_s > now_s)
            (void)put_until(s, &entry, now_ns, now_ns + (uint64_t)(until_s - now_s) * 1000000000u);
        arena_fini(&arena);
    }
    if (n_bad > 0)
        log_warn("responses", "%u lines of %s are damaged and left out", n_bad, s->path);
}

int response_store_use_file(struct response_store *s, const char *path, uint64_t now_ns,
                            struct err *e)
{
    struct buf all;
    int rc = 0;
    s->path = mem_strdup(path);
    if (!s->path)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the store of responses");
    buf_init(&all, MAX_FILE_BYTES);
    if (access(path, F_OK) == 0)
        rc = file_read(path, &all, e);
    if (rc == 0)
        read_lines(s, &all, now_ns);
    buf_fini(&all);
    s->dirty = false;
    if (rc == 0)
        rc = thread_create(&s->thread, "responses", write_file, s, e);
    s->has_thread = rc == 0;
    return rc;
}

void response_store_count(struct response_store *s, uint32_t *n, size_t *bytes)
{
    pthread_mutex_lock(&s->lock);
    *n = s->n;
    *bytes = s->bytes;
    pthread_mutex_unlock(&s->lock);
}
