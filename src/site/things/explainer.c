/* explainer.c - see explainer.h. */
#include "site/things/explainer.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/thread.h"
#include "site/things/plant.h"
#include "site/things/relevance.h"
#include "store/collections.h"

#define MAX_QUERY_BYTES 1024u
#define MAX_PASSAGE_BYTES 800u
#define MAX_SOURCE_BYTES 300u
#define MAX_CANDIDATES 8u /* passages that are read for a relevant one */

struct explain_job {
    struct alarm_event event; /* as reported; the names of its sensors stay */
    char query[MAX_QUERY_BYTES];
};

struct explainer {
    struct plant *plant;
    struct collections *collections;
    char collection[COLLECTION_MAX_NAME + 1];
    pthread_t thread;
    bool has_thread, stop, complained;
    pthread_mutex_t lock; /* guards the queue and stop */
    pthread_cond_t changed;
    struct explain_job jobs[EXPLAINER_MAX_WAITING]; /* a ring */
    uint32_t first, n;
};

/* ---- the query ---- */

/* The words that a manual would use for this alarm. */
static void put_query(struct buf *out, const struct alarm_event *e)
{
    for (uint32_t i = 0; i < e->n_channels; i++)
        buf_printf(out, "%s ", e->channels[i].title);
    if (e->n_channels > 0)
        buf_printf(out, "%s %s", relevance_words(e), e->machine_title);
}

/* Events come one at a time. */
static void on_alarm(void *ctx, const struct alarm_event *e)
{
    struct explainer *x = ctx;
    struct buf b;
    if ((e->change != ALARM_RAISED && e->change != ALARM_WORSENED) || e->n_channels == 0)
        return;
    buf_init(&b, MAX_QUERY_BYTES - 1);
    put_query(&b, e);
    pthread_mutex_lock(&x->lock);
    if (b.rc == 0 && x->n < EXPLAINER_MAX_WAITING) {
        struct explain_job *j = &x->jobs[(x->first + x->n++) % EXPLAINER_MAX_WAITING];
        j->event = *e;
        snprintf(j->query, sizeof(j->query), "%s", buf_str(&b));
        pthread_cond_signal(&x->changed);
    }
    pthread_mutex_unlock(&x->lock);
    buf_fini(&b);
}

/* ---- the search ---- */

/* At most max bytes, cut between two characters. */
static const char *cut(struct arena *a, const char *text, size_t max)
{
    size_t n = strlen(text);
    if (n <= max)
        return text;
    for (n = max; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
        ;
    return arena_printf(a, "%.*s…", (int)n, text);
}

static const char *source_of(struct arena *a, const struct collection_hit *h)
{
    const char *name = h->title && *h->title ? h->title : h->doc;
    const char *heading = h->heading && *h->heading ? h->heading : NULL;
    char page[24] = "";
    if (h->page)
        snprintf(page, sizeof(page), ", page %u", h->page);
    return cut(a,
               arena_printf(a, "%s%s%s%s", name, heading ? ", " : "", heading ? heading : "", page),
               MAX_SOURCE_BYTES);
}

/* No passage is better than one about something else. */
static const struct collection_hit *first_relevant(const struct alarm_event *e,
                                                   const struct collection_hit *hits, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (relevance_of(e, hits[i].heading, hits[i].text) >= RELEVANCE_FLOOR)
            return &hits[i];
    return NULL;
}

static void explain(struct explainer *x, const struct explain_job *j)
{
    struct arena a;
    struct collection *c = NULL;
    struct collection_hit *hits = NULL;
    uint32_t n = 0;
    struct err e = {0};
    const struct collection_query q = {.text = j->query, .n_results = MAX_CANDIDATES};
    arena_init(&a, 1 << 20);
    int rc = collections_hold(x->collections, x->collection, &c, &e);
    if (rc == 0)
        rc = collection_search(c, &q, &a, &hits, &n, &e);
    const struct collection_hit *best = rc == 0 ? first_relevant(&j->event, hits, n) : NULL;
    if (best) {
        const char *passage = cut(&a, best->text, MAX_PASSAGE_BYTES), *source = source_of(&a, best);
        rc = a.rc < 0 ? err_set(&e, a.rc, "out of memory")
                      : plant_explain(x->plant, j->event.id, passage, source, &e);
        if (rc == SHOAL_ENOTFOUND)
            rc = 0; /* the alarm has already ended */
    }
    if (rc < 0 && !x->complained)
        log_warn("explain", "no passage of '%s' for an alarm: %s", x->collection, e.msg);
    x->complained = rc < 0;
    collections_release(x->collections, c);
    arena_fini(&a);
}

static void *run(void *arg)
{
    struct explainer *x = arg;
    pthread_mutex_lock(&x->lock);
    while (!x->stop) {
        if (x->n == 0) {
            pthread_cond_wait(&x->changed, &x->lock);
            continue;
        }
        struct explain_job j = x->jobs[x->first];
        x->first = (x->first + 1) % EXPLAINER_MAX_WAITING;
        x->n--;
        pthread_mutex_unlock(&x->lock); /* the plant's locks are taken before ours */
        explain(x, &j);
        pthread_mutex_lock(&x->lock);
    }
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

/* ---- life ---- */

int explainer_create(struct explainer **out, const char *collection,
                     struct collections *collections, struct plant *plant, struct err *e)
{
    *out = NULL;
    if (!collection)
        return 0;
    if (!plant || !collections)
        return err_set(e, SHOAL_EINVAL, "alarms.manuals needs %s",
                       plant ? "a folder of collections (collections.dir)" : "sensors");
    if (!collection_name_ok(collection))
        return err_set(e, SHOAL_EINVAL, "alarms.manuals: '%.100s' cannot name a collection",
                       collection);
    struct explainer *x = mem_zalloc(sizeof(*x));
    if (!x)
        return err_set(e, SHOAL_ENOMEM, "manuals");
    x->plant = plant;
    x->collections = collections;
    snprintf(x->collection, sizeof(x->collection), "%s", collection);
    pthread_mutex_init(&x->lock, NULL);
    pthread_cond_init(&x->changed, NULL);
    int rc = plant_listen(plant, on_alarm, NULL, x, e);
    if (rc < 0) {
        explainer_destroy(x);
        return rc;
    }
    *out = x;
    return 0;
}

int explainer_start(struct explainer *x, struct err *e)
{
    int rc = x ? thread_create(&x->thread, "explain", run, x, e) : 0;
    if (x)
        x->has_thread = rc == 0;
    return rc;
}

void explainer_stop(struct explainer *x)
{
    if (!x || !x->has_thread)
        return;
    pthread_mutex_lock(&x->lock);
    x->stop = true;
    pthread_cond_signal(&x->changed);
    pthread_mutex_unlock(&x->lock);
    pthread_join(x->thread, NULL);
    x->has_thread = false;
}

void explainer_destroy(struct explainer *x)
{
    if (!x)
        return;
    explainer_stop(x);
    pthread_mutex_destroy(&x->lock);
    pthread_cond_destroy(&x->changed);
    mem_free(x);
}
