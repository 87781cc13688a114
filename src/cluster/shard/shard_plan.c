/* shard_plan.c - see shard_plan.h. */
#include "cluster/shard/shard_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define USUAL_RATE 4e9   /* of a node that has not been measured */
#define USUAL_LINK 100e6 /* a gigabit, less what it costs */
#define PIECE 64.0       /* CHAINED_PIECE */
#define PASS_PIECES 2.0  /* of each part, in one pass */
#define TOGETHER 0.15    /* cost of a token that shares the reading of the weights */

/* ---- the setting ---- */

/* Without " q8" at its end, which is noted. */
static bool take_q8(char out[64], const char *text)
{
    snprintf(out, 64, "%s", text);
    const size_t n = strlen(out);
    if (n < 4 || strcmp(out + n - 3, " q8") != 0)
        return false;
    out[n - 3] = '\0';
    return true;
}

int shard_want_read(struct shard_want *out, const char *whole, struct err *e)
{
    unsigned min = 0, max = 0;
    int at = 0;
    char text[64];
    const bool q8 = take_q8(text, whole);
    *out = (struct shard_want){.mode = SHARD_NONE};
    if (strcmp(text, "none") == 0 && !q8)
        return 0;
    *out = (struct shard_want){.mode = SHARD_AUTO, .min = 1, .max = SHARD_PLAN_MAX_PARTS, .q8 = q8};
    if (strcmp(text, "auto") == 0)
        return 0;
    const bool rows = strncmp(text, "rows:", 5) == 0;
    const char *range = rows ? text + 5 : strncmp(text, "layers:", 7) == 0 ? text + 7 : "";
    if (sscanf(range, "%1u..%1u%n", &min, &max, &at) == 2 && !range[at]) {
        /* a range */
    } else if (sscanf(range, "%1u%n", &min, &at) == 1 && !range[at]) {
        max = min;
    } else {
        return err_set(e, SHOAL_EINVAL,
                       "\"%.60s\" is no way to shard a model: write auto, none, layers:2, "
                       "layers:2..4 or rows:2",
                       whole);
    }
    if (min < 2 || max < min || max > SHARD_PLAN_MAX_PARTS)
        return err_set(e, SHOAL_EINVAL, "\"%.60s\": a model is sharded over 2 to %u nodes", whole,
                       SHARD_PLAN_MAX_PARTS);
    *out = (struct shard_want){
        .mode = rows ? SHARD_ROWS : SHARD_LAYERS, .min = min, .max = max, .q8 = q8};
    return 0;
}

/* ---- one node ---- */

static double rate_of(const struct shard_plan_node *n)
{
    return n->rate > 0 ? n->rate : USUAL_RATE;
}

static double link_of(const struct shard_plan_node *n)
{
    return n->link_rate > 0 ? n->link_rate : USUAL_LINK;
}

/* Layers that fit a node. */
static uint32_t room_for(const struct shard_plan_model *m, const struct shard_plan_node *n,
                         bool engine)
{
    const uint64_t fixed = m->scratch_bytes + (engine ? m->head_bytes : 0);
    const uint64_t each = m->layer_bytes + m->kv_bytes;
    if (n->memory_bytes == 0)
        return m->n_layers;
    if (n->memory_bytes <= fixed || each == 0)
        return 0;
    const uint64_t room = (n->memory_bytes - fixed) / each;
    return room < m->n_layers ? (uint32_t)room : m->n_layers;
}

/* ---- figures of a plan ---- */

static double compute_s(const struct shard_plan_model *m, const struct shard_plan_node *nodes,
                        const struct shard_plan *p, uint32_t i)
{
    const struct shard_plan_part *part = &p->parts[i];
    const uint64_t head = i + 1 == p->n_parts ? m->head_bytes : 0;
    return (double)((part->end - part->first) * m->layer_bytes + head) /
           rate_of(&nodes[part->node]);
}

/* From part i to the next one, or from the engine's node to the first (i == n_parts): the time that
 * passes before the floats of n tokens are there. */
static double hop_s(const struct shard_plan_model *m, const struct shard_plan_node *nodes,
                    const struct shard_plan *p, uint32_t i, double n)
{
    const double bytes = n * m->dim * 4;
    if (p->n_parts < 2 || i + 1 == p->n_parts)
        return 0;
    if (i == p->n_parts) /* tokens only */
        return nodes[p->parts[0].node].rtt_s / 2;
    const struct shard_plan_node *a = &nodes[p->parts[i].node], *b = &nodes[p->parts[i + 1].node];
    const double link = link_of(a) < link_of(b) ? link_of(a) : link_of(b);
    /* the distance of two nodes is not measured here: as far as both are from the engine's */
    const double away = i + 2 == p->n_parts ? a->rtt_s / 2 : (a->rtt_s + b->rtt_s) / 4;
    return away + bytes / (i + 2 == p->n_parts ? link_of(a) : link);
}

static void figures(struct shard_plan *p, const struct shard_plan_model *m,
                    const struct shard_plan_node *nodes)
{
    double sum = 0, wire = 0, piece = 0, slowest = 0, wire_8 = 0;
    for (uint32_t i = 0; i <= p->n_parts; i++) {
        const double c = i < p->n_parts ? compute_s(m, nodes, p, i) : 0;
        const double many = c * TOGETHER * PIECE, sent = hop_s(m, nodes, p, i, PIECE);
        sum += c;
        wire += hop_s(m, nodes, p, i, 1);
        wire_8 += hop_s(m, nodes, p, i, 8);
        piece += many + sent;
        slowest = many > slowest ? many : slowest;
        slowest = sent > slowest ? sent : slowest;
    }
    const double in_pass = PASS_PIECES * p->n_parts;
    const double pieces = ceil(SHARD_PLAN_PROMPT / PIECE), passes = ceil(pieces / in_pass);
    p->token_s = sum + wire;
    p->first_s = passes * piece + (pieces - passes) * slowest + p->token_s;
    p->rate_8 = 8 / (sum * (1 + 7 * TOGETHER) + wire_8);
    p->wire = p->token_s > 0 ? wire / p->token_s : 0;
    p->bytes = p->n_parts > 1 ? (uint64_t)(p->n_parts - 1) * m->dim * 4 + 4 : 0;
}

double shard_plan_request_s(const struct shard_plan *p)
{
    return p->first_s + SHARD_PLAN_ANSWER * p->token_s;
}

/* ---- shares ---- */

/* Gives each of the chosen nodes layers; chosen[n - 1] is the engine's.  balanced: so that all take
 * equally long; otherwise as many as possible to the fastest.  forced: of the engine's node; 0:
 * free.  false: they do not fit. */
static bool share(struct shard_plan *p, const struct shard_plan_model *m,
                  const struct shard_plan_node *nodes, const uint32_t *chosen, uint32_t n,
                  bool balanced, uint32_t forced)
{
    uint32_t count[SHARD_PLAN_MAX_PARTS], room[SHARD_PLAN_MAX_PARTS], left = m->n_layers;
    for (uint32_t i = 0; i < n; i++) {
        const bool engine = i + 1 == n;
        room[i] = room_for(m, &nodes[chosen[i]], engine);
        count[i] = engine && forced ? forced : 1;
        if (room[i] < count[i] || left < count[i])
            return false;
        if (engine && forced)
            room[i] = forced;
        left -= count[i];
    }
    for (; left > 0; left--) {
        double best = INFINITY;
        uint32_t to = n;
        for (uint32_t i = 0; i < n; i++) {
            const double rate = rate_of(&nodes[chosen[i]]);
            const double head =
                i + 1 == n ? (double)m->head_bytes / (double)(m->layer_bytes + 1) : 0;
            const double cost = balanced ? (count[i] + 1 + head) / rate : 1 / rate;
            if (count[i] < room[i] && cost < best) {
                best = cost;
                to = i;
            }
        }
        if (to == n)
            return false;
        count[to]++;
    }
    *p = (struct shard_plan){.n_parts = n, .fits = true};
    for (uint32_t i = 0, at = 0; i < n; at += count[i], i++)
        p->parts[i] = (struct shard_plan_part){chosen[i], at, at + count[i], 0};
    figures(p, m, nodes);
    return true;
}

/* ---- choosing nodes ---- */

/* How much a layer costs on a node that gets `layers` of them (fewer if fewer fit); by_room: how
 * little room it has. */
static double unfitness(const struct shard_plan_model *m, const struct shard_plan_node *n,
                        uint32_t layers, bool by_room)
{
    const uint32_t room = room_for(m, n, false), got = room < layers ? room : layers;
    if (room == 0)
        return INFINITY;
    if (by_room)
        return -(double)room;
    return (double)m->layer_bytes / rate_of(n) +
           (n->rtt_s + m->dim * 4 / link_of(n)) / (got ? got : 1);
}

/* The n best nodes besides the engine's; returns how many there are. */
static uint32_t pick(uint32_t *out, uint32_t n, const struct shard_plan_model *m,
                     const struct shard_plan_node *nodes, uint32_t n_nodes, bool by_room)
{
    double cost[SHARD_PLAN_MAX_PARTS];
    uint32_t k = 0;
    const uint32_t layers = m->n_layers / (n + 1) + 1;
    for (uint32_t i = 1; n > 0 && i < n_nodes; i++) {
        const double c = unfitness(m, &nodes[i], layers, by_room);
        if (c == INFINITY || (k == n && c >= cost[k - 1]))
            continue;
        uint32_t at = k < n ? k++ : k - 1;
        for (; at > 0 && cost[at - 1] > c; at--) {
            cost[at] = cost[at - 1];
            out[at] = out[at - 1];
        }
        cost[at] = c;
        out[at] = i;
    }
    return k;
}

static bool with(struct shard_plan *out, const struct shard_plan_model *m,
                 const struct shard_plan_node *nodes, uint32_t n_nodes, uint32_t n_parts,
                 uint32_t forced)
{
    uint32_t chosen[SHARD_PLAN_MAX_PARTS] = {0};
    bool found = false;
    *out = (struct shard_plan){.n_parts = n_parts};
    if (n_parts == 0 || n_parts > SHARD_PLAN_MAX_PARTS || n_parts > m->n_layers)
        return false;
    for (int way = 0; way < 4; way++) {
        struct shard_plan p;
        if (pick(chosen, n_parts - 1, m, nodes, n_nodes, way & 1) < n_parts - 1)
            continue;
        chosen[n_parts - 1] = 0;
        if (!share(&p, m, nodes, chosen, n_parts, way & 2, forced))
            continue;
        if (!found || shard_plan_request_s(&p) < shard_plan_request_s(out))
            *out = p;
        found = true;
    }
    return found;
}

bool shard_plan_with(struct shard_plan *out, const struct shard_plan_model *m,
                     const struct shard_plan_node *nodes, uint32_t n_nodes, uint32_t n_parts)
{
    return with(out, m, nodes, n_nodes, n_parts, 0);
}

static int nothing_fits(const struct shard_plan_model *m, const struct shard_plan_node *nodes,
                        uint32_t n_nodes, struct shard_want want, struct err *e)
{
    uint64_t room = 0;
    for (uint32_t i = 0; i < n_nodes; i++)
        room += room_for(m, &nodes[i], i == 0);
    return err_set(e, SHOAL_ELIMIT,
                   "the model's %u layers do not fit: %u to %u of %u nodes may be used, and all "
                   "together have room for %llu layers of %.1f MiB with their keys and values",
                   m->n_layers, want.min, want.max, n_nodes, (unsigned long long)room,
                   (double)(m->layer_bytes + m->kv_bytes) / 1048576.0);
}

/* ---- by rows ---- */

#define LEAST_SHARE 0.01
#define ROW_GATHERS 4.0 /* DECODER_ROWS_GATHERS */
#define ROW_PASS 256.0  /* tokens of a prompt that are computed together */
#define ROW_SLACK 1.03  /* rows are cut in tiles and whole heads */

/* Share of all layers that fits a node. */
static double share_room(const struct shard_plan_model *m, const struct shard_plan_node *n,
                         bool engine)
{
    const uint64_t fixed = m->scratch_bytes + (engine ? m->head_bytes : 0);
    const double all = (double)(m->n_layers * (m->layer_bytes + m->kv_bytes)) * ROW_SLACK;
    if (n->memory_bytes == 0)
        return 1;
    if (n->memory_bytes <= fixed)
        return 0;
    const double room = (double)(n->memory_bytes - fixed) / all;
    return room < 1 ? room : 1;
}

/* Shares by speed, within what fits: whoever is full gets no more, and the rest is divided again.
 * false: they do not fit. */
static bool divide(double *share, const struct shard_plan_model *m,
                   const struct shard_plan_node *nodes, const uint32_t *chosen, uint32_t n,
                   double own)
{
    bool full[SHARD_PLAN_MAX_PARTS] = {false};
    uint32_t over;
    double sum = 0;
    full[n - 1] = own > 0;
    share[n - 1] = own;
    do {
        double rates = 0, left = 1;
        over = n;
        for (uint32_t i = 0; i < n; i++) {
            rates += full[i] ? 0 : rate_of(&nodes[chosen[i]]);
            left -= full[i] ? share[i] : 0;
        }
        for (uint32_t i = 0; i < n; i++) {
            if (full[i])
                continue;
            share[i] = left * rate_of(&nodes[chosen[i]]) / rates;
            if (share[i] > share_room(m, &nodes[chosen[i]], i + 1 == n))
                over = i;
        }
        if (over < n) {
            share[over] = share_room(m, &nodes[chosen[over]], over + 1 == n);
            full[over] = true;
        }
    } while (over < n);
    for (uint32_t i = 0; i < n; i++) {
        sum += share[i];
        if (share[i] < LEAST_SHARE)
            return false;
    }
    return sum > 1 - 1e-9;
}

static void row_figures(struct shard_plan *p, const struct shard_plan_model *m,
                        const struct shard_plan_node *nodes)
{
    const double layers = (double)(m->n_layers * m->layer_bytes);
    const double columns = (3.0 * m->dim + m->ffn_dim) * m->n_layers; /* of a token, gathered */
    double compute = 0, away = 0, sent = 0;
    for (uint32_t i = 0; i < p->n_parts; i++) {
        const struct shard_plan_part *part = &p->parts[i];
        const struct shard_plan_node *n = &nodes[part->node];
        const double c = part->share * layers / rate_of(n);
        compute = c > compute ? c : compute;
        if (i + 1 == p->n_parts)
            continue;
        away = n->rtt_s > away ? n->rtt_s : away;
        sent += (part->share > 0.5 ? part->share : 1 - part->share) * columns * 4 / link_of(n);
    }
    compute += (double)m->head_bytes / rate_of(&nodes[0]);
    const double hops = ROW_GATHERS * m->n_layers * away * (p->n_parts > 2 ? 1 : 0.5);
    const double passes = ceil(SHARD_PLAN_PROMPT / ROW_PASS);
    p->token_s = compute + hops + sent;
    p->first_s = SHARD_PLAN_PROMPT * (compute * TOGETHER + sent) + passes * hops + p->token_s;
    p->rate_8 = 8 / (compute * (1 + 7 * TOGETHER) + hops + 8 * sent);
    p->wire = p->token_s > 0 ? (hops + sent) / p->token_s : 0;
    p->bytes = (uint64_t)((p->n_parts - 1) * columns * 4);
}

bool shard_plan_rows_with(struct shard_plan *out, const struct shard_plan_model *m,
                          const struct shard_plan_node *nodes, uint32_t n_nodes, uint32_t n_parts,
                          double own)
{
    uint32_t chosen[SHARD_PLAN_MAX_PARTS] = {0};
    double share[SHARD_PLAN_MAX_PARTS];
    bool found = false;
    *out = (struct shard_plan){.n_parts = n_parts, .rows = true};
    if (!m->rows || n_parts < 2 || n_parts > SHARD_PLAN_MAX_PARTS)
        return false;
    for (int by_room = 0; by_room < 2; by_room++) {
        struct shard_plan p = {.n_parts = n_parts, .rows = true, .fits = true};
        if (pick(chosen, n_parts - 1, m, nodes, n_nodes, by_room) < n_parts - 1)
            continue;
        chosen[n_parts - 1] = 0;
        if (!divide(share, m, nodes, chosen, n_parts, own))
            continue;
        for (uint32_t i = 0; i < n_parts; i++)
            p.parts[i] = (struct shard_plan_part){chosen[i], 0, m->n_layers, share[i]};
        row_figures(&p, m, nodes);
        if (!found || shard_plan_request_s(&p) < shard_plan_request_s(out))
            *out = p;
        found = true;
    }
    return found;
}

int shard_plan_rows(struct shard_plan *out, const struct shard_plan_model *m,
                    const struct shard_plan_node *nodes, uint32_t n_nodes, struct shard_want want,
                    double own, struct err *e)
{
    struct shard_plan p;
    bool found = false;
    if (!m->rows)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "this architecture cannot be divided by rows yet: write layers:%u",
                       want.min);
    for (uint32_t n = want.min; n <= want.max && n <= n_nodes; n++) {
        if (!shard_plan_rows_with(&p, m, nodes, n_nodes, n, own))
            continue;
        if (!found || shard_plan_request_s(&p) < (1 - SHARD_PLAN_GAIN) * shard_plan_request_s(out))
            *out = p;
        found = true;
    }
    return found ? 0 : nothing_fits(m, nodes, n_nodes, want, e);
}

int shard_plan_choose(struct shard_plan *out, const struct shard_plan_model *m,
                      const struct shard_plan_node *nodes, uint32_t n_nodes, struct shard_want want,
                      uint32_t forced_end, struct err *e)
{
    struct shard_plan p;
    bool found = false;
    if (want.mode == SHARD_ROWS)
        return shard_plan_rows(out, m, nodes, n_nodes, want, 0, e);
    const uint32_t forced = forced_end ? m->n_layers - forced_end : 0;
    const uint32_t min = forced && want.min < 2 ? 2 : want.min;
    for (uint32_t n = min; n <= want.max && n <= n_nodes; n++) {
        if (!with(&p, m, nodes, n_nodes, n, forced))
            continue;
        /* fewer parts are better unless more pay */
        const double gain = found ? 1 - SHARD_PLAN_GAIN : 1;
        if (!found || shard_plan_request_s(&p) < gain * shard_plan_request_s(out))
            *out = p;
        found = true;
    }
    return found ? 0 : nothing_fits(m, nodes, n_nodes, want, e);
}
