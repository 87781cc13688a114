/* hub_files.c - see hub_files.h. */
#include "depot/source/hub_files.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "depot/store/model_manifest.h"
#include "wire/json_in.h"

#define MAX_LIST_BYTES ((size_t)8 << 20)

static bool ends(const char *text, const char *with)
{
    size_t n = strlen(text), k = strlen(with);
    return n >= k && strcasecmp(text + n - k, with) == 0;
}

/* ---- reading ---- */

static bool read_oid(uint8_t out[HUB_FILES_OID_BYTES], const char *hex)
{
    if (!hex || strlen(hex) != 2 * HUB_FILES_OID_BYTES)
        return false;
    for (size_t i = 0; i < HUB_FILES_OID_BYTES; i++) {
        unsigned v = 0;
        for (size_t k = 2 * i; k < 2 * i + 2; k++) {
            char c = hex[k];
            if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
                return false;
            v = v << 4 | (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
        }
        out[i] = (uint8_t)v;
    }
    return true;
}

static bool read_size(const cJSON *v, uint64_t *out)
{
    const cJSON *n = json_in_item(v, "size");
    if (!cJSON_IsNumber(n) || !(n->valuedouble >= 0 && n->valuedouble < 1e15))
        return false;
    *out = (uint64_t)n->valuedouble;
    return true;
}

static int read_file(struct hub_file *f, struct arena *a, const cJSON *v, const char *path,
                     struct err *e)
{
    const cJSON *lfs = json_in_item(v, "lfs");
    const char *hex = cJSON_GetStringValue(json_in_item(lfs, "oid"));
    f->path = arena_copy(a, path, strlen(path) + 1);
    f->lfs = cJSON_IsObject(lfs);
    bool ok = read_size(f->lfs ? lfs : v, &f->bytes);
    if (f->lfs)
        ok = ok && hex && strlen(hex) == 2 * SHA256_BYTES && sha256_read_hex(f->sha256, hex);
    else
        ok = ok && read_oid(f->oid, cJSON_GetStringValue(json_in_item(v, "oid")));
    return ok && f->path
               ? 0
               : err_set(e, SHOAL_EFORMAT, "the hub lists %.80s without size or hash", path);
}

int hub_files_read(struct hub_files *out, struct arena *a, const char *json, size_t n,
                   struct err *e)
{
    cJSON *root = n <= MAX_LIST_BYTES ? cJSON_ParseWithLength(json, n) : NULL;
    const cJSON *v;
    int count = cJSON_GetArraySize(root), rc = 0;
    *out = (struct hub_files){0};
    if (!cJSON_IsArray(root) || count > (int)HUB_FILES_MAX)
        rc = err_set(e, SHOAL_EFORMAT, "the hub sends no list of files");
    if (rc == 0 && !(out->v = arena_zalloc_n(a, (size_t)count + 1, sizeof(*out->v))))
        rc = err_set(e, SHOAL_ENOMEM, "files of a repository");
    cJSON_ArrayForEach(v, root)
    {
        const char *type = cJSON_GetStringValue(json_in_item(v, "type"));
        const char *path = cJSON_GetStringValue(json_in_item(v, "path"));
        if (rc == 0 && type && strcmp(type, "file") == 0 && path && model_manifest_name_ok(path) &&
            strncmp(path, "../", 3) != 0)
            rc = read_file(&out->v[out->n++], a, v, path, e);
    }
    cJSON_Delete(root);
    return rc;
}

/* ---- choosing ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Not a projector, a matrix of importance or a draft. */
static bool is_gguf(const struct hub_file *f)
{
    const char *base = base_name(f->path);
    return ends(base, ".gguf") && strncasecmp(base, "mmproj", 6) != 0 &&
           !strcasestr(base, "imatrix");
}

static bool is_split(const struct hub_file *f)
{
    unsigned part, all;
    const char *at = strcasestr(f->path, "-of-");
    return at && at - f->path > 6 && sscanf(at - 6, "-%5u-of-%5u", &part, &all) == 2;
}

/* The tag stands alone in the name: "model-Q4_K_M.gguf", not "Q4_K" in it. */
static bool has_tag(const struct hub_file *f, const char *tag)
{
    const char *base = base_name(f->path);
    size_t n = strlen(tag);
    if (strcasecmp(f->path, tag) == 0 || strcasecmp(base, tag) == 0)
        return true;
    for (const char *p = base; (p = strcasestr(p, tag)); p++)
        if ((p == base || strchr("-._", p[-1])) && (p[n] == '.' || p[n] == '-'))
            return true;
    return false;
}

static int no_such(const struct hub_files *f, const char *tag, struct err *e)
{
    struct buf b;
    buf_init(&b, 4096);
    for (uint32_t i = 0; i < f->n && b.len < 300; i++)
        if (is_gguf(&f->v[i]))
            buf_printf(&b, "%s%s", b.len ? ", " : "", base_name(f->v[i].path));
    int rc = err_set(e, SHOAL_ENOTFOUND, "the repository has no file for '%.60s'; it has: %.300s",
                     tag, buf_str(&b));
    buf_fini(&b);
    return rc;
}

static const struct hub_file *find_gguf(const struct hub_files *f, const char *tag)
{
    static const char *const usual[] = {"Q4_K_M", "Q4_0", "Q4_K_S", "Q5_K_M", "Q8_0", "F16"};
    for (size_t k = 0; k < (tag ? 1 : sizeof(usual) / sizeof(usual[0])); k++)
        for (uint32_t i = 0; i < f->n; i++)
            if (is_gguf(&f->v[i]) && has_tag(&f->v[i], tag ? tag : usual[k]))
                return &f->v[i];
    for (uint32_t i = 0; !tag && i < f->n; i++)
        if (is_gguf(&f->v[i]))
            return &f->v[i];
    return NULL;
}

/* Weights, settings and vocabularies; one folder below for the pooling of sentence encoders. */
static bool is_needed(const struct hub_file *f)
{
    static const char *const kinds[] = {".safetensors", ".json", ".txt", ".model", ".jinja"};
    const char *slash = strchr(f->path, '/'), *base = base_name(f->path);
    if (slash && (strchr(slash + 1, '/') || strcmp(base, "config.json") != 0))
        return false;
    if (strncasecmp(base, "README", 6) == 0 || strncasecmp(base, "LICEN", 5) == 0 ||
        strncasecmp(base, "NOTICE", 6) == 0 || strncasecmp(base, "requirements", 12) == 0)
        return false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (ends(base, kinds[i]))
            return true;
    return false;
}

static int choose_folder(struct hub_files *f, struct err *e)
{
    bool weights = false, config = false;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        if (!is_needed(&f->v[i]))
            continue;
        weights |= ends(f->v[i].path, ".safetensors");
        config |= strcmp(f->v[i].path, "config.json") == 0;
        f->v[n++] = f->v[i];
    }
    f->n = n;
    f->folder = true;
    return weights && config ? 0
                             : err_set(e, SHOAL_EUNSUPPORTED,
                                       "the repository has no GGUF file, and no config.json with "
                                       ".safetensors files");
}

int hub_files_choose(struct hub_files *f, const char *tag, struct err *e)
{
    bool any = false;
    for (uint32_t i = 0; i < f->n; i++)
        any |= is_gguf(&f->v[i]);
    if (tag && strcasecmp(tag, "latest") == 0)
        tag = NULL;
    if (!any && tag)
        return no_such(f, tag, e);
    if (!any)
        return choose_folder(f, e);
    const struct hub_file *g = find_gguf(f, tag);
    if (!g)
        return no_such(f, tag ? tag : "", e);
    if (is_split(g))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "%.200s is one of several files: models that are split are not supported",
                       g->path);
    f->v[0] = *g;
    f->n = 1;
    f->folder = false;
    return 0;
}
