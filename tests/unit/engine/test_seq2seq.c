/* test_seq2seq.c - output of sequence-to-sequence models: greedy and beam search as in
 * transformers, through the engine, together and alone; see tests/data/t5/README.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "format/model_open.h"
#include "model/t5.h"
#include "support/ref_file.h"
#include "engine/native/beams.h"
#include "engine/native/seq2seq_opts.h"
#include "text/tokenizer/tokenizer.h"
#include "shoal/shoal.h"

static const struct named {
    const char *name;
    int32_t start, end; /* tokens */
    bool rules;         /* its references have results with forced and forbidden tokens */
} models[] = {{"t5-relu", 0, 1, false},
              {"t5-gated", 0, 1, false},
              {"mt5", 0, 1, true},
              {"marian", 127, 0, true},
              {"bart", 2, 2, true}};
enum { N_MODELS = sizeof(models) / sizeof(models[0]) };

/* ---- beams over the model, each hypothesis with its own pages ---- */

enum { PAGES_EACH = 2, MAX_BEAMS = 4, N_PAGES = 64 };

static const struct {
    const char *name, *scores; /* in the references */
    struct beams_opts o;       /* GENERATIONS of tools/make_t5_refs.py */
    bool rules;                /* forced and forbidden tokens, those of the references */
} generations[] = {
    {"greedy", NULL, {.n_beams = 1, .max_tokens = 24}, false},
    {"greedy.ngram",
     NULL,
     {.n_beams = 1, .max_tokens = 24, .no_repeat_ngram = 2, .min_tokens = 9},
     false},
    {"greedy.rules", NULL, {.n_beams = 1, .max_tokens = 12}, true},
    {"beam3", "beam3.s", {.n_beams = 3, .max_tokens = 24, .length_penalty = 1.0f}, false},
    {"beam3.rules",
     "beam3.rules.s",
     {.n_beams = 3, .max_tokens = 12, .length_penalty = 1.0f, .renormalize = true},
     true},
    {"beam3.early",
     "beam3.early.s",
     {.n_beams = 3,
      .max_tokens = 24,
      .early = BEAMS_EARLY_YES,
      .length_penalty = 2.0f,
      .no_repeat_ngram = 3,
      .min_tokens = 5},
     false},
    {"beam4.never",
     "beam4.never.s",
     {.n_beams = 4, .max_tokens = 20, .early = BEAMS_EARLY_NEVER, .length_penalty = -0.5f},
     false},
};

static void check_result(const char *model, const char *kind, uint32_t source,
                         const struct beams *b, const struct ref_array *want,
                         const struct ref_array *scores)
{
    uint32_t n;
    float score;
    const int32_t *got = beams_result(b, &n, &score);
    for (uint32_t i = 0; i < want->cols; i++) {
        int32_t w = ref_int(want, (size_t)source * want->cols + i);
        if ((i < n ? got[i] : 0) != w)
            fail_msg("%s, %s, source %u: token %u is %d, expected %d", model, kind, source, i,
                     i < n ? got[i] : 0, w);
    }
    if (scores) {
        float w = ((const float *)(const void *)scores->data)[source];
        if (fabsf(score - w) > 2e-3f * fabsf(w))
            fail_msg("%s, %s, source %u: score %g, expected %g", model, kind, source, (double)score,
                     (double)w);
    }
}

/* Generates from one source; pages 0..3 are the source's. */
static void write_from(struct t5 *t, struct beams *b, const struct beams_with *w,
                       const struct t5_source *source)
{
    uint32_t pages[2][MAX_BEAMS][PAGES_EACH], now = 0;
    for (uint32_t i = 0; i < 2 * MAX_BEAMS * PAGES_EACH; i++)
        (&pages[0][0][0])[i] = 4 + i;
    t5_encode(t, source, 1);
    for (;;) {
        struct t5_row rows[MAX_BEAMS];
        const uint32_t n = beams_n_rows(b);
        for (uint32_t i = 0; i < n; i++)
            rows[i] = (struct t5_row){beams_token(b, i), beams_n_tokens(b), pages[now][i],
                                      source->pages,     source->n,         NULL};
        t5_decode(t, rows, n);
        if (!beams_step(b, w, t5_logits(t, 0)))
            return;
        for (uint32_t i = 0; i < beams_n_rows(b); i++)
            for (uint32_t p = 0; p < PAGES_EACH; p++)
                t5_copy_page(t, pages[!now][i][p], pages[now][beams_parent(b, i)][p]);
        now = !now;
    }
}

static void add_rules(struct beams_opts *o, const struct ref_array *plain, int32_t end)
{
    o->first = (struct beams_forced){true, ref_int(plain, 1)};
    o->last = (struct beams_forced){true, end};
    o->bad[o->n_bad++] = (struct beams_bad){1, {ref_int(plain, 0)}};
    o->bad[o->n_bad++] = (struct beams_bad){2, {ref_int(plain, 1), ref_int(plain, 2)}};
    o->bad[o->n_bad++] = (struct beams_bad){2, {ref_int(plain, 3), ref_int(plain, 4)}};
}

static void check_model(const struct named *model)
{
    const char *name = model->name;
    static const uint32_t source_pages[] = {3, 0, 2, 1};
    char path[512];
    struct err e = {0};
    struct model_file *g;
    struct t5 *t = NULL;
    struct ref_file f;
    snprintf(path, sizeof(path), "%s/t5/%s.ref", SHOAL_TEST_DATA, name);
    assert_int_equal(ref_open(&f, path), 0);
    snprintf(path, sizeof(path), "%s/t5/%s", SHOAL_TEST_DATA, name);
    if (model_open(&g, path, &e) < 0 || t5_create(&t, g, path, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    const uint32_t n_vocab = t5_config(t)->n_vocab;
    size_t kv_bytes = t5_sizes(t).kv_page * N_PAGES;
    uint8_t *kv = mem_pages(kv_bytes);
    struct beams_with w = {t5_kernels(t), n_vocab, mem_aligned(2 * n_vocab * sizeof(float)), NULL};
    t5_set_kv(t, kv);
    const struct ref_array *lengths = ref_find(&f, "lengths"), *ids = ref_find(&f, "tokens");
    for (uint32_t s = 0, at = 0; s < lengths->cols; at += (uint32_t)ref_int(lengths, s++)) {
        int32_t tokens[64];
        struct t5_source source = {tokens, (uint32_t)ref_int(lengths, s), source_pages};
        for (uint32_t i = 0; i < source.n; i++)
            tokens[i] = ref_int(ids, at + i);
        for (size_t i = 0; i < sizeof(generations) / sizeof(generations[0]); i++) {
            struct beams_opts o = generations[i].o;
            if (generations[i].rules && !model->rules)
                continue;
            o.start = model->start;
            o.ends[o.n_ends++] = model->end;
            if (generations[i].rules)
                add_rules(&o, ref_find(&f, "rules"), model->end);
            struct beams *b = beams_create(&o);
            assert_non_null(b);
            write_from(t, b, &w, &source);
            check_result(name, generations[i].name, s, b, ref_find(&f, generations[i].name),
                         generations[i].scores ? ref_find(&f, generations[i].scores) : NULL);
            beams_destroy(b);
        }
    }
    mem_free(w.row);
    t5_destroy(t);
    model_file_close(g);
    mem_pages_free(kv, kv_bytes);
    ref_close(&f);
}

static void test_tokens_are_those_of_transformers(void **state)
{
    (void)state;
    for (int i = 0; i < N_MODELS; i++)
        check_model(&models[i]);
}

/* ---- settings -------------------------------------------------------------------------------- */

static int read_opts(struct seq2seq_opts *o, const char *config, const char *generation,
                     struct err *e)
{
    struct str a = {config, config ? strlen(config) : 0};
    struct str b = {generation, generation ? strlen(generation) : 0};
    *e = (struct err){0};
    return seq2seq_opts_read(o, a, b, e);
}

static void test_settings_come_from_the_documents(void **state)
{
    (void)state;
    struct seq2seq_opts o;
    struct err e;
    assert_int_equal(read_opts(&o, NULL, NULL, &e), 0);
    assert_string_equal(o.prefix, "summarize: ");
    assert_int_equal(o.write.n_beams, 1);
    seq2seq_opts_fini(&o);
    /* the task's settings take precedence, then generation_config.json's */
    assert_int_equal(read_opts(&o,
                               "{\"num_beams\": 2, \"max_length\": 21, \"repetition_penalty\": 1.5,"
                               "\"task_specific_params\": {\"summarization\": {\"num_beams\": 4,"
                               "\"prefix\": \"short: \", \"early_stopping\": true,"
                               "\"length_penalty\": 2.0, \"no_repeat_ngram_size\": 3}}}",
                               "{\"num_beams\": 3, \"eos_token_id\": [1, 5], \"min_length\": 31,"
                               "\"decoder_start_token_id\": 7, \"top_k\": null}",
                               &e),
                     0);
    assert_string_equal(o.prefix, "short: ");
    assert_int_equal(o.write.n_beams, 4);
    assert_int_equal(o.write.max_tokens, 20); /* without the decoder's first */
    assert_int_equal(o.write.min_tokens, 30);
    assert_int_equal(o.write.no_repeat_ngram, 3);
    assert_int_equal(o.write.early, BEAMS_EARLY_YES);
    assert_int_equal(o.write.start, 7);
    assert_int_equal(o.write.n_ends, 2);
    assert_int_equal(o.write.ends[1], 5);
    assert_true(o.write.length_penalty == 2.0f && o.write.repeat_penalty == 1.5f);
    assert_true(o.write.sampling.temperature == 0.0f);
    seq2seq_opts_fini(&o);
    assert_int_equal(read_opts(&o, "{}", "{\"do_sample\": true, \"top_p\": 0.9}", &e), 0);
    assert_string_equal(o.prefix, "");
    assert_true(o.write.sampling.temperature == 1.0f && o.write.sampling.top_p == 0.9f);
    assert_int_equal(o.write.sampling.top_k, 50);
    seq2seq_opts_fini(&o);
    /* a document that does not name a setting leaves it, whether it samples or not */
    assert_int_equal(read_opts(&o,
                               "{\"top_k\": 5, \"temperature\": 0.5, \"task_specific_params\":"
                               "{\"summarization\": {\"do_sample\": true, \"top_p\": 0.8}}}",
                               "{\"do_sample\": true, \"min_p\": 0.1}", &e),
                     0);
    assert_int_equal(o.write.sampling.top_k, 5);
    assert_true(o.write.sampling.temperature == 0.5f && o.write.sampling.top_p == 0.8f);
    assert_true(o.write.sampling.min_p == 0.1f);
    seq2seq_opts_fini(&o);
    /* forced and forbidden tokens; null takes them back */
    assert_int_equal(
        read_opts(&o,
                  "{\"forced_bos_token_id\": 0, \"bad_words_ids\": [[9]],"
                  "\"forced_eos_token_id\": 2}",
                  "{\"bad_words_ids\": [[58100], [7, 8]], \"forced_bos_token_id\": null,"
                  "\"renormalize_logits\": true}",
                  &e),
        0);
    assert_true(!o.write.first.on && o.write.last.on && o.write.renormalize);
    assert_int_equal(o.write.last.token, 2);
    assert_int_equal(o.write.n_bad, 2);
    assert_true(o.write.bad[0].n == 1 && o.write.bad[0].tokens[0] == 58100);
    assert_true(o.write.bad[1].n == 2 && o.write.bad[1].tokens[1] == 8);
    seq2seq_opts_fini(&o);
    assert_int_equal(read_opts(&o, "{}", "{\"forced_bos_token_id\": 0}", &e), 0);
    assert_true(o.write.first.on && o.write.first.token == 0 && !o.write.last.on);
    seq2seq_opts_fini(&o);
    /* and one that switches sampling off */
    assert_int_equal(read_opts(&o, "{\"do_sample\": true, \"top_k\": 5}",
                               "{\"do_sample\": false, \"temperature\": 0}", &e),
                     0);
    assert_true(o.write.sampling.temperature == 0.0f);
    seq2seq_opts_fini(&o);
}

static void test_settings_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *generation, *expect;
    } cases[] = {
        {"[1, 2]", "generation_config.json must be a JSON object"},
        {"{\"num_beams\": ", "generation_config.json must be a JSON object"},
        {"{\"num_beams\": 65}", "num_beams must be a number from 0 to 64"},
        {"{\"num_beams\": 0}", "0 beams"},
        {"{\"num_beams\": \"3\"}", "num_beams must be a number"},
        {"{\"num_beams\": 1.5}", "num_beams must be a whole number"},
        {"{\"max_length\": 1}", "0 tokens"},
        {"{\"max_length\": 1e300}", "max_length must be a number from 0 to 65536"},
        {"{\"max_new_tokens\": -1}", "max_new_tokens"},
        {"{\"length_penalty\": 1e30}", "length_penalty"},
        {"{\"eos_token_id\": -1}", "eos_token_id"},
        {"{\"eos_token_id\": []}", "eos_token_id"},
        {"{\"eos_token_id\": [1, \"x\"]}", "eos_token_id"},
        {"{\"eos_token_id\": [1,2,3,4,5,6,7,8,9]}", "eos_token_id must have 1 to 8 tokens"},
        {"{\"do_sample\": true, \"temperature\": 0}", "temperature"},
        {"{\"forced_eos_token_id\": [0, 1]}", "forced_eos_token_id with 2 tokens"},
        {"{\"forced_bos_token_id\": \"</s>\"}", "forced_bos_token_id has something that is not"},
        {"{\"bad_words_ids\": [[]]}", "at most 16 lists of 1 to 8 tokens"},
        {"{\"bad_words_ids\": [7]}", "at most 16 lists of 1 to 8 tokens"},
        {"{\"bad_words_ids\": [[1,2,3,4,5,6,7,8,9]]}", "at most 16 lists of 1 to 8 tokens"},
        {"{\"bad_words_ids\": [[-1]]}", "bad_words_ids has something that is not"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct seq2seq_opts o;
        struct err e;
        if (read_opts(&o, NULL, cases[i].generation, &e) == 0)
            fail_msg("%s was taken", cases[i].generation);
        if (!strstr(e.msg, cases[i].expect))
            fail_msg("%s: \"%s\", expected \"%s\"", cases[i].generation, e.msg, cases[i].expect);
        assert_null(o.prefix);
    }
}

/* ---- through the engine ---------------------------------------------------------------------- */

static struct shoal_engine *open_engine(const char *name, const struct shoal_engine_opts *opts)
{
    struct shoal_engine *en;
    struct err e = {0};
    struct shoal_engine_opts o = opts ? *opts : (struct shoal_engine_opts){0};
    char path[512];
    o.size = sizeof(o);
    o.cache_dir = "";
    snprintf(path, sizeof(path), "%s/t5/%s", SHOAL_TEST_DATA, name);
    if (shoal_engine_open(&en, path, &o, &e) < 0)
        fail_msg("%s", e.msg);
    return en;
}

static cJSON *read_texts(const char *name)
{
    static char text[65536];
    char path[512];
    snprintf(path, sizeof(path), "%s/t5/%s.json", SHOAL_TEST_DATA, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    cJSON *all = cJSON_Parse(text);
    assert_true(cJSON_GetArraySize(all) >= 3);
    return all;
}

static struct shoal_task *submit(struct shoal_engine *en, const char *text, uint32_t beams,
                                 uint32_t max_tokens)
{
    struct shoal_task *t;
    struct err e = {0};
    struct shoal_infer_opts o = {.size = sizeof(o),
                                 .kind = SHOAL_KIND_SUMMARIZE,
                                 .text = text,
                                 .text_bytes = strlen(text),
                                 .beams = beams,
                                 .max_tokens = max_tokens};
    if (shoal_infer_submit(en, &o, &t, &e) < 0)
        fail_msg("%s", e.msg);
    return t;
}

/* A text of bytes with U+FFFD for what is not UTF-8, as Python writes it: once for each longest
 * piece that could have begun a character. */
static void repair(char *out, size_t cap, const char *p, size_t n)
{
    size_t at = 0;
    while (n > 0 && at + 8 < cap) {
        const size_t good = utf8_valid_prefix(p, n),
                     used = good < cap - at - 8 ? good : cap - at - 8;
        memcpy(out + at, p, used);
        at += used;
        p += used;
        n -= used;
        if (good > used || n == 0)
            break;
        struct utf8_stream s = {0};
        struct buf b;
        size_t bad = 0;
        buf_init(&b, 64);
        do /* until the piece can no longer become a character */
            utf8_stream_push(&s, &b, p + bad++, 1);
        while (b.len == 0 && bad < n);
        bad -= bad > 1 && b.len > 0;
        buf_fini(&b);
        memcpy(out + at, "\xef\xbf\xbd", 3);
        at += 3;
        p += bad;
        n -= bad;
    }
    out[at] = '\0';
}

static void expect_text(struct shoal_task *t, const cJSON *item, const char *key)
{
    assert_int_equal(shoal_task_wait(t), 0);
    const struct shoal_result *r = shoal_task_result(t);
    const char *want = cJSON_GetObjectItem(item, key)->valuestring;
    char got[512];
    repair(got, sizeof(got), r->text, r->text_bytes);
    if (strcmp(want, got) != 0)
        fail_msg("%s: \"%s\", expected \"%s\"", key, got, want);
    assert_int_equal(r->n_tokens, cJSON_GetArraySize(cJSON_GetObjectItem(item, "ids")));
    assert_false(r->truncated);
    shoal_task_free(t);
}

/* Many tasks at once, more than run together, with and without beam search: each as transformers
 * alone. */
static void test_texts_are_those_of_transformers(void **state)
{
    (void)state;
    static const struct shoal_engine_opts opts[] = {
        {0}, {.max_tasks = 3, .n_threads = 3}, {.max_tasks = 16, .kernels = "scalar"}};
    for (int m = 0; m < N_MODELS; m++)
        for (size_t o = 0; o < sizeof(opts) / sizeof(opts[0]); o++) {
            struct shoal_engine *en = open_engine(models[m].name, &opts[o]);
            cJSON *texts = read_texts(models[m].name), *item;
            struct shoal_task *tasks[64];
            uint32_t n = 0;
            for (int round = 0; round < 2; round++)
                cJSON_ArrayForEach(item, texts)
                {
                    const char *text = cJSON_GetObjectItem(item, "text")->valuestring;
                    tasks[n++] = submit(en, text, 0, 0);
                    tasks[n++] = submit(en, text, 1, 0);
                }
            uint32_t at = 0;
            for (int round = 0; round < 2; round++)
                cJSON_ArrayForEach(item, texts)
                {
                    expect_text(tasks[at++], item, "summary");
                    expect_text(tasks[at++], item, "greedy");
                }
            assert_int_equal(at, n);
            cJSON_Delete(texts);
            shoal_engine_close(en);
        }
}

/* Texts become the tokens that the library makes of them. */
static void test_tokens_of_texts_are_those_of_transformers(void **state)
{
    (void)state;
    for (int m = 0; m < N_MODELS; m++) {
        char path[512];
        struct model_file *g;
        struct tokenizer *t;
        struct err e = {0};
        snprintf(path, sizeof(path), "%s/t5/%s", SHOAL_TEST_DATA, models[m].name);
        if (model_open(&g, path, &e) < 0 || tokenizer_create(&t, g, &e) < 0)
            fail_msg("%s: %s", models[m].name, e.msg);
        cJSON *texts = read_texts(models[m].name), *item;
        cJSON_ArrayForEach(item, texts)
        {
            const cJSON *ids = cJSON_GetObjectItem(item, "ids");
            const char *text = cJSON_GetObjectItem(item, "text")->valuestring;
            struct tok_ids got;
            char whole[512];
            /* T5's prefix is a setting of its folder */
            snprintf(whole, sizeof(whole), "%s%s", models[m].rules ? "" : "summarize: ", text);
            tok_ids_init(&got, 512);
            assert_int_equal(
                tokenizer_encode(t, &got, whole, strlen(whole), TOKENIZER_ADD_SPECIAL, &e), 0);
            for (size_t i = 0; i < got.n; i++)
                if (!cJSON_GetArrayItem(ids, (int)i) ||
                    got.ids[i] != cJSON_GetArrayItem(ids, (int)i)->valueint)
                    fail_msg("%s, \"%s\": token %zu is %d", models[m].name, whole, i, got.ids[i]);
            assert_int_equal(got.n, cJSON_GetArraySize(ids));
            tok_ids_fini(&got);
        }
        cJSON_Delete(texts);
        tokenizer_destroy(t);
        model_file_close(g);
    }
}

/* White space at the ends of a Marian text is dropped; that within stays. */
static void test_marian_texts_have_no_space_at_their_ends(void **state)
{
    (void)state;
    char path[512];
    struct model_file *g;
    struct tokenizer *t;
    struct err e = {0};
    struct buf text;
    snprintf(path, sizeof(path), "%s/t5/marian", SHOAL_TEST_DATA);
    assert_int_equal(model_open(&g, path, &e), 0);
    assert_int_equal(tokenizer_create(&t, g, &e), 0);
    const int32_t space = tokenizer_find(t, "\xe2\x96\x81", 3), e_ = tokenizer_find(t, "e", 1);
    assert_true(space >= 0 && e_ >= 0);
    const int32_t ids[] = {space, space, e_, space, space, 0, space, e_, space, space, 0};
    buf_init(&text, 100);
    tokenizer_decode(t, &text, ids, sizeof(ids) / sizeof(ids[0]), 0);
    assert_string_equal(buf_str(&text), "e   e");
    buf_fini(&text);
    /* pieces of source.spm that vocab.json does not number are no tokens */
    assert_int_equal(tokenizer_info(t)->n_vocab, 128);
    assert_int_equal(tokenizer_find(t, "?", 1), TOKENIZER_NONE);
    tokenizer_destroy(t);
    model_file_close(g);
}

/* A folder whose generation_config.json names a token that the vocabulary does not have. */
static void test_rules_must_be_tokens_of_the_vocabulary(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *expect;
    } cases[] = {
        {"{\"forced_bos_token_id\": 128}", "forced_bos_token_id is token 128, but the vocabulary"},
        {"{\"forced_eos_token_id\": 9999}", "forced_eos_token_id is token 9999"},
        {"{\"bad_words_ids\": [[3], [5, 128]]}", "one of bad_words_ids is token 128"},
        {"{\"bad_words_ids\": [[0]], \"eos_token_id\": 0}", NULL}, /* the end stays allowed */
    };
    static const char *const files[] = {"config.json", "model.safetensors", "source.spm",
                                        "vocab.json"};
    enum { N_FILES = sizeof(files) / sizeof(files[0]) };
    char folder[] = "/tmp/shoal-seq2seq-XXXXXX", path[512], from[512];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < N_FILES; i++) {
        snprintf(from, sizeof(from), "%s/t5/marian/%s", SHOAL_TEST_DATA, files[i]);
        snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        assert_int_equal(symlink(from, path), 0);
    }
    snprintf(path, sizeof(path), "%s/generation_config.json", folder);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct shoal_engine_opts o = {.size = sizeof(o), .cache_dir = "", .n_threads = 1};
        struct shoal_engine *en = NULL;
        struct err e = {0};
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        fputs(cases[i].rule, f);
        fclose(f);
        const int rc = shoal_engine_open(&en, folder, &o, &e);
        if (cases[i].expect ? rc != SHOAL_EFORMAT || !strstr(e.msg, cases[i].expect) : rc != 0)
            fail_msg("%s: %d \"%s\"", cases[i].rule, rc, e.msg);
        shoal_engine_close(en);
    }
    unlink(path);
    for (int i = 0; i < N_FILES; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
}

static void test_what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct shoal_engine *en = open_engine("t5-gated", NULL);
    struct shoal_engine_info info = {.size = sizeof(info)};
    struct shoal_task *t = NULL;
    struct err e = {0};
    struct shoal_infer_opts o = {.size = sizeof(o),
                                 .kind = SHOAL_KIND_SUMMARIZE,
                                 .text = "boats",
                                 .text_bytes = 5,
                                 .beams = 65};
    shoal_engine_info(en, &info);
    assert_int_equal(info.kinds, SHOAL_KIND_SUMMARIZE);
    assert_string_equal(info.arch, "t5");
    assert_int_equal(shoal_infer_submit(en, &o, &t, &e), SHOAL_EINVAL);
    o.beams = 0;
    o.max_tokens = info.n_ctx + 1;
    assert_int_equal(shoal_infer_submit(en, &o, &t, &e), SHOAL_EINVAL);
    o.max_tokens = 0;
    o.temperature = -1.0f;
    assert_int_equal(shoal_infer_submit(en, &o, &t, &e), SHOAL_EINVAL);
    o.temperature = 0.5f;
    o.beams = 2;
    assert_int_equal(shoal_infer_submit(en, &o, &t, &e), SHOAL_EINVAL);
    o.kind = SHOAL_KIND_CLASSIFY;
    assert_int_equal(shoal_infer_submit(en, &o, &t, &e), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(e.msg, "it can: summarize"));
    shoal_engine_close(en);

    /* few pages: the default beam search needs more, greedy decoding does not */
    struct shoal_engine_opts small = {.size = sizeof(small),
                                      .kv_bytes = info.kv_bytes / info.kv_pages * 6};
    en = open_engine("t5-gated", &small);
    o = (struct shoal_infer_opts){.size = sizeof(struct shoal_infer_opts),
                                  .kind = SHOAL_KIND_SUMMARIZE,
                                  .text = "boats",
                                  .text_bytes = 5};
    assert_int_equal(shoal_infer_submit(en, &o, &t, &e), SHOAL_ELIMIT);
    assert_non_null(strstr(e.msg, "there are 6"));
    o.beams = 1;
    assert_int_equal(shoal_infer_submit(en, &o, &t, &e), 0);
    assert_int_equal(shoal_task_wait(t), 0);
    shoal_task_free(t);
    shoal_engine_close(en);
}

static void test_long_texts_are_cut(void **state)
{
    (void)state;
    struct shoal_engine *en = open_engine("t5-relu", NULL);
    char text[2048] = "";
    for (int i = 0; i < 100; i++)
        strcat(text, "The boats wait. ");
    struct shoal_task *t = submit(en, text, 2, 0);
    assert_int_equal(shoal_task_wait(t), 0);
    assert_true(shoal_task_result(t)->truncated);
    assert_int_equal(shoal_task_result(t)->n_tokens, 64);
    shoal_task_free(t);
    shoal_engine_close(en);
}

static void test_drawn_texts_follow_the_seed(void **state)
{
    (void)state;
    struct shoal_engine *en = open_engine("t5-gated", NULL);
    char texts[3][512];
    for (uint32_t i = 0; i < 3; i++) {
        struct shoal_task *t;
        struct shoal_infer_opts o = {.size = sizeof(o),
                                     .kind = SHOAL_KIND_SUMMARIZE,
                                     .text = "The boats wait.",
                                     .text_bytes = 15,
                                     .temperature = 1.0f,
                                     .seed = 7 + i / 2};
        assert_int_equal(shoal_infer_submit(en, &o, &t, NULL), 0);
        assert_int_equal(shoal_task_wait(t), 0);
        const struct shoal_result *r = shoal_task_result(t);
        snprintf(texts[i], sizeof(texts[i]), "%.*s", (int)r->text_bytes, r->text);
        shoal_task_free(t);
    }
    assert_string_equal(texts[0], texts[1]);
    assert_string_not_equal(texts[0], texts[2]);
    shoal_engine_close(en);
}

/* A cancelled or late task ends within a token; its neighbours are not disturbed. */
static void test_tasks_end_when_they_are_told(void **state)
{
    (void)state;
    struct shoal_engine *en = open_engine("t5-relu", NULL);
    cJSON *texts = read_texts("t5-relu"), *item = cJSON_GetArrayItem(texts, 0);
    const char *text = cJSON_GetObjectItem(item, "text")->valuestring;
    for (int i = 0; i < 50; i++) {
        struct shoal_task *other = submit(en, text, 0, 0), *t = submit(en, text, 4, 64), *late;
        struct shoal_infer_opts o = {.size = sizeof(o),
                                     .kind = SHOAL_KIND_SUMMARIZE,
                                     .text = text,
                                     .text_bytes = strlen(text),
                                     .max_tokens = 64,
                                     .deadline_ns = clock_ns() + 1000u * 20u * (unsigned)(i + 1)};
        /* rejected at once or halfway, depending on whether the speed is known */
        int rc = shoal_infer_submit(en, &o, &late, NULL);
        if (i % 2) {
            struct timespec pause = {0, 20000L * i};
            nanosleep(&pause, NULL);
        }
        shoal_task_cancel(t);
        int code = shoal_task_wait(t);
        assert_true(code == 0 || code == SHOAL_ECANCELLED);
        shoal_task_free(t);
        expect_text(other, item, "summary");
        if (rc < 0) {
            assert_int_equal(rc, SHOAL_EDEADLINE);
            continue;
        }
        code = shoal_task_wait(late);
        assert_true(code == 0 || code == SHOAL_EDEADLINE);
        shoal_task_free(late);
    }
    cJSON_Delete(texts);
    shoal_engine_close(en);
}

static uint64_t heap_calls(struct shoal_engine *en, uint32_t max_tokens)
{
    uint64_t before = mem_calls();
    struct shoal_task *t = submit(en, "The boats wait.", 4, max_tokens);
    assert_int_equal(shoal_task_wait(t), 0);
    shoal_task_free(t);
    return mem_calls() - before;
}

static void test_a_token_allocates_nothing(void **state)
{
    (void)state;
    struct shoal_engine *en = open_engine("t5-gated", NULL);
    uint64_t one = heap_calls(en, 1), many = heap_calls(en, 60);
    /* the text itself is reallocated a few times at the end */
    if (many > one + 6)
        fail_msg("%llu heap calls for 60 tokens, %llu for one", (unsigned long long)many,
                 (unsigned long long)one);
    shoal_engine_close(en);
}

static void test_without_memory(void **state)
{
    (void)state;
    char path[512];
    uint64_t n = 0;
    snprintf(path, sizeof(path), "%s/t5/t5-gated", SHOAL_TEST_DATA);
    for (int rc = -1; rc < 0;
         n += n < 40 ? 1 : 7) { /* the loader's many allocations have their own test */
        struct shoal_engine *en = NULL;
        struct err e = {0};
        struct shoal_engine_opts o = {.size = sizeof(o), .cache_dir = "", .n_threads = 1};
        mem_fail_at(n + 1);
        rc = shoal_engine_open(&en, path, &o, &e);
        mem_fail_at(0);
        if (rc < 0)
            assert_true(e.msg[0] && !en);
        shoal_engine_close(en);
    }
    struct shoal_engine *en = open_engine("t5-gated", NULL);
    n = 0;
    for (int rc = -1; rc < 0; n++) {
        struct shoal_infer_opts o = {.size = sizeof(o),
                                     .kind = SHOAL_KIND_SUMMARIZE,
                                     .text = "The boats wait.",
                                     .text_bytes = 15};
        struct shoal_task *t = NULL;
        struct err e = {0};
        mem_fail_at(n + 1);
        rc = shoal_infer_submit(en, &o, &t, &e);
        if (rc == 0)
            rc = shoal_task_wait(t);
        mem_fail_at(0);
        assert_true(rc == 0 || rc == SHOAL_ENOMEM);
        shoal_task_free(t);
    }
    assert_true(n > 8);
    shoal_engine_close(en);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens_are_those_of_transformers),
        cmocka_unit_test(test_settings_come_from_the_documents),
        cmocka_unit_test(test_settings_that_make_no_sense_are_refused),
        cmocka_unit_test(test_texts_are_those_of_transformers),
        cmocka_unit_test(test_tokens_of_texts_are_those_of_transformers),
        cmocka_unit_test(test_marian_texts_have_no_space_at_their_ends),
        cmocka_unit_test(test_rules_must_be_tokens_of_the_vocabulary),
        cmocka_unit_test(test_what_does_not_fit_is_refused),
        cmocka_unit_test(test_long_texts_are_cut),
        cmocka_unit_test(test_drawn_texts_follow_the_seed),
        cmocka_unit_test(test_tasks_end_when_they_are_told),
        cmocka_unit_test(test_a_token_allocates_nothing),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
