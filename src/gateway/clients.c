/* clients.c - see clients.h. */
#include "gateway/clients.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "base/clock.h"
#include "base/mem.h"
#include "gateway/config.h"

struct clients {
    pthread_mutex_t lock;
    struct client *list;
    uint32_t n_active, max_in_flight, in_flight; /* over all */
};

static int nibble(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c - 'A' + 10;
}

void clients_hash(const char *key, size_t n, char out[65])
{
    unsigned char md[32];
    SHA256((const unsigned char *)key, n, md);
    for (int i = 0; i < 32; i++)
        snprintf(out + 2 * i, 3, "%02x", md[i]);
}

/* The client of a key that is the same in all that others read without the lock; or a new one,
 * which nobody finds yet.  NULL: no memory. */
static struct client *client_of(struct clients *cs, const struct config_key *k)
{
    unsigned char md[32];
    for (int b = 0; b < 32; b++)
        md[b] = (unsigned char)(nibble(k->sha256[2 * b]) * 16 + nibble(k->sha256[2 * b + 1]));
    for (struct client *c = cs->list; c; c = c->next)
        if (memcmp(c->sha256, md, 32) == 0 && c->admin == k->admin && c->priority == k->priority &&
            strncmp(c->name, k->name, sizeof(c->name) - 1) == 0)
            return c;
    struct client *c = mem_zalloc(sizeof(*c));
    if (!c)
        return NULL;
    memcpy(c->sha256, md, 32);
    snprintf(c->name, sizeof(c->name), "%s", k->name);
    c->admin = k->admin;
    c->priority = k->priority;
    c->tokens = k->burst;
    c->filled_ns = clock_ns();
    c->revoked = true;
    c->next = cs->list;
    cs->list = c;
    return c;
}

int clients_reload(struct clients *cs, const struct gw_config *config, struct err *e)
{
    struct client *found[CONFIG_MAX_KEYS];
    uint32_t n = 0;
    pthread_mutex_lock(&cs->lock);
    while (n < config->n_keys && (found[n] = client_of(cs, &config->keys[n])))
        n++;
    if (n == config->n_keys) { /* all or nothing */
        for (struct client *c = cs->list; c; c = c->next)
            c->revoked = true;
        for (uint32_t i = 0; i < n; i++) {
            found[i]->rate = config->keys[i].rate;
            found[i]->burst = config->keys[i].burst;
            found[i]->max_in_flight = config->keys[i].max_in_flight;
            found[i]->revoked = false;
        }
        cs->n_active = n;
        cs->max_in_flight = config->max_in_flight;
    }
    pthread_mutex_unlock(&cs->lock);
    return n == config->n_keys ? 0 : err_set(e, SHOAL_ENOMEM, "keys");
}

int clients_create(struct clients **out, const struct gw_config *config, struct err *e)
{
    struct clients *cs = mem_zalloc(sizeof(*cs));
    *out = NULL;
    if (!cs)
        return err_set(e, SHOAL_ENOMEM, "keys");
    pthread_mutex_init(&cs->lock, NULL);
    int rc = clients_reload(cs, config, e);
    if (rc < 0) {
        clients_destroy(cs);
        return rc;
    }
    *out = cs;
    return 0;
}

void clients_destroy(struct clients *cs)
{
    if (!cs)
        return;
    while (cs->list) {
        struct client *c = cs->list;
        cs->list = c->next;
        mem_free(c);
    }
    pthread_mutex_destroy(&cs->lock);
    mem_free(cs);
}

bool clients_needed(struct clients *cs)
{
    pthread_mutex_lock(&cs->lock);
    bool needed = cs->n_active > 0;
    pthread_mutex_unlock(&cs->lock);
    return needed;
}

struct client *clients_find(struct clients *cs, const char *key, size_t n)
{
    unsigned char md[32];
    struct client *found = NULL;
    SHA256((const unsigned char *)key, n, md);
    pthread_mutex_lock(&cs->lock);
    for (struct client *c = cs->list; c; c = c->next)
        if (!c->revoked && CRYPTO_memcmp(c->sha256, md, 32) == 0)
            found = c;
    pthread_mutex_unlock(&cs->lock);
    return found;
}

enum admit clients_enter(struct clients *cs, struct client *c, uint32_t *retry_ms)
{
    enum admit result = ADMIT_OK;
    *retry_ms = 0;
    pthread_mutex_lock(&cs->lock);
    if (cs->max_in_flight && cs->in_flight >= cs->max_in_flight) {
        result = ADMIT_IN_FLIGHT;
        *retry_ms = 1000;
    } else if (c && c->max_in_flight && c->in_flight >= c->max_in_flight) {
        result = ADMIT_IN_FLIGHT;
        *retry_ms = 1000;
    } else if (c && c->rate > 0) { /* a bucket that fills at rate and holds burst */
        uint64_t now = clock_ns();
        c->tokens += (double)(now - c->filled_ns) / 1e9 * c->rate;
        c->filled_ns = now;
        if (c->tokens > c->burst)
            c->tokens = c->burst;
        if (c->tokens < 1.0) {
            result = ADMIT_RATE;
            *retry_ms = (uint32_t)((1.0 - c->tokens) / c->rate * 1000.0) + 1;
        } else {
            c->tokens -= 1.0;
        }
    }
    if (result == ADMIT_OK) {
        cs->in_flight++;
        if (c)
            c->in_flight++;
    }
    pthread_mutex_unlock(&cs->lock);
    return result;
}

/* Of a limit where 0 is none. */
static uint32_t places_left(uint32_t max, uint32_t used)
{
    return max == 0 ? UINT32_MAX : max > used ? max - used : 0;
}

enum admit clients_enter_more(struct clients *cs, struct client *c, uint32_t n, uint32_t *most)
{
    pthread_mutex_lock(&cs->lock);
    uint32_t all = places_left(cs->max_in_flight, 0), left;
    uint32_t own = c ? places_left(c->max_in_flight, 0) : UINT32_MAX;
    *most = own < all ? own : all;
    all = places_left(cs->max_in_flight, cs->in_flight);
    own = c ? places_left(c->max_in_flight, c->in_flight) : UINT32_MAX;
    left = own < all ? own : all;
    if (n <= left) {
        cs->in_flight += n;
        if (c)
            c->in_flight += n;
    }
    pthread_mutex_unlock(&cs->lock);
    return n <= left ? ADMIT_OK : ADMIT_IN_FLIGHT;
}

void clients_leave(struct clients *cs, struct client *c, uint32_t n_places)
{
    pthread_mutex_lock(&cs->lock);
    cs->in_flight -= n_places;
    if (c)
        c->in_flight -= n_places;
    pthread_mutex_unlock(&cs->lock);
}
