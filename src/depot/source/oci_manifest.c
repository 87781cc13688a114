/* oci_manifest.c - see oci_manifest.h. */
#include "depot/source/oci_manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "depot/store/model_manifest.h"
#include "host/sha256.h"
#include "wire/json_in.h"
#include "wire/json_out.h"

#define MAX_LAYERS 256
#define MAX_TEXT_BYTES ((uint64_t)1 << 20) /* of a system message, a license, ... */
#define OLLAMA "application/vnd.ollama.image."
#define DOCKER "application/vnd.docker.ai."
#define MODELPACK "application/vnd.cncf.model."
#define ONLY_FILE "model.gguf" /* the name of a file whose layer has none */

static const char *const part_types[OCI_N_PARTS] = {
    OLLAMA "system", OLLAMA "params", OLLAMA "license", OLLAMA "messages",
    "application/vnd.docker.container.image.v1+json"};

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
    size_t n = strlen(text), k = strlen(with);
    return n >= k && strcasecmp(text + n - k, with) == 0;
}

static int read_blob(struct oci_blob *out, const cJSON *v, uint64_t most, struct err *e)
{
    const char *digest = cJSON_GetStringValue(json_in_item(v, "digest"));
    const cJSON *size = json_in_item(v, "size");
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

/* ---- layers ---- */

/* The name that a layer says it has; NULL: none. */
static const char *title_of(const cJSON *v)
{
    static const char *const keys[] = {"org.cncf.model.filepath", "org.opencontainers.image.title"};
    const cJSON *notes = json_in_item(v, "annotations");
    const char *name = NULL;
    for (int i = 0; !name && i < 2; i++)
        name = cJSON_GetStringValue(json_in_item(notes, keys[i]));
    return name && starts(name, "./") ? name + 2 : name;
}

static bool is_document(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name;
    return base[0] == '.' || ends(base, ".md") || strncasecmp(base, "LICEN", 5) == 0 ||
           strncasecmp(base, "README", 6) == 0 || strncasecmp(base, "NOTICE", 6) == 0;
}

static int add_file(struct oci_manifest *m, const cJSON *v, const char *name, uint64_t most,
                    struct err *e)
{
    if (!model_manifest_name_ok(name) || strncmp(name, "../", 3) == 0)
        return err_set(e, SHOAL_EFORMAT, "the manifest has a file with the name '%.80s'", name);
    if (m->n_files == OCI_MANIFEST_MAX_FILES)
        return err_set(e, SHOAL_ELIMIT, "the model has more than %u files", OCI_MANIFEST_MAX_FILES);
    struct oci_file *f = &m->files[m->n_files++];
    snprintf(f->name, sizeof(f->name), "%s", name);
    return read_blob(&f->blob, v, most, e);
}

static int read_layer(struct oci_manifest *m, const cJSON *v, uint64_t max_model, struct err *e)
{
    const char *type = cJSON_GetStringValue(json_in_item(v, "mediaType"));
    const char *title = title_of(v);
    if (!type)
        return err_set(e, SHOAL_EFORMAT, "the manifest has a layer without a type");
    if (strcmp(type, OLLAMA "adapter") == 0 || strcmp(type, OLLAMA "projector") == 0 ||
        strcmp(type, DOCKER "mmproj") == 0 ||
        (starts(type, MODELPACK) && (ends(type, ".tar") || strstr(type, ".tar+"))))
        return err_set(e, SHOAL_EUNSUPPORTED, "the model has a part that is not supported: %.60s",
                       type);
    for (int i = 0; i < OCI_PART_CONFIG; i++)
        if (strcmp(type, part_types[i]) == 0)
            return read_blob(&m->parts[i], v, MAX_TEXT_BYTES, e);
    if (strcmp(type, DOCKER "license") == 0)
        return read_blob(&m->parts[OCI_PART_LICENSE], v, MAX_TEXT_BYTES, e);
    if (strcmp(type, OLLAMA "model") == 0 || starts(type, DOCKER "gguf."))
        return add_file(m, v, ONLY_FILE, max_model, e);
    if (starts(type, OLLAMA) || starts(type, DOCKER) || !title || is_document(title))
        return 0; /* not needed here */
    return add_file(m, v, title, max_model, e);
}

/* What the files are together: one GGUF file, or a folder. */
static int choose_files(struct oci_manifest *m, struct err *e)
{
    uint32_t n_gguf = 0, gguf = 0;
    for (uint32_t i = 0; i < m->n_files; i++)
        if (ends(m->files[i].name, ".gguf")) {
            gguf = i;
            n_gguf++;
        }
    if (n_gguf > 1)
        return err_set(e, SHOAL_EUNSUPPORTED, "the model consists of several files");
    if (n_gguf == 1) {
        struct oci_file only = m->files[gguf];
        const char *slash = strrchr(only.name, '/');
        if (slash)
            memmove(only.name, slash + 1, strlen(slash));
        memset(m->files, 0, sizeof(m->files));
        m->files[0] = only;
        m->n_files = 1;
    }
    for (uint32_t i = 0; i < m->n_files; i++)
        if (m->files[i].blob.bytes == 0)
            return err_set(e, SHOAL_EFORMAT, "the file %.80s of the model is empty",
                           m->files[i].name);
    m->folder = n_gguf == 0;
    return m->n_files > 0 ? 0
                          : err_set(e, SHOAL_EFORMAT,
                                    "the manifest names no model file, so it is not a model");
}

int oci_manifest_read(struct oci_manifest *out, const char *p, size_t n, uint64_t max_model,
                      struct err *e)
{
    cJSON *root = n <= OCI_MANIFEST_MAX_BYTES ? cJSON_ParseWithLength(p, n) : NULL;
    const cJSON *layers = json_in_item(root, "layers"), *v;
    const cJSON *first = cJSON_GetArrayItem(json_in_item(root, "manifests"), 0);
    int rc = 0;
    memset(out, 0, sizeof(*out));
    if (first && !layers) {
        rc = read_blob(&out->index, first, OCI_MANIFEST_MAX_BYTES, e);
        cJSON_Delete(root);
        return rc;
    }
    if (!cJSON_IsArray(layers) || cJSON_GetArraySize(layers) > MAX_LAYERS)
        rc = err_set(e, SHOAL_EFORMAT, "this is not the manifest of a model");
    cJSON_ArrayForEach(v, layers)
    {
        if (rc == 0)
            rc = read_layer(out, v, max_model, e);
    }
    if (rc == 0)
        rc = choose_files(out, e);
    cJSON_Delete(root);
    return rc;
}

/* ---- writing ---- */

static void put_blob(struct json_out *j, const struct oci_blob *b, const char *type,
                     const char *title)
{
    json_out_object(j);
    json_out_member_str(j, "mediaType", type);
    json_out_member_str(j, "digest", b->digest);
    json_out_member_uint(j, "size", b->bytes);
    if (title) {
        json_out_member_object(j, "annotations");
        json_out_member_str(j, "org.cncf.model.filepath", title);
        json_out_member_str(j, "org.opencontainers.image.title", title);
        json_out_object_end(j);
    }
    json_out_object_end(j);
}

int oci_manifest_text(struct oci_blob *out, const char *text, struct err *e)
{
    uint8_t sum[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];
    struct sha256 h;
    out->bytes = strlen(text);
    sha256_begin(&h);
    sha256_add(&h, text, out->bytes);
    if (!sha256_end(&h, sum))
        return err_set(e, SHOAL_ENOMEM, "cannot compute SHA-256");
    sha256_hex(hex, sum);
    snprintf(out->digest, sizeof(out->digest), "sha256:%s", hex);
    return 0;
}

void oci_manifest_config(const struct oci_manifest *m, char out[OCI_MANIFEST_CONFIG_BYTES])
{
    snprintf(out, OCI_MANIFEST_CONFIG_BYTES,
             "{\"model_format\":\"%s\",\"architecture\":\"amd64\",\"os\":\"linux\",\"rootfs\":{"
             "\"type\":\"layers\",\"diff_ids\":[\"%s\"]}}",
             m->folder ? "safetensors" : "gguf", m->files[0].blob.digest);
}

const char *oci_manifest_type(const struct oci_manifest *m)
{
    return m->folder ? OCI_MANIFEST_OCI_TYPE : OCI_MANIFEST_TYPE;
}

static const char *file_type(const struct oci_manifest *m, uint32_t i)
{
    return !m->folder                               ? OLLAMA "model"
           : ends(m->files[i].name, ".safetensors") ? MODELPACK "weight.v1.raw"
                                                    : MODELPACK "weight.config.v1.raw";
}

void oci_manifest_write(const struct oci_manifest *m, struct buf *out)
{
    struct json_out j = json_out_make(out);
    json_out_object(&j);
    json_out_member_uint(&j, "schemaVersion", 2);
    json_out_member_str(&j, "mediaType", oci_manifest_type(m));
    if (m->folder)
        json_out_member_str(&j, "artifactType", MODELPACK "manifest.v1+json");
    json_out_key(&j, "config");
    put_blob(&j, &m->parts[OCI_PART_CONFIG],
             m->folder ? MODELPACK "config.v1+json" : part_types[OCI_PART_CONFIG], NULL);
    json_out_member_array(&j, "layers");
    for (uint32_t i = 0; i < m->n_files; i++)
        put_blob(&j, &m->files[i].blob, file_type(m, i), m->folder ? m->files[i].name : NULL);
    for (int i = 0; i < OCI_PART_CONFIG; i++)
        if (m->parts[i].digest[0])
            put_blob(&j, &m->parts[i], part_types[i], NULL);
    json_out_array_end(&j);
    json_out_object_end(&j);
}
