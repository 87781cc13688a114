/* map_guard.c - see map_guard.h.
 *
 * The list is the one global that is not constant: a signal handler has no other way to find the
 * mappings.  Entries are reused and never freed, so the handler may walk the list at any time
 * without a lock. */
#include "base/file/map_guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

struct map_guard {
    _Atomic uintptr_t from, to; /* to 0: the entry is free */
    _Atomic int prot;
    _Atomic bool broken;
    struct map_guard *next;
};

/* Enough for the usual number of models; more come from the heap. */
static struct map_guard pool[64];

static struct {
    pthread_mutex_t lock; /* held to add or remove; the handler takes no lock */
    bool installed;
    size_t n_pool; /* entries of pool that are in the list */
    _Atomic(struct map_guard *) first;
    struct sigaction before;
    uintptr_t page;
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool repair(uintptr_t at)
{
    for (struct map_guard *g = atomic_load_explicit(&guard.first, memory_order_acquire); g;
         g = g->next) {
        /* acquire: `to` is stored last when an entry is filled */
        uintptr_t to = atomic_load_explicit(&g->to, memory_order_acquire);
        if (at >= to || at < atomic_load_explicit(&g->from, memory_order_relaxed))
            continue;
        void *page = (void *)(at / guard.page * guard.page);
        if (mmap(page, guard.page, atomic_load_explicit(&g->prot, memory_order_relaxed),
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
            return false;
        atomic_store_explicit(&g->broken, true, memory_order_release);
        return true;
    }
    return false;
}

static void on_sigbus(int signal, siginfo_t *info, void *context)
{
    if (info->si_code > 0 && repair((uintptr_t)info->si_addr)) /* > 0: raised by a fault */
        return;
    if (guard.before.sa_flags & SA_SIGINFO) {
        guard.before.sa_sigaction(signal, info, context);
    } else if (guard.before.sa_handler != SIG_DFL && guard.before.sa_handler != SIG_IGN) {
        guard.before.sa_handler(signal);
    } else { /* the access is repeated and ends the process as it would have without us */
        struct sigaction standard = {.sa_handler = SIG_DFL};
        (void)sigaction(SIGBUS, &standard, NULL);
        if (info->si_code <= 0)
            (void)raise(signal);
    }
}

/* Under the lock. */
static void install(void)
{
    struct sigaction ours = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (guard.installed)
        return;
    guard.page = (uintptr_t)sysconf(_SC_PAGESIZE);
    (void)sigemptyset(&ours.sa_mask);
    guard.installed = sigaction(SIGBUS, &ours, &guard.before) == 0;
}

struct map_guard *map_guard_add(void *map, size_t n, int prot)
{
    pthread_mutex_lock(&guard.lock);
    install();
    struct map_guard *g = atomic_load_explicit(&guard.first, memory_order_relaxed);
    while (g && atomic_load_explicit(&g->to, memory_order_relaxed) != 0)
        g = g->next;
    if (!g && (g = guard.n_pool < sizeof(pool) / sizeof(pool[0]) ? &pool[guard.n_pool++]
                                                                 : mem_zalloc(sizeof(*g)))) {
        g->next = atomic_load_explicit(&guard.first, memory_order_relaxed);
        atomic_store_explicit(&guard.first, g, memory_order_release);
    }
    if (g) {
        atomic_store_explicit(&g->broken, false, memory_order_relaxed);
        atomic_store_explicit(&g->prot, prot, memory_order_relaxed);
        atomic_store_explicit(&g->from, (uintptr_t)map, memory_order_relaxed);
        atomic_store_explicit(&g->to, (uintptr_t)map + n, memory_order_release);
    }
    pthread_mutex_unlock(&guard.lock);
    return g;
}

void map_guard_remove(struct map_guard *g)
{
    if (!g)
        return;
    pthread_mutex_lock(&guard.lock);
    atomic_store_explicit(&g->to, 0, memory_order_release);
    pthread_mutex_unlock(&guard.lock);
}

bool map_guard_is_broken(const struct map_guard *g)
{
    return g &&
           atomic_load_explicit(&((struct map_guard *)(uintptr_t)g)->broken, memory_order_acquire);
}

void map_guard_set_broken(struct map_guard *g)
{
    if (g)
        atomic_store_explicit(&g->broken, true, memory_order_release);
}
