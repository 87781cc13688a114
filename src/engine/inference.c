/* inference.c - submitting inferences to an engine with a specialist, and its labels.  Any thread.
 */
#include "base/arg.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/sized.h"
#include "engine/engine_state.h"
#include "engine/estimate.h"
#include "engine/job.h"
#include "engine/kinds.h"
#include "engine/queue.h"
#include "engine/task.h"

/* Longer texts are a mistake: a model reads a few hundred tokens of them anyway. */
#define MAX_TEXT_BYTES ((size_t)16 << 20)
#define MAX_SPEECH_BYTES ((size_t)16 << 10)
#define MAX_VALUES (1u << 24)
#define MAX_SAMPLES (1u << 26) /* more than an hour */

/* An image, or a text: what the model reads. */
static int check_image(const struct shoal_engine *en, const struct shoal_infer_opts *o,
                       struct err *e)
{
    if (o->image && !en->specialist.images)
        return err_set(e, SHOAL_EINVAL, "the model reads texts, not images");
    if (!o->image && en->specialist.images)
        return err_set(e, SHOAL_EINVAL, "the model reads images, not texts");
    return o->image && o->text ? err_set(e, SHOAL_EINVAL, "give an image or a text, not both") : 0;
}

static int check(const struct shoal_engine *en, const struct shoal_infer_opts *o, struct err *e)
{
    if (!shoal_kind_name(o->kind) || o->kind == SHOAL_KIND_GENERATE || !(en->kinds & o->kind))
        return kinds_lack(en->kinds, o->kind, e);
    int rc = check_image(en, o, e);
    if (rc < 0)
        return rc;
    if (o->kind == SHOAL_KIND_SCORE) {
        if (!o->values || o->n_values == 0 || o->n_values > MAX_VALUES)
            return err_set(e, SHOAL_EINVAL, "cannot score %u values, expected 1 to %u", o->n_values,
                           MAX_VALUES);
    } else if (o->kind == SHOAL_KIND_TRANSCRIBE) {
        if (!o->samples || o->n_samples == 0 || o->n_samples > MAX_SAMPLES)
            return err_set(e, SHOAL_EINVAL, "cannot hear %u samples, expected 1 to %u",
                           o->n_samples, MAX_SAMPLES);
    } else if (o->kind == SHOAL_KIND_SPEAK && o->text && o->text_bytes > MAX_SPEECH_BYTES) {
        return err_set(e, SHOAL_ELIMIT,
                       "the text has %zu bytes, at most %zu are said at a time: cut it at the end "
                       "of a sentence",
                       o->text_bytes, MAX_SPEECH_BYTES);
    } else if (!o->image &&
               (!o->text || o->text_bytes > MAX_TEXT_BYTES || o->document_bytes > MAX_TEXT_BYTES)) {
        return err_set(
            e, SHOAL_EINVAL,
            o->text ? "the text has %zu bytes, at most %zu are allowed" : "the text is missing",
            o->text_bytes > o->document_bytes ? o->text_bytes : o->document_bytes, MAX_TEXT_BYTES);
    }
    if (o->kind == SHOAL_KIND_RERANK && !o->document)
        return err_set(e, SHOAL_EINVAL, "the document to compare the query with is missing");
    if (o->deadline_ns && clock_ns() > o->deadline_ns)
        return err_set(e, SHOAL_EDEADLINE, "the deadline passed before the task was submitted");
    rc = arg_check_n(o->document, o->document_bytes, "document", e);
    return rc < 0 ? rc : task_check_weight(o->weight, e);
}

/* Refuses at once if the queue and this task would exceed the deadline. */
static int price(struct shoal_engine *en, struct shoal_task *t, struct err *e)
{
    const struct cost_request r = {.units = t->job->cost ? t->job->cost : 1};
    const struct fair_who who = {t->client_id, t->weight, t->priority};
    const struct cost_estimate x = estimate_request(en, &r, &who);
    t->predicted_ns = x.total_ns;
    return cost_check(&x, t->deadline_ns, clock_ns(), e);
}

int shoal_infer_submit(struct shoal_engine *en, const struct shoal_infer_opts *opts,
                       struct shoal_task **task, struct err *e)
{
    struct shoal_infer_opts o;
    struct err own;
    if (!e)
        e = &own;
    int rc = arg_check(task, "task", e);
    if (rc < 0)
        return rc;
    *task = NULL;
    rc = arg_check(en, "engine", e);
    if (rc == 0)
        rc = sized_read(&o, sizeof(o), opts, "shoal_infer_opts", e);
    if (rc == 0)
        rc = check(en, &o, e);
    if (rc < 0)
        return rc;
    struct shoal_task *t = mem_zalloc(sizeof(*t));
    struct job *j = t ? job_create(&o) : NULL;
    if (!j) {
        mem_free(t);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a task");
    }
    t->engine = en;
    t->job = j;
    t->deadline_ns = o.deadline_ns;
    t->priority = o.priority;
    t->client_id = o.client;
    t->weight = task_weight(o.client, o.weight);
    atomic_init(&t->refs, 2);
    j->task = t;
    j->drop = en->specialist.ops->drop;
    rc = en->specialist.ops->prepare(en->specialist.self, j, e);
    j->o.image = NULL; /* the caller's */
    if (rc == 0)
        rc = price(en, t, e);
    if (rc == 0) {
        atomic_fetch_add_explicit(&en->cost_ahead, j->cost, memory_order_relaxed);
        rc = queue_submit(en, t, o.held, e);
        if (rc < 0)
            atomic_fetch_sub_explicit(&en->cost_ahead, j->cost, memory_order_relaxed);
    }
    if (rc < 0) {
        task_destroy(t);
        return rc;
    }
    *task = t;
    return 0;
}

const char *shoal_label_set(const struct shoal_engine *en, enum shoal_kind kind, uint32_t i)
{
    const struct specialist *sp = en ? &en->specialist : NULL;
    return sp && sp->ops && sp->ops->label_set && (sp->kinds & kind)
               ? sp->ops->label_set(sp->self, kind, i)
               : NULL;
}

const char *shoal_label(const struct shoal_engine *en, enum shoal_kind kind, const char *set,
                        uint32_t i)
{
    const struct specialist *sp = en ? &en->specialist : NULL;
    return sp && sp->ops && sp->ops->label && (sp->kinds & kind)
               ? sp->ops->label(sp->self, kind, set, i)
               : NULL;
}

const char *shoal_input_name(const struct shoal_engine *en, uint32_t i)
{
    const struct specialist *sp = en ? &en->specialist : NULL;
    return sp && sp->ops && sp->ops->input ? sp->ops->input(sp->self, i) : NULL;
}
