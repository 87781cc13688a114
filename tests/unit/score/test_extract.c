/* test_extract.c - summaries by sentences against examples from the Python reference
 * (tests/data/summary): sentences, features, scores and choice; and through the engine. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "base/mem.h"
#include "score/extract.h"
#include "shoal/shoal.h"

#define MODEL SHOAL_TEST_DATA "/../../models/summary.json"
#define MAX_ROWS 64

static cJSON *rows[MAX_ROWS];
static size_t n_rows;

static int setup(void **state)
{
    static char line[65536];
    FILE *f = fopen(SHOAL_TEST_DATA "/summary/examples.jsonl", "re");
    (void)state;
    while (f && n_rows < MAX_ROWS && fgets(line, sizeof(line), f))
        if (!(rows[n_rows++] = cJSON_Parse(line)))
            return -1;
    return f && fclose(f) == 0 && n_rows >= 20 ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    while (n_rows > 0)
        cJSON_Delete(rows[--n_rows]);
    return 0;
}

static const cJSON *get(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    if (!v)
        fail_msg("no %s", key);
    return v;
}

static const char *text_of(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsString(v) ? v->valuestring : NULL;
}

static void check_doc(const cJSON *row, const struct extract *x)
{
    struct extract_doc *d;
    struct err e = {0};
    const char *text = get(row, "text")->valuestring, *title = text_of(row, "title");
    const cJSON *s = get(row, "sentences")->child, *f = get(row, "features")->child;
    if (extract_doc_create(&d, x, text, strlen(text), title, title ? strlen(title) : 0, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(d->n, cJSON_GetArraySize(get(row, "sentences")));
    assert_int_equal(d->dialogue, cJSON_IsTrue(get(row, "dialogue")));
    for (uint32_t i = 0; i < d->n; i++, s = s->next, f = f->next) {
        const cJSON *v = f->child->next; /* the first one needs vectors */
        assert_string_equal(d->sentences[i].text, s->valuestring);
        for (uint32_t k = 1; k < EXTRACT_FEATURES; k++, v = v->next)
            if (fabs(d->sentences[i].features[k] - v->valuedouble) > 1e-4)
                fail_msg("%s: feature %u is %f, not %f", s->valuestring, k,
                         d->sentences[i].features[k], v->valuedouble);
    }
    extract_doc_destroy(d);
}

static void test_sentences_and_features(void **state)
{
    (void)state;
    struct extract *x;
    struct err e = {0};
    assert_int_equal(extract_open(&x, MODEL, &e), 0);
    assert_string_equal(extract_encoder(x), "encoder");
    for (size_t i = 0; i < n_rows; i++)
        check_doc(rows[i], x);
    extract_close(x);
}

/* Scores need the encoder: within 1e-3 of PyTorch with the file's weights, and the same choice
 * with 8-bit ones. */
static void run_engine(bool int8)
{
    struct shoal_engine_opts o = {.size = sizeof(o), .cache_dir = "", .int8 = int8};
    struct shoal_engine *en;
    struct err e = {0};
    if (shoal_engine_open(&en, MODEL, &o, &e) < 0)
        fail_msg("%s", e.msg);
    for (size_t i = 0; i < n_rows; i++) {
        const char *text = get(rows[i], "text")->valuestring, *title = text_of(rows[i], "title");
        struct shoal_task *t;
        struct shoal_infer_opts io = {.size = sizeof(io),
                                      .kind = SHOAL_KIND_SUMMARIZE,
                                      .text = text,
                                      .text_bytes = strlen(text),
                                      .document = title,
                                      .document_bytes = title ? strlen(title) : 0};
        assert_int_equal(shoal_infer_submit(en, &io, &t, &e), 0);
        assert_int_equal(shoal_task_wait(t), 0);
        const struct shoal_result *r = shoal_task_result(t);
        assert_string_equal(r->text, get(rows[i], "summary")->valuestring);
        const cJSON *c = get(rows[i], "chosen");
        assert_int_equal(r->n_spans, cJSON_GetArraySize(c));
        c = c->child;
        for (uint32_t k = 0; k < r->n_spans; k++, c = c->next) {
            double want = cJSON_GetArrayItem(get(rows[i], "scores"), c->valueint)->valuedouble;
            if (fabs((double)r->spans[k].score - want) > (int8 ? 0.03 : 1e-3))
                fail_msg("score %f, not %f", (double)r->spans[k].score, want);
        }
        shoal_task_free(t);
    }
    shoal_engine_close(en);
}

static void test_summaries(void **state)
{
    (void)state;
    run_engine(false);
    run_engine(true);
}

static void test_odd_texts(void **state)
{
    (void)state;
    struct extract *x;
    struct extract_doc *d;
    struct err e = {0};
    static const struct {
        const char *text;
        uint32_t n;
    } cases[] = {{"", 0},
                 {" \n \n\t\n", 0},
                 {"One.", 1},
                 {"No end", 1},
                 {"A. Smith met Dr. Who. He left.", 2},
                 {"Is it? \"Yes!\" He said (Nope.) Then.", 4},
                 {"Version 1.2 is out. 3 bugs left.", 2},
                 {"first\n\nsecond", 2},
                 {"first\n \t\r\nsecond", 2},
                 {"caf\xc3\xa9. \xc3\x89t\xc3\xa9.", 2},
                 {"\xff\xfe. \xff", 2}};
    assert_int_equal(extract_open(&x, MODEL, &e), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(
            extract_doc_create(&d, x, cases[i].text, strlen(cases[i].text), NULL, 0, &e), 0);
        if (d->n != cases[i].n)
            fail_msg("%s: %u sentences", cases[i].text, d->n);
        extract_doc_destroy(d);
    }
    extract_close(x);
}

/* Lines with names are turns if somebody speaks twice; tables of values and times are not. */
static void test_dialogues(void **state)
{
    (void)state;
    struct extract *x;
    struct extract_doc *d;
    struct err e = {0};
    static const struct {
        const char *text;
        uint32_t n;
        bool dialogue;
    } cases[] = {
        {"A: Hi. It is me.\nB: Yes?\n\n A: Go.\nB: Where? There?\n", 6, true},
        {"A:\nB: yes\nA:\tgo\nB: ok\nand more of it", 5, true},
        {"A: hi\nB: yes\nA: go", 1, false},
        {"A: hi\nB: yes\nC: go\nD: ok", 1, false},
        {"A: hi\nB: yes\nno name\nno name either\nA: go\nB: ok", 1, false},
        {"10:15 on\n10:15 off\n10:15 on\n10:15 off", 1, false},
        {": hi\n: yes\n: go\n: ok", 1, false},
        {"A name of more than forty bytes is none of us: hi\nA name of more than forty bytes "
         "is none of us: hi\nA: go\nA: ok",
         1, false}};
    assert_int_equal(extract_open(&x, MODEL, &e), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(
            extract_doc_create(&d, x, cases[i].text, strlen(cases[i].text), NULL, 0, &e), 0);
        if (d->n != cases[i].n || d->dialogue != cases[i].dialogue)
            fail_msg("%s: %u sentences, %s", cases[i].text, d->n, d->dialogue ? "turns" : "prose");
        extract_doc_destroy(d);
    }
    extract_close(x);
}

/* A speaker is named once per turn, and the range of a turn's first sentence includes the name. */
static void test_speakers(void **state)
{
    (void)state;
    static const char text[] = "Ann Lee: Hi.  It is\tme.\nB: Yes?\nAnn Lee:  Go now. Or not.\nB:\n";
    static const struct {
        const char *text, *range;
    } want[] = {{"Ann Lee: Hi.", "Ann Lee: Hi."}, {"Ann Lee: It is me.", "It is\tme."},
                {"B: Yes?", "B: Yes?"},           {"Ann Lee: Go now.", "Ann Lee:  Go now."},
                {"Ann Lee: Or not.", "Or not."},  {"B:", "B:"}};
    struct extract *x;
    struct extract_doc *d;
    struct err e = {0};
    char summary[sizeof(text) * 4];
    size_t n = 0;
    assert_int_equal(extract_open(&x, MODEL, &e), 0);
    assert_int_equal(extract_doc_create(&d, x, text, strlen(text), NULL, 0, &e), 0);
    assert_int_equal(d->n, sizeof(want) / sizeof(want[0]));
    for (uint32_t i = 0; i < d->n; i++) {
        const struct extract_sentence *s = &d->sentences[i];
        assert_string_equal(s->text, want[i].text);
        assert_int_equal(s->end - s->start, strlen(want[i].range));
        assert_memory_equal(text + s->start, want[i].range, s->end - s->start);
        n = extract_append(summary, n, i ? s - 1 : NULL, s);
    }
    summary[n] = '\0';
    assert_string_equal(summary, "Ann Lee: Hi. It is me. B: Yes? Ann Lee: Go now. Or not. B:");
    extract_doc_destroy(d);
    extract_close(x);
}

static void test_failed_allocations_leave_nothing(void **state)
{
    (void)state;
    struct extract *x;
    struct extract_doc *d;
    struct err e;
    for (uint64_t i = 1;; i++) {
        mem_fail_at(i);
        int rc = extract_open(&x, MODEL, &e);
        mem_fail_at(0);
        if (rc == 0)
            break;
        assert_int_equal(rc, SHOAL_ENOMEM);
    }
    const char *const texts[] = {get(rows[0], "text")->valuestring, "A: a b\nB: c\nA: d\nB: e"};
    for (size_t k = 0; k < 2; k++) {
        for (uint64_t i = 1;; i++) {
            mem_fail_at(i);
            int rc = extract_doc_create(&d, x, texts[k], strlen(texts[k]), "Pump", 4, &e);
            mem_fail_at(0);
            if (rc == 0)
                break;
            assert_int_equal(rc, SHOAL_ENOMEM);
        }
        extract_doc_destroy(d);
    }
    extract_close(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences_and_features),
        cmocka_unit_test(test_summaries),
        cmocka_unit_test(test_odd_texts),
        cmocka_unit_test(test_dialogues),
        cmocka_unit_test(test_speakers),
        cmocka_unit_test(test_failed_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
