/* place_kind.c - see place_kind.h. */
#include "depot/place_kind.h"

#include <string.h>

static const char *const kinds[PLACE_KIND_N] = {"recipes", "hub", "oci", "url", "path"};

const char *place_kind_name(enum place_kind kind)
{
    return kinds[kind];
}

int place_kind_find(const char *name)
{
    for (int i = 0; i < PLACE_KIND_N; i++)
        if (strcmp(kinds[i], name) == 0)
            return i;
    return -1;
}
