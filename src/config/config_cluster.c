/* config_cluster.c - see config.h: whether and how this process may be a member of a shoal.  A file
 * of its own, so that a program that only reads a configuration needs no certificates. */
#include <string.h>

#include "base/mem.h"
#include "cluster/trust/cert.h"
#include "cluster/trust/roles.h"
#include "config/config.h"

static bool is_unix(const char *address)
{
    return strncmp(address, "unix:", 5) == 0;
}

/* Tokens and prompts of a shoal never cross a network in the clear. */
static int check_plain(const struct yaml_in_strs *list, const char *what, struct err *e)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (!is_unix(list->v[i]))
            return err_set(e, SHOAL_EINVAL,
                           "%s %s: members of a shoal need certificates: --certs FOLDER, made by "
                           "shoal ca issue",
                           what, list->v[i]);
    return 0;
}

/* The certificate says who this member is. */
static int check_certs(struct config_cluster *k, unsigned role, struct err *e)
{
    struct cert_files files;
    struct cert_info info;
    char wanted[64];
    int rc = cert_files_in(&files, k->certs, e);
    if (rc == 0)
        rc = cert_check(&info, &files, e);
    if (rc < 0)
        return rc;
    roles_text(wanted, sizeof(wanted), role);
    if (!(info.id.roles & role))
        return err_set(e, SHOAL_EINVAL,
                       "the certificate of '%s' in %s does not have the role %s: shoal ca issue %s "
                       "--force --role %s",
                       info.id.name, k->certs, wanted, info.id.name, wanted);
    if (k->name && strcmp(k->name, info.id.name) != 0)
        return err_set(e, SHOAL_EINVAL,
                       "this member is configured as '%s', but its certificate is for '%s'",
                       k->name, info.id.name);
    k->roles = info.id.roles;
    if (k->name)
        return 0;
    k->name = mem_strdup(info.id.name);
    return k->name ? 0 : err_set(e, SHOAL_ENOMEM, "configuration");
}

int config_check_cluster(struct config *c, unsigned role, struct err *e)
{
    struct config_cluster *k = &c->cluster;
    if (k->heartbeat_ms < 20 || k->silent_ms < 2 * k->heartbeat_ms)
        return err_set(e, SHOAL_EINVAL,
                       "cluster: heartbeat must be at least 20ms, and silent at least twice as "
                       "long");
    if (k->lease_ms && (k->lease_ms < 500 || k->lease_ms > 300000))
        return err_set(e, SHOAL_EINVAL, "cluster: lease must be from 500ms to 5m");
    if (k->certs)
        return check_certs(k, role, e);
    if (k->insecure)
        return 0;
    int rc = check_plain(&k->listen, "cannot listen on", e);
    return rc < 0 ? rc : check_plain(&k->nodes, "cannot use node", e);
}

/* Without certificates everybody may. */
bool config_may_change(const struct config *c)
{
    return !c->cluster.certs || (c->cluster.roles & (ROLE_CONTROLLER | ROLE_ADMIN));
}

bool config_may_control(const struct config *c)
{
    const struct config_cluster *k = &c->cluster;
    return k->nats.n > 0 && k->controller == CONFIG_CONTROLLER_AUTO &&
           (!k->certs || (k->roles & ROLE_CONTROLLER));
}
