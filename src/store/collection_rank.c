/* collection_rank.c - see collection_rank.h. */
#include "base/ascii.h"
#include "store/collection_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CONSTANT 60.0 /* constant of reciprocal rank fusion, from the original paper */
#define MAX_WORDS 64u
#define MAX_WORD_BYTES 64u

static int by_score(const void *a, const void *b)
{
    const struct collection_rank *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

uint32_t collection_rank_fuse(struct collection_rank *out, const struct vectors_hit *near,
                              uint32_t n_near, const int64_t *words, uint32_t n_words)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_near; i++)
        out[n++] = (struct collection_rank){.id = near[i].id,
                                            .score = 1.0 / (CONSTANT + i + 1),
                                            .similarity = near[i].score,
                                            .by_vector = i + 1};
    for (uint32_t i = 0; i < n_words; i++) {
        uint32_t k = 0;
        while (k < n_near && out[k].id != words[i])
            k++;
        if (k == n_near) {
            k = n++;
            out[k] = (struct collection_rank){.id = words[i], .similarity = NAN};
        }
        out[k].score += 1.0 / (CONSTANT + i + 1);
        out[k].by_words = i + 1;
    }
    qsort(out, n, sizeof(*out), by_score);
    return n;
}

/* Words that nearly every passage has: with them the ranking by words would depend on length. */
static bool is_common(const char *p, size_t n)
{
    static const char *const common[] = {
        "a",  "an", "the",  "of",  "to",   "in",   "on",    "for",   "and", "or",   "is",  "are",
        "be", "do", "does", "how", "what", "when", "where", "which", "who", "why",  "can", "with",
        "my", "i",  "it",   "at",  "by",   "from", "that",  "this",  "was", "were", "you", "your"};
    for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
        if (strlen(common[i]) == n && strncasecmp(common[i], p, n) == 0)
            return true;
    return false;
}

static bool in_word(char c)
{
    return ascii_is_digit(c) || ascii_is_letter(c) || (c & 0x80);
}

static void put_words(struct buf *out, const char *text, bool all)
{
    uint32_t words = 0;
    for (const char *p = text; *p && words < MAX_WORDS;) {
        size_t n = 0;
        while (p[n] && in_word(p[n]))
            n++;
        if (n > 0 && n <= MAX_WORD_BYTES && (all || !is_common(p, n))) {
            buf_puts(out, words++ ? " OR \"" : "\"");
            buf_put(out, p, n);
            buf_putc(out, '"');
        }
        p += n ? n : 1;
    }
}

void collection_rank_match(struct buf *out, const char *text)
{
    put_words(out, text, false);
    if (out->len == 0) /* nothing but common words */
        put_words(out, text, true);
}
