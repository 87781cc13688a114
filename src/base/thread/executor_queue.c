/* executor_queue.c - see executor_queue.h. */
#include "base/thread/executor_queue.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

static struct executor_queue *queue_of(struct executor *x)
{
    return (struct executor_queue *)(void *)x; /* its first member */
}

static void on_post(struct executor *x, struct executor_task *t)
{
    struct executor_queue *q = queue_of(x);
    const uint64_t one = 1;
    t->next = NULL;
    pthread_mutex_lock(&q->lock);
    bool first = !q->posted;
    *q->posted_end = t;
    q->posted_end = &t->next;
    /* Under the lock, so that the owner cannot have closed the descriptor.  One write until the
     * next read never fills the counter. */
    ssize_t n = first ? write(q->fd, &one, sizeof(one)) : 0;
    assert(n >= 0);
    (void)n;
    pthread_mutex_unlock(&q->lock);
}

static void on_later(struct executor *x, struct executor_task *t)
{
    struct executor_queue *q = queue_of(x);
    if (t->queued)
        return;
    t->queued = true;
    t->next = NULL;
    *q->deferred_end = t;
    q->deferred_end = &t->next;
}

static void on_timer_clear(struct executor *x, struct executor_timer *t)
{
    (void)x;
    if (!t->prev)
        return;
    t->prev->next = t->next;
    t->next->prev = t->prev;
    t->prev = t->next = NULL;
}

static void on_timer_set(struct executor *x, struct executor_timer *t, uint64_t at_ns)
{
    struct executor_timer *head = &queue_of(x)->timers;
    on_timer_clear(x, t);
    struct executor_timer *before = head->prev;
    while (before != head && before->at_ns > at_ns)
        before = before->prev;
    t->at_ns = at_ns;
    t->prev = before;
    t->next = before->next;
    before->next->prev = t;
    before->next = t;
}

int executor_queue_init(struct executor_queue *q, struct err *e)
{
    static const struct executor_ops ops = {on_post, on_later, on_timer_set, on_timer_clear};
    *q = (struct executor_queue){.executor = {&ops}};
    q->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (q->fd < 0)
        return err_set(e, SHOAL_EIO, "eventfd: %s", strerror(errno));
    pthread_mutex_init(&q->lock, NULL);
    q->posted_end = &q->posted;
    q->deferred_end = &q->deferred;
    q->timers.prev = q->timers.next = &q->timers;
    return 0;
}

void executor_queue_fini(struct executor_queue *q)
{
    pthread_mutex_lock(&q->lock); /* the last thread that posted may still hold it */
    pthread_mutex_unlock(&q->lock);
    pthread_mutex_destroy(&q->lock);
    close(q->fd);
    q->fd = -1;
}

static bool run_timers(struct executor_queue *q)
{
    uint64_t now = clock_ns();
    bool any = false;
    while (q->timers.next != &q->timers && q->timers.next->at_ns <= now) {
        struct executor_timer *t = q->timers.next;
        on_timer_clear(&q->executor, t);
        t->fn(t);
        any = true;
    }
    return any;
}

static bool run_posted(struct executor_queue *q)
{
    uint64_t count;
    pthread_mutex_lock(&q->lock);
    struct executor_task *t = q->posted, *next;
    q->posted = NULL;
    q->posted_end = &q->posted;
    ssize_t n = t ? read(q->fd, &count, sizeof(count)) : 0;
    assert(n >= 0); /* the first post has written */
    (void)n;
    pthread_mutex_unlock(&q->lock);
    bool any = t != NULL;
    for (; t; t = next) {
        next = t->next; /* fn may free t, or post it again */
        t->fn(t);
    }
    return any;
}

static bool run_deferred(struct executor_queue *q)
{
    struct executor_task *t = q->deferred, *next;
    bool any = t != NULL;
    q->deferred = NULL;
    q->deferred_end = &q->deferred;
    for (; t; t = next) {
        next = t->next;
        t->queued = false;
        t->fn(t);
    }
    return any;
}

bool executor_queue_run(struct executor_queue *q)
{
    bool any = q->timers.next != &q->timers && run_timers(q);
    any |= run_posted(q);
    any |= run_deferred(q);
    return any;
}

int executor_queue_wait_ms(const struct executor_queue *q)
{
    if (q->deferred)
        return 0;
    if (q->timers.next == &q->timers)
        return -1;
    uint64_t now = clock_ns(), at = q->timers.next->at_ns;
    uint64_t ms = at > now ? (at - now + 999999u) / 1000000u : 0;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

bool executor_queue_turn(struct executor_queue *q, int max_ms)
{
    if (executor_queue_run(q))
        return true;
    int ms = executor_queue_wait_ms(q);
    if (max_ms >= 0 && (ms < 0 || ms > max_ms))
        ms = max_ms;
    struct pollfd p = {.fd = q->fd, .events = POLLIN};
    (void)poll(&p, 1, ms); /* interrupted: treated as a timeout */
    return executor_queue_run(q);
}
