/* engine_measure.c - the measurements of the engine benchmark and their targets. */
#include <math.h>
#include <string.h>

#include "engine_turns.h"

#define MIB 1048576.0
#define LOAD_CTX 512u
#define N_SEQS 16u
#define DOUBTFUL 1.02 /* a larger share of a limit means that the limit was measured too low */

static bool is_small(const char *shape) /* parameters: up to 135 M */
{
    return strcmp(shape, "s15m") == 0 || strcmp(shape, "s110m") == 0 ||
           strcmp(shape, "smol135m") == 0;
}

/* ---- targets and rows ---- */

struct target {
    enum { TARGET_NONE, TARGET_RATIO, TARGET_ROOF, TARGET_OF_Q4 } kind;
    double min;
};

static struct target target_of(const struct engine_measure *m)
{
    const struct target none = {TARGET_NONE, 0};
    const bool q8 = strcmp(m->type, "q8_0") == 0, q4 = strcmp(m->type, "q4_0") == 0;
    const bool q4_k = strcmp(m->type, "q4_k_m") == 0, s15m = strcmp(m->shape, "s15m") == 0;
    switch (m->test) {
    case ENGINE_DECODE:
        if (s15m)
            return q8 ? (struct target){TARGET_ROOF, 0.6} : none;
        return q8     ? (struct target){TARGET_ROOF, 0.88}
               : q4   ? (struct target){TARGET_ROOF, 0.75}
               : q4_k ? (struct target){TARGET_ROOF, 0.65}
                      : none;
    case ENGINE_PROMPT:
        if (q4_k)
            return (struct target){TARGET_OF_Q4, 0.8};
        if (!q8 && !q4)
            return none;
        if (m->n == 32)
            return is_small(m->shape) ? (struct target){TARGET_RATIO, 1.4} : none;
        return s15m ? (struct target){TARGET_RATIO, 1.6} : (struct target){TARGET_ROOF, 0.6};
    case ENGINE_SEQS:
        return (struct target){TARGET_RATIO, is_small(m->shape) ? 1.6 : 1.25};
    default:
        return none;
    }
}

static double at_least(double v, double min)
{
    return isnan(v) || isnan(min) ? NAN : v >= min;
}

static void judge(struct engine_run *b, const struct engine_measure *m, struct engine_row *row,
                  double peer_below, bool doubtful)
{
    const struct target t = target_of(m);
    char other[ENGINE_NAME_BYTES];
    const struct engine_measure q4 = {m->shape, "q4_0", m->test, m->n};
    switch (t.kind) {
    case TARGET_RATIO:
        snprintf(row->target, sizeof(row->target), "%.4gx peer", t.min);
        row->met = at_least(row->ratio, t.min);
        /* an upper bound of the peer's rate can prove a met target, not a missed one */
        if (isnan(row->ratio) && peer_below > 0 && row->ours >= t.min * peer_below)
            row->met = 1;
        break;
    case TARGET_ROOF:
        snprintf(row->target, sizeof(row->target), "%.0f %% of limit", t.min * 100);
        row->met = doubtful ? NAN : at_least(row->roofline, t.min);
        break;
    case TARGET_OF_Q4:
        engine_measure_name(&q4, other);
        snprintf(row->target, sizeof(row->target), "80 %% of q4_0");
        row->met = at_least(row->ours, t.min * engine_rows_ours(&b->rows, other));
        break;
    case TARGET_NONE:
        break;
    }
}

static double limit_of(const struct engine_run *b, const struct engine_measure *m,
                       const struct engine_shape *s, uint32_t threads)
{
    const double bytes = engine_limits_decode(&b->limits, s->touched_bytes, threads);
    const double ops = engine_limits_prompt(&b->limits, s->layer_weights, threads);
    if (m->test == ENGINE_DECODE)
        return bytes;
    if (m->test == ENGINE_PROMPT)
        return ops;
    if (isnan(bytes) || isnan(ops))
        return NAN;
    /* the slower of reading the weights once per step and computing 16 products */
    return N_SEQS * bytes < ops ? N_SEQS * bytes : ops;
}

static double threads_of(const struct turns_figure *f)
{
    return f->threads ? (double)f->threads : NAN;
}

static void add_notes(cJSON *more, cJSON *notes)
{
    if (cJSON_GetArraySize(notes) > 0)
        cJSON_AddItemToObject(more, "notes", cJSON_Duplicate(notes, true));
}

static void add_rates(struct engine_run *b, const struct engine_measure *m,
                      const struct engine_shape *s, struct turns_sides *r, bool one_thread)
{
    const struct turns_figure *ours = one_thread ? &r->one[0] : &r->best[0];
    const struct turns_figure *peer = one_thread ? &r->one[1] : &r->best[1];
    const double below = peer->threads ? 0 : r->below[1];
    struct engine_row row = {.ours = ours->value,
                             .peer = peer->value,
                             .unit = "tok/s",
                             .ratio = ours->value / peer->value,
                             .roofline = ours->value / limit_of(b, m, s, ours->threads),
                             .met = NAN};
    char name[ENGINE_NAME_BYTES];
    engine_measure_name(m, name);
    snprintf(row.name, sizeof(row.name), "%s%s", name, one_thread ? ", 1 thread" : "");
    const bool doubtful = row.roofline > DOUBTFUL;
    if (!one_thread)
        judge(b, m, &row, below, doubtful);
    cJSON *more = cJSON_CreateObject();
    cJSON_AddBoolToObject(more, "limit_doubtful", doubtful);
    cJSON_AddItemToObject(more, "threads", engine_pair(threads_of(ours), threads_of(peer)));
    cJSON_AddItemToObject(more, "peer_roofline",
                          engine_number(peer->value / limit_of(b, m, s, peer->threads)));
    cJSON_AddItemToObject(more, "median", engine_pair(ours->median, peer->median));
    cJSON_AddItemToObject(more, "best", engine_pair(ours->best, peer->best));
    cJSON_AddItemToObject(more, "spread", engine_pair(ours->spread, peer->spread));
    if (!one_thread) {
        cJSON *all = cJSON_AddObjectToObject(more, "by_threads");
        cJSON_AddItemToObject(all, "ours", cJSON_Duplicate(r->all[0], true));
        cJSON_AddItemToObject(all, "peer", cJSON_Duplicate(r->all[1], true));
        add_notes(more, r->notes);
    }
    if (below > 0)
        cJSON_AddNumberToObject(more, "peer_below", below);
    row.more = more;
    engine_rows_add(&b->rows, &row);
}

/* ---- measurements ---- */

static int rates(struct engine_run *b, const struct engine_measure *m, const char *file,
                 const struct engine_shape *s, struct err *e)
{
    struct turns_job warm = {false, 8, 0}, job = {false, is_small(m->shape) ? 64 : 32, 0};
    struct turns_sides r;
    turns_hold(b, file, m->test == ENGINE_SEQS ? 128 : LOAD_CTX,
               m->test == ENGINE_SEQS ? N_SEQS : 1);
    if (m->test == ENGINE_SEQS) {
        warm = (struct turns_job){false, 4, N_SEQS};
        job = (struct turns_job){false, 16, N_SEQS};
    } else if (m->test == ENGINE_PROMPT) {
        warm = job = (struct turns_job){true, m->n, 0};
    }
    int rc = turns_at_threads(b, &warm, &job, &r, e);
    if (rc < 0)
        return rc;
    add_rates(b, m, s, &r, false);
    if (b->o->one_thread)
        add_rates(b, m, s, &r, true);
    turns_sides_fini(&r);
    return 0;
}

#define MOST_STEPS 256.0
/* Chooses the steps of a round so that it takes about a second even beside busy processes, but at
 * most MOST_STEPS, so that attention over the previous tokens stays cheap in all runs. */
static int size_job(struct engine_run *b, size_t side, struct turns_job *j, struct err *e)
{
    const struct turns_job few = {false, 4, 0};
    double rate = 0, best;
    int rc = turns_prepare(b, side, b->o->max_threads, &few, e);
    if (rc == 0)
        rc = turns_ask(b, side, &few, &rate, &best, e);
    if (rc == 0)
        *j = (struct turns_job){false, (uint32_t)fmax(4, fmin(MOST_STEPS, round(rate))), 0};
    return rc;
}

static int beside(struct engine_run *b, size_t n_busy, struct turns_samples s[2], struct err *e)
{
    struct turns_job job[2] = {{false, 4, 0}, {false, 4, 0}};
    int rc = 0;
    turns_begin(b, s);
    /* load programs before the busy processes start */
    for (size_t side = 0; side < 2 && rc == 0; side++)
        if (!s[side].out)
            rc = turns_note(b, &s[side], NULL, turns_ready(b, side, e), e);
    if (rc == 0)
        rc = duel_busy(&b->d, n_busy, e);
    for (size_t side = 0; side < 2 && rc == 0; side++)
        if (!s[side].out)
            rc = turns_note(b, &s[side], &job[side], size_job(b, side, &job[side], e), e);
    if (rc == 0)
        rc = turns_run(b, job, s, e);
    duel_quiet(&b->d);
    return rc;
}

static void add_beside(struct engine_run *b, const struct engine_measure *m, size_t n_busy,
                       const struct turns_samples s[2], double *quiet)
{
    const double t = b->o->max_threads, below = s[1].n ? 0 : s[1].below;
    struct engine_row row = {.ours = engine_median(s[0].rate, s[0].n),
                             .peer = engine_median(s[1].rate, s[1].n),
                             .unit = "tok/s",
                             .roofline = NAN,
                             .met = NAN,
                             .more = cJSON_CreateObject()};
    cJSON *notes = cJSON_CreateArray();
    row.ratio = row.ours / row.peer;
    if (n_busy == 0) {
        *quiet = row.ours;
        snprintf(row.name, sizeof(row.name), "%s %s quiet, %.0f threads", m->shape, m->type, t);
    } else {
        snprintf(row.name, sizeof(row.name), "%s %s beside %zu busy", m->shape, m->type, n_busy);
    }
    if (n_busy == 1) {
        snprintf(row.target, sizeof(row.target), "4x peer");
        row.met = at_least(row.ratio, 4);
        if (isnan(row.ratio) && below > 0 && row.ours >= 4 * below)
            row.met = 1;
    }
    cJSON_AddItemToObject(row.more, "threads", engine_pair(t, b->has_peer ? t : NAN));
    cJSON_AddItemToObject(
        row.more, "spread",
        engine_pair(engine_spread(s[0].rate, s[0].n), engine_spread(s[1].rate, s[1].n)));
    turns_put_notes(notes, s, b->o->max_threads);
    add_notes(row.more, notes);
    cJSON_Delete(notes);
    if (below > 0)
        cJSON_AddNumberToObject(row.more, "peer_below", below);
    engine_rows_add(&b->rows, &row);
    if (n_busy == 0)
        return;
    const double min = n_busy == 1 ? 0.6 : 0.35, kept = row.ours / *quiet;
    struct engine_row part = {.ours = kept * 100,
                              .peer = NAN,
                              .unit = "% of quiet",
                              .ratio = NAN,
                              .roofline = NAN,
                              .met = at_least(kept, min)};
    snprintf(part.name, sizeof(part.name), "%s %s beside %zu busy, kept", m->shape, m->type,
             n_busy);
    snprintf(part.target, sizeof(part.target), "%.0f %%", min * 100);
    engine_rows_add(&b->rows, &part);
}

/* Both programs on all cores, as a user would run them, while other processes are busy. */
static int busy(struct engine_run *b, const struct engine_measure *m, const char *file,
                struct err *e)
{
    static struct turns_samples s[2];
    double quiet = NAN;
    turns_hold(b, file, LOAD_CTX, 1);
    for (size_t n = 0; n <= 2; n++) {
        engine_say("%s %s beside %zu busy processes", m->shape, m->type, n);
        int rc = beside(b, n, s, e);
        if (rc < 0)
            return rc;
        add_beside(b, m, n, s, &quiet);
    }
    return 0;
}

struct loads { /* of one program, one value per round */
    double load[ENGINE_MAX_ROUNDS], first[ENGINE_MAX_ROUNDS], rss[ENGINE_MAX_ROUNDS],
        anon[ENGINE_MAX_ROUNDS];
    size_t n;
};

/* Starts a fresh process; counts: false for a warm-up. */
static int load_once(struct engine_run *b, size_t side, bool counts, struct loads *l, struct err *e)
{
    struct duel_prog *p = &b->d.prog[side];
    const struct turns_job job = {false, 16, 0};
    cJSON *first = NULL, *rss = NULL;
    double ms = NAN, rate, best;
    duel_quit(&b->d, p);
    b->holds[side] = false;
    int rc = duel_start(&b->d, p, e);
    if (rc == 0)
        rc = turns_load(b, side, &ms, e);
    if (rc == 0)
        rc = duel_ask(&b->d, p, turns_request("first"), b->o->answer_s, &first, e);
    if (rc == 0)
        rc = turns_ask(b, side, &job, &rate, &best, e);
    if (rc == 0)
        rc = duel_ask(&b->d, p, turns_request("rss"), b->o->answer_s, &rss, e);
    if (rc == 0 && counts) {
        l->load[l->n] = ms;
        l->first[l->n] = ms + turns_field(first, "ms");
        l->rss[l->n] = turns_field(rss, "rss_bytes") / MIB;
        l->anon[l->n] = turns_field(rss, "anon_bytes") / MIB;
        l->n++;
    }
    cJSON_Delete(first);
    cJSON_Delete(rss);
    duel_quit(&b->d, p);
    return rc;
}

static void add_load(struct engine_run *b, const struct engine_measure *m, const char *what,
                     const double *ours, const double *peer, const struct loads l[2],
                     const char *unit, double most, cJSON *more)
{
    struct engine_row row = {.ours = engine_median(ours, l[0].n),
                             .peer = engine_median(peer, l[1].n),
                             .unit = unit,
                             .roofline = NAN,
                             .met = NAN,
                             .more = more};
    row.ratio = row.peer / row.ours; /* for times and bytes less is better */
    snprintf(row.name, sizeof(row.name), "%s %s %s", m->shape, m->type, what);
    if (most > 0) {
        snprintf(row.target, sizeof(row.target), "< %.0f %s", most, unit);
        row.met = isnan(row.ours) ? NAN : row.ours < most;
    }
    engine_rows_add(&b->rows, &row);
}

/* The first start of each is not counted: it warms the page cache and our weight cache. */
static int loading(struct engine_run *b, const struct engine_measure *m, const char *file,
                   const struct engine_shape *s, struct err *e)
{
    static struct loads l[2];
    bool out[2] = {false, !b->has_peer};
    const double kv = s->kv_token_bytes * LOAD_CTX;
    turns_hold(b, file, LOAD_CTX, 1);
    l[0].n = l[1].n = 0;
    cJSON *notes = cJSON_CreateArray();
    for (int r = -1; r < (int)b->o->rounds; r++)
        for (size_t side = 0; side < 2; side++) {
            int rc = out[side] ? 0 : load_once(b, side, r >= 0, &l[side], e);
            if (rc == SHOAL_ECANCELLED) {
                cJSON_Delete(notes);
                return rc;
            }
            if (rc < 0) {
                out[side] = true;
                cJSON_AddItemToArray(notes, cJSON_CreateString(e->msg));
                engine_failed(b, e->msg);
            }
        }
    cJSON *first = cJSON_CreateObject(), *memory = cJSON_CreateObject();
    add_notes(first, notes);
    cJSON_Delete(notes);
    cJSON_AddNumberToObject(memory, "weights_mib", s->weights_bytes / MIB);
    cJSON_AddNumberToObject(memory, "kv_mib", kv / MIB);
    const double most = strcmp(m->shape, "smol135m") == 0 ? 40
                        : strcmp(m->shape, "tiny1b") == 0 ? 150
                                                          : 0;
    add_load(b, m, "load", l[0].load, l[1].load, l, "ms", most, first);
    add_load(b, m, "load and first token", l[0].first, l[1].first, l, "ms", 0, NULL);
    add_load(b, m, "memory", l[0].rss, l[1].rss, l, "MiB", (s->weights_bytes + kv) / MIB + 24,
             memory);
    add_load(b, m, "memory, anonymous", l[0].anon, l[1].anon, l, "MiB", 0, NULL);
    return 0;
}

void engine_measure_name(const struct engine_measure *m, char out[ENGINE_NAME_BYTES])
{
    static const char *const names[ENGINE_N_TESTS] = {"decode", "prompt", "16 seqs",
                                                      "beside busy processes", "load and memory"};
    snprintf(out, ENGINE_NAME_BYTES, "%s %s %s", m->shape, m->type, names[m->test]);
    if (m->test == ENGINE_PROMPT)
        snprintf(out, ENGINE_NAME_BYTES, "%s %s prompt %u", m->shape, m->type, m->n);
}

int engine_measure_run(struct engine_run *b, const struct engine_measure *m, const char *file,
                       struct err *e)
{
    char name[ENGINE_NAME_BYTES];
    struct engine_shape s;
    engine_measure_name(m, name);
    engine_say("%s", name);
    int rc = engine_shape_read(&s, file, e);
    if (rc < 0)
        return rc;
    switch (m->test) {
    case ENGINE_BUSY:
        return busy(b, m, file, e);
    case ENGINE_LOAD:
        return loading(b, m, file, &s, e);
    default:
        return rates(b, m, file, &s, e);
    }
}
