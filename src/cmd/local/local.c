/* local.c - see local.h. */
#include "cmd/local/local.h"

#include <poll.h>

#include "base/log.h"
#include "cmd/cli/term.h"
#include "flow/stages.h"
#include "host/registry.h"

int local_open(struct local *l, struct err *e)
{
    const struct registry_opts ro = {.lent_only = true};
    *l = (struct local){.opened = false};
    int rc = executor_queue_init(&l->queue, e);
    if (rc < 0)
        return rc;
    rc = registry_create(&l->flow.registry, &ro, e);
    if (rc < 0) {
        executor_queue_fini(&l->queue);
        return rc;
    }
    flow_owner_init(&l->owner, &l->flow, &l->queue.executor);
    l->opened = true;
    return 0;
}

void local_close(struct local *l)
{
    if (!l->opened)
        return;
    flow_wake(&l->owner); /* gives its references back */
    registry_destroy(l->flow.registry);
    shoal_adapter_close(l->adapter);
    flow_owner_fini(&l->owner);
    executor_queue_fini(&l->queue);
    l->opened = false;
}

int local_lend(struct local *l, const char *name, const char *labels, struct shoal_engine *engine,
               struct err *e)
{
    return registry_lend(l->flow.registry, name, labels, engine, e);
}

int local_adapt(struct local *l, const char *name, const char *adapter, struct shoal_engine *engine,
                struct err *e)
{
    const char *eq = adapter ? strchr(adapter, '=') : NULL;
    const char *slash = adapter ? strchr(adapter, '/') : NULL;
    if (!adapter)
        return 0;
    if (eq && (!slash || eq < slash)) /* as `shoal serve` has it; a path may have one, too */
        adapter = eq + 1;
    int rc = shoal_adapter_open(&l->adapter, engine, adapter, 0, e);
    if (rc == 0)
        registry_lend_adapter(l->flow.registry, name, l->adapter);
    return rc;
}

void local_identify(struct local *l, const char *name, const char *path)
{
    struct err e = {0};
    if (registry_identify(l->flow.registry, name, path, &e) < 0)
        log_warn("local", "the version of %s is not known: %s", path, e.msg);
}

bool local_turn(struct local *l, int interrupt_fd)
{
    if (executor_queue_run(&l->queue))
        return false;
    struct pollfd p[] = {{.fd = l->queue.fd, .events = POLLIN},
                         {.fd = interrupt_fd, .events = POLLIN}}; /* -1 is ignored */
    (void)poll(p, 2, executor_queue_wait_ms(&l->queue)); /* interrupted: the caller turns again */
    return p[1].revents && term_interrupted(interrupt_fd);
}

bool local_run(struct local *l, struct request *r, struct sink *s, const bool *closed,
               int interrupt_fd)
{
    bool interrupted = false;
    stages_run(&l->owner, r, s);
    while (!*closed)
        if (local_turn(l, interrupt_fd)) {
            interrupted = true;
            flow_cancel(s);
        }
    return interrupted;
}
