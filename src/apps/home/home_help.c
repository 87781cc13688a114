/* home_help.c - see home_help.h. */
#include "apps/home/home_help.h"

#include <string.h>

static const char *get_text(void *ctx, uint32_t var)
{
    (void)var; /* {text} is the only name */
    return ctx;
}

/* The words for the kinds of things that the home has, each once. */
static const char *kinds_of(struct arena *a, const struct home_table *t, const struct home_file *f)
{
    const char *out = "";
    uint32_t n = 0, most = 0;
    for (uint32_t pass = 0; pass < 2; pass++) { /* the first one counts */
        n = 0;
        for (uint32_t k = 0; k < t->n_kinds; k++) {
            bool has = false;
            for (uint32_t i = 0; i < f->n_things && !has; i++)
                has = strcmp(f->things[i].kind, t->kinds[k].name) == 0;
            if (!has || t->kinds[k].words.n == 0)
                continue;
            const char *word = t->kinds[k].words.w[0];
            n++;
            if (pass == 1)
                out = n == 1      ? word
                      : n == most ? arena_printf(a, "%s %s %s", out, t->list_and, word)
                                  : arena_printf(a, "%s, %s", out, word);
        }
        most = n;
    }
    return out;
}

const char *home_help_about(struct arena *a, const struct home_table *t)
{
    return t->help.about.n > 0 ? home_template_fill(a, &t->help.about, get_text, NULL) : "";
}

const char *home_help_text(struct arena *a, const struct home_table *t,
                           const struct home_here *here, bool simulated)
{
    const struct home_help_table *h = &t->help;
    const char *kinds = here->file ? kinds_of(a, t, here->file) : "";
    const struct {
        const struct home_template *say;
        bool is;
    } parts[] = {
        {&h->things, *kinds != '\0'},     {&h->simulated, *kinds && simulated},
        {&h->later, here->later != NULL}, {&h->lists, here->states != NULL && t->lists.add},
        {&h->live, here->live != NULL},   {&h->always, true}};
    const char *out = "";
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (parts[i].is && parts[i].say->n > 0)
            out = arena_printf(
                a, "%s%s%s", out, *out ? " " : "",
                home_template_fill(a, parts[i].say, get_text, (void *)(uintptr_t)kinds));
    return out;
}
