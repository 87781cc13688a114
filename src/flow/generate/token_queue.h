/* token_queue.h - carries tokens from an engine's thread to the owner's.
 *
 * The engine only appends to a bounded queue and posts a task, so a slow client never blocks it.
 *
 * Thread:    push: the engine's.  The rest: the owner's.
 * Ownership: what take gives stays valid until the next take.
 * Failure:   sticky: a full queue (SHOAL_EBUSY) or no memory (SHOAL_ENOMEM) loses tokens, which
 *            take reports; the end of a choice is never lost. */
#ifndef SHOAL_FLOW_GENERATE_TOKEN_QUEUE_H
#define SHOAL_FLOW_GENERATE_TOKEN_QUEUE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/thread/executor.h"
#include "shoal/shoal.h"

struct kept_token;

struct token_queue_progress { /* of a prompt, in tokens */
    uint32_t tokens, cached, computed;
};

struct token_queue_end { /* of one choice */
    struct shoal_event done;
    bool is_done; /* under the lock, as are the next */
    bool progressed;
    struct token_queue_progress progress; /* the latest */
};

struct token_queue {
    pthread_mutex_t lock; /* guards queue, posted, overflow and what changes in ends */
    struct buf queue, taken;
    bool posted;
    int overflow;
    struct executor *executor;
    struct executor_task *wake; /* posted when records are waiting */
};

void token_queue_init(struct token_queue *q, struct executor *x, struct executor_task *wake);
void token_queue_fini(struct token_queue *q);
/* From an engine's event.  end: of the choice, filled by the last event. */
void token_queue_push(struct token_queue *q, struct token_queue_end *end, uint32_t choice,
                      const struct shoal_event *ev);
/* All records so far; is_done[i] tells whether choice i has ended. Returns 0, or the reason why
 * tokens were lost. */
int token_queue_take(struct token_queue *q, const struct token_queue_end *ends, uint32_t n,
                     bool *is_done, const char **records, size_t *n_bytes);
/* Prefill progress of a choice; false: unchanged since the last call. */
bool token_queue_progress(struct token_queue *q, struct token_queue_end *end,
                          struct token_queue_progress *out);
/* Reads the record at *at and advances; false: no more records. */
bool token_queue_next(const char *records, size_t n, size_t *at, struct kept_token *out);

#endif
