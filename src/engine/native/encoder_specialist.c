/* encoder_specialist.c - classify, tag, embed and rerank with an encoder and its heads, natively or
 * in ONNX Runtime.
 *
 * Tasks with the same tokens (one text to be classified and tagged) share one sequence of the
 * pass.  Memory for a result is reserved when its task is submitted. */
#include "engine/native/encoder_specialist.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/encoder.h"
#include "model/heads.h"
#include "text/tokenizer/tokenizer.h"
#include "engine/native/encoder_core.h"
#include "engine/onnx/onnx_encoder.h"
#include "engine/onnx/onnx_files.h"
#include "engine/onnx/onnx_session.h"
#include "image/image_fit.h"

struct enc {
    const struct model_file *file; /* borrowed from the engine */
    struct encoder *encoder;       /* NULL: the ONNX session computes */
    struct onnx_encoder *onnx;
    const struct kern_ops *kernels;
    struct heads *heads;
    const struct tokenizer *tokenizer; /* borrowed too */
    char *arch;                        /* ONNX */
    uint32_t n_ctx, max_seqs;
    bool types; /* the model has token types, for pairs of texts or the capitals of words */
    /* the engine's thread only */
    struct encoder_seq *seqs; /* [max_seqs] */
    struct heads_work *work;
    float *row; /* logits of the largest label set, or a vector */
    uint16_t *tags;
    float *tag_scores;
    struct heads_span *spans; /* [n_ctx] each */
};

struct input { /* input of a job, followed by the arrays its result points to */
    struct tok_encoding x;
    uint8_t *image; /* [size][size][3], in place of x */
    uint32_t n;     /* tokens, or patches and one more */
    const struct heads_set *set;
    struct heads_word *words;
    uint32_t n_words;
    struct shoal_label *labels;
    struct shoal_span *spans;
    float *vector;
    double value;
    uint32_t seq; /* of the pass */
    bool broken;  /* a state of a token or a logit of a word is not finite */
};

static enum heads_task task_of(enum shoal_kind kind)
{
    return kind == SHOAL_KIND_CLASSIFY ? HEADS_CLASSIFY
           : kind == SHOAL_KIND_TAG    ? HEADS_TAG
           : kind == SHOAL_KIND_EMBED  ? HEADS_EMBED
                                       : HEADS_RERANK;
}

/* ---- preparing ------------------------------------------------------------------------------ */

static int reserve_tags(const struct enc *s, struct job *j, struct input *in, struct err *e)
{
    in->words = mem_zalloc_n(in->x.n, sizeof(*in->words));
    if (!in->words)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a task of %zu tokens", in->x.n);
    in->n_words = heads_words(s->heads, j->text, j->o.text_bytes, in->x.start, in->x.end,
                              (uint32_t)in->x.n, in->words);
    if (in->set->cased)
        heads_cases(j->text, in->words, in->n_words, in->x.start, in->x.end, (uint32_t)in->x.n,
                    in->x.types);
    in->spans = mem_zalloc_n(in->n_words, sizeof(*in->spans));
    return in->spans
               ? 0
               : err_set(e, SHOAL_ENOMEM, "out of memory for a task of %u words", in->n_words);
}

static int reserve_result(const struct enc *s, struct job *j, struct input *in, struct err *e)
{
    const struct heads_info *info = heads_info(s->heads);
    int rc = 0;
    switch (j->o.kind) {
    case SHOAL_KIND_CLASSIFY:
        in->labels = mem_zalloc_n(in->set->count, sizeof(*in->labels));
        return in->labels ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for a task");
    case SHOAL_KIND_TAG:
        return reserve_tags(s, j, in, e);
    case SHOAL_KIND_EMBED:
        if (j->o.dimensions > info->vector_dim)
            return err_set(e, SHOAL_EINVAL,
                           "cannot return %u dimensions: the model's vectors have %u",
                           j->o.dimensions, info->vector_dim);
        in->vector = mem_zalloc_n(info->room, sizeof(*in->vector));
        return in->vector ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for a task");
    default:
        return rc;
    }
}

/* Puts the prompt that the model was trained with before the text. */
static int add_prompt(const struct enc *s, struct job *j, struct err *e)
{
    const char *prompt;
    int rc = heads_find_prompt(s->heads, j->prompt, &prompt, e);
    if (rc < 0 || !prompt[0])
        return rc;
    const size_t n = strlen(prompt);
    char *text = mem_alloc(n + j->o.text_bytes + 1);
    if (!text)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a task");
    memcpy(text, prompt, n);
    memcpy(text + n, j->text, j->o.text_bytes);
    text[n + j->o.text_bytes] = '\0';
    mem_free(j->text);
    j->o.text = j->text = text;
    j->o.text_bytes += n;
    return 0;
}

/* The image as the model reads it. */
static int prepare_image(const struct enc *s, struct job *j, struct input *in, struct err *e)
{
    const struct encoder_picture *p = &encoder_config(s->encoder)->picture;
    const struct image_fit fit = {.width = p->size,
                                  .height = p->size,
                                  .to_width = p->to,
                                  .to_height = p->to,
                                  .shortest = p->keeps_form ? p->to : 0,
                                  .filter = (enum resample_filter)p->filter};
    in->image = mem_alloc((size_t)p->size * p->size * 3);
    if (!in->image)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a task");
    in->n = s->n_ctx;
    return image_fit(&fit, in->image, j->o.image, j->o.image_bytes, e);
}

static int prepare_text(const struct enc *s, struct job *j, struct input *in, struct err *e)
{
    const bool pair = j->o.kind == SHOAL_KIND_RERANK;
    int rc = j->o.kind == SHOAL_KIND_EMBED ? add_prompt(s, j, e) : 0;
    if (rc == 0)
        rc = tokenizer_encode_pair(s->tokenizer, &in->x, j->text, j->o.text_bytes,
                                   pair ? j->document : NULL, pair ? j->o.document_bytes : 0,
                                   s->n_ctx, TOKENIZER_ADD_SPECIAL | TOKENIZER_CUT_SECOND, e);
    if (rc < 0)
        return rc;
    if (in->x.n == 0)
        return err_set(e, SHOAL_EINVAL, "the text is empty");
    if (in->x.cut && j->o.whole)
        return job_too_long(s->n_ctx, e);
    in->n = (uint32_t)in->x.n;
    return 0;
}

static int prepare(const void *self, struct job *j, struct err *e)
{
    const struct enc *s = self;
    struct input *in = mem_zalloc(sizeof(*in));
    if (!in)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a task");
    j->input = in;
    tokenizer_encoding_init(&in->x);
    int rc = j->o.image ? prepare_image(s, j, in, e) : prepare_text(s, j, in, e);
    if (rc < 0)
        return rc;
    if (j->o.kind == SHOAL_KIND_CLASSIFY || j->o.kind == SHOAL_KIND_TAG)
        rc = heads_find_set(s->heads, task_of(j->o.kind), j->labels, &in->set, e);
    if (rc == 0)
        rc = reserve_result(s, j, in, e);
    j->cost = in->n;
    j->result.n_tokens = in->n;
    j->result.truncated = in->x.cut;
    return rc;
}

static void drop(struct job *j)
{
    struct input *in = j->input;
    if (!in)
        return;
    tokenizer_encoding_fini(&in->x);
    mem_free(in->image);
    mem_free(in->words);
    mem_free(in->labels);
    mem_free(in->spans);
    mem_free(in->vector);
    mem_free(in);
}

/* ---- computing ------------------------------------------------------------------------------ */

static int best_first(const void *x, const void *y)
{
    float a = ((const struct shoal_label *)x)->score, b = ((const struct shoal_label *)y)->score;
    return (a < b) - (a > b);
}

/* Logits of a label set; set NULL: the single logit of a reranker. */
static void class_logits(struct enc *s, uint32_t seq, const struct heads_set *set)
{
    if (s->encoder) {
        heads_class_logits(s->heads, s->encoder, seq, set, s->row);
        return;
    }
    const float *all = onnx_encoder_get(s->onnx, ONNX_ENCODER_LOGITS, seq, 0);
    memcpy(s->row, all + (set ? set->first : 0), (set ? set->count : 1) * sizeof(*s->row));
}

static void word_logits(struct enc *s, const struct input *in)
{
    if (s->encoder) {
        heads_word_logits(s->heads, s->encoder, in->seq, in->set, in->words, in->n_words, s->work);
        return;
    }
    float *out = heads_work_logits(s->work);
    for (uint32_t i = 0; i < in->n_words; i++, out += in->set->count)
        memcpy(out,
               onnx_encoder_get(s->onnx, ONNX_ENCODER_TOKEN_LOGITS, in->seq, in->words[i].token) +
                   in->set->first,
               in->set->count * sizeof(*out));
}

static void vector(struct enc *s, const struct input *in, uint32_t n)
{
    const struct heads_info *info = heads_info(s->heads);
    if (s->encoder) {
        heads_vector(s->heads, s->encoder, in->seq, n, in->vector);
        return;
    }
    enum onnx_encoder_output whole =
        info->poolings[0] == HEADS_POOLING_POOLER ? ONNX_ENCODER_POOLED : ONNX_ENCODER_SENTENCE;
    const float *v = onnx_encoder_get(s->onnx, whole, in->seq, 0);
    if (v) /* pooled by the model itself */
        memcpy(in->vector, v, info->dim * sizeof(*v));
    else
        heads_pool_all(s->heads, s->kernels,
                       onnx_encoder_get(s->onnx, ONNX_ENCODER_HIDDEN, in->seq, 0),
                       (uint32_t)in->x.n, in->vector);
    heads_finish_vector(s->heads, s->kernels, n, in->vector);
}

static void classify(struct enc *s, struct job *j, struct input *in)
{
    const struct heads_set *set = in->set;
    class_logits(s, in->seq, set);
    heads_probabilities(s->kernels, set, s->row);
    struct heads_answer best = heads_answer(set, s->row);
    for (uint32_t i = 0; i < set->count; i++)
        in->labels[i] = (struct shoal_label){set->labels[i], s->row[i]};
    qsort(in->labels, set->count, sizeof(*in->labels), best_first);
    j->result.label = set->labels[best.label];
    j->result.confidence = best.confidence;
    j->result.labels = in->labels;
    j->result.n_labels = set->count;
}

static void tag(struct enc *s, struct job *j, struct input *in)
{
    const struct heads_set *set = in->set;
    word_logits(s, in);
    const float *logits = heads_work_logits(s->work);
    float sum = 0; /* stays 0 unless a value is not finite */
    for (size_t i = 0; i < (size_t)in->n_words * set->count; i++)
        sum += logits[i] * 0.0f;
    in->broken |= !isfinite(sum);
    heads_tags(s->kernels, set, in->n_words, s->work, s->tags, s->tag_scores);
    uint32_t n = heads_spans(s->heads, set, j->text, j->o.text_bytes, in->words, in->n_words,
                             s->tags, s->tag_scores, s->spans);
    for (uint32_t i = 0; i < n; i++) {
        const struct heads_span *from = &s->spans[i];
        in->spans[i] = (struct shoal_span){.label = from->label,
                                           .start = from->start,
                                           .end = from->end,
                                           .start_char = from->start_char,
                                           .end_char = from->end_char,
                                           .score = from->score};
    }
    j->result.spans = in->spans;
    j->result.n_spans = n;
}

static void embed(struct enc *s, struct job *j, struct input *in)
{
    const struct heads_info *info = heads_info(s->heads);
    vector(s, in, j->o.dimensions);
    j->result.vector = in->vector;
    j->result.n_dims = j->o.dimensions ? j->o.dimensions : info->dimensions;
}

static void rerank(struct enc *s, struct job *j, struct input *in)
{
    class_logits(s, in->seq, NULL);
    in->value = (double)heads_relevance(s->heads, s->row[0], j->o.raw);
    j->result.values = &in->value;
    j->result.n_values = 1;
}

/* Whether a sequence of the pass is that of this input. */
static bool is_of(const struct enc *s, const struct encoder_seq *seq, const struct input *in)
{
    const struct tok_encoding *x = &in->x;
    if (in->image) {
        const size_t side = encoder_config(s->encoder)->picture.size;
        return memcmp(seq->image, in->image, side * side * 3) == 0;
    }
    return seq->n == x->n && memcmp(seq->tokens, x->ids, x->n * sizeof(*x->ids)) == 0 &&
           (!seq->types || memcmp(seq->types, x->types, x->n) == 0);
}

static int forward(struct enc *s, uint32_t n_seqs, struct err *e)
{
    if (s->encoder) {
        encoder_forward(s->encoder, s->seqs, n_seqs);
        return 0;
    }
    return onnx_encoder_forward(s->onnx, s->seqs, n_seqs, e);
}

/* Looks at one value of every token: the norms spread what is not finite over all values of its
 * token, but rounding to integers hides it from the other tokens and from the heads. */
static void check_states(const struct enc *s, struct input *in)
{
    in->broken = false;
    for (uint32_t t = 0; s->encoder && t < in->n; t++)
        in->broken |= !isfinite(encoder_hidden(s->encoder, in->seq, t)[0]);
}

static bool result_is_finite(const struct job *j)
{
    const struct shoal_result *r = &j->result;
    const struct input *in = j->input;
    float sum = 0;
    for (uint32_t i = 0; r->vector && i < r->n_dims; i++)
        sum += r->vector[i] * 0.0f;
    return isfinite(sum) && !in->broken && (!r->values || isfinite(r->values[0])) &&
           (!r->labels || isfinite(r->confidence));
}

static void run(void *self, struct job *const *jobs, uint32_t n)
{
    struct enc *s = self;
    struct err e = {0};
    uint32_t n_seqs = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct input *in = jobs[i]->input;
        for (in->seq = 0; in->seq < n_seqs && !is_of(s, &s->seqs[in->seq], in); in->seq++)
            ;
        if (in->seq == n_seqs)
            s->seqs[n_seqs++] = (struct encoder_seq){.tokens = in->x.ids,
                                                     .types = s->types ? in->x.types : NULL,
                                                     .n = in->n,
                                                     .image = in->image};
    }
    int rc = forward(s, n_seqs, &e);
    for (uint32_t i = 0; i < n; i++) {
        static void (*const how[])(struct enc *, struct job *, struct input *) = {
            [HEADS_CLASSIFY] = classify,
            [HEADS_TAG] = tag,
            [HEADS_EMBED] = embed,
            [HEADS_RERANK] = rerank,
        };
        if (rc == 0) {
            check_states(s, jobs[i]->input);
            how[task_of(jobs[i]->o.kind)](s, jobs[i], jobs[i]->input);
        }
        int code = rc < 0 ? rc : result_is_finite(jobs[i]) ? 0 : SHOAL_ENOTFINITE;
        if (code < 0)
            job_fail(jobs[i], code, err_text(code));
    }
}

/* ---- opening -------------------------------------------------------------------------------- */

static const char *label_set(const void *self, enum shoal_kind kind, uint32_t i)
{
    const struct enc *s = self;
    enum heads_task task = task_of(kind);
    const struct heads_set *first = NULL;
    if (i >= heads_n_sets(s->heads, task) || heads_find_set(s->heads, task, NULL, &first, NULL) < 0)
        return NULL;
    if (i == 0)
        return first->name;
    for (uint32_t k = 0; k < heads_n_sets(s->heads, task); k++) {
        const struct heads_set *set = heads_set(s->heads, task, k);
        if (set != first && --i == 0)
            return set->name;
    }
    return NULL;
}

static const char *label(const void *self, enum shoal_kind kind, const char *name, uint32_t i)
{
    const struct enc *s = self;
    const struct heads_set *set;
    if (heads_find_set(s->heads, task_of(kind), name, &set, NULL) < 0)
        return NULL;
    return i < set->count ? set->labels[i] : NULL;
}

static void info_onnx(const struct enc *s, struct shoal_engine_info *out)
{
    const struct onnx_encoder_info *i = onnx_encoder_info(s->onnx);
    out->engine = "onnx";
    out->arch = s->arch;
    out->kernels = i->library;
    out->n_vocab = tokenizer_info(s->tokenizer)->n_vocab;
    out->dim = heads_info(s->heads)->dim;
    out->n_threads = i->n_threads;
    out->file_bytes = out->weights_bytes = i->file_bytes;
}

static void info(const void *self, struct shoal_engine_info *out)
{
    const struct enc *s = self;
    if (s->onnx)
        info_onnx(s, out);
    else
        encoder_core_info(s->encoder, s->file, out);
    out->n_ctx = out->n_ctx_train = s->n_ctx;
}

static void close_(void *self)
{
    struct enc *s = self;
    encoder_destroy(s->encoder);
    onnx_encoder_close(s->onnx);
    heads_work_destroy(s->work);
    heads_destroy(s->heads);
    mem_free(s->seqs);
    mem_free(s->arch);
    mem_free(s->row);
    mem_free(s->tags);
    mem_free(s->tag_scores);
    mem_free(s->spans);
    mem_free(s);
}

static const struct specialist_ops ops = {
    .engine = "native",
    .prepare = prepare,
    .run = run,
    .drop = drop,
    .label_set = label_set,
    .label = label,
    .info = info,
    .close = close_,
};

static int reserve(struct enc *s, struct err *e)
{
    uint32_t widest = heads_info(s->heads)->dim, most = heads_info(s->heads)->max_tokens;
    if (most && most < s->n_ctx) /* the model's files allow fewer tokens than it has positions */
        s->n_ctx = most;
    for (int task = HEADS_CLASSIFY; task <= HEADS_TAG; task++)
        for (uint32_t i = 0; i < heads_n_sets(s->heads, (enum heads_task)task); i++) {
            uint32_t n = heads_set(s->heads, (enum heads_task)task, i)->count;
            widest = n > widest ? n : widest;
        }
    for (uint32_t i = 0; i < heads_n_sets(s->heads, HEADS_TAG); i++)
        if (heads_set(s->heads, HEADS_TAG, i)->cased &&
            (!s->encoder || encoder_config(s->encoder)->n_types < HEADS_CASES))
            return err_set(e, SHOAL_EFORMAT,
                           "label set \"%.60s\" is cased: that needs %d token types in the model",
                           heads_set(s->heads, HEADS_TAG, i)->name, HEADS_CASES);
    s->seqs = mem_zalloc_n(s->max_seqs, sizeof(*s->seqs));
    s->row = mem_zalloc_n(widest, sizeof(*s->row));
    s->tags = mem_zalloc_n(s->n_ctx, sizeof(*s->tags));
    s->tag_scores = mem_zalloc_n(s->n_ctx, sizeof(*s->tag_scores));
    s->spans = mem_zalloc_n(s->n_ctx, sizeof(*s->spans));
    if (!s->seqs || !s->row || !s->tags || !s->tag_scores || !s->spans)
        return err_set(e, SHOAL_ENOMEM, "out of memory for an encoder of %u sequences",
                       s->max_seqs);
    return heads_has(s->heads, HEADS_TAG) ? heads_work_create(&s->work, s->heads, s->n_ctx, e) : 0;
}

static int load(struct enc *s, const char *path, struct crew *crew,
                const struct shoal_engine_opts *o, uint32_t *max_cost, struct err *e)
{
    int rc = encoder_core_open(&s->encoder, &s->heads, s->file, s->tokenizer, path, crew, o, e);
    if (rc < 0)
        return rc;
    struct encoder_sizes sizes = encoder_sizes(s->encoder);
    s->kernels = encoder_kernels(s->encoder);
    s->types = encoder_config(s->encoder)->n_types > 1;
    s->n_ctx = sizes.n_ctx;
    s->max_seqs = sizes.max_seqs;
    *max_cost = sizes.max_tokens;
    return reserve(s, e);
}

/* Properties of an ONNX model that the heads need; its layers are not visible. */
static int open_onnx_heads(struct enc *s, struct err *e)
{
    const struct onnx_encoder_info *i = onnx_encoder_info(s->onnx);
    struct str config = {"", 0}, pooling = {"", 0};
    bool has_config = model_file_get_str(s->file, "huggingface.config", &config);
    bool has_pooling = model_file_get_str(s->file, "huggingface.sentence_pooling", &pooling);
    uint32_t dim = i->dims[ONNX_ENCODER_SENTENCE] ? i->dims[ONNX_ENCODER_SENTENCE]
                                                  : i->dims[ONNX_ENCODER_HIDDEN];
    struct heads_source source = {.file = s->file,
                                  .config = has_config ? config.p : NULL,
                                  .n_config = config.n,
                                  .pooling = has_pooling ? pooling.p : NULL,
                                  .n_pooling = pooling.n,
                                  .arch = s->arch,
                                  .dim = dim,
                                  .n_classes = i->dims[ONNX_ENCODER_LOGITS],
                                  .n_tags = i->dims[ONNX_ENCODER_TOKEN_LOGITS],
                                  .has_pooler = i->dims[ONNX_ENCODER_POOLED] > 0,
                                  .pools_itself = i->dims[ONNX_ENCODER_SENTENCE] > 0};
    return heads_create(&s->heads, &source, e);
}

static int load_onnx(struct enc *s, struct onnx_session *session, const struct shoal_engine_opts *o,
                     uint32_t *max_cost, struct err *e)
{
    struct onnx_encoder_opts oo = {.max_tokens = onnx_files_n_ctx(s->file)};
    struct str arch = {"", 0};
    int rc = onnx_encoder_from_session(&s->onnx, session, &oo, e);
    (void)model_file_get_str(s->file, "general.architecture", &arch);
    s->arch = mem_strndup(arch.p, arch.n);
    if (rc == 0 && !s->arch)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for an encoder");
    if (rc == 0 && !(s->kernels = kern_select(o->kernels, e)))
        rc = SHOAL_EUNSUPPORTED;
    if (rc == 0)
        rc = open_onnx_heads(s, e);
    if (rc < 0)
        return rc;
    s->types = true; /* ignored by a model without that input */
    s->n_ctx = onnx_encoder_info(s->onnx)->max_tokens;
    s->max_seqs = o->max_tasks ? o->max_tasks : 64;
    *max_cost = s->n_ctx * 4;
    return reserve(s, e);
}

int encoder_specialist_open(struct specialist *sp, const struct model_file *file,
                            const struct tokenizer *tokenizer, const char *path,
                            struct onnx_session *onnx, struct crew *crew,
                            const struct shoal_engine_opts *o, struct err *e)
{
    static const enum shoal_kind kinds[] = {SHOAL_KIND_CLASSIFY, SHOAL_KIND_TAG, SHOAL_KIND_EMBED,
                                            SHOAL_KIND_RERANK};
    struct enc *s = mem_zalloc(sizeof(*s));
    if (!s) {
        onnx_session_close(onnx);
        return err_set(e, SHOAL_ENOMEM, "out of memory for an encoder");
    }
    s->file = file;
    s->tokenizer = tokenizer;
    int rc =
        onnx ? load_onnx(s, onnx, o, &sp->max_cost, e) : load(s, path, crew, o, &sp->max_cost, e);
    if (rc < 0) {
        close_(s);
        return err_wrap(e, "%s", path);
    }
    sp->ops = &ops;
    sp->self = s;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (heads_has(s->heads, task_of(kinds[i])))
            sp->kinds |= kinds[i];
    sp->images = s->encoder && encoder_config(s->encoder)->picture.size > 0;
    if (sp->images)
        sp->kinds &= SHOAL_KIND_CLASSIFY | SHOAL_KIND_EMBED;
    sp->max_jobs = s->max_seqs;
    sp->lane = s->encoder ? encoder_lane(s->encoder) : NULL;
    sp->weights = s->encoder ? encoder_weights(s->encoder) : NULL;
    return 0;
}
