/* test_pooling.c - sentence-transformers folders: the engine's embeddings equal those of
 * sentence-transformers (tests/data/pooling), and unsupported settings are refused by name. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "shoal/shoal.h"
#include "support/ref_file.h"

#define MAX_TEXTS 8

static char folder[256]; /* per test, removed at its end */

static void run(const char *format, const char *a, const char *b)
{
    char command[2048];
    snprintf(command, sizeof(command), format, a, b);
    if (system(command) != 0)
        fail_msg("cannot run %s", command);
}

/* The encoder's files, overlaid with those of the case. */
static void assemble(const char *name)
{
    snprintf(folder, sizeof(folder), "/tmp/shoal-pooling-XXXXXX");
    assert_non_null(mkdtemp(folder));
    run("cp -R %s/encoders/bert/. %s/", SHOAL_TEST_DATA, folder);
    if (name) {
        char from[512];
        snprintf(from, sizeof(from), "%s/pooling/%s", SHOAL_TEST_DATA, name);
        run("cp -R %s/. %s/", from, folder);
    }
}

static void clean(void)
{
    run("rm -r %s%s", folder, "");
}

static void put(const char *file, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    (void)mkdir(path, 0700);
    *slash = '/';
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static uint32_t texts_of(char texts[MAX_TEXTS][256])
{
    char path[512];
    uint32_t n = 0;
    snprintf(path, sizeof(path), "%s/pooling/texts.txt", SHOAL_TEST_DATA);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (n < MAX_TEXTS && fgets(texts[n], 256, f)) {
        texts[n][strcspn(texts[n], "\n")] = '\0';
        n++;
    }
    fclose(f);
    return n;
}

struct got {
    float v[512];
    uint32_t n_dims, n_tokens;
    bool truncated;
    int code;
};

static void take(void *ctx, const struct shoal_result *r)
{
    struct got *g = ctx;
    *g = (struct got){
        .n_dims = r->n_dims, .n_tokens = r->n_tokens, .truncated = r->truncated, .code = r->code};
    assert_true(r->n_dims <= 512);
    if (r->code == 0)
        memcpy(g->v, r->vector, r->n_dims * sizeof(float));
}

static struct got embed(struct shoal_engine *en, const char *text, const char *prompt)
{
    struct got g;
    struct shoal_error e = {0};
    struct shoal_task *t = NULL;
    const struct shoal_infer_opts o = {.size = sizeof(o),
                                       .kind = SHOAL_KIND_EMBED,
                                       .text = text,
                                       .text_bytes = strlen(text),
                                       .prompt = prompt,
                                       .done = take,
                                       .done_ctx = &g};
    if (shoal_infer_submit(en, &o, &t, &e) < 0)
        fail_msg("%s", e.msg);
    shoal_task_wait(t);
    shoal_task_free(t);
    assert_int_equal(g.code, 0);
    return g;
}

static void compare(const char *name, struct shoal_engine *en, const struct ref_array *a,
                    const struct ref_array *lengths, const char *prompt)
{
    char texts[MAX_TEXTS][256];
    uint32_t n = texts_of(texts);
    assert_int_equal(a->rows, n);
    for (uint32_t i = 0; i < n; i++) {
        const float *want = (const float *)(const void *)a->data + (size_t)i * a->cols;
        struct got g = embed(en, texts[i], prompt);
        double diff = 0, norm = 0;
        if (g.n_dims != a->cols)
            fail_msg("%s: %u dimensions, want %u", name, g.n_dims, a->cols);
        for (uint32_t k = 0; k < a->cols; k++) {
            diff += pow((double)g.v[k] - (double)want[k], 2);
            norm += pow((double)want[k], 2);
        }
        if (!(sqrt(diff) <= 2e-5 * sqrt(norm)))
            fail_msg("%s, text %u, prompt %s: error %g", name, i, prompt ? prompt : "-",
                     sqrt(diff / norm));
        if (lengths)
            assert_int_equal(g.n_tokens, ref_int(lengths, i));
    }
}

static void test_equals_sentence_transformers(void **state)
{
    (void)state;
    static const char *const names[] = {
        "cls",   "max",       "mean",      "sqrt",  "weighted",
        "last",  "two",       "three-old", "short", "short-tokenizer",
        "dense", "dense-two", "prompts"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct shoal_engine *en;
        struct shoal_error e = {0};
        struct ref_file f;
        char path[512];
        snprintf(path, sizeof(path), "%s/pooling/%s.ref", SHOAL_TEST_DATA, names[i]);
        assert_int_equal(ref_open(&f, path), 0);
        assemble(names[i]);
        if (shoal_engine_open(&en, folder, NULL, &e) < 0)
            fail_msg("%s: %s", names[i], e.msg);
        bool prompts = ref_find(&f, "query") != NULL;
        compare(names[i], en, ref_find(&f, "vectors"), prompts ? NULL : ref_find(&f, "lengths"),
                NULL);
        if (prompts) {
            compare(names[i], en, ref_find(&f, "query"), NULL, "query");
            compare(names[i], en, ref_find(&f, "passage"), NULL, "passage");
        }
        shoal_engine_close(en);
        ref_close(&f);
        clean();
    }
}

static void test_unknown_prompt(void **state)
{
    (void)state;
    struct shoal_engine *en;
    struct shoal_error e = {0};
    struct shoal_task *t = NULL;
    struct shoal_infer_opts o = {.size = sizeof(o),
                                 .kind = SHOAL_KIND_EMBED,
                                 .text = "go",
                                 .text_bytes = 2,
                                 .prompt = "nope"};
    assemble("prompts");
    assert_int_equal(shoal_engine_open(&en, folder, NULL, &e), 0);
    assert_int_equal(shoal_infer_submit(en, &o, &t, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "\"nope\"; available: document, passage, query"));
    struct got with = embed(en, "go", NULL), without = embed(en, "go", "");
    assert_true(with.n_tokens > without.n_tokens);
    shoal_engine_close(en);
    clean();
}

static void test_unknown_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *name, *file, *text, *message;
    } cases[] = {
        {"cls", "1_Pooling/config.json", "{\"pooling_mode\":\"median\"}", "\"median\""},
        {"cls", "1_Pooling/config.json", "{\"pooling_mode\":[\"cls\",\"attention\"]}",
         "\"attention\""},
        {"cls", "1_Pooling/config.json", "{\"pooling_mode_attention\":true}",
         "pooling_mode_attention"},
        {"cls", "1_Pooling/config.json", "{\"pooling_mode\":\"cls\",\"embedding_dimension\":65}",
         "65"},
        {"cls", "modules.json",
         "[{\"idx\":0,\"path\":\"\",\"type\":\"sentence_transformers.models.Transformer\"},"
         "{\"idx\":1,\"path\":\"1_WordWeights\",\"type\":\"sentence_transformers.models."
         "WordWeights\"}]",
         "WordWeights"},
        {"cls", "modules.json",
         "[{\"path\":\"\",\"type\":\"Transformer\"},{\"path\":\"../x\",\"type\":\"Pooling\"}]",
         "../x"},
        {"dense", "2_Dense/config.json",
         "{\"in_features\":64,\"out_features\":24,\"activation_function\":\"torch.nn.Softsign\"}",
         "Softsign"},
        {"dense", "2_Dense/config.json", "{\"in_features\":63,\"out_features\":24}", "63"},
        {"dense", "2_Dense/config.json", "{\"in_features\":64,\"out_features\":25}",
         "sentence_dense.0.weight"},
        {"cls", "config_sentence_transformers.json", "{\"similarity_fn_name\":\"hamming\"}",
         "hamming"},
        {"cls", "config_sentence_transformers.json", "{\"default_prompt_name\":\"q\"}", "\"q\""},
        {"cls", "sentence_bert_config.json", "{\"max_seq_length\":-1}", "max_seq_length"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct shoal_engine *en = NULL;
        struct shoal_error e = {0};
        assemble(cases[i].name);
        put(cases[i].file, cases[i].text);
        int rc = shoal_engine_open(&en, folder, NULL, &e);
        if (rc == 0 || !strstr(e.msg, cases[i].message))
            fail_msg("%s: %s: %d, \"%s\"", cases[i].file, cases[i].text, rc, e.msg);
        shoal_engine_close(en);
        clean();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_sentence_transformers),
        cmocka_unit_test(test_unknown_prompt),
        cmocka_unit_test(test_unknown_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
