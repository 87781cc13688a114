/* cmd_cluster_init.c - shoal cluster init: writes the configuration of a shoal's NATS servers. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file_read.h"
#include "cluster/trust/ca.h"
#include "cluster/control/nats_conf.h"
#include "cluster/trust/roles.h"
#include "cmd/cluster/cluster_start.h"
#include "cmd/cmd.h"
#include "wire/json_out.h"

cmd_fn cmd_cluster_init;

#define MAX_CONF_BYTES (256u << 10)
#define ADMIN "admin"
enum { CA_DAYS = 3650, CERT_DAYS = 365 };

static const struct opts_def defs[] = {
    {"dir", 'd', OPTS_TEXT, "DIR", "ca", 0, 0, "folder of the CA ('shoal ca'); created if missing"},
    {"name", 0, OPTS_TEXT, "NAME", "shoal", 0, 0, "name of the shoal: up to 32 of a-z, 0-9 and -"},
    {"servers", 0, OPTS_CHOICE, "1|3|5", NULL, 0, 0,
     "NATS servers; the shoal can be changed while more than half of them are up (default: 3 if "
     "three members have a HOST, else 1)"},
    {"host", 0, OPTS_LIST, "HOST", NULL, 0, 0,
     "name or address of a server, once for each; default: the first members, else 127.0.0.1"},
    {"port", 0, OPTS_UINT, "N", "4222", 1, 65000,
     "port for members; servers on the same host count up from it"},
    {"route-port", 0, OPTS_UINT, "N", "6222", 1, 65000, "port between servers, likewise"},
    {"member", 0, OPTS_LIST, "NAME[=HOST]", NULL, 0, 0,
     "machine that serves models and clients, with its address for other members; may be repeated"},
    {"join", 0, OPTS_TEXT, "NAME", NULL, 0, 0,
     "then start the first NATS server and this member here, like 'shoal cluster join'"},
    {"force", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "replace the configurations and certificates of servers and members; the CA stays"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"},
};

static const struct opts_page page = {
    .command = "cluster init",
    .arguments = "",
    .summary = "Creates what the NATS servers of a shoal need: a CA, certificates, configurations.",
    .details =
        "DIR/members/nats-1 to nats-5 each get a certificate and a nats.conf: JetStream, TLS "
        "with\ncertificates on both sides, and permissions by role.  A folder is all that "
        "its server needs: copy\nit to the server's machine and start nats-server in it.  "
        "DIR/members/admin is for you.\nEach --member gets a folder too: copy it to its machine "
        "and "
        "run 'shoal cluster join FOLDER' there.\nThe first members run the NATS servers, unless "
        "--host says otherwise: 'cluster join' starts, watches\nand stops them, from the folder "
        "nats in the member's.  One server is enough until it fails;\nof three, any one may.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples =
        "  shoal cluster init\n"
        "  shoal cluster init --dir home-ca --name home --servers 3 \\\n"
        "      --host 10.0.0.1 --host 10.0.0.2 --host 10.0.0.3\n"
        "  shoal cluster init --host 10.0.0.1 --member hub1=10.0.0.1 --member hub2=10.0.0.2 "
        "--join hub1\n",
};

struct site {
    const struct opts *o;
    struct ca *ca;
    struct nats_conf conf;
    const char *hosts[NATS_CONF_MAX_SERVERS];
    char folder[NATS_CONF_MAX_SERVERS][CERT_PATH_BYTES], admin[CERT_PATH_BYTES];
    char secret[33];
    struct member {
        char name[64], host[256]; /* host "": only its name */
        char folder[CERT_PATH_BYTES];
    } members[OPTS_MAX_LIST];
    size_t n_members;
    const struct member *runs[NATS_CONF_MAX_SERVERS]; /* who runs the servers, if embedded */
    bool embedded;
};

/* "NAME" or "NAME=HOST". */
static int read_members(struct site *s)
{
    const char *const *list;
    size_t n = opts_list(s->o, "member", &list);
    const char *join = opts_text(s->o, "join");
    bool found = !join;
    for (size_t i = 0; i < n; i++) {
        struct member *m = &s->members[s->n_members++];
        const char *eq = strchr(list[i], '=');
        size_t len = eq ? (size_t)(eq - list[i]) : strlen(list[i]);
        if (len == 0 || len >= sizeof(m->name) || (eq && !nats_conf_host_ok(eq + 1)))
            return opts_usage(s->o->page, "--member needs NAME or NAME=HOST, not %s", list[i]);
        snprintf(m->name, sizeof(m->name), "%.*s", (int)len, list[i]);
        snprintf(m->host, sizeof(m->host), "%s", eq ? eq + 1 : "");
        found |= join && strcmp(join, m->name) == 0;
    }
    return found ? CMD_OK
                 : opts_usage(s->o->page, "--join %s needs --member %s[=HOST]", join, join);
}

/* How many servers: three if three members can run one. */
static size_t count_servers(const struct site *s)
{
    const char *given = opts_text(s->o, "servers");
    size_t n = 0;
    for (size_t i = 0; i < s->n_members; i++)
        n += s->members[i].host[0] != '\0';
    if (given)
        return (size_t)(given[0] - '0');
    return n >= 3 ? 3 : 1;
}

/* The first members run the servers, if there are enough of them and no hosts are given. */
static void take_members(struct site *s, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < s->n_members && k < n; i++)
        if (s->members[i].host[0]) {
            s->runs[k] = &s->members[i];
            s->hosts[k++] = s->members[i].host;
        }
    s->embedded = k == n;
}

/* Servers on one host have ports of their own. */
static int fill(struct site *s)
{
    const char *const *hosts;
    const struct opts *o = s->o;
    size_t n_hosts = opts_list(o, "host", &hosts), n = count_servers(s);
    uint64_t secret[2];
    if (n_hosts && !opts_text(o, "servers") && n_hosts <= 5 && n_hosts % 2)
        n = n_hosts;
    if (n_hosts && n_hosts != n)
        return opts_usage(o->page, "%zu servers and %zu times --host: give one for each", n,
                          n_hosts);
    if (getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
        return cmd_fail(o->page, "no random bytes");
    snprintf(s->secret, sizeof(s->secret), "%016llx%016llx", (unsigned long long)secret[0],
             (unsigned long long)secret[1]);
    s->conf = (struct nats_conf){
        .cluster = opts_text(o, "name"), .hosts = s->hosts, .n_servers = n, .secret = s->secret};
    if (!n_hosts)
        take_members(s, n);
    for (size_t i = 0; i < n; i++) {
        unsigned before = 0;
        if (!s->embedded)
            s->hosts[i] = n_hosts ? hosts[i] : "127.0.0.1";
        for (size_t k = 0; k < i; k++)
            before += strcmp(s->hosts[k], s->hosts[i]) == 0;
        s->conf.port[i] = opts_u32(o, "port") + before;
        s->conf.route[i] = opts_u32(o, "route-port") + before;
    }
    return CMD_OK;
}

/* The existing CA, or a new one. */
static int open_ca(struct site *s)
{
    const char *dir = opts_text(s->o, "dir");
    struct err e = {0};
    if (access(dir, F_OK) < 0 && ca_init(dir, "Shoal CA", CA_DAYS, false, &e) < 0)
        return cmd_fail(s->o->page, "%s", e.msg);
    if (ca_open(&s->ca, dir, &e) < 0)
        return cmd_fail(s->o->page, "%s", e.msg);
    return CMD_OK;
}

/* A certificate for a member, and its folder. */
static int issue(struct site *s, const char *name, unsigned roles, const char *host, bool force,
                 char folder[CERT_PATH_BYTES])
{
    struct cert_request r = {
        .name = name, .roles = roles, .hosts = &host, .n_hosts = host ? 1 : 0, .days = CERT_DAYS};
    struct cert_info info;
    struct err e = {0};
    if (ca_issue(s->ca, &r, force, &info, &e) < 0 ||
        ca_member_folder(s->ca, name, folder, CERT_PATH_BYTES, &e) < 0)
        return cmd_fail(s->o->page, "%s", e.msg);
    return CMD_OK;
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
    char name[32], folder[CERT_PATH_BYTES], path[CERT_PATH_BYTES + 16];
    struct err e = {0};
    struct buf b;
    s->conf.index = i;
    snprintf(name, sizeof(name), "nats-%zu", i + 1);
    buf_init(&b, MAX_CONF_BYTES);
    int rc = nats_conf_put(&b, &s->conf, &e) < 0 ? cmd_fail(s->o->page, "%s", e.msg) : CMD_OK;
    if (rc == CMD_OK)
        rc = issue(s, name, ROLE_BROKER, s->hosts[i], opts_flag(s->o, "force"), folder);
    if (rc == CMD_OK) {
        snprintf(path, sizeof(path), "%s/nats.conf", folder);
        snprintf(s->folder[i], sizeof(s->folder[i]), "%s", folder);
        rc = write_file(s, path, &b);
    }
    buf_fini(&b);
    return rc;
}

/* A person's certificate, unless there is one. */
static int write_admin(struct site *s)
{
    struct err e = {0};
    struct cert_files files;
    if (ca_member_folder(s->ca, ADMIN, s->admin, sizeof(s->admin), &e) < 0)
        return cmd_fail(s->o->page, "%s", e.msg);
    if (cert_files_in(&files, s->admin, NULL) == 0)
        return CMD_OK;
    return issue(s, ADMIN, ROLE_ADMIN, NULL, false, s->admin);
}

static void put_url(struct buf *b, const struct site *s, size_t i)
{
    bool v6 = strchr(s->hosts[i], ':') != NULL;
    buf_printf(b, "tls://%s%s%s:%u", v6 ? "[" : "", s->hosts[i], v6 ? "]" : "", s->conf.port[i]);
}

/* What 'shoal cluster join' starts: models and clients in one process. */
static void put_config(struct buf *b, const struct site *s, const char *host)
{
    buf_printf(b,
               "# A member of the shoal %s, written by 'shoal cluster init'.  Start it in this "
               "folder:\n# shoal cluster join .\n"
               "listen: 127.0.0.1:8080 # for clients; 0.0.0.0:8080 for all of the network\n"
               "cluster:\n  shoal: %s\n  certs: .\n  listen: 0.0.0.0:7600\n",
               s->conf.cluster, s->conf.cluster);
    if (host[0])
        buf_printf(b, "  advertise: '%s%s%s:7600'\n", strchr(host, ':') ? "[" : "", host,
                   strchr(host, ':') ? "]" : "");
    buf_puts(b, "  nats:\n");
    for (size_t i = 0; i < s->conf.n_servers; i++) {
        buf_puts(b, "    - ");
        put_url(b, s, i);
        buf_putc(b, '\n');
    }
}

static int write_member(struct site *s, struct member *m)
{
    char path[CERT_PATH_BYTES + 16];
    struct buf b;
    int rc = issue(s, m->name, ROLE_NODE | ROLE_GATEWAY | ROLE_CONTROLLER,
                   m->host[0] ? m->host : NULL, opts_flag(s->o, "force"), m->folder);
    if (rc != CMD_OK)
        return rc;
    buf_init(&b, MAX_CONF_BYTES);
    put_config(&b, s, m->host);
    snprintf(path, sizeof(path), "%s/shoal.yaml", m->folder);
    rc = b.rc < 0 ? cmd_fail(s->o->page, "out of memory") : write_file(s, path, &b);
    buf_fini(&b);
    return rc;
}

/* What 'shoal cluster token' gives to members that come later. */
static int write_later(struct site *s)
{
    char path[CERT_PATH_BYTES + 16];
    struct buf b;
    buf_init(&b, MAX_CONF_BYTES);
    put_config(&b, s, "");
    snprintf(path, sizeof(path), "%s/member.yaml", opts_text(s->o, "dir"));
    int rc = b.rc < 0 ? cmd_fail(s->o->page, "out of memory") : write_file(s, path, &b);
    buf_fini(&b);
    return rc;
}

/* Puts a server's files into the folder of the member that runs it. */
static int embed_server(const struct site *s, size_t i)
{
    static const char *const files[] = {"cert.pem", "key.pem", "ca.pem", "crl.pem", "nats.conf"};
    char folder[CERT_PATH_BYTES + 8], from[CERT_PATH_BYTES + 16], to[CERT_PATH_BYTES + 24];
    int rc = CMD_OK;
    snprintf(folder, sizeof(folder), "%s/nats", s->runs[i]->folder);
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return cmd_fail(s->o->page, "cannot create %s: %s", folder, strerror(errno));
    for (size_t k = 0; rc == CMD_OK && k < sizeof(files) / sizeof(files[0]); k++) {
        struct buf b;
        struct err e = {0};
        snprintf(from, sizeof(from), "%s/%s", s->folder[i], files[k]);
        snprintf(to, sizeof(to), "%s/%s", folder, files[k]);
        buf_init(&b, MAX_CONF_BYTES);
        rc =
            file_read(from, &b, &e) < 0 ? cmd_fail(s->o->page, "%s", e.msg) : write_file(s, to, &b);
        buf_fini(&b);
    }
    return rc;
}

static void put_servers(struct buf *b, const struct site *s)
{
    if (!s->embedded) {
        buf_puts(b, "Next: copy each folder to its server's machine and start the server there:\n"
                    "  cd nats-1 && nats-server -c nats.conf\n");
        return;
    }
    buf_puts(b, "'shoal cluster join' starts them, with the members");
    for (size_t i = 0; i < s->conf.n_servers; i++)
        buf_printf(b, "%s%s", i ? ", " : " ", s->runs[i]->name);
    buf_puts(b, s->conf.n_servers == 1
                    ? ".  While it is down, nothing can be changed;\nwith three members that have "
                      "a HOST there are three servers, of which any one may fail.\n"
                    : ".  The shoal can be\nchanged while more than half of them are up.\n");
}

static void put_report(struct buf *b, const struct site *s)
{
    buf_printf(b, "shoal %s: %zu NATS server%s\n", s->conf.cluster, s->conf.n_servers,
               s->conf.n_servers == 1 ? "" : "s");
    for (size_t i = 0; i < s->conf.n_servers; i++) {
        buf_puts(b, "  ");
        put_url(b, s, i);
        buf_printf(b, "  %s\n", s->folder[i]);
    }
    put_servers(b, s);
    for (size_t i = 0; i < s->n_members; i++)
        buf_printf(b, "%s  %s  on %s: shoal cluster join %s\n",
                   i ? "" : "Then copy each member's folder to its machine and start it there:\n",
                   s->members[i].folder, s->members[i].name, s->members[i].name);
    buf_printf(b, "Then: shoal cluster events --cluster %s --certs %s --nats ", s->conf.cluster,
               s->admin);
    put_url(b, s, 0);
    buf_putc(b, '\n');
}

static void put_json(struct buf *b, const struct site *s)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_member_str(&j, "cluster", s->conf.cluster);
    json_out_member_array(&j, "servers");
    for (size_t i = 0; i < s->conf.n_servers; i++) {
        struct buf url;
        buf_init(&url, 512);
        put_url(&url, s, i);
        json_out_object(&j);
        json_out_member_str(&j, "url", buf_str(&url));
        json_out_member_str(&j, "dir", s->folder[i]);
        json_out_object_end(&j);
        buf_fini(&url);
    }
    json_out_array_end(&j);
    json_out_member_array(&j, "members");
    for (size_t i = 0; i < s->n_members; i++) {
        json_out_object(&j);
        json_out_member_str(&j, "name", s->members[i].name);
        json_out_member_str(&j, "dir", s->members[i].folder);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    json_out_member_str(&j, "certs", s->admin);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

/* Ends only if it fails. */
static int join_here(const struct site *s)
{
    const char *name = opts_text(s->o, "join");
    size_t i = 0;
    while (strcmp(s->members[i].name, name) != 0)
        i++;
    fflush(stdout);
    return cluster_start(s->o->page, s->members[i].folder, s->embedded ? NULL : s->folder[0]);
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
    rc = read_members(&s);
    if (rc == CMD_OK)
        rc = fill(&s);
    if (rc == CMD_OK)
        rc = open_ca(&s);
    for (size_t i = 0; rc == CMD_OK && i < s.conf.n_servers; i++)
        rc = write_server(&s, i);
    if (rc == CMD_OK)
        rc = write_admin(&s);
    if (rc == CMD_OK)
        rc = write_later(&s);
    for (size_t i = 0; rc == CMD_OK && i < s.n_members; i++)
        rc = write_member(&s, &s.members[i]);
    for (size_t i = 0; rc == CMD_OK && s.embedded && i < s.conf.n_servers; i++)
        rc = embed_server(&s, i);
    buf_init(&b, MAX_CONF_BYTES);
    if (rc == CMD_OK) {
        if (opts_flag(&o, "json"))
            put_json(&b, &s);
        else
            put_report(&b, &s);
        rc = cmd_print(&page, &b);
    }
    buf_fini(&b);
    ca_close(s.ca);
    if (rc == CMD_OK && opts_text(&o, "join"))
        rc = join_here(&s);
    opts_fini(&o);
    return rc;
}
