/* oms_bundle.c - see oms_bundle.h. */
#include "supply/oms_bundle.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "supply/base64.h"
#include "wire/json_in.h"
#include "wire/json_out.h"

#define MEDIA_TYPE "application/vnd.dev.sigstore.bundle.v0.3+json"
#define PAYLOAD_TYPE "application/vnd.in-toto+json"
#define STATEMENT_TYPE "https://in-toto.io/Statement/v1"
#define PREDICATE_TYPE "https://model_signing/signature/v1.0"
#define MAX_NAME 1024u

void oms_bundle_init(struct oms_bundle *b)
{
    *b = (struct oms_bundle){.hint = "", .model = ""};
    arena_init(&b->arena, 4 * OMS_MAX_BYTES);
}

void oms_bundle_fini(struct oms_bundle *b)
{
    arena_fini(&b->arena);
}

/* ---- names ---- */

int oms_compare_names(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    /* the end of a part comes before every character */
    int x = *a == '/' ? 1 : *a ? 1 + (unsigned char)*a : 0;
    int y = *b == '/' ? 1 : *b ? 1 + (unsigned char)*b : 0;
    return x - y;
}

bool oms_name_ok(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || n > MAX_NAME || utf8_valid_prefix(name, n) != n)
        return false;
    for (const char *p = name; *p;) {
        size_t k = strcspn(p, "/");
        if (k == 0 || (k == 1 && p[0] == '.') || (k == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        for (size_t i = 0; i < k; i++)
            if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f || p[i] == '\\')
                return false;
        p += k;
        if (*p == '/' && !*++p)
            return false;
    }
    return true;
}

static int by_name(const void *a, const void *b)
{
    return oms_compare_names(((const struct oms_file *)a)->name,
                             ((const struct oms_file *)b)->name);
}

const struct oms_file *oms_bundle_find(const struct oms_bundle *b, const char *name)
{
    const struct oms_file key = {.name = name};
    return b->n_files ? bsearch(&key, b->files, b->n_files, sizeof(key), by_name) : NULL;
}

/* ---- reading ---- */

static int bad(struct err *e, const char *what)
{
    return err_set(e, SHOAL_EFORMAT, "not a model signature: %s", what);
}

static const char *text_of(const cJSON *object, const char *key)
{
    const cJSON *v = json_in_item(object, key);
    return cJSON_IsString(v) ? v->valuestring : NULL;
}

static bool is_text(const cJSON *object, const char *key, const char *want)
{
    const char *s = text_of(object, key);
    return s && strcmp(s, want) == 0;
}

static int take_base64(struct oms_bundle *b, struct oms_bytes *out, const cJSON *object,
                       const char *key, struct err *e)
{
    const char *s = text_of(object, key);
    out->p = s ? base64_read(&b->arena, s, strlen(s), &out->n) : NULL;
    return out->p && out->n ? 0
                            : err_set(e, b->arena.rc ? b->arena.rc : SHOAL_EFORMAT,
                                      "not a model signature: '%s' is missing or not base64", key);
}

static int read_material(struct oms_bundle *b, const cJSON *m, struct err *e)
{
    const cJSON *key = json_in_item(m, "publicKey"),
                *chain = json_in_item(m, "x509CertificateChain");
    const cJSON *one = json_in_item(m, "certificate"), *c;
    if (key) {
        const char *hint = text_of(key, "hint");
        b->hint = arena_copy(&b->arena, hint ? hint : "", hint ? strlen(hint) + 1 : 1);
        return b->hint ? 0 : err_set(e, b->arena.rc, "a signature");
    }
    if (one) {
        b->n_certificates = 1;
        return take_base64(b, &b->certificates[0], one, "rawBytes", e);
    }
    cJSON_ArrayForEach(c, json_in_item(chain, "certificates"))
    {
        if (b->n_certificates == OMS_MAX_CERTIFICATES)
            return err_set(e, SHOAL_ELIMIT, "the signature has more than %u certificates",
                           OMS_MAX_CERTIFICATES);
        int rc = take_base64(b, &b->certificates[b->n_certificates++], c, "rawBytes", e);
        if (rc < 0)
            return rc;
    }
    return b->n_certificates ? 0 : bad(e, "it names neither a public key nor a certificate");
}

static int read_envelope(struct oms_bundle *b, const cJSON *root, struct err *e)
{
    const cJSON *d = json_in_item(root, "dsseEnvelope"), *list = json_in_item(d, "signatures");
    if (!is_text(root, "mediaType", MEDIA_TYPE))
        return bad(e, "its mediaType is not " MEDIA_TYPE);
    if (!d || !is_text(d, "payloadType", PAYLOAD_TYPE))
        return bad(e, "it has no DSSE envelope with a payload of type " PAYLOAD_TYPE);
    if (cJSON_GetArraySize(list) != 1)
        return bad(e, "it must have exactly one signature; let every signer write a file");
    int rc = read_material(b, json_in_item(root, "verificationMaterial"), e);
    if (rc == 0)
        rc = take_base64(b, &b->payload, d, "payload", e);
    return rc < 0 ? rc : take_base64(b, &b->signature, cJSON_GetArrayItem(list, 0), "sig", e);
}

static int read_serialization(struct oms_bundle *b, const cJSON *s, struct err *e)
{
    const cJSON *i;
    if (!is_text(s, "method", "files") || !is_text(s, "hash_type", "sha256"))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "the signature is over '%.20s' by '%.20s'; Shoal checks files by sha256: "
                       "sign the model again with those",
                       text_of(s, "method") ? text_of(s, "method") : "",
                       text_of(s, "hash_type") ? text_of(s, "hash_type") : "");
    cJSON_ArrayForEach(i, json_in_item(s, "ignore_paths"))
    {
        if (b->n_ignored == OMS_MAX_IGNORED)
            return err_set(e, SHOAL_ELIMIT, "the signature ignores more than %u paths",
                           OMS_MAX_IGNORED);
        if (!cJSON_IsString(i) || !oms_name_ok(i->valuestring))
            return bad(e, "a path in 'ignore_paths' leads out of the model");
        const char *p = arena_copy(&b->arena, i->valuestring, strlen(i->valuestring) + 1);
        if (!p)
            return err_set(e, b->arena.rc, "a signature");
        b->ignored[b->n_ignored++] = p;
    }
    return 0;
}

static int read_file(struct oms_bundle *b, const cJSON *r, struct sha256 *all, struct err *e)
{
    struct oms_file *f = &b->files[b->n_files];
    const char *name = text_of(r, "name"), *digest = text_of(r, "digest");
    if (!name || !(strcmp(name, OMS_SINGLE) == 0 || oms_name_ok(name)))
        return err_set(e, SHOAL_EFORMAT,
                       "not a model signature: '%.100s' is not the path of a file in the model",
                       name ? name : "");
    if (!is_text(r, "algorithm", "sha256") || !digest || strlen(digest) != 2 * SHA256_BYTES ||
        !sha256_read_hex(f->sum, digest))
        return err_set(e, SHOAL_EFORMAT, "not a model signature: %.100s has no SHA-256", name);
    f->name = arena_copy(&b->arena, name, strlen(name) + 1);
    if (!f->name)
        return err_set(e, b->arena.rc, "a signature");
    sha256_add(all, f->sum, SHA256_BYTES);
    b->n_files++;
    return 0;
}

static int check_names(const struct oms_bundle *b, struct err *e)
{
    for (uint32_t i = 1; i < b->n_files; i++)
        if (strcmp(b->files[i - 1].name, b->files[i].name) == 0)
            return err_set(e, SHOAL_EFORMAT, "not a model signature: %.100s is in it twice",
                           b->files[i].name);
    if (b->n_files > 1 && oms_bundle_find(b, OMS_SINGLE))
        return bad(e, "a single file among others");
    return 0;
}

static int read_files(struct oms_bundle *b, const cJSON *list, const char *root_sum, struct err *e)
{
    uint8_t sum[SHA256_BYTES], want[SHA256_BYTES];
    struct sha256 all;
    const cJSON *r;
    const int n = cJSON_GetArraySize(list);
    int rc = 0;
    if (n == 0)
        return bad(e, "it covers no files");
    if ((uint32_t)n > OMS_MAX_FILES)
        return err_set(e, SHOAL_ELIMIT, "the signature covers %d files, more than %u", n,
                       OMS_MAX_FILES);
    b->files = arena_zalloc_n(&b->arena, (size_t)n, sizeof(b->files[0]));
    if (!b->files)
        return err_set(e, b->arena.rc, "a signature");
    sha256_begin(&all);
    cJSON_ArrayForEach(r, list)
    {
        if (rc == 0)
            rc = read_file(b, r, &all, e);
    }
    if (!sha256_end(&all, sum))
        return err_set(e, SHOAL_ENOMEM, "SHA-256");
    if (rc == 0 && (!root_sum || strlen(root_sum) != 2 * SHA256_BYTES ||
                    !sha256_read_hex(want, root_sum) || memcmp(sum, want, sizeof(sum)) != 0))
        rc = bad(e, "the digest of its subject is not that of its files");
    if (rc < 0)
        return rc;
    qsort(b->files, b->n_files, sizeof(b->files[0]), by_name);
    return check_names(b, e);
}

static int read_statement(struct oms_bundle *b, const cJSON *s, struct err *e)
{
    const cJSON *subjects = json_in_item(s, "subject"), *p = json_in_item(s, "predicate");
    const cJSON *subject = cJSON_GetArrayItem(subjects, 0);
    if (!is_text(s, "_type", STATEMENT_TYPE) || !is_text(s, "predicateType", PREDICATE_TYPE))
        return bad(e, "its statement is not of type " PREDICATE_TYPE);
    if (cJSON_GetArraySize(subjects) != 1 || !text_of(subject, "name"))
        return bad(e, "its statement must have one subject with a name");
    const char *name = text_of(subject, "name");
    b->model = arena_copy(&b->arena, name, strlen(name) + 1);
    if (!b->model)
        return err_set(e, b->arena.rc, "a signature");
    int rc = read_serialization(b, json_in_item(p, "serialization"), e);
    return rc < 0 ? rc
                  : read_files(b, json_in_item(p, "resources"),
                               text_of(json_in_item(subject, "digest"), "sha256"), e);
}

int oms_bundle_read(struct oms_bundle *b, const void *json, size_t n, struct err *e)
{
    cJSON *root = NULL, *statement = NULL;
    int rc = json_in_object(&root, "signature", json, n, OMS_MAX_BYTES, e);
    if (rc == 0)
        rc = read_envelope(b, root, e);
    cJSON_Delete(root);
    if (rc == 0)
        rc = json_in_object(&statement, "statement of the signature", b->payload.p, b->payload.n,
                            OMS_MAX_BYTES, e);
    if (rc == 0)
        rc = read_statement(b, statement, e);
    cJSON_Delete(statement);
    return rc;
}

/* ---- writing ---- */

static int root_digest(char hex[2 * SHA256_BYTES + 1], const struct oms_bundle *b, struct err *e)
{
    uint8_t sum[SHA256_BYTES];
    struct sha256 all;
    sha256_begin(&all);
    for (uint32_t i = 0; i < b->n_files; i++)
        sha256_add(&all, b->files[i].sum, SHA256_BYTES);
    if (!sha256_end(&all, sum))
        return err_set(e, SHOAL_ENOMEM, "SHA-256");
    sha256_hex(hex, sum);
    return 0;
}

static void put_predicate(struct json_out *j, const struct oms_bundle *b)
{
    char hex[2 * SHA256_BYTES + 1];
    json_out_key(j, "serialization");
    json_out_object(j);
    json_out_member_str(j, "method", "files");
    json_out_member_str(j, "hash_type", "sha256");
    json_out_key(j, "allow_symlinks");
    json_out_bool(j, false);
    json_out_key(j, "ignore_paths");
    json_out_array(j);
    for (uint32_t i = 0; i < b->n_ignored; i++)
        json_out_str(j, b->ignored[i]);
    json_out_array_end(j);
    json_out_object_end(j);
    json_out_key(j, "resources");
    json_out_array(j);
    for (uint32_t i = 0; i < b->n_files; i++) {
        sha256_hex(hex, b->files[i].sum);
        json_out_object(j);
        json_out_member_str(j, "name", b->files[i].name);
        json_out_member_str(j, "algorithm", "sha256");
        json_out_member_str(j, "digest", hex);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

int oms_bundle_statement(struct buf *out, const struct oms_bundle *b, struct err *e)
{
    char hex[2 * SHA256_BYTES + 1];
    struct json_out j = json_out_make(out);
    int rc = root_digest(hex, b, e);
    if (rc < 0)
        return rc;
    json_out_object(&j);
    json_out_member_str(&j, "_type", STATEMENT_TYPE);
    json_out_key(&j, "subject");
    json_out_array(&j);
    json_out_object(&j);
    json_out_member_str(&j, "name", b->model);
    json_out_key(&j, "digest");
    json_out_object(&j);
    json_out_member_str(&j, "sha256", hex);
    json_out_object_end(&j);
    json_out_object_end(&j);
    json_out_array_end(&j);
    json_out_member_str(&j, "predicateType", PREDICATE_TYPE);
    json_out_key(&j, "predicate");
    json_out_object(&j);
    put_predicate(&j, b);
    json_out_object_end(&j);
    json_out_object_end(&j);
    return out->rc ? err_set(e, out->rc, "the statement of a signature") : 0;
}

static void put_base64(struct json_out *j, const char *key, const struct oms_bytes *v)
{
    json_out_key(j, key);
    buf_putc(j->b, '"');
    base64_write(j->b, v->p, v->n);
    buf_putc(j->b, '"');
    j->comma = true;
}

static void put_material(struct json_out *j, const struct oms_bundle *b)
{
    if (b->n_certificates == 0) {
        json_out_key(j, "publicKey");
        json_out_object(j);
        json_out_member_str(j, "hint", b->hint);
        json_out_object_end(j);
    } else {
        json_out_key(j, "x509CertificateChain");
        json_out_object(j);
        json_out_key(j, "certificates");
        json_out_array(j);
        for (uint32_t i = 0; i < b->n_certificates; i++) {
            json_out_object(j);
            put_base64(j, "rawBytes", &b->certificates[i]);
            json_out_object_end(j);
        }
        json_out_array_end(j);
        json_out_object_end(j);
    }
    json_out_key(j, "tlogEntries");
    json_out_array(j);
    json_out_array_end(j);
}

void oms_bundle_write(struct buf *out, const struct oms_bundle *b)
{
    struct json_out j = json_out_make(out);
    json_out_object(&j);
    json_out_member_str(&j, "mediaType", MEDIA_TYPE);
    json_out_key(&j, "verificationMaterial");
    json_out_object(&j);
    put_material(&j, b);
    json_out_object_end(&j);
    json_out_key(&j, "dsseEnvelope");
    json_out_object(&j);
    put_base64(&j, "payload", &b->payload);
    json_out_member_str(&j, "payloadType", PAYLOAD_TYPE);
    json_out_key(&j, "signatures");
    json_out_array(&j);
    json_out_object(&j);
    put_base64(&j, "sig", &b->signature);
    json_out_member_str(&j, "keyid", "");
    json_out_object_end(&j);
    json_out_array_end(&j);
    json_out_object_end(&j);
    json_out_object_end(&j);
}

void oms_bundle_signed(struct buf *out, const struct oms_bundle *b)
{
    buf_printf(out, "DSSEv1 %zu %s %zu ", sizeof(PAYLOAD_TYPE) - 1, PAYLOAD_TYPE, b->payload.n);
    buf_put(out, b->payload.p, b->payload.n);
}
