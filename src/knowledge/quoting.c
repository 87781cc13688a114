/* quoting.c - see quoting.h. */
#include "knowledge/quoting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "knowledge/quote_split.h"

#define PASSAGE_SENTENCES 24u

static void finish(struct quoting *x, const struct failure *f)
{
    mem_free(x->embedding.vectors);
    x->embedding.vectors = NULL;
    x->done(x, f);
}

static void fail(struct quoting *x, int rc, const char *msg)
{
    struct failure f;
    failure_of(&f, rc, msg);
    finish(x, &f);
}

/* ---- ranking ---- */

static int best_first(const void *a, const void *b)
{
    const struct quoting_sentence *p = a, *q = b;
    if (p->score != q->score)
        return p->score < q->score ? 1 : -1;
    return (p->hit > q->hit) - (p->hit < q->hit);
}

static float dot(const float *a, const float *b, uint32_t n)
{
    float sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* A neighbour of the best sentence that answers as well. */
static void find_second(struct quoting *x)
{
    const struct quoting_sentence *first = &x->sentences[0];
    for (uint32_t i = 1; i < x->n_sentences && x->found && x->second == 0; i++) {
        const struct quoting_sentence *s = &x->sentences[i];
        bool beside =
            s->hit == first->hit && (s->place == first->place + 1 || s->place + 1 == first->place);
        if (beside && s->score >= QUOTING_ENOUGH)
            x->second = i;
    }
}

/* vectors: of the question, then of the sentences; NULL: not known. */
static int rank(struct quoting *x, const float *vectors, uint32_t n_dims)
{
    struct quote_question *q = mem_zalloc(sizeof(*q));
    double(*features)[QUOTE_N_FEATURES] =
        mem_zalloc_n((size_t)x->n_sentences + 1, sizeof(*features));
    if (!q || !features) {
        mem_free(q);
        mem_free(features);
        return SHOAL_ENOMEM;
    }
    quote_question_read(q, x->retrieval.query, x->counts, x->n_counts, x->retrieval.info.n_chunks);
    for (uint32_t i = 0; i < x->n_sentences; i++) {
        struct quote_context *c = &x->contexts[i];
        c->similarity = vectors ? dot(vectors, vectors + (size_t)(i + 1) * n_dims, n_dims) : NAN;
        quote_rank_features(features[i], q, c);
    }
    quote_rank_compare(features, x->n_sentences);
    for (uint32_t i = 0; i < x->n_sentences; i++) {
        memcpy(x->sentences[i].features, features[i], sizeof(features[i]));
        x->sentences[i].score = quote_rank_score(features[i]);
    }
    mem_free(q);
    mem_free(features);
    qsort(x->sentences, x->n_sentences, sizeof(*x->sentences), best_first);
    x->found = x->n_sentences > 0 && x->sentences[0].score >= QUOTING_ENOUGH;
    find_second(x);
    return 0;
}

const char *quoting_text(struct quoting *x)
{
    const struct quoting_sentence *a = x->sentences, *b = &x->sentences[x->second];
    if (!x->found)
        return "";
    if (x->second == 0)
        return a->text;
    const bool before = b->place < a->place;
    return arena_printf(&x->retrieval.arena, "%s %s", before ? b->text : a->text,
                        before ? a->text : b->text);
}

static void conclude(struct quoting *x, const float *vectors, uint32_t n_dims)
{
    if (x->cancelled)
        fail(x, SHOAL_ECANCELLED, "cancelled");
    else if (rank(x, vectors, n_dims) < 0)
        fail(x, SHOAL_ENOMEM, "out of memory");
    else
        finish(x, NULL);
}

static void on_embedded(struct embedding *m, const struct failure *f)
{
    struct quoting *x = EXECUTOR_OF(m, struct quoting, embedding);
    x->n_tokens += m->n_tokens;
    if (f)
        finish(x, f);
    else
        conclude(x, m->vectors, m->n_dims);
}

/* ---- sentences ---- */

/* Passages overlap: a sentence may be in two of them. */
static bool is_known(const struct quoting *x, const char *text)
{
    for (uint32_t i = 0; i < x->n_sentences; i++)
        if (strcmp(x->sentences[i].text, text) == 0)
            return true;
    return false;
}

static const char *keep(struct arena *a, const char *text, size_t n)
{
    char *copy = arena_copy(a, text, n + 1);
    for (size_t i = 0; copy && i < n; i++)
        if (copy[i] == '\n')
            copy[i] = ' ';
    if (copy)
        copy[n] = '\0';
    return copy;
}

static bool asks(const char *text, struct quote_span s)
{
    return text[s.at + s.n - 1] == '?';
}

static void add_passage(struct quoting *x, uint32_t k)
{
    struct retrieval *r = &x->retrieval;
    const struct collection_hit *h = &r->hits[k];
    struct quote_span spans[PASSAGE_SENTENCES];
    const uint32_t n = quote_split(spans, PASSAGE_SENTENCES, h->text, strlen(h->text));
    const char *head = arena_printf(&r->arena, "%s. %s", h->title, h->heading);
    for (uint32_t i = 0; i < n && x->n_sentences < QUOTING_MAX_SENTENCES; i++) {
        const char *text = keep(&r->arena, h->text + spans[i].at, spans[i].n);
        if (!text || is_known(x, text) || asks(h->text, spans[i]))
            continue;
        /* What follows a question is its answer: they are judged together. */
        const size_t from = i > 0 && asks(h->text, spans[i - 1]) ? spans[i - 1].at : spans[i].at;
        x->contexts[x->n_sentences] =
            (struct quote_context){.text = h->text + from,
                                   .n = spans[i].at + spans[i].n - from,
                                   .before = i > 0 ? h->text + spans[i - 1].at : "",
                                   .n_before = i > 0 ? spans[i - 1].n : 0,
                                   .heading = head,
                                   .passage = h->text,
                                   .passage_similarity = h->similarity,
                                   .rank = k};
        x->sentences[x->n_sentences++] =
            (struct quoting_sentence){.text = text, .hit = k, .place = i};
    }
}

static void on_found(struct retrieval *q, const struct failure *f)
{
    struct quoting *x = EXECUTOR_OF(q, struct quoting, retrieval);
    x->n_tokens = q->n_tokens;
    if (f) {
        finish(x, f);
        return;
    }
    x->sentences = arena_zalloc_n(&q->arena, QUOTING_MAX_SENTENCES, sizeof(*x->sentences));
    x->contexts = arena_zalloc_n(&q->arena, QUOTING_MAX_SENTENCES, sizeof(*x->contexts));
    x->texts = arena_zalloc_n(&q->arena, QUOTING_MAX_SENTENCES + 1, sizeof(*x->texts));
    for (uint32_t i = 0; i < q->n_hits && q->arena.rc == 0; i++)
        add_passage(x, i);
    if (q->arena.rc < 0) {
        fail(x, q->arena.rc, "out of memory");
        return;
    }
    if (q->mode == RETRIEVAL_WORDS || x->n_sentences == 0) {
        conclude(x, NULL, 0);
        return;
    }
    x->texts[0] = (struct str){q->query, strlen(q->query)};
    for (uint32_t i = 0; i < x->n_sentences; i++)
        x->texts[i + 1] = (struct str){x->contexts[i].text, x->contexts[i].n};
    x->embedding = (struct embedding){.owner = q->owner,
                                      .who = q->who,
                                      .model = q->info.model,
                                      .texts = x->texts,
                                      .n = x->n_sentences + 1,
                                      .done = on_embedded};
    embedding_run(&x->embedding);
}

static int count_words(struct retrieval *q, struct collection *c, struct err *e)
{
    struct quoting *x = EXECUTOR_OF(q, struct quoting, retrieval);
    int rc = 0;
    for (uint32_t i = 0; i < x->n_counts && rc == 0; i++)
        rc = collection_count(c, x->counts[i].word, &x->counts[i].n_passages, e);
    return rc;
}

void quoting_run(struct quoting *x)
{
    struct retrieval *q = &x->retrieval;
    x->n_counts = quote_question_words(x->counts, q->query);
    q->n_results = q->n_results > QUOTING_N_PASSAGES ? q->n_results : QUOTING_N_PASSAGES;
    q->also = count_words;
    q->done = on_found;
    retrieval_run(q);
}

void quoting_cancel(struct quoting *x)
{
    x->cancelled = true;
    retrieval_cancel(&x->retrieval);
    if (x->embedding.sink.job)
        embedding_cancel(&x->embedding);
}

void quoting_fini(struct quoting *x)
{
    retrieval_fini(&x->retrieval);
}
