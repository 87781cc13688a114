/* engine_turns.c - see engine_turns.h. */
#include "engine_turns.h"

#include <math.h>
#include <string.h>

/* ---- requests ---- */

cJSON *turns_request(const char *op)
{
    cJSON *q = cJSON_CreateObject();
    cJSON_AddNumberToObject(q, "id", 1);
    cJSON_AddStringToObject(q, "op", op);
    return q;
}

double turns_field(const cJSON *reply, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(reply, key);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

int turns_load(struct engine_run *b, size_t side, double *ms, struct err *e)
{
    cJSON *q = turns_request("load"), *reply = NULL;
    cJSON_AddStringToObject(q, "model", b->file);
    cJSON_AddNumberToObject(q, "threads", b->o->max_threads);
    cJSON_AddNumberToObject(q, "ctx", b->ctx);
    cJSON_AddNumberToObject(q, "seqs", b->seqs);
    /* the first load may have to tile all weights */
    int rc = duel_ask(&b->d, &b->d.prog[side], q, 5 * b->o->answer_s, &reply, e);
    *ms = turns_field(reply, "load_ms");
    cJSON_Delete(reply);
    return rc;
}

int turns_ready(struct engine_run *b, size_t side, struct err *e)
{
    struct duel_prog *p = &b->d.prog[side];
    double ms;
    if (p->pid && b->holds[side])
        return 0;
    duel_quit(&b->d, p);
    int rc = duel_start(&b->d, p, e);
    if (rc == 0)
        rc = turns_load(b, side, &ms, e);
    b->holds[side] = rc == 0;
    return rc;
}

void turns_hold(struct engine_run *b, const char *file, uint32_t ctx, uint32_t seqs)
{
    if (strcmp(b->file, file) == 0 && b->ctx == ctx && b->seqs == seqs)
        return;
    snprintf(b->file, sizeof(b->file), "%s", file);
    b->ctx = ctx, b->seqs = seqs;
    b->holds[0] = b->holds[1] = false;
}

int turns_ask(struct engine_run *b, size_t side, const struct turns_job *j, double *rate,
              double *best, struct err *e)
{
    struct duel_prog *p = &b->d.prog[side];
    const double cpu = b->o->cpu ? duel_cpu_ms(p) : 0;
    const double tokens = (double)j->n * (j->seqs ? j->seqs : 1);
    cJSON *q = turns_request(j->prompt ? "prompt" : "decode"), *reply = NULL;
    cJSON_AddNumberToObject(q, "n", j->n);
    if (j->seqs)
        cJSON_AddNumberToObject(q, "seqs", j->seqs);
    int rc = duel_ask(&b->d, p, q, b->o->answer_s, &reply, e);
    if (rc == 0) {
        const double step = turns_field(reply, "step_ms_min");
        *rate = b->o->cpu ? tokens * 1000 / (duel_cpu_ms(p) - cpu) : turns_field(reply, "tok_s");
        *best = b->o->cpu || !(step > 0) ? *rate : tokens / j->n * 1000 / step;
        if (!(*rate > 0) || !isfinite(*rate))
            rc = err_set(e, SHOAL_EFORMAT, "%s: a reply without a rate", p->name);
    }
    cJSON_Delete(reply);
    return rc;
}

int turns_note(struct engine_run *b, struct turns_samples *s, const struct turns_job *j, int rc,
               const struct err *e)
{
    if (rc == 0 || rc == SHOAL_ECANCELLED)
        return rc;
    s->out = true;
    snprintf(s->note, sizeof(s->note), "%s", e->msg);
    if (rc == SHOAL_EDEADLINE && j)
        s->below = (double)j->n * (j->seqs ? j->seqs : 1) / b->o->answer_s;
    engine_failed(b, e->msg);
    return 0;
}

int turns_run(struct engine_run *b, const struct turns_job job[2], struct turns_samples s[2],
              struct err *e)
{
    for (uint32_t r = 0; r < (uint32_t)b->o->rounds; r++)
        for (size_t k = 0; k < 2; k++) {
            const size_t side = r % 2 ? 1 - k : k;
            struct turns_samples *x = &s[side];
            if (x->out)
                continue;
            int rc = turns_ask(b, side, &job[side], &x->rate[x->n], &x->best[x->n], e);
            if (rc == 0)
                x->n++;
            if (turns_note(b, x, &job[side], rc, e) < 0)
                return SHOAL_ECANCELLED;
        }
    return 0;
}

/* ---- one measurement at each number of threads ---- */

void turns_begin(const struct engine_run *b, struct turns_samples s[2])
{
    for (size_t side = 0; side < 2; side++) {
        s[side].n = 0, s[side].below = 0, s[side].note[0] = '\0';
        s[side].out = side == 1 && !b->has_peer;
    }
}

static struct turns_figure summary(const struct engine_run *b, const struct turns_samples *s,
                                   uint32_t threads)
{
    struct turns_figure f = {NAN, NAN, NAN, NAN, 0};
    if (s->n == 0)
        return f;
    f.threads = threads;
    f.median = engine_median(s->rate, s->n);
    f.spread = engine_spread(s->rate, s->n);
    for (size_t i = 0; i < s->n; i++)
        f.best = isnan(f.best) || s->best[i] > f.best ? s->best[i] : f.best;
    f.value = b->o->best ? f.best : f.median;
    return f;
}

void turns_put_notes(cJSON *notes, const struct turns_samples s[2], uint32_t threads)
{
    char text[384];
    for (size_t side = 0; side < 2; side++)
        if (s[side].note[0]) {
            snprintf(text, sizeof(text), "%s (%u thread%s)", s[side].note, threads,
                     threads > 1 ? "s" : "");
            cJSON_AddItemToArray(notes, cJSON_CreateString(text));
        }
}

static void keep(struct turns_sides *r, size_t side, const struct turns_figure *f)
{
    cJSON *v = cJSON_CreateObject();
    cJSON_AddNumberToObject(v, "threads", f->threads);
    cJSON_AddItemToObject(v, "value", engine_number(f->value));
    cJSON_AddItemToObject(v, "median", engine_number(f->median));
    cJSON_AddItemToObject(v, "best", engine_number(f->best));
    cJSON_AddItemToObject(v, "spread", engine_number(f->spread));
    cJSON_AddItemToArray(r->all[side], v);
    if (!r->best[side].threads || f->value > r->best[side].value)
        r->best[side] = *f;
    if (f->threads == 1)
        r->one[side] = *f;
}

int turns_prepare(struct engine_run *b, size_t side, uint32_t threads, const struct turns_job *warm,
                  struct err *e)
{
    double rate, best;
    int rc = turns_ready(b, side, e);
    if (rc == 0) {
        cJSON *q = turns_request("threads");
        cJSON_AddNumberToObject(q, "n", threads);
        rc = duel_ask(&b->d, &b->d.prog[side], q, b->o->answer_s, NULL, e);
    }
    return rc < 0 ? rc : turns_ask(b, side, warm, &rate, &best, e);
}

void turns_sides_fini(struct turns_sides *r)
{
    cJSON_Delete(r->all[0]);
    cJSON_Delete(r->all[1]);
    cJSON_Delete(r->notes);
}

int turns_at_threads(struct engine_run *b, const struct turns_job *warm,
                     const struct turns_job *job, struct turns_sides *r, struct err *e)
{
    static struct turns_samples s[2]; /* too large for a stack */
    const struct turns_job both[2] = {*job, *job};
    const struct turns_figure none = {NAN, NAN, NAN, NAN, 0};
    *r = (struct turns_sides){.best = {none, none},
                              .one = {none, none},
                              .all = {cJSON_CreateArray(), cJSON_CreateArray()},
                              .notes = cJSON_CreateArray()};
    for (uint32_t i = 0; i < b->o->n_threads; i++) {
        int rc = 0;
        turns_begin(b, s);
        for (size_t side = 0; side < 2 && rc == 0; side++)
            if (!s[side].out)
                rc = turns_note(b, &s[side], warm,
                                turns_prepare(b, side, b->o->threads[i], warm, e), e);
        if (rc == 0)
            rc = turns_run(b, both, s, e);
        if (rc < 0) {
            turns_sides_fini(r);
            return rc;
        }
        turns_put_notes(r->notes, s, b->o->threads[i]);
        for (size_t side = 0; side < 2; side++) {
            const struct turns_figure f = summary(b, &s[side], b->o->threads[i]);
            if (f.threads)
                keep(r, side, &f);
            r->below[side] = s[side].below > r->below[side] ? s[side].below : r->below[side];
        }
    }
    return 0;
}
