/* roles.c - see roles.h. */
#include "cluster/trust/roles.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    enum role role;
} names[] = {{"gateway", ROLE_GATEWAY},
             {"node", ROLE_NODE},
             {"controller", ROLE_CONTROLLER},
             {"admin", ROLE_ADMIN},
             {"broker", ROLE_BROKER}};
#define N_NAMES (sizeof(names) / sizeof(names[0]))

int roles_parse(unsigned *out, const char *text, struct err *e)
{
    *out = 0;
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, ","), i = 0;
        while (i < N_NAMES && (strlen(names[i].name) != n || strncmp(names[i].name, p, n) != 0))
            i++;
        if (i == N_NAMES)
            return err_set(e, SHOAL_EINVAL,
                           "unknown role '%.*s': use gateway, node, controller, admin, broker, "
                           "separated by commas",
                           (int)n, p);
        *out |= names[i].role;
        p += n + (p[n] == ',');
    }
    return *out ? 0
                : err_set(e, SHOAL_EINVAL,
                          "no role: use gateway, node, controller, admin or broker");
}

void roles_text(char *out, size_t cap, unsigned roles)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < N_NAMES && at < cap; i++)
        if (roles & names[i].role)
            at += (size_t)snprintf(out + at, cap - at, "%s%s", at ? "," : "", names[i].name);
}
