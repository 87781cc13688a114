/* task.c - see task.h. */
#include "engine/task.h"

#include <float.h>

#include "base/mem.h"
#include "engine/job.h"

void task_destroy(struct shoal_task *t)
{
    job_destroy(t->job);
    shoal_adapter_close(t->adapter);
    text_out_fini(&t->text);
    constraint_unref(t->constraint.c);
    mem_free(t->tokens);
    mem_free(t->pages);
    mem_free(t->bias);
    mem_free(t);
}

void task_unref(struct shoal_task *t)
{
    /* acq_rel: the thread that frees sees all writes of the other side */
    if (atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1)
        task_destroy(t);
}

int task_rank(const struct shoal_task *a, const struct shoal_task *b)
{
    if (a->due != b->due)
        return a->due ? -1 : 1;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    uint64_t da = a->deadline_ns ? a->deadline_ns : UINT64_MAX;
    uint64_t db = b->deadline_ns ? b->deadline_ns : UINT64_MAX;
    if (da != db)
        return da < db ? -1 : 1;
    return (b->n_continued > 0) - (a->n_continued > 0);
}

bool task_goes_before(const struct shoal_task *a, const struct shoal_task *b)
{
    const int rank = task_rank(a, b);
    return rank < 0 || (rank == 0 && a->serial < b->serial);
}

int task_gave_up(const struct shoal_task *t, uint64_t now)
{
    if (atomic_load_explicit(&t->cancel, memory_order_relaxed))
        return SHOAL_ECANCELLED;
    return t->deadline_ns && now > t->deadline_ns ? SHOAL_EDEADLINE : 0;
}

int task_check_weight(float weight, struct err *e)
{
    if (weight >= 0 && weight <= FLT_MAX)
        return 0;
    return err_set(e, SHOAL_EINVAL, "weight is %g, expected 0 (which means 1) or a positive number",
                   (double)weight);
}

const struct shoal_result *shoal_task_result(const struct shoal_task *t)
{
    return t && t->job ? &t->job->result : NULL;
}

void shoal_task_cancel(struct shoal_task *t)
{
    if (t)
        atomic_store_explicit(&t->cancel, true, memory_order_relaxed);
}

void shoal_task_free(struct shoal_task *t)
{
    if (!t)
        return;
    shoal_task_cancel(t);
    task_unref(t);
}
