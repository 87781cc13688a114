/* holders.c - see holders.h. */
#include "cluster/store/holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/messages/node_state.h"

#define MAX_NODES 1024u
#define FRESH_NS 10000000000u

struct node {
    char address[256], name[128];
    uint64_t heard_ns;
    uint32_t in_flight;
    uint8_t (*sums)[SHA256_BYTES];
    uint32_t n_sums, cap_sums;
};

struct holders {
    struct node nodes[MAX_NODES];
    uint32_t n;
};

int holders_create(struct holders **out, struct err *e)
{
    *out = mem_zalloc(sizeof(**out));
    return *out ? 0 : err_set(e, SHOAL_ENOMEM, "table of nodes");
}

void holders_destroy(struct holders *h)
{
    for (uint32_t i = 0; h && i < h->n; i++)
        mem_free(h->nodes[i].sums);
    mem_free(h);
}

/* The node of this address, or a new one; NULL: there are too many. */
static struct node *node_of(struct holders *h, const char *address, uint64_t now)
{
    struct node *old = NULL;
    for (uint32_t i = 0; i < h->n; i++) {
        if (strcmp(h->nodes[i].address, address) == 0)
            return &h->nodes[i];
        if (now - h->nodes[i].heard_ns > FRESH_NS)
            old = &h->nodes[i];
    }
    if (!old && h->n < MAX_NODES)
        old = &h->nodes[h->n++];
    if (old)
        snprintf(old->address, sizeof(old->address), "%s", address);
    return old;
}

void holders_hear(struct holders *h, const struct node_state *s, uint64_t now_ns)
{
    if (!s->address[0] || strlen(s->address) >= sizeof(h->nodes[0].address) || s->draining)
        return;
    struct node *k = node_of(h, s->address, now_ns);
    if (!k)
        return;
    snprintf(k->name, sizeof(k->name), "%s", s->name);
    k->heard_ns = now_ns;
    k->n_sums = k->in_flight = 0;
    if (s->n_models > k->cap_sums) {
        uint8_t(*more)[SHA256_BYTES] = mem_realloc(k->sums, s->n_models * sizeof(*more));
        if (!more)
            return;
        k->sums = more;
        k->cap_sums = s->n_models;
    }
    for (uint32_t i = 0; i < s->n_models; i++) {
        const struct node_model *m = &s->models[i];
        k->in_flight += m->in_flight;
        /* a loaded model is complete; others may still be fetching */
        if (m->sum && m->state == REGISTRY_READY)
            memcpy(k->sums[k->n_sums++], m->sum, SHA256_BYTES);
    }
}

static int least_busy_first(const void *a, const void *b)
{
    const struct holders_node *x = a, *y = b;
    return x->in_flight != y->in_flight ? (x->in_flight < y->in_flight ? -1 : 1)
                                        : strcmp(x->address, y->address);
}

size_t holders_find(struct holders *h, const uint8_t sha256[SHA256_BYTES], uint64_t now_ns,
                    struct holders_node *out, size_t cap)
{
    size_t n = 0;
    for (uint32_t i = 0; i < h->n && n < cap; i++) {
        const struct node *k = &h->nodes[i];
        bool has = false;
        if (now_ns - k->heard_ns > FRESH_NS)
            continue;
        for (uint32_t s = 0; s < k->n_sums && !has; s++)
            has = memcmp(k->sums[s], sha256, SHA256_BYTES) == 0;
        if (has)
            out[n++] = (struct holders_node){k->address, k->name, k->in_flight};
    }
    qsort(out, n, sizeof(*out), least_busy_first);
    return n;
}
