/* admission.c - see admission.h. */
#include "host/admission.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/sha256.h"

struct admission {
    pthread_mutex_t lock;
    struct admission_client *list;
    uint32_t n_active, max_in_flight, in_flight; /* over all */
};

/* Of a key.  false: no memory. */
static bool hash_key(uint8_t out[SHA256_BYTES], const char *key, size_t n)
{
    struct sha256 s;
    sha256_begin(&s);
    sha256_add(&s, key, n);
    return sha256_end(&s, out);
}

bool admission_hash(const char *key, size_t n, char out[65])
{
    uint8_t sum[SHA256_BYTES];
    bool ok = hash_key(sum, key, n);
    if (ok)
        sha256_hex(out, sum);
    return ok;
}

/* The client of a key.  Others read name, admin and priority without the lock, so a client is
 * reused only if these are the same; otherwise a new one, which stays revoked (nobody finds it) for
 * now. NULL: no memory. */
static struct admission_client *client_of(struct admission *a, const struct admission_key *k,
                                          const uint8_t sum[SHA256_BYTES])
{
    for (struct admission_client *c = a->list; c; c = c->next)
        if (memcmp(c->sha256, sum, SHA256_BYTES) == 0 && c->admin == k->admin &&
            c->priority == k->priority && c->weight == (float)k->weight &&
            strncmp(c->name, k->name, sizeof(c->name) - 1) == 0)
            return c;
    struct admission_client *c = mem_zalloc(sizeof(*c));
    if (!c)
        return NULL;
    memcpy(c->sha256, sum, SHA256_BYTES);
    snprintf(c->name, sizeof(c->name), "%s", k->name);
    c->admin = k->admin;
    c->priority = k->priority;
    c->weight = (float)k->weight;
    c->tokens = k->burst;
    c->filled_ns = clock_ns();
    c->revoked = true;
    c->next = a->list;
    a->list = c;
    return c;
}

int admission_reload(struct admission *a, const struct admission_opts *o, struct err *e)
{
    struct admission_client **found = mem_zalloc_n((size_t)o->n_keys + 1, sizeof(*found));
    uint8_t sum[SHA256_BYTES];
    uint32_t n = 0;
    int rc = found ? 0 : err_set(e, SHOAL_ENOMEM, "keys");
    for (uint32_t i = 0; i < o->n_keys && rc == 0; i++)
        if (!sha256_read_hex(sum, o->keys[i].sha256))
            rc = err_set(e, SHOAL_EINVAL, "key %s: sha256 is not 64 hex digits", o->keys[i].name);
    if (rc < 0) {
        mem_free(found);
        return rc;
    }
    pthread_mutex_lock(&a->lock);
    while (n < o->n_keys && sha256_read_hex(sum, o->keys[n].sha256) &&
           (found[n] = client_of(a, &o->keys[n], sum)))
        n++;
    if (n == o->n_keys) { /* all or nothing */
        for (struct admission_client *c = a->list; c; c = c->next)
            c->revoked = true;
        for (uint32_t i = 0; i < n; i++) {
            found[i]->rate = o->keys[i].rate;
            found[i]->burst = o->keys[i].burst;
            found[i]->max_in_flight = o->keys[i].max_in_flight;
            found[i]->revoked = false;
        }
        a->n_active = n;
        a->max_in_flight = o->max_in_flight;
    }
    pthread_mutex_unlock(&a->lock);
    mem_free(found);
    return n == o->n_keys ? 0 : err_set(e, SHOAL_ENOMEM, "keys");
}

int admission_create(struct admission **out, const struct admission_opts *o, struct err *e)
{
    struct admission *a = mem_zalloc(sizeof(*a));
    *out = NULL;
    if (!a)
        return err_set(e, SHOAL_ENOMEM, "keys");
    pthread_mutex_init(&a->lock, NULL);
    int rc = admission_reload(a, o, e);
    if (rc < 0) {
        admission_destroy(a);
        return rc;
    }
    *out = a;
    return 0;
}

void admission_destroy(struct admission *a)
{
    if (!a)
        return;
    while (a->list) {
        struct admission_client *c = a->list;
        a->list = c->next;
        mem_free(c);
    }
    pthread_mutex_destroy(&a->lock);
    mem_free(a);
}

bool admission_needed(struct admission *a)
{
    pthread_mutex_lock(&a->lock);
    bool needed = a->n_active > 0;
    pthread_mutex_unlock(&a->lock);
    return needed;
}

struct admission_client *admission_find(struct admission *a, const char *key, size_t n)
{
    uint8_t sum[SHA256_BYTES];
    struct admission_client *found = NULL;
    if (!hash_key(sum, key, n))
        return NULL;
    pthread_mutex_lock(&a->lock);
    for (struct admission_client *c = a->list; c; c = c->next)
        if (!c->revoked && CRYPTO_memcmp(c->sha256, sum, SHA256_BYTES) == 0)
            found = c;
    pthread_mutex_unlock(&a->lock);
    return found;
}

/* Under the lock: whether the limit of all clients has room for c.  One key gets at most seven
 * eighths of the places, so that others always find one. */
static bool has_place(const struct admission *a, const struct admission_client *c)
{
    if (a->max_in_flight == 0)
        return true;
    return a->in_flight < a->max_in_flight &&
           (!c || c->in_flight < UINT64_C(7) * (a->max_in_flight - a->in_flight));
}

enum admission_verdict admission_enter(struct admission *a, struct admission_client *c,
                                       uint32_t *retry_ms)
{
    enum admission_verdict result = ADMISSION_OK;
    *retry_ms = 0;
    pthread_mutex_lock(&a->lock);
    if (!has_place(a, c)) {
        result = ADMISSION_FULL;
        *retry_ms = 1000;
    } else if (c && c->max_in_flight && c->in_flight >= c->max_in_flight) {
        result = ADMISSION_FULL;
        *retry_ms = 1000;
    } else if (c && c->rate > 0) { /* token bucket */
        uint64_t now = clock_ns();
        c->tokens += (double)(now - c->filled_ns) / 1e9 * c->rate;
        c->filled_ns = now;
        if (c->tokens > c->burst)
            c->tokens = c->burst;
        if (c->tokens < 1.0) {
            result = ADMISSION_RATE;
            *retry_ms = (uint32_t)((1.0 - c->tokens) / c->rate * 1000.0) + 1;
        } else {
            c->tokens -= 1.0;
        }
    }
    if (result == ADMISSION_OK) {
        a->in_flight++;
        if (c)
            c->in_flight++;
    }
    pthread_mutex_unlock(&a->lock);
    return result;
}

/* max 0: no limit. */
static uint32_t places_left(uint32_t max, uint32_t used)
{
    return max == 0 ? UINT32_MAX : max > used ? max - used : 0;
}

enum admission_verdict admission_enter_more(struct admission *a, struct admission_client *c,
                                            uint32_t n, uint32_t *most)
{
    pthread_mutex_lock(&a->lock);
    uint32_t all = places_left(a->max_in_flight, 0), left;
    uint32_t own = c ? places_left(c->max_in_flight, 0) : UINT32_MAX;
    *most = own < all ? own : all;
    all = places_left(a->max_in_flight, a->in_flight);
    own = c ? places_left(c->max_in_flight, c->in_flight) : UINT32_MAX;
    left = own < all ? own : all;
    if (n <= left) {
        a->in_flight += n;
        if (c)
            c->in_flight += n;
    }
    pthread_mutex_unlock(&a->lock);
    return n <= left ? ADMISSION_OK : ADMISSION_FULL;
}

void admission_leave(struct admission *a, struct admission_client *c, uint32_t n_places)
{
    pthread_mutex_lock(&a->lock);
    a->in_flight -= n_places;
    if (c)
        c->in_flight -= n_places;
    pthread_mutex_unlock(&a->lock);
}
