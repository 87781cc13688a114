/* energy_ledger.c - see energy_ledger.h. */
#include "host/energy_ledger.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"

#define TICK_S 1

struct energy_ledger {
    pthread_mutex_t lock;
    struct energy energy;
    struct energy_account *open;
    pthread_t thread; /* looks once a second: sensors of power only know this moment */
    pthread_cond_t stop;
    bool stopping, ticks;
    double shared, idle; /* joules: of requests; while there were none */
};

/* With the lock. Work that nobody has reported yet is shared alike. */
static void share_out(struct energy_ledger *l)
{
    const double before = l->energy.joules;
    const double joules = energy_read(&l->energy, clock_ns(), clock_process_ns()) - before;
    double work = 0;
    uint32_t n = 0;
    if (joules <= 0) /* the counter has not moved: what was done meanwhile is still to be paid */
        return;
    for (struct energy_account *a = l->open; a; a = a->next, n++)
        work += a->work - a->shared;
    if (n == 0) {
        l->idle += joules;
        return;
    }
    for (struct energy_account *a = l->open; a; a = a->next) {
        a->joules += work > 0 ? joules * (a->work - a->shared) / work : joules / n;
        a->shared = a->work;
    }
    l->shared += joules;
}

static void *tick_main(void *arg)
{
    struct energy_ledger *l = arg;
    pthread_mutex_lock(&l->lock);
    while (!l->stopping) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += TICK_S;
        pthread_cond_timedwait(&l->stop, &l->lock, &until);
        share_out(l);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

int energy_ledger_create(struct energy_ledger **out, const char *sys, const struct energy_model *m,
                         struct err *e)
{
    struct energy_ledger *l = mem_zalloc(sizeof(*l));
    *out = NULL;
    if (!l)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the energy of requests");
    pthread_mutex_init(&l->lock, NULL);
    cond_init(&l->stop);
    energy_open(&l->energy, sys, m);
    energy_read(&l->energy, clock_ns(), clock_process_ns());
    const int rc = thread_create(&l->thread, "energy", tick_main, l, e);
    l->ticks = rc == 0;
    if (rc < 0)
        energy_ledger_destroy(l);
    else
        *out = l;
    return rc;
}

void energy_ledger_destroy(struct energy_ledger *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_cond_signal(&l->stop);
    pthread_mutex_unlock(&l->lock);
    if (l->ticks)
        pthread_join(l->thread, NULL);
    pthread_cond_destroy(&l->stop);
    pthread_mutex_destroy(&l->lock);
    mem_free(l);
}

void energy_account_begin(struct energy_ledger *l, struct energy_account *a)
{
    *a = (struct energy_account){.open = true};
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    share_out(l); /* what was used before is not its own */
    a->next = l->open;
    if (a->next)
        a->next->prev = a;
    l->open = a;
    pthread_mutex_unlock(&l->lock);
}

void energy_account_work(struct energy_ledger *l, struct energy_account *a, double work)
{
    if (!l || !a->open)
        return;
    pthread_mutex_lock(&l->lock);
    if (work > a->work)
        a->work = work;
    pthread_mutex_unlock(&l->lock);
}

double energy_account_end(struct energy_ledger *l, struct energy_account *a)
{
    if (!l || !a->open)
        return a->joules;
    pthread_mutex_lock(&l->lock);
    share_out(l);
    if (a->prev)
        a->prev->next = a->next;
    else
        l->open = a->next;
    if (a->next)
        a->next->prev = a->prev;
    pthread_mutex_unlock(&l->lock);
    a->open = false;
    return a->joules;
}

void energy_ledger_figures(struct energy_ledger *l, struct energy_figures *out)
{
    pthread_mutex_lock(&l->lock);
    share_out(l);
    *out = (struct energy_figures){.kind = l->energy.kind,
                                   .estimated = energy_is_estimated(&l->energy),
                                   .request_joules = l->shared,
                                   .idle_joules = l->idle,
                                   .watts = l->energy.watts};
    pthread_mutex_unlock(&l->lock);
}
