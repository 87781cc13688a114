/* cmd_cluster_token.c - shoal cluster token: invites one machine to join the shoal. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file_read.h"
#include "cluster/control/nats_conf.h"
#include "cluster/trust/ca.h"
#include "cluster/trust/enrol.h"
#include "cluster/trust/roles.h"
#include "cmd/cmd.h"
#include "host/sha256.h"
#include "net/mdns_link.h"
#include "wire/json_out.h"

cmd_fn cmd_cluster_token;

#define S_NS UINT64_C(1000000000)
#define MAX_FILE_BYTES (64u << 10)
#define CERT_DAYS 365u
#define DOOR "shoal-door" /* name in the certificate of the door */

static const struct opts_def defs[] = {
    {"dir", 'd', OPTS_TEXT, "DIR", "ca", 0, 0, "folder of the CA, as of 'shoal cluster init'"},
    {"minutes", 0, OPTS_UINT, "N", "10", 1, 1440, "how long the token is valid"},
    {"port", 0, OPTS_UINT, "N", "7601", 0, 65535, "port to wait on; 0: any free one"},
    {"config", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "shoal.yaml for the new member (default: DIR/member.yaml, which 'cluster init' writes)"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"},
};

static const struct opts_page page = {
    .command = "cluster token",
    .arguments = "",
    .summary = "Prints a token with which one machine can join the shoal, and waits for it.",
    .details =
        "Run it where the CA is.  On the new machine, run 'shoal cluster join --token TOKEN': it "
        "finds\nthis one on the local network, makes its key, and gets a certificate and its "
        "shoal.yaml.\nThe token holds a secret and the fingerprint of the CA.  It works once, for "
        "a few minutes, and\nonly while this command runs.  Exit code 1: nobody came.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal cluster token\n"
                "  shoal cluster token --minutes 60 --port 7700\n",
};

struct site {
    const struct opts *o;
    const char *dir;
    struct join_token token;
    X509 *cert, *ca;
    EVP_PKEY *key;
    struct enrol_door *door;
    struct buf config; /* what a new member gets */
    int listener, mdns;
    struct mdns_service service;
    char from[INET6_ADDRSTRLEN]; /* of the present connection */
    char joined[64];
};

/* ---- a new member ---- */

static int read_member(struct ca *ca, const char *name, struct enrol_files *out, struct err *e)
{
    const struct {
        const char *name;
        struct buf *to;
    } files[] = {{"cert.pem", &out->cert}, {"ca.pem", &out->ca}, {"crl.pem", &out->crl}};
    char folder[CERT_PATH_BYTES], path[CERT_PATH_BYTES + 16];
    int rc = ca_member_folder(ca, name, folder, sizeof(folder), e);
    for (size_t i = 0; rc == 0 && i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, files[i].name);
        rc = file_read(path, files[i].to, e);
    }
    return rc;
}

static void put_config(struct site *s, const char *host, struct buf *out)
{
    const bool v6 = strchr(host, ':') != NULL;
    buf_put(out, s->config.data, s->config.len);
    buf_printf(out, "  advertise: '%s%s%s:7600'\n", v6 ? "[" : "", host, v6 ? "]" : "");
}

static int admit(void *ctx, const struct enrol_request *r, struct enrol_files *out, struct err *e)
{
    struct site *s = ctx;
    const char *host = r->host[0] ? r->host : s->from;
    const struct cert_request request = {.name = r->name,
                                         .roles = ROLE_NODE | ROLE_GATEWAY | ROLE_CONTROLLER,
                                         .hosts = &host,
                                         .n_hosts = 1,
                                         .days = CERT_DAYS,
                                         .key = r->key};
    struct cert_info info;
    struct ca *ca = NULL;
    if (!nats_conf_host_ok(host))
        return err_set(e, SHOAL_EINVAL, "'%.64s' is not the name or address of a host", host);
    int rc = ca_open(&ca, s->dir, e);
    if (rc == 0)
        rc = ca_issue(ca, &request, false, &info, e);
    if (rc == 0)
        rc = read_member(ca, r->name, out, e);
    if (rc == 0)
        put_config(s, host, &out->config);
    if (rc == 0)
        snprintf(s->joined, sizeof(s->joined), "%s", r->name);
    ca_close(ca);
    return rc;
}

/* ---- waiting ---- */

static int open_listener(struct site *s, struct err *e)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)opts_u32(s->o, "port"))};
    socklen_t n = sizeof(a);
    const int on = 1;
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->listener < 0 || setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(s->listener, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
        listen(s->listener, 4) < 0 || getsockname(s->listener, (struct sockaddr *)&a, &n) < 0)
        return err_set(e, SHOAL_EIO, "cannot wait on port %u: %s", opts_u32(s->o, "port"),
                       strerror(errno));
    s->service.port = ntohs(a.sin_port);
    return 0;
}

/* Without multicast it is found by address only. */
static void open_mdns(struct site *s)
{
    struct err e = {0};
    char hex[2 * JOIN_TOKEN_CA + 1];
    for (size_t i = 0; i < JOIN_TOKEN_CA; i++)
        snprintf(hex + 2 * i, 3, "%02x", s->token.ca[i]);
    snprintf(s->service.type, sizeof(s->service.type), "%s", ENROL_SERVICE);
    snprintf(s->service.instance, sizeof(s->service.instance), "shoal-%.8s", hex);
    snprintf(s->service.txt, sizeof(s->service.txt), "ca=%s", hex);
    if (mdns_link_open(&s->mdns, &e) < 0)
        fprintf(stderr, "shoal cluster token: %s: give the address to 'cluster join --at'\n",
                e.msg);
}

static void serve_one(struct site *s)
{
    struct sockaddr_in a = {0};
    struct err e = {0};
    socklen_t n = sizeof(a);
    const int fd = accept4(s->listener, (struct sockaddr *)&a, &n, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    inet_ntop(AF_INET, &a.sin_addr, s->from, sizeof(s->from));
    if (enrol_door_serve(s->door, fd, &e) < 0)
        fprintf(stderr, "shoal cluster token: %s: %s\n", s->from, e.msg);
    close(fd);
}

static void wait_for_one(struct site *s, uint64_t until_ns)
{
    while (!enrol_door_is_shut(s->door)) {
        struct pollfd p[] = {{.fd = s->listener, .events = POLLIN},
                             {.fd = s->mdns, .events = POLLIN}};
        const uint64_t now = clock_ns();
        const uint64_t left = now < until_ns ? until_ns - now : 0;
        if (poll(p, s->mdns < 0 ? 1 : 2, (int)(left / 1000000) + 1) <= 0)
            continue;
        if (s->mdns >= 0 && p[1].revents)
            mdns_link_answer(s->mdns, &s->service);
        if (p[0].revents)
            serve_one(s);
    }
}

/* ---- the command ---- */

static int read_config(struct site *s, struct err *e)
{
    char path[CERT_PATH_BYTES];
    const char *given = opts_text(s->o, "config");
    snprintf(path, sizeof(path), "%s/member.yaml", s->dir);
    int rc = file_read(given ? given : path, &s->config, e);
    if (rc == 0 && s->config.len > 0 && s->config.data[s->config.len - 1] != '\n')
        buf_putc(&s->config, '\n');
    return rc < 0 && !given ? err_set(e, rc,
                                      "%s cannot be read: 'shoal cluster init' writes it; or give "
                                      "--config FILE",
                                      path)
                            : rc;
}

static int open_door(struct site *s, uint64_t until_ns, struct err *e)
{
    struct ca *ca = NULL;
    struct cert_info info;
    uint8_t sum[SHA256_BYTES];
    int rc = ca_open(&ca, s->dir, e);
    if (rc == 0) {
        ca_current(ca, &info);
        rc = sha256_read_hex(sum, info.sha256) ? join_token_make(&s->token, sum, e)
                                               : err_set(e, SHOAL_EINTERNAL, "fingerprint");
    }
    if (rc == 0)
        rc = ca_make_door(ca, DOOR, &s->cert, &s->ca, &s->key, e);
    ca_close(ca); /* others may use it while this one waits */
    const struct enrol_door_opts o = {.cert = s->cert,
                                      .ca = s->ca,
                                      .key = s->key,
                                      .token = s->token,
                                      .until_ns = until_ns,
                                      .admit = admit,
                                      .ctx = s};
    return rc < 0 ? rc : enrol_door_open(&s->door, &o, e);
}

static int print_token(const struct site *s)
{
    char text[JOIN_TOKEN_TEXT];
    const uint32_t minutes = opts_u32(s->o, "minutes");
    struct buf b;
    join_token_text(text, &s->token);
    buf_init(&b, 4096);
    if (opts_flag(s->o, "json")) {
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        json_out_member_str(&j, "token", text);
        json_out_member_int(&j, "port", s->service.port);
        json_out_member_int(&j, "minutes", minutes);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    } else {
        buf_printf(&b,
                   "%s\nValid for %u minute%s and one machine, while this command runs.  On that "
                   "machine:\n  shoal cluster join --token %s\nIf it does not find this one: --at "
                   "HOST:%u\n",
                   text, minutes, minutes == 1 ? "" : "s", text, s->service.port);
    }
    int rc = cmd_print(&page, &b);
    fflush(stdout);
    buf_fini(&b);
    return rc;
}

static int invite(struct site *s)
{
    const uint64_t until = clock_ns() + opts_u32(s->o, "minutes") * 60 * S_NS;
    struct err e = {0};
    int rc = read_config(s, &e);
    if (rc == 0)
        rc = open_door(s, until, &e);
    if (rc == 0)
        rc = open_listener(s, &e);
    if (rc < 0)
        return cmd_fail(&page, "%s", e.msg);
    open_mdns(s);
    rc = print_token(s);
    if (rc != CMD_OK)
        return rc;
    wait_for_one(s, until);
    if (!s->joined[0])
        return cmd_fail(&page, "nobody has joined with the token");
    fprintf(stderr, "%s is a member now\n", s->joined);
    return CMD_OK;
}

int cmd_cluster_token(int argc, const char *const *argv)
{
    struct site s = {.listener = -1, .mdns = -1};
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    s.o = &o;
    s.dir = opts_text(&o, "dir");
    signal(SIGPIPE, SIG_IGN); /* one that hangs up must not end it */
    buf_init(&s.config, MAX_FILE_BYTES);
    rc = invite(&s);
    enrol_door_close(s.door);
    X509_free(s.cert);
    X509_free(s.ca);
    EVP_PKEY_free(s.key);
    buf_fini(&s.config);
    if (s.listener >= 0)
        close(s.listener);
    if (s.mdns >= 0)
        close(s.mdns);
    opts_fini(&o);
    return rc;
}
