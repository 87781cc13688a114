/* test_ca.c - the CA's folder, and its certificates in real TLS connections. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/pem.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/trust/ca.h"
#include "cluster/trust/roles.h"
#include "net/http_client.h"
#include "net/listen.h"
#include "net/loop.h"
#include "net/tls.h"

#define LONG_S 60 /* only ends a test that hangs */

/* ---- folders ---- */

static char root[] = "/tmp/test_ca.XXXXXX";

static int make_root(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static void remove_all(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *d;
    char sub[1024];
    while (dir && (d = readdir(dir))) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        snprintf(sub, sizeof(sub), "%s/%s", path, d->d_name);
        remove_all(sub);
    }
    if (dir)
        closedir(dir);
    (void)remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    remove_all(root);
    return 0;
}

static const char *at(char *out, const char *ca, const char *rest)
{
    snprintf(out, CERT_PATH_BYTES, "%s/%s%s", root, ca, rest);
    return out;
}

static struct ca *fresh(const char *name)
{
    char folder[CERT_PATH_BYTES];
    struct ca *ca = NULL;
    struct err e = {0};
    remove_all(at(folder, name, ""));
    if (ca_init(folder, "Shoal CA", 3650, false, &e) < 0 || ca_open(&ca, folder, &e) < 0)
        fail_msg("%s", e.msg);
    return ca;
}

static void issue(struct ca *ca, const char *name, unsigned roles, bool force)
{
    static const char *const hosts[] = {"127.0.0.1", "front.example"};
    struct cert_request r = {
        .name = name, .roles = roles, .hosts = hosts, .n_hosts = 2, .days = 30};
    struct cert_info c;
    struct err e = {0};
    if (ca_issue(ca, &r, force, &c, &e) < 0)
        fail_msg("%s", e.msg);
}

static struct cert_files files(struct ca *ca, const char *name)
{
    char folder[CERT_PATH_BYTES];
    struct cert_files f = {.cert = ""};
    struct err e = {0};
    if (ca_member_folder(ca, name, folder, sizeof(folder), &e) < 0 ||
        cert_files_in(&f, folder, &e) < 0)
        fail_msg("%s", e.msg);
    return f;
}

static void copy(const char *from, const char *to)
{
    char bytes[16384], next[CERT_PATH_BYTES + 8];
    snprintf(next, sizeof(next), "%s.new", to);
    FILE *in = fopen(from, "rb"), *out = fopen(next, "wb");
    assert_true(in && out);
    size_t n = fread(bytes, 1, sizeof(bytes), in);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(in);
    fclose(out);
    assert_int_equal(rename(next, to), 0);
}

/* Each machine has copies, which change only when somebody copies again. */
static struct cert_files copied(const struct cert_files *f, const char *machine)
{
    struct cert_files to;
    char folder[CERT_PATH_BYTES];
    mkdir(at(folder, machine, ""), 0700);
    at(to.cert, machine, "/cert.pem");
    at(to.key, machine, "/key.pem");
    at(to.ca, machine, "/ca.pem");
    at(to.crl, machine, "/crl.pem");
    copy(f->cert, to.cert);
    copy(f->key, to.key);
    copy(f->ca, to.ca);
    copy(f->crl, to.crl);
    return to;
}

/* Signs the member's certificate again, with past or future dates. */
static void change_dates(const char *ca, const struct cert_files *f, long from_s, long to_s)
{
    char path[CERT_PATH_BYTES];
    X509 *cert;
    assert_int_equal(cert_load(&cert, f->cert, NULL), 0);
    BIO *in = BIO_new_file(at(path, ca, "/ca.key"), "r");
    EVP_PKEY *key = PEM_read_bio_PrivateKey(in, NULL, NULL, NULL);
    BIO_free(in);
    X509_gmtime_adj(X509_getm_notBefore(cert), from_s);
    X509_gmtime_adj(X509_getm_notAfter(cert), to_s);
    assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
    BIO *out = BIO_new_file(f->cert, "w");
    assert_int_equal(PEM_write_bio_X509(out, cert), 1);
    BIO_free(out);
    EVP_PKEY_free(key);
    X509_free(cert);
}

/* ---- the folder ---- */

static void test_names(void **state)
{
    static const struct {
        const char *name;
        bool ok;
    } cases[] = {{"a", true},   {"node-1", true}, {"", false},    {"-a", false},
                 {"a-", false}, {"A", false},     {"a.b", false}, {"a/b", false},
                 {"..", false}, {"a b", false},   {"a\n", false}, {"caf\xc3\xa9", false},
                 {"a_b", false}};
    char longest[80];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (cert_is_name(cases[i].name) != cases[i].ok)
            fail_msg("%s", cases[i].name);
    memset(longest, 'a', sizeof(longest));
    longest[63] = '\0';
    assert_true(cert_is_name(longest));
    longest[63] = 'a';
    longest[64] = '\0';
    assert_false(cert_is_name(longest));
}

static void test_a_ca_is_never_replaced_without_force(void **state)
{
    char folder[CERT_PATH_BYTES], path[CERT_PATH_BYTES];
    struct cert_info before, after;
    struct err e = {0};
    struct stat st;
    (void)state;
    struct ca *ca = fresh("keep");
    ca_current(ca, &before);
    assert_int_equal(ca_init(at(folder, "keep", ""), "x", 10, true, &e), SHOAL_EBUSY); /* locked */
    ca_close(ca);
    assert_int_equal(ca_init(folder, "x", 10, false, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "--force"));
    assert_int_equal(stat(at(path, "keep", "/ca.key"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(ca_init(folder, "x", 10, true, &e), 0);
    assert_int_equal(ca_open(&ca, folder, &e), 0);
    ca_current(ca, &after);
    assert_string_not_equal(before.serial, after.serial);
    ca_close(ca);
    assert_int_equal(ca_open(&ca, "/no/such/folder", &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "shoal ca init"));
    assert_int_equal(ca_open(&ca, root, &e), SHOAL_ENOTFOUND);
}

static void test_what_cannot_be_issued(void **state)
{
    static const char *const bad_host[] = {"a,URI:shoal:role:admin"};
    static const struct {
        struct cert_request r;
        const char *why;
    } cases[] = {
        {{.name = "Node", .roles = ROLE_NODE, .days = 1}, "not a valid name for a member"},
        {{.name = "../x", .roles = ROLE_NODE, .days = 1}, "not a valid name for a member"},
        {{.name = "x", .days = 1}, "needs a role"},
        {{.name = "x", .roles = ROLE_NODE, .days = 0}, "days"},
        {{.name = "x", .roles = ROLE_NODE, .days = 1, .hosts = bad_host, .n_hosts = 1},
         "neither a host name"},
    };
    struct ca *ca = fresh("bad");
    struct cert_info c;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err e = {0};
        int rc = ca_issue(ca, &cases[i].r, false, &c, &e);
        if (rc != SHOAL_EINVAL || !strstr(e.msg, cases[i].why))
            fail_msg("%s: %d %s", cases[i].why, rc, e.msg);
    }
    struct ca_entry *list;
    size_t n;
    assert_int_equal(ca_list(ca, &list, &n, NULL), 0);
    assert_int_equal(n, 0);
    mem_free(list);
    ca_close(ca);
}

static void test_a_certificate_says_who_and_what(void **state)
{
    struct ca *ca = fresh("who");
    struct cert_info c;
    struct err e = {0};
    struct stat st;
    (void)state;
    issue(ca, "node-a", ROLE_NODE | ROLE_GATEWAY, false);
    struct cert_files f = files(ca, "node-a");
    if (cert_check(&c, &f, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(c.id.name, "node-a");
    assert_int_equal(c.id.roles, ROLE_NODE | ROLE_GATEWAY);
    assert_string_equal(c.hosts, "127.0.0.1 front.example");
    assert_int_equal(stat(f.key, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);

    struct cert_request r = {.name = "node-a", .roles = ROLE_NODE, .days = 5};
    struct cert_info next;
    assert_int_equal(ca_issue(ca, &r, false, &next, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "--force"));
    r.roles = 0;
    assert_int_equal(ca_issue(ca, &r, true, &next, &e), 0); /* keeps roles and hosts */
    assert_int_equal(next.id.roles, ROLE_NODE | ROLE_GATEWAY);
    assert_string_equal(next.hosts, c.hosts);
    assert_string_not_equal(next.serial, c.serial);
    ca_close(ca);
}

static void test_own_files_are_checked_with_a_hint(void **state)
{
    struct ca *ca = fresh("own"), *other = fresh("foreign");
    struct cert_info c;
    struct err e = {0};
    size_t n;
    (void)state;
    issue(ca, "late", ROLE_NODE, false);
    issue(ca, "early", ROLE_NODE, false);
    issue(ca, "gone", ROLE_NODE, false);
    issue(ca, "mixed", ROLE_NODE, false);
    issue(other, "stranger", ROLE_NODE, false);
    struct cert_files late = files(ca, "late"), early = files(ca, "early"),
                      gone = files(ca, "gone"), mixed = files(ca, "mixed"),
                      stranger = files(other, "stranger");
    change_dates("own", &late, -7200, -3600);
    change_dates("own", &early, 86400, 2 * 86400);
    assert_int_equal(ca_revoke(ca, "gone", NULL, &n, &e), 0);
    assert_int_equal(n, 1);
    memcpy(stranger.ca, late.ca, sizeof(late.ca));
    memcpy(stranger.crl, late.crl, sizeof(late.crl));
    memcpy(mixed.key, late.key, sizeof(late.key));
    const struct {
        const struct cert_files *f;
        const char *why, *hint;
    } cases[] = {{&late, "certificate of late expired on 20", "shoal ca issue late"},
                 {&early, "certificate of early is not valid before 20", "clock"},
                 {&gone, "certificate of gone is revoked", "shoal ca issue gone"},
                 {&stranger, "certificate of stranger is signed by Shoal CA", "this shoal's CA"},
                 {&mixed, "does not belong to the certificate of mixed", "copy cert.pem"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        e.msg[0] = '\0';
        int rc = cert_check(&c, cases[i].f, &e);
        if (rc != SHOAL_EINVAL || !strstr(e.msg, cases[i].why) || !strstr(e.msg, cases[i].hint))
            fail_msg("%s: %d %s", cases[i].why, rc, e.msg);
    }
    ca_close(ca);
    ca_close(other);
}

static void test_revoke_and_list(void **state)
{
    struct ca *ca = fresh("list");
    struct ca_entry *list;
    struct err e = {0};
    char first[48];
    size_t n;
    (void)state;
    issue(ca, "b", ROLE_NODE, false);
    issue(ca, "a", ROLE_GATEWAY, false);
    issue(ca, "b", ROLE_NODE, true);
    assert_int_equal(ca_list(ca, &list, &n, &e), 0);
    assert_int_equal(n, 3);
    assert_string_equal(list[0].cert.id.name, "a");
    assert_true(list[0].in_use && list[0].state == CA_VALID);
    assert_string_equal(list[1].cert.id.name, "b");
    assert_int_equal(list[1].in_use + list[2].in_use, 1);
    memcpy(first, list[1].cert.serial, sizeof(first));
    mem_free(list);

    assert_int_equal(ca_revoke(ca, "b", "00", &n, &e), SHOAL_ENOTFOUND);
    assert_int_equal(ca_revoke(ca, "b", first, &n, &e), 0);
    assert_int_equal(n, 1);
    assert_int_equal(ca_revoke(ca, "b", NULL, &n, &e), 0); /* the other one */
    assert_int_equal(n, 1);
    assert_int_equal(ca_revoke(ca, "b", NULL, &n, &e), SHOAL_ENOTFOUND);
    ca_close(ca);
    char folder[CERT_PATH_BYTES];
    assert_int_equal(ca_open(&ca, at(folder, "list", ""), &e), 0); /* stored on disk */
    assert_int_equal(ca_list(ca, &list, &n, &e), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(list[i].state, i == 0 ? CA_VALID : CA_REVOKED);
    mem_free(list);
    ca_close(ca);

    char path[CERT_PATH_BYTES];
    assert_int_equal(unlink(at(path, "list", "/crl.pem")), 0); /* would forget revocations */
    assert_int_equal(ca_open(&ca, folder, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "crl.pem"));
}

static void test_roles_come_from_verified_certificates_only(void **state)
{
    static const struct {
        const char *name, *uris, *serial;
        unsigned roles;
    } cases[] = {{"a", "shoal:role:node", "01", ROLE_NODE},
                 {"a", "x:y shoal:role:admin shoal:role:node", "01", ROLE_ADMIN | ROLE_NODE},
                 {"a", "shoal:role:node shoal:role:later", "01", ROLE_NODE},
                 {"a", "shoal:role:node,admin", "01", 0},
                 {"a", "shoal:role: shoal:role", "01", 0},
                 {"a", "", "01", 0},
                 {"a.b", "shoal:role:node", "01", 0},
                 {"", "shoal:role:node", "01", 0},
                 {"a", "shoal:role:node", "", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tls_peer p = {.name = ""};
        struct cert_identity id;
        struct err e = {0};
        snprintf(p.name, sizeof(p.name), "%s", cases[i].name);
        snprintf(p.uris, sizeof(p.uris), "%s", cases[i].uris);
        snprintf(p.serial, sizeof(p.serial), "%s", cases[i].serial);
        int rc = cert_identity(&id, &p, &e);
        assert_int_equal(rc, cases[i].roles ? 0 : SHOAL_EINVAL);
        if (rc == 0)
            assert_int_equal(id.roles, cases[i].roles);
    }
    struct cert_identity id;
    assert_int_equal(cert_identity(&id, NULL, NULL), SHOAL_EINVAL);
}

/* ---- connections ---- */

struct pair {
    struct loop *loop;
    struct http_server *http;
    struct tls_server *tls;
    struct tls_client *tls_client;
    struct http_client *client;
    char address[64];
    struct cert_identity seen; /* the client, as the handler sees it */
    char seen_serial[48];
    struct http_req *held;
    struct http_call call;
    int n_ended, n_failed, n_data;
    char message[400], got[64];
};

static void handler(void *ctx, struct http_req *r)
{
    struct pair *p = ctx;
    if (cert_identity(&p->seen, r->peer_cert, NULL) == 0)
        memcpy(p->seen_serial, r->peer_cert->serial, sizeof(p->seen_serial));
    http_begin(r, 200, NULL, 0, -1);
    http_write(r, "hello", 5);
    if (strcmp(r->path, "/hold") == 0)
        p->held = r;
    else
        http_end(r);
}

static void on_head(struct http_call *k, int status, const struct http_header *headers, size_t n)
{
    (void)k;
    (void)headers;
    (void)n;
    assert_int_equal(status, 200);
}

static void on_data(struct http_call *k, const char *text, size_t n)
{
    struct pair *p = LOOP_OF(k, struct pair, call);
    size_t have = strlen(p->got);
    p->n_data++;
    assert_true(have + n < sizeof(p->got));
    memcpy(p->got + have, text, n);
    p->got[have + n] = '\0';
}

static void on_ended(struct http_call *k, const struct http_header *trailers, size_t n)
{
    (void)trailers;
    (void)n;
    LOOP_OF(k, struct pair, call)->n_ended++;
}

static void on_failed(struct http_call *k, int code, const char *message)
{
    struct pair *p = LOOP_OF(k, struct pair, call);
    assert_int_equal(code, SHOAL_EIO);
    p->n_failed++;
    snprintf(p->message, sizeof(p->message), "%s", message);
}

static const struct http_call_ops ops = {
    .head = on_head, .data = on_data, .ended = on_ended, .failed = on_failed};

static void serve(struct pair *p, const struct cert_files *f)
{
    struct tls_opts o = {
        .cert = f->cert, .key = f->key, .ca = f->ca, .crl = f->crl, .reload = true};
    struct err e = {0};
    int fd = -1;
    *p = (struct pair){.call.ops = &ops};
    if (loop_create(&p->loop, &e) < 0 || tls_server_open(&p->tls, &o, &e) < 0 ||
        http_server_create(&p->http, p->loop, NULL, handler, p, &e) < 0 ||
        listen_open(&fd, "127.0.0.1:0", LISTEN_ALONE, &e) < 0)
        fail_msg("%s", e.msg);
    listen_address(fd, p->address, sizeof(p->address));
    assert_int_equal(http_server_listen(p->http, fd, p->tls, &e), 0);
}

static void connect_as(struct pair *p, const struct cert_files *f, const char *host)
{
    struct tls_opts o = {.reload = true};
    struct err e = {0};
    if (f)
        o = (struct tls_opts){
            .cert = f->cert, .key = f->key, .ca = f->ca, .crl = f->crl, .reload = true};
    if (tls_client_open(&p->tls_client, &o, &e) < 0)
        fail_msg("%s", e.msg);
    struct http_client_opts c = {.address = p->address,
                                 .tls = p->tls_client,
                                 .tls_host = host,
                                 .connect_ms = 30000,
                                 .ping_ms = 100, /* bytes that both sides read */
                                 .ping_timeout_ms = 60000};
    if (http_client_create(&p->client, p->loop, &c, &e) < 0)
        fail_msg("%s", e.msg);
}

static void leave(struct pair *p)
{
    http_client_destroy(p->client);
    p->client = NULL;
    for (int i = 0; i < 3; i++)
        loop_turn(p->loop, 0);
    tls_client_close(p->tls_client);
    p->tls_client = NULL;
}

static void close_pair(struct pair *p)
{
    leave(p);
    http_server_destroy(p->http);
    tls_server_close(p->tls);
    loop_destroy(p->loop);
}

/* One call on a new connection: true if it is answered. */
static bool call(struct pair *p, const struct cert_files *f, const char *host)
{
    uint64_t until = clock_ns() + LONG_S * 1000000000ull;
    p->n_ended = p->n_failed = 0;
    p->got[0] = p->message[0] = '\0';
    connect_as(p, f, host);
    assert_int_equal(http_call_start(p->client, &p->call, "GET", "/", NULL, 0, NULL, 0, true), 0);
    while (p->n_ended + p->n_failed == 0) {
        loop_turn(p->loop, 100);
        assert_true(clock_ns() < until);
    }
    assert_int_equal(p->n_ended + p->n_failed, 1);
    if (p->n_ended)
        assert_string_equal(p->got, "hello");
    else
        assert_string_equal(p->got, "");
    return p->n_ended == 1;
}

static void expect_refused(struct pair *p, const struct cert_files *f, const char *host,
                           const char *why)
{
    if (call(p, f, host) || !strstr(p->message, why))
        fail_msg("expected %s: %s", why, p->message);
    leave(p);
}

static void test_both_sides_know_each_other(void **state)
{
    struct ca *ca = fresh("tls");
    struct pair p;
    struct http_client_state st;
    struct cert_identity id;
    (void)state;
    issue(ca, "node-a", ROLE_NODE, false);
    issue(ca, "front", ROLE_GATEWAY | ROLE_CONTROLLER, false);
    struct cert_files node = files(ca, "node-a"), front = files(ca, "front");
    serve(&p, &node);
    static const char *const hosts[] = {NULL, "node-a", "127.0.0.1", "front.example"};
    for (size_t i = 0; i < 4; i++) {
        if (!call(&p, &front, hosts[i]))
            fail_msg("%s: %s", hosts[i] ? hosts[i] : "any", p.message);
        assert_string_equal(p.seen.name, "front");
        assert_int_equal(p.seen.roles, ROLE_GATEWAY | ROLE_CONTROLLER);
        http_client_state(p.client, &st);
        assert_int_equal(cert_identity(&id, st.peer, NULL), 0);
        assert_string_equal(id.name, "node-a");
        assert_int_equal(id.roles, ROLE_NODE);
        leave(&p);
    }
    expect_refused(&p, &front, "node-b", "mismatch");
    expect_refused(&p, &front, "127.0.0.2", "mismatch");
    close_pair(&p);
    ca_close(ca);
}

static void test_certificates_that_are_refused(void **state)
{
    struct ca *ca = fresh("tls"), *other = fresh("foreign");
    struct pair p;
    struct err e = {0};
    (void)state;
    issue(ca, "node-a", ROLE_NODE, false);
    issue(ca, "late", ROLE_NODE, false);
    issue(ca, "front", ROLE_GATEWAY, false);
    issue(other, "stranger", ROLE_GATEWAY, false);
    struct cert_files node = files(ca, "node-a"), late = files(ca, "late"),
                      front = files(ca, "front"), stranger = files(other, "stranger");
    change_dates("tls", &late, -7200, -3600);

    serve(&p, &node);
    expect_refused(&p, &stranger, NULL, "not signed by our CA"); /* it does not trust us */
    struct cert_files forged = stranger;                         /* it would trust us */
    memcpy(forged.ca, node.ca, sizeof(node.ca));
    memcpy(forged.crl, node.crl, sizeof(node.crl));
    expect_refused(&p, &forged, NULL, "");
    struct cert_files nobody = front; /* without its own certificate */
    struct tls_opts o = {.ca = nobody.ca, .crl = nobody.crl};
    assert_int_equal(tls_client_open(&p.tls_client, &o, &e), 0);
    struct http_client_opts c = {.address = p.address, .tls = p.tls_client, .connect_ms = 30000};
    assert_int_equal(http_client_create(&p.client, p.loop, &c, &e), 0);
    assert_int_equal(http_call_start(p.client, &p.call, "GET", "/", NULL, 0, NULL, 0, true), 0);
    p.n_ended = p.n_failed = 0;
    uint64_t until = clock_ns() + LONG_S * 1000000000ull;
    while (p.n_ended + p.n_failed == 0 && clock_ns() < until)
        loop_turn(p.loop, 100);
    assert_int_equal(p.n_failed, 1);
    leave(&p);

    o = (struct tls_opts){.cert = late.cert, .key = late.key, .ca = late.ca, .crl = late.crl};
    assert_int_equal(tls_client_open(&p.tls_client, &o, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "certificate of late expired on 20"));
    close_pair(&p);
    serve(&p, &late);
    expect_refused(&p, &front, NULL, "certificate of late expired on 20");
    close_pair(&p);
    ca_close(ca);
    ca_close(other);
}

/* A file that changes is used by the next handshake, without a restart. */
static void test_a_revoked_member_is_shut_out(void **state)
{
    struct ca *ca = fresh("tls");
    struct pair p;
    size_t n;
    (void)state;
    issue(ca, "node-a", ROLE_NODE, false);
    issue(ca, "front", ROLE_GATEWAY, false);
    issue(ca, "other", ROLE_GATEWAY, false);
    struct cert_files in_ca = files(ca, "node-a"), node = copied(&in_ca, "machine-a"),
                      front = files(ca, "front"), other = files(ca, "other");
    struct cert_files front_before = copied(&front, "machine-f"); /* knows of no revocation */
    serve(&p, &node);
    assert_true(call(&p, &front_before, NULL));
    leave(&p);
    assert_int_equal(ca_revoke(ca, "front", NULL, &n, NULL), 0);
    assert_true(call(&p, &front_before, NULL)); /* the list is not on the machine yet */
    leave(&p);
    copy(in_ca.crl, node.crl);
    expect_refused(&p, &front_before, NULL, "");
    assert_true(call(&p, &other, NULL));
    leave(&p);
    assert_int_equal(ca_revoke(ca, "node-a", NULL, &n, NULL), 0); /* and a server */
    expect_refused(&p, &other, NULL, "certificate of node-a is revoked");
    close_pair(&p);
    ca_close(ca);
}

static void test_files_change_under_a_running_stream(void **state)
{
    struct ca *ca = fresh("tls");
    struct pair p;
    char first[48];
    uint64_t until = clock_ns() + LONG_S * 1000000000ull;
    (void)state;
    issue(ca, "node-a", ROLE_NODE, false);
    issue(ca, "front", ROLE_GATEWAY, false);
    struct cert_files node = files(ca, "node-a"), front = files(ca, "front");
    serve(&p, &node);
    connect_as(&p, &front, NULL);
    assert_int_equal(http_call_start(p.client, &p.call, "GET", "/hold", NULL, 0, NULL, 0, true), 0);
    while (p.n_data == 0 && clock_ns() < until)
        loop_turn(p.loop, 100);
    struct http_client_state st;
    http_client_state(p.client, &st);
    memcpy(first, st.peer->serial, sizeof(first));

    issue(ca, "node-a", ROLE_NODE, true); /* both sides get new certificates */
    issue(ca, "front", ROLE_GATEWAY, true);
    struct pair q = {.call.ops = &ops};
    q.loop = p.loop;
    memcpy(q.address, p.address, sizeof(q.address));
    assert_true(call(&q, &front, NULL));
    http_client_state(q.client, &st);
    assert_string_not_equal(st.peer->serial, first);
    leave(&q);

    FILE *f = fopen(node.cert, "w"); /* half replaced: the old one stays in use */
    fputs("-----BEGIN CERTIFICATE-----\n", f);
    fclose(f);
    assert_true(call(&q, &front, NULL));
    leave(&q);

    http_write(p.held, " again", 6); /* the stream did not notice */
    http_end(p.held);
    while (p.n_ended + p.n_failed == 0 && clock_ns() < until)
        loop_turn(p.loop, 100);
    assert_int_equal(p.n_ended, 1);
    assert_string_equal(p.got, "hello again");
    close_pair(&p);
    ca_close(ca);
}

/* Closes an open connection when the peer's certificate is no longer valid. */
static void test_open_connections_are_cut(void **state)
{
    struct ca *ca = fresh("tls");
    size_t n;
    (void)state;
    static const char *const victims[] = {"front", "node-a", NULL};
    struct pair p[3];
    for (int i = 0; i < 3; i++) {
        issue(ca, "node-a", ROLE_NODE, true);
        issue(ca, "front", ROLE_GATEWAY, true);
        struct cert_files f = files(ca, "front"), node = files(ca, "node-a");
        if (!victims[i])
            change_dates("tls", &f, -3600, 5); /* expires soon */
        serve(&p[i], &node);
        connect_as(&p[i], &f, NULL);
        assert_int_equal(
            http_call_start(p[i].client, &p[i].call, "GET", "/hold", NULL, 0, NULL, 0, true), 0);
        uint64_t until = clock_ns() + LONG_S * 1000000000ull;
        while (p[i].n_data == 0 && p[i].n_failed == 0 && clock_ns() < until)
            loop_turn(p[i].loop, 100);
        assert_int_equal(p[i].n_data, 1);
        if (victims[i])
            assert_int_equal(ca_revoke(ca, victims[i], NULL, &n, NULL), 0);
    }
    uint64_t until = clock_ns() + LONG_S * 1000000000ull;
    for (int i = 0; i < 3; i++)
        while (p[i].n_failed == 0 && clock_ns() < until)
            for (int j = 0; j < 3; j++)
                loop_turn(p[j].loop, 10);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(p[i].n_failed, 1);
        if (i == 1) /* here the client closes it */
            assert_non_null(strstr(p[i].message, "certificate of node-a is revoked"));
        close_pair(&p[i]);
    }
    ca_close(ca);
}

/* ---- under load ---- */

enum { N_CALLERS = 4, N_CALLS = 60 }; /* calls per client */

struct caller {
    struct pair p; /* of it: loop, address, tls_client, client, call */
    int n_done;
};

static void next_call(struct caller *c);

static void load_ended(struct http_call *k, const struct http_header *trailers, size_t n)
{
    struct caller *c = LOOP_OF(LOOP_OF(k, struct pair, call), struct caller, p);
    (void)trailers;
    (void)n;
    assert_string_equal(c->p.got, "hello");
    c->n_done++;
    next_call(c);
}

static void load_failed(struct http_call *k, int code, const char *message)
{
    (void)k;
    fail_msg("%d %s", code, message);
}

static const struct http_call_ops load_ops = {
    .head = on_head, .data = on_data, .ended = load_ended, .failed = load_failed};

/* Every fifth call has a new connection. */
static void next_call(struct caller *c)
{
    struct http_client_opts o = {
        .address = c->p.address, .tls = c->p.tls_client, .tls_host = "server", .connect_ms = 30000};
    if (c->n_done == N_CALLS)
        return;
    if (c->n_done % 5 == 0) {
        http_client_destroy(c->p.client);
        assert_int_equal(http_client_create(&c->p.client, c->p.loop, &o, NULL), 0);
    }
    c->p.got[0] = '\0';
    c->p.call.ops = &load_ops;
    assert_int_equal(http_call_start(c->p.client, &c->p.call, "GET", "/", NULL, 0, NULL, 0, true),
                     0);
}

/* Copies one more of the CA's files, as with scp: key and certificate do not match for a while.
 * Starts over with new certificates when all are copied. */
static void replace_step(struct ca *ca, int step, const struct cert_files *from,
                         const struct cert_files *to)
{
    struct err e = {0};
    switch (step % 10) {
    case 0:
        issue(ca, "server", ROLE_NODE, true);
        issue(ca, "client", ROLE_GATEWAY, true);
        break;
    case 9: /* the second round is during a rotation, the third after it */
        if ((step / 10 == 0 && ca_rotate(ca, "Shoal CA", 3650, &e) < 0) ||
            (step / 10 == 1 && ca_rotate_finish(ca, false, &e) < 0))
            fail_msg("%s", e.msg);
        break;
    default: {
        int i = (step % 10 - 1) / 4;
        const char *const a[] = {from[i].crl, from[i].ca, from[i].key, from[i].cert},
                          *const b[] = {to[i].crl, to[i].ca, to[i].key, to[i].cert};
        copy(a[(step % 10 - 1) % 4], b[(step % 10 - 1) % 4]);
    }
    }
}

static void test_certificates_are_replaced_under_load(void **state)
{
    struct ca *ca = fresh("load");
    struct pair p, stream;
    static struct caller callers[N_CALLERS];
    struct tls_client *tls;
    uint64_t until = clock_ns() + LONG_S * 1000000000ull;
    int step = 0, done = 0;
    (void)state;
    issue(ca, "server", ROLE_NODE, false);
    issue(ca, "client", ROLE_GATEWAY, false);
    struct cert_files from[2] = {files(ca, "server"), files(ca, "client")};
    struct cert_files to[2] = {copied(&from[0], "l-server"), copied(&from[1], "l-client")};
    serve(&p, &to[0]);
    stream = (struct pair){.call.ops = &ops, .loop = p.loop};
    memcpy(stream.address, p.address, sizeof(p.address));
    connect_as(&stream, &to[1], "server");
    assert_int_equal(
        http_call_start(stream.client, &stream.call, "GET", "/hold", NULL, 0, NULL, 0, true), 0);
    while (stream.n_data == 0 && clock_ns() < until)
        loop_turn(p.loop, 100);
    struct tls_opts o = {
        .cert = to[1].cert, .key = to[1].key, .ca = to[1].ca, .crl = to[1].crl, .reload = true};
    assert_int_equal(tls_client_open(&tls, &o, NULL), 0);
    for (int i = 0; i < N_CALLERS; i++) {
        callers[i] = (struct caller){.p = {.loop = p.loop, .tls_client = tls}};
        memcpy(callers[i].p.address, p.address, sizeof(p.address));
        next_call(&callers[i]);
    }
    while (done < N_CALLERS * N_CALLS) {
        loop_turn(p.loop, 100);
        assert_true(clock_ns() < until);
        done = 0;
        for (int i = 0; i < N_CALLERS; i++)
            done += callers[i].n_done;
        if (step < 30 && done > step * N_CALLERS * N_CALLS / 30) {
            replace_step(ca, step++, from, to);
            http_write(p.held, ".", 1); /* the stream survives all of it */
        }
    }
    assert_int_equal(step, 30);
    struct http_client_state st; /* its connection uses the old CA: only the stream uses it now */
    do {
        loop_turn(p.loop, 100);
        http_client_state(stream.client, &st);
    } while (st.connected && clock_ns() < until);
    assert_false(st.connected);
    http_end(p.held);
    while (stream.n_ended + stream.n_failed == 0 && clock_ns() < until)
        loop_turn(p.loop, 100);
    assert_int_equal(stream.n_ended, 1);
    assert_int_equal(strlen(stream.got), strlen("hello") + 30);
    for (int i = 0; i < N_CALLERS; i++)
        http_client_destroy(callers[i].p.client);
    leave(&stream);
    tls_client_close(tls);
    close_pair(&p);
    ca_close(ca);
}

/* Two machines go through a rotation in every order; no step locks one out. */
static void test_a_rotation_drops_nobody(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        struct ca *ca = fresh("rotate");
        struct pair p;
        struct err e = {0};
        issue(ca, "server", ROLE_NODE, false);
        issue(ca, "client", ROLE_GATEWAY, false);
        struct cert_files from[2] = {files(ca, "server"), files(ca, "client")};
        struct cert_files to[2] = {copied(&from[0], "m-server"), copied(&from[1], "m-client")};
        serve(&p, &to[0]);
        assert_true(call(&p, &to[1], "server"));
        leave(&p);
        assert_int_equal(ca_rotate(ca, "Shoal CA", 3650, &e), 0);
        assert_int_equal(ca_rotate(ca, "Shoal CA", 3650, &e), SHOAL_EINVAL);
        assert_int_equal(ca_rotate_finish(ca, false, &e), SHOAL_EINVAL);
        assert_non_null(strstr(e.msg, "client, server"));
        issue(ca, "server", ROLE_NODE, true);
        issue(ca, "client", ROLE_GATEWAY, true);
        for (int step = 0; step < 2; step++) { /* one whole machine at a time */
            int i = step ^ order;
            copied(&from[i], i == 0 ? "m-server" : "m-client");
            if (!call(&p, &to[1], "server"))
                fail_msg("order %d, step %d: %s", order, step, p.message);
            leave(&p);
        }
        if (ca_rotate_finish(ca, false, &e) < 0)
            fail_msg("%s", e.msg);
        for (int step = 0; step < 2; step++) {
            int i = step ^ order;
            copy(from[i].ca, to[i].ca);
            copy(from[i].crl, to[i].crl);
            if (!call(&p, &to[1], "server"))
                fail_msg("order %d, step %d of the end: %s", order, step, p.message);
            leave(&p);
        }
        close_pair(&p);
        ca_close(ca);
    }
}

/* After a rotation ends, certificates of the old CA are foreign. */
static void test_the_old_ca_is_not_trusted_any_more(void **state)
{
    struct ca *ca = fresh("rotate");
    struct pair p;
    struct cert_info c;
    struct err e = {0};
    (void)state;
    issue(ca, "server", ROLE_NODE, false);
    issue(ca, "client", ROLE_GATEWAY, false);
    struct cert_files server = files(ca, "server"), client = files(ca, "client");
    struct cert_files old = copied(&client, "m-old");
    assert_int_equal(ca_rotate(ca, "Shoal CA", 3650, &e), 0);
    issue(ca, "server", ROLE_NODE, true);
    assert_int_equal(ca_rotate_finish(ca, true, &e), 0);
    assert_false(ca_previous(ca, &c));
    serve(&p, &server);
    expect_refused(&p, &old, NULL, "");
    close_pair(&p);
    ca_close(ca);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_a_ca_is_never_replaced_without_force),
        cmocka_unit_test(test_what_cannot_be_issued),
        cmocka_unit_test(test_a_certificate_says_who_and_what),
        cmocka_unit_test(test_own_files_are_checked_with_a_hint),
        cmocka_unit_test(test_revoke_and_list),
        cmocka_unit_test(test_roles_come_from_verified_certificates_only),
        cmocka_unit_test(test_both_sides_know_each_other),
        cmocka_unit_test(test_certificates_that_are_refused),
        cmocka_unit_test(test_a_revoked_member_is_shut_out),
        cmocka_unit_test(test_files_change_under_a_running_stream),
        cmocka_unit_test(test_open_connections_are_cut),
        cmocka_unit_test(test_certificates_are_replaced_under_load),
        cmocka_unit_test(test_a_rotation_drops_nobody),
        cmocka_unit_test(test_the_old_ca_is_not_trusted_any_more),
    };
    signal(SIGPIPE, SIG_IGN); /* as in the program: a peer may close while TLS writes */
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
