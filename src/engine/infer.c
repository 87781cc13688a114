/* infer.c - submitting inferences to an engine with a specialist, and what is asked of it. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/engine_int.h"

/* A text that nobody means; a model reads some hundred tokens of it anyway. */
#define MAX_TEXT_BYTES ((size_t)16 << 20)
#define MAX_VALUES (1u << 24)

static const struct {
    enum shoal_kind kind;
    const char *name;
} kinds[] = {
    {SHOAL_KIND_GENERATE, "generate"}, {SHOAL_KIND_CLASSIFY, "classify"},
    {SHOAL_KIND_TAG, "tag"},           {SHOAL_KIND_EMBED, "embed"},
    {SHOAL_KIND_RERANK, "rerank"},     {SHOAL_KIND_SUMMARIZE, "summarize"},
    {SHOAL_KIND_SCORE, "score"},
};

const char *shoal_kind_name(enum shoal_kind kind)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i].kind == kind)
            return kinds[i].name;
    return NULL;
}

int job_gave_up(const struct job *j)
{
    if (atomic_load_explicit(&j->task->cancel, memory_order_relaxed))
        return SHOAL_ECANCELLED;
    return j->o.deadline_ns && clock_ns() > j->o.deadline_ns ? SHOAL_EDEADLINE : 0;
}

void job_fail(struct job *j, int code, const char *message)
{
    j->result.code = code;
    j->result.message = message;
}

void job_destroy(struct job *j)
{
    if (!j)
        return;
    if (j->ops)
        j->ops->drop(j);
    mem_free(j->text);
    mem_free(j->document);
    mem_free(j->labels);
    mem_free(j->values);
    mem_free(j);
}

/* "classify, embed" */
static void kinds_text(unsigned have, char *out, size_t cap)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && n < cap; i++)
        if (have & kinds[i].kind)
            n += (size_t)snprintf(out + n, cap - n, "%s%s", n ? ", " : "", kinds[i].name);
}

int engine_lacks(const struct shoal_engine *en, enum shoal_kind kind, struct err *e)
{
    char have[96];
    const char *name = shoal_kind_name(kind);
    kinds_text(en->kinds, have, sizeof(have));
    return err_set(e, SHOAL_EUNSUPPORTED, "this model cannot %s, it can: %s",
                   name ? name : "do that", have);
}

static int check(const struct shoal_engine *en, const struct shoal_infer_opts *o, struct err *e)
{
    if (!shoal_kind_name(o->kind) || o->kind == SHOAL_KIND_GENERATE || !(en->kinds & o->kind))
        return engine_lacks(en, o->kind, e);
    if (o->kind == SHOAL_KIND_SCORE) {
        if (!o->values || o->n_values == 0 || o->n_values > MAX_VALUES)
            return err_set(e, SHOAL_EINVAL, "%u values to score, expected 1 to %u", o->n_values,
                           MAX_VALUES);
    } else if (!o->text || o->text_bytes > MAX_TEXT_BYTES || o->document_bytes > MAX_TEXT_BYTES) {
        return err_set(
            e, SHOAL_EINVAL,
            o->text ? "a text of %zu bytes, at most %zu are read" : "the text is missing",
            o->text_bytes > o->document_bytes ? o->text_bytes : o->document_bytes, MAX_TEXT_BYTES);
    }
    if (o->kind == SHOAL_KIND_RERANK && !o->document)
        return err_set(e, SHOAL_EINVAL, "no document to compare the query with");
    if (o->deadline_ns && clock_ns() > o->deadline_ns)
        return err_set(e, SHOAL_EDEADLINE, "the deadline passed before the task was submitted");
    return 0;
}

static struct job *job_create(const struct shoal_infer_opts *o)
{
    struct job *j = mem_zalloc(sizeof(*j));
    if (!j)
        return NULL;
    j->o = *o;
    j->result.kind = o->kind;
    bool score = o->kind == SHOAL_KIND_SCORE;
    j->text = score ? NULL : mem_strndup(o->text, o->text_bytes);
    j->document = o->document ? mem_strndup(o->document, o->document_bytes) : NULL;
    j->labels = o->labels ? mem_strdup(o->labels) : NULL;
    j->values = score ? mem_alloc(o->n_values * sizeof(*j->values)) : NULL;
    if ((!score && !j->text) || (o->document && !j->document) || (o->labels && !j->labels) ||
        (score && !j->values)) {
        job_destroy(j);
        return NULL;
    }
    if (score)
        memcpy(j->values, o->values, o->n_values * sizeof(*j->values));
    j->o.text = j->text;
    j->o.document = j->document;
    j->o.labels = j->labels;
    j->o.values = j->values;
    return j;
}

/* Refused at once when what is ahead and this task's own work take longer than there is time. */
static int feasible(struct shoal_engine *en, const struct job *j, struct err *e)
{
    double speed = atomic_load_explicit(&en->ns_per_cost, memory_order_relaxed);
    uint64_t ahead = atomic_load_explicit(&en->cost_ahead, memory_order_relaxed);
    /* what is ahead may all be of lower rank; it is counted when there is more than a batch */
    uint64_t units = j->cost + (ahead > en->specialist.max_cost ? ahead : 0);
    return refuse_late((double)units * speed, j->o.deadline_ns,
                       (_Atomic double *const[]){&en->ns_per_cost}, 1, e);
}

int shoal_infer_submit(struct shoal_engine *en, const struct shoal_infer_opts *o,
                       struct shoal_task **task, struct shoal_error *err)
{
    struct err *e = (struct err *)(void *)err;
    *task = NULL;
    int rc = check(en, o, e);
    if (rc < 0)
        return rc;
    struct shoal_task *t = mem_zalloc(sizeof(*t));
    struct job *j = t ? job_create(o) : NULL;
    if (!j) {
        mem_free(t);
        return err_set(e, SHOAL_ENOMEM, "task");
    }
    t->engine = en;
    t->job = j;
    t->deadline_ns = o->deadline_ns;
    t->priority = o->priority;
    atomic_init(&t->refs, 2);
    j->task = t;
    j->ops = en->specialist.ops;
    rc = en->specialist.ops->prepare(en->specialist.self, j, e);
    if (rc == 0)
        rc = feasible(en, j, e);
    if (rc == 0) {
        atomic_fetch_add_explicit(&en->cost_ahead, j->cost, memory_order_relaxed);
        rc = task_submit(en, t, o->held, e);
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

const struct shoal_result *shoal_task_result(const struct shoal_task *t)
{
    return t->job ? &t->job->result : NULL;
}

const char *shoal_label_set(const struct shoal_engine *en, enum shoal_kind kind, uint32_t i)
{
    const struct specialist *sp = &en->specialist;
    return sp->ops && sp->ops->label_set && (sp->kinds & kind)
               ? sp->ops->label_set(sp->self, kind, i)
               : NULL;
}

const char *shoal_label(const struct shoal_engine *en, enum shoal_kind kind, const char *set,
                        uint32_t i)
{
    const struct specialist *sp = &en->specialist;
    return sp->ops && sp->ops->label && (sp->kinds & kind) ? sp->ops->label(sp->self, kind, set, i)
                                                           : NULL;
}

const char *shoal_input_name(const struct shoal_engine *en, uint32_t i)
{
    const struct specialist *sp = &en->specialist;
    return sp->ops && sp->ops->input ? sp->ops->input(sp->self, i) : NULL;
}
