/* model_supply.c - see model_supply.h. */
#include "cluster/store/model_supply.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/store/holders.h"
#include "cluster/store/model_fetch.h"
#include "depot/store/model_store.h"

#define MS_NS 1000000u
#define LISTEN_NS (1500ull * MS_NS) /* several heartbeats */
#define EAR_NS (10000ull * MS_NS)   /* stop listening after this long without a request */
#define RETRY_NS (2000ull * MS_NS)  /* after the first failure; doubles */
#define MAX_RETRY_NS (60000ull * MS_NS)
/* failures after which it is given up, unless the last one is SHOAL_EIO or SHOAL_EBUSY */
#define MAX_TRIES 3u

/* A model needed on this node. */
struct item {
    struct item *next;
    struct model_supply *supply;
    uint8_t sha256[SHA256_BYTES];
    struct model_store_pin *pin; /* set: the model is in the store */
    struct model_fetch *job;     /* set: the model is being fetched */
    uint64_t since_ns;           /* when it was first asked for */
    uint64_t not_before_ns;      /* when the next fetch may begin */
    uint32_t n_failed;
    bool doubted; /* see model_supply_doubt */
    bool gone;    /* released while being fetched: freed when the fetch ends */
    struct err e;
    uint64_t bytes, total; /* progress of the fetch */
};

struct model_supply {
    struct model_store *store;
    struct model_fetcher *fetcher;
    struct holders *holders;
    struct item *items;
    uint64_t asked_ns; /* when a model was last missing */
};

int model_supply_create(struct model_supply **out, struct model_store *store,
                        struct model_fetcher *fetcher, struct err *e)
{
    struct model_supply *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "supply of models");
    s->store = store;
    s->fetcher = fetcher;
    int rc = holders_create(&s->holders, e);
    if (rc < 0) {
        mem_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

void model_supply_destroy(struct model_supply *s)
{
    if (!s)
        return;
    for (struct item *i = s->items, *next; i; i = next) {
        next = i->next;
        if (i->job)
            model_fetch_forget(i->job);
        model_store_unpin(i->pin);
        mem_free(i);
    }
    holders_destroy(s->holders);
    mem_free(s);
}

bool model_supply_listens(const struct model_supply *s)
{
    return s->asked_ns && clock_ns() - s->asked_ns < EAR_NS;
}

void model_supply_hear(struct model_supply *s, const struct node_state *state)
{
    if (model_supply_listens(s))
        holders_hear(s->holders, state, clock_ns());
}

/* ---- items ---- */

static struct item *find_item(struct model_supply *s, const uint8_t sha256[SHA256_BYTES])
{
    struct item *i = s->items;
    while (i && (i->gone || memcmp(i->sha256, sha256, SHA256_BYTES) != 0))
        i = i->next;
    return i;
}

static struct item *add_item(struct model_supply *s, const uint8_t sha256[SHA256_BYTES],
                             uint64_t now)
{
    struct item *i = mem_zalloc(sizeof(*i));
    if (!i)
        return NULL;
    i->supply = s;
    i->since_ns = now;
    memcpy(i->sha256, sha256, SHA256_BYTES);
    i->next = s->items;
    s->items = i;
    return i;
}

static void drop_item(struct item *i)
{
    struct item **p = &i->supply->items;
    while (*p != i)
        p = &(*p)->next;
    *p = i->next;
    model_store_unpin(i->pin);
    mem_free(i);
}

void model_supply_release(struct model_supply *s, const uint8_t sha256[SHA256_BYTES])
{
    struct item *i = find_item(s, sha256);
    if (i && i->job) {
        i->gone = true;
        model_fetch_cancel(i->job);
    } else if (i) {
        drop_item(i);
    }
}

bool model_supply_doubt(struct model_supply *s, const uint8_t sha256[SHA256_BYTES])
{
    struct item *i = find_item(s, sha256);
    if (!i)
        return false;
    i->doubted = true;
    i->since_ns = clock_ns(); /* listen for others that have it */
    return true;
}

/* ---- fetching ---- */

static void on_done(void *ctx, int rc, const char *path, const struct err *e)
{
    struct item *i = ctx;
    (void)path; /* not needed: it is looked up and pinned in the store */
    i->job = NULL;
    if (i->gone) {
        drop_item(i);
        return;
    }
    if (rc == 0) {
        i->e = (struct err){0};
        i->doubted = false;
        return;
    }
    i->e = *e;
    uint64_t wait = RETRY_NS << (i->n_failed < 10 ? i->n_failed : 10);
    i->n_failed++;
    i->not_before_ns = clock_ns() + (wait < MAX_RETRY_NS ? wait : MAX_RETRY_NS);
}

static bool is_lost(const struct item *i)
{
    if (i->e.code ==
        SHOAL_ELIMIT) /* no room: report it, and let the controller choose another node */
        return true;
    return i->n_failed >= MAX_TRIES && i->e.code != SHOAL_EIO && i->e.code != SHOAL_EBUSY;
}

static int start(struct item *i, const char *name, const char *source, struct err *e)
{
    struct model_supply *s = i->supply;
    struct holders_node nodes[MODEL_FETCH_MAX_SOURCES - 1];
    struct model_fetch_source sources[MODEL_FETCH_MAX_SOURCES];
    const struct model_fetch_watch w = {.ctx = i, .done = on_done, .doubted = i->doubted};
    size_t n =
        holders_find(s->holders, i->sha256, clock_ns(), nodes, sizeof(nodes) / sizeof(nodes[0]));
    for (size_t k = 0; k < n; k++)
        sources[k] = (struct model_fetch_source){nodes[k].address, nodes[k].name};
    if (source && source[0])
        sources[n++] = (struct model_fetch_source){.address = source};
    if (n == 0 && !i->doubted)
        return err_set(
            e, SHOAL_ENOTFOUND,
            "neither this node's files nor any other node has the model '%s', and it has no "
            "source: put it into a folder of 'model_dirs', or deploy it with --source",
            name);
    return model_fetch_start(&i->job, s->fetcher, name, i->sha256, sources, n, &w, e);
}

static void look(void *ctx, const struct model_fetch_state *f)
{
    struct item *i = ctx;
    if (memcmp(i->sha256, f->sha256, SHA256_BYTES) != 0)
        return;
    i->bytes = f->bytes;
    i->total = f->total_bytes;
    if (f->error[0])
        err_set(&i->e, SHOAL_EIO, "%s", f->error);
}

static enum model_supply_found coming(struct item *i, uint32_t *progress, struct err *e)
{
    if (i->job)
        model_fetcher_each(i->supply->fetcher, look, i);
    *progress = i->total ? (uint32_t)(i->bytes * 1000 / i->total) : 0;
    *e = i->e;
    return MODEL_SUPPLY_COMING;
}

enum model_supply_found model_supply_find(struct model_supply *s, const char *name,
                                          const uint8_t sha256[SHA256_BYTES], const char *source,
                                          char *path, size_t cap, uint32_t *progress, struct err *e)
{
    char at[PATH_MAX];
    uint64_t now = clock_ns();
    struct item *i = find_item(s, sha256);
    *progress = 0;
    if (!i && !(i = add_item(s, sha256, now))) {
        err_set(e, SHOAL_ENOMEM, "out of memory");
        return MODEL_SUPPLY_NOWHERE;
    }
    if (i->job)
        return coming(i, progress, e);
    if (!i->doubted && (i->pin || model_store_pin(s->store, sha256, &i->pin, NULL) == 0) &&
        model_store_find(s->store, sha256, at, NULL) == 0 &&
        snprintf(path, cap, "%s", at) < (int)cap)
        return MODEL_SUPPLY_HERE;
    model_store_unpin(i->pin);
    i->pin = NULL;
    s->asked_ns = now;
    if (is_lost(i)) {
        *e = i->e;
        drop_item(i);
        return MODEL_SUPPLY_NOWHERE;
    }
    if (now - i->since_ns < LISTEN_NS || now < i->not_before_ns)
        return coming(i, progress, e);
    int rc = start(i, name, source, e);
    if (rc == 0 || rc == SHOAL_EBUSY)
        return coming(i, progress, e);
    drop_item(i);
    return MODEL_SUPPLY_NOWHERE;
}
