/* registry.c - creates the registry with its threads, and ends it. */
#include "host/registry.h"

#include <limits.h>

#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "engine/cache_dir.h"
#include "host/registry_int.h"

int registry_create(struct registry **out, const struct registry_opts *o, struct err *e)
{
    struct registry *r = mem_zalloc(sizeof(*r));
    char dir[PATH_MAX];
    *out = NULL;
    if (!r)
        return err_set(e, SHOAL_ENOMEM, "model registry");
    r->opts = *o;
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->epoch_lock, NULL);
    cond_init(&r->work);
    cond_init(&r->hash_work);
    const char *memo_dir = cache_dir_wanted(o->cache_dir, dir, sizeof(dir));
    if ((o->cache_dir && !(r->cache_dir = mem_strdup(o->cache_dir))) ||
        (memo_dir && !(r->memo_dir = mem_strdup(memo_dir)))) {
        registry_destroy(r);
        return err_set(e, SHOAL_ENOMEM, "model registry");
    }
    int rc = 0;
    if (!o->lent_only) {
        rc = thread_create(&r->load_thread, "registry", registry_load_main, r, e);
        r->has_load_thread = rc == 0;
    }
    if (rc == 0 && !o->lent_only) {
        rc = thread_create(&r->hash_thread, "identity", registry_hash_main, r, e);
        r->has_hash_thread = rc == 0;
    }
    if (rc < 0) {
        registry_destroy(r);
        return rc;
    }
    *out = r;
    return 0;
}

void registry_destroy(struct registry *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_signal(&r->work);
    pthread_cond_signal(&r->hash_work);
    pthread_mutex_unlock(&r->lock);
    if (r->has_load_thread)
        pthread_join(r->load_thread, NULL);
    if (r->has_hash_thread)
        pthread_join(r->hash_thread, NULL);
    while (r->list) {
        struct registry_model *m = r->list;
        r->list = m->next;
        registry_model_free(m);
    }
    for (struct registry_slot *s = r->slots; s; s = s->next) /* before their engines */
        if (s->base)
            shoal_adapter_close(s->adapter);
    while (r->slots) {
        struct registry_slot *s = r->slots;
        r->slots = s->next;
        registry_detach(s);
        if (s->spec.apart && s->state == REGISTRY_READY)
            r->opts.apart->close(r->opts.apart->ctx, s->serial);
        if (!s->lent && !s->base)
            shoal_engine_close(s->engine);
        registry_slot_free(s);
    }
    mem_free(r->cache_dir);
    mem_free(r->memo_dir);
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->epoch_lock);
    pthread_cond_destroy(&r->work);
    pthread_cond_destroy(&r->hash_work);
    mem_free(r);
}
