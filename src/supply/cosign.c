/* cosign.c - see cosign.h. */
#include "supply/cosign.h"

#include <stdlib.h>
#include <string.h>

#include "supply/base64.h"
#include "wire/json_in.h"
#include "wire/json_out.h"

#define PAYLOAD_TYPE "cosign container image signature"
#define MAX_MANIFEST ((size_t)1 << 20)
#define MAX_LAYERS 256

static const char *text_of(const cJSON *object, const char *key)
{
    const cJSON *v = json_in_item(object, key);
    return cJSON_IsString(v) ? v->valuestring : NULL;
}

/* ---- writing ---- */

int cosign_payload(struct buf *out, const char *reference, const char *digest, struct err *e)
{
    struct json_out j = json_out_make(out);
    json_out_object(&j);
    json_out_key(&j, "critical");
    json_out_object(&j);
    json_out_key(&j, "identity");
    json_out_object(&j);
    json_out_member_str(&j, "docker-reference", reference);
    json_out_object_end(&j);
    json_out_key(&j, "image");
    json_out_object(&j);
    json_out_member_str(&j, "docker-manifest-digest", digest);
    json_out_object_end(&j);
    json_out_member_str(&j, "type", PAYLOAD_TYPE);
    json_out_object_end(&j);
    json_out_key(&j, "optional");
    json_out_null(&j);
    json_out_object_end(&j);
    return out->rc ? err_set(e, out->rc, "a signature") : 0;
}

static void put_base64(struct json_out *j, const char *key, const void *p, size_t n)
{
    json_out_key(j, key);
    buf_putc(j->b, '"');
    base64_write(j->b, p, n);
    buf_putc(j->b, '"');
    j->comma = true;
}

void cosign_write(struct buf *out, const struct oms_bundle *b, const void *manifest, size_t n)
{
    struct json_out j = json_out_make(out);
    json_out_object(&j);
    json_out_member_str(&j, "mediaType", COSIGN_KEPT);
    put_base64(&j, "manifest", manifest, n);
    json_out_key(&j, "signatures");
    json_out_array(&j);
    for (uint32_t i = 0; i < b->n_plain; i++) {
        json_out_object(&j);
        put_base64(&j, "payload", b->plain[i].payload.p, b->plain[i].payload.n);
        put_base64(&j, "sig", b->plain[i].signature.p, b->plain[i].signature.n);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    json_out_object_end(&j);
}

/* ---- reading ---- */

static int bad(struct err *e, const char *what)
{
    return err_set(e, SHOAL_EFORMAT, "not a signature of cosign: %s", what);
}

bool cosign_is(const void *json, size_t n)
{
    static const char begin[] = "{\"mediaType\":\"" COSIGN_KEPT "\"";
    return n >= sizeof(begin) - 1 && memcmp(json, begin, sizeof(begin) - 1) == 0;
}

static bool take_base64(struct oms_bundle *b, struct oms_bytes *out, const cJSON *object,
                        const char *key)
{
    const char *s = text_of(object, key);
    out->p = s ? base64_read(&b->arena, s, strlen(s), &out->n) : NULL;
    return out->p && out->n;
}

/* Whether the text says that this manifest is signed. */
static bool is_about(const struct oms_bytes *payload, const char *digest)
{
    cJSON *root = NULL;
    struct err none;
    if (json_in_object(&root, "payload", payload->p, payload->n, COSIGN_MAX_PAYLOAD, &none) < 0)
        return false;
    const cJSON *c = json_in_item(root, "critical");
    const char *type = text_of(c, "type"),
               *of = text_of(json_in_item(c, "image"), "docker-manifest-digest");
    const bool yes = type && of && strcmp(type, PAYLOAD_TYPE) == 0 && strcmp(of, digest) == 0;
    cJSON_Delete(root);
    return yes;
}

static int read_signatures(struct oms_bundle *b, const cJSON *list, const char *digest,
                           struct err *e)
{
    const cJSON *s;
    cJSON_ArrayForEach(s, list)
    {
        if (b->n_plain == OMS_MAX_PLAIN)
            return err_set(e, SHOAL_ELIMIT, "it has more than %u signatures", OMS_MAX_PLAIN);
        struct oms_plain *p = &b->plain[b->n_plain];
        if (!take_base64(b, &p->payload, s, "payload") || !take_base64(b, &p->signature, s, "sig"))
            return bad(e, "a payload or its signature is missing");
        if (is_about(&p->payload, digest))
            b->n_plain++;
    }
    return b->n_plain ? 0
                      : err_set(e, SHOAL_EFORMAT,
                                "none of its signatures is about the manifest of this model");
}

static const char *name_of(const cJSON *layer)
{
    static const char *const keys[] = {"org.cncf.model.filepath", "org.opencontainers.image.title"};
    const cJSON *a = json_in_item(layer, "annotations");
    const char *name = NULL;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && !name; i++)
        name = text_of(a, keys[i]);
    return name;
}

static int by_name(const void *a, const void *b)
{
    return oms_compare_names(((const struct oms_file *)a)->name,
                             ((const struct oms_file *)b)->name);
}

/* A layer without a name is a single file, or a text that is none of the model's files. */
static int read_layer(struct oms_bundle *b, const cJSON *layer, struct err *e)
{
    const char *name = name_of(layer), *digest = text_of(layer, "digest");
    struct oms_file *f = &b->files[b->n_files];
    if (!digest || strncmp(digest, "sha256:", 7) != 0 || strlen(digest) != 7 + 2 * SHA256_BYTES ||
        !sha256_read_hex(f->sum, digest + 7))
        return bad(e, "a layer of the manifest has no SHA-256");
    if (name && !oms_name_ok(name))
        return bad(e, "a name in the manifest leads out of the model");
    f->name = name ? arena_copy(&b->arena, name, strlen(name) + 1)
                   : arena_printf(&b->arena, "layer %u", b->n_files);
    b->n_files++;
    return f->name ? 0 : err_set(e, b->arena.rc, "a signature");
}

static int read_layers(struct oms_bundle *b, const struct oms_bytes *manifest, struct err *e)
{
    cJSON *root = NULL;
    const cJSON *layer;
    int rc = json_in_object(&root, "manifest of the signature", manifest->p, manifest->n,
                            MAX_MANIFEST, e);
    const cJSON *list = rc == 0 ? json_in_item(root, "layers") : NULL;
    const int n = cJSON_GetArraySize(list);
    if (rc == 0 && (n == 0 || n > MAX_LAYERS))
        rc = bad(e, "its manifest has no layers, or too many");
    if (rc == 0 && !(b->files = arena_zalloc_n(&b->arena, (size_t)n, sizeof(b->files[0]))))
        rc = err_set(e, b->arena.rc, "a signature");
    cJSON_ArrayForEach(layer, list)
    {
        if (rc == 0)
            rc = read_layer(b, layer, e);
    }
    cJSON_Delete(root);
    if (rc < 0)
        return rc;
    qsort(b->files, b->n_files, sizeof(b->files[0]), by_name);
    for (uint32_t i = 1; i < b->n_files; i++)
        if (strcmp(b->files[i - 1].name, b->files[i].name) == 0)
            return bad(e, "its manifest has a name twice");
    return 0;
}

int cosign_read(struct oms_bundle *b, const void *json, size_t n, struct err *e)
{
    cJSON *root = NULL;
    struct oms_bytes manifest;
    char digest[7 + 2 * SHA256_BYTES + 1] = "sha256:";
    uint8_t sum[SHA256_BYTES];
    struct sha256 s;
    int rc = json_in_object(&root, "signature", json, n, OMS_MAX_BYTES, e);
    if (rc == 0 && !take_base64(b, &manifest, root, "manifest"))
        rc = bad(e, "its manifest is missing");
    if (rc == 0) {
        sha256_begin(&s);
        sha256_add(&s, manifest.p, manifest.n);
        if (!sha256_end(&s, sum))
            rc = err_set(e, SHOAL_ENOMEM, "SHA-256");
        sha256_hex(digest + 7, sum);
    }
    if (rc == 0)
        rc = read_signatures(b, json_in_item(root, "signatures"), digest, e);
    cJSON_Delete(root);
    return rc < 0 ? rc : read_layers(b, &manifest, e);
}
