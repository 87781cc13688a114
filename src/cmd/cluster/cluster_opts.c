/* cluster_opts.c - see cluster_opts.h. */
#include "cmd/cluster/cluster_opts.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

#include "cluster/control/bus.h"
#include "cluster/store/fetch_url.h"
#include "cmd/cmd.h"

static const struct opts_def defs[] = {
    {"nats", 0, OPTS_LIST, "URL", NULL, 0, 0,
     "NATS server, nats://HOST:PORT or tls://HOST:PORT; may be repeated; default: $SHOAL_NATS, or "
     "nats://127.0.0.1:4222"},
    {"cluster", 0, OPTS_TEXT, "NAME", NULL, 0, 0,
     "name of the shoal; default: $SHOAL_CLUSTER, or shoal"},
    {"certs", 0, OPTS_TEXT, "DIR", NULL, 0, 0,
     "folder with cert.pem, key.pem and ca.pem, as 'shoal ca issue' writes it; default: "
     "$SHOAL_CERTS, or no TLS"},
    {"timeout", 0, OPTS_UINT, "S", "5", 1, 600, "seconds to wait for a server"},
};
const struct opts_group cluster_opts_nats = OPTS_GROUP_INIT("Connection", defs);

static const char *or_else(const char *s, const char *fallback)
{
    return s && s[0] ? s : fallback;
}

int cluster_opts_connect(struct bus **out, const struct opts *o, struct executor *x)
{
    const char *cluster = opts_text(o, "cluster");
    const char *one = or_else(getenv("SHOAL_NATS"), "nats://127.0.0.1:4222");
    const char *certs = opts_text(o, "certs");
    const char *const *urls;
    static const char *const names[] = {"ca.pem", "cert.pem", "key.pem"};
    char files[3][PATH_MAX];
    struct err e = {0};
    if (!certs)
        certs = or_else(getenv("SHOAL_CERTS"), NULL);
    size_t n = opts_list(o, "nats", &urls);
    struct bus_opts b = {.cluster = cluster ? cluster : or_else(getenv("SHOAL_CLUSTER"), "shoal"),
                         .name = o->page->command,
                         .urls = n ? urls : &one,
                         .n_urls = n ? n : 1,
                         .ca_file = certs ? files[0] : NULL,
                         .cert_file = certs ? files[1] : NULL,
                         .key_file = certs ? files[2] : NULL};
    *out = NULL;
    for (size_t i = 0; certs && i < 3; i++)
        if (snprintf(files[i], PATH_MAX, "%s/%s", certs, names[i]) >= PATH_MAX)
            return cmd_fail(o->page, "the path of --certs is too long");
    if (bus_open(out, &b, x, NULL, NULL, &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    if (bus_wait(*out, opts_u32(o, "timeout") * 1000, &e) < 0) {
        bus_close(*out);
        *out = NULL;
        return cmd_fail(o->page, "%s: %s", b.urls[0], e.msg);
    }
    return CMD_OK;
}

int cluster_opts_check_source(const struct opts *o)
{
    const char *source = opts_text(o, "source");
    bool file = source && strncmp(source, "file:///", strlen("file:///")) == 0;
    if (source && source[0] && !file && !fetch_url_ok(source))
        return opts_usage(o->page,
                          "--source: nodes cannot fetch from %.100s: use https://, http:// or "
                          "file:///PATH in their model_dirs",
                          source);
    return CMD_OK;
}
