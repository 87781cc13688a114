/* oci_manifest.c - see oci_manifest.h. */
#include "gateway/api/ollama/oci_manifest.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "host/sha256.h"
#include "wire/json_out.h"

#define MAX_LAYERS 64
#define MAX_TEXT_BYTES ((uint64_t)1 << 20) /* of a system message, a license, ... */
#define OLLAMA "application/vnd.ollama.image."

static const char *const types[OCI_N_PARTS] = {OLLAMA "model", OLLAMA "system", OLLAMA "params",
                                               OLLAMA "license",
                                               "application/vnd.docker.container.image.v1+json"};

static int read_blob(struct oci_blob *out, const cJSON *v, uint64_t most, struct err *e)
{
    const char *digest = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(v, "digest"));
    const cJSON *size = cJSON_GetObjectItemCaseSensitive(v, "size");
    uint8_t sum[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];
    if (!digest || strlen(digest) != 7 + 2 * SHA256_BYTES || strncmp(digest, "sha256:", 7) != 0 ||
        !sha256_read_hex(sum, digest + 7) || !cJSON_IsNumber(size) ||
        !(size->valuedouble >= 0 && size->valuedouble < 9e15))
        return err_set(e, SHOAL_EFORMAT, "the manifest has a layer without digest or size");
    if (size->valuedouble > (double)most)
        return err_set(e, SHOAL_ELIMIT,
                       "a part of the model has %.0f bytes, at most %" PRIu64 " are allowed",
                       size->valuedouble, most);
    sha256_hex(hex, sum);
    snprintf(out->digest, sizeof(out->digest), "sha256:%s", hex);
    out->bytes = (uint64_t)size->valuedouble;
    return 0;
}

static int read_layer(struct oci_manifest *m, const cJSON *v, uint64_t max_model, struct err *e)
{
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(v, "mediaType"));
    if (!type)
        return err_set(e, SHOAL_EFORMAT, "the manifest has a layer without a type");
    if (strcmp(type, OLLAMA "adapter") == 0 || strcmp(type, OLLAMA "projector") == 0)
        return err_set(e, SHOAL_EUNSUPPORTED, "the model has a part that is not supported: %.60s",
                       type);
    for (int i = 0; i < OCI_PART_CONFIG; i++)
        if (strcmp(type, types[i]) == 0) {
            if (i == OCI_PART_MODEL && m->parts[i].digest[0])
                return err_set(e, SHOAL_EUNSUPPORTED, "the model consists of several files");
            return read_blob(&m->parts[i], v, i == OCI_PART_MODEL ? max_model : MAX_TEXT_BYTES, e);
        }
    return 0; /* not needed here */
}

int oci_manifest_read(struct oci_manifest *out, const char *p, size_t n, uint64_t max_model,
                      struct err *e)
{
    cJSON *root = n <= OCI_MANIFEST_MAX_BYTES ? cJSON_ParseWithLength(p, n) : NULL;
    const cJSON *layers = cJSON_GetObjectItemCaseSensitive(root, "layers"), *v;
    int rc = 0;
    memset(out, 0, sizeof(*out));
    if (!cJSON_IsArray(layers) || cJSON_GetArraySize(layers) > MAX_LAYERS)
        rc = err_set(e, SHOAL_EFORMAT, "this is not the manifest of a model");
    cJSON_ArrayForEach(v, layers)
    {
        if (rc == 0)
            rc = read_layer(out, v, max_model, e);
    }
    if (rc == 0 && (!out->parts[OCI_PART_MODEL].digest[0] || !out->parts[OCI_PART_MODEL].bytes))
        rc = err_set(e, SHOAL_EFORMAT, "the manifest names no model file, so it is not a model");
    cJSON_Delete(root);
    return rc;
}

static void put_blob(struct json_out *j, const struct oci_blob *b, int type)
{
    json_out_object(j);
    json_out_member_str(j, "mediaType", types[type]);
    json_out_member_str(j, "digest", b->digest);
    json_out_member_uint(j, "size", b->bytes);
    json_out_object_end(j);
}

void oci_manifest_write(const struct oci_manifest *m, struct buf *out)
{
    struct json_out j = json_out_make(out);
    json_out_object(&j);
    json_out_member_uint(&j, "schemaVersion", 2);
    json_out_member_str(&j, "mediaType", OCI_MANIFEST_TYPE);
    json_out_key(&j, "config");
    put_blob(&j, &m->parts[OCI_PART_CONFIG], OCI_PART_CONFIG);
    json_out_key(&j, "layers");
    json_out_array(&j);
    for (int i = 0; i < OCI_PART_CONFIG; i++)
        if (m->parts[i].digest[0])
            put_blob(&j, &m->parts[i], i);
    json_out_array_end(&j);
    json_out_object_end(&j);
}
