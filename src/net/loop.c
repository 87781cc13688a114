/* loop.c - see loop.h.
 *
 * Timers are a wheel of lists: setting and clearing change two pointers, which suits timeouts
 * that are set for every read and almost never fire. */
#include "net/loop.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define N_SLOTS 1024u
#define TICK_NS 5000000u /* 5 ms */
#define MAX_EVENTS 256

struct task_list {
    struct executor_task *head, **end;
};

struct loop {
    struct executor executor; /* first */
    int epoll_fd;
    struct loop_io wake;
    _Atomic(struct executor_task *) posted; /* newest first */
    _Atomic bool stop, asleep;              /* asleep: in epoll_wait, or about to */
    struct task_list later, next;           /* tasks of this turn, and of the next one */
    uint64_t now;
    uint64_t tick; /* slots up to this one were processed */
    uint32_t n_timers;
    uint64_t used[N_SLOTS / 64];
    struct executor_timer slots[N_SLOTS]; /* heads of rings */
};

static void executor_post_to(struct executor *x, struct executor_task *t)
{
    loop_post((struct loop *)(void *)x, t);
}

static void executor_put_off(struct executor *x, struct executor_task *t)
{
    loop_later((struct loop *)(void *)x, t);
}

static void executor_set_timer(struct executor *x, struct executor_timer *t, uint64_t at_ns)
{
    loop_timer_set((struct loop *)(void *)x, t, at_ns);
}

static void executor_clear_timer(struct executor *x, struct executor_timer *t)
{
    loop_timer_clear((struct loop *)(void *)x, t);
}

struct executor *loop_executor(struct loop *l)
{
    static const struct executor_ops ops = {executor_post_to, executor_put_off, executor_set_timer,
                                            executor_clear_timer};
    l->executor.ops = &ops;
    return &l->executor;
}

static void on_wake(struct loop_io *io, uint32_t events)
{
    (void)io;
    (void)events; /* edge-triggered: each write is reported once, so the counter need not be read */
}

int loop_create(struct loop **out, struct err *e)
{
    struct loop *l = mem_zalloc(sizeof(*l));
    *out = NULL;
    if (!l)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the event loop");
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    l->wake = (struct loop_io){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .fn = on_wake};
    l->later.end = &l->later.head;
    l->next.end = &l->next.head;
    l->now = clock_ns();
    l->tick = l->now / TICK_NS;
    for (uint32_t i = 0; i < N_SLOTS; i++)
        l->slots[i].prev = l->slots[i].next = &l->slots[i];
    int rc = 0;
    if (l->epoll_fd < 0 || l->wake.fd < 0)
        rc = err_set(e, SHOAL_EIO, "cannot create an event loop: %s", strerror(errno));
    if (rc == 0)
        rc = loop_io_add(l, &l->wake, EPOLLIN | EPOLLET, e);
    if (rc < 0) {
        loop_destroy(l);
        return rc;
    }
    *out = l;
    return 0;
}

void loop_destroy(struct loop *l)
{
    if (!l)
        return;
    if (l->wake.fd >= 0)
        close(l->wake.fd);
    if (l->epoll_fd >= 0)
        close(l->epoll_fd);
    mem_free(l);
}

uint64_t loop_now(const struct loop *l)
{
    return l->now;
}

/* ---- descriptors ---- */

static int control(struct loop *l, int op, struct loop_io *io)
{
    struct epoll_event ev = {.events = io->events, .data.ptr = io};
    return epoll_ctl(l->epoll_fd, op, io->fd, &ev);
}

int loop_io_add(struct loop *l, struct loop_io *io, uint32_t events, struct err *e)
{
    io->events = events;
    if (control(l, EPOLL_CTL_ADD, io) < 0)
        return err_set(e, SHOAL_EIO, "cannot watch a descriptor: %s", strerror(errno));
    return 0;
}

void loop_io_set(struct loop *l, struct loop_io *io, uint32_t events)
{
    if (io->events == events)
        return;
    io->events = events;
    (void)control(l, EPOLL_CTL_MOD, io); /* fails only for a descriptor that was not added */
}

void loop_io_del(struct loop *l, struct loop_io *io)
{
    (void)control(l, EPOLL_CTL_DEL, io);
}

/* ---- timers ---- */

void loop_timer_clear(struct loop *l, struct executor_timer *t)
{
    if (!t->prev)
        return;
    t->prev->next = t->next;
    t->next->prev = t->prev;
    t->prev = t->next = NULL;
    l->n_timers--;
}

void loop_timer_set(struct loop *l, struct executor_timer *t, uint64_t at_ns)
{
    uint64_t tick = at_ns / TICK_NS + 1;
    loop_timer_clear(l, t);
    if (tick <= l->tick)
        tick = l->tick + 1;
    uint32_t slot = (uint32_t)(tick % N_SLOTS);
    struct executor_timer *head = &l->slots[slot];
    t->at_ns = at_ns;
    t->next = head;
    t->prev = head->prev;
    head->prev->next = t;
    head->prev = t;
    l->used[slot / 64] |= (uint64_t)1 << (slot % 64);
    l->n_timers++;
}

/* Milliseconds until the next slot with timers; -1: none. */
static int next_timeout(struct loop *l)
{
    if (l->n_timers == 0)
        return -1;
    for (uint64_t k = 1; k <= N_SLOTS; k++) {
        uint32_t slot = (uint32_t)((l->tick + k) % N_SLOTS);
        if (slot % 64 == 0 && l->used[slot / 64] == 0) {
            k += 63;
            continue;
        }
        if (!(l->used[slot / 64] >> (slot % 64) & 1))
            continue;
        if (l->slots[slot].next == &l->slots[slot]) { /* emptied by clear */
            l->used[slot / 64] &= ~((uint64_t)1 << (slot % 64));
            continue;
        }
        uint64_t at = (l->tick + k) * TICK_NS;
        return at > l->now ? (int)((at - l->now) / 1000000u) + 1 : 0;
    }
    return (int)(N_SLOTS * (TICK_NS / 1000000u));
}

static void run_slot(struct loop *l, uint32_t slot)
{
    struct executor_timer *head = &l->slots[slot], due;
    if (head->next == head)
        return;
    /* Callbacks may set and clear timers of this slot, so due timers are moved out of it first. */
    due.prev = due.next = &due;
    for (struct executor_timer *t = head->next, *next; t != head; t = next) {
        next = t->next;
        if (t->at_ns > l->now)
            continue; /* due in due in a later round of the wheel */
        t->prev->next = t->next;
        t->next->prev = t->prev;
        t->next = &due;
        t->prev = due.prev;
        due.prev->next = t;
        due.prev = t;
    }
    while (due.next != &due) {
        struct executor_timer *t = due.next;
        loop_timer_clear(l, t);
        t->fn(t);
    }
}

static void run_timers(struct loop *l)
{
    uint64_t to = l->now / TICK_NS;
    if (l->n_timers == 0 || to - l->tick > N_SLOTS) {
        uint64_t from = to > N_SLOTS ? to - N_SLOTS : 0;
        l->tick = l->n_timers == 0 ? to : from;
    }
    while (l->tick < to) {
        l->tick++;
        run_slot(l, (uint32_t)(l->tick % N_SLOTS));
    }
}

/* ---- posts ---- */

static void wake(struct loop *l)
{
    uint64_t one = 1;
    if (write(l->wake.fd, &one, sizeof(one)) < 0) /* full: the loop is already awake */
        return;
}

void loop_post(struct loop *l, struct executor_task *task)
{
    struct executor_task *head = atomic_load_explicit(&l->posted, memory_order_relaxed);
    do {
        task->next = head;
        /* release: the loop sees what the task points to; seq_cst: either the loop sees the task
         * before it sleeps, or we see that it sleeps */
    } while (!atomic_compare_exchange_weak_explicit(&l->posted, &head, task, memory_order_seq_cst,
                                                    memory_order_relaxed));
    if (atomic_load_explicit(&l->asleep, memory_order_seq_cst) &&
        atomic_exchange_explicit(&l->asleep, false,
                                 memory_order_seq_cst)) /* only one thread wakes the loop */
        wake(l);
}

static void run_posted(struct loop *l)
{
    struct executor_task *list = atomic_exchange_explicit(&l->posted, NULL, memory_order_acquire);
    struct executor_task *in_order = NULL;
    while (list) {
        struct executor_task *next = list->next;
        list->next = in_order;
        in_order = list;
        list = next;
    }
    while (in_order) {
        struct executor_task *t = in_order;
        in_order = t->next;
        t->fn(t);
    }
}

static void append(struct task_list *list, struct executor_task *task)
{
    if (task->queued)
        return;
    task->queued = true;
    task->next = NULL;
    *list->end = task;
    list->end = &task->next;
}

void loop_later(struct loop *l, struct executor_task *task)
{
    append(&l->later, task);
}

void loop_next(struct loop *l, struct executor_task *task)
{
    append(&l->next, task);
}

static bool take_out(struct task_list *list, const struct executor_task *task)
{
    struct executor_task **at = &list->head;
    while (*at && *at != task)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = task->next;
    if (!*at)
        list->end = at;
    return true;
}

void loop_forget(struct loop *l, struct executor_task *task)
{
    if (!task->queued)
        return;
    if (!take_out(&l->later, task))
        (void)take_out(&l->next, task);
    task->queued = false;
}

/* Tasks deferred while this runs are run in the same turn. */
static void run_later(struct loop *l)
{
    while (l->later.head) {
        struct executor_task *t = l->later.head;
        l->later.head = t->next;
        if (!l->later.head)
            l->later.end = &l->later.head;
        t->queued = false;
        t->fn(t);
    }
}

/* What was put off to this turn will run at its end. */
static void take_next(struct loop *l)
{
    if (!l->next.head)
        return;
    *l->later.end = l->next.head;
    l->later.end = l->next.end;
    l->next = (struct task_list){NULL, &l->next.head};
}

void loop_stop(struct loop *l)
{
    atomic_store_explicit(&l->stop, true, memory_order_relaxed);
    wake(l);
}

void loop_flush(struct loop *l)
{
    run_posted(l);
    take_next(l);
    run_later(l);
}

void loop_turn(struct loop *l, int max_wait_ms)
{
    struct epoll_event events[MAX_EVENTS];
    int wait = next_timeout(l);
    if (max_wait_ms >= 0 && (wait < 0 || wait > max_wait_ms))
        wait = max_wait_ms;
    atomic_store_explicit(&l->asleep, true, memory_order_seq_cst);
    if (l->later.head || l->next.head || atomic_load_explicit(&l->posted, memory_order_seq_cst))
        wait = 0;
    int n = epoll_wait(l->epoll_fd, events, MAX_EVENTS, wait);
    atomic_store_explicit(&l->asleep, false, memory_order_relaxed);
    l->now = clock_ns();
    take_next(l);
    for (int i = 0; i < n; i++) {
        struct loop_io *io = events[i].data.ptr;
        io->fn(io, events[i].events);
    }
    run_posted(l);
    run_timers(l);
    run_later(l);
}

void loop_run(struct loop *l)
{
    while (!atomic_load_explicit(&l->stop, memory_order_relaxed))
        loop_turn(l, -1);
    loop_flush(l);
}
