/* ask_request.c - see ask_request.h. */
#include "apps/home/ask/ask_request.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"

void ask_request_unref(struct ask_request *r)
{
    if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
        return;
    shoal_task_free(r->task);
    home_file_unref(r->home);
    buf_fini(&r->reply);
    arena_fini(&r->arena);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->finished);
    mem_free(r);
}

void ask_request_emit(struct ask_request *r, const struct ask_event *ev)
{
    if (r->event)
        r->event(r->event_ctx, r, ev);
}

void ask_request_fail(struct ask_request *r, int code, const char *message)
{
    pthread_mutex_lock(&r->lock); /* the submitting thread and an engine may both fail */
    if (r->code == 0) {           /* the first failure is reported */
        r->code = code;
        snprintf(r->message, sizeof(r->message), "%s", message);
    }
    pthread_mutex_unlock(&r->lock);
}

void ask_request_step(struct ask_request *r, const char *name, const char *model)
{
    uint64_t now = clock_ns();
    if (r->n_steps < ASK_MAX_STEPS)
        r->steps[r->n_steps++] = (struct ask_plan_step){.name = name,
                                                        .model = model,
                                                        .start_ns = r->step_ns - r->start_ns,
                                                        .ns = now - r->step_ns,
                                                        .tokens = r->step_tokens};
    r->step_ns = now;
    r->step_tokens = 0;
}

void ask_request_finish(struct ask_request *r)
{
    r->total_ns = clock_ns() - r->start_ns;
    ask_request_emit(
        r, &(struct ask_event){.kind = ASK_EVENT_DONE, .code = r->code, .message = r->message});
    pthread_mutex_lock(&r->lock);
    r->done = true;
    pthread_cond_broadcast(&r->finished);
    pthread_mutex_unlock(&r->lock);
    ask_request_unref(r);
}

void ask_request_keep_task(struct ask_request *r, struct shoal_task *t)
{
    pthread_mutex_lock(&r->lock);
    r->task = t;
    pthread_mutex_unlock(&r->lock);
    if (atomic_load_explicit(&r->cancel, memory_order_relaxed))
        shoal_task_cancel(t);
}

void ask_request_drop_task(struct ask_request *r)
{
    pthread_mutex_lock(&r->lock);
    shoal_task_free(r->task);
    r->task = NULL;
    pthread_mutex_unlock(&r->lock);
}

void ask_request_part_done(struct ask_request *r)
{
    if (atomic_fetch_sub_explicit(&r->pending, 1, memory_order_acq_rel) == 1)
        r->advance(r);
}
