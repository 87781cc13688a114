/* admission.c - see admission.h. */
#include "host/admission.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/counter.h"
#include "host/quota.h"
#include "host/sha256.h"

struct admission {
    pthread_mutex_t lock;
    struct admission_client *list;
    uint32_t n_active, max_in_flight, in_flight; /* over all */
    struct quota *quota;                         /* NULL: none */
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

/* The client of a key. Others read name, admin and priority without the lock, so a client is reused
 * only if these are the same; otherwise a new one is created, which is not yet findable. NULL: no
 * memory. */
static struct admission_client *client_of(struct admission *a, const struct admission_key *k,
                                          const uint8_t sum[SHA256_BYTES],
                                          struct quota_account *account)
{
    for (struct admission_client *c = a->list; c; c = c->next)
        if (memcmp(c->sha256, sum, SHA256_BYTES) == 0 && c->admin == k->admin &&
            c->priority == k->priority && c->weight == (float)k->weight &&
            strcmp(c->name, k->name) == 0)
            return c;
    struct admission_client *c = mem_zalloc(sizeof(*c));
    if (!c)
        return NULL;
    memcpy(c->sha256, sum, SHA256_BYTES);
    snprintf(c->name, sizeof(c->name), "%s", k->name);
    c->admin = k->admin;
    c->priority = k->priority;
    c->weight = (float)k->weight;
    c->account = account; /* the account of its name */
    c->tokens = k->burst;
    c->filled_ns = clock_ns();
    c->revoked = true;
    c->next = a->list;
    a->list = c;
    return c;
}

bool admission_name_ok(const char *name)
{
    size_t n = 0;
    while ((unsigned char)name[n] >= ' ' && name[n] != 0x7f)
        n++;
    return n > 0 && n < ADMISSION_NAME_BYTES && !name[n];
}

/* Keys of one name are one client, so they have one limit. */
static int check_names(const struct admission_opts *o, struct err *e)
{
    for (uint32_t i = 0; i < o->n_keys; i++)
        if (!admission_name_ok(o->keys[i].name))
            return err_set(e, SHOAL_EINVAL,
                           "the name of a key has 1 to %zu bytes, without control characters",
                           ADMISSION_NAME_BYTES - 1);
    for (uint32_t i = 0; i < o->n_keys; i++)
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(o->keys[i].name, o->keys[k].name) == 0 &&
                (o->keys[i].tokens_per_day != o->keys[k].tokens_per_day ||
                 o->keys[i].weight != o->keys[k].weight))
                return err_set(e, SHOAL_EINVAL,
                               "keys named %s have different 'tokens_per_day' or 'weight': keys of "
                               "one name are one client",
                               o->keys[i].name);
    return 0;
}

/* The accounts of all keys; without quotas none. */
static int open_accounts(struct quota *q, const struct admission_opts *o,
                         struct quota_account **out, struct err *e)
{
    int rc = 0;
    if (!q)
        return 0;
    quota_unlist_all(q);
    for (uint32_t i = 0; i < o->n_keys && rc == 0; i++)
        rc =
            quota_open_account(q, o->keys[i].name, (uint64_t)o->keys[i].tokens_per_day, &out[i], e);
    return rc;
}

/* All or nothing.  False: no memory. */
static bool replace_keys(struct admission *a, const struct admission_opts *o,
                         struct quota_account *const *accounts, struct admission_client **found)
{
    uint8_t sum[SHA256_BYTES];
    uint32_t n = 0;
    pthread_mutex_lock(&a->lock);
    while (n < o->n_keys && sha256_read_hex(sum, o->keys[n].sha256) &&
           (found[n] = client_of(a, &o->keys[n], sum, accounts[n])))
        n++;
    if (n == o->n_keys) {
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
    return n == o->n_keys;
}

int admission_reload(struct admission *a, const struct admission_opts *o, struct err *e)
{
    struct admission_client **found = mem_zalloc_n((size_t)o->n_keys + 1, sizeof(*found));
    struct quota_account **accounts = mem_zalloc_n((size_t)o->n_keys + 1, sizeof(*accounts));
    uint8_t sum[SHA256_BYTES];
    int rc = found && accounts ? check_names(o, e) : err_set(e, SHOAL_ENOMEM, "keys");
    for (uint32_t i = 0; i < o->n_keys && rc == 0; i++)
        if (!sha256_read_hex(sum, o->keys[i].sha256))
            rc = err_set(e, SHOAL_EINVAL, "key %s: sha256 is not 64 hex digits", o->keys[i].name);
    if (rc == 0)
        rc = open_accounts(a->quota, o, accounts, e);
    if (rc == 0 && !replace_keys(a, o, accounts, found))
        rc = err_set(e, SHOAL_ENOMEM, "keys");
    mem_free(found);
    mem_free(accounts);
    return rc;
}

int admission_create(struct admission **out, const struct admission_opts *o, struct err *e)
{
    struct admission *a = mem_zalloc(sizeof(*a));
    *out = NULL;
    if (!a)
        return err_set(e, SHOAL_ENOMEM, "keys");
    pthread_mutex_init(&a->lock, NULL);
    a->quota = o->quota;
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

struct admission_client *admission_find_name(struct admission *a, const char *name)
{
    struct admission_client *found = NULL;
    pthread_mutex_lock(&a->lock);
    for (struct admission_client *c = a->list; c; c = c->next)
        if (!c->revoked && strcmp(c->name, name) == 0)
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

/* Under the lock: takes one request of the client's rate. False: none is left for *retry_ms. */
static bool take_rate(struct admission_client *c, uint32_t *retry_ms)
{
    uint64_t now = clock_ns();
    c->tokens += (double)(now - c->filled_ns) / 1e9 * c->rate; /* token bucket */
    c->filled_ns = now;
    if (c->tokens > c->burst)
        c->tokens = c->burst;
    if (c->tokens < 1.0) {
        *retry_ms = (uint32_t)((1.0 - c->tokens) / c->rate * 1000.0) + 1;
        return false;
    }
    c->tokens -= 1.0;
    return true;
}

static void count_refusal(struct admission_client *c, enum admission_verdict v)
{
    if (v != ADMISSION_OK && c && c->account)
        counter_add(&c->account->refused[v == ADMISSION_RATE    ? QUOTA_REFUSED_RATE
                                         : v == ADMISSION_QUOTA ? QUOTA_REFUSED_TOKENS
                                                                : QUOTA_REFUSED_BUSY],
                    1);
}

enum admission_verdict admission_enter(struct admission *a, struct admission_client *c,
                                       uint32_t *retry_ms)
{
    enum admission_verdict result = ADMISSION_OK;
    uint32_t retry_s;
    *retry_ms = 0;
    if (c && c->account && !quota_has_left(a->quota, c->account, &retry_s)) {
        *retry_ms = retry_s * 1000u;
        count_refusal(c, ADMISSION_QUOTA);
        return ADMISSION_QUOTA;
    }
    pthread_mutex_lock(&a->lock);
    if (!has_place(a, c) || (c && c->max_in_flight && c->in_flight >= c->max_in_flight)) {
        result = ADMISSION_FULL;
        *retry_ms = 1000;
    } else if (c && c->rate > 0 && !take_rate(c, retry_ms)) {
        result = ADMISSION_RATE;
    }
    if (result == ADMISSION_OK) {
        a->in_flight++;
        if (c)
            c->in_flight++;
    }
    pthread_mutex_unlock(&a->lock);
    count_refusal(c, result);
    return result;
}

void admission_spend(struct admission *a, struct admission_client *c, uint64_t prompt,
                     uint64_t generated)
{
    if (c && c->account)
        quota_spend(a->quota, c->account, prompt, generated);
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

uint32_t admission_in_flight(struct admission *a)
{
    pthread_mutex_lock(&a->lock);
    uint32_t n = a->in_flight;
    pthread_mutex_unlock(&a->lock);
    return n;
}
