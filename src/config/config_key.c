/* config_key.c - see config_key.h: looking rows up. */
#include "config/config_key.h"

#include <string.h>

const char *config_key_leaf(const struct config_key *k)
{
    const char *dot = strrchr(k->path, '.');
    return dot ? dot + 1 : k->path;
}

bool config_key_in(const struct config_key *k, const struct config_key *parent)
{
    const char *rest = k->path;
    if (parent) {
        size_t n = strlen(parent->path);
        const char *joint = parent->type == CONFIG_ITEMS ? "[]." : ".";
        if (strncmp(rest, parent->path, n) != 0 || strncmp(rest + n, joint, strlen(joint)) != 0)
            return false;
        rest += n + strlen(joint);
    }
    return !strchr(rest, '.');
}

const char *config_key_choice(const struct config_key *k, uint32_t i, size_t *n_bytes)
{
    const char *p = k->choices;
    for (; p && i > 0; i--) {
        p = strchr(p, '|');
        p = p ? p + 1 : NULL;
    }
    *n_bytes = p ? strcspn(p, "|") : 0;
    return p;
}
