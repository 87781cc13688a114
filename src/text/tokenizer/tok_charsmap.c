/* tok_charsmap.c - see tok_charsmap.h. */
#include "text/tokenizer/tok_charsmap.h"

#include <string.h>

#include "base/mem.h"
#include "base/rd.h"

struct tok_charsmap {
    size_t n_units, n_text;
    uint32_t *units; /* [n_units] one block with text, owned by units */
    char *text;      /* ends with a NUL */
};

int tok_charsmap_create(struct tok_charsmap **out, const void *bytes, size_t n, struct err *e)
{
    struct rd r = rd_make(bytes, n);
    uint32_t size = rd_u32(&r);
    const uint8_t *units = rd_take(&r, size);
    *out = NULL;
    if (r.bad || size % 4 != 0 || size == 0)
        return err_set(e, SHOAL_EFORMAT, "precompiled_charsmap: a table of %u bytes in %zu", size,
                       n);
    struct tok_charsmap *m = mem_zalloc(sizeof(*m));
    size_t n_text = rd_left(&r);
    if (m)
        m->units = mem_alloc(size + n_text + 1);
    if (!m || !m->units) {
        mem_free(m);
        return err_set(e, SHOAL_ENOMEM, "out of memory for the precompiled_charsmap");
    }
    m->n_units = size / 4;
    m->n_text = n_text;
    memcpy(m->units, units, size);
    m->text = (char *)(m->units + m->n_units);
    if (n_text > 0)
        memcpy(m->text, r.p, n_text);
    m->text[n_text] = 0;
    *out = m;
    return 0;
}

void tok_charsmap_destroy(struct tok_charsmap *m)
{
    if (!m)
        return;
    mem_free(m->units);
    mem_free(m);
}

/* A unit of the double array: its label, whether a value hangs under it, where its children are. */
static bool has_value(uint32_t u)
{
    return u >> 8 & 1;
}

static uint32_t label(uint32_t u)
{
    return u & (1u << 31 | 0xff);
}

static uint32_t offset(uint32_t u)
{
    return u >> 10 << ((u & 1u << 9) >> 6);
}

/* Walks p; true when a key ends in it.  *used: its length. */
static bool walk(const struct tok_charsmap *m, const char *p, size_t n, bool longest, size_t *used,
                 uint32_t *value)
{
    size_t at = offset(m->units[0]);
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        uint8_t b = (uint8_t)p[i];
        at ^= b;
        if (b == 0 || at >= m->n_units || label(m->units[at]) != b)
            break;
        uint32_t u = m->units[at];
        at ^= offset(u);
        if (at >= m->n_units)
            break;
        if (has_value(u)) {
            *value = m->units[at] & 0x7fffffffu;
            *used = i + 1;
            found = true;
            if (!longest)
                break;
        }
    }
    return found;
}

static bool replacement(const struct tok_charsmap *m, uint32_t value, const char **to, size_t *n_to)
{
    if (value >= m->n_text)
        return false;
    *to = m->text + value;
    *n_to = strlen(*to);
    return true;
}

bool tok_charsmap_first(const struct tok_charsmap *m, const char *p, size_t n, const char **to,
                        size_t *n_to)
{
    size_t used;
    uint32_t value;
    return walk(m, p, n, false, &used, &value) && replacement(m, value, to, n_to);
}

bool tok_charsmap_longest(const struct tok_charsmap *m, const char *p, size_t n, size_t *used,
                          const char **to, size_t *n_to)
{
    uint32_t value;
    return walk(m, p, n, true, used, &value) && replacement(m, value, to, n_to);
}
