/* fuzz_heads.c - any bytes as config.json of a model with heads: parsed or refused; what is parsed
 * must hold what heads.h says, and run. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model/heads.h"

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
    }
    heads_work_destroy(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct heads *h;
    struct err e = {0};
    /* the first byte says what the model has; a zero byte divides config and pooling */
    if (size < 1)
        return 0;
    const char *text = (const char *)data + 1;
    const char *cut = memchr(text, 0, size - 1);
    const struct heads_source s = {.config = text,
                                   .n_config = cut ? (size_t)(cut - text) : size - 1,
                                   .pooling = cut ? cut + 1 : NULL,
                                   .n_pooling = cut ? (size_t)(text + size - 1 - cut - 1) : 0,
                                   .arch = data[0] & 4 ? "distilbert" : "bert",
                                   .dim = DIM,
                                   .n_classes = data[0] & 1   ? ROWS
                                                : data[0] & 8 ? 1
                                                              : 0,
                                   .n_tags = data[0] & 2 ? ROWS : 0,
                                   .has_pooler = data[0] & 16};
    if (heads_create(&h, &s, &e) < 0)
        return 0;
    use_classes(h);
    use_tags(h);
    heads_destroy(h);
    return 0;
}
