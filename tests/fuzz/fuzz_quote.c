/* fuzz_quote.c - a question in the first line, a passage in the rest: its sentences are in order,
 * within it and not blank, and every score is a probability. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "knowledge/quote_rank.h"
#include "knowledge/quote_split.h"
#include "knowledge/support.h"

#define MOST 24u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_score(const struct quote_question *q, const char *text, struct quote_span s)
{
    double f[1][QUOTE_N_FEATURES];
    const struct quote_context c = {.text = text + s.at,
                                    .n = s.n,
                                    .before = text,
                                    .n_before = s.at,
                                    .heading = "",
                                    .passage = text,
                                    .similarity = 0.5f,
                                    .passage_similarity = NAN};
    quote_rank_features(f[0], q, &c);
    quote_rank_compare(f, 1);
    const double score = quote_rank_score(f[0]);
    assert(score >= 0 && score <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 16384 || (size > 0 && memchr(data, 0, size)))
        return 0; /* texts of a store have no NUL */
    char *all = calloc(1, size + 2);
    assert(all);
    if (size > 0)
        memcpy(all, data, size);
    char *passage = all + strcspn(all, "\n");
    if (*passage)
        *passage++ = '\0';
    struct quote_span spans[MOST];
    struct quote_count counts[QUOTE_MAX_WORDS];
    struct quote_question q;
    const uint32_t n_words = quote_question_words(counts, all);
    quote_question_read(&q, all, counts, n_words, 10);
    const size_t n = strlen(passage);
    const uint32_t n_spans = quote_split(spans, MOST, passage, n);
    size_t end = 0;
    for (uint32_t i = 0; i < n_spans; i++) {
        assert(spans[i].at >= end && spans[i].n > 0 && spans[i].at + spans[i].n <= n);
        assert(!quote_is_contents(passage + spans[i].at, spans[i].n));
        end = spans[i].at + spans[i].n;
        check_score(&q, passage, spans[i]);
    }
    struct support s;
    const char *const passages[] = {passage};
    support_split(&s, all, strlen(all));
    support_judge(&s, all, passages, 1, NULL);
    free(all);
    return 0;
}
