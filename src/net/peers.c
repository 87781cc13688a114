/* peers.c - see peers.h. */
#include "net/peers.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include "base/hash.h"
#include "base/mem.h"

#define N_BUCKETS 1024u
#define RESET_WINDOW_NS 10000000000u
#define MAX_REMEMBERED 4096u /* peers without connections whose resets still count */

struct peer_key {
    uint8_t family; /* 0: unix */
    uint8_t address[16];
};

struct peer {
    struct peer *next;
    struct peers *table;
    struct peer_key key;
    uint32_t refs; /* guarded by the table's lock */
    _Atomic size_t bytes;
    _Atomic uint64_t resets_since;
    _Atomic uint32_t n_resets;
};

struct peers {
    pthread_mutex_t lock; /* guards the buckets and the references */
    struct peer *buckets[N_BUCKETS];
    uint32_t n_remembered;
    uint64_t seed;
    _Atomic size_t max_bytes, max_peer_bytes, bytes;
    _Atomic uint32_t max_resets;
    _Atomic uint64_t last_reset_ns; /* a clock good enough to forget old resets */
    _Atomic uint64_t refused_all, refused_peer, resets, resets_over, displaced;
};

int peers_create(struct peers **out, const struct peers_limits *limits, struct err *e)
{
    struct peers *t = mem_zalloc(sizeof(*t));
    *out = t;
    if (!t)
        return err_set(e, SHOAL_ENOMEM, "table of clients");
    pthread_mutex_init(&t->lock, NULL);
    t->seed = (uint64_t)(uintptr_t)t;
    peers_set_limits(t, limits);
    return 0;
}

void peers_destroy(struct peers *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < N_BUCKETS; i++)
        for (struct peer *p = t->buckets[i], *next; p; p = next) {
            next = p->next;
            mem_free(p);
        }
    pthread_mutex_destroy(&t->lock);
    mem_free(t);
}

void peers_set_limits(struct peers *t, const struct peers_limits *limits)
{
    atomic_store(&t->max_bytes, limits->max_bytes ? limits->max_bytes : SIZE_MAX);
    atomic_store(&t->max_peer_bytes, limits->max_peer_bytes ? limits->max_peer_bytes : SIZE_MAX);
    atomic_store(&t->max_resets, limits->max_resets ? limits->max_resets : UINT32_MAX);
}

void peers_stats(struct peers *t, struct peers_stats *out)
{
    pthread_mutex_lock(&t->lock);
    uint32_t remembered = t->n_remembered;
    pthread_mutex_unlock(&t->lock);
    *out = (struct peers_stats){.bytes = atomic_load(&t->bytes),
                                .refused_all = atomic_load(&t->refused_all),
                                .refused_peer = atomic_load(&t->refused_peer),
                                .resets = atomic_load(&t->resets),
                                .resets_over = atomic_load(&t->resets_over),
                                .displaced = atomic_load(&t->displaced),
                                .remembered = remembered};
}

/* ---- the table ---- */

static struct peer_key key_of(const struct sockaddr_storage *ss)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)ss;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)ss;
    struct peer_key k = {.family = 0};
    if (ss->ss_family == AF_INET) {
        k.family = 4;
        memcpy(k.address, &four->sin_addr, 4);
    } else if (ss->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        k.family = 4;
        memcpy(k.address, six->sin6_addr.s6_addr + 12, 4);
    } else if (ss->ss_family == AF_INET6) {
        k.family = 6;
        memcpy(k.address, &six->sin6_addr, 8); /* whoever has a /64 has all of its addresses */
    }
    return k;
}

/* A peer without connections stays while its resets count: reconnecting does not clear them. */
static bool is_over(const struct peer *p)
{
    uint64_t now = atomic_load(&p->table->last_reset_ns);
    return p->refs == 0 && (atomic_load(&p->n_resets) == 0 ||
                            now - atomic_load(&p->resets_since) > RESET_WINDOW_NS);
}

struct peer *peers_join(struct peers *t, const struct sockaddr_storage *address)
{
    struct peer_key key = key_of(address);
    struct peer **at = &t->buckets[hash_bytes(&key, sizeof(key), t->seed) % N_BUCKETS];
    struct peer *found = NULL;
    pthread_mutex_lock(&t->lock);
    while (*at) {
        struct peer *p = *at;
        if (memcmp(&p->key, &key, sizeof(key)) == 0) {
            found = p;
        } else if (is_over(p)) {
            *at = p->next;
            t->n_remembered--;
            mem_free(p);
            continue;
        }
        at = &p->next;
    }
    if (!found && (found = mem_zalloc(sizeof(*found)))) {
        found->table = t;
        found->key = key;
        *at = found;
    } else if (found && found->refs == 0) {
        t->n_remembered--;
    }
    if (found)
        found->refs++;
    pthread_mutex_unlock(&t->lock);
    return found;
}

struct peer *peers_ref(struct peer *p)
{
    if (!p)
        return NULL;
    pthread_mutex_lock(&p->table->lock);
    p->refs++;
    pthread_mutex_unlock(&p->table->lock);
    return p;
}

void peers_leave(struct peer *p)
{
    if (!p)
        return;
    struct peers *t = p->table;
    pthread_mutex_lock(&t->lock);
    if (--p->refs == 0) {
        t->n_remembered++;
        if (is_over(p) || t->n_remembered > MAX_REMEMBERED) {
            struct peer **at =
                &t->buckets[hash_bytes(&p->key, sizeof(p->key), t->seed) % N_BUCKETS];
            while (*at != p)
                at = &(*at)->next;
            *at = p->next;
            t->n_remembered--;
            mem_free(p);
        }
    }
    pthread_mutex_unlock(&t->lock);
}

uint32_t peers_uses(struct peer *p)
{
    pthread_mutex_lock(&p->table->lock);
    uint32_t n = p->refs;
    pthread_mutex_unlock(&p->table->lock);
    return n;
}

/* ---- bytes ---- */

/* The order of the two counters does not matter: each limit is checked against its own sum, which
 * no other thread can have seen as free.  Hence relaxed. */
static size_t add(_Atomic size_t *sum, size_t n)
{
    return atomic_fetch_add_explicit(sum, n, memory_order_relaxed) + n;
}

static size_t peer_limit(const struct peer *p)
{
    return p->key.family == 0
               ? SIZE_MAX
               : atomic_load_explicit(&p->table->max_peer_bytes, memory_order_relaxed);
}

enum peers_verdict peers_take(struct peer *p, size_t n)
{
    struct peers *t = p->table;
    bool own = add(&p->bytes, n) <= peer_limit(p);
    bool all = add(&t->bytes, n) <= atomic_load_explicit(&t->max_bytes, memory_order_relaxed);
    if (own && all)
        return PEERS_OK;
    peers_give(p, n);
    atomic_fetch_add_explicit(own ? &t->refused_all : &t->refused_peer, 1, memory_order_relaxed);
    return own ? PEERS_ALL_FULL : PEERS_PEER_FULL;
}

void peers_give(struct peer *p, size_t n)
{
    atomic_fetch_sub_explicit(&p->bytes, n, memory_order_relaxed);
    atomic_fetch_sub_explicit(&p->table->bytes, n, memory_order_relaxed);
}

static bool fits(size_t used, size_t n, size_t max)
{
    return used <= max && n <= max - used;
}

bool peers_has_room(const struct peer *p, size_t n)
{
    const struct peers *t = p->table;
    return fits(atomic_load_explicit(&p->bytes, memory_order_relaxed), n, peer_limit(p)) &&
           fits(atomic_load_explicit(&t->bytes, memory_order_relaxed), n,
                atomic_load_explicit(&t->max_bytes, memory_order_relaxed));
}

/* ---- resets ---- */

bool peers_reset(struct peer *p, uint64_t now_ns)
{
    struct peers *t = p->table;
    atomic_store_explicit(&t->last_reset_ns, now_ns, memory_order_relaxed);
    /* Two loops that begin a window at the same time may lose one count. */
    if (now_ns - atomic_load_explicit(&p->resets_since, memory_order_relaxed) > RESET_WINDOW_NS) {
        atomic_store_explicit(&p->resets_since, now_ns, memory_order_relaxed);
        atomic_store_explicit(&p->n_resets, 0, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&t->resets, 1, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&p->n_resets, 1, memory_order_relaxed) <
        atomic_load_explicit(&t->max_resets, memory_order_relaxed))
        return true;
    atomic_fetch_add_explicit(&t->resets_over, 1, memory_order_relaxed);
    return false;
}

void peers_displaced(struct peers *t)
{
    atomic_fetch_add_explicit(&t->displaced, 1, memory_order_relaxed);
}
