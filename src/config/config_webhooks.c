/* config_webhooks.c - see config_webhooks.h. */
#include "config/config_webhooks.h"

#include <string.h>

#include "base/mem.h"
#include "config/config_url.h"
#include "config/config_where.h"

int config_webhooks_take(struct yaml_in *r, yaml_node_t *at, void *item, struct config_webhooks *c)
{
    struct config_webhook *k = item;
    const char *wrong = config_url_split(k->url, &k->server, &k->path);
    if (!wrong && k->ca && !config_url_is_secure(k->server))
        wrong = "ca is for an https url";
    for (uint32_t i = 0; !wrong && i < c->n; i++)
        if (strcmp(c->v[i].url, k->url) == 0)
            wrong = "two webhooks have this url";
    if (wrong) {
        mem_free(k->server);
        mem_free(k->path);
        return yaml_in_fail(r, at, "%s", wrong);
    }
    c->v[c->n++] = *k;
    *k = (struct config_webhook){0};
    return 0;
}

int config_webhooks_finish(const struct config_webhooks *c, const struct config_where *w)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (!config_url_allowed(&c->hosts, c->v[i].server))
            return config_where_fail(w, "alarms.webhooks[].url", c->v[i].url,
                                     "add %.100s to alarms.allow to call it",
                                     config_url_host(c->v[i].server));
    return 0;
}

void config_webhooks_fini(struct config_webhooks *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        struct config_webhook *k = &c->v[i];
        char *texts[] = {k->url, k->server, k->path, k->secret_file, k->ca};
        for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++)
            mem_free(texts[t]);
    }
}
