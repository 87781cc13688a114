/* home_template.c - see home_template.h. */
#include "apps/home/table/home_template.h"

#include <string.h>

static uint32_t count_parts(const char *text)
{
    uint32_t n = 1;
    for (; *text; text++)
        n += strchr("{[]", *text) ? 2 : 0;
    return n;
}

/* Parses "name}" or "name|none}" at p, after the brace; returns its end, or NULL. */
static const char *compile_name(struct home_template_part *out, struct arena *a, const char *p,
                                home_template_find find, void *ctx)
{
    const char *end = p + strcspn(p, "{}");
    if (*end != '}')
        return NULL;
    size_t n = strcspn(p, "|}");
    const char *bar = p[n] == '|' ? p + n + 1 : NULL;
    out->var = find(ctx, arena_printf(a, "%.*s", (int)n, p));
    out->none = bar ? arena_printf(a, "%.*s", (int)(end - bar), bar) : "";
    return end + 1;
}

const char *home_template_compile(struct home_template *out, struct arena *a, const char *text,
                                  home_template_find find, void *ctx)
{
    struct home_template_part *parts = arena_zalloc_n(a, count_parts(text), sizeof(*parts));
    uint32_t n = 0, groups = 0, group = 0;
    if (!parts)
        return "out of memory";
    for (const char *p = text; *p;) {
        size_t plain = strcspn(p, "{}[]");
        parts[n].group = group;
        if (plain > 0) {
            parts[n++].text = arena_printf(a, "%.*s", (int)plain, p);
            p += plain;
            continue;
        }
        if (*p == '[' || *p == ']') {
            if ((*p == '[') == (group > 0))
                return "unbalanced [ or ]";
            group = *p++ == '[' ? ++groups : 0;
            continue;
        }
        const char *end = *p == '{' ? compile_name(&parts[n], a, p + 1, find, ctx) : NULL;
        if (!end)
            return "unbalanced { or }";
        if (parts[n++].var == UINT32_MAX)
            return arena_printf(a, "unknown placeholder %.*s", (int)(end - p > 40 ? 40 : end - p),
                                p);
        p = end;
    }
    if (group > 0)
        return "unbalanced [ or ]";
    *out = (struct home_template){parts, n};
    return NULL;
}

/* Is a value missing in the group that part `at` begins? *end: the part after the group. */
static bool misses(const struct home_template *t, uint32_t at, home_template_get get, void *ctx,
                   uint32_t *end)
{
    const uint32_t group = t->parts[at].group;
    bool miss = false;
    for (*end = at; *end < t->n && t->parts[*end].group == group; ++*end) {
        const struct home_template_part *p = &t->parts[*end];
        const char *s = p->text ? p->text : get(ctx, p->var);
        miss |= !s || !*s;
    }
    return miss;
}

const char *home_template_fill(struct arena *a, const struct home_template *t,
                               home_template_get get, void *ctx)
{
    const char *out = "";
    for (uint32_t i = 0; i < t->n; i++) {
        const struct home_template_part *p = &t->parts[i];
        uint32_t end;
        if (p->group > 0 && (i == 0 || p[-1].group != p->group) && misses(t, i, get, ctx, &end)) {
            i = end - 1;
            continue;
        }
        const char *s = p->text ? p->text : get(ctx, p->var);
        out = arena_printf(a, "%s%s", out, s ? s : p->none);
    }
    return out;
}
