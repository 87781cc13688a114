/* test_citing.c - questions to a collection: what is found, what the model is given, and what the
 * client is told.  The test is all the models: a vector counts letters, a reranker prefers short
 * texts, and the answer is given. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/thread/executor_queue.h"
#include "flow/dispatch.h"
#include "flow/failure.h"
#include "knowledge/citing.h"
#include "store/chunk.h"
#include "store/collections.h"
#include "support/golden_trace.h"
#include "wire/json_out.h"

#define DIMS 26u
#define N(list) (sizeof(list) / sizeof((list)[0]))

static char dir[64];
static struct {
    struct executor_queue executor;
    struct flow flow;
    struct flow_owner owner;
    struct collections *collections;
} site;

static struct {
    const char *answer;     /* NULL: the model fails */
    enum shoal_kind broken; /* requests of this kind fail */
    enum shoal_finish finish;
    char prompt[8192], system[1024], model[64], query[64];
    uint32_t n_embedded, n_reranked, max_tokens;
    uint64_t seed;
    float temperature;
    size_t input_bytes;
    uint32_t n_asked, most_passages; /* most_passages: more are too long a prompt; 0: no limit */
} model;

static void make_vector(float *v, const char *text, size_t n)
{
    double sum = 0;
    memset(v, 0, DIMS * sizeof(*v));
    for (size_t i = 0; i < n; i++)
        if (text[i] >= 'a' && text[i] <= 'z')
            v[text[i] - 'a'] += 1;
    for (uint32_t i = 0; i < DIMS; i++)
        sum += (double)v[i] * (double)v[i];
    for (uint32_t i = 0; i < DIMS; i++)
        v[i] = (float)((double)v[i] / sqrt(sum > 0 ? sum : 1));
}

static void infer(const struct request_infer *q, struct sink *s)
{
    for (uint32_t i = 0; i < q->n_inputs; i++) {
        float v[DIMS];
        double score = 1.0 / (double)(1 + q->inputs[i].text_bytes);
        struct shoal_result one = {.kind = q->kind, .n_tokens = 3};
        make_vector(v, q->inputs[i].text, q->inputs[i].text_bytes);
        if (q->kind == SHOAL_KIND_EMBED) {
            one.vector = v;
            one.n_dims = DIMS;
            model.n_embedded++;
        } else {
            one.values = &score;
            one.n_values = 1;
            model.n_reranked++;
            snprintf(model.query, sizeof(model.query), "%s", q->query);
        }
        const struct sink_result e = {.index = i, .result = &one, .last = i + 1 == q->n_inputs};
        s->ops->result(s, &e);
    }
}

static void generate(const struct request *r, struct sink *s)
{
    const struct request_generate *g = &r->generate;
    const struct sink_token t = {
        .text = model.answer, .text_bytes = strlen(model.answer), .token = 1};
    const struct sink_done done = {
        .finish = model.finish, .prompt_tokens = 11, .generated_tokens = 7, .last = true};
    assert_int_equal(g->chat.n_messages, 2);
    assert_int_equal(strlen(g->chat.messages[0].content), g->chat.messages[0].content_bytes);
    assert_int_equal(strlen(g->chat.messages[1].content), g->chat.messages[1].content_bytes);
    assert_string_equal(g->chat.messages[0].role, "system");
    assert_string_equal(g->chat.messages[1].role, "user");
    snprintf(model.system, sizeof(model.system), "%s", g->chat.messages[0].content);
    snprintf(model.prompt, sizeof(model.prompt), "%s", g->chat.messages[1].content);
    model.max_tokens = g->max_tokens;
    model.temperature = g->sampling.temperature;
    model.seed = g->sampling.seed;
    model.input_bytes = r->input_bytes;
    model.n_asked++;
    assert_true(g->has_seed && g->seeded && g->n == 1 && g->n_prompts == 1);
    s->ops->token(s, &t);
    s->ops->done(s, &done);
}

static bool is_too_long(const struct request *r)
{
    uint32_t n = 0;
    for (const char *p = r->generate.chat.messages[1].content; (p = strstr(p, "\n[")); p++)
        n++;
    return model.most_passages > 0 && n > model.most_passages;
}

static bool take(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    const struct sink_start start = {.model = "answerer", .version = "v1"};
    const enum shoal_kind kind = r->kind == REQUEST_INFER ? r->infer.kind : SHOAL_KIND_GENERATE;
    (void)d;
    snprintf(model.model, sizeof(model.model), "%s", r->model ? r->model : "");
    assert_string_equal(r->client.name, "ann");
    if (kind == SHOAL_KIND_GENERATE && is_too_long(r)) {
        struct failure f;
        failure_of(&f, SHOAL_ELIMIT, "the prompt is too long");
        (s->ops->fail)(s, &f);
    } else if (kind == model.broken) {
        struct failure f;
        failure_set(&f, FAILURE_BUSY, SHOAL_EBUSY, NULL, "broken", "broken");
        (s->ops->fail)(s, &f);
    } else {
        s->ops->start(s, &start);
        if (r->kind == REQUEST_INFER)
            infer(&r->infer, s);
        else
            generate(r, s);
    }
    s->ops->closed(s);
    flow_give_request(o, r);
    return true;
}

static const char *const passages[] = {
    "The pump needs oil every 200 hours.", "The valve opens at 5 bar.", "The gate is green.",
    "The pump is in the cellar of the old house beside the river."};

static int open_site(void **state)
{
    static const struct dispatch_ops ops = {.run = take};
    static struct dispatch dispatch = {&ops};
    const struct collection_settings settings = {.model = "embedder", .max_tokens = 100};
    const struct collection_doc doc = {.name = "manual.md", .title = "Manual", .hash = 1};
    struct chunk chunks[N(passages)];
    float vectors[N(passages)][DIMS];
    struct collection *c;
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    memset(&model, 0, sizeof(model));
    model.finish = SHOAL_FINISH_STOP;
    snprintf(dir, sizeof(dir), "/tmp/shoal-citing-XXXXXX");
    if (!mkdtemp(dir) || executor_queue_init(&site.executor, NULL) < 0 ||
        collections_open(&site.collections, dir, 0, NULL) < 0 ||
        collections_make(site.collections, "manuals", &settings, NULL) < 0 ||
        collections_make(site.collections, "empty", &settings, NULL) < 0)
        return -1;
    site.flow = (struct flow){.pool = NULL};
    flow_owner_init(&site.owner, &site.flow, &site.executor.executor);
    site.owner.dispatch = &dispatch;
    for (size_t i = 0; i < N(passages); i++) {
        chunks[i] = (struct chunk){.text = passages[i],
                                   .text_bytes = strlen(passages[i]),
                                   .heading = i == 1 ? "Valves" : "",
                                   .heading_bytes = i == 1 ? 6 : 0,
                                   .ref = "",
                                   .n_tokens = 8};
        make_vector(vectors[i], passages[i], strlen(passages[i]));
    }
    int rc = collections_hold(site.collections, "manuals", &c, NULL);
    if (rc == 0)
        rc = collection_put(c, &doc, chunks, N(passages), vectors[0], DIMS, "v1", 0, NULL);
    collections_release(site.collections, c);
    return rc;
}

static int close_site(void **state)
{
    char command[96];
    (void)state;
    collections_close(site.collections);
    flow_owner_fini(&site.owner);
    executor_queue_fini(&site.executor);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

/* ---- retrieval ---- */

static struct {
    bool over, failed;
    struct failure why;
} ended;

static void note_end(const struct failure *f)
{
    assert_false(ended.over);
    ended.over = true;
    ended.failed = f != NULL;
    if (f)
        ended.why = *f;
}

static void on_retrieved(struct retrieval *x, const struct failure *f)
{
    (void)x;
    note_end(f);
}

static void on_cited(struct citing *x, const struct failure *f)
{
    (void)x;
    note_end(f);
}

static struct retrieval question(const char *query)
{
    struct retrieval x = {.owner = &site.owner,
                          .collections = site.collections,
                          .collection = "manuals",
                          .query = query,
                          .n_results = 2,
                          .done = on_retrieved};
    snprintf(x.who.client.name, sizeof(x.who.client.name), "ann");
    return x;
}

static void wait_for_it(void)
{
    while (!ended.over)
        assert_true(executor_queue_run(&site.executor));
    assert_int_equal(site.owner.n_jobs, 0);
}

static void retrieve(struct retrieval *x)
{
    memset(&ended, 0, sizeof(ended));
    retrieval_run(x);
    wait_for_it();
}

static void test_what_is_found(void **state)
{
    static const struct {
        enum retrieval_mode mode;
        const char *query, *reranker, *first;
        uint32_t n_hits, n_embedded, n_reranked;
        uint64_t n_tokens;
    } rows[] = {
        {RETRIEVAL_WORDS, "pump oil", NULL, passages[0], 2, 0, 0, 0},
        {RETRIEVAL_WORDS, "zebra", NULL, NULL, 0, 0, 0, 0},
        {RETRIEVAL_WORDS, "zebra", "ranker", NULL, 0, 0, 0, 0},
        {RETRIEVAL_MEANING, "the valve opens at bar", NULL, passages[1], 2, 1, 0, 3},
        {RETRIEVAL_BOTH, "the valve opens at bar", NULL, passages[1], 2, 1, 0, 3},
        /* the reranker sees more than are returned, and decides */
        {RETRIEVAL_MEANING, "the valve opens at bar", "ranker", passages[2], 2, 1, 4, 15},
        {RETRIEVAL_WORDS, "pump oil", "ranker", passages[0], 2, 0, 2, 6},
    };
    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct retrieval x = question(rows[i].query);
        x.mode = rows[i].mode;
        x.reranker = rows[i].reranker;
        model.n_embedded = model.n_reranked = 0;
        retrieve(&x);
        assert_false(ended.failed);
        assert_int_equal(x.n_hits, rows[i].n_hits);
        if (rows[i].first)
            assert_string_equal(x.hits[0].text, rows[i].first);
        for (uint32_t k = 1; k < x.n_hits; k++)
            assert_true(x.hits[k - 1].score >= x.hits[k].score);
        assert_int_equal(model.n_embedded, rows[i].n_embedded);
        assert_int_equal(model.n_reranked, rows[i].n_reranked);
        assert_int_equal(x.n_tokens, rows[i].n_tokens);
        if (rows[i].n_reranked) {
            assert_string_equal(model.query, rows[i].query);
            assert_string_equal(model.model, "ranker");
        } else if (rows[i].n_embedded) {
            assert_string_equal(model.model, "embedder");
        }
        retrieval_fini(&x);
    }
}

static void test_searches_that_fail(void **state)
{
    static const struct {
        const char *collection, *reranker;
        enum shoal_kind broken;
        int code;
    } rows[] = {{"none", NULL, 0, SHOAL_ENOTFOUND},
                {"manuals", NULL, SHOAL_KIND_EMBED, SHOAL_EBUSY},
                {"manuals", "ranker", SHOAL_KIND_RERANK, SHOAL_EBUSY},
                {"empty", NULL, SHOAL_KIND_EMBED, 0}}; /* nothing to compare with */
    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct retrieval x = question("pump");
        x.collection = rows[i].collection;
        x.reranker = rows[i].reranker;
        model.broken = rows[i].broken;
        retrieve(&x);
        assert_int_equal(ended.failed, rows[i].code != 0);
        if (rows[i].code)
            assert_int_equal(ended.why.code, rows[i].code);
        else
            assert_int_equal(x.n_hits, 0);
        retrieval_fini(&x);
    }
    struct retrieval x = question("pump");
    x.cancelled = true;
    retrieve(&x);
    assert_int_equal(ended.why.code, SHOAL_ECANCELLED);
    retrieval_fini(&x);
}

static void test_modes(void **state)
{
    enum retrieval_mode m = RETRIEVAL_BOTH;
    (void)state;
    assert_true(retrieval_mode_find("words", &m) && m == RETRIEVAL_WORDS);
    assert_true(retrieval_mode_find("meaning", &m) && m == RETRIEVAL_MEANING);
    assert_true(retrieval_mode_find("both", &m) && m == RETRIEVAL_BOTH);
    assert_false(retrieval_mode_find("word", &m));
    assert_false(retrieval_mode_find("", &m));
}

/* ---- answers ---- */

static void cite(struct citing *x, const char *query, const char *answer)
{
    memset(&ended, 0, sizeof(ended));
    model.answer = answer;
    model.n_asked = 0;
    x->quoting.retrieval = question(query);
    x->n_given = 2;
    x->write = answer != NULL;
    x->done = on_cited;
    citing_run(x);
    wait_for_it();
}

/* Removes a number, which may differ in its last digits. */
static void hide(struct buf *b, const char *key)
{
    for (char *p = b->data; (p = strstr(p, key));) {
        p += strlen(key);
        size_t n = strspn(p, "0123456789.e-");
        assert_true(n > 0);
        memmove(p, p + n, strlen(p + n) + 1);
    }
}

static const char *json_of(struct citing *x, struct buf *b)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    citing_json(&j, x);
    json_out_object_end(&j);
    for (char *p = b->data; *p; p++)
        *p = *p == '"' ? '\'' : *p;
    hide(b, "'score':");
    hide(b, "'similarity':");
    return buf_str(b);
}

#define VALVE                                                                                      \
    "{'id':2,'document':'manual.md','title':'Manual','heading':'Valves','score':,'similarity':,"   \
    "'rank_by_meaning':2,'rank_by_words':1,'text':'The valve opens at 5 bar.'}"

static void test_the_prompt(void **state)
{
    struct citing x = {.model = "answerer", .max_tokens = 50, .seed = 9, .temperature = 0.5f};
    (void)state;
    cite(&x, "when does the valve open?", "At 5 bar [2].");
    assert_false(ended.failed);
    assert_string_equal(model.model, "embedder"); /* asked last, to compare */
    assert_string_equal(model.prompt,
                        "Passages:\n\n[2] (Valves)\nThe valve opens at 5 bar.\n\n[4] "
                        "(Manual)\nThe pump is in the cellar of the old house beside the "
                        "river.\n\nQuestion: when does the valve open?");
    assert_non_null(strstr(model.system, "from nothing else"));
    assert_int_equal(model.max_tokens, 50);
    assert_int_equal(model.seed, 9);
    assert_true(model.temperature == 0.5f);
    assert_int_equal(model.input_bytes, strlen(model.prompt) + strlen(model.system));
    assert_int_equal(x.n_passages, 2);
    citing_fini(&x);
    /* the first passage always, the others while there is room */
    static const struct {
        size_t most;
        uint32_t n;
    } rows[] = {{1, 1}, {110, 1}, {111, 2}, {6000, 2}};
    for (size_t i = 0; i < N(rows); i++) {
        x = (struct citing){.max_passage_bytes = rows[i].most};
        cite(&x, "when does the valve open?", "At 5 bar.");
        assert_int_equal(x.n_passages, rows[i].n);
        citing_fini(&x);
    }
}

static void test_answers(void **state)
{
    /* by: who the answer is from; told: the end of the JSON of what the model wrote */
    static const struct {
        const char *answer, *by, *told;
        enum shoal_finish finish;
    } rows[] = {
        {"The valve opens at 5 bar [2].", "model",
         "'supported':true,'sentences':[{'text':'The valve opens at 5 bar "
         "[2].','supported':true,'passage':2}],'model':'answerer','finish_reason':'stop'}",
         SHOAL_FINISH_STOP},
        {"The valve opens at 5 bar.", "quote", /* it was cut */
         "'supported':true,'sentences':[{'text':'The valve opens at 5 "
         "bar.','supported':true,'passage':2}],'model':'answerer','finish_reason':'length'}",
         SHOAL_FINISH_LENGTH},
        {"The valve opens at 7 bar [2].", "quote",
         "'supported':false,'sentences':[{'text':'The valve opens at 7 bar "
         "[2].','supported':false,'reason':'a number that no passage "
         "has'}],'model':'answerer','finish_reason':'stop'}",
         SHOAL_FINISH_STOP},
        {"The pump is in the cellar [4].", "quote", /* true, but not what was asked */
         "'supported':false,'sentences':[{'text':'The pump is in the cellar "
         "[4].','supported':false,'reason':'it does not answer the "
         "question'}],'model':'answerer','finish_reason':'stop'}",
         SHOAL_FINISH_STOP},
        {"The valve opens at 5 bar [2]. Zebras eat honey in Berlin [99].", "quote",
         "'supported':'partly','sentences':[{'text':'The valve opens at 5 bar "
         "[2].','supported':true,'passage':2},{'text':' Zebras eat honey in Berlin "
         "[99].','supported':false,'reason':'a name that no passage "
         "has'}],'unknown_citations':1,'model':'answerer','finish_reason':'stop'}",
         SHOAL_FINISH_STOP},
        {"It opens [2, 3] and [3][2,77] and [x] [] [2", "quote",
         "'supported':false,'sentences':[{'text':'It opens [2, 3] and [3][2,77] and [x] [] "
         "[2','supported':false,'reason':'a number that no passage "
         "has'}],'unknown_citations':3,'model':'answerer','finish_reason':'stop'}",
         SHOAL_FINISH_STOP},
        {"", "quote", "'supported':false,'sentences':[],'model':'answerer','finish_reason':'stop'}",
         SHOAL_FINISH_STOP},
    };
    size_t n_wrong = 0;
    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct citing x = {.max_tokens = 50};
        struct buf b;
        char answer[160], by[32];
        const bool written = strcmp(rows[i].by, "model") == 0;
        buf_init(&b, 1 << 16);
        model.finish = rows[i].finish;
        cite(&x, "when does the valve open?", rows[i].answer);
        assert_false(ended.failed);
        snprintf(answer, sizeof(answer), "{'answer':'%s','found':true,'supported':true,'score':,",
                 written ? rows[i].answer : passages[1]);
        snprintf(by, sizeof(by), "'by':'%s'", rows[i].by);
        const char *got = json_of(&x, &b);
        if (strncmp(got, answer, strlen(answer)) != 0 || !strstr(got, by) ||
            !strstr(got, rows[i].told) || !strstr(got, "'citations':[" VALVE) ||
            !strstr(got, "'prompt_tokens':11,'completion_tokens':7")) {
            print_error("%s\n  got  %s\n  want %s %s %s\n", rows[i].answer, got, answer, by,
                        rows[i].told);
            n_wrong++;
        }
        buf_fini(&b);
        citing_fini(&x);
    }
    assert_int_equal(n_wrong, 0);
}

/* Without a model: the sentence, where it is from, its score. */
static void test_quotes(void **state)
{
    struct citing x = {.max_tokens = 50};
    struct buf b;
    (void)state;
    buf_init(&b, 1 << 16);
    cite(&x, "when does the valve open?", NULL);
    assert_false(ended.failed);
    assert_true(x.quoting.found && x.quoting.sentences[0].score > QUOTING_ENOUGH);
    assert_int_equal(model.n_asked, 0);
    assert_string_equal(citing_answer(&x), passages[1]);
    assert_string_equal(
        json_of(&x, &b),
        "{'answer':'The valve opens at 5 bar.','found':true,'supported':true,'score':,'by':'quote',"
        "'quotes':[{'text':'The valve opens at 5 bar.','score':,'document':'manual.md','heading':"
        "'Valves','passage':2}],'citations':[" VALVE "],'usage':{'prompt_tokens':0,"
        "'completion_tokens':0,'embedding_tokens':18}}");
    citing_fini(&x);
    buf_clear(&b);
    x = (struct citing){.max_tokens = 50};
    cite(&x, "who painted the zebra in Madrid?", "Picasso.");
    assert_false(ended.failed || x.quoting.found);
    assert_int_equal(model.n_asked, 0); /* it would invent something */
    assert_string_equal(citing_answer(&x), "");
    const char *got = json_of(&x, &b);
    assert_int_equal(strncmp(got, "{'answer':'','found':false,'supported':false,", 45), 0);
    assert_non_null(strstr(got, "'closest':[{'text':"));
    assert_non_null(strstr(got, "'citations':[],'usage'"));
    citing_fini(&x);
    buf_fini(&b);
}

/* A small context: half of the passages are given, then a quarter. */
static void test_a_prompt_that_is_too_long(void **state)
{
    struct citing x = {.max_tokens = 50};
    (void)state;
    model.most_passages = 1;
    cite(&x, "when does the valve open?", "The valve opens at 5 bar [2].");
    assert_false(ended.failed);
    assert_true(x.written);
    assert_int_equal(x.n_passages, 1);
    citing_fini(&x);
}

static void test_questions_that_fail(void **state)
{
    struct citing x = {.max_tokens = 5};
    (void)state;
    model.broken = SHOAL_KIND_GENERATE;
    cite(&x, "when does the valve open?", "x");
    assert_true(ended.failed);
    assert_string_equal(ended.why.reason, "broken");
    citing_fini(&x);
    model.broken = SHOAL_KIND_EMBED;
    x = (struct citing){.max_tokens = 5};
    cite(&x, "when does the valve open?", NULL);
    assert_string_equal(ended.why.reason, "broken");
    citing_fini(&x);
    model.broken = 0;
    x = (struct citing){.max_tokens = 5};
    memset(&ended, 0, sizeof(ended));
    x.quoting.retrieval = question("valve?");
    x.quoting.retrieval.collection = "empty";
    x.done = on_cited;
    citing_run(&x);
    wait_for_it();
    assert_false(ended.failed || x.quoting.found);
    assert_int_equal(x.quoting.n_sentences, 0);
    citing_fini(&x);
    x = (struct citing){.max_tokens = 5};
    memset(&ended, 0, sizeof(ended));
    x.quoting.retrieval = question("valve?");
    x.done = on_cited;
    citing_run(&x);
    citing_cancel(&x);
    wait_for_it();
    assert_int_equal(ended.why.code, SHOAL_ECANCELLED);
    citing_fini(&x);
}

/* ---- everything that is said ---- */

static const struct chunk house[] = {
#define PASSAGE(h, t, p)                                                                           \
    {                                                                                              \
        .text = t, .text_bytes = sizeof(t) - 1, .heading = h, .heading_bytes = sizeof(h) - 1,      \
        .ref = "", .page = p, .n_tokens = 20                                                       \
    }
    PASSAGE("Boiler", "The boiler holds 120 litres. It is heated to 60 degrees every night.", 3),
    PASSAGE("Boiler", "Do not open the red valve while the boiler is hot. Steam may escape.", 4),
    PASSAGE("Heat pump", "The heat pump was installed in 2021 by Miller Ltd. Its noise is 45 dB.",
            0),
    PASSAGE("", "Filters: the filter of the pump is changed every six months; order part F-17.", 7),
    PASSAGE("Garage", "The garage door is opened by remote. The code of the keypad is 4711.", 0),
    PASSAGE("Cellar", "The fuse box is in the cellar, beside the stairs. The main switch is grey.",
            9),
    PASSAGE("Garden", "The pool is filled in May and emptied in October. It never freezes.", 0),
    PASSAGE("Warranty", "The warranty of the heat pump lasts 5 years, that of the boiler 2 years.",
            1),
#undef PASSAGE
};

static void open_house(void)
{
    const struct collection_settings settings = {.model = "embedder", .max_tokens = 100};
    const struct collection_doc doc = {.name = "house.pdf", .title = "The house", .hash = 2};
    float vectors[N(house)][DIMS];
    struct collection *c;
    assert_int_equal(collections_make(site.collections, "house", &settings, NULL), 0);
    for (size_t i = 0; i < N(house); i++)
        make_vector(vectors[i], house[i].text, house[i].text_bytes);
    assert_int_equal(collections_hold(site.collections, "house", &c, NULL), 0);
    assert_int_equal(collection_put(c, &doc, house, N(house), vectors[0], DIMS, "v1", 0, NULL), 0);
    collections_release(site.collections, c);
}

/* A line with numbers of two digits behind the point: the others may differ. */
static void trace_json(const char *text)
{
    for (const char *p = text; *p; p++) {
        char *end;
        const bool number = (*p >= '0' && *p <= '9') || (*p == '-' && p[1] >= '0' && p[1] <= '9');
        if (p > text && p[-1] == ':' && number) {
            const double x = strtod(p, &end);
            trace("%.2f", x);
            p = end - 1;
        } else
            trace("%c", *p);
    }
    trace("\n");
}

static void test_everything_that_is_said(void **state)
{
    static const struct {
        const char *query, *answers[4];
    } rows[] = {
        {"how many litres does the boiler hold?",
         {"The boiler holds 120 litres [1].", "It holds 200 litres [1].",
          "It holds 120 litres [99]. It is blue.", "120"}},
        {"when is the pool filled?",
         {"The pool is filled in May [7].", "In June.", "I do not know.", "May [7, 8]"}},
        {"how long is the warranty of the heat pump?",
         {"The warranty of the heat pump lasts 5 years.", "It lasts 2 years [8].", "Five years",
          ""}},
        {"who installed the heat pump?", {"Miller Ltd did, in 2021 [3].", "Smith did [3].", NULL}},
        {"may I open the red valve?",
         {"Do not open the red valve while the boiler is hot [2].",
          "Open the red valve while the boiler is hot [2].", NULL}},
        {"where is the fuse box?",
         {"In the cellar, beside the stairs. The switch is grey [6].", NULL}},
        {"what is the code of the keypad?",
         {"The code is 4711 [5].", "The code is 4712 [5].", NULL}},
        {"does the pool freeze?", {"It never freezes [7].", "It freezes [7].", NULL}},
        {"how often is the filter changed?", {"Every six months, part F-17 [4].", NULL}},
        {"how loud is it?", {"45 dB", NULL}},
        {"who is the president?", {"Miller Ltd.", NULL}},
        {"boiler", {NULL}},
    };
    struct buf b;
    (void)state;
    open_house();
    golden_begin();
    buf_init(&b, 1 << 18);
    for (size_t i = 0; i < N(rows); i++)
        for (int k = -1; k < 4 && (k < 0 || rows[i].answers[k]); k++) {
            struct citing x = {.explain = k < 0, .model = "answerer", .max_tokens = 50};
            memset(&ended, 0, sizeof(ended));
            model.answer = k < 0 ? NULL : rows[i].answers[k];
            x.quoting.retrieval = question(rows[i].query);
            x.quoting.retrieval.collection = "house";
            x.quoting.retrieval.n_results = 4;
            x.n_given = 3;
            x.write = k >= 0;
            x.done = on_cited;
            citing_run(&x);
            wait_for_it();
            assert_false(ended.failed);
            trace("== %s / %s\n", rows[i].query, k < 0 ? "-" : rows[i].answers[k]);
            buf_clear(&b);
            struct json_out j = json_out_make(&b);
            json_out_object(&j);
            citing_json(&j, &x);
            json_out_object_end(&j);
            trace_json(buf_str(&b));
            citing_fini(&x);
        }
    buf_fini(&b);
    golden_end("citing");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_site, close_site)
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_found),
        TEST(test_searches_that_fail),
        TEST(test_modes),
        TEST(test_the_prompt),
        TEST(test_answers),
        TEST(test_quotes),
        TEST(test_a_prompt_that_is_too_long),
        TEST(test_questions_that_fail),
        TEST(test_everything_that_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
