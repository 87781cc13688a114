/* oci_cosign.c - see oci_cosign.h. */
#include "depot/source/oci_cosign.h"

#include <stdio.h>
#include <string.h>

#include "supply/base64.h"
#include "supply/cosign.h"
#include "wire/json_in.h"
#include "wire/json_out.h"

#define CONFIG_TYPE "application/vnd.oci.image.config.v1+json"

void oci_cosign_tag(char out[OCI_COSIGN_TAG_BYTES], const char *digest)
{
    snprintf(out, OCI_COSIGN_TAG_BYTES, "sha256-%.64s.sig", digest + strlen("sha256:"));
}

/* ---- reading ---- */

static const char *text_of(const cJSON *object, const char *key)
{
    const cJSON *v = json_in_item(object, key);
    return cJSON_IsString(v) ? v->valuestring : NULL;
}

/* A payload and its signature, into b. */
static void get_layer(struct oci_registry *r, const cJSON *layer, struct oms_bundle *b)
{
    const char *type = text_of(layer, "mediaType"), *digest = text_of(layer, "digest"),
               *sig = text_of(json_in_item(layer, "annotations"), COSIGN_ANNOTATION);
    struct oms_plain *p = &b->plain[b->n_plain];
    struct err none;
    struct buf text;
    if (!type || !digest || !sig || strcmp(type, COSIGN_LAYER_TYPE) != 0 ||
        strncmp(digest, "sha256:", 7) != 0 || strlen(digest) >= OCI_MANIFEST_DIGEST_BYTES ||
        b->n_plain == OMS_MAX_PLAIN)
        return;
    buf_init(&text, COSIGN_MAX_PAYLOAD);
    if (oci_registry_text(r, "blobs", digest, NULL, "a signature", digest, &text, &none) == 0) {
        p->payload.p = (uint8_t *)arena_copy(&b->arena, buf_str(&text), text.len);
        p->payload.n = text.len;
        p->signature.p = base64_read(&b->arena, sig, strlen(sig), &p->signature.n);
        b->n_plain += p->payload.p && p->signature.p ? 1 : 0;
    }
    buf_fini(&text);
}

static void keep(const struct oms_bundle *b, const struct buf *manifest, struct model_manifest *m)
{
    struct buf out;
    buf_init(&out, MODEL_MANIFEST_MAX_SIGNATURE);
    cosign_write(&out, b, buf_str(manifest), manifest->len);
    if (out.rc == 0)
        model_manifest_set_signature(m, buf_str(&out), out.len);
    buf_fini(&out);
}

void oci_cosign_get(struct oci_registry *r, const struct buf *manifest, struct model_manifest *m)
{
    struct oms_bundle b;
    struct oci_blob digest;
    struct err none;
    struct buf text;
    char tag[OCI_COSIGN_TAG_BYTES];
    cJSON *root = NULL;
    const cJSON *layer;
    buf_init(&text, OCI_MANIFEST_MAX_BYTES);
    oms_bundle_init(&b);
    if (oci_manifest_text(&digest, buf_str(manifest), &none) == 0) {
        oci_cosign_tag(tag, digest.digest);
        if (oci_registry_text(r, "manifests", tag, OCI_MANIFEST_ACCEPT, tag, NULL, &text, &none) ==
            0)
            (void)!json_in_object(&root, "manifest", buf_str(&text), text.len,
                                  OCI_MANIFEST_MAX_BYTES, &none);
    }
    cJSON_ArrayForEach(layer, json_in_item(root, "layers")) get_layer(r, layer, &b);
    if (b.n_plain)
        keep(&b, manifest, m);
    cJSON_Delete(root);
    oms_bundle_fini(&b);
    buf_fini(&text);
}

/* ---- writing ---- */

static void put_blob(struct json_out *j, const char *type, const struct oci_blob *b)
{
    json_out_member_str(j, "mediaType", type);
    json_out_key(j, "size");
    json_out_int(j, (int64_t)b->bytes);
    json_out_member_str(j, "digest", b->digest);
}

void oci_cosign_manifest(struct buf *out, const struct oci_blob *config,
                         const struct oci_blob *payload, const struct buf *signature)
{
    struct json_out j = json_out_make(out);
    json_out_object(&j);
    json_out_key(&j, "schemaVersion");
    json_out_int(&j, 2);
    json_out_member_str(&j, "mediaType", OCI_MANIFEST_OCI_TYPE);
    json_out_key(&j, "config");
    json_out_object(&j);
    put_blob(&j, CONFIG_TYPE, config);
    json_out_object_end(&j);
    json_out_key(&j, "layers");
    json_out_array(&j);
    json_out_object(&j);
    put_blob(&j, COSIGN_LAYER_TYPE, payload);
    json_out_key(&j, "annotations");
    json_out_object(&j);
    json_out_key(&j, COSIGN_ANNOTATION);
    buf_putc(out, '"');
    base64_write(out, buf_str(signature), signature->len);
    buf_putc(out, '"');
    j.comma = true;
    json_out_object_end(&j);
    json_out_object_end(&j);
    json_out_array_end(&j);
    json_out_object_end(&j);
}
