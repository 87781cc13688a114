/* pool.c - see pool.h. */
#include "flow/pool.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/mem.h"
#include "base/thread/thread.h"

#define MAX_THREADS 16u

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct pool_task *head, **tail;
    uint32_t n_waiting, max_waiting, n_threads;
    bool stop;
    pthread_t threads[MAX_THREADS];
};

static void *run(void *arg)
{
    struct pool *p = arg;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        struct pool_task *t = p->head;
        if (t) {
            p->head = t->next;
            if (!p->head)
                p->tail = &p->head;
            p->n_waiting--;
            pthread_mutex_unlock(&p->lock);
            t->fn(t);
            pthread_mutex_lock(&p->lock);
        } else if (p->stop) {
            break;
        } else {
            pthread_cond_wait(&p->work, &p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

int pool_create(struct pool **out, uint32_t n_threads, uint32_t max_waiting, struct err *e)
{
    struct pool *p = mem_zalloc(sizeof(*p));
    *out = NULL;
    if (!p)
        return err_set(e, SHOAL_ENOMEM, "thread pool");
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    p->tail = &p->head;
    p->max_waiting = max_waiting;
    n_threads = n_threads < MAX_THREADS ? n_threads : MAX_THREADS;
    int rc = 0;
    while (p->n_threads < n_threads &&
           (rc = thread_create_numbered(&p->threads[p->n_threads], "pool", p->n_threads, run, p,
                                        e)) == 0)
        p->n_threads++;
    if (p->n_threads == 0) { /* it also works with fewer threads than wanted */
        pool_destroy(p);
        return rc;
    }
    *out = p;
    return 0;
}

void pool_destroy(struct pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (uint32_t i = 0; i < p->n_threads; i++)
        pthread_join(p->threads[i], NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->work);
    mem_free(p);
}

int pool_submit(struct pool *p, struct pool_task *t)
{
    int rc = 0;
    pthread_mutex_lock(&p->lock);
    if (p->n_waiting >= p->max_waiting) {
        rc = SHOAL_EBUSY;
    } else {
        t->next = NULL;
        *p->tail = t;
        p->tail = &t->next;
        p->n_waiting++;
        pthread_cond_signal(&p->work);
    }
    pthread_mutex_unlock(&p->lock);
    return rc;
}
