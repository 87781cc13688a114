/* cmd_cluster_init.c - shoal cluster init: writes what the NATS servers of a shoal need. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/control/nats_conf.h"
#include "cmd/cmd.h"
#include "wire/json_out.h"

#define MAX_CONF_BYTES (256u << 10)

static const struct opts_def defs[] = {
    {"dir", 'd', OPTS_TEXT, "DIR", NULL, 0, 0, "folder to write to; is created"},
    {"name", 0, OPTS_TEXT, "NAME", "shoal", 0, 0, "name of the shoal: up to 32 of a-z, 0-9 and -"},
    {"servers", 0, OPTS_CHOICE, "1|3|5", "1", 0, 0,
     "NATS servers; the shoal can be changed while more than half of them are up"},
    {"host", 0, OPTS_LIST, "HOST", NULL, 0, 0,
     "name or address of a server, once for each; default: all of them on 127.0.0.1"},
    {"port", 0, OPTS_UINT, "N", "4222", 1, 65000,
     "port for members; servers on the same host count up from it"},
    {"route-port", 0, OPTS_UINT, "N", "6222", 1, 65000,
     "port between servers, counted up likewise"},
    {"force", 0, OPTS_FLAG, NULL, NULL, 0, 0, "replace configurations that exist"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"},
};

static const struct opts_page page = {
    .command = "cluster init",
    .arguments = "",
    .summary = "Writes the configuration of a shoal's NATS servers.",
    .details =
        "DIR/nats-1 to DIR/nats-5 each get a nats.conf: JetStream, TLS with certificates on both\n"
        "sides, and permissions by role.  A folder is all that its server needs: copy it to the "
        "server's\nmachine and start nats-server there.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal cluster init --dir shoal\n"
                "  shoal cluster init --dir shoal --name home --servers 3 \\\n"
                "      --host 10.0.0.1 --host 10.0.0.2 --host 10.0.0.3\n",
};

struct site {
    const struct opts *o;
    const char *dir;
    struct nats_conf conf;
    const char *hosts[NATS_CONF_MAX_SERVERS];
    char secret[33];
};

/* Servers on one host have ports of their own. */
static int fill(struct site *s)
{
    const char *const *hosts;
    const struct opts *o = s->o;
    size_t n_hosts = opts_list(o, "host", &hosts);
    size_t n = (size_t)(opts_text(o, "servers")[0] - '0');
    uint64_t secret[2];
    if (n_hosts && n_hosts != n)
        return opts_usage(o->page, "%zu servers and %zu times --host: give one for each", n,
                          n_hosts);
    if (getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
        return cmd_fail(o->page, "no random bytes");
    snprintf(s->secret, sizeof(s->secret), "%016llx%016llx", (unsigned long long)secret[0],
             (unsigned long long)secret[1]);
    s->dir = opts_text(o, "dir");
    s->conf = (struct nats_conf){
        .cluster = opts_text(o, "name"), .hosts = s->hosts, .n_servers = n, .secret = s->secret};
    for (size_t i = 0; i < n; i++) {
        unsigned before = 0;
        s->hosts[i] = n_hosts ? hosts[i] : "127.0.0.1";
        for (size_t k = 0; k < i; k++)
            before += strcmp(s->hosts[k], s->hosts[i]) == 0;
        s->conf.port[i] = opts_u32(o, "port") + before;
        s->conf.route[i] = opts_u32(o, "route-port") + before;
    }
    return CMD_OK;
}

static int make_dir(const struct site *s, const char *path)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return CMD_OK;
    return cmd_fail(s->o->page, "cannot create %s: %s", path, strerror(errno));
}

static int write_file(const struct site *s, const char *path, const struct buf *b)
{
    bool force = opts_flag(s->o, "force");
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL), 0600);
    if (fd < 0 && errno == EEXIST)
        return cmd_fail(s->o->page,
                        "%s exists: --force replaces it, with a new secret for all "
                        "servers",
                        path);
    bool ok = fd >= 0 && write(fd, b->data, b->len) == (ssize_t)b->len && fsync(fd) == 0;
    int error = errno;
    if (fd >= 0)
        close(fd);
    return ok ? CMD_OK : cmd_fail(s->o->page, "cannot write %s: %s", path, strerror(error));
}

static int write_server(struct site *s, size_t i)
{
    char dir[PATH_MAX], path[PATH_MAX];
    struct err e = {0};
    struct buf b;
    s->conf.index = i;
    if (snprintf(dir, sizeof(dir), "%s/nats-%zu", s->dir, i + 1) >= (int)sizeof(dir) ||
        snprintf(path, sizeof(path), "%s/nats.conf", dir) >= (int)sizeof(path))
        return cmd_fail(s->o->page, "the path %.100s... is too long", s->dir);
    buf_init(&b, MAX_CONF_BYTES);
    int rc = nats_conf_put(&b, &s->conf, &e) < 0 ? cmd_fail(s->o->page, "%s", e.msg) : CMD_OK;
    if (rc == CMD_OK)
        rc = make_dir(s, s->dir);
    if (rc == CMD_OK)
        rc = make_dir(s, dir);
    if (rc == CMD_OK)
        rc = write_file(s, path, &b);
    buf_fini(&b);
    return rc;
}

static void put_url(struct buf *b, const struct site *s, size_t i)
{
    bool v6 = strchr(s->hosts[i], ':') != NULL;
    buf_printf(b, "tls://%s%s%s:%u", v6 ? "[" : "", s->hosts[i], v6 ? "]" : "", s->conf.port[i]);
}

static void put_report(struct buf *b, const struct site *s)
{
    buf_printf(b, "shoal %s: %zu NATS server%s\n", s->conf.cluster, s->conf.n_servers,
               s->conf.n_servers == 1 ? "" : "s");
    for (size_t i = 0; i < s->conf.n_servers; i++) {
        buf_puts(b, "  ");
        put_url(b, s, i);
        buf_printf(b, "  %s/nats-%zu\n", s->dir, i + 1);
    }
    buf_puts(b, "Next, on the machine of each server: cd nats-N && nats-server -c nats.conf\n");
}

static void put_json(struct buf *b, const struct site *s)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_key(&j, "cluster");
    json_out_str(&j, s->conf.cluster);
    json_out_key(&j, "servers");
    json_out_array(&j);
    for (size_t i = 0; i < s->conf.n_servers; i++) {
        char text[PATH_MAX];
        struct buf url;
        buf_init(&url, sizeof(text));
        put_url(&url, s, i);
        json_out_object(&j);
        json_out_key(&j, "url");
        json_out_str(&j, buf_str(&url));
        snprintf(text, sizeof(text), "%.4000s/nats-%zu", s->dir, i + 1);
        json_out_key(&j, "dir");
        json_out_str(&j, text);
        json_out_object_end(&j);
        buf_fini(&url);
    }
    json_out_array_end(&j);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

int cmd_cluster_init(int argc, const char *const *argv)
{
    struct site s = {0};
    struct buf b;
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    s.o = &o;
    if (!opts_text(&o, "dir"))
        rc = opts_usage(&page, "--dir is missing: the folder to write to");
    else
        rc = fill(&s);
    for (size_t i = 0; rc == CMD_OK && i < s.conf.n_servers; i++)
        rc = write_server(&s, i);
    buf_init(&b, MAX_CONF_BYTES);
    if (rc == CMD_OK) {
        if (opts_flag(&o, "json"))
            put_json(&b, &s);
        else
            put_report(&b, &s);
        rc = cmd_print(&page, &b);
    }
    buf_fini(&b);
    opts_fini(&o);
    return rc;
}
