/* seq2seq.c - writes texts from texts with T5 and its relatives: greedy, sampled or by beam search.
 *
 * The tasks of a batch are encoded together and then decoded together, one token each per step;
 * tasks that do not fit start when others end.  Hypotheses of a beam share the pages of their
 * common tokens: only a page that is being written to is copied. */
#include "engine/native/seq2seq.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "model/t5.h"
#include "engine/native/beams.h"
#include "engine/task.h"
#include "engine/batcher.h"
#include "engine/decode/kv_pages.h"
#include "engine/memory_plan.h"
#include "engine/native/seq2seq_opts.h"
#include "engine/native/t5_engine.h"

#define MAX_ROWS BEAMS_MAX /* hypotheses in a step, of all tasks together */
#define DEFAULT_MAX_JOBS 8u
#define TINY_MODEL_BYTES                                                                           \
    ((size_t)2 << 20) /* below this size a second thread costs more than it gains */
#define MAX_OUTPUT_BYTES ((size_t)16 << 20)

struct s2s {
    const struct model_file *file; /* borrowed from the engine, like the tokenizer */
    const struct tokenizer *tokenizer;
    struct t5 *t5;
    struct seq2seq_opts opts;
    uint32_t n_ctx, max_jobs, n_pages;
    size_t kv_bytes;
    uint8_t *kv;
    /* the engine's thread only */
    struct kv_pages *pages;
    struct sampler *sampler;
    struct beams_with with;
    uint32_t pages_promised;
    struct job **active; /* [max_jobs] */
    uint32_t n_active;
    struct t5_source *sources; /* [max_jobs] */
    struct t5_row *rows;       /* [MAX_ROWS] */
};

struct input { /* of a job */
    struct tok_encoding x;
    struct beams *beams;
    struct buf text;
    /* pages of the source; pages of a hypothesis at its longest */
    uint32_t n_source_pages, pages_each;
    uint32_t need;                /* most pages at once */
    uint32_t n_rows, n_pages;     /* rows that hold pages, and how many each */
    uint32_t *source_pages;       /* [n_source_pages], followed by the next three arrays */
    uint32_t *pages, *next_pages; /* [n_beams][pages_each] */
    bool *taken;                  /* [n_beams]: a row of this step has taken over the page */
    bool broken;                  /* a state of the source is not finite */
};

/* ---- preparing ------------------------------------------------------------------------------ */

static uint32_t pages_for(size_t n_tokens)
{
    return (uint32_t)((n_tokens + KERN_PAGE - 1) / KERN_PAGE);
}

static uint32_t pages_needed(size_t n_source, const struct beams_opts *w)
{
    /* one more each: a page is copied before the old one is released */
    return pages_for(n_source) + w->n_beams * (pages_for(w->max_tokens) + 1);
}

static int settings(const struct s2s *s, const struct shoal_infer_opts *o, struct beams_opts *w,
                    struct err *e)
{
    *w = s->opts.write;
    if (o->max_tokens > s->n_ctx)
        return err_set(e, SHOAL_EINVAL, "cannot write %u tokens, the model's limit is %u",
                       o->max_tokens, s->n_ctx);
    if (o->beams > BEAMS_MAX)
        return err_set(e, SHOAL_EINVAL, "cannot search with %u beams, at most %u", o->beams,
                       BEAMS_MAX);
    w->max_tokens = o->max_tokens ? o->max_tokens : w->max_tokens;
    w->n_beams = o->beams ? o->beams : w->n_beams;
    w->sampling.seed = o->seed;
    if (o->temperature == 0.0f)
        return 0;
    if (o->beams > 1)
        return err_set(e, SHOAL_EINVAL, "sampling and a search with %u beams exclude each other",
                       o->beams);
    w->n_beams = 1;
    w->sampling.temperature = o->temperature;
    return sampler_check(&w->sampling, t5_config(s->t5)->n_vocab, e);
}

static int reserve_pages(const struct s2s *s, struct input *in, const struct beams_opts *w,
                         struct err *e)
{
    in->n_source_pages = pages_for(in->x.n);
    in->pages_each = pages_for(w->max_tokens);
    in->need = pages_needed(in->x.n, w);
    if (in->need > s->n_pages)
        return err_set(e, SHOAL_ELIMIT,
                       "%zu tokens to read and %u to write in %u beams need %u pages of keys and "
                       "values, there are %u",
                       in->x.n, w->max_tokens, w->n_beams, in->need, s->n_pages);
    const size_t each = (size_t)w->n_beams * in->pages_each;
    in->source_pages = mem_zalloc_n(in->n_source_pages + 2 * each, sizeof(*in->source_pages));
    in->taken = mem_zalloc_n(w->n_beams, sizeof(*in->taken));
    in->beams = beams_create(w);
    if (!in->source_pages || !in->taken || !in->beams)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a task of %u beams", w->n_beams);
    in->pages = in->source_pages + in->n_source_pages;
    in->next_pages = in->pages + each;
    return 0;
}

static int prepare(const void *self, struct job *j, struct err *e)
{
    const struct s2s *s = self;
    struct beams_opts w;
    struct buf text;
    struct input *in = mem_zalloc(sizeof(*in));
    if (!in)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a task");
    j->input = in;
    tokenizer_encoding_init(&in->x);
    buf_init(&in->text, MAX_OUTPUT_BYTES);
    int rc = settings(s, &j->o, &w, e);
    if (rc < 0)
        return rc;
    buf_init(&text, SIZE_MAX / 2);
    buf_puts(&text, s->opts.prefix);
    buf_put(&text, j->text, j->o.text_bytes);
    rc = text.rc < 0 ? err_set(e, text.rc, "text")
                     : tokenizer_encode_pair(s->tokenizer, &in->x, buf_str(&text), text.len, NULL,
                                             0, s->n_ctx, TOKENIZER_ADD_SPECIAL, e);
    buf_fini(&text);
    if (rc < 0)
        return rc;
    if (in->x.n == 0)
        return err_set(e, SHOAL_EINVAL, "the text is empty");
    if (in->x.cut && j->o.whole)
        return job_too_long(s->n_ctx, e);
    j->cost = (uint32_t)in->x.n + w.max_tokens;
    j->result.n_tokens = (uint32_t)in->x.n;
    j->result.truncated = in->x.cut;
    return reserve_pages(s, in, &w, e);
}

static void drop(struct job *j)
{
    struct input *in = j->input;
    if (!in)
        return;
    tokenizer_encoding_fini(&in->x);
    buf_fini(&in->text);
    beams_destroy(in->beams);
    mem_free(in->source_pages);
    mem_free(in->taken);
    mem_free(in);
}

/* ---- pages ---------------------------------------------------------------------------------- */

static void release(struct s2s *s, uint32_t *pages, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        kv_pages_release(s->pages, pages[i]);
}

/* Gives the new rows the pages of their parents; a page that two of them will write to is
 * copied. */
static void follow(struct s2s *s, struct input *in)
{
    const uint32_t n = beams_n_rows(in->beams), each = in->pages_each;
    const uint32_t full = beams_n_tokens(in->beams) / KERN_PAGE; /* full pages of every row */
    memset(in->taken, 0, in->n_rows * sizeof(*in->taken));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t parent = beams_parent(in->beams, i);
        const uint32_t *from = in->pages + (size_t)parent * each;
        uint32_t *to = in->next_pages + (size_t)i * each;
        for (uint32_t p = 0; p < in->n_pages; p++) {
            to[p] = from[p];
            if (p < full || !in->taken[parent]) {
                kv_pages_hold(s->pages, to[p]);
            } else {
                to[p] = kv_pages_take(s->pages);
                t5_copy_page(s->t5, to[p], from[p]);
            }
        }
        in->taken[parent] = true;
        if (full == in->n_pages) /* the next token begins a page */
            to[full] = kv_pages_take(s->pages);
    }
    for (uint32_t i = 0; i < in->n_rows; i++)
        release(s, in->pages + (size_t)i * each, in->n_pages);
    uint32_t *old = in->pages;
    in->pages = in->next_pages;
    in->next_pages = old;
    in->n_rows = n;
    in->n_pages = full + 1;
}

/* ---- the tasks of a batch -------------------------------------------------------------------- */

static bool has_room(const struct s2s *s, const struct input *in, uint32_t n_rows)
{
    return s->n_active < s->max_jobs && s->pages_promised + in->need <= s->n_pages &&
           n_rows + beams_opts(in->beams)->n_beams <= MAX_ROWS;
}

static void begin(struct s2s *s, struct job *j)
{
    struct input *in = j->input;
    s->pages_promised += in->need;
    for (uint32_t i = 0; i < in->n_source_pages; i++)
        in->source_pages[i] = kv_pages_take(s->pages);
    in->pages[0] = kv_pages_take(s->pages);
    in->n_rows = in->n_pages = 1;
    s->active[s->n_active++] = j;
}

/* Ends the i-th active task; code 0: its text is the result. */
static void end(struct s2s *s, uint32_t i, int code)
{
    struct job *j = s->active[i];
    struct input *in = j->input;
    float score;
    uint32_t n;
    for (uint32_t r = 0; r < in->n_rows; r++)
        release(s, in->pages + (size_t)r * in->pages_each, in->n_pages);
    release(s, in->source_pages, in->n_source_pages);
    s->pages_promised -= in->need;
    s->active[i] = s->active[--s->n_active];
    if (code == 0) {
        const int32_t *tokens = beams_result(in->beams, &n, &score);
        tokenizer_decode(s->tokenizer, &in->text, tokens, n, 0);
        code = in->text.rc;
        j->result.text = buf_str(&in->text);
        j->result.text_bytes = in->text.len;
    }
    if (code < 0)
        job_fail(j, code, err_text(code));
    batcher_finish(j); /* a short text does not wait for the longest */
}

/* Encodes the sources of the active jobs from `first` on.  The norms spread what is not finite over
 * all values of its token; rounding to integers hides it from the decoder. */
static void encode(struct s2s *s, uint32_t first, uint32_t n_sources)
{
    t5_encode(s->t5, s->sources, n_sources);
    for (uint32_t i = 0; i < n_sources; i++) {
        struct input *in = s->active[first + i]->input;
        in->broken = false;
        for (uint32_t t = 0; t < in->x.n; t++)
            in->broken |= !isfinite(t5_encoded(s->t5, i, t)[0]);
    }
}

/* Starts the jobs that fit, encoding them in one pass if possible; returns how many have started or
 * ended. */
static uint32_t admit(struct s2s *s, struct job *const *jobs, uint32_t at, uint32_t n)
{
    const uint32_t first = s->n_active, max_tokens = t5_sizes(s->t5).max_tokens;
    uint32_t n_rows = 0, n_sources = 0, n_tokens = 0;
    for (uint32_t i = 0; i < s->n_active; i++)
        n_rows += beams_opts(((struct input *)s->active[i]->input)->beams)->n_beams;
    for (; at < n; at++) {
        struct input *in = jobs[at]->input;
        int code = task_gave_up(jobs[at]->task, clock_ns());
        if (code < 0) {
            job_fail(jobs[at], code, err_text(code));
            continue;
        }
        if (!has_room(s, in, n_rows))
            break;
        n_rows += beams_opts(in->beams)->n_beams;
        begin(s, jobs[at]);
    }
    for (uint32_t i = first; i < s->n_active; i++) {
        struct input *in = s->active[i]->input;
        if (n_tokens + in->x.n > max_tokens) {
            encode(s, i - n_sources, n_sources);
            n_sources = n_tokens = 0;
        }
        s->sources[n_sources++] =
            (struct t5_source){in->x.ids, (uint32_t)in->x.n, in->source_pages};
        n_tokens += (uint32_t)in->x.n;
    }
    encode(s, s->n_active - n_sources, n_sources);
    return at;
}

/* One token of every hypothesis of every task. */
static void step(struct s2s *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_active; i++) {
        struct input *in = s->active[i]->input;
        for (uint32_t r = 0; r < in->n_rows; r++)
            s->rows[n++] = (struct t5_row){.token = beams_token(in->beams, r),
                                           .pos = beams_n_tokens(in->beams),
                                           .pages = in->pages + (size_t)r * in->pages_each,
                                           .source_pages = in->source_pages,
                                           .n_source = (uint32_t)in->x.n};
    }
    t5_decode(s->t5, s->rows, n);
    for (uint32_t i = s->n_active; i-- > 0;) { /* backwards, since the last one fills a gap */
        struct job *j = s->active[i];
        struct input *in = j->input;
        n -= in->n_rows;
        int code = task_gave_up(j->task, clock_ns());
        if (code == 0 && in->broken)
            code = SHOAL_ENOTFINITE;
        /* A value that is not finite reaches all logits of its row, through the norms. */
        for (uint32_t r = 0; code == 0 && r < in->n_rows; r++)
            code = isfinite(t5_logits(s->t5, n + r)[0]) ? 0 : SHOAL_ENOTFINITE;
        if (code == 0 && beams_step(in->beams, &s->with, t5_logits(s->t5, n)))
            follow(s, in);
        else
            end(s, i, code);
    }
}

static void run(void *self, struct job *const *jobs, uint32_t n)
{
    struct s2s *s = self;
    uint32_t at = admit(s, jobs, 0, n);
    while (s->n_active > 0) {
        uint32_t before = s->n_active;
        step(s);
        if (s->n_active < before && at < n)
            at = admit(s, jobs, at, n);
    }
}

/* ---- opening -------------------------------------------------------------------------------- */

static void info(const void *self, struct shoal_engine_info *out)
{
    const struct s2s *s = self;
    t5_engine_info(s->t5, s->file, out);
    out->n_ctx = s->n_ctx;
    out->kv_bytes = s->kv_bytes;
    out->kv_pages = s->n_pages;
}

static void close_(void *self)
{
    struct s2s *s = self;
    t5_destroy(s->t5);
    seq2seq_opts_fini(&s->opts);
    kv_pages_destroy(s->pages);
    sampler_destroy(s->sampler);
    if (s->kv)
        mem_pages_free(s->kv, s->kv_bytes);
    mem_free(s->with.row);
    mem_free(s->active);
    mem_free(s->sources);
    mem_free(s->rows);
    mem_free(s);
}

static const struct specialist_ops ops = {
    .engine = "native",
    .prepare = prepare,
    .run = run,
    .drop = drop,
    .info = info,
    .close = close_,
};

static int check_token(const char *what, int32_t token, uint32_t n_vocab, struct err *e)
{
    return (uint32_t)token < n_vocab
               ? 0
               : err_set(e, SHOAL_EFORMAT, "%s is token %d, but the vocabulary has %u tokens", what,
                         token, n_vocab);
}

/* Checks forced and forbidden tokens.  An end that is forbidden alone would never come, so it is
 * allowed, as in the library. */
static int check_rules(struct beams_opts *w, uint32_t n_vocab, struct err *e)
{
    uint32_t n = 0;
    int rc = w->first.on ? check_token("forced_bos_token_id", w->first.token, n_vocab, e) : 0;
    if (rc == 0 && w->last.on)
        rc = check_token("forced_eos_token_id", w->last.token, n_vocab, e);
    for (uint32_t i = 0; rc == 0 && i < w->n_bad; i++) {
        bool end = false;
        for (uint32_t t = 0; rc == 0 && t < w->bad[i].n; t++)
            rc = check_token("one of bad_words_ids", w->bad[i].tokens[t], n_vocab, e);
        for (uint32_t k = 0; k < w->n_ends; k++)
            end |= w->bad[i].n == 1 && w->bad[i].tokens[0] == w->ends[k];
        if (!end)
            w->bad[n++] = w->bad[i];
    }
    w->n_bad = n;
    return rc;
}

/* Checks the settings against the model and its tokenizer. */
static int check_settings(struct s2s *s, const struct t5_config *c, struct err *e)
{
    struct beams_opts *w = &s->opts.write;
    const struct tokenizer_info *t = tokenizer_info(s->tokenizer);
    if (w->start == TOKENIZER_NONE)
        w->start = c->start_token;
    if (w->n_ends == 0 && t->eos != TOKENIZER_NONE)
        w->ends[w->n_ends++] = t->eos;
    if (t->n_vocab > c->n_vocab)
        return err_set(e, SHOAL_EFORMAT, "the tokenizer has %u tokens, but the model only %u",
                       t->n_vocab, c->n_vocab);
    if ((uint32_t)w->start >= c->n_vocab)
        return err_set(e, SHOAL_EFORMAT,
                       "the decoder's first token is %d, but the vocabulary has %u tokens",
                       w->start, c->n_vocab);
    for (uint32_t i = 0; i < w->n_ends; i++)
        if ((uint32_t)w->ends[i] >= c->n_vocab)
            return err_set(e, SHOAL_EFORMAT,
                           "the end token is %d, but the vocabulary has %u tokens", w->ends[i],
                           c->n_vocab);
    if (w->max_tokens > s->n_ctx)
        w->max_tokens = s->n_ctx;
    return check_rules(w, c->n_vocab, e);
}

static int reserve(struct s2s *s, struct err *e)
{
    const struct t5_config *c = t5_config(s->t5);
    int rc = t5_engine_reserve(s->t5, s->n_pages, &s->kv, &s->kv_bytes, e);
    if (rc == 0)
        rc = kv_pages_create(&s->pages, s->n_pages, KERN_PAGE, e);
    if (rc == 0)
        rc = sampler_create(&s->sampler, t5_kernels(s->t5), c->n_vocab, e);
    if (rc < 0)
        return rc;
    s->with = (struct beams_with){.k = t5_kernels(s->t5),
                                  .n_vocab = c->n_vocab,
                                  .row = mem_aligned((size_t)2 * c->n_vocab * sizeof(float)),
                                  .sampler = s->sampler};
    s->active = mem_zalloc_n(s->max_jobs, sizeof(*s->active));
    s->sources = mem_zalloc_n(s->max_jobs, sizeof(*s->sources));
    s->rows = mem_zalloc_n(MAX_ROWS, sizeof(*s->rows));
    if (!s->with.row || !s->active || !s->sources || !s->rows)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %u tasks", s->max_jobs);
    return 0;
}

static int load(struct s2s *s, const char *path, struct crew *crew,
                const struct shoal_engine_opts *o, struct err *e)
{
    char dir[PATH_MAX];
    struct t5_sizes sizes;
    struct t5_opts to = {
        .crew = crew, .n_ctx = o->n_ctx, .max_seqs = s->max_jobs, .max_rows = MAX_ROWS};
    int rc = t5_engine_opts(&to, o, dir, e);
    if (rc == 0)
        rc = t5_measure(&sizes, s->file, &to, e);
    if (rc == 0)
        rc = seq2seq_opts_init(&s->opts, s->file, e);
    if (rc < 0)
        return rc;
    s->n_ctx = sizes.n_ctx;
    if (to.n_threads == 0 && sizes.weights < TINY_MODEL_BYTES)
        to.n_threads = 1;
    const struct memory_plan_need need = {sizes.weights, sizes.scratch, sizes.kv_page};
    const size_t each = pages_needed(s->n_ctx, &s->opts.write);
    rc =
        memory_plan_pages(&s->n_pages, &need, each * (s->max_jobs > 1 ? s->max_jobs / 2 : 1), o, e);
    if (rc == 0)
        rc = t5_create(&s->t5, s->file, path, &to, e);
    if (rc == 0)
        rc = check_settings(s, t5_config(s->t5), e);
    return rc < 0 ? rc : reserve(s, e);
}

int seq2seq_open(struct specialist *sp, const struct model_file *file, const struct tokenizer *t,
                 const char *path, struct crew *crew, const struct shoal_engine_opts *o,
                 struct err *e)
{
    struct s2s *s = mem_zalloc(sizeof(*s));
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a sequence-to-sequence model");
    s->file = file;
    s->tokenizer = t;
    s->max_jobs = o->max_tasks ? o->max_tasks : DEFAULT_MAX_JOBS;
    int rc = load(s, path, crew, o, e);
    if (rc < 0) {
        close_(s);
        return err_wrap(e, "%s", path);
    }
    *sp = (struct specialist){.ops = &ops,
                              .self = s,
                              .kinds = SHOAL_KIND_SUMMARIZE,
                              .max_jobs = s->max_jobs,
                              .lane = t5_lane(s->t5),
                              .weights = t5_weights(s->t5),
                              .max_cost = s->max_jobs * 2 * s->n_ctx};
    return 0;
}
