/* request.c - see request.h. */
#include "flow/request.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "engine/estimate.h"
#include "wire/json_nul.h"

#define KEPT_BYTES ((size_t)16 << 10) /* memory kept by a request for reuse */

struct request *request_create(void)
{
    struct request *r = mem_zalloc(sizeof(*r));
    if (r)
        arena_init(&r->arena, REQUEST_MAX_BYTES);
    return r;
}

void request_destroy(struct request *r)
{
    if (!r)
        return;
    trace_unref(r->spans.trace);
    arena_fini(&r->arena);
    mem_free(r);
}

void request_reset(struct request *r)
{
    struct arena kept = r->arena;
    trace_unref(r->spans.trace);
    arena_reset(&kept, KEPT_BYTES);
    memset(r, 0, sizeof(*r));
    r->arena = kept;
}

void request_trace(struct request *r, const struct trace_at *at)
{
    struct trace *before = r->spans.trace;
    r->spans = *at;
    (void)trace_ref(at->trace);
    trace_unref(before);
}

void request_borrow(struct request *to, const struct request *from)
{
    struct arena own = to->arena;
    trace_unref(to->spans.trace);
    *to = *from;
    (void)trace_ref(to->spans.trace);
    to->arena = own;
    to->held_epoch = 0; /* `from` holds it */
}

const char *request_copy(struct request *r, const char *p, size_t n)
{
    char *to = arena_bytes(&r->arena, n + 1);
    if (!to)
        return "";
    if (n > 0)
        memcpy(to, p, n);
    to[n] = '\0';
    return to;
}

const char *request_copy_utf8(struct request *r, const char *p, size_t n, size_t *n_out)
{
    size_t len;
    if (r->nul_hidden)
        p = json_nul_text(&r->arena, p, n, &n);
    if (!p)
        return NULL; /* request_rc tells */
    const char *good = utf8_repaired(&r->arena, p, n, &len);
    if (n_out)
        *n_out = len;
    return good == p ? request_copy(r, p, n) : good;
}

void request_set_budget(struct request *r, double ms)
{
    uint64_t at = r->received_ns + (uint64_t)(ms * 1e6);
    if (ms > 0 && (r->deadline_ns == 0 || at < r->deadline_ns))
        r->deadline_ns = at;
}

uint64_t request_stay_key(const struct request *r)
{
    if (r->session[0])
        return hash_bytes(r->session, strlen(r->session), 1);
    if (r->client.name[0])
        return hash_bytes(r->client.name, strlen(r->client.name), 2);
    return r->from;
}

uint64_t request_client_id(const struct request_client *c)
{
    size_t n = strnlen(c->name, sizeof(c->name));
    return n > 0 ? hash_bytes(c->name, n, 0) | 1u : 0;
}

struct fair_who request_who(const struct request *r)
{
    int64_t priority = (int64_t)r->client.priority + r->priority;
    priority = priority < INT32_MIN ? INT32_MIN : priority > INT32_MAX ? INT32_MAX : priority;
    return (struct fair_who){.client = request_client_id(&r->client),
                             .weight = r->client.weight,
                             .priority = (int32_t)priority};
}
