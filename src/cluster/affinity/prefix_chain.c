/* prefix_chain.c - see prefix_chain.h. */
#include "cluster/affinity/prefix_chain.h"

#include <string.h>

#include "base/arena.h"
#include "flow/request.h"
#include "host/sha256.h"

#define MIN_BLOCK 256u
#define STEPS 16u     /* blocks of a text each time its length doubles */
#define FIRST_KEPT 8u /* blocks that nodes always remember */

/* A conversation being cut. */
struct cutter {
    struct prefix_chain *out;
    uint8_t sum[SHA256_BYTES]; /* of everything so far */
    uint64_t next;             /* where the next block ends within a text */
    bool bad;
};

static void add_text(struct sha256 *s, const char *text)
{
    sha256_add(s, text ? text : "", text ? strlen(text) + 1 : 1); /* with NUL: "ab" "c", "a" "bc" */
}

static uint64_t hash_of(const uint8_t sum[SHA256_BYTES])
{
    uint64_t h;
    memcpy(&h, sum, sizeof(h));
    return h;
}

/* The hash goes on from here: sum = SHA-256(sum, head, piece). */
static void extend(struct cutter *c, const char *head, const void *p, size_t n)
{
    struct sha256 s;
    sha256_begin(&s);
    sha256_add(&s, c->sum, sizeof(c->sum));
    add_text(&s, head);
    sha256_add(&s, p, n);
    c->bad |= !sha256_end(&s, c->sum);
    c->out->bytes += n;
}

static void end_block(struct cutter *c)
{
    struct prefix_chain *o = c->out;
    if (c->bad || o->n == PREFIX_CHAIN_MAX)
        return;
    o->blocks[o->n++] = (struct prefix_block){hash_of(c->sum), o->bytes, o->bytes};
}

static void move_on(struct cutter *c)
{
    uint64_t step = MIN_BLOCK;
    while (step * STEPS <= c->next)
        step *= 2;
    c->next += step;
}

/* A text or token ids.  Where its blocks end depends only on the position, so that a longer text
 * with the same beginning has the same blocks. */
static void add_content(struct cutter *c, const char *head, const void *p, size_t n)
{
    const uint8_t *at = p;
    while (c->next <= c->out->bytes)
        move_on(c);
    while (c->out->bytes + n >= c->next) {
        size_t take = (size_t)(c->next - c->out->bytes);
        extend(c, head, at, take);
        end_block(c);
        at += take;
        n -= take;
        move_on(c);
    }
    if (n > 0)
        extend(c, head, at, n);
}

static void add_message(struct cutter *c, const struct chat_message *m)
{
    extend(c, "role", m->role, strlen(m->role));
    extend(c, "name", m->name ? m->name : "", m->name ? strlen(m->name) : 0);
    add_content(c, "content", m->content, m->content_bytes);
    for (uint32_t i = 0; i < m->n_calls; i++) {
        extend(c, "call", m->calls[i].name, strlen(m->calls[i].name));
        add_content(c, "arguments", m->calls[i].arguments, m->calls[i].arguments_bytes);
    }
    end_block(c);
}

static void add_chat(struct cutter *c, const struct chat *t)
{
    struct prefix_chain *o = c->out;
    for (uint32_t i = 0; i < t->n_tools && chat_has_tools(t); i++) {
        extend(c, "tool", t->tools[i].name, strlen(t->tools[i].name));
        extend(c, "means", t->tools[i].description, strlen(t->tools[i].description));
    }
    for (uint32_t i = 0; i < t->n_messages; i++) {
        const uint32_t before = o->n;
        add_message(c, &t->messages[i]);
        if (i > 0 && before > 0 && strcmp(t->messages[i].role, "assistant") == 0)
            o->blocks[before - 1].answered = o->bytes;
    }
}

static void add_prompt(struct cutter *c, const struct request_prompt *p)
{
    for (uint32_t i = 0; i < p->n_pieces; i++) {
        const struct request_piece *x = &p->pieces[i];
        if (x->text)
            add_content(c, "text", x->text, x->text_bytes);
        else
            add_content(c, "ids", x->ids, x->n_ids * sizeof(*x->ids));
    }
    if (p->text)
        add_content(c, "text", p->text, p->text_bytes);
    else if (p->ids)
        add_content(c, "ids", p->ids, p->n_ids * sizeof(*p->ids));
}

void prefix_chain_for(struct prefix_chain *c, const char *model)
{
    c->model = model ? hash_bytes(model, strlen(model), 0) : 0;
}

struct prefix_chain *prefix_chain_make(struct arena *a, const struct request *r, bool shared)
{
    const struct request_generate *g = &r->generate;
    struct cutter c = {.next = MIN_BLOCK};
    struct prefix_block blocks[PREFIX_CHAIN_MAX]; /* not zeroed: few are used */
    struct prefix_chain *o = NULL;
    struct sha256 s;
    if (r->kind != REQUEST_GENERATE || !(o = arena_zalloc(a, sizeof(*o))))
        return NULL;
    c.out = o;
    o->blocks = blocks;
    prefix_chain_for(o, r->model);
    sha256_begin(&s);
    add_text(&s, shared ? "shared" : "of a client");
    sha256_add(&s, r->client.name, shared ? 0 : strnlen(r->client.name, sizeof(r->client.name)));
    add_text(&s, NULL);
    add_text(&s, g->chat.n_messages > 0 ? g->chat.template : NULL);
    if (g->adapter_scale != 0) /* its pages are of no use for others */
        sha256_add(&s, &g->adapter_scale, sizeof(g->adapter_scale));
    c.bad = !sha256_end(&s, c.sum);
    if (r->session[0]) {
        struct cutter t = c;
        struct prefix_chain unused = {0};
        t.out = &unused;
        extend(&t, "session", r->session, strnlen(r->session, sizeof(r->session)));
        o->session = hash_of(t.sum) | 1u;
    }
    if (g->chat.n_messages > 0)
        add_chat(&c, &g->chat);
    else if (g->n_prompts > 0)
        add_prompt(&c, &g->prompts[0]); /* further ones have beginnings of their own */
    o->blocks = arena_zalloc_n(a, o->n, sizeof(blocks[0]));
    if (c.bad || !o->blocks)
        return NULL;
    memcpy(o->blocks, blocks, o->n * sizeof(blocks[0]));
    return o;
}

bool prefix_chain_kept(const struct prefix_chain *c, uint32_t i)
{
    return i < FIRST_KEPT || (i & (i - 1)) == 0 || i + 1 == c->n;
}

double prefix_chain_held(const struct prefix_chain *c, bool (*has)(void *ctx, uint64_t key),
                         void *ctx)
{
    for (uint32_t i = c->n; i > 0; i--) {
        const struct prefix_block *b = &c->blocks[i - 1];
        if (has(ctx, prefix_chain_key(c, b->hash)))
            return (double)b->answered / (double)c->bytes;
    }
    return 0;
}

void prefix_chain_tell(const struct prefix_chain *c, struct request *r)
{
    uint64_t *keys = arena_zalloc_n(&r->arena, c->n + 1u, sizeof(*keys));
    uint32_t n = 0;
    if (!keys)
        return;
    if (c->session)
        keys[n++] = prefix_chain_key(c, c->session);
    for (uint32_t i = 0; i < c->n; i++)
        keys[n++] = prefix_chain_key(c, c->blocks[i].hash);
    r->beginnings = keys;
    r->n_beginnings = n;
}
