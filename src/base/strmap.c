/* strmap.c - see strmap.h.  Open addressing with linear probing. */
#include "base/strmap.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

int strmap_init(struct strmap *m, size_t n_keys)
{
    size_t n = 16;
    while (n < n_keys * 2)
        n *= 2;
    m->slots = mem_zalloc_n(n, sizeof(*m->slots));
    m->n_slots = m->slots ? n : 0;
    m->n_used = 0;
    return m->slots ? 0 : SHOAL_ENOMEM;
}

void strmap_fini(struct strmap *m)
{
    mem_free(m->slots);
    *m = (struct strmap){0};
}

/* The slot that holds key, or the free slot where it belongs. */
static struct strmap_slot *find(const struct strmap *m, const char *key, size_t len)
{
    size_t i = hash_bytes(key, len, 0) & (m->n_slots - 1);
    for (;; i = (i + 1) & (m->n_slots - 1)) {
        struct strmap_slot *s = &m->slots[i];
        if (!s->key || (s->len == len && memcmp(s->key, key, len) == 0))
            return s;
    }
}

static int grow(struct strmap *m)
{
    struct strmap bigger;
    if (strmap_init(&bigger, m->n_slots) < 0)
        return SHOAL_ENOMEM;
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->slots[i].key)
            *find(&bigger, m->slots[i].key, m->slots[i].len) = m->slots[i];
    bigger.n_used = m->n_used;
    mem_free(m->slots);
    *m = bigger;
    return 0;
}

int strmap_put(struct strmap *m, const char *key, size_t len, uint32_t value)
{
    if (len > UINT32_MAX)
        return SHOAL_ELIMIT;
    if ((m->n_used + 1) * 2 > m->n_slots && grow(m) < 0)
        return SHOAL_ENOMEM;
    struct strmap_slot *s = find(m, key, len);
    if (s->key)
        return 1;
    *s = (struct strmap_slot){key, (uint32_t)len, value};
    m->n_used++;
    return 0;
}

bool strmap_get(const struct strmap *m, const char *key, size_t len, uint32_t *value)
{
    if (m->n_slots == 0)
        return false;
    const struct strmap_slot *s = find(m, key, len);
    if (!s->key)
        return false;
    *value = s->value;
    return true;
}
