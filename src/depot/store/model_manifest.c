/* model_manifest.c - see model_manifest.h. */
#include "depot/store/model_manifest.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file/file_read.h"
#include "supply/trust_policy.h"
#include "wire/json_in.h"
#include "wire/json_out.h"

#define MAX_DEPTH 6u
#define ARENA_BYTES ((size_t)8 << 20)
#define MAX_FILE_BYTES ((uint64_t)1 << 50)
/* The folder of an .onnx file whose settings lie one above. */
#define INNER "onnx"

void model_manifest_init(struct model_manifest *m)
{
    *m = (struct model_manifest){.open = ""};
    arena_init(&m->arena, ARENA_BYTES);
}

void model_manifest_fini(struct model_manifest *m)
{
    arena_fini(&m->arena);
    *m = (struct model_manifest){.open = ""};
}

/* ---- names ---- */

bool model_manifest_name_ok(const char *name)
{
    unsigned depth = 0;
    size_t n = strnlen(name, MODEL_MANIFEST_MAX_NAME + 1);
    if (n == 0 || n > MODEL_MANIFEST_MAX_NAME)
        return false;
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f || *p == '\\')
            return false;
    if (strncmp(name, "../", 3) == 0)
        name += 3;
    for (const char *p = name;; depth++) {
        size_t k = strcspn(p, "/");
        if (k == 0 || p[0] == '.' || depth == MAX_DEPTH)
            return false;
        if (!p[k])
            return true;
        p += k + 1;
    }
}

static bool is_above(const char *name)
{
    return strncmp(name, "../", 3) == 0;
}

static bool is_onnx(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && strcasecmp(name + n - 5, ".onnx") == 0;
}

static bool place(char *out, size_t cap, const struct model_manifest *m, const char *name)
{
    int n = is_above(name) ? snprintf(out, cap, "%s", name + 3)
                           : snprintf(out, cap, "%s%s", m->above ? INNER "/" : "", name);
    return n > 0 && (size_t)n < cap;
}

bool model_manifest_place(char *out, size_t cap, const struct model_manifest *m, uint32_t i)
{
    return place(out, cap, m, m->files[i].name);
}

bool model_manifest_open_place(char *out, size_t cap, const struct model_manifest *m)
{
    out[0] = '\0';
    return !m->open[0] || place(out, cap, m, m->open);
}

void model_manifest_set_signature(struct model_manifest *m, const void *p, size_t n)
{
    m->signature = n > 0 && n <= MODEL_MANIFEST_MAX_SIGNATURE ? arena_copy(&m->arena, p, n) : NULL;
    m->n_signature = m->signature ? n : 0;
}

void model_manifest_find_signature(struct model_manifest *m, const char *path)
{
    char at[PATH_MAX];
    struct buf b;
    buf_init(&b, MODEL_MANIFEST_MAX_SIGNATURE);
    if (trust_policy_signature(at, sizeof(at), path) && file_read(at, &b, NULL) == 0)
        model_manifest_set_signature(m, buf_str(&b), b.len);
    buf_fini(&b);
}

uint64_t model_manifest_bytes(const struct model_manifest *m)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < m->n_files; i++)
        sum += m->files[i].bytes;
    return sum;
}

/* ---- building ---- */

int model_manifest_add(struct model_manifest *m, const char *name, uint64_t bytes,
                       const uint8_t sum[SHA256_BYTES], struct err *e)
{
    if (!model_manifest_name_ok(name))
        return err_set(e, SHOAL_EFORMAT, "manifest: '%.80s' is not the name of a model's file",
                       name);
    if (bytes > MAX_FILE_BYTES)
        return err_set(e, SHOAL_EFORMAT, "manifest: %.80s is too large", name);
    if (m->n_files == MODEL_MANIFEST_MAX_FILES)
        return err_set(e, SHOAL_ELIMIT, "manifest: more than %u files", MODEL_MANIFEST_MAX_FILES);
    if ((m->n_files & (m->n_files - 1)) == 0) { /* doubles: the arena frees all at once */
        uint32_t cap = m->n_files ? 2 * m->n_files : 1;
        struct identity_file *more = arena_zalloc_n(&m->arena, cap, sizeof(*more));
        if (!more)
            return err_set(e, m->arena.rc, "files of a manifest");
        if (m->n_files)
            memcpy(more, m->files, m->n_files * sizeof(*more));
        m->files = more;
    }
    struct identity_file *f = &m->files[m->n_files++];
    *f = (struct identity_file){.name = arena_printf(&m->arena, "%s", name), .bytes = bytes};
    memcpy(f->sum, sum, SHA256_BYTES);
    return m->arena.rc < 0 ? err_set(e, m->arena.rc, "files of a manifest") : 0;
}

/* The first n bytes of name are the name of a file. */
static bool is_file(const struct model_manifest *m, const char *name, size_t n)
{
    uint32_t low = 0, high = m->n_files;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        const char *at = m->files[mid].name;
        int order = strncmp(at, name, n);
        if (order == 0 && !at[n])
            return true;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

/* No file twice, and none that would have to be a folder too. */
static int check_places(const struct model_manifest *m, struct err *e)
{
    for (uint32_t i = 0; i < m->n_files; i++) {
        const char *name = m->files[i].name;
        if (i > 0 && strcmp(m->files[i - 1].name, name) >= 0)
            return err_set(e, SHOAL_EFORMAT, "manifest: %.80s is listed twice or out of order",
                           name);
        if (is_above(name) && (strchr(name + 3, '/') || strcmp(name + 3, INNER) == 0))
            return err_set(e, SHOAL_EFORMAT, "manifest: %.80s is outside the model's folder", name);
        for (const char *p = strchr(name + 3 * is_above(name), '/'); p; p = strchr(p + 1, '/'))
            if (is_file(m, name, (size_t)(p - name)))
                return err_set(e, SHOAL_EFORMAT, "manifest: %.*s is a file and a folder",
                               (int)(p - name), name);
    }
    return 0;
}

static int check_hash(const struct model_manifest *m, const uint8_t model[SHA256_BYTES],
                      struct err *e)
{
    const uint8_t *sum = m->files[0].sum;
    struct identity id;
    if (m->folder) {
        id = identity_of_folder(m->files, m->n_files);
        if (id.kind != IDENTITY_CONTENT)
            return err_set(e, SHOAL_ENOMEM, "cannot compute SHA-256");
        sum = id.sum;
    }
    return memcmp(sum, model, SHA256_BYTES) == 0
               ? 0
               : err_set(e, SHOAL_EFORMAT, "the manifest is that of another model");
}

int model_manifest_finish(struct model_manifest *m, bool folder, const char *open,
                          const uint8_t model[SHA256_BYTES], struct err *e)
{
    m->folder = folder;
    if (m->n_files == 0 || (!folder && m->n_files != 1))
        return err_set(e, SHOAL_EFORMAT, "manifest: %u files", m->n_files);
    if (!folder &&
        (is_above(m->files[0].name) || is_onnx(m->files[0].name) || strchr(m->files[0].name, '/')))
        return err_set(e, SHOAL_EFORMAT, "manifest: '%.80s' is not the name of a single file",
                       m->files[0].name);
    for (uint32_t i = 0; i < m->n_files; i++)
        m->above |= is_above(m->files[i].name);
    if (!folder)
        open = m->files[0].name;
    int rc = check_places(m, e);
    if (rc < 0)
        return rc;
    if (open[0] && (!is_file(m, open, strlen(open)) || is_above(open)))
        return err_set(e, SHOAL_EFORMAT, "manifest: '%.80s' is the file to open but is not listed",
                       open);
    if (folder && (m->above || open[0]) && !is_onnx(open))
        return err_set(e, SHOAL_EFORMAT, "manifest: no .onnx file to open");
    m->open = arena_printf(&m->arena, "%s", open);
    return m->arena.rc < 0 ? err_set(e, m->arena.rc, "manifest") : check_hash(m, model, e);
}

int model_manifest_single(struct model_manifest *m, const char *name, uint64_t bytes,
                          const uint8_t sum[SHA256_BYTES], struct err *e)
{
    int rc = model_manifest_add(m, name, bytes, sum, e);
    return rc < 0 ? rc : model_manifest_finish(m, false, "", sum, e);
}

static int by_name(const void *a, const void *b)
{
    const struct identity_file *x = a, *y = b;
    return strcmp(x->name, y->name);
}

int model_manifest_seal(struct model_manifest *m, uint8_t sum[SHA256_BYTES], struct err *e)
{
    if (m->n_files > 1)
        qsort(m->files, m->n_files, sizeof(*m->files), by_name);
    struct identity id = identity_of_folder(m->files, m->n_files);
    if (id.kind != IDENTITY_CONTENT)
        return err_set(e, SHOAL_ENOMEM, "cannot compute SHA-256");
    memcpy(sum, id.sum, SHA256_BYTES);
    return model_manifest_finish(m, true, "", sum, e);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int model_manifest_of(struct model_manifest *m, const struct identity_list *l, const char *path,
                      struct err *e)
{
    const uint32_t n = identity_list_n(l);
    const bool folder = identity_list_is_folder(l);
    struct identity_file f = {0};
    struct identity id;
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        identity_list_file(l, i, &f);
        rc = model_manifest_add(m, folder ? f.name : base_name(path), f.bytes, f.sum, e);
    }
    if (rc < 0 || !folder)
        return rc < 0 ? rc : model_manifest_finish(m, false, "", f.sum, e);
    id = identity_of_folder(m->files, m->n_files);
    if (id.kind != IDENTITY_CONTENT)
        return err_set(e, SHOAL_ENOMEM, "cannot compute SHA-256");
    return model_manifest_finish(m, true, is_onnx(path) ? base_name(path) : "", id.sum, e);
}

/* ---- JSON ---- */

static int read_file(struct model_manifest *m, const cJSON *item, struct err *e)
{
    const cJSON *bytes = json_in_item(item, "bytes");
    const char *name = cJSON_GetStringValue(json_in_item(item, "name"));
    const char *hex = cJSON_GetStringValue(json_in_item(item, "sha256"));
    uint8_t sum[SHA256_BYTES];
    if (!name || !hex || strlen(hex) != 2 * SHA256_BYTES || !sha256_read_hex(sum, hex))
        return err_set(e, SHOAL_EFORMAT, "manifest: a file needs a name and a sha256");
    if (!cJSON_IsNumber(bytes) || !(bytes->valuedouble >= 0) ||
        bytes->valuedouble > (double)MAX_FILE_BYTES)
        return err_set(e, SHOAL_EFORMAT, "manifest: %.80s has no size", name);
    return model_manifest_add(m, name, (uint64_t)bytes->valuedouble, sum, e);
}

int model_manifest_read(struct model_manifest *m, const void *json, size_t n,
                        const uint8_t model[SHA256_BYTES], struct err *e)
{
    cJSON *root = NULL;
    const cJSON *item;
    int rc = json_in_object(&root, "manifest", json, n, MODEL_MANIFEST_MAX_BYTES, e);
    if (rc < 0)
        return rc;
    const cJSON *version = json_in_item(root, "shoal_manifest");
    const cJSON *files = json_in_item(root, "files");
    const char *open = cJSON_GetStringValue(json_in_item(root, "open"));
    if (!cJSON_IsNumber(version) || version->valueint != 1 || !cJSON_IsArray(files))
        rc = err_set(e, SHOAL_EFORMAT,
                     "this is not a model manifest, or it is from a newer version");
    cJSON_ArrayForEach(item, files)
    {
        if (rc == 0)
            rc = read_file(m, item, e);
    }
    if (rc == 0)
        rc = model_manifest_finish(m, cJSON_IsTrue(json_in_item(root, "folder")), open ? open : "",
                                   model, e);
    cJSON_Delete(root);
    return rc;
}

void model_manifest_write(struct buf *out, const struct model_manifest *m)
{
    struct json_out j = json_out_make(out);
    char hex[2 * SHA256_BYTES + 1];
    json_out_object(&j);
    json_out_member_uint(&j, "shoal_manifest", 1);
    json_out_member_bool(&j, "folder", m->folder);
    json_out_member_str(&j, "open", m->open);
    json_out_member_array(&j, "files");
    for (uint32_t i = 0; i < m->n_files; i++) {
        sha256_hex(hex, m->files[i].sum);
        json_out_object(&j);
        json_out_member_str(&j, "name", m->files[i].name);
        json_out_member_uint(&j, "bytes", m->files[i].bytes);
        json_out_member_str(&j, "sha256", hex);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    json_out_object_end(&j);
    buf_putc(out, '\n');
}
