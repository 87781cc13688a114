/* test_decoder_rows.c - a decoder whose matrices are cut by rows among several parts computes the
 * bits of the whole one.  Each part is a thread here; what they gather goes through memory. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/weights.h"
#include "support/decoder_rig.h"

#define N_IDS 40u
#define MAX_BATCH 16u
#define MOST_FLOATS (MAX_BATCH * 4096u)

static const char *const names[] = {
    "llama-gqa", "llama3-rope", "gemma3",   "gemma2",  "gpt2",    "gptneox",  "hunyuan",
    "smollm3",   "qwen3",       "stablelm", "granite", "exaone4", "phi2-qkv", "phi-longrope",
    "quant-a",   "quant-b",     "quant-c",  "quant-d", "quant-e", "quant-f",  "quant-g"};

struct table { /* where the parts meet */
    pthread_barrier_t barrier;
    float floats[MOST_FLOATS];
    uint32_t n_gathers;
    uint32_t lose_at; /* this gather fails for all; UINT32_MAX: none */
};

struct part {
    const struct model_file *file;
    struct decoder_rows rows;
    struct table *table;
    uint32_t batch, n_threads;
    uint32_t n_lost;
    float *logits; /* of the last part */
    pthread_t thread;
};

static void copy(float *to, const float *from, const struct decoder_gather *g, uint32_t from_col,
                 uint32_t to_col)
{
    for (uint32_t t = 0; t < g->n_tokens; t++)
        memcpy(to + t * g->ld + from_col, from + t * g->ld + from_col,
               (to_col - from_col) * sizeof(float));
}

static bool gather(void *ctx, const struct decoder_gather *g)
{
    struct part *p = ctx;
    const uint32_t i = p->rows.index, n = p->rows.n_parts;
    if (g->n_tokens * g->ld > MOST_FLOATS || g->cuts[n] != g->ld)
        abort();
    copy(p->table->floats, g->data, g, g->cuts[i], g->cuts[i + 1]);
    for (size_t k = 0; k < g->n_tokens * g->ld; k++) /* nothing of the others is here already */
        if (k % g->ld < g->cuts[i] || k % g->ld >= g->cuts[i + 1])
            g->data[k] = -1e30f;
    pthread_barrier_wait(&p->table->barrier);
    for (uint32_t k = 0; k < n; k++)
        copy(g->data, p->table->floats, g, g->cuts[k], g->cuts[k + 1]);
    if (i == 0)
        p->table->n_gathers++;
    pthread_barrier_wait(&p->table->barrier);
    return g->number != p->table->lose_at;
}

static void run(struct part *p, struct decoder *d)
{
    static const uint32_t pages[] = {2, 0, 3, 1};
    const struct decoder_config *c = decoder_config(d);
    int32_t ids[N_IDS];
    for (uint32_t i = 0; i < N_IDS; i++)
        ids[i] = (int32_t)((i * 7919 + 3) % c->n_vocab);
    for (uint32_t at = 0; at < N_IDS; at += p->batch) {
        const uint32_t n = N_IDS - at < p->batch ? N_IDS - at : p->batch;
        const struct decoder_run r = {
            .tokens = ids + at, .n = n, .pos0 = at, .pages = pages, .n_logits_last = n};
        decoder_forward(d, &r, 1);
        p->n_lost += decoder_lost(d);
        for (uint32_t i = 0; p->logits && i < n; i++)
            memcpy(p->logits + (size_t)(at + i) * c->n_vocab, decoder_logits(d, i),
                   c->n_vocab * sizeof(float));
    }
}

static void *part_main(void *arg)
{
    struct part *p = arg;
    const struct decoder_opts o = {.n_threads = p->n_threads,
                                   .n_ctx = 64,
                                   .max_batch = MAX_BATCH,
                                   .max_logits = MAX_BATCH,
                                   .rows = p->rows};
    struct decoder *d;
    struct err e = {0};
    if (decoder_create(&d, p->file, "", &o, &e) < 0) {
        fprintf(stderr, "part %u of %u: %s\n", p->rows.index, p->rows.n_parts, e.msg);
        abort();
    }
    const size_t kv_bytes = decoder_kv_page_bytes(d) * 4;
    uint8_t *kv = mem_pages(kv_bytes);
    decoder_set_kv(d, kv);
    decoder_set_gather(d, gather, p);
    if (p->rows.index + 1 >= p->rows.n_parts)
        p->logits = malloc((size_t)N_IDS * decoder_config(d)->n_vocab * sizeof(float));
    run(p, d);
    decoder_destroy(d);
    mem_pages_free(kv, kv_bytes);
    return NULL;
}

/* Logits of all tokens; the caller frees them.  n_parts 0: of the whole model. */
static float *logits_of(const struct model_file *file, const struct decoder_rows *rows,
                        struct table *table, uint32_t batch, uint32_t n_threads, uint32_t *n_lost)
{
    const uint32_t n = rows->n_parts ? rows->n_parts : 1;
    struct part parts[DECODER_ROWS_MAX] = {{.file = NULL}};
    pthread_barrier_init(&table->barrier, NULL, n);
    table->n_gathers = 0;
    for (uint32_t i = 0; i < n; i++) {
        parts[i] = (struct part){
            .file = file, .rows = *rows, .table = table, .batch = batch, .n_threads = n_threads};
        parts[i].rows.index = i;
        assert_int_equal(pthread_create(&parts[i].thread, NULL, part_main, &parts[i]), 0);
    }
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(parts[i].thread, NULL);
        *n_lost += parts[i].n_lost;
    }
    pthread_barrier_destroy(&table->barrier);
    return parts[n - 1].logits;
}

static struct model_file *open_ref(const char *name)
{
    struct model_file *file;
    struct err e = {0};
    char path[512];
    snprintf(path, sizeof(path), "%s/refs/%s.gguf", SHOAL_TEST_DATA, name);
    if (gguf_open(&file, path, &e) < 0)
        fail_msg("%s", e.msg);
    return file;
}

static struct decoder_costs costs_of(const struct model_file *file)
{
    struct decoder_costs c;
    const struct decoder_opts o = {.n_threads = 1};
    assert_int_equal(decoder_costs(&c, file, &o, NULL), 0);
    return c;
}

static struct decoder_rows_of widths(const struct decoder_costs *c)
{
    return (struct decoder_rows_of){c->n_kv_heads, c->ffn_dim, c->dim};
}

/* Among 2, 3 and 4 parts of unlike size, some without a head of their own; one token at a time, a
 * few, and many; one thread and two. */
static void test_rows_compute_the_same_bits(void **state)
{
    (void)state;
    static const struct {
        uint32_t n, batch, n_threads;
        double shares[DECODER_ROWS_MAX];
    } ways[] = {
        {2, 16, 1, {1, 1}}, {2, 1, 2, {1, 5}}, {3, 5, 1, {3, 1, 2}}, {4, 16, 2, {1, 1, 4, 1}}};
    static struct table table;
    table.lose_at = UINT32_MAX;
    for (size_t m = 0; m < sizeof(names) / sizeof(names[0]); m++) {
        struct model_file *file = open_ref(names[m]);
        const struct decoder_costs c = costs_of(file);
        const struct decoder_rows_of of = widths(&c);
        struct decoder_rows rows = {.n_parts = 0};
        uint32_t n_lost = 0;
        assert_true(c.rows);
        float *want = logits_of(file, &rows, &table, 7, 1, &n_lost);
        for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
            assert_int_equal(decoder_rows_cut(&rows, &of, ways[w].shares, ways[w].n, NULL), 0);
            float *got = logits_of(file, &rows, &table, ways[w].batch, ways[w].n_threads, &n_lost);
            if (memcmp(want, got, (size_t)N_IDS * c.n_vocab * sizeof(float)) != 0)
                fail_msg("%s: way %zu differs", names[m], w);
            const uint32_t passes = (N_IDS + ways[w].batch - 1) / ways[w].batch;
            assert_int_equal(table.n_gathers, 4 * c.n_layers * passes);
            free(got);
        }
        assert_int_equal(n_lost, 0);
        free(want);
        model_file_close(file);
    }
}

/* A pass whose gather failed says so, and the next one is as good as ever. */
static void test_says_that_a_pass_is_lost(void **state)
{
    (void)state;
    static const double shares[] = {1, 1};
    static struct table table;
    struct model_file *file = open_ref("llama-gqa");
    const struct decoder_costs c = costs_of(file);
    const struct decoder_rows_of of = widths(&c);
    struct decoder_rows rows;
    uint32_t n_lost = 0;
    table.lose_at = 2;
    assert_int_equal(decoder_rows_cut(&rows, &of, shares, 2, NULL), 0);
    free(logits_of(file, &rows, &table, 8, 1, &n_lost));
    assert_int_equal(n_lost, 2 * (N_IDS / 8));
    assert_int_equal(table.n_gathers, 3 * (N_IDS / 8)); /* nothing is asked of the lost ones */
    model_file_close(file);
}

/* A part has its share of the weights and of the keys and values, and the last one has the head. */
static void test_a_part_holds_only_its_rows(void **state)
{
    (void)state;
    static const double shares[] = {1, 1, 2};
    struct model_file *file = open_ref("llama-gqa");
    const struct decoder_costs c = costs_of(file);
    const struct decoder_rows_of of = widths(&c);
    struct decoder_opts o = {.n_threads = 1};
    struct decoder_sizes whole, part;
    size_t weights = 0, kv = 0;
    assert_int_equal(decoder_measure(&whole, file, &o, NULL), 0);
    assert_int_equal(decoder_rows_cut(&o.rows, &of, shares, 3, NULL), 0);
    for (o.rows.index = 0; o.rows.index < 3; o.rows.index++) {
        assert_int_equal(decoder_measure(&part, file, &o, NULL), 0);
        assert_true(part.weights < whole.weights);
        weights += part.weights;
        kv += o.rows.heads[o.rows.index] < o.rows.heads[o.rows.index + 1] ? part.kv_page : 0;
    }
    assert_int_equal(weights, whole.weights);
    assert_int_equal(kv, whole.kv_page);
    model_file_close(file);
}

/* Factors of a matrix come from all of its values: its rows have the same tiles on their own. */
static void test_rows_of_a_matrix_have_its_tiles(void **state)
{
    (void)state;
    enum { COLS = 256, ROWS = 64, PART = 16 };
    static float values[ROWS * COLS];
    static uint8_t bytes[ROWS * 144];
    static const uint64_t at[] = {0, 16, 48};
    for (uint32_t i = 0; i < ROWS * COLS; i++) /* the last rows are a thousand times larger */
        values[i] = ((float)(i * 7919u % 1000u) - 500.0f) * (i / COLS < 48 ? 1e-6f : 1e-3f);
    assert_true(quant_from_f32(QUANT_Q4_K, values, bytes, ROWS * COLS, NULL));
    struct model_file_tensor t = {.name = {"t", 1},
                                  .type = QUANT_Q4_K,
                                  .n_dims = 2,
                                  .dims = {COLS, ROWS, 1, 1},
                                  .data = bytes,
                                  .n_bytes = sizeof(bytes)};
    const struct kern_ops *k = kern_select(NULL, NULL);
    struct crew_lane *lane;
    struct weights w;
    uint32_t whole, part[3];
    weights_init(&w, &k->layout);
    assert_int_equal(crew_lane_create(&lane, NULL, 1, NULL), 0);
    assert_int_equal(weights_add(&w, &t, &whole, NULL), 0);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(weights_add_part(&w, &t, 0, ROWS, (uint32_t)at[i], PART, &part[i], NULL),
                         0);
    assert_int_equal(weights_load(&w, "", NULL, lane, NULL, NULL, NULL), 0);
    for (uint32_t i = 0; i < 3; i++) {
        const struct kern_mat *a = &w.mats[whole], *b = &w.mats[part[i]];
        assert_true(a->mul == b->mul);
        assert_memory_equal(a->data + at[i] / k->layout.tile_rows * a->tile_bytes, b->data,
                            PART / k->layout.tile_rows * a->tile_bytes);
    }
    weights_fini(&w);
    crew_lane_destroy(lane);
}

static void test_cuts(void **state)
{
    (void)state;
    const struct decoder_rows_of of = {4, 5632, 2048};
    const double equal[] = {1, 1, 1, 1, 1, 1, 1, 1}, unlike[] = {1000, 1, 1}, none[] = {1, 0};
    struct decoder_rows r;
    struct err e = {0};
    assert_int_equal(decoder_rows_cut(&r, &of, equal, 8, &e), 0);
    assert_int_equal(r.ffn[1], 704);
    assert_int_equal(r.dim[8], 2048);
    assert_int_equal(r.heads[8], 4);
    assert_int_equal(decoder_rows_cut(&r, &of, unlike, 3, &e), 0); /* never nothing at all */
    assert_int_equal(r.ffn[1], 5600);
    assert_int_equal(r.ffn[2], 5616);
    assert_int_equal(r.heads[1], 4);
    assert_int_equal(decoder_rows_cut(&r, &of, none, 2, &e), SHOAL_EINVAL);
    assert_int_equal(decoder_rows_cut(&r, &of, equal, 1, &e), SHOAL_EINVAL);
    assert_int_equal(decoder_rows_cut(&r, &of, equal, 9, &e), SHOAL_EINVAL);
    /* others come and go, and the last one keeps what it has */
    struct decoder_rows now;
    assert_int_equal(decoder_rows_cut(&r, &of, equal, 3, &e), 0);
    for (uint32_t n = 2; n <= DECODER_ROWS_MAX; n++) {
        assert_int_equal(decoder_rows_recut(&now, &r, equal, n, &e), 0);
        const uint32_t last = now.n_parts - 1;
        assert_true(now.heads[last] == r.heads[2] && now.ffn[last] == r.ffn[2] &&
                    now.dim[last] == r.dim[2] && now.index == last);
        assert_true(now.heads[last + 1] == 4 && now.ffn[last + 1] == 5632 &&
                    now.dim[last + 1] == 2048 && now.dim[0] == 0);
    }
    assert_int_equal(decoder_rows_recut(&now, &r, equal, 9, &e), SHOAL_EINVAL);
    assert_int_equal(decoder_rows_recut(&now, &r, equal, 1, &e), SHOAL_EINVAL);
    const struct decoder_rows_of small = {4, 64, 7};
    assert_int_equal(decoder_rows_cut(&r, &small, equal, 8, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "cannot be divided by rows among 8"));
}

static void test_refuses_what_is_no_cut(void **state)
{
    (void)state;
    static const double shares[] = {1, 1};
    struct model_file *file = open_ref("llama-gqa");
    const struct decoder_costs c = costs_of(file);
    const struct decoder_rows_of of = widths(&c);
    struct decoder_rows good;
    struct decoder *d;
    struct err e = {0};
    assert_int_equal(decoder_rows_cut(&good, &of, shares, 2, NULL), 0);
    struct decoder_opts bad[6];
    for (size_t i = 0; i < 6; i++)
        bad[i] = (struct decoder_opts){.rows = good};
    bad[0].rows.n_parts = 1;
    bad[1].rows.index = 2;
    bad[2].rows.ffn[1] = 0;
    bad[3].rows.dim[2]++;
    bad[4].rows.heads[1] = 1000;
    bad[5].layer_first = 1;
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(decoder_create(&d, file, "", &bad[i], &e), SHOAL_EINVAL);
    model_file_close(file);
    static const char *const others[] = {"olmo2", "olmoe", "mamba2", "qwen35"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        file = open_ref(others[i]);
        struct decoder_costs k = costs_of(file);
        assert_false(k.rows);
        model_file_close(file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_compute_the_same_bits),
        cmocka_unit_test(test_says_that_a_pass_is_lost),
        cmocka_unit_test(test_a_part_holds_only_its_rows),
        cmocka_unit_test(test_rows_of_a_matrix_have_its_tiles),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_refuses_what_is_no_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
