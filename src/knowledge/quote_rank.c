/* quote_rank.c - see quote_rank.h. */
#include "knowledge/quote_rank.h"

#include <math.h>
#include <string.h>

#include "base/ascii.h"

#define VAGUE 0.25 /* weight of verbs that most questions have, as a part of a word's */

/* Fitted by training/answers.py. */
static const double bias = -6.399;
static const double weights[QUOTE_N_FEATURES] = {
    [QUOTE_SIMILARITY] = 3.056, [QUOTE_PASSAGE] = -0.191,      [QUOTE_WORDS] = 1.657,
    [QUOTE_AROUND] = 1.366,     [QUOTE_PASSAGE_WORDS] = 1.578, [QUOTE_PAIRS] = 1.339,
    [QUOTE_NAMES] = -0.834,     [QUOTE_KIND] = 0.116,          [QUOTE_NO_KIND] = -2.032,
    [QUOTE_LENGTH] = -0.101,    [QUOTE_RANK] = 1.968,          [QUOTE_BEHIND] = -1.727,
    [QUOTE_BELOW] = -2.024,
};

const char *quote_rank_name(enum quote_feature f)
{
    static const char *const names[QUOTE_N_FEATURES] = {
        "similarity", "passage", "words",  "around", "passage_words", "pairs", "names",
        "kind",       "no_kind", "length", "rank",   "behind",        "below"};
    return names[f];
}

/* ---- the question ---- */

static bool is_letter(char c)
{
    return ascii_is_letter(c) || (c & 0x80);
}

uint32_t quote_question_words(struct quote_count out[QUOTE_MAX_WORDS], const char *question)
{
    uint32_t n = 0;
    for (const char *p = question; *p && n < QUOTE_MAX_WORDS;) {
        size_t k = 0;
        while (is_letter(p[k]) || ascii_is_digit(p[k]))
            k++;
        if (k > 0 && k < WORDING_STEM_BYTES) {
            for (size_t i = 0; i < k; i++)
                out[n].word[i] = ascii_lower(p[i]);
            out[n].word[k] = '\0';
            out[n++].n_passages = 0;
        }
        p += k > 0 ? k : 1;
    }
    return n;
}

static bool is_in(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(word, *list) == 0)
            return true;
    return false;
}

/* What the answer must contain, by the question's words. */
static enum quote_kind wanted_by(const struct quote_count *words, uint32_t n)
{
    static const char *const after_how[] = {"many", "much", "long", "often", "far",
                                            "old",  "tall", "fast", "big",   "large",
                                            "high", "deep", "wide", NULL};
    static const char *const counted[] = {"year",   "date",  "number",      "percentage", "percent",
                                          "amount", "age",   "temperature", "population", "size",
                                          "port",   "score", NULL};
    for (uint32_t i = 0; i < n; i++) {
        const char *w = words[i].word, *next = i + 1 < n ? words[i + 1].word : "";
        if (strcmp(w, "when") == 0 || (strcmp(w, "how") == 0 && is_in(next, after_how)) ||
            ((strcmp(w, "what") == 0 || strcmp(w, "which") == 0) && is_in(next, counted)))
            return QUOTE_NUMBER;
        if (strcmp(w, "who") == 0 || strcmp(w, "whom") == 0 || strcmp(w, "whose") == 0)
            return QUOTE_NAME;
        if (strcmp(w, "why") == 0)
            return QUOTE_REASON;
    }
    return QUOTE_ANY;
}

static bool is_vague(const char *stem)
{
    static const char *const words[] = {"use",  "have", "mean", "do",    "get",  "make",
                                        "take", "need", "call", "name",  "type", "kind",
                                        "many", "much", "long", "often", NULL};
    return is_in(stem, words);
}

static bool carries(const struct wording_word *x)
{
    return x->kind == WORDING_PLAIN || x->kind == WORDING_NUMBER;
}

void quote_question_read(struct quote_question *q, const char *question,
                         const struct quote_count *counts, uint32_t n, uint64_t n_passages)
{
    struct wording one;
    wording_read(&q->words, question, strlen(question));
    q->wants = wanted_by(counts, n);
    q->sum = 0;
    memset(q->weights, 0, sizeof(q->weights));
    for (uint32_t i = 0; i < q->words.n; i++) {
        const struct wording_word *x = &q->words.words[i];
        uint64_t have = 0;
        if (!carries(x))
            continue;
        for (uint32_t k = 0; k < n; k++) {
            wording_read(&one, counts[k].word, strlen(counts[k].word));
            if (one.n == 1 && strcmp(one.words[0].stem, x->stem) == 0)
                have = counts[k].n_passages;
        }
        double weight = log(1.0 + (double)n_passages / (1.0 + (double)have));
        q->weights[i] = is_vague(x->stem) ? VAGUE * weight : weight;
        q->sum += q->weights[i];
    }
}

/* ---- a sentence ---- */

/* Texts that are searched together. */
struct places {
    const struct wording *v[3];
    uint32_t n;
};

static bool has(const struct places *p, const struct wording_word *x)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (wording_has(p->v[i], x->kind, x->stem))
            return true;
    return false;
}

static double share(const struct quote_question *q, const struct places *p)
{
    double there = 0;
    for (uint32_t i = 0; i < q->words.n; i++)
        if (q->weights[i] > 0 && has(p, &q->words.words[i]))
            there += q->weights[i];
    return q->sum > 0 ? there / q->sum : 0;
}

/* The next word that counts after i; n: none. */
static uint32_t next_of(const struct wording *w, uint32_t i)
{
    for (i++; i < w->n && !carries(&w->words[i]);)
        i++;
    return i;
}

static bool has_pair(const struct wording *s, const char *a, const char *b)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (!carries(&s->words[i]) || strcmp(s->words[i].stem, a) != 0)
            continue;
        uint32_t k = next_of(s, i);
        if (k < s->n && strcmp(s->words[k].stem, b) == 0)
            return true;
    }
    return false;
}

static double pairs_of(const struct quote_question *q, const struct wording *s)
{
    const struct wording *w = &q->words;
    uint32_t n = 0, there = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t k = next_of(w, i);
        if (!carries(&w->words[i]) || k >= w->n)
            continue;
        n++;
        there += has_pair(s, w->words[i].stem, w->words[k].stem);
    }
    return n > 0 ? (double)there / n : 0;
}

static double missing_names(const struct quote_question *q, const struct places *p)
{
    uint32_t n = 0, missing = 0;
    for (uint32_t i = 0; i < q->words.n; i++) {
        const struct wording_word *x = &q->words.words[i];
        if (!x->name && x->kind != WORDING_NUMBER)
            continue;
        n++;
        missing += !has(p, x);
    }
    return n > 0 ? (double)missing / n : 0;
}

static bool is_month(const char *stem)
{
    static const char *const months[] = {"januari",   "january", "februari", "february", "march",
                                         "april",     "june",    "july",     "juli",     "august",
                                         "september", "october", "november", "december", "centuri",
                                         "century",   NULL};
    return is_in(stem, months);
}

static bool gives_reason(const struct wording *s)
{
    static const char *const words[] = {"because",   "due",    "since", "thus", "therefor",
                                        "therefore", "caus",   "cause", "lead", "result",
                                        "order",     "reason", NULL};
    for (uint32_t i = 0; i < s->n; i++)
        if (is_in(s->words[i].stem, words))
            return true;
    return false;
}

/* Whether the sentence has what the question wants, beyond the question's own words. */
static bool has_wanted(const struct quote_question *q, const struct wording *s)
{
    if (q->wants == QUOTE_REASON)
        return gives_reason(s);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct wording_word *x = &s->words[i];
        bool fits =
            q->wants == QUOTE_NUMBER ? x->kind == WORDING_NUMBER || is_month(x->stem) : x->name;
        if (fits && !wording_has(&q->words, x->kind, x->stem))
            return true;
    }
    return false;
}

static double new_words(const struct quote_question *q, const struct wording *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        n += carries(&s->words[i]) && !wording_has(&q->words, s->words[i].kind, s->words[i].stem);
    return log(1.0 + n);
}

void quote_rank_features(double out[QUOTE_N_FEATURES], const struct quote_question *q,
                         const struct quote_context *c)
{
    struct wording own, before, heading, passage;
    wording_read(&own, c->text, c->n);
    wording_read(&before, c->before, c->n_before);
    wording_read(&heading, c->heading, strlen(c->heading));
    wording_read(&passage, c->passage, strlen(c->passage));
    const struct places alone = {{&own}, 1}, around = {{&own, &before, &heading}, 3},
                        whole = {{&own, &passage, &heading}, 3};
    memset(out, 0, QUOTE_N_FEATURES * sizeof(*out));
    out[QUOTE_SIMILARITY] = isnan(c->similarity) ? 0 : (double)c->similarity;
    out[QUOTE_PASSAGE] = isnan(c->passage_similarity) ? 0 : (double)c->passage_similarity;
    out[QUOTE_WORDS] = share(q, &alone);
    out[QUOTE_AROUND] = share(q, &around);
    out[QUOTE_PASSAGE_WORDS] = share(q, &whole);
    out[QUOTE_PAIRS] = pairs_of(q, &own);
    out[QUOTE_NAMES] = missing_names(q, &whole);
    if (q->wants != QUOTE_ANY)
        out[has_wanted(q, &own) ? QUOTE_KIND : QUOTE_NO_KIND] = 1;
    out[QUOTE_LENGTH] = new_words(q, &own);
    out[QUOTE_RANK] = 1.0 / (1.0 + c->rank);
}

void quote_rank_compare(double (*features)[QUOTE_N_FEATURES], uint32_t n)
{
    double words = 0, near = -1;
    for (uint32_t i = 0; i < n; i++) {
        words = fmax(words, features[i][QUOTE_WORDS]);
        near = fmax(near, features[i][QUOTE_SIMILARITY]);
    }
    for (uint32_t i = 0; i < n; i++) {
        features[i][QUOTE_BEHIND] = words - features[i][QUOTE_WORDS];
        features[i][QUOTE_BELOW] = near - features[i][QUOTE_SIMILARITY];
    }
}

double quote_rank_score(const double features[QUOTE_N_FEATURES])
{
    double sum = bias;
    for (int i = 0; i < QUOTE_N_FEATURES; i++)
        sum += weights[i] * features[i];
    return 1 / (1 + exp(-sum));
}
