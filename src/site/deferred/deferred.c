/* deferred.c - see deferred.h. */
#include "site/deferred/deferred.h"

#include <inttypes.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "config/config.h"
#include "host/prometheus.h"
#include "store/deferred_store.h"

int deferred_open(struct deferred **out, const struct config *c, struct err *e)
{
    const struct deferred_store_opts o = {.max_requests = c->deferred_requests,
                                          .max_bytes = c->deferred_bytes,
                                          .keep_ms = c->deferred_keep_ms};
    *out = NULL;
    if (!c->deferred_file)
        return 0;
    struct deferred *d = mem_zalloc(sizeof(*d));
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "out of memory for deferred requests");
    d->max_ttl_ms = c->deferred_ttl_ms;
    int rc = deferred_store_open(&d->store, c->deferred_file, &o, e);
    if (rc < 0) {
        mem_free(d);
        return rc;
    }
    *out = d;
    return 0;
}

void deferred_close(struct deferred *d)
{
    if (!d)
        return;
    deferred_store_close(d->store);
    mem_free(d);
}

int64_t deferred_now_ms(void)
{
    return (int64_t)clock_unix_ms();
}

void deferred_metrics(struct deferred *d, struct buf *b)
{
    prometheus_help(b, "shoal_deferred_total", "counter",
                    "deferred requests: kept, tried, and answered");
    buf_printf(b,
               "shoal_deferred_total{event=\"kept\"} %" PRIu64
               "\nshoal_deferred_total{event=\"tried\"} %" PRIu64
               "\nshoal_deferred_total{event=\"answered\"} %" PRIu64 "\n",
               atomic_load(&d->n_put), atomic_load(&d->n_tried), atomic_load(&d->n_answered));
}
