/* shard_chain.c - see shard_chain.h. */
#include "cluster/shard/shard_chain.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/shard/shard_rows.h"
#include "engine/native/layer_part.h"
#include "shoal/shoal_version.h"

#define LOAD_MS 600000u       /* a part may have to be tiled first */
#define STEP_MS 120000u       /* a part that is heard, but delivers nothing for this long */
#define TICK_MS 50u           /* how often the others are looked at while a result is awaited */
#define RETRY_US 200000u      /* between two attempts to rebuild a chain */
#define AVOID_NS 30000000000u /* a node that failed is the last choice for this long */
#define MAX_AVOIDED 16u

struct part {
    struct shard_peer peer;
    uint32_t first, end;
    uint64_t heard_ns; /* its last sign of life */
    uint64_t asked_ns; /* for one; 0: not since then */
};

struct avoided {
    char address[256];
    uint64_t until_ns;
};

struct shard_chain {
    struct shard_chain_opts o;
    struct chain_costs costs;
    struct chain_shape shape;
    struct shard_plan plan;
    struct decoder_rows rows;                /* n_parts 0: by layers */
    struct part parts[SHARD_PLAN_MAX_PARTS]; /* the others', in the order of layers or rows */
    uint32_t n_parts;                        /* of others */
    uint64_t chain, n_sent, n_received;
    struct avoided avoided[MAX_AVOIDED];
    uint32_t n_avoided;
    struct buf runs, frame;
    struct buf tokens, packed;
    uint64_t begun_ns; /* of the step that is awaited */
    struct shard_chain_facts facts;
};

/* ---- planning ---- */

static bool is_avoided(const struct shard_chain *c, const char *address)
{
    for (uint32_t i = 0; i < c->n_avoided; i++)
        if (strcmp(c->avoided[i].address, address) == 0)
            return clock_ns() < c->avoided[i].until_ns;
    return false;
}

static void avoid(struct shard_chain *c, const char *address)
{
    uint32_t i = 0;
    while (i < c->n_avoided && strcmp(c->avoided[i].address, address) != 0)
        i++;
    if (i == MAX_AVOIDED)
        i = 0;
    else if (i == c->n_avoided)
        c->n_avoided++;
    snprintf(c->avoided[i].address, sizeof(c->avoided[i].address), "%s", address);
    c->avoided[i].until_ns = clock_ns() + AVOID_NS;
}

static bool is_known(const struct shard_peer *peers, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(peers[i].name, name) == 0)
            return true;
    return false;
}

/* Connects to the nodes that answer, and measures them.  Returns how many. */
static uint32_t find_peers(struct shard_chain *c, struct shard_peer *peers, bool all)
{
    char(*addresses)[256] = mem_zalloc_n(SHARD_CHAIN_MAX_NODES, sizeof(*addresses));
    uint32_t n = addresses ? c->o.nodes(c->o.ctx, addresses, SHARD_CHAIN_MAX_NODES) : 0, k = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct err e = {0};
        if (!all && is_avoided(c, addresses[i]))
            continue;
        int rc = shard_peer_open(&peers[k], addresses[i], c->o.tls, &e);
        if (rc == 0 && (strcmp(peers[k].name, c->o.name) == 0 ||
                        is_known(peers, k, peers[k].name))) { /* this node, or one twice */
            shard_peer_close(&peers[k]);
            continue;
        }
        if (rc == 0 && (rc = shard_peer_measure(&peers[k], &e)) < 0)
            shard_peer_close(&peers[k]);
        if (rc == 0)
            k++;
        else
            log_info("shard", "node %s is not used: %s", addresses[i], e.msg);
    }
    mem_free(addresses);
    return k;
}

/* Cuts the rows as the plan divides them.  again: this node keeps what it has. */
static int cut_rows(struct shard_chain *c, bool again, struct err *e)
{
    const struct decoder_rows_of of = {c->costs.n_kv_heads, c->costs.ffn_dim, c->costs.dim};
    const struct decoder_rows now = c->rows;
    double shares[SHARD_PLAN_MAX_PARTS];
    for (uint32_t i = 0; i < c->plan.n_parts; i++)
        shares[i] = c->plan.parts[i].share;
    int rc = again ? decoder_rows_recut(&c->rows, &now, shares, c->plan.n_parts, e)
                   : decoder_rows_cut(&c->rows, &of, shares, c->plan.n_parts, e);
    c->rows.index = c->plan.n_parts - 1;
    return rc;
}

/* again: this node has its part already. */
static int choose(struct shard_chain *c, const struct shard_plan_model *m,
                  const struct shard_plan_node *nodes, uint32_t n, bool again, struct err *e)
{
    const double own = again ? c->plan.parts[c->plan.n_parts - 1].share : 0;
    if (c->o.want.mode != SHARD_ROWS)
        return shard_plan_choose(&c->plan, m, nodes, n, c->o.want, again ? c->shape.cut.first : 0,
                                 e);
    /* any number of others may take the place of those that were lost */
    const struct shard_want want = {.mode = SHARD_ROWS,
                                    .min = again ? 2 : c->o.want.min,
                                    .max = again ? SHARD_PLAN_MAX_PARTS : c->o.want.max};
    int rc = shard_plan_rows(&c->plan, m, nodes, n, want, own, e);
    return rc < 0 ? rc : cut_rows(c, again, e);
}

static int plan_over(struct shard_chain *c, const struct shard_peer *peers, uint32_t n, bool again,
                     struct err *e)
{
    struct shard_plan_node nodes[SHARD_CHAIN_MAX_NODES + 1];
    const struct shard_plan_model m = {.n_layers = c->costs.n_layers,
                                       .dim = c->costs.dim,
                                       .layer_bytes = c->costs.layer,
                                       .head_bytes = c->costs.head,
                                       .kv_bytes = c->costs.kv,
                                       .scratch_bytes = c->costs.scratch,
                                       .ffn_dim = c->costs.ffn_dim,
                                       .rows = c->costs.rows};
    /* a part that is loaded here already needs no more room */
    nodes[0] = (struct shard_plan_node){.name = c->o.name,
                                        .memory_bytes = again ? 0 : c->o.memory(c->o.ctx),
                                        .rate = (double)c->o.rate(c->o.ctx)};
    for (uint32_t i = 0; i < n; i++)
        nodes[i + 1] = (struct shard_plan_node){.name = peers[i].name,
                                                .memory_bytes = peers[i].memory_bytes,
                                                .rate = (double)peers[i].rate,
                                                .rtt_s = peers[i].rtt_s,
                                                .link_rate = peers[i].link_rate};
    return choose(c, &m, nodes, n + 1, again, e);
}

/* Takes the connections that the plan uses and closes the others. */
static void take_peers(struct shard_chain *c, struct shard_peer *peers, uint32_t n)
{
    const uint64_t now = clock_ns();
    c->n_parts = c->plan.n_parts - 1;
    for (uint32_t i = 0; i < c->n_parts; i++) {
        const struct shard_plan_part *p = &c->plan.parts[i];
        c->parts[i] = (struct part){
            .peer = peers[p->node - 1], .first = p->first, .end = p->end, .heard_ns = now};
        peers[p->node - 1].link = NULL;
    }
    for (uint32_t i = 0; i < n; i++)
        shard_peer_close(&peers[i]);
}

static int plan(struct shard_chain *c, bool again, bool all, struct err *e)
{
    struct shard_peer *peers = mem_zalloc_n(SHARD_CHAIN_MAX_NODES, sizeof(*peers));
    if (!peers)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a plan");
    uint32_t n = find_peers(c, peers, all);
    int rc = plan_over(c, peers, n, again, e);
    if (rc == 0)
        take_peers(c, peers, n);
    for (uint32_t i = 0; rc < 0 && i < n; i++)
        shard_peer_close(&peers[i]);
    mem_free(peers);
    return rc;
}

/* ---- facts ---- */

static void publish(struct shard_chain *c)
{
    struct shard_chain_facts *f = &c->facts;
    f->plan = c->plan;
    f->n_layers = c->costs.n_layers;
    for (uint32_t i = 0; i < c->n_parts; i++)
        snprintf(f->nodes[i], sizeof(f->nodes[i]), "%s", c->parts[i].peer.name);
    snprintf(f->nodes[c->n_parts], sizeof(f->nodes[0]), "%s", c->o.name);
    c->o.changed(c->o.ctx, c, f);
}

/* ---- connecting ---- */

static void disconnect(struct shard_chain *c)
{
    for (uint32_t i = 0; i < c->n_parts; i++)
        shard_peer_close(&c->parts[i].peer);
    c->n_parts = 0;
}

/* What part i computes, for people. */
static void put_what(char *out, size_t cap, const struct shard_chain *c, uint32_t i)
{
    const struct decoder_rows *r = &c->rows;
    if (r->n_parts)
        snprintf(out, cap, "rows %u to %u of %u", r->ffn[i], r->ffn[i + 1] - 1, r->ffn[r->n_parts]);
    else
        snprintf(out, cap, "layers %u to %u", c->parts[i].first, c->parts[i].end - 1);
}

/* Everything that must be the same for results to be those of one model. */
static uint64_t chain_of(const struct shard_chain *c, const uint8_t *session)
{
    const uint32_t words[] = {c->shape.n_layers,  c->shape.dim,      c->shape.n_ctx,
                              c->shape.max_batch, c->shape.n_pages,  c->shape.cut.first,
                              c->shape.kv_q8,     SHARD_MSG_VERSION, c->o.want.q8};
    uint64_t h = hash_bytes(c->o.sha256, SHA256_BYTES, 0);
    h = hash_bytes(SHOAL_VERSION, strlen(SHOAL_VERSION), h);
    h = hash_bytes(words, sizeof(words), h);
    for (uint32_t i = 0; i < c->n_parts; i++)
        h = hash_bytes(&c->parts[i].first, sizeof(c->parts[i].first), h);
    h = hash_bytes(&c->rows, sizeof(c->rows), h);
    return hash_bytes(session, SHARD_MSG_SESSION, h);
}

static int open_part(struct shard_chain *c, uint32_t i, const uint8_t *session, struct err *e)
{
    struct part *p = &c->parts[i];
    const bool rows = c->rows.n_parts > 0;
    const char *next = !rows && i + 1 < c->n_parts ? c->parts[i + 1].peer.address : "";
    struct shard_open o = {.chain = c->chain,
                           .first = p->first,
                           .end = p->end,
                           .n_layers = c->shape.n_layers,
                           .dim = c->shape.dim,
                           .n_ctx = c->shape.n_ctx,
                           .max_batch = c->shape.max_batch,
                           .n_pages = c->shape.n_pages,
                           .kv_q8 = c->shape.kv_q8,
                           .wire_q8 = c->o.want.q8,
                           .next = {next, strlen(next)},
                           .rows = c->rows};
    o.rows.index = rows ? i : 0;
    struct shard_opened opened;
    struct shard_frame f;
    memcpy(o.session, session, sizeof(o.session));
    memcpy(o.sha256, c->o.sha256, sizeof(o.sha256));
    buf_clear(&c->frame);
    shard_open_put(&c->frame, &o);
    int rc = shard_link_send(p->peer.link, &c->frame, e);
    if (rc == 0)
        rc = shard_peer_await(&p->peer, SHARD_OPENED, &f, LOAD_MS, e);
    if (rc == 0)
        rc = shard_opened_read(&opened, &f, e);
    if (rc == 0 && opened.chain != c->chain)
        rc = err_set(e, SHOAL_EFORMAT, "%s opened another model", p->peer.name);
    if (rc < 0)
        avoid(c, p->peer.address);
    p->heard_ns = clock_ns();
    return rc;
}

/* The last part first: each attaches to the one behind it. */
static int open_parts(struct shard_chain *c, struct err *e)
{
    uint8_t session[SHARD_MSG_SESSION];
    int rc = 0;
    if (getrandom(session, sizeof(session), 0) != (ssize_t)sizeof(session))
        return err_set(e, SHOAL_EIO, "no random numbers");
    c->chain = chain_of(c, session);
    for (uint32_t i = c->n_parts; rc == 0 && i-- > 0;)
        rc = open_part(c, i, session, e);
    if (rc < 0)
        return rc;
    c->n_sent = c->n_received = 0;
    for (uint32_t i = 0; i < c->n_parts; i++) {
        char what[64];
        put_what(what, sizeof(what), c, i);
        log_info("shard", "model=%s %s are computed by node=%s", c->facts.model, what,
                 c->parts[i].peer.name);
    }
    publish(c);
    return 0;
}

/* ---- steps ---- */

/* A part failed: everybody shall know which one, and why. */
static int lost(struct shard_chain *c, uint32_t i, const char *why)
{
    const struct shard_peer *p = &c->parts[i].peer;
    char what[64];
    put_what(what, sizeof(what), c, i);
    log_warn("shard", "model=%s lost node=%s with %s: %s", c->facts.model, p->name, what, why);
    snprintf(c->facts.lost, sizeof(c->facts.lost), "%s: %.90s", p->name, why);
    avoid(c, p->address);
    return SHOAL_EIO;
}

/* Sends the frame to all parts but one; n_parts: to all. */
static int send_to_all(struct shard_chain *c, uint32_t but)
{
    struct err e = {0};
    for (uint32_t i = 0; i < c->n_parts; i++) {
        if (i == but)
            continue;
        if (shard_link_send(c->parts[i].peer.link, &c->frame, &e) < 0)
            return lost(c, i, e.msg);
        c->facts.n_bytes += c->frame.len;
    }
    return 0;
}

/* By rows: all compute the step at once.  The one before is complete. */
static int begin_together(struct shard_chain *c, uint32_t n_tokens)
{
    c->begun_ns = clock_ns();
    c->facts.n_steps++;
    c->facts.n_tokens += n_tokens;
    return send_to_all(c, c->n_parts);
}

static int send_step(void *ctx, const struct decoder_run *runs, uint32_t n_runs)
{
    struct shard_chain *c = ctx;
    struct err e = {0};
    struct shard_step s = {.chain = c->chain, .number = c->n_sent, .n_runs = n_runs};
    if (c->n_parts == 0)
        return SHOAL_EIO;
    buf_clear(&c->runs);
    buf_clear(&c->tokens);
    for (uint32_t i = 0; i < n_runs; i++) {
        const struct decoder_run *r = &runs[i];
        shard_run_put(&c->runs, r->pos0, r->n, r->pages,
                      (r->pos0 + r->n + LAYER_PART_PAGE - 1) / LAYER_PART_PAGE);
        buf_put(&c->tokens, r->tokens, r->n * sizeof(*r->tokens));
        s.n_tokens += r->n;
    }
    if (c->runs.rc < 0 || c->tokens.rc < 0)
        return SHOAL_ENOMEM;
    s.runs = (const uint8_t *)c->runs.data;
    s.runs_bytes = c->runs.len;
    s.data = (const uint8_t *)c->tokens.data;
    buf_clear(&c->frame);
    shard_step_put(&c->frame, SHARD_STEP, &s);
    if (c->n_sent == c->n_received)
        c->begun_ns = clock_ns();
    c->n_sent++;
    if (c->rows.n_parts)
        return begin_together(c, s.n_tokens);
    c->facts.n_bytes += c->frame.len;
    return shard_link_send(c->parts[0].peer.link, &c->frame, &e) < 0 ? lost(c, 0, e.msg) : 0;
}

/* A message that is no result. */
static int take_other(struct shard_chain *c, uint32_t i, const struct shard_frame *f)
{
    struct shard_fail fail;
    struct err e = {0};
    char why[200];
    if (f->kind == SHARD_ECHOED) {
        c->parts[i].asked_ns = 0;
        return 0;
    }
    if (f->kind != SHARD_FAIL)
        return lost(c, i, "it sent a message that does not belong here");
    if (shard_fail_read(&fail, f, &e) < 0)
        return lost(c, i, e.msg);
    snprintf(why, sizeof(why), "%.*s", (int)fail.text.n, fail.text.p);
    return lost(c, i, why);
}

/* Asks a part that has been silent whether it is there. */
static int check_alive(struct shard_chain *c, uint32_t i, uint64_t now)
{
    struct part *p = &c->parts[i];
    const uint64_t silent = (uint64_t)c->o.silent_ms * 1000000u;
    struct err e = {0};
    if (p->asked_ns && now - p->asked_ns > silent)
        return lost(c, i, "it is silent");
    if (p->asked_ns || now - p->heard_ns < silent / 4)
        return 0;
    p->asked_ns = now;
    buf_clear(&c->frame);
    shard_echo_put(&c->frame, 0);
    return shard_link_send(p->peer.link, &c->frame, &e) < 0 ? lost(c, i, e.msg) : 0;
}

/* What part i has to say within some milliseconds: 1, a result; 0, nothing of importance. */
static int listen_to(struct shard_chain *c, uint32_t i, uint32_t ms, struct shard_frame *f)
{
    struct err e = {0};
    int rc = shard_link_receive(c->parts[i].peer.link, f, ms, &e);
    if (rc < 0)
        return lost(c, i, e.msg);
    if (rc == 0)
        return check_alive(c, i, clock_ns());
    c->parts[i].heard_ns = clock_ns();
    if (f->kind == (c->rows.n_parts ? SHARD_SLICE : SHARD_RESULT) &&
        (c->rows.n_parts || i + 1 == c->n_parts))
        return 1;
    return take_other(c, i, f);
}

/* What part `from` delivers: a result or a slice.  By layers the others, which deliver nothing
 * here, are asked whether they live. */
static int await_from(struct shard_chain *c, uint32_t from, struct shard_frame *f)
{
    const uint64_t until = clock_ns() + (uint64_t)STEP_MS * 1000000u;
    while (clock_ns() < until) {
        int rc = listen_to(c, from, TICK_MS, f);
        if (rc != 0)
            return rc < 0 ? rc : 0;
        for (uint32_t i = 0; !c->rows.n_parts && i < c->n_parts; i++)
            if (i != from && (rc = listen_to(c, i, 0, f)) < 0)
                return rc;
    }
    return lost(c, from, "it delivers nothing");
}

static int take_result(struct shard_chain *c, const struct shard_frame *f, float *x, uint32_t n)
{
    const uint32_t last = c->n_parts - 1;
    struct shard_step s;
    struct err e = {0};
    if (shard_step_read(&s, f, &e) < 0)
        return lost(c, last, e.msg);
    if (s.chain != c->chain || s.number != c->n_received || s.n_tokens != n ||
        s.dim != c->shape.dim || s.q8 != c->o.want.q8)
        return lost(c, last, "it sent a result of another step");
    for (uint32_t t = 0; t < n; t++)
        shard_row_get(x + (size_t)t * s.dim, s.q8, s.data + t * shard_row_bytes(s.q8, s.dim),
                      s.dim);
    if (!layer_part_finite(x, (size_t)n * s.dim))
        return lost(c, last, "it sent values that are not numbers");
    c->n_received++;
    c->facts.n_steps++;
    c->facts.n_tokens += n;
    c->facts.n_bytes += f->bytes;
    c->facts.remote_ns += s.compute_ns;
    return 0;
}

static int receive(void *ctx, float *x, uint32_t n_tokens)
{
    struct shard_chain *c = ctx;
    struct shard_frame f;
    if (c->n_parts == 0)
        return SHOAL_EIO;
    const uint64_t asked = clock_ns();
    int rc = await_from(c, c->n_parts - 1, &f);
    if (rc == 0)
        rc = take_result(c, &f, x, n_tokens);
    if (rc < 0)
        return rc;
    const uint64_t now = clock_ns();
    c->facts.wait_ns += now - asked;
    if (c->n_sent == c->n_received) {
        c->facts.step_ns += now - c->begun_ns;
        publish(c);
    }
    return 0;
}

/* ---- by rows ---- */

/* The columns of one part, which the others get as well. */
static int gather_from(struct shard_chain *c, struct shard_gather *g, uint32_t i)
{
    struct shard_frame f;
    struct shard_slice slice;
    struct err e = {0};
    int rc = await_from(c, i, &f);
    if (rc < 0)
        return rc;
    if (shard_gather_take(g, &f, &slice, &e) < 0 || slice.part != i)
        return lost(c, i, e.code < 0 ? e.msg : "it sent columns of another part");
    c->facts.n_bytes += f.bytes;
    c->facts.remote_ns += slice.compute_ns;
    buf_clear(&c->frame);
    buf_put(&c->frame, f.body - SHARD_MSG_HEAD, f.bytes);
    return send_to_all(c, i);
}

static bool gather(void *ctx, const struct decoder_gather *what)
{
    struct shard_chain *c = ctx;
    const uint64_t begun = clock_ns();
    struct shard_gather g =
        shard_gather_begin(what, c->chain, c->n_sent - 1, c->rows.n_parts, c->rows.index);
    g.q8 = c->o.want.q8;
    buf_clear(&c->frame);
    shard_gather_put(&c->frame, &c->packed, &g, 0);
    int rc = send_to_all(c, c->n_parts);
    for (uint32_t i = 0; rc == 0 && i < c->n_parts; i++)
        if (!(g.got >> i & 1))
            rc = gather_from(c, &g, i);
    const uint64_t now = clock_ns();
    c->facts.wait_ns += now - begun;
    if (what->number + 1 == DECODER_ROWS_GATHERS * c->shape.n_layers) {
        c->facts.step_ns += now - c->begun_ns;
        publish(c);
    }
    return rc == 0;
}

/* ---- the chain's functions ---- */

static int cut(void *ctx, const struct chain_costs *costs, struct chain_cut *out, struct err *e)
{
    struct shard_chain *c = ctx;
    c->costs = *costs;
    int rc = plan(c, false, true, e);
    if (rc < 0)
        return rc;
    const struct shard_plan_part *own = &c->plan.parts[c->plan.n_parts - 1];
    char here[64];
    out->first = own->first;
    out->rows = c->rows;
    if (c->rows.n_parts)
        snprintf(here, sizeof(here), "%.0f %% of the rows", own->share * 100);
    else
        snprintf(here, sizeof(here), "from layer %u on", own->first);
    log_info("shard", "model=%s is computed by %u nodes, here %s: predicted %.1f ms per token%s",
             c->facts.model, c->plan.n_parts, here, c->plan.token_s * 1e3,
             c->o.want.q8 ? "; activations travel in 8 bits: answers may differ" : "");
    return 0;
}

static int connect_parts(void *ctx, const struct chain_shape *s, struct err *e)
{
    struct shard_chain *c = ctx;
    c->shape = *s;
    int rc = open_parts(c, e);
    if (rc < 0) {
        disconnect(c);
        return err_wrap(e, "a part of the model");
    }
    return 0;
}

static int reconnect(void *ctx, struct decoder_rows *rows)
{
    struct shard_chain *c = ctx;
    struct err e = {0};
    const uint64_t t0 = clock_ns(), until = t0 + (uint64_t)c->o.wait_ms * 1000000u;
    disconnect(c);
    for (int tries = 0;; tries++) { /* nodes that failed only if there is no other */
        int rc = plan(c, true, tries > 0, &e);
        if (rc == 0 && (rc = open_parts(c, &e)) < 0)
            disconnect(c);
        if (rc == 0)
            break;
        if (clock_ns() >= until) {
            log_error("shard", "model=%s cannot be computed: %s", c->facts.model, e.msg);
            return SHOAL_EBUSY;
        }
        usleep(RETRY_US);
    }
    *rows = c->rows;
    c->facts.n_rebuilt++;
    publish(c);
    log_info("shard", "model=%s works again after %.0f ms", c->facts.model,
             (double)(clock_ns() - t0) / 1e6);
    return 0;
}

static uint32_t n_parts(const void *ctx)
{
    const struct shard_chain *c = ctx;
    return c->plan.n_parts;
}

static void close_chain(void *ctx)
{
    struct shard_chain *c = ctx;
    c->o.changed(c->o.ctx, c, NULL);
    disconnect(c);
    buf_fini(&c->runs);
    buf_fini(&c->frame);
    buf_fini(&c->tokens);
    buf_fini(&c->packed);
    mem_free(c);
}

static const struct chain_ops ops = {.cut = cut,
                                     .connect = connect_parts,
                                     .send = send_step,
                                     .receive = receive,
                                     .gather = gather,
                                     .reconnect = reconnect,
                                     .n_parts = n_parts,
                                     .close = close_chain};

int shard_chain_create(struct chain *out, const struct shard_chain_opts *o, struct err *e)
{
    struct shard_chain *c = mem_zalloc(sizeof(*c));
    char hex[2 * SHA256_BYTES + 1];
    if (!c)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a sharded model");
    c->o = *o;
    sha256_hex(hex, o->sha256);
    snprintf(c->facts.model, sizeof(c->facts.model), "%.12s", hex);
    buf_init(&c->runs, SHARD_MSG_MAX_BODY);
    buf_init(&c->frame, SHARD_MSG_MAX_BODY + SHARD_MSG_HEAD);
    buf_init(&c->tokens, SHARD_MSG_MAX_BODY);
    buf_init(&c->packed, SHARD_MSG_MAX_BODY);
    c->facts.q8 = o->want.q8;
    *out = (struct chain){&ops, c};
    return 0;
}
