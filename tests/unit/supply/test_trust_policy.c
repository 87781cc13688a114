/* test_trust_policy.c - who may sign which models. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/identity.h"
#include "supply/model_signing.h"
#include "supply/trust_policy.h"

static char dir[64];
static const _Atomic bool never;

static const char *at(const char *name)
{
    static char paths[8][256];
    static int next;
    char *p = paths[next++ % 8];
    snprintf(p, sizeof(paths[0]), "%s/%s", dir, name);
    return p;
}

static void put(const char *name, const char *text, size_t n)
{
    FILE *f = fopen(at(name), "w");
    assert_non_null(f);
    fwrite(text, 1, n, f);
    fclose(f);
}

static void put_key(const char *private, const char *public)
{
    EVP_PKEY *k = EVP_EC_gen("P-256");
    FILE *f = fopen(at(private), "w");
    assert_int_equal(PEM_write_PrivateKey(f, k, NULL, NULL, 0, NULL, NULL), 1);
    fclose(f);
    f = fopen(at(public), "w");
    assert_int_equal(PEM_write_PUBKEY(f, k), 1);
    fclose(f);
    EVP_PKEY_free(k);
}

static void sign(const char *path, const char *key, const char *out)
{
    const struct model_signing_opts o = {.path = at(path), .key = at(key), .out = at(out)};
    struct err e = {0};
    struct buf b;
    uint32_t n;
    buf_init(&b, OMS_MAX_BYTES);
    assert_int_equal(model_signing_sign(&b, &o, &n, &e), 0);
    put(out, b.data, b.len);
    buf_fini(&b);
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/test_trust_policy.XXXXXX");
    assert_non_null(mkdtemp(dir));
    put_key("a.pem", "a.pub");
    put_key("b.pem", "b.pub");
    put_key("c.pem", "c.pub");
    put("m.gguf", "weights", 7);
    assert_int_equal(mkdir(at("folder"), 0755), 0);
    put("folder/config.json", "{}", 2);
    put("folder/w.bin", "w", 1);
    return 0;
}

static int teardown(void **state)
{
    char line[160];
    (void)state;
    snprintf(line, sizeof(line), "rm -rf '%s'", dir);
    return system(line);
}

/* Two signers: a for line-*, b for all. */
static int check_with(bool require, const char *signatures, const char *path, const char *name,
                      bool included, struct signed_by *by, struct err *e)
{
    static const char *const line[] = {"line-*"};
    const struct trust_policy_signer signers[] = {
        {.name = "factory", .key = at("a.pub"), .models = line, .n_models = 1},
        {.name = "lab", .key = at("b.pub")},
    };
    const struct trust_policy_opts o = {.signers = signers,
                                        .n_signers = 2,
                                        .signatures = signatures,
                                        .require = require,
                                        .included = true};
    const struct trust_policy_model m = {
        .names = &name, .n_names = 1, .path = at(path), .included = included};
    struct trust_policy *p = NULL;
    *e = (struct err){0};
    assert_int_equal(trust_policy_create(&p, &o, e), 0);
    int rc = trust_policy_check(p, &m, &never, by, NULL, e);
    trust_policy_destroy(p);
    return rc;
}

static void accepted(bool require, const char *path, const char *name, const char *signer)
{
    struct signed_by by;
    struct err e;
    if (check_with(require, NULL, path, name, false, &by, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(by.name, signer);
}

static void refused(bool require, const char *path, const char *name, const char *why)
{
    struct signed_by by;
    struct err e;
    assert_int_equal(check_with(require, NULL, path, name, false, &by, &e), SHOAL_EINVAL);
    if (!strstr(e.msg, why))
        fail_msg("'%s' does not say '%s'", e.msg, why);
}

static void test_unsigned(void **state)
{
    struct signed_by by;
    struct err e;
    (void)state;
    accepted(false, "m.gguf", "line-1", "");
    refused(true, "m.gguf", "line-1", "it has no signature");
    assert_int_equal(check_with(true, NULL, "m.gguf", "line-1", true, &by, &e), 0);
}

static void test_who_may_sign_what(void **state)
{
    (void)state;
    sign("m.gguf", "a.pem", "m.gguf.sig");
    accepted(true, "m.gguf", "line-1", "factory");
    refused(true, "m.gguf", "reply", "factory may not sign reply");
    refused(false, "m.gguf", "reply", "factory may not sign reply");
    sign("m.gguf", "b.pem", "m.gguf.sig");
    accepted(true, "m.gguf", "reply", "lab");
    sign("m.gguf", "c.pem", "m.gguf.sig"); /* nobody that is trusted */
    refused(true, "m.gguf", "reply", "another key");
    accepted(false, "m.gguf", "reply", "");
    put("m.gguf.sig", "{}", 2);
    refused(true, "m.gguf", "reply", "not a model signature");
}

static void test_changed_models(void **state)
{
    (void)state;
    sign("m.gguf", "b.pem", "m.gguf.sig");
    put("m.gguf", "Weights", 7);
    refused(true, "m.gguf", "reply", "m.gguf: changed");
    refused(false, "m.gguf", "reply", "m.gguf: changed"); /* a wrong signature is worse than none */
    sign("folder", "b.pem", "folder/model.sig");
    accepted(true, "folder", "reply", "lab");
    put("folder/extra.json", "{}", 2);
    refused(true, "folder", "reply", "extra.json: not signed");
    unlink(at("folder/extra.json"));
    unlink(at("folder/config.json"));
    refused(true, "folder", "reply", "config.json: missing");
}

/* The signature of one model does not serve another one. */
static void test_swapped_signature(void **state)
{
    (void)state;
    put("other.gguf", "other", 5);
    sign("other.gguf", "b.pem", "m.gguf.sig");
    refused(true, "m.gguf", "reply", "m.gguf: changed");
}

static void test_other_places(void **state)
{
    static const char hex[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    char path[160];
    struct signed_by by;
    struct err e;
    struct identity_list *l = NULL;
    struct identity id;
    char sum[65];
    (void)state;
    assert_int_equal(mkdir(at("sigs"), 0755), 0); /* by its hash */
    assert_int_equal(identity_list(&l, at("m.gguf"), &e), 0);
    assert_int_equal(identity_read(&id, l, NULL, &never, &e), 0);
    identity_list_free(l);
    sha256_hex(sum, id.sum);
    snprintf(path, sizeof(path), "sigs/%s.sig", sum);
    sign("m.gguf", "b.pem", path);
    assert_int_equal(check_with(true, at("sigs"), "m.gguf", "reply", false, &by, &e), 0);
    assert_string_equal(by.name, "lab");
    snprintf(path, sizeof(path), "%s", hex); /* beside the files of the store */
    assert_int_equal(mkdir(at(path), 0755), 0);
    snprintf(path, sizeof(path), "%s/files", hex);
    assert_int_equal(mkdir(at(path), 0755), 0);
    snprintf(path, sizeof(path), "%s/files/m.gguf", hex);
    put(path, "weights", 7);
    refused(true, path, "reply", "it has no signature");
    snprintf(path, sizeof(path), "%s/signature", hex);
    sign("m.gguf", "b.pem", path);
    snprintf(path, sizeof(path), "%s/files/m.gguf", hex);
    accepted(true, path, "reply", "lab");
}

static void test_wrong_files(void **state)
{
    struct trust_policy_signer s = {.name = "x", .key = at("none.pub")};
    const struct trust_policy_opts o = {.signers = &s, .n_signers = 1};
    struct trust_policy *p = NULL;
    struct err e = {0};
    (void)state;
    assert_true(trust_policy_create(&p, &o, &e) < 0);
    assert_null(p);
    assert_non_null(strstr(e.msg, "trust.signers, x"));
    s.key = at("m.gguf");
    assert_int_equal(trust_policy_create(&p, &o, &e), SHOAL_EINVAL);
}

/* With one signer, key a. */
static int check_revoked(const char *revoked, int64_t until_s, struct err *e)
{
    const char *name = "line-1";
    const struct trust_policy_signer signers[] = {
        {.name = "old", .key = at("a.pub"), .until_s = until_s},
        {.name = "new", .key = at("b.pub")},
    };
    const struct trust_policy_opts o = {.signers = signers,
                                        .n_signers = 2,
                                        .revoked = &revoked,
                                        .n_revoked = revoked ? 1 : 0,
                                        .require = true};
    const struct trust_policy_model m = {.names = &name, .n_names = 1, .path = at("m.gguf")};
    struct signed_by by;
    struct trust_policy *p = NULL;
    *e = (struct err){0};
    int rc = trust_policy_create(&p, &o, e);
    if (rc == 0)
        rc = trust_policy_check(p, &m, &never, &by, NULL, e);
    trust_policy_destroy(p);
    return rc;
}

static void test_revoked_and_expired(void **state)
{
    static const char version[] =
        "9ae38b5d3b1d8e0cf6e5f8d8ccfa53c9f8bd7cb8a1ac3d8f3a1a6f0e5d1c2b3a";
    struct err e;
    (void)state;
    put("m.gguf", "weights", 7);
    sign("m.gguf", "a.pem", "m.gguf.sig");
    assert_int_equal(check_revoked(NULL, 0, &e), 0);
    assert_int_equal(check_revoked(at("c.pub"), 0, &e), 0);
    assert_int_equal(check_revoked(version, 0, &e), 0); /* of another model */
    assert_int_equal(check_revoked(at("a.pub"), 0, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "which trust.revoked names"));
    assert_int_equal(check_revoked(at("nothing"), 0, &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "trust.revoked"));
    assert_int_equal(check_revoked(NULL, 4102444800, &e), 0);
    assert_int_equal(check_revoked(NULL, 1000000000, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "old is believed no longer"));
    /* rotation: signed anew, both are believed; then the old key goes */
    sign("m.gguf", "b.pem", "m.gguf.sig");
    assert_int_equal(check_revoked(NULL, 0, &e), 0);
    assert_int_equal(check_revoked(at("a.pub"), 1000000000, &e), 0);
    /* an older version has a valid signature, too: it is named by its hash */
    struct identity_list *l = NULL;
    struct identity id;
    char hex[2 * SHA256_BYTES + 1];
    assert_int_equal(identity_list(&l, at("m.gguf"), &e), 0);
    assert_int_equal(identity_read(&id, l, NULL, &never, &e), 0);
    identity_list_free(l);
    sha256_hex(hex, id.sum);
    assert_int_equal(check_revoked(hex, 0, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "is the version"));
    unlink(at("m.gguf.sig"));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_unsigned),
        TEST(test_who_may_sign_what),
        TEST(test_changed_models),
        TEST(test_swapped_signature),
        TEST(test_other_places),
        TEST(test_wrong_files),
        TEST(test_revoked_and_expired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
