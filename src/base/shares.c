/* shares.c - see shares.h. */
#include "base/shares.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

uint64_t shares_who(const char *name)
{
    return hash_bytes(name, strlen(name), 0);
}

static struct share *find(const struct shares *s, uint64_t who)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->rows[i].who == who)
            return &s->rows[i];
    return NULL;
}

bool shares_add(struct shares *s, uint64_t who, size_t n)
{
    struct share *row = find(s, who);
    if (!row && s->n == s->cap) {
        const uint32_t cap = s->cap ? 2 * s->cap : 8;
        struct share *rows = mem_realloc(s->rows, cap * sizeof(*rows));
        if (!rows)
            return false;
        s->rows = rows;
        s->cap = cap;
    }
    if (!row) {
        row = &s->rows[s->n++];
        *row = (struct share){.who = who};
    }
    row->held += n;
    return true;
}

void shares_sub(struct shares *s, uint64_t who, size_t n)
{
    struct share *row = find(s, who);
    if (row && (row->held -= n) == 0)
        *row = s->rows[--s->n];
}

size_t shares_held(const struct shares *s, uint64_t who)
{
    const struct share *row = find(s, who);
    return row ? row->held : 0;
}

uint64_t shares_most(const struct shares *s, uint64_t own)
{
    struct share most = {.who = own, .held = shares_held(s, own)};
    for (uint32_t i = 0; i < s->n; i++)
        if (s->rows[i].held > most.held)
            most = s->rows[i];
    return most.who;
}

void shares_fini(struct shares *s)
{
    mem_free(s->rows);
    *s = (struct shares){.n = 0};
}
