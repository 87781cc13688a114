/* home_template.c - see home_template.h. */
#include "flow/home/table/home_template.h"

#include <string.h>

static uint32_t count_parts(const char *text)
{
    uint32_t n = 1;
    for (; *text; text++)
        n += *text == '{' ? 2 : 0;
    return n;
}

/* "name}" or "name|none}" at p, behind the brace; the end of it, or NULL. */
static const char *compile_name(struct home_template_part *out, struct arena *a, const char *p,
                                home_template_find find, void *ctx)
{
    const char *end = p + strcspn(p, "{}");
    if (*end != '}')
        return NULL;
    size_t n = strcspn(p, "|}");
    const char *bar = p[n] == '|' ? p + n + 1 : NULL;
    *out = (struct home_template_part){.var = find(ctx, arena_printf(a, "%.*s", (int)n, p)),
                                       .none = bar ? arena_printf(a, "%.*s", (int)(end - bar), bar)
                                                   : ""};
    return end + 1;
}

const char *home_template_compile(struct home_template *out, struct arena *a, const char *text,
                                  home_template_find find, void *ctx)
{
    struct home_template_part *parts = arena_zalloc_n(a, count_parts(text), sizeof(*parts));
    uint32_t n = 0;
    if (!parts)
        return "out of memory";
    for (const char *p = text; *p;) {
        size_t plain = strcspn(p, "{}");
        if (plain > 0) {
            parts[n++].text = arena_printf(a, "%.*s", (int)plain, p);
            p += plain;
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
    *out = (struct home_template){parts, n};
    return NULL;
}

const char *home_template_fill(struct arena *a, const struct home_template *t,
                               home_template_get get, void *ctx)
{
    const char *out = "";
    for (uint32_t i = 0; i < t->n; i++) {
        const struct home_template_part *p = &t->parts[i];
        const char *s = p->text ? p->text : get(ctx, p->var);
        out = arena_printf(a, "%s%s", out, s ? s : p->none);
    }
    return out;
}
