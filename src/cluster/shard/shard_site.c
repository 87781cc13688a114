/* shard_site.c - see shard_site.h. */
#include "cluster/shard/shard_site.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/trust/cert.h"
#include "host/identity.h"
#include "net/tls.h"

#define MAX_NODES 256u
#define MAX_CHAINS 32u

struct listed { /* a chain of this process */
    const void *chain;
    struct shard_chain_facts facts;
};

struct shard_site {
    struct shard_site_opts o;
    char name[64];
    char *cache_dir, *memo_dir;
    struct tls_client *tls;
    struct shard_door *door;
    pthread_mutex_t lock; /* for the rest */
    char (*nodes)[256];
    uint32_t n_nodes;
    struct listed *chains;
    uint32_t n_chains;
    _Atomic bool stop;
};

static uint32_t list_nodes(void *ctx, char (*out)[256], uint32_t max)
{
    struct shard_site *s = ctx;
    pthread_mutex_lock(&s->lock);
    const uint32_t n = s->n_nodes < max ? s->n_nodes : max;
    memcpy(out, s->nodes, n * sizeof(*out));
    pthread_mutex_unlock(&s->lock);
    return n;
}

static uint32_t find_node(const struct shard_site *s, const char *address)
{
    uint32_t i = 0;
    while (i < s->n_nodes && strcmp(s->nodes[i], address) != 0)
        i++;
    return i;
}

void shard_site_add(struct shard_site *s, const char *address)
{
    pthread_mutex_lock(&s->lock);
    if (find_node(s, address) == s->n_nodes && s->n_nodes < MAX_NODES)
        snprintf(s->nodes[s->n_nodes++], sizeof(s->nodes[0]), "%s", address);
    pthread_mutex_unlock(&s->lock);
}

void shard_site_remove(struct shard_site *s, const char *address)
{
    pthread_mutex_lock(&s->lock);
    const uint32_t i = find_node(s, address);
    if (i < s->n_nodes)
        memcpy(s->nodes[i], s->nodes[--s->n_nodes], sizeof(s->nodes[0]));
    pthread_mutex_unlock(&s->lock);
}

/* ---- chains ---- */

static void on_changed(void *ctx, const void *chain, const struct shard_chain_facts *f)
{
    struct shard_site *s = ctx;
    uint32_t i = 0;
    pthread_mutex_lock(&s->lock);
    while (i < s->n_chains && s->chains[i].chain != chain)
        i++;
    if (f && i < MAX_CHAINS) {
        s->chains[i] = (struct listed){chain, *f};
        s->n_chains += i == s->n_chains;
    } else if (!f && i < s->n_chains) {
        s->chains[i] = s->chains[--s->n_chains];
    }
    pthread_mutex_unlock(&s->lock);
}

uint32_t shard_site_chains(struct shard_site *s, struct shard_chain_facts *out, uint32_t max)
{
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->n_chains && i < max; i++)
        out[i] = s->chains[i].facts;
    const uint32_t n = s->n_chains;
    pthread_mutex_unlock(&s->lock);
    return n;
}

static uint64_t memory(void *ctx)
{
    const struct shard_site *s = ctx;
    return s->o.memory(s->o.ctx);
}

static uint64_t rate(void *ctx)
{
    const struct shard_site *s = ctx;
    return s->o.rate(s->o.ctx);
}

/* All parts must be of the same bytes: their hash is needed before the model is opened. */
static int content_of(const struct shard_site *s, uint8_t sha256[SHA256_BYTES], const char *path,
                      struct err *e)
{
    struct identity_list *list = NULL;
    struct identity id = {.kind = IDENTITY_NONE};
    int rc = identity_list(&list, path, e);
    if (rc == 0)
        id = identity_known(list, s->memo_dir, NULL);
    if (rc == 0 && id.kind != IDENTITY_CONTENT)
        rc = identity_read(&id, list, s->memo_dir, &s->stop, e);
    identity_list_free(list);
    if (rc == 0)
        memcpy(sha256, id.sum, SHA256_BYTES);
    return rc;
}

int shard_site_chain(struct shard_site *s, struct chain *out, const char *path,
                     struct shard_want want, struct err *e)
{
    struct shard_chain_opts o = {.tls = s->tls,
                                 .want = want,
                                 .silent_ms = s->o.silent_ms,
                                 .wait_ms = s->o.wait_ms,
                                 .name = s->name,
                                 .memory = memory,
                                 .rate = rate,
                                 .nodes = list_nodes,
                                 .changed = on_changed,
                                 .ctx = s};
    *out = (struct chain){NULL, NULL};
    if (want.mode == SHARD_NONE)
        return 0;
    int rc = content_of(s, o.sha256, path, e);
    return rc < 0 ? rc : shard_chain_create(out, &o, e);
}

/* ---- open and close ---- */

static int open_tls(struct shard_site *s, const char *certs, struct err *e)
{
    struct cert_files f;
    int rc = cert_files_in(&f, certs, e);
    const struct tls_opts o = {
        .cert = f.cert, .key = f.key, .ca = f.ca, .crl = f.crl, .reload = true, .shard = true};
    return rc < 0 ? rc : tls_client_open(&s->tls, &o, e);
}

int shard_site_open(struct shard_site **out, const struct shard_site_opts *o, struct err *e)
{
    struct shard_site *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for sharded models");
    s->o = *o;
    pthread_mutex_init(&s->lock, NULL);
    snprintf(s->name, sizeof(s->name), "%s", o->name);
    s->cache_dir = o->cache_dir ? mem_strdup(o->cache_dir) : NULL;
    s->memo_dir = o->memo_dir ? mem_strdup(o->memo_dir) : NULL;
    s->nodes = mem_zalloc_n(MAX_NODES, sizeof(*s->nodes));
    s->chains = mem_zalloc_n(MAX_CHAINS, sizeof(*s->chains));
    int rc = s->nodes && s->chains ? open_tls(s, o->certs, e)
                                   : err_set(e, SHOAL_ENOMEM, "out of memory for sharded models");
    const struct shard_door_opts d = {.name = s->name,
                                      .cache_dir = s->cache_dir,
                                      .tls = s->tls,
                                      .find = o->find,
                                      .memory = o->memory,
                                      .take_memory = o->take_memory,
                                      .rate = o->rate,
                                      .ctx = o->ctx};
    if (rc == 0)
        rc = shard_door_open(&s->door, &d, e);
    if (rc < 0) {
        shard_site_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void shard_site_stop(struct shard_site *s)
{
    if (!s)
        return;
    s->stop = true;
    shard_door_close(s->door);
    s->door = NULL;
}

void shard_site_close(struct shard_site *s)
{
    if (!s)
        return;
    shard_site_stop(s);
    tls_client_close(s->tls);
    pthread_mutex_destroy(&s->lock);
    mem_free(s->nodes);
    mem_free(s->chains);
    mem_free(s->cache_dir);
    mem_free(s->memo_dir);
    mem_free(s);
}

void shard_site_take(void *site, int fd, struct tls_conn *tls)
{
    const struct shard_site *s = site;
    shard_door_take(s->door, fd, tls);
}
