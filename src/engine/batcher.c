/* batcher.c - the thread of an engine with a specialist: takes the best tasks that fit one batch,
 * computes them together and returns the results.
 *
 * It never waits for a batch to fill: tasks that arrive while one runs make up the next.  So an
 * idle engine answers at once and a busy one runs large batches. */
#include "engine/batcher.h"

#include "base/clock.h"
#include "base/thread/crew.h"
#include "engine/engine_files.h"
#include "engine/job.h"
#include "engine/queue.h"

static void finish(struct shoal_engine *en, struct shoal_task *t, int code)
{
    struct job *j = t->job;
    uint64_t now = clock_ns();
    if (t->started_ns)
        fair_end(&en->fair, t);
    if (code == 0 &&
        j->result.code == 0) /* otherwise the answer may mix two versions of the model */
        code = engine_files_check_end(en);
    if (code < 0)
        job_fail(j, code, err_text(code));
    j->result.queue_ns = (t->started_ns ? t->started_ns : now) - t->submitted_ns;
    j->result.run_ns = t->started_ns ? now - t->started_ns : 0;
    j->result.total_ns = now - t->submitted_ns;
    atomic_fetch_sub_explicit(&en->cost_ahead, j->cost, memory_order_relaxed);
    if (j->result.code == 0)
        cost_saw_total(&en->cost, now, t->predicted_ns, j->result.total_ns);
    if (j->o.done)
        j->o.done(j->o.done_ctx, &j->result);
    queue_done(en, t, j->result.code);
}

/* Ends cancelled and late tasks, and takes the best of the others. */
static uint32_t gather(struct shoal_engine *en, uint32_t *cost)
{
    uint64_t now = clock_ns();
    uint32_t n = 0;
    *cost = 0;
    struct shoal_task **at;
    while (n < en->specialist.max_jobs && (at = fair_best(&en->fair))) {
        struct shoal_task *t = *at;
        int code = task_gave_up(t, now);
        if (code == 0 && n > 0 && *cost + t->job->cost > en->specialist.max_cost)
            break; /* keep the order: a smaller task must not overtake */
        queue_take(en, at);
        if (code < 0) {
            finish(en, t, code);
            continue;
        }
        t->started_ns = now;
        fair_begin(&en->fair, t);
        *cost += t->job->cost;
        en->active[n] = t;
        en->jobs[n++] = t->job;
    }
    return n;
}

void batcher_finish(struct job *j)
{
    struct shoal_task *t = j->task;
    t->engine->active[j->place] = NULL;
    t->engine->files_checked = false; /* the engine continues with the batch after it */
    finish(t->engine, t, 0);
}

static void run_batch(struct shoal_engine *en, uint32_t n, uint32_t cost)
{
    run_watch_begin(&en->watch, clock_ns());
    for (uint32_t i = 0; i < n; i++) {
        en->jobs[i]->place = i;
        en->jobs[i]->result.batch = n;
    }
    if (en->specialist.lane) /* the best job is first */
        crew_lane_set_urgency(en->specialist.lane, en->active[0]->priority,
                              en->active[0]->deadline_ns);
    en->specialist.ops->run(en->specialist.self, en->jobs, n);
    uint64_t now = clock_ns();
    en->files_checked = false;
    cost_saw_units(&en->cost, now, run_watch_took(&en->watch, now), cost);
    for (uint32_t i = 0; i < n; i++)
        if (en->active[i])
            finish(en, en->active[i], 0);
}

void *batcher_main(void *engine)
{
    struct shoal_engine *en = engine;
    while (queue_receive(en)) {
        uint32_t cost, n = gather(en, &cost);
        if (n > 0) {
            fair_age(&en->fair, en->active, n, cost); /* for the next batch */
            run_batch(en, n, cost);
        }
    }
    for (struct shoal_task **at; (at = fair_best(&en->fair));) {
        struct shoal_task *t = *at;
        queue_take(en, at);
        finish(en, t, SHOAL_ECANCELLED);
    }
    return NULL;
}
