/* recall.c - see recall.h. */
#include "gateway/api/recall.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "gateway/call/call.h"

#define N_PLACES 256u
#define MAX_BODY_BYTES ((size_t)4 << 10) /* so at most 1 MiB per loop */

struct kept {
    const struct route *route;
    char client[sizeof(((struct admission_client *)0)->name)]; /* another one has its own answers */
    bool lenient;
    size_t body_bytes;
    struct recalled what;
    char body[];
};

struct recall {
    /* by the hash of the body; a newer entry replaces an older one */
    struct kept *places[N_PLACES];
};

int recall_create(struct recall **out, struct err *e)
{
    *out = mem_zalloc(sizeof(**out));
    return *out ? 0 : err_set(e, SHOAL_ENOMEM, "requests to recall");
}

void recall_destroy(struct recall *r)
{
    for (uint32_t i = 0; r && i < N_PLACES; i++)
        mem_free(r->places[i]);
    mem_free(r);
}

static uint32_t place(const struct call *c)
{
    return (uint32_t)(hash_bytes(c->req->body, c->req->body_bytes, c->gl->gw->id_salt) % N_PLACES);
}

static const char *client_of(const struct call *c)
{
    return c->client ? c->client->name : "";
}

const struct recalled *recall_find(const struct call *c)
{
    size_t n = c->req->body_bytes;
    if (!c->gl->gw->cache || n > MAX_BODY_BYTES || call_once_key(c) ||
        http_header(c->req, "x-shoal-session"))
        return NULL;
    const struct kept *k = c->gl->recall->places[place(c)];
    if (!k || k->route != c->route || strcmp(k->client, client_of(c)) != 0 ||
        k->lenient != c->lenient || k->body_bytes != n || memcmp(k->body, c->req->body, n) != 0)
        return NULL;
    return &k->what;
}

void recall_keep(const struct call *c, const struct openai_shape *shape, const struct sink_start *e)
{
    size_t n = c->req ? c->req->body_bytes : 0;
    struct recalled what = {.shape = *shape};
    if (!e->question || n == 0 || n > MAX_BODY_BYTES || strlen(e->model) >= sizeof(what.memo.model))
        return;
    struct kept *k = mem_alloc(sizeof(*k) + n);
    if (!k)
        return;
    memcpy(what.memo.question, e->question, sizeof(what.memo.question));
    what.memo.named = shape->named;
    what.memo.logprobs = shape->logprobs;
    what.memo.n_prompts = shape->n_prompts;
    what.memo.n = shape->n;
    snprintf(what.memo.model, sizeof(what.memo.model), "%s", e->model);
    what.memo.slot = e->slot;
    *k = (struct kept){.route = c->route, .lenient = c->lenient, .body_bytes = n, .what = what};
    snprintf(k->client, sizeof(k->client), "%s", client_of(c));
    memcpy(k->body, c->req->body, n);
    struct kept **at = &c->gl->recall->places[place(c)];
    mem_free(*at);
    *at = k;
}
