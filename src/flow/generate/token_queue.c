/* token_queue.c - see token_queue.h. */
#include "flow/generate/token_queue.h"

#include <string.h>

#include "host/kept_answer.h"

#define QUEUE_BYTES ((size_t)256 << 10)

struct record { /* followed by n_top shoal_logprob and the text, padded to 8 bytes */
    uint32_t bytes, choice;
    int32_t token;
    uint32_t text_bytes;
    float logprob;
    uint32_t n_top;
    uint32_t echo;
};

void token_queue_init(struct token_queue *q, struct executor *x, struct executor_task *wake)
{
    *q = (struct token_queue){.executor = x, .wake = wake};
    pthread_mutex_init(&q->lock, NULL);
    buf_init(&q->queue, 2 * QUEUE_BYTES);
    buf_init(&q->taken, 2 * QUEUE_BYTES);
}

void token_queue_fini(struct token_queue *q)
{
    buf_fini(&q->queue);
    buf_fini(&q->taken);
    pthread_mutex_destroy(&q->lock);
}

static void put_record(struct token_queue *q, uint32_t choice, const struct shoal_event *ev)
{
    size_t top = ev->n_top * sizeof(*ev->top), n = sizeof(struct record) + top + ev->text_bytes;
    struct record r = {.bytes = (uint32_t)((n + 7) & ~(size_t)7),
                       .choice = choice,
                       .token = ev->token,
                       .text_bytes = (uint32_t)ev->text_bytes,
                       .logprob = ev->logprob,
                       .n_top = ev->n_top,
                       .echo = ev->kind == SHOAL_EVENT_PROMPT};
    static const char zeros[8];
    if (q->overflow)
        return;
    if (q->queue.len + r.bytes > QUEUE_BYTES) {
        q->overflow = SHOAL_EBUSY;
        return;
    }
    size_t before = q->queue.len;
    buf_put(&q->queue, &r, sizeof(r));
    buf_put(&q->queue, ev->top, top);
    buf_put(&q->queue, ev->text, ev->text_bytes);
    buf_put(&q->queue, zeros, r.bytes - n);
    if (q->queue.rc < 0) { /* half a record would be read as a whole one */
        q->queue.len = before;
        q->overflow = SHOAL_ENOMEM;
    }
}

void token_queue_push(struct token_queue *q, struct token_queue_end *end, uint32_t choice,
                      const struct shoal_event *ev)
{
    pthread_mutex_lock(&q->lock);
    if (ev->kind == SHOAL_EVENT_DONE) {
        end->done = *ev;
        end->is_done = true;
    } else if (ev->kind == SHOAL_EVENT_PROGRESS) {
        end->progress = (struct token_queue_progress){ev->prompt_tokens, ev->cached_tokens,
                                                      ev->computed_tokens};
        end->progressed = true;
    } else {
        put_record(q, choice, ev);
    }
    if (!q->posted && !ev->last) { /* the end wakes the owner once for both */
        q->posted = true;
        /* under the lock: once it is released, the owner may free the queue */
        executor_post(q->executor, q->wake);
    }
    pthread_mutex_unlock(&q->lock);
}

int token_queue_take(struct token_queue *q, const struct token_queue_end *ends, uint32_t n,
                     bool *is_done, const char **records, size_t *n_bytes)
{
    buf_clear(&q->taken);
    pthread_mutex_lock(&q->lock);
    struct buf swap = q->taken;
    q->taken = q->queue;
    q->queue = swap;
    q->posted = false;
    int overflow = q->overflow;
    for (uint32_t i = 0; i < n; i++)
        is_done[i] = ends[i].is_done;
    pthread_mutex_unlock(&q->lock);
    *records = buf_str(&q->taken);
    *n_bytes = q->taken.len;
    return overflow;
}

bool token_queue_progress(struct token_queue *q, struct token_queue_end *end,
                          struct token_queue_progress *out)
{
    pthread_mutex_lock(&q->lock);
    bool news = end->progressed;
    end->progressed = false;
    *out = end->progress;
    pthread_mutex_unlock(&q->lock);
    return news;
}

bool token_queue_next(const char *records, size_t n, size_t *at, struct kept_token *out)
{
    struct record r;
    if (*at >= n)
        return false;
    memcpy(&r, records + *at, sizeof(r));
    const char *p = records + *at + sizeof(r);
    *out = (struct kept_token){.choice = r.choice,
                               .token = r.token,
                               .logprob = r.logprob,
                               .top = (const struct shoal_logprob *)(const void *)p,
                               .n_top = r.n_top,
                               .text = p + r.n_top * sizeof(struct shoal_logprob),
                               .text_bytes = r.text_bytes,
                               .echo = r.echo != 0};
    *at += r.bytes;
    return true;
}
