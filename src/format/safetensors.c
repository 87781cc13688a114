/* safetensors.c - see safetensors.h.
 *
 * A file is a length of eight bytes, JSON of that length, and the data.  Names are copied to one
 * block, so that the JSON can be freed. */
#include "format/safetensors.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/mem.h"
#include "base/rd.h"
#include "base/str.h"
#include "base/strmap.h"

enum {
    MAX_HEADER_BYTES = 16 << 20, /* 150,000 tensors: more than any model has */
    MAX_INDEX_BYTES = 16 << 20,
    MAX_SHARDS = 1024,
    MAX_NAME_BYTES = 256,
};

static const struct {
    const char *name;
    uint8_t bytes;
} types[] = {
    [SAFETENSORS_F64] = {"F64", 8},         [SAFETENSORS_F32] = {"F32", 4},
    [SAFETENSORS_F16] = {"F16", 2},         [SAFETENSORS_BF16] = {"BF16", 2},
    [SAFETENSORS_I64] = {"I64", 8},         [SAFETENSORS_I32] = {"I32", 4},
    [SAFETENSORS_I16] = {"I16", 2},         [SAFETENSORS_I8] = {"I8", 1},
    [SAFETENSORS_U64] = {"U64", 8},         [SAFETENSORS_U32] = {"U32", 4},
    [SAFETENSORS_U16] = {"U16", 2},         [SAFETENSORS_U8] = {"U8", 1},
    [SAFETENSORS_BOOL] = {"BOOL", 1},       [SAFETENSORS_F8_E4M3] = {"F8_E4M3", 1},
    [SAFETENSORS_F8_E5M2] = {"F8_E5M2", 1},
};
#define N_TYPES (sizeof(types) / sizeof(types[0]))

const char *safetensors_type_name(enum safetensors_type t)
{
    return (size_t)t < N_TYPES ? types[t].name : "unknown";
}

void safetensors_close(struct safetensors *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_maps; i++)
        file_map_close(&s->maps[i]);
    mem_free(s->maps);
    mem_free(s->tensors);
    mem_free(s->names);
    mem_free(s);
}

void safetensors_take_maps(struct safetensors *s, struct file_map **maps, size_t *n)
{
    *maps = s->maps;
    *n = s->n_maps;
    s->maps = NULL;
    s->n_maps = 0;
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *s, const char *name)
{
    for (size_t i = 0; i < s->n_tensors; i++)
        if (!strcmp(s->tensors[i].name, name))
            return &s->tensors[i];
    return NULL;
}

/* ---- one file's header ---------------------------------------------------------------------- */

/* Whole and below 2^53, where doubles stop being exact. */
static bool whole_number(const cJSON *j, uint64_t *out)
{
    if (!cJSON_IsNumber(j) || !(j->valuedouble >= 0) || j->valuedouble >= 9007199254740992.0 ||
        floor(j->valuedouble) != j->valuedouble)
        return false;
    *out = (uint64_t)j->valuedouble;
    return true;
}

static int read_type(struct safetensors_tensor *t, const cJSON *j, struct err *e)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(j, "dtype"));
    if (!name)
        return err_set(e, SHOAL_EFORMAT, "tensor %.200s has no dtype", t->name);
    for (size_t i = 0; i < N_TYPES; i++)
        if (!strcmp(name, types[i].name)) {
            t->type = (enum safetensors_type)i;
            return 0;
        }
    return err_set(e, SHOAL_EUNSUPPORTED, "tensor %.200s has type %.40s, which is not supported",
                   t->name, name);
}

static int read_shape(struct safetensors_tensor *t, const cJSON *j, struct err *e)
{
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(j, "shape");
    size_t n = types[t->type].bytes;
    if (!cJSON_IsArray(shape))
        return err_set(e, SHOAL_EFORMAT, "tensor %.200s has no shape", t->name);
    for (const cJSON *d = shape->child; d; d = d->next) {
        uint64_t v;
        if (t->n_dims == SAFETENSORS_MAX_DIMS)
            return err_set(e, SHOAL_EFORMAT, "tensor %.200s has more than %d dimensions", t->name,
                           SAFETENSORS_MAX_DIMS);
        if (!whole_number(d, &v) || !mem_mul(&n, n, (size_t)v))
            return err_set(e, SHOAL_EFORMAT, "tensor %.200s has impossible dimensions", t->name);
        t->dims[t->n_dims++] = v;
    }
    t->n_bytes = n;
    return 0;
}

static int read_tensor(struct safetensors_tensor *t, const cJSON *j, const uint8_t *data,
                       size_t n_data, struct err *e)
{
    uint64_t from, to;
    if (strlen(t->name) > MAX_NAME_BYTES || t->name[0] == '\0')
        return err_set(e, SHOAL_EFORMAT, "tensor name of %zu bytes", strlen(t->name));
    int rc = read_type(t, j, e);
    if (rc == 0)
        rc = read_shape(t, j, e);
    if (rc < 0)
        return rc;
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(j, "data_offsets");
    if (!cJSON_IsArray(at) || cJSON_GetArraySize(at) != 2 || !whole_number(at->child, &from) ||
        !whole_number(at->child->next, &to))
        return err_set(e, SHOAL_EFORMAT, "tensor %.200s has no data_offsets", t->name);
    if (from > to || to > n_data)
        return err_set(e, SHOAL_EFORMAT,
                       "tensor %.150s is at bytes %llu to %llu of the data, the file has %zu",
                       t->name, (unsigned long long)from, (unsigned long long)to, n_data);
    if (to - from != t->n_bytes)
        return err_set(e, SHOAL_EFORMAT, "tensor %.150s has %llu bytes, its shape needs %zu",
                       t->name, (unsigned long long)(to - from), t->n_bytes);
    t->data = data + from;
    return 0;
}

/* Appends the tensors of one file.  Their names point into the JSON until keep_names copies them.
 */
static int add_tensors(struct safetensors *s, const cJSON *json, const uint8_t *data, size_t n_data,
                       const struct file_map *map, struct err *e)
{
    size_t n = (size_t)cJSON_GetArraySize(json);
    struct safetensors_tensor *all =
        mem_realloc(s->tensors, (s->n_tensors + n + 1) * sizeof(*all)); /* never 0 bytes */
    if (!all)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the directory of %zu tensors",
                       s->n_tensors + n);
    s->tensors = all;
    for (const cJSON *j = json->child; j; j = j->next) {
        struct safetensors_tensor *t = &s->tensors[s->n_tensors];
        if (!strcmp(j->string, "__metadata__"))
            continue;
        *t = (struct safetensors_tensor){.name = j->string, .map = map};
        int rc = read_tensor(t, j, data, n_data, e);
        if (rc < 0)
            return rc;
        s->n_tensors++;
    }
    return 0;
}

/* Copies the names of tensors [from, n) to the block of names.  Earlier names are set again, since
 * the block may have moved. */
static int keep_names(struct safetensors *s, size_t from, size_t *used, struct err *e)
{
    size_t n = *used;
    for (size_t i = from; i < s->n_tensors; i++)
        n += strlen(s->tensors[i].name) + 1;
    char *names = mem_realloc(s->names, n + 1);
    if (!names)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the names of %zu tensors", s->n_tensors);
    ptrdiff_t moved = 0;
    for (size_t i = 0; i < from; i++) {
        size_t len = strlen(names + moved);
        s->tensors[i].name = names + moved;
        moved += (ptrdiff_t)len + 1;
    }
    s->names = names;
    for (size_t i = from; i < s->n_tensors; i++) {
        size_t len = strlen(s->tensors[i].name) + 1;
        memcpy(names + *used, s->tensors[i].name, len);
        s->tensors[i].name = names + *used;
        *used += len;
    }
    return 0;
}

static int parse_one(struct safetensors *s, const uint8_t *bytes, size_t n,
                     const struct file_map *map, size_t *names_used, struct err *e)
{
    struct rd r = rd_make(bytes, n);
    uint64_t header = rd_u64(&r);
    if (r.bad || header > rd_left(&r))
        return err_set(e, SHOAL_EFORMAT, "not a safetensors file (a header of %llu in %zu bytes)",
                       (unsigned long long)header, n);
    if (header > MAX_HEADER_BYTES)
        return err_set(e, SHOAL_ELIMIT, "header of %llu bytes (at most %d)",
                       (unsigned long long)header, MAX_HEADER_BYTES);
    const char *text = (const char *)rd_take(&r, header);
    cJSON *json = cJSON_ParseWithLength(text, (size_t)header);
    size_t first = s->n_tensors;
    int rc =
        cJSON_IsObject(json)
            ? add_tensors(s, json, r.p, rd_left(&r), map, e)
            : err_set(e, SHOAL_EFORMAT, "the header is not a JSON object (%llu bytes at offset 8)",
                      (unsigned long long)header);
    if (rc == 0)
        rc = keep_names(s, first, names_used, e);
    cJSON_Delete(json);
    return rc;
}

/* Checks that names are unique over all files. */
static int check_names(const struct safetensors *s, struct err *e)
{
    struct strmap seen;
    int rc = strmap_init(&seen, s->n_tensors);
    for (size_t i = 0; rc == 0 && i < s->n_tensors; i++) {
        const char *name = s->tensors[i].name;
        rc = strmap_put(&seen, name, strlen(name), (uint32_t)i);
        if (rc == 1)
            rc = err_set(e, SHOAL_EFORMAT, "two tensors are named %.200s", name);
        else if (rc < 0)
            break;
    }
    if (rc == SHOAL_ENOMEM)
        err_set(e, rc, "names of %zu tensors: %s", s->n_tensors, err_text(rc));
    strmap_fini(&seen);
    return rc;
}

int safetensors_parse(struct safetensors **out, const void *bytes, size_t n, struct err *e)
{
    struct safetensors *s = mem_zalloc(sizeof(*s));
    size_t names = 0;
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the safetensors handle");
    s->n_bytes = n;
    int rc = parse_one(s, bytes, n, NULL, &names, e);
    if (rc == 0)
        rc = check_names(s, e);
    if (rc < 0) {
        safetensors_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

/* ---- files ---------------------------------------------------------------------------------- */

static int open_files(struct safetensors *s, char *const *paths, size_t n, struct err *e)
{
    size_t names = 0;
    int rc = 0;
    s->maps = mem_zalloc_n(n, sizeof(*s->maps));
    if (!s->maps)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu files", n);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct file_map *m = &s->maps[i];
        rc = file_map_open(m, paths[i], e);
        if (rc < 0)
            return rc;
        s->n_maps = i + 1;
        s->n_bytes += m->n_bytes;
        rc = parse_one(s, m->bytes, m->n_bytes, m, &names, e);
        if (rc < 0)
            return err_wrap(e, "%s", paths[i]);
    }
    return check_names(s, e);
}

/* The files that an index names, each once, in the order of first mention. */
struct shards {
    char *paths[MAX_SHARDS];
    size_t n;
};

static int add_shard(struct shards *sh, const char *folder, const char *name, struct err *e)
{
    char path[PATH_MAX];
    if (strchr(name, '/') || name[0] == '.' || name[0] == '\0') /* only files of this folder */
        return err_set(e, SHOAL_EFORMAT, "the index names a file outside of the folder: %.100s",
                       name);
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path))
        return err_set(e, SHOAL_EINVAL, "path of %.100s is too long", name);
    for (size_t i = sh->n; i-- > 0;) /* mostly the last one */
        if (!strcmp(sh->paths[i], path))
            return 0;
    if (sh->n == MAX_SHARDS)
        return err_set(e, SHOAL_ELIMIT, "the index names more than %d files", MAX_SHARDS);
    sh->paths[sh->n] = mem_strdup(path);
    if (!sh->paths[sh->n])
        return err_set(e, SHOAL_ENOMEM, "out of memory for the list of files");
    sh->n++;
    return 0;
}

/* Checks that every tensor of the index is there: otherwise a missing shard would be noticed late
 * or never. */
static int check_index(const struct safetensors *s, const cJSON *weights, struct err *e)
{
    struct strmap have;
    uint32_t at;
    int rc = strmap_init(&have, s->n_tensors);
    for (size_t i = 0; rc >= 0 && i < s->n_tensors; i++)
        rc = strmap_put(&have, s->tensors[i].name, strlen(s->tensors[i].name), (uint32_t)i);
    if (rc < 0)
        err_set(e, rc, "names of %zu tensors: %s", s->n_tensors, err_text(rc));
    for (const cJSON *j = weights->child; rc >= 0 && j; j = j->next)
        if (!strmap_get(&have, j->string, strlen(j->string), &at))
            rc = err_set(e, SHOAL_EFORMAT, "tensor %.150s of the index is not in %.100s", j->string,
                         j->valuestring);
    strmap_fini(&have);
    return rc;
}

static int open_index(struct safetensors *s, const char *folder, const char *path, struct err *e)
{
    struct shards *sh = mem_zalloc(sizeof(*sh));
    struct file_map m = {0};
    cJSON *json = NULL;
    int rc = sh ? file_map_open(&m, path, e)
                : err_set(e, SHOAL_ENOMEM, "out of memory for the list of files");
    if (rc < 0)
        goto out;
    if (m.n_bytes > MAX_INDEX_BYTES) {
        rc = err_set(e, SHOAL_ELIMIT, "%s has %zu bytes (at most %d)", path, m.n_bytes,
                     MAX_INDEX_BYTES);
        goto out;
    }
    json = cJSON_ParseWithLength((const char *)m.bytes, m.n_bytes);
    const cJSON *weights = cJSON_GetObjectItemCaseSensitive(json, "weight_map");
    if (!cJSON_IsObject(weights) || !weights->child) {
        rc = err_set(e, SHOAL_EFORMAT, "%s has no weight_map", path);
        goto out;
    }
    for (const cJSON *j = weights->child; rc == 0 && j; j = j->next)
        rc = cJSON_IsString(j)
                 ? add_shard(sh, folder, j->valuestring, e)
                 : err_set(e, SHOAL_EFORMAT, "weight_map has no file for tensor %.150s", j->string);
    if (rc < 0) {
        err_wrap(e, "%s", path);
        goto out;
    }
    rc = open_files(s, sh->paths, sh->n, e);
    if (rc == 0 && (rc = check_index(s, weights, e)) < 0)
        err_wrap(e, "%s", path);
out:
    for (size_t i = 0; sh && i < sh->n; i++)
        mem_free(sh->paths[i]);
    mem_free(sh);
    cJSON_Delete(json);
    file_map_close(&m);
    return rc;
}

/* Finds the only file of a folder whose name ends with tail (variants have names such as
 * model.fp16.safetensors): 1 and its path, 0 when there is none. */
static int find_only(char *out, size_t cap, const char *folder, const char *tail, struct err *e)
{
    char first[256] = "";
    int rc = 0;
    DIR *dir = opendir(folder);
    if (!dir)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", folder, strerror(errno));
    for (const struct dirent *d; rc >= 0 && (d = readdir(dir));) {
        if (d->d_name[0] == '.' || !str_ends_with(d->d_name, tail))
            continue;
        if (rc == 1)
            rc = err_set(e, SHOAL_EFORMAT, "%s has several models: %.100s, %.100s", folder, first,
                         d->d_name);
        else
            rc = 1;
        snprintf(first, sizeof(first), "%s", d->d_name);
    }
    closedir(dir);
    if (rc == 1 && (size_t)snprintf(out, cap, "%s/%s", folder, first) >= cap)
        rc = err_set(e, SHOAL_EINVAL, "a path of %zu bytes is too long", strlen(folder));
    return rc;
}

/* Finds the weights of a folder: 1 when *path is an index, 0 when it is the only file. */
static int find_weights(char *path, size_t cap, const char *folder, struct err *e)
{
    static const struct {
        const char *name;
        bool exact;
    } names[] = {{"model.safetensors", true},
                 {"model.safetensors.index.json", true},
                 {".safetensors.index.json", false}, /* before its shards */
                 {".safetensors", false}};
    for (int i = 0; i < 4; i++) {
        int found;
        if (names[i].exact) {
            if ((size_t)snprintf(path, cap, "%s/%s", folder, names[i].name) >= cap)
                return err_set(e, SHOAL_EINVAL, "a path of %zu bytes is too long", strlen(folder));
            found = access(path, F_OK) == 0;
        } else {
            found = find_only(path, cap, folder, names[i].name, e);
        }
        if (found < 0)
            return found;
        if (found)
            return i == 1 || i == 2;
    }
    bool pickled = (size_t)snprintf(path, cap, "%s/pytorch_model.bin", folder) < cap &&
                   access(path, F_OK) == 0;
    return err_set(e, SHOAL_EIO,
                   "%s has no model.safetensors and no model.safetensors.index.json%s", folder,
                   pickled ? " (pytorch_model.bin is not read: save it as safetensors)" : "");
}

int safetensors_open(struct safetensors **out, const char *path, struct err *e)
{
    char file[PATH_MAX];
    struct stat st;
    int rc = 0;
    struct safetensors *s = mem_zalloc(sizeof(*s));

    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the safetensors handle");
    bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (folder)
        rc = find_weights(file, sizeof(file), path, e);
    else if ((size_t)snprintf(file, sizeof(file), "%s", path) >= sizeof(file))
        rc = err_set(e, SHOAL_EINVAL, "a path of %zu bytes is too long", strlen(path));
    if (rc == 1) {
        rc = open_index(s, path, file, e);
    } else if (rc == 0) {
        char *paths[] = {file};
        rc = open_files(s, paths, 1, e);
    }
    if (rc < 0) {
        safetensors_close(s);
        return rc;
    }
    *out = s;
    return 0;
}
