/* config_trust.c - see config_trust.h. */
#include "config/config_trust.h"

#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "supply/trust_policy.h"

int config_trust_take(struct yaml_in *r, yaml_node_t *at, void *item, struct config_trust *c)
{
    struct config_signer *k = item;
    if (!k->key == !k->certificate)
        return yaml_in_fail(r, at, "a signer needs either key or certificate");
    if (k->subject && !k->certificate)
        return yaml_in_fail(r, at, "subject is for signers with a certificate");
    for (uint32_t i = 0; i < c->n; i++)
        if (strcmp(c->v[i].name, k->name) == 0)
            return yaml_in_fail(r, at,
                                "two signers have this name; several keys of one signer "
                                "need names of their own");
    struct tm day = {0};
    const char *end = k->until ? strptime(k->until, "%Y-%m-%d", &day) : NULL;
    if (k->until && (!end || *end))
        return yaml_in_fail(r, at, "until is a day: 2027-12-31");
    k->until_s = k->until ? (int64_t)timegm(&day) : 0;
    c->v[c->n++] = *k; /* the row has the limit of the array */
    *k = (struct config_signer){.name = NULL};
    return 0;
}

void config_trust_fini(struct config_trust *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        mem_free(c->v[i].name);
        mem_free(c->v[i].key);
        mem_free(c->v[i].certificate);
        mem_free(c->v[i].subject);
        mem_free(c->v[i].until);
        yaml_in_strs_fini(&c->v[i].models);
    }
    yaml_in_strs_fini(&c->revoked);
}

int config_trust_open(struct trust_policy **out, const struct config_trust *c, struct err *e)
{
    struct trust_policy_signer signers[CONFIG_MAX_SIGNERS];
    *out = NULL;
    if (c->n == 0 && !c->require && c->revoked.n == 0)
        return 0;
    for (uint32_t i = 0; i < c->n; i++)
        signers[i] = (struct trust_policy_signer){.name = c->v[i].name,
                                                  .key = c->v[i].key,
                                                  .certificates = c->v[i].certificate,
                                                  .subject = c->v[i].subject,
                                                  .until_s = c->v[i].until_s,
                                                  .models = (const char *const *)c->v[i].models.v,
                                                  .n_models = c->v[i].models.n};
    const struct trust_policy_opts o = {.signers = signers,
                                        .n_signers = c->n,
                                        .signatures = c->signatures,
                                        .revoked = (const char *const *)c->revoked.v,
                                        .n_revoked = c->revoked.n,
                                        .require = c->require == 1,
                                        .included = c->included};
    return trust_policy_create(out, &o, e);
}
