/* test_model_signing.c - signatures of models: what is accepted, and every attack that is not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file_read.h"
#include "host/identity.h"
#include "supply/minisign.h"
#include "supply/model_signing.h"
#include "supply/signer_anchor.h"

static char dir[64];

static const char *at(const char *name)
{
    static char paths[8][128];
    static int next;
    char *p = paths[next++ % 8];
    snprintf(p, sizeof(paths[0]), "%s/%s", dir, name);
    return p;
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static EVP_PKEY *put_key(const char *name, const char *public)
{
    EVP_PKEY *k = EVP_EC_gen("P-256");
    FILE *f = fopen(at(name), "w");
    assert_int_equal(PEM_write_PrivateKey(f, k, NULL, NULL, 0, NULL, NULL), 1);
    fclose(f);
    f = fopen(at(public), "w");
    assert_int_equal(PEM_write_PUBKEY(f, k), 1);
    fclose(f);
    return k;
}

static X509 *put_certificate(const char *name, EVP_PKEY *key, const char *cn, X509 *by,
                             EVP_PKEY *by_key, const char *usage, long from_s, long to_s)
{
    X509 *c = X509_new();
    X509V3_CTX ctx;
    X509_set_version(c, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(c), by ? 2 : 1);
    X509_gmtime_adj(X509_getm_notBefore(c), from_s);
    X509_gmtime_adj(X509_getm_notAfter(c), to_s);
    X509_set_pubkey(c, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(c), "CN", MBSTRING_ASC,
                               (const unsigned char *)cn, -1, -1, 0);
    X509_set_issuer_name(c, X509_get_subject_name(by ? by : c));
    X509V3_set_ctx(&ctx, by ? by : c, c, NULL, NULL, 0);
    X509_EXTENSION *x = X509V3_EXT_conf_nid(NULL, &ctx, NID_basic_constraints,
                                            by ? "CA:FALSE" : "critical,CA:TRUE");
    X509_add_ext(c, x, -1);
    X509_EXTENSION_free(x);
    x = X509V3_EXT_conf_nid(NULL, &ctx, NID_key_usage, usage);
    X509_add_ext(c, x, -1);
    X509_EXTENSION_free(x);
    assert_true(X509_sign(c, by_key, EVP_sha256()) > 0);
    FILE *f = fopen(at(name), "w");
    assert_int_equal(PEM_write_X509(f, c), 1);
    fclose(f);
    return c;
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/test_model_signing.XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(mkdir(at("m"), 0755), 0);
    assert_int_equal(mkdir(at("m/sub"), 0755), 0);
    put("m/config.json", "{}");
    put("m/weights.bin", "0123456789");
    put("m/README.md", "words");
    put("m/.hidden", "h");
    put("m/sub/x.txt", "x");
    EVP_PKEY_free(put_key("a.pem", "a.pub"));
    EVP_PKEY_free(put_key("b.pem", "b.pub"));
    return 0;
}

static int teardown(void **state)
{
    char line[160];
    (void)state;
    snprintf(line, sizeof(line), "rm -rf '%s'", dir);
    return system(line);
}

static int sign_with(struct buf *out, const char *path, const char *key, const char *certificate,
                     struct err *e)
{
    const struct model_signing_opts o = {.path = at(path),
                                         .key = at(key),
                                         .certificate = certificate ? at(certificate) : NULL,
                                         .out = at("m/model.sig")};
    uint32_t n;
    buf_init(out, OMS_MAX_BYTES);
    return model_signing_sign(out, &o, &n, e);
}

static void sign(struct buf *out, const char *path)
{
    struct err e = {0};
    assert_int_equal(sign_with(out, path, "a.pem", NULL, &e), 0);
}

/* Checks a signature in text against the model. */
static int check(const struct buf *text, const struct signer_anchor_opts *who, const char *path,
                 struct signed_by *by, struct err *e)
{
    struct signed_by mine;
    struct signer_anchor *a = NULL;
    struct oms_bundle b;
    struct model_signing_report r;
    *e = (struct err){0};
    oms_bundle_init(&b);
    model_signing_report_init(&r);
    assert_int_equal(signer_anchor_open(&a, who, e), 0);
    int rc = oms_bundle_read(&b, buf_str(text), text->len, e);
    if (rc == 0)
        rc = signer_anchor_check(a, &b, by ? by : &mine, e);
    if (rc == 0)
        rc = model_signing_compare(&r, &b, at(path), NULL, e);
    signer_anchor_close(a);
    model_signing_report_fini(&r);
    oms_bundle_fini(&b);
    return rc;
}

static int check_key(const struct buf *text, const char *key, const char *path, struct err *e)
{
    const struct signer_anchor_opts who = {.key = at(key)};
    return check(text, &who, path, NULL, e);
}

static void refused(const struct buf *text, const char *path, const char *why)
{
    struct err e;
    assert_true(check_key(text, "a.pub", path, &e) < 0);
    if (!strstr(e.msg, why))
        fail_msg("'%s' does not say '%s'", e.msg, why);
}

static void test_accepts_what_was_signed(void **state)
{
    struct buf t;
    struct err e;
    (void)state;
    sign(&t, "m");
    assert_int_equal(check_key(&t, "a.pub", "m", &e), 0);
    buf_fini(&t);
    sign(&t, "m/weights.bin");
    assert_int_equal(check_key(&t, "a.pub", "m/weights.bin", &e), 0);
    refused(&t, "m/config.json", "changed");
    buf_fini(&t);
}

static void test_names_the_file_that_differs(void **state)
{
    struct buf t;
    struct err e;
    (void)state;
    sign(&t, "m");
    put("m/weights.bin", "0123456788");
    refused(&t, "m", "weights.bin: changed");
    put("m/weights.bin", "0123456789");
    put("m/.hidden2", "");
    refused(&t, "m", ".hidden2: not signed");
    unlink(at("m/.hidden2"));
    rename(at("m/sub/x.txt"), at("x.txt"));
    refused(&t, "m", "sub/x.txt: missing");
    rename(at("x.txt"), at("m/sub/y.txt"));
    refused(&t, "m", "sub/y.txt: not signed, sub/x.txt: missing");
    rename(at("m/sub/y.txt"), at("m/sub/x.txt"));
    assert_int_equal(check_key(&t, "a.pub", "m", &e), 0);
    buf_fini(&t);
}

static void test_refuses_links_and_pipes(void **state)
{
    struct buf t, other;
    struct err e = {0};
    (void)state;
    sign(&t, "m");
    rename(at("m/config.json"), at("config.json"));
    assert_int_equal(symlink(at("config.json"), at("m/config.json")), 0);
    refused(&t, "m", "symbolic link");
    assert_true(sign_with(&other, "m", "a.pem", NULL, &e) < 0);
    buf_fini(&other);
    unlink(at("m/config.json"));
    rename(at("config.json"), at("m/config.json"));
    assert_int_equal(mkfifo(at("m/pipe"), 0600), 0);
    refused(&t, "m", "not a regular file");
    unlink(at("m/pipe"));
    buf_fini(&t);
}

static void test_refuses_other_keys(void **state)
{
    struct buf t;
    struct err e;
    (void)state;
    sign(&t, "m");
    assert_int_equal(check_key(&t, "b.pub", "m", &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "another key"));
    /* without the hint the signature itself must tell */
    char *hint = strstr(t.data, "\"hint\":\"");
    memset(hint + 8, ' ', 64);
    assert_int_equal(check_key(&t, "b.pub", "m", &e), SHOAL_EFORMAT);
    buf_fini(&t);
}

/* Every byte of what is signed, and of the signature. */
static void test_changed_bytes(void **state)
{
    static const char *const parts[] = {"\"payload\":\"", "\"sig\":\""};
    struct buf t, swapped;
    struct err e;
    (void)state;
    sign(&t, "m");
    for (int k = 0; k < 2; k++) {
        char *p = strstr(t.data, parts[k]) + strlen(parts[k]);
        for (size_t n = strcspn(p, "\""); n > 0; n--, p++) {
            *p = (char)(*p ^ 1);
            assert_true(check_key(&t, "a.pub", "m", &e) < 0);
            *p = (char)(*p ^ 1);
        }
    }
    assert_int_equal(check_key(&t, "a.pub", "m", &e), 0);
    put("m/weights.bin", "9876543210"); /* what an attacker wants to be accepted */
    /* the list of files of another signature, under this one's signature */
    sign(&swapped, "m");
    char *from = strstr(swapped.data, "\"payload\":"), *to = strstr(t.data, "\"payload\":");
    size_t n = strlen("\"payload\":\"") + strcspn(from + strlen("\"payload\":\""), "\"");
    memcpy(to, from, n);
    refused(&t, "m", "does not match");
    buf_fini(&swapped);
    buf_fini(&t);
    put("m/weights.bin", "0123456789");
}

static void read_as(const char *statement, const char *why, int code)
{
    struct oms_bundle b = {0};
    struct buf t;
    struct err e = {0};
    oms_bundle_init(&b);
    buf_init(&t, OMS_MAX_BYTES);
    b.payload = (struct oms_bytes){(const uint8_t *)statement, strlen(statement)};
    b.signature = (struct oms_bytes){(const uint8_t *)"s", 1};
    oms_bundle_write(&t, &b);
    oms_bundle_fini(&b);
    oms_bundle_init(&b);
    int rc = oms_bundle_read(&b, buf_str(&t), t.len, &e);
    if (rc != code || !strstr(e.msg, why))
        fail_msg("%d '%s', not '%s'", rc, e.msg, why);
    oms_bundle_fini(&b);
    buf_fini(&t);
}

#define STATEMENT(NAMES, IGNORED, SUM)                                                             \
    "{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[{\"name\":\"m\",\"digest\":{"     \
    "\"sha256\":\"" SUM "\"}}],\"predicateType\":\"https://model_signing/signature/v1.0\","        \
    "\"predicate\":{\"serialization\":{\"method\":\"files\",\"hash_type\":\"sha256\","             \
    "\"ignore_paths\":[" IGNORED "]},\"resources\":[" NAMES "]}}"
#define HEX "98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4"
#define NAMED(N) "{\"name\":\"" N "\",\"algorithm\":\"sha256\",\"digest\":\"" HEX "\"}"

static void test_path_tricks(void **state)
{
    static const char *const names[] = {
        STATEMENT(NAMED("../x"), "", HEX),   STATEMENT(NAMED("/etc/passwd"), "", HEX),
        STATEMENT(NAMED("a/../b"), "", HEX), STATEMENT(NAMED("a//b"), "", HEX),
        STATEMENT(NAMED(""), "", HEX),       STATEMENT(NAMED("a/"), "", HEX),
        STATEMENT(NAMED("./a"), "", HEX),    STATEMENT(NAMED("a\\\\b"), "", HEX),
        STATEMENT(NAMED("a\\n"), "", HEX),
    };
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        read_as(names[i], "path of a file", SHOAL_EFORMAT);
    read_as(STATEMENT(NAMED("a"), "\".\"", HEX), "leads out", SHOAL_EFORMAT);
    read_as(STATEMENT(NAMED("a"), "\"../..\"", HEX), "leads out", SHOAL_EFORMAT);
    read_as(STATEMENT(NAMED("a"), "", HEX), "digest of its subject", SHOAL_EFORMAT);
    read_as(STATEMENT("", "", HEX), "no files", SHOAL_EFORMAT);
}

static void test_huge_lists(void **state)
{
    struct buf s, names;
    (void)state;
    buf_init(&names, OMS_MAX_BYTES);
    buf_init(&s, OMS_MAX_BYTES);
    for (int i = 0; i < (int)OMS_MAX_FILES + 1; i++)
        buf_printf(&names, "%s{\"name\":\"%d\",\"algorithm\":\"sha256\",\"digest\":\"" HEX "\"}",
                   i ? "," : "", i);
    buf_printf(&s, STATEMENT("%s", "", HEX), buf_str(&names));
    read_as(buf_str(&s), "more than 16384", SHOAL_ELIMIT);
    buf_fini(&s);
    buf_fini(&names);
}

static void test_two_signatures(void **state)
{
    struct buf t, two;
    (void)state;
    sign(&t, "m");
    char *one = strstr(t.data, "\"signatures\":[") + strlen("\"signatures\":[");
    size_t n = strcspn(one, "]");
    buf_init(&two, OMS_MAX_BYTES);
    buf_put(&two, t.data, (size_t)(one - t.data));
    buf_put(&two, one, n);
    buf_putc(&two, ',');
    buf_puts(&two, one);
    refused(&two, "m", "exactly one signature");
    buf_fini(&two);
    buf_fini(&t);
}

static void check_certificate(const char *signer, const char *subject, const char *why)
{
    struct signed_by by;
    struct err e = {0};
    struct buf t;
    char pem[32], crt[32];
    const struct signer_anchor_opts who = {.certificates = at("ca.crt"), .subject = subject};
    snprintf(pem, sizeof(pem), "%s.pem", signer);
    snprintf(crt, sizeof(crt), "%s.crt", signer);
    assert_int_equal(sign_with(&t, "m", pem, crt, &e), 0);
    int rc = check(&t, &who, "m", &by, &e);
    if (!why) {
        assert_int_equal(rc, 0);
        assert_int_equal(by.method, SIGNER_CERTIFICATE);
        assert_string_equal(by.subject, signer);
    } else if (rc == 0 || !strstr(e.msg, why)) {
        fail_msg("%s: '%s', not '%s'", signer, e.msg, why);
    }
    buf_fini(&t);
}

static void test_certificates(void **state)
{
    static const char *const names[] = {"good", "old", "early", "tls"};
    const long day = 86400;
    EVP_PKEY *ca = put_key("ca.pem", "ca.pub");
    X509 *root = put_certificate("ca.crt", ca, "ca", NULL, ca, "critical,keyCertSign", -day, day);
    (void)state;
    for (int i = 0; i < 4; i++) {
        char pem[32], crt[32];
        snprintf(pem, sizeof(pem), "%s.pem", names[i]);
        snprintf(crt, sizeof(crt), "%s.crt", names[i]);
        EVP_PKEY *k = put_key(pem, "ignored.pub");
        X509_free(put_certificate(crt, k, names[i], root, ca,
                                  i == 3 ? "keyAgreement" : "digitalSignature",
                                  i == 2 ? day / 2 : -day, i == 1 ? -day / 2 : day));
        EVP_PKEY_free(k);
    }
    EVP_PKEY *k = put_key("self.pem", "ignored.pub");
    X509_free(put_certificate("self.crt", k, "self", NULL, k, "digitalSignature", -day, day));
    EVP_PKEY_free(k);
    check_certificate("good", NULL, NULL);
    check_certificate("good", "good", NULL);
    check_certificate("good", "other", "not by 'other'");
    check_certificate("old", NULL, "expired");
    check_certificate("early", NULL, "not yet valid");
    check_certificate("tls", NULL, "not for signing");
    check_certificate("self", NULL, "not trusted");
    struct buf t;
    struct err e = {0};
    assert_true(sign_with(&t, "m", "a.pem", "good.crt", &e) < 0);
    assert_non_null(strstr(e.msg, "not that of the key"));
    buf_fini(&t);
    X509_free(root);
    EVP_PKEY_free(ca);
}

/* ---- what a model is loaded from ---- */

static int compare_read(const struct buf *t, const char *path, struct err *e)
{
    static const _Atomic bool never;
    struct model_signing_report r;
    struct identity_list *l = NULL;
    struct identity id;
    struct oms_bundle b;
    oms_bundle_init(&b);
    model_signing_report_init(&r);
    *e = (struct err){0};
    assert_int_equal(oms_bundle_read(&b, buf_str(t), t->len, e), 0);
    assert_int_equal(identity_list(&l, at(path), e), 0);
    assert_int_equal(identity_read(&id, l, NULL, &never, e), 0);
    int rc = model_signing_compare_read(&r, &b, l, e);
    identity_list_free(l);
    model_signing_report_fini(&r);
    oms_bundle_fini(&b);
    return rc;
}

static void test_compares_what_is_read(void **state)
{
    struct buf t;
    struct err e;
    (void)state;
    sign(&t, "m");
    put("m/model.sig", buf_str(&t)); /* is not part of the model */
    unlink(at("m/README.md"));       /* nor is this */
    assert_int_equal(compare_read(&t, "m", &e), 0);
    assert_int_equal(compare_read(&t, "m/weights.bin", &e), 0);
    put("m/added.json", "{}");
    assert_int_equal(compare_read(&t, "m", &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "added.json: not signed"));
    unlink(at("m/added.json"));
    unlink(at("m/config.json"));
    assert_int_equal(compare_read(&t, "m", &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "config.json: missing"));
    put("m/config.json", "{}");
    put("m/weights.bin", "9876543210");
    assert_int_equal(compare_read(&t, "m", &e), SHOAL_EFORMAT);
    assert_int_equal(compare_read(&t, "m/weights.bin", &e), SHOAL_EFORMAT);
    put("m/weights.bin", "0123456789");
    put("m/README.md", "words");
    unlink(at("m/model.sig"));
    buf_fini(&t);
}

/* ---- minisign ---- */

/* Made with minisign 0.11: -G -W, -S -t 'line 1' over "hello\n". */
static const char mini_key[] = "untrusted comment: minisign public key 9FF50518E2D34EC4\n"
                               "RWTETtPiGAX1n/JCCZHbndILjOgvhQ/KKdlsWi60HYKXpsYRGeqmjp4Y\n";
static const char mini_sig[] =
    "untrusted comment: signature from minisign secret key\n"
    "RUTETtPiGAX1n7Ja/KkUYGuIit53rDut5oIlrpcHEy5DD/"
    "wzsyvkOjmyxe1KvI3+q9EQ9hTPNMngRmHkI34dHGOGBflSUIO1nQw=\n"
    "trusted comment: line 1\n"
    "WZ9tjfXcu2YIQBg0q/aAcNF2fl0jYBA8b40YQpGUHZrlQgV/ENg3BvJJP05huCRNb02W1k7bcFqykKeNcwWACQ==\n";

static void test_minisign(void **state)
{
    struct minisign_key k;
    struct minisign m;
    struct err e = {0};
    char text[sizeof(mini_sig)];
    (void)state;
    put("hello", "hello\n");
    assert_int_equal(minisign_read_key(&k, mini_key, sizeof(mini_key) - 1, &e), 0);
    assert_int_equal(minisign_read(&m, mini_sig, sizeof(mini_sig) - 1, &e), 0);
    assert_int_equal(minisign_check(&m, &k, at("hello"), &e), 0);
    assert_string_equal(m.comment, "line 1");
    /* the first line is not covered; the last newline has no meaning */
    for (size_t i = strcspn(mini_sig, "\n") + 1; i + 2 < sizeof(mini_sig); i++) {
        memcpy(text, mini_sig, sizeof(text));
        text[i] = (char)(text[i] ^ 1);
        if (minisign_read(&m, text, sizeof(text) - 1, &e) == 0)
            assert_true(minisign_check(&m, &k, at("hello"), &e) < 0);
    }
    put("hello", "hello!\n");
    assert_int_equal(minisign_read(&m, mini_sig, sizeof(mini_sig) - 1, &e), 0);
    assert_int_equal(minisign_check(&m, &k, at("hello"), &e), SHOAL_EFORMAT);
    k.id[0] ^= 1;
    assert_int_equal(minisign_check(&m, &k, at("hello"), &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "another key"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepts_what_was_signed),
        cmocka_unit_test(test_names_the_file_that_differs),
        cmocka_unit_test(test_refuses_links_and_pipes),
        cmocka_unit_test(test_refuses_other_keys),
        cmocka_unit_test(test_changed_bytes),
        cmocka_unit_test(test_path_tricks),
        cmocka_unit_test(test_huge_lists),
        cmocka_unit_test(test_two_signatures),
        cmocka_unit_test(test_certificates),
        cmocka_unit_test(test_compares_what_is_read),
        cmocka_unit_test(test_minisign),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
