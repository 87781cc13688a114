/* beams.c - see beams.h. */
#include "engine/native/beams.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

struct hypothesis {
    int32_t *tokens; /* [max_tokens + 1], the start first */
    uint32_t n;      /* without the start */
    float score;
};

struct candidate { /* a live row extended by one token */
    float score;
    uint32_t row;
    int32_t token;
};

struct beams {
    struct beams_opts o;
    struct hypothesis live[2][BEAMS_MAX]; /* hypotheses of this step and of the previous one */
    struct hypothesis done[BEAMS_MAX];    /* best first */
    uint32_t parent[BEAMS_MAX];
    uint32_t now, n_live, n_done, n_tokens;
    struct candidate best[BEAMS_MAX * (BEAMS_MAX_ENDS + 1)];
    int32_t tokens[]; /* of all hypotheses */
};

struct beams *beams_create(const struct beams_opts *o)
{
    const size_t len = (size_t)o->max_tokens + 1;
    struct beams *b = mem_zalloc(sizeof(*b) + 3 * o->n_beams * len * sizeof(*b->tokens));
    if (!b)
        return NULL;
    b->o = *o;
    int32_t *at = b->tokens;
    for (uint32_t i = 0; i < o->n_beams; i++, at += 3 * len) {
        b->live[0][i].tokens = at;
        b->live[1][i].tokens = at + len;
        b->done[i].tokens = at + 2 * len;
    }
    b->live[0][0].tokens[0] = o->start;
    b->n_live = 1;
    return b;
}

void beams_destroy(struct beams *b)
{
    mem_free(b);
}

const struct beams_opts *beams_opts(const struct beams *b)
{
    return &b->o;
}

uint32_t beams_n_rows(const struct beams *b)
{
    return b->n_live;
}

int32_t beams_token(const struct beams *b, uint32_t row)
{
    return b->live[b->now][row].tokens[b->n_tokens];
}

uint32_t beams_parent(const struct beams *b, uint32_t row)
{
    return b->parent[row];
}

uint32_t beams_n_tokens(const struct beams *b)
{
    return b->n_tokens;
}

static bool is_end(const struct beams_opts *o, int32_t token)
{
    for (uint32_t i = 0; i < o->n_ends; i++)
        if (token == o->ends[i])
            return true;
    return false;
}

/* ---- forbidden and penalized tokens -------------------------------------------------------- */

static void penalize_repeats(const struct beams_opts *o, const int32_t *tokens, uint32_t n,
                             float *row)
{
    for (uint32_t i = 0; i < n; i++) {
        bool seen = false;
        for (uint32_t j = 0; j < i && !seen; j++)
            seen = tokens[j] == tokens[i];
        float *x = &row[tokens[i]];
        if (!seen)
            *x = *x < 0.0f ? *x * o->repeat_penalty : *x / o->repeat_penalty;
    }
}

/* Forbids the last token of each sequence whose others end the hypothesis. */
static void forbid_bad(const struct beams_opts *o, const int32_t *tokens, uint32_t n, float *row)
{
    for (uint32_t i = 0; i < o->n_bad; i++) {
        const uint32_t before = o->bad[i].n - 1;
        if (before < n &&
            memcmp(tokens + n - before, o->bad[i].tokens, before * sizeof(*tokens)) == 0)
            row[o->bad[i].tokens[before]] = -INFINITY;
    }
}

static void force(float *row, uint32_t n_vocab, int32_t token)
{
    for (uint32_t i = 0; i < n_vocab; i++)
        row[i] = -INFINITY;
    row[token] = 0.0f;
}

/* tokens: all n of the hypothesis, including the start. */
static void constrain(const struct beams_opts *o, const int32_t *tokens, uint32_t n, float *row,
                      uint32_t n_vocab)
{
    const uint32_t gram = o->no_repeat_ngram;
    if (o->repeat_penalty > 0.0f && o->repeat_penalty != 1.0f)
        penalize_repeats(o, tokens, n, row);
    for (uint32_t i = 0; gram > 0 && i + gram <= n; i++)
        if (memcmp(tokens + i, tokens + n - (gram - 1), (gram - 1) * sizeof(*tokens)) == 0)
            row[tokens[i + gram - 1]] = -INFINITY;
    forbid_bad(o, tokens, n, row);
    for (uint32_t i = 0; n - 1 < o->min_tokens && i < o->n_ends; i++)
        row[o->ends[i]] = -INFINITY;
    if (o->first.on && n == 1)
        force(row, n_vocab, o->first.token);
    if (o->last.on && n == o->max_tokens)
        force(row, n_vocab, o->last.token);
}

/* ---- without a search ------------------------------------------------------------------------ */

static bool step_alone(struct beams *b, const struct beams_with *w, const float *logits)
{
    struct hypothesis *h = &b->live[b->now][0];
    const uint32_t n = b->n_tokens + 1;
    memcpy(w->row, logits, w->n_vocab * sizeof(*logits));
    constrain(&b->o, h->tokens, n, w->row, w->n_vocab);
    if (w->sampler && b->o.sampling.temperature > 0.0f) {
        struct sampler_pick pick;
        bool picked =
            sampler_run(w->sampler, &pick, w->row, &b->o.sampling, NULL, h->tokens, n, n - 1);
        /* not picked: every token is forbidden (the caller looks for logits that are not finite) */
        h->tokens[n] = picked ? pick.token : (int32_t)w->k->argmax(w->row, w->n_vocab);
    } else {
        h->tokens[n] = (int32_t)w->k->argmax(w->row, w->n_vocab);
    }
    h->n = ++b->n_tokens;
    if (h->n < b->o.max_tokens && !is_end(&b->o, h->tokens[n]))
        return true;
    b->n_live = 0;
    return false;
}

/* ---- beam search ----------------------------------------------------------------------------- */

/* Keeps the best `most` candidates, best first; among equals, the earlier one first. */
static uint32_t keep_best(struct candidate *best, uint32_t n, uint32_t most, struct candidate c)
{
    uint32_t at = n < most ? n : most - 1;
    for (; at > 0 && best[at - 1].score < c.score; at--)
        best[at] = best[at - 1];
    best[at] = c;
    return n < most ? n + 1 : most;
}

/* Logarithms of probabilities, of which those of forbidden tokens are -INFINITY. */
static void log_softmax(const struct beams_with *w, float *row, const float *logits, float *scratch)
{
    const float max = w->k->max(logits, w->n_vocab);
    if (max == -INFINITY)
        return; /* everything is forbidden */
    const float log_sum = logf(w->k->softmax_exp(scratch, logits, w->n_vocab, max));
    for (uint32_t i = 0; i < w->n_vocab; i++)
        row[i] = (logits[i] - max) - log_sum;
}

/* The best continuations of all live rows, by total score. */
static uint32_t find_best(struct beams *b, const struct beams_with *w, const float *logits)
{
    const uint32_t most = b->o.n_beams * (b->o.n_ends > 1 ? b->o.n_ends + 1 : 2);
    uint32_t n = 0;
    for (uint32_t r = 0; r < b->n_live; r++, logits += w->n_vocab) {
        const struct hypothesis *h = &b->live[b->now][r];
        float *scratch = w->row + w->n_vocab;
        log_softmax(w, w->row, logits, scratch);
        constrain(&b->o, h->tokens, b->n_tokens + 1, w->row, w->n_vocab);
        if (b->o.renormalize)
            log_softmax(w, w->row, w->row, scratch);
        for (uint32_t i = 0; i < w->n_vocab; i++) {
            const float score = w->row[i] + h->score;
            if (n < most || score > b->best[n - 1].score)
                n = keep_best(b->best, n, most, (struct candidate){score, r, (int32_t)i});
        }
    }
    return n;
}

static float by_length(const struct beams *b, float score, uint32_t n_tokens)
{
    return score / (float)pow((double)n_tokens, (double)b->o.length_penalty);
}

static void continue_as(struct hypothesis *to, const struct hypothesis *from,
                        const struct candidate *c, uint32_t n_tokens)
{
    memcpy(to->tokens, from->tokens, ((size_t)n_tokens + 1) * sizeof(*to->tokens));
    to->tokens[n_tokens + 1] = c->token;
    to->n = n_tokens + 1;
    to->score = c->score;
}

/* Adds a finished hypothesis if it is among the best. */
static void add_done(struct beams *b, const struct candidate *c)
{
    const float score = by_length(b, c->score, b->n_tokens + 1);
    const uint32_t full = b->o.n_beams;
    if (b->n_done == full && !(score > b->done[full - 1].score))
        return;
    uint32_t at = b->n_done < full ? b->n_done++ : full - 1;
    struct hypothesis h = b->done[at];
    for (; at > 0 && b->done[at - 1].score < score; at--)
        b->done[at] = b->done[at - 1];
    continue_as(&h, &b->live[b->now][c->row], c, b->n_tokens);
    h.score = score;
    b->done[at] = h;
}

/* Whether a live hypothesis can still beat the worst finished one. */
static bool can_improve(const struct beams *b)
{
    if (b->n_live == 0 || b->n_done < b->o.n_beams)
        return b->n_live > 0;
    const bool longest = b->o.early == BEAMS_EARLY_NEVER && b->o.length_penalty > 0.0f;
    const float best =
        by_length(b, b->live[b->now][0].score, longest ? b->o.max_tokens : b->n_tokens);
    return best > b->done[b->n_done - 1].score;
}

static bool step_search(struct beams *b, const struct beams_with *w, const float *logits)
{
    const uint32_t n = find_best(b, w, logits);
    const bool last = b->n_tokens + 1 >= b->o.max_tokens;
    uint32_t n_live = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct candidate *c = &b->best[i];
        if (c->score == -INFINITY)
            continue; /* no token is allowed after this row */
        if (last || is_end(&b->o, c->token)) {
            if (i < b->o.n_beams) /* the others only fill up the live rows */
                add_done(b, c);
        } else if (n_live < b->o.n_beams) {
            continue_as(&b->live[!b->now][n_live], &b->live[b->now][c->row], c, b->n_tokens);
            b->parent[n_live++] = c->row;
        }
    }
    b->now = !b->now;
    b->n_live = n_live;
    b->n_tokens++;
    if (can_improve(b) && !(b->o.early == BEAMS_EARLY_YES && b->n_done == b->o.n_beams))
        return true;
    b->n_live = 0;
    return false;
}

bool beams_step(struct beams *b, const struct beams_with *w, const float *logits)
{
    return b->o.n_beams > 1 ? step_search(b, w, logits) : step_alone(b, w, logits);
}

const int32_t *beams_result(const struct beams *b, uint32_t *n, float *score)
{
    const bool searched = b->o.n_beams > 1;
    const struct hypothesis *h = searched ? &b->done[0] : &b->live[b->now][0];
    *n = searched && b->n_done == 0 ? 0 : h->n;
    *score = searched && b->n_done > 0 ? h->score : 0.0f;
    return h->tokens + 1;
}
