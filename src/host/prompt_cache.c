/* prompt_cache.c - see prompt_cache.h. */
#include "host/prompt_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"

#define N_BUCKETS 4096u /* keys are hashes: their first bytes spread well */

struct entry {
    struct prompt_entry pub; /* first */
    struct entry *chain;     /* in its bucket */
    struct entry *prev, *next;
    struct prompt_key key;
    uint64_t put_ns;
    size_t cost;
    _Atomic uint32_t refs;
};

struct prompt_cache {
    pthread_mutex_t lock;
    size_t max_bytes;
    uint64_t ttl_ns;
    struct prompt_cache_stats stats;
    struct entry *newest, *oldest;
    struct entry *buckets[N_BUCKETS];
};

int prompt_cache_create(struct prompt_cache **out, size_t max_bytes, uint64_t ttl_ns, struct err *e)
{
    struct prompt_cache *c = mem_zalloc(sizeof(*c));
    *out = c;
    if (!c)
        return err_set(e, SHOAL_ENOMEM, "prompt cache");
    pthread_mutex_init(&c->lock, NULL);
    c->max_bytes = max_bytes;
    c->ttl_ns = ttl_ns;
    return 0;
}

void prompt_cache_unref(const struct prompt_entry *pub)
{
    struct entry *e = (struct entry *)(uintptr_t)pub;
    /* acq_rel: the thread that frees sees the writes of the others */
    if (e && atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) == 1)
        mem_free(e);
}

static struct entry **bucket(struct prompt_cache *c, const struct prompt_key *key)
{
    uint32_t h;
    memcpy(&h, key->question, sizeof(h)); /* the model is not hashed: it may be renamed */
    return &c->buckets[h % N_BUCKETS];
}

static void unlink_entry(struct prompt_cache *c, struct entry *e)
{
    if (e->prev)
        e->prev->next = e->next;
    else
        c->newest = e->next;
    if (e->next)
        e->next->prev = e->prev;
    else
        c->oldest = e->prev;
}

static void link_newest(struct prompt_cache *c, struct entry *e)
{
    e->prev = NULL;
    e->next = c->newest;
    if (c->newest)
        c->newest->prev = e;
    else
        c->oldest = e;
    c->newest = e;
}

static void take_out(struct prompt_cache *c, struct entry *e)
{
    struct entry **at = bucket(c, &e->key);
    while (*at != e)
        at = &(*at)->chain;
    *at = e->chain;
    unlink_entry(c, e);
    c->stats.bytes -= e->cost;
    c->stats.entries--;
    prompt_cache_unref(&e->pub);
}

void prompt_cache_destroy(struct prompt_cache *c)
{
    if (!c)
        return;
    while (c->newest)
        take_out(c, c->newest);
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

static struct entry *find(struct prompt_cache *c, const struct prompt_key *key)
{
    struct entry *e = *bucket(c, key);
    while (e && memcmp(&e->key, key, sizeof(*key)) != 0)
        e = e->chain;
    return e;
}

const struct prompt_entry *prompt_cache_get(struct prompt_cache *c, const struct prompt_key *key,
                                            uint64_t now_ns)
{
    pthread_mutex_lock(&c->lock);
    struct entry *e = find(c, key);
    if (e && c->ttl_ns && now_ns - e->put_ns > c->ttl_ns) {
        take_out(c, e);
        c->stats.expired++;
        e = NULL;
    }
    if (e) {
        unlink_entry(c, e);
        link_newest(c, e);
        atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
        c->stats.hits++;
    } else {
        c->stats.misses++;
    }
    pthread_mutex_unlock(&c->lock);
    return e ? &e->pub : NULL;
}

void prompt_cache_put(struct prompt_cache *c, const struct prompt_key *key, const char *data,
                      size_t n, uint64_t now_ns)
{
    size_t cost = sizeof(struct entry) + n;
    if (cost > c->max_bytes / 4) /* one answer is not worth most of the cache */
        return;
    struct entry *e = mem_alloc(cost);
    if (!e)
        return;
    char *copy = (char *)(e + 1);
    *e = (struct entry){.pub = {copy, n}, .key = *key, .put_ns = now_ns, .cost = cost};
    if (n > 0)
        memcpy(copy, data, n);
    atomic_init(&e->refs, 1);
    pthread_mutex_lock(&c->lock);
    struct entry *old = find(c, key);
    if (old)
        take_out(c, old);
    while (c->oldest && c->stats.bytes + cost > c->max_bytes) {
        take_out(c, c->oldest);
        c->stats.evicted++;
    }
    struct entry **at = bucket(c, key);
    e->chain = *at;
    *at = e;
    link_newest(c, e);
    c->stats.bytes += cost;
    c->stats.entries++;
    pthread_mutex_unlock(&c->lock);
}

void prompt_cache_purge(struct prompt_cache *c, const uint8_t model[SHA256_BYTES])
{
    pthread_mutex_lock(&c->lock);
    for (struct entry *e = c->newest, *next; e; e = next) {
        next = e->next;
        if (memcmp(e->key.model, model, SHA256_BYTES) == 0)
            take_out(c, e);
    }
    pthread_mutex_unlock(&c->lock);
}

void prompt_cache_rename(struct prompt_cache *c, const uint8_t from[SHA256_BYTES],
                         const uint8_t to[SHA256_BYTES])
{
    pthread_mutex_lock(&c->lock);
    for (struct entry *e = c->newest, *next; e; e = next) {
        struct prompt_key key = e->key;
        next = e->next;
        if (memcmp(key.model, from, SHA256_BYTES) != 0)
            continue;
        memcpy(key.model, to, SHA256_BYTES);
        if (find(c, &key)) /* already stored under the new name */
            take_out(c, e);
        else
            e->key = key;
    }
    pthread_mutex_unlock(&c->lock);
}

void prompt_cache_stats(struct prompt_cache *c, struct prompt_cache_stats *out)
{
    pthread_mutex_lock(&c->lock);
    *out = c->stats;
    pthread_mutex_unlock(&c->lock);
}
