/* reader.c - see reader.h. */
#include "engine/native/reader.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "engine/native/plan_words.h"
#include "engine/native/t5_engine.h"
#include "engine/task.h"
#include "model/t5.h"

#define BEAMS 4u        /* readings that are followed and returned */
#define MAX_PLAN 48u    /* tokens of a plan */
#define MAX_SOURCE 512u /* tokens of a text with its lines */
#define GIVE_UP 9.0f    /* a reading that is e^9 times less likely than the best is not followed */
#define PLAN_PAGES ((MAX_PLAN + KERN_PAGE - 1) / KERN_PAGE)
#define SOURCE_PAGES ((MAX_SOURCE + KERN_PAGE - 1) / KERN_PAGE)
#define N_PAGES (SOURCE_PAGES + 2 * BEAMS * PLAN_PAGES)

struct reader {
    const struct model_file *file; /* borrowed from the engine, like the tokenizer */
    const struct tokenizer *tokenizer;
    struct t5 *t5;
    uint32_t n_plan;               /* tokens of the language; the ends of texts are among them */
    int32_t end;                   /* of a plan, and of the source */
    struct plan_pointer *pointers; /* [n_plan] */
    size_t kv_bytes;
    uint8_t *kv;
    uint32_t pages[N_PAGES]; /* all page numbers: the source's, then two sets of the beams' */
    float *scores;           /* [n_plan] of one row */
};

struct beam {
    int32_t tokens[MAX_PLAN];
    uint32_t n;
    float log_p;
    uint32_t set; /* which pages hold its keys: index of a row of pages */
};

struct input { /* of a job */
    struct tok_ids source;
    struct shoal_label labels[BEAMS];
    struct buf names[BEAMS];
};

static bool reads(const struct input *in, int32_t token)
{
    for (size_t i = 0; i < in->source.n; i++)
        if (in->source.ids[i] == token)
            return true;
    return false;
}

/* ---- preparing ------------------------------------------------------------------------------ */

static int put_word(const struct reader *r, struct tok_ids *out, const char *p, size_t n,
                    struct err *e)
{
    char name[64];
    if (*p != READER_MARK)
        return tokenizer_encode(r->tokenizer, out, p, n, 0, e);
    if (n + 1 >= sizeof(name))
        return err_set(e, SHOAL_EINVAL, "a word of the plan language has %zu bytes", n);
    name[0] = '<';
    memcpy(name + 1, p + 1, n - 1);
    name[n] = '>';
    const int32_t id = tokenizer_find(r->tokenizer, name, n + 1);
    if (id < 0 || (uint32_t)id >= r->n_plan)
        return err_set(e, SHOAL_EINVAL, "%.*s is no word of the plan language", (int)n + 1, name);
    return tok_ids_push(out, id);
}

static int prepare(const void *self, struct job *j, struct err *e)
{
    const struct reader *r = self;
    struct input *in = mem_zalloc(sizeof(*in));
    if (!in)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a task");
    j->input = in;
    tok_ids_init(&in->source, MAX_SOURCE);
    for (uint32_t i = 0; i < BEAMS; i++)
        buf_init(&in->names[i], MAX_PLAN * 32);
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < j->o.text_bytes;) {
        const char *p = j->text + at, *space = memchr(p, ' ', j->o.text_bytes - at);
        const size_t n = space ? (size_t)(space - p) : j->o.text_bytes - at;
        rc = n > 0 ? put_word(r, &in->source, p, n, e) : 0;
        at += n + 1;
    }
    if (rc == 0 && in->source.n == 0)
        return err_set(e, SHOAL_EINVAL, "the text is empty");
    if (rc == 0)
        rc = tok_ids_push(&in->source, r->end);
    if (rc == SHOAL_ELIMIT)
        return job_too_long(MAX_SOURCE, e);
    j->cost = (uint32_t)in->source.n + 8;
    j->result.n_tokens = (uint32_t)in->source.n;
    return rc;
}

static void drop(struct job *j)
{
    struct input *in = j->input;
    if (!in)
        return;
    tok_ids_fini(&in->source);
    for (uint32_t i = 0; i < BEAMS; i++)
        buf_fini(&in->names[i]);
    mem_free(in);
}

/* ---- searching ------------------------------------------------------------------------------ */

struct search {
    struct beam live[BEAMS], next[BEAMS], done[BEAMS]; /* best first */
    uint32_t n_live, n_next, n_done;
    bool read[1024]; /* by token of the language */
};

/* Puts a reading into a list that is ordered and holds BEAMS. */
static void keep(struct beam *list, uint32_t *n, const struct beam *b)
{
    uint32_t at = *n;
    while (at > 0 && list[at - 1].log_p < b->log_p)
        at--;
    if (at == BEAMS)
        return;
    const uint32_t last = *n < BEAMS ? (*n)++ : BEAMS - 1;
    memmove(&list[at + 1], &list[at], (last - at) * sizeof(*list));
    list[at] = *b;
}

/* Log probabilities of the tokens that may follow; the others get -INFINITY. False: a logit is not
 * finite. */
static bool rate(const struct reader *r, const struct search *s, const struct beam *b,
                 const float *logits)
{
    const struct plan_so_far plan = {r->pointers, s->read, r->end, b->tokens, b->n};
    float max = -INFINITY, sum = 0.0f;
    if (!isfinite(logits[0]))
        return false;
    for (uint32_t i = 0; i < r->n_plan; i++) {
        r->scores[i] = plan_may_follow(&plan, i) ? logits[i] : -INFINITY;
        max = r->scores[i] > max ? r->scores[i] : max;
    }
    for (uint32_t i = 0; i < r->n_plan; i++)
        sum += r->scores[i] == -INFINITY ? 0.0f : expf(r->scores[i] - max);
    for (uint32_t i = 0; i < r->n_plan; i++)
        r->scores[i] -= max + logf(sum);
    return true;
}

static void extend(const struct reader *r, struct search *s, uint32_t row)
{
    const struct beam *b = &s->live[row];
    for (uint32_t i = 0; i < r->n_plan; i++) {
        if (r->scores[i] == -INFINITY)
            continue;
        struct beam x = *b;
        x.log_p += r->scores[i];
        x.set = row;
        if ((int32_t)i == r->end) {
            keep(s->done, &s->n_done, &x);
        } else if (x.n < MAX_PLAN - 1) {
            x.tokens[x.n++] = (int32_t)i;
            keep(s->next, &s->n_next, &x);
        }
    }
}

/* The pages of a row, of one of two sets that take turns. */
static const uint32_t *pages_of(const struct reader *r, uint32_t turn, uint32_t row)
{
    return r->pages + SOURCE_PAGES + (turn * BEAMS + row) * PLAN_PAGES;
}

/* Makes the best extensions the live ones; their keys move to the other set of pages. */
static void follow(const struct reader *r, struct search *s, uint32_t turn, uint32_t n_tokens)
{
    const float best = s->n_done ? s->done[0].log_p : s->n_next ? s->next[0].log_p : 0.0f;
    s->n_live = 0;
    for (uint32_t i = 0; i < s->n_next && s->next[i].log_p > best - GIVE_UP; i++) {
        const uint32_t *from = pages_of(r, turn, s->next[i].set),
                       *to = pages_of(r, !turn, s->n_live);
        for (uint32_t p = 0; p * KERN_PAGE < n_tokens; p++)
            t5_copy_page(r->t5, to[p], from[p]);
        s->live[s->n_live++] = s->next[i];
    }
    s->n_next = 0;
    if (s->n_done == BEAMS && s->n_live > 0 && s->live[0].log_p < s->done[BEAMS - 1].log_p)
        s->n_live = 0; /* none can become one of the best */
}

static int search(struct reader *r, struct input *in, struct search *s, struct shoal_task *task)
{
    const int32_t start = t5_config(r->t5)->start_token;
    struct t5_row rows[BEAMS];
    s->n_live = 1;
    for (uint32_t pos = 0, turn = 0; s->n_live > 0; pos++, turn = !turn) {
        const int code = task_gave_up(task, clock_ns());
        if (code < 0)
            return code;
        for (uint32_t i = 0; i < s->n_live; i++)
            rows[i] = (struct t5_row){.token = pos ? s->live[i].tokens[pos - 1] : start,
                                      .pos = pos,
                                      .pages = pages_of(r, turn, i),
                                      .source_pages = r->pages,
                                      .n_source = (uint32_t)in->source.n};
        t5_decode(r->t5, rows, s->n_live);
        for (uint32_t i = 0; i < s->n_live; i++) {
            if (!rate(r, s, &s->live[i], t5_logits(r->t5, i)))
                return SHOAL_ENOTFINITE;
            extend(r, s, i);
        }
        follow(r, s, turn, pos + 1);
    }
    return 0;
}

/* "set t2 pressure to_value w3 w4 ; off light" */
static int write_plan(const struct reader *r, struct buf *out, const struct beam *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        const struct str name =
            tokenizer_piece(r->tokenizer, b->tokens[i], TOKENIZER_RENDER_SPECIAL);
        if (i > 0)
            buf_puts(out, " ");
        buf_put(out, name.p + 1, name.n > 2 ? name.n - 2 : 0);
    }
    return out->rc;
}

static int read_text(struct reader *r, struct job *j)
{
    struct input *in = j->input;
    struct search s = {0};
    const struct t5_source source = {in->source.ids, (uint32_t)in->source.n, r->pages};
    for (uint32_t i = 0; i < r->n_plan; i++)
        s.read[i] = r->pointers[i].kind && reads(in, (int32_t)i);
    t5_encode(r->t5, &source, 1);
    for (uint32_t t = 0; t < source.n; t++)
        if (!isfinite(t5_encoded(r->t5, 0, t)[0]))
            return SHOAL_ENOTFINITE;
    int code = search(r, in, &s, j->task);
    for (uint32_t i = 0; code == 0 && i < s.n_done; i++) {
        code = write_plan(r, &in->names[i], &s.done[i]);
        in->labels[i] = (struct shoal_label){buf_str(&in->names[i]), expf(s.done[i].log_p)};
    }
    if (code < 0)
        return code;
    j->result.labels = in->labels;
    j->result.n_labels = s.n_done;
    j->result.label = s.n_done ? in->labels[0].name : "";
    j->result.confidence = s.n_done ? in->labels[0].score : 0.0f;
    return 0;
}

static void run(void *self, struct job *const *jobs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int code = task_gave_up(jobs[i]->task, clock_ns());
        if (code == 0)
            code = read_text(self, jobs[i]);
        if (code < 0)
            job_fail(jobs[i], code, err_text(code));
    }
}

/* ---- opening -------------------------------------------------------------------------------- */

/* 0: the model has no language of its own. */
static uint32_t plan_tokens(const struct model_file *file)
{
    struct str config = {NULL, 0};
    (void)model_file_get_str(file, "huggingface.config", &config);
    cJSON *json = config.p ? cJSON_ParseWithLength(config.p, config.n) : NULL;
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(json, "shoal_plan_tokens");
    const uint32_t out = cJSON_IsNumber(n) && n->valueint > 0 ? (uint32_t)n->valueint : 0;
    cJSON_Delete(json);
    return out;
}

bool reader_knows(const struct model_file *file)
{
    return t5_knows(file) && plan_tokens(file) > 0;
}

static void info(const void *self, struct shoal_engine_info *out)
{
    const struct reader *r = self;
    t5_engine_info(r->t5, r->file, out);
    out->n_ctx = MAX_SOURCE;
    out->kv_bytes = r->kv_bytes;
}

static void close_(void *self)
{
    struct reader *r = self;
    t5_destroy(r->t5);
    if (r->kv)
        mem_pages_free(r->kv, r->kv_bytes);
    mem_free(r->pointers);
    mem_free(r->scores);
    mem_free(r);
}

static const struct specialist_ops ops = {
    .engine = "native",
    .prepare = prepare,
    .run = run,
    .drop = drop,
    .info = info,
    .close = close_,
};

static int read_language(struct reader *r, struct err *e)
{
    const struct tokenizer_info *t = tokenizer_info(r->tokenizer);
    r->n_plan = plan_tokens(r->file);
    r->end = t->eos;
    if (r->n_plan > t->n_vocab || r->n_plan > sizeof(((struct search *)0)->read) || r->end < 0 ||
        (uint32_t)r->end >= r->n_plan)
        return err_set(e, SHOAL_EFORMAT,
                       "the configuration says that %u tokens are the plan language, but the "
                       "vocabulary has %u and ends texts with %d",
                       r->n_plan, t->n_vocab, r->end);
    r->pointers = mem_zalloc_n(r->n_plan, sizeof(*r->pointers));
    r->scores = mem_zalloc_n(r->n_plan, sizeof(*r->scores));
    if (!r->pointers || !r->scores)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a reader");
    for (uint32_t i = 0; i < r->n_plan; i++)
        r->pointers[i] =
            plan_pointer_of(tokenizer_piece(r->tokenizer, (int32_t)i, TOKENIZER_RENDER_SPECIAL));
    for (uint32_t i = 0; i < N_PAGES; i++)
        r->pages[i] = i;
    return 0;
}

static int load(struct reader *r, const char *path, struct crew *crew,
                const struct shoal_engine_opts *o, struct err *e)
{
    char dir[PATH_MAX];
    struct t5_opts to = {.crew = crew, .n_ctx = MAX_SOURCE, .max_seqs = 1, .max_rows = BEAMS};
    int rc = t5_engine_opts(&to, o, dir, e);
    if (rc == 0)
        rc = read_language(r, e);
    if (rc == 0)
        rc = t5_create(&r->t5, r->file, path, &to, e);
    if (rc < 0)
        return rc;
    if (t5_config(r->t5)->n_vocab < r->n_plan)
        return err_set(e, SHOAL_EFORMAT, "the tokenizer has more tokens than the model");
    return t5_engine_reserve(r->t5, N_PAGES, &r->kv, &r->kv_bytes, e);
}

int reader_open(struct specialist *sp, const struct model_file *file, const struct tokenizer *t,
                const char *path, struct crew *crew, const struct shoal_engine_opts *o,
                struct err *e)
{
    struct reader *r = mem_zalloc(sizeof(*r));
    if (!r)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a reader");
    r->file = file;
    r->tokenizer = t;
    int rc = load(r, path, crew, o, e);
    if (rc < 0) {
        close_(r);
        return err_wrap(e, "%s", path);
    }
    *sp = (struct specialist){.ops = &ops,
                              .self = r,
                              .kinds = SHOAL_KIND_CLASSIFY,
                              .max_jobs = 8,
                              .lane = t5_lane(r->t5),
                              .weights = t5_weights(r->t5),
                              .max_cost = 8 * MAX_SOURCE};
    return 0;
}
