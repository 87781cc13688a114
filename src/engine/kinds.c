/* kinds.c - see kinds.h. */
#include "engine/kinds.h"

#include <stddef.h>
#include <stdio.h>

static const struct {
    enum shoal_kind kind;
    const char *name;
} kinds[] = {
    {SHOAL_KIND_GENERATE, "generate"}, {SHOAL_KIND_CLASSIFY, "classify"},
    {SHOAL_KIND_TAG, "tag"},           {SHOAL_KIND_EMBED, "embed"},
    {SHOAL_KIND_RERANK, "rerank"},     {SHOAL_KIND_SUMMARIZE, "summarize"},
    {SHOAL_KIND_SCORE, "score"},       {SHOAL_KIND_TRANSCRIBE, "transcribe"},
    {SHOAL_KIND_SPEAK, "speak"},
};

const char *shoal_kind_name(enum shoal_kind kind)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i].kind == kind)
            return kinds[i].name;
    return NULL;
}

/* "classify, embed" */
static void list_kinds(unsigned have, char *out, size_t cap)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && n < cap; i++)
        if (have & kinds[i].kind)
            n += (size_t)snprintf(out + n, cap - n, "%s%s", n ? ", " : "", kinds[i].name);
}

int kinds_lack(unsigned have, enum shoal_kind wanted, struct err *e)
{
    char list[96];
    const char *name = shoal_kind_name(wanted);
    list_kinds(have, list, sizeof(list));
    return err_set(e, SHOAL_EUNSUPPORTED, "this model cannot %s; it can: %s",
                   name ? name : "do that", list);
}
