/* pack.c - see pack.h. */
#include "host/pack.h"

#include <cjson/cJSON.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file_open.h"
#include "base/mem.h"
#include "host/sha256.h"

#define MANIFEST "models.json"
#define VERSION 1 /* of the manifest */
#define MAX_MANIFEST_BYTES ((size_t)4 << 20)
#define MAX_MODELS 4096
#define MAX_TABLES 64
#define MAX_FILES 256

/* ---- the manifest --------------------------------------------------------------------------- */

static const char *text_of(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsString(v) ? v->valuestring : NULL;
}

/* No way out of the folder: no absolute path, no "..". */
static bool stays_inside(const char *path)
{
    if (!*path || *path == '/')
        return false;
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.')
            return false;
        p += n + (p[n] == '/');
    }
    return true;
}

static char *join(const char *dir, const char *name)
{
    struct buf b;
    buf_init(&b, PATH_MAX);
    buf_printf(&b, "%s/%s", dir, name);
    char *s = buf_take(&b, NULL);
    buf_fini(&b);
    return s;
}

static int read_one_file(struct pack_file *f, const char *dir, const cJSON *o, const char *owner,
                         struct err *e)
{
    const char *file = text_of(o, "file");
    const cJSON *bytes = cJSON_GetObjectItemCaseSensitive(o, "bytes");
    if (!file || !stays_inside(file))
        return err_set(e, SHOAL_EFORMAT, "%s: \"file\" is missing or points outside the folder",
                       owner);
    if (!cJSON_IsNumber(bytes) || bytes->valuedouble < 0 || bytes->valuedouble > 1e15)
        return err_set(e, SHOAL_EFORMAT, "%s: the \"bytes\" of %s are not a valid size", owner,
                       file);
    const char *sum = text_of(o, "sha256");
    if (!sum || strlen(sum) != 2 * SHA256_BYTES || !sha256_read_hex(f->sha256, sum))
        return err_set(e, SHOAL_EFORMAT, "%s: the \"sha256\" of %s is not 64 hex digits", owner,
                       file);
    f->bytes = (uint64_t)bytes->valuedouble;
    f->path = join(dir, file);
    return f->path ? 0 : err_set(e, SHOAL_ENOMEM, "manifest");
}

static int read_model(struct pack_model *m, const char *dir, const cJSON *o, struct err *e)
{
    m->name = text_of(o, "name");
    m->task = text_of(o, "task");
    m->format = text_of(o, "format");
    m->licence = text_of(o, "licence");
    m->labels = text_of(o, "labels");
    m->int8 = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "int8"));
    if (!m->name || !*m->name || !m->task || !m->format)
        return err_set(e, SHOAL_EFORMAT, "a model needs a name, a task and a format");
    const cJSON *also = cJSON_GetObjectItemCaseSensitive(o, "also");
    int n_also = cJSON_IsArray(also) ? cJSON_GetArraySize(also) : 0;
    if (n_also > MAX_FILES)
        return err_set(e, SHOAL_EFORMAT, "model %s has %d files", m->name, n_also);
    m->files = mem_zalloc_n((size_t)n_also + 1, sizeof(*m->files));
    if (!m->files)
        return err_set(e, SHOAL_ENOMEM, "manifest");
    m->n_files = 1;
    int rc = read_one_file(&m->files[0], dir, o, m->name, e);
    const cJSON *f;
    cJSON_ArrayForEach(f, also)
    {
        if (rc == 0)
            rc = read_one_file(&m->files[m->n_files++], dir, f, m->name, e);
    }
    const char *card = text_of(o, "card");
    if (rc == 0 && card && stays_inside(card) && !(m->card = join(dir, card)))
        rc = err_set(e, SHOAL_ENOMEM, "manifest");
    if (rc < 0)
        return rc;
    const char *path = m->files[0].path, *slash = strrchr(path, '/');
    bool folder = strncmp(m->format, "hf-", 3) == 0 || strcmp(m->format, "folder") == 0;
    m->open = folder ? mem_strndup(path, (size_t)(slash - path)) : mem_strdup(path);
    return m->open ? 0 : err_set(e, SHOAL_ENOMEM, "manifest");
}

static int read_tables(struct pack *p, struct err *e)
{
    const cJSON *tables = cJSON_GetObjectItemCaseSensitive(p->json, "tables"), *o;
    int n = tables ? cJSON_IsArray(tables) ? cJSON_GetArraySize(tables) : -1 : 0;
    if (n < 0 || n > MAX_TABLES)
        return err_set(e, SHOAL_EFORMAT, "\"tables\" must be a list of at most %d", MAX_TABLES);
    p->tables = mem_zalloc_n((size_t)n + 1, sizeof(*p->tables));
    if (!p->tables)
        return err_set(e, SHOAL_ENOMEM, "manifest");
    cJSON_ArrayForEach(o, tables)
    {
        struct pack_table *t = &p->tables[p->n_tables];
        t->name = text_of(o, "name");
        if (!t->name || !*t->name)
            return err_set(e, SHOAL_EFORMAT, "a table needs a name");
        if (pack_find_table(p, t->name))
            return err_set(e, SHOAL_EFORMAT, "two tables are named %s", t->name);
        p->n_tables++;
        int rc = read_one_file(&t->file, p->dir, o, t->name, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int pack_parse(struct pack **out, const char *dir, const char *json, size_t n, struct err *e)
{
    *out = NULL;
    struct pack *p = mem_zalloc(sizeof(*p));
    if (!p)
        return err_set(e, SHOAL_ENOMEM, "manifest");
    int rc = 0;
    p->dir = mem_strdup(dir);
    const char *end = NULL;
    p->json = cJSON_ParseWithLengthOpts(json, n, &end, false);
    const cJSON *models = p->json ? cJSON_GetObjectItemCaseSensitive(p->json, "models") : NULL;
    const cJSON *version = p->json ? cJSON_GetObjectItemCaseSensitive(p->json, "version") : NULL;
    int n_models = cJSON_IsArray(models) ? cJSON_GetArraySize(models) : -1;
    if (!p->dir)
        rc = err_set(e, SHOAL_ENOMEM, "manifest");
    else if (!p->json)
        rc = err_set(e, SHOAL_EFORMAT, "invalid JSON at byte %td", end ? end - json : 0);
    else if (version && (!cJSON_IsNumber(version) || version->valuedouble != VERSION))
        rc = err_set(e, SHOAL_EFORMAT,
                     "\"version\" is not %d: the models belong to another version of this program",
                     VERSION);
    else if (n_models < 0 || n_models > MAX_MODELS)
        rc = err_set(e, SHOAL_EFORMAT, "\"models\" must be a list of at most %d", MAX_MODELS);
    else if (!(p->models = mem_zalloc_n((size_t)n_models, sizeof(*p->models))))
        rc = err_set(e, SHOAL_ENOMEM, "manifest");
    const cJSON *m;
    cJSON_ArrayForEach(m, models)
    {
        if (rc == 0)
            rc = read_model(&p->models[p->n_models++], dir, m, e);
        if (rc == 0 && pack_find(p, p->models[p->n_models - 1].name) != &p->models[p->n_models - 1])
            rc = err_set(e, SHOAL_EFORMAT, "two models are named %s",
                         p->models[p->n_models - 1].name);
    }
    if (rc == 0)
        rc = read_tables(p, e);
    if (rc < 0) {
        pack_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

void pack_close(struct pack *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; i < p->n_models; i++) {
        struct pack_model *m = &p->models[i];
        for (uint32_t j = 0; j < m->n_files; j++)
            mem_free(m->files[j].path);
        mem_free(m->files);
        mem_free((void *)(uintptr_t)m->card);
        mem_free((void *)(uintptr_t)m->open);
    }
    for (uint32_t i = 0; i < p->n_tables; i++)
        mem_free(p->tables[i].file.path);
    mem_free(p->tables);
    mem_free(p->models);
    mem_free(p->dir);
    cJSON_Delete(p->json);
    mem_free(p);
}

/* ---- the folder ----------------------------------------------------------------------------- */

/* Search path of pack_open. SHOAL_MODELS_DIR is the folder of the configured prefix. */
static const char *const places_program[] = {
    "../models", /* build/shoal */
    "models",
    "../share/shoal/models", /* bin/shoal */
    NULL,
};
static const char *const places_library[] = {
    "../share/shoal/models",    /* lib/libshoal.so */
    "../../share/shoal/models", /* lib/x86_64-linux-gnu/libshoal.so */
    NULL,
};

static bool is_absent(int error)
{
    return error == ENOENT || error == ENOTDIR || error == EACCES;
}

static int read_manifest(const char *path, struct buf *b, struct err *e)
{
    char block[16384];
    ssize_t got;
    int fd = file_open_regular(path, NULL);
    if (fd < 0)
        return err_set(e, is_absent(errno) ? SHOAL_ENOTFOUND : SHOAL_EIO, "cannot open %s: %s",
                       path, file_open_reason(errno));
    while ((got = read(fd, block, sizeof(block))) > 0)
        buf_put(b, block, (size_t)got);
    close(fd);
    if (got < 0)
        return err_set(e, SHOAL_EIO, "cannot read %s: %s", path, strerror(errno));
    return b->rc < 0 ? err_set(e, b->rc, "%s is too large", path) : 0;
}

static int open_dir(struct pack **out, const char *dir, struct err *e)
{
    struct buf b;
    char *path = join(dir, MANIFEST);
    if (!path)
        return err_set(e, SHOAL_ENOMEM, "manifest");
    buf_init(&b, MAX_MANIFEST_BYTES);
    int rc = read_manifest(path, &b, e);
    if (rc == 0 && (rc = pack_parse(out, dir, buf_str(&b), b.len, e)) < 0)
        err_wrap(e, "%s", path);
    buf_fini(&b);
    mem_free(path);
    return rc;
}

/* Tries dir/place for each place; missing or unreadable ones are skipped. */
static int open_near(struct pack **out, const char *dir, const char *const *places, struct err *e)
{
    int rc = SHOAL_ENOTFOUND;
    for (; rc == SHOAL_ENOTFOUND && *places; places++) {
        char *path = join(dir, *places);
        if (!path)
            return err_set(e, SHOAL_ENOMEM, "manifest");
        rc = open_dir(out, path, e);
        mem_free(path);
    }
    return rc;
}

static const char *program_dir(char path[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(path, '/');
    return slash ? (*slash = '\0', path) : NULL;
}

/* Folder of the shared library with this code; otherwise of the program again, or nothing. */
static const char *library_dir(char path[PATH_MAX])
{
    Dl_info info;
    if (!dladdr(places_library, &info) || !info.dli_fname || !realpath(info.dli_fname, path))
        return NULL;
    char *slash = strrchr(path, '/');
    return slash ? (*slash = '\0', path) : NULL;
}

int pack_open(struct pack **out, const char *dir, struct err *e)
{
    const char *env = getenv("SHOAL_MODELS");
    char path[PATH_MAX];
    *out = NULL;
    if (dir || (env && *env))
        return open_dir(out, dir ? dir : env, e);
    int rc = open_dir(out, "models", e);
    if (rc == SHOAL_ENOTFOUND && program_dir(path))
        rc = open_near(out, path, places_program, e);
    if (rc == SHOAL_ENOTFOUND && library_dir(path))
        rc = open_near(out, path, places_library, e);
    if (rc == SHOAL_ENOTFOUND)
        rc = open_dir(out, SHOAL_MODELS_DIR, e);
    if (rc == SHOAL_ENOTFOUND)
        return err_set(e, rc,
                       "no folder of models here, next to the program, or in " SHOAL_MODELS_DIR
                       "; set SHOAL_MODELS");
    return rc;
}

const struct pack_model *pack_find(const struct pack *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_models; i++)
        if (strcmp(p->models[i].name, name) == 0)
            return &p->models[i];
    return NULL;
}

const struct pack_table *pack_find_table(const struct pack *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_tables; i++)
        if (strcmp(p->tables[i].name, name) == 0)
            return &p->tables[i];
    return NULL;
}

void pack_names(const struct pack *p, char *out, size_t cap)
{
    size_t n = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < p->n_models && n < cap; i++)
        n += (size_t)snprintf(out + n, cap - n, "%s%s", i ? ", " : "", p->models[i].name);
}

/* ---- hashes --------------------------------------------------------------------------------- */

#define BLOCK_BYTES ((size_t)1 << 18)

static int verify_file(const struct pack_file *f, uint8_t *block, struct err *e)
{
    uint8_t sum[SHA256_BYTES];
    struct sha256 h;
    uint64_t n = 0;
    ssize_t got;
    int fd = file_open_regular(f->path, NULL);
    if (fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", f->path, file_open_reason(errno));
    sha256_begin(&h);
    while ((got = read(fd, block, BLOCK_BYTES)) > 0) {
        sha256_add(&h, block, (size_t)got);
        n += (uint64_t)got;
    }
    int why = errno;
    close(fd);
    bool ok = sha256_end(&h, sum);
    if (got < 0)
        return err_set(e, SHOAL_EIO, "cannot read %s: %s", f->path, strerror(why));
    if (!ok)
        return err_set(e, SHOAL_EINTERNAL, "cannot compute SHA-256");
    if (n != f->bytes || memcmp(sum, f->sha256, sizeof(f->sha256)) != 0)
        return err_set(e, SHOAL_EFORMAT,
                       "%s does not match the manifest (%s); restore it (git checkout) or "
                       "correct " MANIFEST,
                       f->path, n != f->bytes ? "size differs" : "SHA-256 differs");
    return 0;
}

static int verify_files(const struct pack_file *files, uint32_t n, struct err *e)
{
    uint8_t *block = mem_alloc(BLOCK_BYTES);
    int rc = block ? 0 : err_set(e, SHOAL_ENOMEM, "hash");
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        rc = verify_file(&files[i], block, e);
    mem_free(block);
    return rc;
}

int pack_verify(const struct pack_model *m, struct err *e)
{
    return verify_files(m->files, m->n_files, e);
}

int pack_verify_table(const struct pack_table *t, struct err *e)
{
    return verify_files(&t->file, 1, e);
}
