/* test_enrol.c - a machine joins with a token: real CA, real TLS, over a pair of sockets. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/pem.h>

#include "base/clock.h"
#include "cluster/trust/ca.h"
#include "cluster/trust/enrol.h"
#include "cluster/trust/join_token.h"
#include "cluster/trust/roles.h"
#include "host/sha256.h"

static struct {
    char dir[64];
    X509 *cert, *ca;
    EVP_PKEY *key, *own;
    struct join_token token;
    uint32_t n_admitted;
} site;

static int make_ca(const char *dir, struct join_token *t, X509 **cert, X509 **own, EVP_PKEY **key)
{
    struct ca *ca;
    struct cert_info info;
    uint8_t sum[SHA256_BYTES];
    struct err e = {0};
    if (ca_init(dir, "Test CA", 30, false, &e) < 0 || ca_open(&ca, dir, &e) < 0)
        fail_msg("%s", e.msg);
    ca_current(ca, &info);
    assert_true(sha256_read_hex(sum, info.sha256));
    assert_int_equal(join_token_make(t, sum, &e), 0);
    assert_int_equal(ca_make_door(ca, "door", cert, own, key, &e), 0);
    ca_close(ca);
    return 0;
}

static int set_up(void **state)
{
    struct err e = {0};
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    snprintf(site.dir, sizeof(site.dir), "/tmp/test-enrol-XXXXXX");
    assert_non_null(mkdtemp(site.dir));
    char dir[80];
    snprintf(dir, sizeof(dir), "%s/ca", site.dir);
    make_ca(dir, &site.token, &site.cert, &site.ca, &site.key);
    return cert_make_key(&site.own, &e);
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    X509_free(site.cert);
    X509_free(site.ca);
    EVP_PKEY_free(site.key);
    EVP_PKEY_free(site.own);
    snprintf(command, sizeof(command), "rm -rf '%s'", site.dir);
    return system(command);
}

static int admit(void *ctx, const struct enrol_request *r, struct enrol_files *out, struct err *e)
{
    const struct cert_request request = {
        .name = r->name, .roles = ROLE_NODE, .days = 5, .key = r->key};
    struct cert_info info;
    struct ca *ca = NULL;
    char dir[80];
    (void)ctx;
    snprintf(dir, sizeof(dir), "%s/ca", site.dir);
    int rc = ca_open(&ca, dir, e);
    if (rc == 0)
        rc = ca_issue(ca, &request, false, &info, e);
    if (rc == 0) {
        site.n_admitted++;
        buf_printf(&out->cert, "%s", info.serial);
        buf_puts(&out->config, "cluster: {}\n");
    }
    ca_close(ca);
    return rc;
}

static struct enrol_door *open_door(uint64_t lasts_ns)
{
    const struct enrol_door_opts o = {.cert = site.cert,
                                      .ca = site.ca,
                                      .key = site.key,
                                      .token = site.token,
                                      .until_ns = clock_ns() + lasts_ns,
                                      .admit = admit};
    struct enrol_door *d;
    struct err e = {0};
    assert_int_equal(enrol_door_open(&d, &o, &e), 0);
    return d;
}

struct side {
    struct enrol_door *door;
    int fd, rc;
    struct err e;
};

static void *serve(void *arg)
{
    struct side *s = arg;
    s->rc = enrol_door_serve(s->door, s->fd, &s->e);
    close(s->fd);
    return NULL;
}

/* One machine knocks.  e: what it learns; at_door: what the door says. */
static int knock(struct enrol_door *d, const struct join_token *t, const char *name,
                 struct enrol_files *out, struct err *e, struct err *at_door)
{
    struct enrol_request r = {.key = site.own};
    int fds[2];
    pthread_t thread;
    snprintf(r.name, sizeof(r.name), "%s", name);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    struct side s = {.door = d, .fd = fds[1]};
    *e = (struct err){0};
    pthread_create(&thread, NULL, serve, &s);
    const int rc = enrol_join(fds[0], t, &r, out, e);
    close(fds[0]);
    pthread_join(thread, NULL);
    *at_door = s.e;
    assert_int_equal(s.rc == 0, rc == 0);
    return rc;
}

static void test_tokens(void **state)
{
    struct join_token t, again;
    char text[JOIN_TOKEN_TEXT], loud[2 * JOIN_TOKEN_TEXT];
    struct err e = {0};
    uint8_t sum[32] = {1, 2, 3, 255};
    (void)state;
    assert_int_equal(join_token_make(&t, sum, &e), 0);
    join_token_text(text, &t);
    assert_int_equal(join_token_parse(&again, text, &e), 0);
    assert_memory_equal(&t, &again, sizeof(t));
    size_t n = 0; /* pasted with capitals and blanks */
    for (const char *p = text; *p; p++) {
        loud[n++] = (char)(*p >= 'a' && *p <= 'z' ? *p - 32 : *p);
        if (p - text > 8)
            loud[n++] = ' ';
    }
    loud[n] = '\0';
    assert_int_equal(join_token_parse(&again, loud, &e), 0);
    assert_memory_equal(&t, &again, sizeof(t));
    for (size_t i = 6; text[i]; i++) { /* every typing error is noticed, and nothing is repeated */
        char wrong[JOIN_TOKEN_TEXT];
        memcpy(wrong, text, sizeof(wrong));
        wrong[i] = text[i] == 'q' ? 'r' : 'q';
        assert_int_equal(join_token_parse(&again, wrong, &e), SHOAL_EINVAL);
        assert_null(strstr(e.msg, "qqq"));
    }
    text[strlen(text) - 1] = '\0';
    assert_int_equal(join_token_parse(&again, text, &e), SHOAL_EINVAL);
    assert_int_equal(join_token_parse(&again, "", &e), SHOAL_EINVAL);
    assert_int_equal(join_token_parse(&again, "shoal-0189", &e), SHOAL_EINVAL);
}

static void test_one_machine_joins_once(void **state)
{
    struct enrol_files f;
    struct err e, door;
    (void)state;
    struct enrol_door *d = open_door(UINT64_C(600000000000));
    enrol_files_init(&f);
    assert_int_equal(knock(d, &site.token, "hub2", &f, &e, &door), 0);
    assert_true(f.cert.len > 0);
    assert_string_equal(buf_str(&f.config), "cluster: {}\n");
    assert_true(enrol_door_is_shut(d));
    assert_int_equal(site.n_admitted, 1);
    /* the certificate is for the key that never left, and there is no key beside it */
    char path[128];
    snprintf(path, sizeof(path), "%s/ca/members/hub2/cert.pem", site.dir);
    FILE *file = fopen(path, "r");
    X509 *cert = PEM_read_X509(file, NULL, NULL, NULL);
    fclose(file);
    assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(cert), site.own), 1);
    X509_free(cert);
    snprintf(path, sizeof(path), "%s/ca/members/hub2/key.pem", site.dir);
    assert_int_not_equal(access(path, F_OK), 0);
    /* a second time */
    assert_int_equal(knock(d, &site.token, "hub3", &f, &e, &door), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "used already"));
    assert_int_equal(site.n_admitted, 1);
    enrol_files_fini(&f);
    enrol_door_close(d);
}

static void test_wrong_tokens(void **state)
{
    struct enrol_files f;
    struct err e, door;
    struct join_token wrong = site.token;
    (void)state;
    struct enrol_door *d = open_door(UINT64_C(600000000000));
    enrol_files_init(&f);
    wrong.ca[3] ^= 1; /* the machine refuses before it says anything */
    assert_int_equal(knock(d, &wrong, "hub4", &f, &e, &door), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "its CA is another"));
    wrong = site.token;
    wrong.secret[15] ^= 1;
    for (uint32_t i = 0; i < ENROL_MAX_BAD; i++) {
        assert_false(enrol_door_is_shut(d));
        assert_int_equal(knock(d, &wrong, "hub4", &f, &e, &door), SHOAL_EINVAL);
        assert_non_null(strstr(e.msg, "not the one of this shoal"));
    }
    assert_true(enrol_door_is_shut(d)); /* and the right one is refused as well */
    assert_int_equal(knock(d, &site.token, "hub4", &f, &e, &door), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "too many wrong tokens"));
    enrol_door_close(d);
    d = open_door(0);
    assert_int_equal(knock(d, &site.token, "hub4", &f, &e, &door), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "expired"));
    enrol_door_close(d);
    d = open_door(UINT64_C(600000000000)); /* a member that exists is not replaced */
    assert_int_equal(knock(d, &site.token, "hub2", &f, &e, &door), SHOAL_EINVAL);
    assert_false(enrol_door_is_shut(d)); /* with another name it may try again */
    assert_int_equal(knock(d, &site.token, "hub4", &f, &e, &door), 0);
    enrol_files_fini(&f);
    enrol_door_close(d);
}

/* A relay between both: it has no certificate of the CA, so it can only pass bytes on; and what it
 * has recorded is worth nothing on another connection. */
struct tap {
    int from, to;
    struct buf bytes;
};

static void *pass(void *arg)
{
    struct tap *t = arg;
    char b[4096];
    for (ssize_t n; (n = read(t->from, b, sizeof(b))) > 0;) {
        buf_put(&t->bytes, b, (size_t)n);
        if (write(t->to, b, (size_t)n) != n)
            break;
    }
    shutdown(t->to, SHUT_WR);
    return NULL;
}

static void test_what_was_recorded_is_refused(void **state)
{
    struct enrol_door *d = open_door(UINT64_C(600000000000));
    struct enrol_request r = {.name = "hub5", .key = site.own};
    struct enrol_files f;
    struct err e = {0};
    int a[2], b[2];
    pthread_t threads[3];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, a), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, b), 0);
    struct tap there = {a[1], b[0], {0}}, back = {b[0], a[1], {0}};
    buf_init(&there.bytes, 1 << 20);
    buf_init(&back.bytes, 1 << 20);
    struct side s = {.door = d, .fd = b[1]};
    enrol_files_init(&f);
    pthread_create(&threads[0], NULL, serve, &s);
    pthread_create(&threads[1], NULL, pass, &there);
    pthread_create(&threads[2], NULL, pass, &back);
    assert_int_equal(enrol_join(a[0], &site.token, &r, &f, &e), 0);
    close(a[0]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    close(a[1]);
    close(b[0]);
    assert_int_equal(s.rc, 0);
    enrol_door_close(d);
    /* the same bytes to a door with the same token, which was opened again */
    d = open_door(UINT64_C(600000000000));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, a), 0);
    const uint32_t n = site.n_admitted;
    s = (struct side){.door = d, .fd = a[1]};
    pthread_create(&threads[0], NULL, serve, &s);
    assert_int_equal(write(a[0], there.bytes.data, there.bytes.len), (ssize_t)there.bytes.len);
    shutdown(a[0], SHUT_WR);
    pthread_join(threads[0], NULL);
    close(a[0]);
    assert_true(s.rc < 0);
    assert_int_equal(site.n_admitted, n);
    assert_false(enrol_door_is_shut(d));
    enrol_files_fini(&f);
    buf_fini(&there.bytes);
    buf_fini(&back.bytes);
    enrol_door_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens), cmocka_unit_test(test_one_machine_joins_once),
        cmocka_unit_test(test_wrong_tokens), cmocka_unit_test(test_what_was_recorded_is_refused)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
