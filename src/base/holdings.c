/* holdings.c - see holdings.h. */
#include "base/holdings.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/room.h"

uint64_t holdings_who(const char *name)
{
    return hash_bytes(name, strlen(name), 0);
}

static struct holding *find(const struct holdings *s, uint64_t who)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->rows[i].who == who)
            return &s->rows[i];
    return NULL;
}

bool holdings_add(struct holdings *s, uint64_t who, size_t n)
{
    struct holding *row = find(s, who);
    if (!row && !room_make32(&s->rows, &s->cap, s->n, sizeof(*s->rows), 8))
        return false;
    if (!row) {
        row = &s->rows[s->n++];
        *row = (struct holding){.who = who};
    }
    row->held += n;
    return true;
}

void holdings_sub(struct holdings *s, uint64_t who, size_t n)
{
    struct holding *row = find(s, who);
    if (row && (row->held -= n) == 0)
        *row = s->rows[--s->n];
}

size_t holdings_held(const struct holdings *s, uint64_t who)
{
    const struct holding *row = find(s, who);
    return row ? row->held : 0;
}

uint64_t holdings_most(const struct holdings *s, uint64_t own)
{
    struct holding most = {.who = own, .held = holdings_held(s, own)};
    for (uint32_t i = 0; i < s->n; i++)
        if (s->rows[i].held > most.held)
            most = s->rows[i];
    return most.who;
}

void holdings_fini(struct holdings *s)
{
    mem_free(s->rows);
    *s = (struct holdings){.n = 0};
}
