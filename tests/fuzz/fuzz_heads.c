/* fuzz_heads.c - any bytes as config.json of a model with heads: parsed or rejected; a parsed
 * model must satisfy heads.h, and run. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/model_file.h"
#include "model/heads.h"
#include "support/fuzz_note.h"

enum { ROWS = 12, DIM = 16, WORDS = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_classes(const struct heads *h)
{
    for (uint32_t i = 0; i < heads_n_sets(h, HEADS_CLASSIFY); i++) {
        const struct heads_set *s = heads_set(h, HEADS_CLASSIFY, i);
        float p[ROWS];
        assert(s->count <= ROWS && s->first + s->count <= ROWS);
        for (uint32_t j = 0; j < s->count; j++)
            p[j] = (float)(j * 7 % 5);
        heads_probabilities(&kern_scalar, s, p);
        assert(heads_answer(s, p).label < s->count);
        FUZZ_NOTE(" %u", heads_answer(s, p).label);
    }
}

static void use_tags(const struct heads *h)
{
    static const char text[] = "go to caf\xc3\xa9 (5), now.";
    static const uint32_t start[] = {0, 0, 3, 6, 12, 18, 22}, end[] = {0, 2, 5, 11, 16, 21, 22};
    struct heads_word words[8];
    struct heads_span spans[8];
    struct heads_work *w;
    uint16_t tags[8];
    float scores[8];
    if (!heads_has(h, HEADS_TAG) || heads_work_create(&w, h, 8, NULL) < 0)
        return;
    uint32_t n = heads_words(h, text, sizeof(text) - 1, start, end, 7, words);
    assert(n <= 7);
    for (uint32_t i = 0; i < heads_n_sets(h, HEADS_TAG); i++) {
        const struct heads_set *s = heads_set(h, HEADS_TAG, i);
        for (uint32_t j = 0; j < n * s->count; j++)
            heads_work_logits(w)[j] = (float)(j * 11 % 7);
        heads_tags(&kern_scalar, s, n, w, tags, scores);
        uint32_t m = heads_spans(h, s, text, sizeof(text) - 1, words, n, tags, scores, spans);
        for (uint32_t j = 0; j < m; j++)
            assert(spans[j].start < spans[j].end && spans[j].end < sizeof(text) &&
                   strlen(spans[j].label) < 65536);
        for (uint32_t j = 0; j < m; j++)
            FUZZ_NOTE(" %u-%u %s", spans[j].start, spans[j].end, spans[j].label);
    }
    heads_work_destroy(w);
}

static void use_vector(const struct heads *h)
{
    static float tokens[WORDS * DIM], out[1 << 18];
    const struct heads_info *info = heads_info(h);
    const char *prompt;
    assert(info->n_poolings >= 1 && info->n_poolings <= HEADS_MAX_POOLINGS);
    assert(info->dimensions >= 1 && info->dimensions <= info->vector_dim);
    assert(info->room >= info->vector_dim && info->room >= info->n_poolings * info->dim);
    assert(heads_find_prompt(h, NULL, &prompt, NULL) == 0 && strlen(prompt) < 1 << 20);
    for (uint32_t i = 0; i < WORDS * DIM; i++)
        tokens[i] = (float)(i * 7 % 11) - 5.0f;
    if (info->poolings[0] == HEADS_POOLING_POOLER || info->room > sizeof(out) / sizeof(out[0]))
        return;
    heads_pool_all(h, &kern_scalar, tokens, WORDS, out);
    heads_finish_vector(h, &kern_scalar, 0, out);
}

/* Each part up to a zero byte is a document; there are a few tensors for dense layers. */
static struct model_file *documents(const char *at, const char *end)
{
    static const char *const keys[] = {
        "huggingface.sentence_modules", "huggingface.sentence_settings",
        "huggingface.sentence_config",  "tokenizer.huggingface.config",
        "huggingface.sentence_dense.0", "huggingface.sentence_dense.1"};
    static const float values[DIM * DIM];
    struct model_file *m;
    if (model_file_create(&m, NULL) < 0)
        return NULL;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && at < end; i++) {
        const char *stop = memchr(at, 0, (size_t)(end - at));
        stop = stop ? stop : end;
        if (stop > at)
            model_file_put_str(m, keys[i], at, (size_t)(stop - at));
        at = stop + 1;
    }
    static const char *const names[] = {"sentence_dense.0.weight", "sentence_dense.0.bias"};
    for (size_t i = 0; i < 2; i++) {
        struct model_file_tensor *t = model_file_add_tensor(m);
        if (t)
            *t = (struct model_file_tensor){.name = {names[i], strlen(names[i])},
                                            .type = QUANT_F32,
                                            .n_dims = i ? 1 : 2,
                                            .dims = {DIM, i ? 1 : DIM, 1, 1},
                                            .data = (const uint8_t *)values,
                                            .n_bytes = i ? DIM * 4 : sizeof(values),
                                            .in_memory = true};
    }
    return m;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct heads *h;
    struct err e = {0};
    /* The first byte says what the model has; zero bytes divide config, pooling and the other
     * documents of a sentence embedder. */
    if (size < 1)
        return 0;
    const char *text = (const char *)data + 1;
    const char *cut = memchr(text, 0, size - 1), *end = text + size - 1;
    const char *more = cut ? memchr(cut + 1, 0, (size_t)(end - cut - 1)) : NULL;
    struct model_file *file = more ? documents(more + 1, end) : NULL;
    const struct heads_source s = {.config = text,
                                   .n_config = cut ? (size_t)(cut - text) : size - 1,
                                   .pooling = cut ? cut + 1 : NULL,
                                   .n_pooling = cut ? (size_t)((more ? more : end) - cut - 1) : 0,
                                   .file = file,
                                   .arch = data[0] & 4 ? "distilbert" : "bert",
                                   .dim = DIM,
                                   .n_classes = data[0] & 1   ? ROWS
                                                : data[0] & 8 ? 1
                                                              : 0,
                                   .n_tags = data[0] & 2 ? ROWS : 0,
                                   .has_pooler = data[0] & 16};
    const int rc = heads_create(&h, &s, &e);
    FUZZ_NOTE("%d %s", rc, e.msg);
    if (rc == 0) {
        use_classes(h);
        use_tags(h);
        use_vector(h);
        heads_destroy(h);
    }
    model_file_close(file);
    return 0;
}
