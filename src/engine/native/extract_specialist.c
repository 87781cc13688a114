/* extract_specialist.c - see extract_specialist.h. */
#include "engine/native/extract_specialist.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "score/extract.h"
#include "format/model_open.h"
#include "engine/native/encoder_core.h"
#include "engine/task.h"

#define MAX_JOBS 16u

struct sum {
    const struct model_file *file; /* borrowed, like the tokenizer */
    const struct tokenizer *tokenizer;
    struct extract *extract;
    struct encoder *encoder;
    struct heads *heads;
    uint32_t n_ctx, max_seqs, max_tokens, dim;
    struct encoder_seq *seqs; /* [max_seqs], the engine's thread only, like the next */
    float *vector;            /* room for one embedding while it is computed */
};

struct input { /* of a job */
    struct extract_doc *doc;
    struct tok_encoding *x; /* [doc->n] */
    float *vectors, *mean;  /* [doc->n][dim]; [dim] */
    uint32_t *chosen;
    struct shoal_span *spans;
    char *text;
};

/* ---- preparing ------------------------------------------------------------------------------ */

static int encode(const struct sum *s, struct job *j, struct input *in, struct err *e)
{
    for (uint32_t i = 0; i < in->doc->n; i++) {
        const struct extract_sentence *t = &in->doc->sentences[i];
        tokenizer_encoding_init(&in->x[i]);
        int rc = tokenizer_encode_pair(s->tokenizer, &in->x[i], t->text, t->n, NULL, 0, s->n_ctx,
                                       TOKENIZER_ADD_SPECIAL, e);
        if (rc == 0 && in->x[i].cut && j->o.whole)
            rc = job_too_long(s->n_ctx, e);
        if (rc < 0)
            return rc;
        j->result.truncated |= in->x[i].cut;
        j->cost += (uint32_t)in->x[i].n;
    }
    j->result.n_tokens = j->cost;
    return 0;
}

static int prepare(const void *self, struct job *j, struct err *e)
{
    const struct sum *s = self;
    struct input *in = mem_zalloc(sizeof(*in));
    if (!in)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a task");
    j->input = in;
    int rc = extract_doc_create(&in->doc, s->extract, j->text, j->o.text_bytes, j->document,
                                j->o.document_bytes, e);
    if (rc < 0)
        return rc;
    uint32_t n = in->doc->n;
    if (n == 0)
        return err_set(e, SHOAL_EINVAL, "the text contains no sentence");
    size_t bytes = n + 1; /* separators and the final zero */
    for (uint32_t i = 0; i < n; i++)
        bytes += in->doc->sentences[i].n;
    in->x = mem_zalloc_n(n, sizeof(*in->x));
    in->vectors = mem_zalloc_n(n, s->dim * sizeof(*in->vectors));
    in->mean = mem_zalloc_n(s->dim, sizeof(*in->mean));
    in->chosen = mem_zalloc_n(n, sizeof(*in->chosen));
    in->spans = mem_zalloc_n(n, sizeof(*in->spans));
    in->text = mem_alloc(bytes);
    if (!in->x || !in->vectors || !in->mean || !in->chosen || !in->spans || !in->text)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a text of %u sentences", n);
    return encode(s, j, in, e);
}

static void drop(struct job *j)
{
    struct input *in = j->input;
    if (!in)
        return;
    for (uint32_t i = 0; in->x && i < in->doc->n; i++)
        tokenizer_encoding_fini(&in->x[i]);
    extract_doc_destroy(in->doc);
    mem_free(in->x);
    mem_free(in->vectors);
    mem_free(in->mean);
    mem_free(in->chosen);
    mem_free(in->spans);
    mem_free(in->text);
    mem_free(in);
}

/* ---- computing ------------------------------------------------------------------------------ */

/* Embeds sentences from `from` on, as many as fit one pass; returns the next one to embed. */
static uint32_t pass(struct sum *s, struct input *in, uint32_t from)
{
    const uint32_t n_values = heads_info(s->heads)->dimensions; /* the rest stays zero */
    uint32_t n = 0, tokens = 0;
    while (from + n < in->doc->n && n < s->max_seqs &&
           (n == 0 || tokens + in->x[from + n].n <= s->max_tokens)) {
        const struct tok_encoding *x = &in->x[from + n];
        s->seqs[n] = (struct encoder_seq){.tokens = x->ids, .n = (uint32_t)x->n};
        n++;
        tokens += (uint32_t)x->n;
    }
    encoder_forward(s->encoder, s->seqs, n);
    for (uint32_t i = 0; i < n; i++) {
        heads_vector(s->heads, s->encoder, i, 0, s->vector);
        memcpy(in->vectors + (size_t)(from + i) * s->dim, s->vector, n_values * sizeof(*s->vector));
    }
    return from + n;
}

static void summarize(struct sum *s, struct job *j)
{
    struct input *in = j->input;
    for (uint32_t at = 0; at < in->doc->n;) {
        int code = task_gave_up(j->task, clock_ns());
        if (code < 0) {
            job_fail(j, code, err_text(code));
            return;
        }
        at = pass(s, in, at);
    }
    extract_choose(s->extract, in->doc, in->vectors, s->dim, j->o.max_sentences, in->mean,
                   in->chosen);
    uint32_t n = extract_count(s->extract, in->doc, j->o.max_sentences);
    const struct extract_sentence *before = NULL;
    size_t len = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct extract_sentence *t = &in->doc->sentences[in->chosen[i]];
        len = extract_append(in->text, len, before, t);
        before = t;
        in->spans[i] = (struct shoal_span){.start = t->start,
                                           .end = t->end,
                                           .start_char = t->start_char,
                                           .end_char = t->end_char,
                                           .score = (float)t->score};
    }
    in->text[len] = '\0';
    j->result.text = in->text;
    j->result.text_bytes = len;
    j->result.spans = in->spans;
    j->result.n_spans = n;
}

static void run(void *self, struct job *const *jobs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        summarize(self, jobs[i]);
}

/* ---- opening -------------------------------------------------------------------------------- */

static void info(const void *self, struct shoal_engine_info *out)
{
    const struct sum *s = self;
    encoder_core_info(s->encoder, s->file, out);
}

static void close_(void *self)
{
    struct sum *s = self;
    encoder_destroy(s->encoder);
    heads_destroy(s->heads);
    extract_close(s->extract);
    mem_free(s->seqs);
    mem_free(s->vector);
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

static int load(struct sum *s, struct model_file **file, struct tokenizer **tokenizer,
                const char *path, struct crew *crew, const struct shoal_engine_opts *o,
                struct err *e)
{
    char folder[PATH_MAX];
    int rc = extract_open(&s->extract, path, e);
    if (rc < 0)
        return rc;
    const char *slash = strrchr(path, '/'), *name = extract_encoder(s->extract);
    int n =
        snprintf(folder, sizeof(folder), "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, name);
    if (*name == '/' || strstr(name, "..") || n >= (int)sizeof(folder))
        return err_set(e, SHOAL_EFORMAT, "%s: its encoder \"%s\" must be in the same folder", path,
                       name);
    if ((rc = model_open(file, folder, e)) < 0)
        return rc;
    if (!encoder_knows(*file))
        return err_set(e, SHOAL_EUNSUPPORTED, "%s is not an encoder", folder);
    rc = tokenizer_create(tokenizer, *file, e);
    if (rc == 0)
        rc = encoder_core_open(&s->encoder, &s->heads, *file, *tokenizer, folder, crew, o, e);
    if (rc < 0)
        return err_wrap(e, "%s", folder);
    s->file = *file;
    s->tokenizer = *tokenizer;
    const uint32_t most = heads_info(s->heads)->max_tokens;
    s->n_ctx = encoder_sizes(s->encoder).n_ctx;
    if (most && most < s->n_ctx)
        s->n_ctx = most;
    s->max_seqs = encoder_sizes(s->encoder).max_seqs;
    s->max_tokens = encoder_sizes(s->encoder).max_tokens;
    s->dim = heads_info(s->heads)->vector_dim;
    s->vector = mem_zalloc_n(heads_info(s->heads)->room, sizeof(*s->vector));
    s->seqs = mem_zalloc_n(s->max_seqs, sizeof(*s->seqs));
    return s->seqs && s->vector ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for a summarizer");
}

int extract_specialist_open(struct specialist *sp, struct model_file **file,
                            struct tokenizer **tokenizer, const char *path, struct crew *crew,
                            const struct shoal_engine_opts *o, struct err *e)
{
    struct sum *s = mem_zalloc(sizeof(*s));
    struct shoal_engine_opts eo = *o;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a summarizer");
    eo.max_tasks = 0; /* sentences of a pass, not texts */
    int rc = load(s, file, tokenizer, path, crew, &eo, e);
    if (rc < 0) {
        close_(s);
        return rc;
    }
    *sp = (struct specialist){.ops = &ops,
                              .self = s,
                              .kinds = SHOAL_KIND_SUMMARIZE,
                              .max_cost = s->max_tokens,
                              .lane = encoder_lane(s->encoder),
                              .weights = encoder_weights(s->encoder),
                              .max_jobs = o->max_tasks ? o->max_tasks : MAX_JOBS};
    return 0;
}
