/* recall.c - see recall.h. */
#include "gateway/recall.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define N_PLACES 256u
#define MAX_BODY_BYTES ((size_t)4 << 10) /* so at most 1 MiB for a loop */

struct kept {
    const struct route *route;
    bool lenient;
    size_t body_bytes;
    struct recalled what;
    char body[];
};

struct recall {
    struct kept *places[N_PLACES]; /* by the hash of the body; the newer one stays */
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

const struct recalled *recall_find(const struct recall *r, const struct call *c)
{
    size_t n = c->req->body_bytes;
    if (n > MAX_BODY_BYTES)
        return NULL;
    const struct kept *k = r->places[place(c)];
    if (!k || k->route != c->route || k->lenient != c->lenient || k->body_bytes != n ||
        memcmp(k->body, c->req->body, n) != 0)
        return NULL;
    return &k->what;
}

void recall_keep(struct recall *r, const struct call *c, const struct recalled *what)
{
    size_t n = c->req->body_bytes;
    struct kept *k = n > MAX_BODY_BYTES ? NULL : mem_alloc(sizeof(*k) + n);
    if (!k)
        return;
    *k = (struct kept){.route = c->route, .lenient = c->lenient, .body_bytes = n, .what = *what};
    memcpy(k->body, c->req->body, n);
    struct kept **at = &r->places[place(c)];
    mem_free(*at);
    *at = k;
}
