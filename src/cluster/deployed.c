/* deployed.c - see deployed.h. */
#include "cluster/deployed.h"

#include <pthread.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cluster/control/desired.h"
#include "cluster/messages/node_state.h"

#define WANTED_NS 1000000000u

struct model {
    char *name;
    unsigned kinds; /* 0: not known yet */
    uint64_t wanted_ns;
};

struct deployed {
    pthread_mutex_t lock;
    struct model *models;
    uint32_t n;
    bool settled;
};

int deployed_create(struct deployed **out, struct err *e)
{
    *out = mem_zalloc(sizeof(**out));
    if (!*out)
        return err_set(e, SHOAL_ENOMEM, "deployed models");
    pthread_mutex_init(&(*out)->lock, NULL);
    return 0;
}

static void free_models(struct model *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        mem_free(list[i].name);
    mem_free(list);
}

void deployed_destroy(struct deployed *p)
{
    if (!p)
        return;
    free_models(p->models, p->n);
    pthread_mutex_destroy(&p->lock);
    mem_free(p);
}

static struct model *find(const struct deployed *p, const char *name)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (strcmp(p->models[i].name, name) == 0)
            return &p->models[i];
    return NULL;
}

void deployed_set(struct deployed *p, const struct desired *d)
{
    struct model *list = mem_zalloc_n(d->n_models + 1, sizeof(*list));
    uint32_t n = 0;
    bool ok = list != NULL;
    for (; ok && n < d->n_models; n++) {
        ok = (list[n].name = mem_strdup(d->models[n].name)) != NULL;
        list[n].kinds = d->models[n].kinds;
    }
    pthread_mutex_lock(&p->lock);
    for (uint32_t i = 0; ok && i < n; i++) {
        const struct model *was = find(p, list[i].name);
        list[i].wanted_ns = was ? was->wanted_ns : 0;
    }
    if (ok) {
        struct model *old = p->models;
        uint32_t n_old = p->n;
        p->models = list;
        p->n = n;
        list = old;
        n = n_old;
    }
    pthread_mutex_unlock(&p->lock);
    free_models(list, n);
}

void deployed_settle(struct deployed *p)
{
    pthread_mutex_lock(&p->lock);
    p->settled = true;
    pthread_mutex_unlock(&p->lock);
}

bool deployed_settled(struct deployed *p)
{
    pthread_mutex_lock(&p->lock);
    const bool settled = p->settled;
    pthread_mutex_unlock(&p->lock);
    return settled;
}

bool deployed_want(struct deployed *p, const char *model, unsigned kind)
{
    pthread_mutex_lock(&p->lock);
    struct model *m = model ? find(p, model) : NULL;
    for (uint32_t i = 0; !model && !m && i < p->n; i++)
        if (p->models[i].kinds & kind)
            m = &p->models[i];
    if (m)
        m->wanted_ns = clock_ns();
    pthread_mutex_unlock(&p->lock);
    return m != NULL;
}

void deployed_each(struct deployed *p, void (*fn)(void *ctx, const char *name, unsigned kinds),
                   void *ctx)
{
    pthread_mutex_lock(&p->lock);
    for (uint32_t i = 0; i < p->n; i++)
        fn(ctx, p->models[i].name, p->models[i].kinds);
    pthread_mutex_unlock(&p->lock);
}

uint32_t deployed_wanted(struct deployed *p, struct arena *a, const char *const **out)
{
    uint64_t now = clock_ns();
    uint32_t n = 0;
    pthread_mutex_lock(&p->lock);
    const char **list = arena_zalloc_n(a, NODE_STATE_MAX_WORDS, sizeof(*list));
    for (uint32_t i = 0; list && i < p->n && n < NODE_STATE_MAX_WORDS; i++)
        if (p->models[i].wanted_ns && now - p->models[i].wanted_ns < WANTED_NS)
            list[n++] = arena_printf(a, "%s", p->models[i].name);
    pthread_mutex_unlock(&p->lock);
    *out = list;
    return n;
}
