/* nats_conf.c - see nats_conf.h. */
#include "cluster/control/nats_conf.h"

#include <stdio.h>
#include <string.h>

#include "cluster/trust/cert.h"
#include "cluster/control/bus.h"
#include "cluster/trust/roles.h"

/* Each role includes the rights of those before it. */
static const enum role order[] = {ROLE_NODE, ROLE_GATEWAY, ROLE_CONTROLLER, ROLE_ADMIN};

/* Subjects that a role may publish and subscribe to, beyond those of weaker roles; %s is the
 * cluster's name. */
static const struct permission {
    enum role role;
    const char *subject;
} publish[] =
    {
        /* reads the desired state */
        {ROLE_NODE, "$JS.API.STREAM.INFO.KV_shoal-%s-desired"},
        {ROLE_NODE, "$JS.API.STREAM.MSG.GET.KV_shoal-%s-desired"},
        /* heartbeats and events */
        {ROLE_NODE, "shoal.%s.hb.*"},
        {ROLE_NODE, "shoal.%s.event.*"},
        {ROLE_NODE, "shoal.%s.copy"}, /* of a desired state that NATS has lost */
        {ROLE_NODE, "$JS.API.STREAM.INFO.SHOAL_EVENTS"},
        {ROLE_NODE, "$JS.API.STREAM.CREATE.SHOAL_EVENTS"},
        {ROLE_GATEWAY, "$JS.API.STREAM.MSG.GET.SHOAL_EVENTS"},
        /* quota slices handed out today */
        {ROLE_GATEWAY, "$JS.API.STREAM.CREATE.KV_shoal-%s-quota"},
        {ROLE_GATEWAY, "$JS.API.STREAM.INFO.KV_shoal-%s-quota"},
        {ROLE_GATEWAY, "$JS.API.STREAM.MSG.GET.KV_shoal-%s-quota"},
        {ROLE_GATEWAY, "$KV.shoal-%s-quota.*"},
        /* idempotency keys and their answers */
        {ROLE_GATEWAY, "$JS.API.STREAM.CREATE.KV_shoal-%s-once"},
        {ROLE_GATEWAY, "$JS.API.STREAM.INFO.KV_shoal-%s-once"},
        {ROLE_GATEWAY, "$JS.API.STREAM.MSG.GET.KV_shoal-%s-once"},
        {ROLE_GATEWAY, "$KV.shoal-%s-once.*"},
        {ROLE_GATEWAY, "shoal.%s.alive.*"}, /* whether a gateway that runs a call is still there */
        /* changes the desired state */
        {ROLE_CONTROLLER, "$JS.API.STREAM.CREATE.KV_shoal-%s-desired"},
        {ROLE_CONTROLLER, "$KV.shoal-%s-desired.state"},
        {ROLE_CONTROLLER, "$KV.shoal-%s-desired.read"},
        {ROLE_CONTROLLER, "shoal.%s.desired"},
        /* the controller's lease */
        {ROLE_CONTROLLER, "$JS.API.STREAM.CREATE.KV_shoal-%s-lease"},
        {ROLE_CONTROLLER, "$JS.API.STREAM.INFO.KV_shoal-%s-lease"},
        {ROLE_CONTROLLER, "$JS.API.STREAM.MSG.GET.KV_shoal-%s-lease"},
        {ROLE_CONTROLLER, "$KV.shoal-%s-lease.controller"},
},
  subscribe[] = {
      {ROLE_NODE, "_INBOX.>"},
      {ROLE_NODE, "shoal.%s.desired"},
      {ROLE_NODE, "shoal.%s.hb.*"}, /* which nodes have a model to fetch */
      {ROLE_GATEWAY, "shoal.%s.event.*"},
      {ROLE_GATEWAY, "shoal.%s.alive.*"},
      {ROLE_CONTROLLER, "shoal.%s.copy"},
};
#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

bool nats_conf_host_ok(const char *host)
{
    size_t n = strlen(host);
    return n > 0 && n < 254 &&
           strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:") == n;
}

static void put_subject(struct buf *b, const char *subject, const char *cluster)
{
    const char *at = strstr(subject, "%s");
    buf_putc(b, '"');
    buf_put(b, subject, at ? (size_t)(at - subject) : strlen(subject));
    if (at) {
        buf_puts(b, cluster);
        buf_puts(b, at + 2);
    }
    buf_puts(b, "\"");
}

static void put_list(struct buf *b, const char *what, const struct permission *p, size_t n,
                     unsigned roles, const char *cluster)
{
    const char *comma = "";
    buf_printf(b, "      %s: [", what);
    for (size_t i = 0; i < n; i++)
        if (p[i].role & roles) {
            buf_printf(b, "%s\n        ", comma);
            put_subject(b, p[i].subject, cluster);
            comma = ",";
        }
    buf_puts(b, "]\n");
}

static void put_users(struct buf *b, const char *cluster)
{
    unsigned roles = 0;
    buf_puts(b, "# Permissions of a certificate, by the first role it names.\n"
                "authorization {\n  users = [\n");
    for (size_t i = 0; i < N_OF(order); i++) {
        char name[32];
        roles |= order[i];
        roles_text(name, sizeof(name), order[i]);
        buf_printf(b, "    { user: \"" CERT_ROLE_URI "%s\", permissions: {\n", name);
        put_list(b, "publish", publish, N_OF(publish), roles, cluster);
        put_list(b, "subscribe", subscribe, N_OF(subscribe), roles, cluster);
        buf_puts(b, "    } }\n");
    }
    buf_puts(b, "  ]\n}\n");
}

static void put_tls(struct buf *b, const char *indent, const char *check)
{
    buf_printf(b,
               "%stls {\n%s  cert_file: \"cert.pem\"\n%s  key_file: \"key.pem\"\n"
               "%s  ca_file: \"ca.pem\"\n%s  %s: true\n%s  timeout: 5\n%s}\n",
               indent, indent, indent, indent, indent, check, indent, indent);
}

/* An IPv6 address is written in brackets. */
static const char *bracket(const char *host, bool open)
{
    return strchr(host, ':') ? open ? "[" : "]" : "";
}

static void put_cluster(struct buf *b, const struct nats_conf *c)
{
    buf_printf(b,
               "# Servers know each other by certificate and by this secret, which no member has.\n"
               "cluster {\n  name: \"%s\"\n  listen: \"0.0.0.0:%u\"\n"
               "  authorization { user: server, password: \"%s\", timeout: 5 }\n  routes: [\n",
               c->cluster, c->route[c->index], c->secret);
    for (size_t i = 0; i < c->n_servers; i++)
        buf_printf(b, "    \"nats://server:%s@%s%s%s:%u\"\n", c->secret, bracket(c->hosts[i], true),
                   c->hosts[i], bracket(c->hosts[i], false), c->route[i]);
    buf_puts(b, "  ]\n");
    put_tls(b, "  ", "verify");
    buf_puts(b, "}\n");
}

int nats_conf_put(struct buf *out, const struct nats_conf *c, struct err *e)
{
    if (!bus_cluster_ok(c->cluster))
        return err_set(e, SHOAL_EINVAL,
                       "'%s' is not a valid name for a cluster: use up to %u of a-z, 0-9 and -",
                       c->cluster, BUS_MAX_CLUSTER);
    if (c->n_servers != 1 && c->n_servers != 3 && c->n_servers != 5)
        return err_set(e, SHOAL_EINVAL,
                       "%zu NATS servers: use 1, 3 or 5, of which a majority must be up",
                       c->n_servers);
    for (size_t i = 0; i < c->n_servers; i++)
        if (!nats_conf_host_ok(c->hosts[i]))
            return err_set(e, SHOAL_EINVAL, "'%s' is not the name or address of a host",
                           c->hosts[i]);
    buf_printf(out,
               "# NATS server %zu of %zu of the shoal %s, written by 'shoal cluster init'.\n"
               "# Start it in this folder: nats-server -c nats.conf\n"
               "server_name: \"%s-%zu\"\n"
               "listen: \"0.0.0.0:%u\"\n"
               "max_payload: 8MB # the desired state is one message\n"
               "jetstream {\n  store_dir: \"data\"\n  max_memory_store: 64MB\n"
               "  max_file_store: 1GB\n}\n",
               c->index + 1, c->n_servers, c->cluster, c->cluster, c->index + 1, c->port[c->index]);
    put_tls(out, "", "verify_and_map");
    if (c->n_servers > 1)
        put_cluster(out, c);
    put_users(out, c->cluster);
    return out->rc < 0 ? err_set(e, out->rc, "configuration of nats-server") : 0;
}
