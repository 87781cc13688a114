/* config_diff.c - see config_diff.h. */
#include "config/config_diff.h"

#include <stdio.h>
#include <string.h>

#define MAX_PATH_BYTES 320u

struct compare {
    const struct config_settings *from, *to;
    void (*fn)(void *ctx, const struct config_change *c);
    void *ctx;
};

static const char *shown(const struct config_setting *s, const struct config_key *k)
{
    if (k->secret)
        return "(hidden)";
    if (s)
        return s->value;
    return k->fallback ? k->fallback : "(default)";
}

/* Whether the settings have anything of the entry path[0, n). */
static bool has_entry(const struct config_settings *s, const char *path, size_t n)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (strncmp(s->v[i].path, path, n) == 0 && s->v[i].path[n] == '.')
            return true;
    return false;
}

/* The outermost entry of a list that s is in and that `other` lacks: its bytes in the path, or
 * 0. */
static size_t lacking(const struct config_setting *s, const struct config_settings *other)
{
    for (const char *p = strchr(s->path, ']'); p; p = strchr(p + 1, ']')) {
        size_t n = (size_t)(p + 1 - s->path);
        if (p[1] == '.' && !has_entry(other, s->path, n))
            return n;
    }
    return 0;
}

/* A setting whose entry is in only one of the files; reported once, at its first setting. */
static bool tell_entry(const struct compare *c, const struct config_settings *own, uint32_t i,
                       const struct config_settings *other, bool added)
{
    char path[MAX_PATH_BYTES];
    const struct config_setting *s = &own->v[i];
    size_t n = lacking(s, other);
    if (n == 0)
        return false;
    for (uint32_t k = 0; k < i; k++)
        if (strncmp(own->v[k].path, s->path, n) == 0 && own->v[k].path[n] == '.')
            return true;
    snprintf(path, sizeof(path), "%.*s", (int)n, s->path);
    const struct config_change x = {path, added ? NULL : "", added ? "" : NULL, false};
    c->fn(c->ctx, &x);
    return true;
}

static void tell(const struct compare *c, const struct config_setting *a,
                 const struct config_setting *b)
{
    const struct config_setting *any = a ? a : b;
    const struct config_change x = {any->path, shown(a, any->key), shown(b, any->key),
                                    any->key->when == CONFIG_START};
    const char *before = a ? a->value : any->key->fallback;
    const char *after = b ? b->value : any->key->fallback;
    if (!before || !after || strcmp(before, after) != 0)
        c->fn(c->ctx, &x);
}

void config_diff(const struct config_settings *from, const struct config_settings *to,
                 void (*fn)(void *ctx, const struct config_change *c), void *ctx)
{
    const struct compare c = {from, to, fn, ctx};
    for (uint32_t i = 0; i < from->n; i++)
        if (!tell_entry(&c, from, i, to, false))
            tell(&c, &from->v[i], config_settings_find(to, from->v[i].path));
    for (uint32_t i = 0; i < to->n; i++)
        if (!tell_entry(&c, to, i, from, true) && !config_settings_find(from, to->v[i].path))
            tell(&c, NULL, &to->v[i]);
}
