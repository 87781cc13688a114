/* citing.c - see citing.h. */
#include "knowledge/citing.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/mem.h"
#include "flow/stages.h"
#include "knowledge/hit_json.h"

#define MAX_ANSWER_BYTES ((size_t)1 << 20)
#define PASSAGE_BYTES 6000u
#define N_GIVEN 5u
#define SYSTEM                                                                                     \
    "Answer the question from the passages below and from nothing else. After each sentence, "     \
    "cite the passage it is from by its number in brackets, such as [12]. If the passages do not " \
    "answer the question, say that you do not know."

static void finish(struct citing *x, const struct failure *f)
{
    mem_free(x->texts);
    x->texts = NULL;
    mem_free(x->embedding.vectors);
    x->embedding.vectors = NULL;
    x->done(x, f);
}

static void fail(struct citing *x, int rc, const char *msg)
{
    struct failure f;
    failure_of(&f, rc, msg);
    finish(x, &f);
}

/* ---- the check ---- */

static bool was_given(const struct citing *x, int64_t id)
{
    for (uint32_t i = 0; i < x->n_passages; i++)
        if (x->quoting.retrieval.hits[i].id == id)
            return true;
    return false;
}

static void cite(struct citing *x, int64_t id)
{
    for (uint32_t i = 0; i < x->n_cited; i++)
        if (x->cited[i] == id)
            return;
    if (x->n_cited < CITING_MAX_PASSAGES)
        x->cited[x->n_cited++] = id;
}

/* The numbers in brackets: given passages, or invented ones. */
static void read_marks(struct citing *x)
{
    for (const char *p = buf_str(&x->answer); (p = strchr(p, '[')); p++) {
        const char *at = p + 1;
        char *end;
        while (ascii_is_digit(*at)) {
            long long id = strtoll(at, &end, 10);
            at = end + strspn(end, ", ");
            if (*at != ']' && !ascii_is_digit(*at))
                break;
            if (was_given(x, id))
                cite(x, id);
            else
                x->n_wrong++;
        }
    }
}

/* Often only the heading says what a passage is about. */
static const char *headed(struct citing *x, const struct collection_hit *h)
{
    const char *head = h->heading[0] ? h->heading : h->title;
    const char *text =
        head[0] ? arena_printf(&x->quoting.retrieval.arena, "%s.\n%s", head, h->text) : h->text;
    return text[0] ? text : h->text;
}

static void judge(struct citing *x)
{
    const char *passages[CITING_MAX_PASSAGES];
    uint32_t n = x->n_passages, dims = x->embedding.n_dims;
    const float *v = x->embedding.vectors;
    float *near = v ? mem_zalloc_n((size_t)x->support.n * n + 1, sizeof(float)) : NULL;
    for (uint32_t k = 0; k < n; k++)
        passages[k] = headed(x, &x->quoting.retrieval.hits[k]);
    for (uint32_t i = 0; near && i < x->support.n; i++)
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t d = 0; d < dims; d++)
                near[i * n + k] +=
                    v[(size_t)i * dims + d] * v[(size_t)(x->support.n + k) * dims + d];
    support_judge(&x->support, buf_str(&x->answer), passages, n, near);
    support_answers(&x->support, buf_str(&x->answer), x->quoting.retrieval.query,
                    strlen(x->quoting.retrieval.query), passages);
    x->written = x->support.verdict == SUPPORT_TRUE && !x->cut;
    mem_free(near);
    read_marks(x);
    /* a sentence without a mark is credited to the passage that supports it */
    for (uint32_t i = 0; i < x->support.n; i++)
        if (x->support.sentences[i].passage >= 0)
            cite(x, x->quoting.retrieval.hits[x->support.sentences[i].passage].id);
    finish(x, NULL);
}

/* Without vectors, only the words decide. */
static void on_embedded(struct embedding *m, const struct failure *f)
{
    (void)f;
    judge(EXECUTOR_OF(m, struct citing, embedding));
}

static void check(struct citing *x)
{
    uint32_t n = 0;
    support_split(&x->support, buf_str(&x->answer), x->answer.len);
    x->texts = mem_zalloc_n(SUPPORT_MAX_SENTENCES + CITING_MAX_PASSAGES, sizeof(*x->texts));
    if (!x->texts || x->support.n == 0 || x->n_passages == 0) {
        judge(x);
        return;
    }
    for (uint32_t i = 0; i < x->support.n; i++)
        x->texts[n++] = (struct str){buf_str(&x->answer) + x->support.sentences[i].at,
                                     x->support.sentences[i].n};
    for (uint32_t i = 0; i < x->n_passages; i++)
        x->texts[n++] = (struct str){x->quoting.retrieval.hits[i].text,
                                     strlen(x->quoting.retrieval.hits[i].text)};
    x->embedding = (struct embedding){.owner = x->quoting.retrieval.owner,
                                      .who = x->quoting.retrieval.who,
                                      .model = x->quoting.retrieval.info.model,
                                      .texts = x->texts,
                                      .n = n,
                                      .done = on_embedded};
    embedding_run(&x->embedding);
}

/* ---- the answer ---- */

static void on_start(struct sink *s, const struct sink_start *e)
{
    struct citing *x = EXECUTOR_OF(s, struct citing, sink);
    snprintf(x->model_name, sizeof(x->model_name), "%s", e->model);
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    struct citing *x = EXECUTOR_OF(s, struct citing, sink);
    buf_put(&x->answer, e->text, e->text_bytes);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    struct citing *x = EXECUTOR_OF(s, struct citing, sink);
    x->cut = e->finish == SHOAL_FINISH_LENGTH;
    x->prompt_tokens = e->prompt_tokens;
    x->generated_tokens = e->generated_tokens;
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct citing *x = EXECUTOR_OF(s, struct citing, sink);
    x->failed = true;
    x->why = *f;
}

static void generate(struct citing *x);

/* The model may have a small context: half of the passages may fit. */
static bool gives_less(struct citing *x)
{
    if (!x->failed || x->why.code != SHOAL_ELIMIT || x->n_passages < 2 || x->cancelled)
        return false;
    x->most_given = x->n_passages / 2;
    x->n_passages = 0;
    x->failed = false;
    buf_clear(&x->answer);
    return true;
}

static void on_closed(struct sink *s)
{
    struct citing *x = EXECUTOR_OF(s, struct citing, sink);
    if (gives_less(x))
        generate(x);
    else if (x->failed)
        finish(x, &x->why);
    else if (x->cancelled)
        fail(x, SHOAL_ECANCELLED, "cancelled");
    else if (x->answer.rc < 0)
        fail(x, x->answer.rc, "the answer is too long");
    else
        check(x);
}

/* The passages, as many as fit, and the question. */
static void put_prompt(struct citing *x, struct buf *b)
{
    size_t most = x->max_passage_bytes ? x->max_passage_bytes : PASSAGE_BYTES;
    buf_puts(b, "Passages:\n\n");
    for (uint32_t i = 0; i < x->quoting.retrieval.n_hits && i < x->most_given; i++) {
        const struct collection_hit *h = &x->quoting.retrieval.hits[i];
        if (i > 0 && b->len + strlen(h->text) > most)
            break;
        buf_printf(b, "[%" PRId64 "]", h->id);
        if (h->heading[0] || h->title[0])
            buf_printf(b, " (%s)", h->heading[0] ? h->heading : h->title);
        buf_printf(b, "\n%s\n\n", h->text);
        x->n_passages++;
    }
    buf_printf(b, "Question: %s", x->quoting.retrieval.query);
}

static void generate(struct citing *x)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .token = on_token,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed};
    struct flow_owner *o = x->quoting.retrieval.owner;
    struct request *r = embedding_request(o, &x->quoting.retrieval.who, REQUEST_GENERATE, x->model);
    struct chat_message *list = r ? arena_zalloc_n(&r->arena, 2, sizeof(*list)) : NULL;
    struct buf b;
    buf_init(&b, (size_t)4 << 20);
    put_prompt(x, &b);
    if (list && b.rc == 0) {
        list[0] = (struct chat_message){
            .role = "system", .content = SYSTEM, .content_bytes = strlen(SYSTEM)};
        list[1] = (struct chat_message){.role = "user", .content_bytes = b.len};
        list[1].content = request_copy(r, buf_str(&b), b.len);
        r->generate =
            (struct request_generate){.chat = {.messages = list, .n_messages = 2},
                                      .n_prompts = 1,
                                      .n = 1,
                                      .max_tokens = x->max_tokens,
                                      .sampling = {.temperature = x->temperature, .seed = x->seed},
                                      .has_seed = true,
                                      .seeded = true};
        r->input_bytes = b.len + strlen(SYSTEM);
    }
    bool bad = !list || b.rc < 0 || request_rc(r) < 0;
    buf_fini(&b);
    if (bad) {
        if (r)
            flow_give_request(o, r);
        fail(x, SHOAL_ENOMEM, "out of memory");
        return;
    }
    x->sink = (struct sink){.ops = &ops};
    stages_run(o, r, &x->sink);
}

static void on_quoted(struct quoting *q, const struct failure *f)
{
    struct citing *x = EXECUTOR_OF(q, struct citing, quoting);
    if (f)
        finish(x, f);
    else if (x->cancelled)
        fail(x, SHOAL_ECANCELLED, "cancelled");
    else if (x->write && q->found)
        generate(x);
    else
        finish(x, NULL);
}

void citing_run(struct citing *x)
{
    buf_init(&x->answer, MAX_ANSWER_BYTES);
    x->most_given = x->n_given ? x->n_given : N_GIVEN;
    if (x->most_given > CITING_MAX_PASSAGES)
        x->most_given = CITING_MAX_PASSAGES;
    x->quoting.done = on_quoted;
    quoting_run(&x->quoting);
}

void citing_cancel(struct citing *x)
{
    x->cancelled = true;
    quoting_cancel(&x->quoting);
    if (x->sink.job)
        flow_cancel(&x->sink);
    if (x->embedding.sink.job)
        embedding_cancel(&x->embedding);
}

void citing_fini(struct citing *x)
{
    quoting_fini(&x->quoting);
    buf_fini(&x->answer);
}

/* ---- as JSON ---- */

/* More digits mean nothing. */
static double rounded(double score)
{
    return round(score * 1e4) / 1e4;
}

static void put_hit(struct json_out *j, const struct collection_hit *h)
{
    json_out_member_str(j, "document", h->doc);
    if (h->page)
        json_out_member_uint(j, "page", h->page);
    if (h->heading[0])
        json_out_member_str(j, "heading", h->heading);
    json_out_member_uint(j, "passage", (uint64_t)h->id);
}

static void put_quote(struct json_out *j, const struct citing *x, const struct quoting_sentence *s)
{
    json_out_object(j);
    json_out_member_str(j, "text", s->text);
    json_out_member_num(j, "score", rounded(s->score));
    put_hit(j, &x->quoting.retrieval.hits[s->hit]);
    if (x->explain) {
        json_out_member_object(j, "features");
        for (int i = 0; i < QUOTE_N_FEATURES; i++)
            json_out_member_num(j, quote_rank_name((enum quote_feature)i), s->features[i]);
        json_out_object_end(j);
    }
    json_out_object_end(j);
}

/* The sentences of the answer, or, with explain, all of them; or those nearest to one. */
static void put_quotes(struct json_out *j, const struct citing *x)
{
    const struct quoting *q = &x->quoting;
    const uint32_t most = x->explain ? q->n_sentences : q->found ? 1 : CITING_N_CLOSEST;
    json_out_member_array(j, q->found ? "quotes" : "closest");
    for (uint32_t i = 0; i < q->n_sentences && i < most; i++)
        put_quote(j, x, &q->sentences[i]);
    if (q->second > 0 && q->second >= most)
        put_quote(j, x, &q->sentences[q->second]);
    json_out_array_end(j);
}

static void put_sentences(struct json_out *j, const struct citing *x)
{
    json_out_member_array(j, "sentences");
    for (uint32_t i = 0; i < x->support.n; i++) {
        const struct support_sentence *s = &x->support.sentences[i];
        json_out_object(j);
        json_out_member_strn(j, "text", buf_str(&x->answer) + s->at, s->n);
        json_out_member_bool(j, "supported", s->supported);
        if (s->passage >= 0)
            json_out_member_uint(j, "passage", (uint64_t)x->quoting.retrieval.hits[s->passage].id);
        if (!s->supported)
            json_out_member_str(j, "reason", support_reason_text(s->reason));
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

/* What the model wrote, and what the check says about it. */
static void put_written(struct json_out *j, const struct citing *x)
{
    json_out_member_object(j, "generated");
    json_out_member_strn(j, "text", buf_str(&x->answer), x->answer.len);
    json_out_key(j, "supported");
    if (x->support.verdict == SUPPORT_PARTLY)
        json_out_str(j, "partly");
    else
        json_out_bool(j, x->support.verdict == SUPPORT_TRUE);
    put_sentences(j, x);
    if (x->n_wrong > 0)
        json_out_member_uint(j, "unknown_citations", x->n_wrong);
    json_out_member_str(j, "model", x->model_name);
    json_out_member_str(j, "finish_reason", x->cut ? "length" : "stop");
    json_out_object_end(j);
}

static bool is_cited(const struct citing *x, uint32_t hit)
{
    const struct quoting *q = &x->quoting;
    if (!x->written)
        return q->found && q->sentences[0].hit == hit;
    for (uint32_t k = 0; k < x->n_cited; k++)
        if (x->cited[k] == q->retrieval.hits[hit].id)
            return true;
    return false;
}

const char *citing_answer(struct citing *x)
{
    return x->written ? buf_str(&x->answer) : quoting_text(&x->quoting);
}

void citing_json(struct json_out *j, struct citing *x)
{
    const struct retrieval *r = &x->quoting.retrieval;
    json_out_member_str(j, "answer", citing_answer(x));
    json_out_member_bool(j, "found", x->quoting.found);
    json_out_member_bool(j, "supported", x->quoting.found);
    json_out_member_num(j, "score",
                        x->quoting.n_sentences > 0 ? rounded(x->quoting.sentences[0].score) : 0);
    json_out_member_str(j, "by", x->written ? "model" : "quote");
    put_quotes(j, x);
    json_out_member_array(j, "citations");
    for (uint32_t i = 0; i < r->n_hits; i++)
        if (is_cited(x, i))
            hit_json_put(j, &r->hits[i], true);
    json_out_array_end(j);
    if (x->model_name[0])
        put_written(j, x);
    json_out_member_object(j, "usage");
    json_out_member_uint(j, "prompt_tokens", x->prompt_tokens);
    json_out_member_uint(j, "completion_tokens", x->generated_tokens);
    json_out_member_uint(j, "embedding_tokens", x->quoting.n_tokens + x->embedding.n_tokens);
    json_out_object_end(j);
}
