/* recipe.c - see recipe.h. */
#include "depot/source/recipe.h"

#include <string.h>

#include "base/buf.h"
#include "base/file/file_read.h"
#include "base/mem.h"
#include "depot/store/model_manifest.h"
#include "host/pack.h"
#include "wire/json_in.h"

#define MAX_LIST_BYTES ((size_t)4 << 20)
#define MAX_RECIPES 4096u
#define MAX_ARENA_BYTES ((size_t)32 << 20)
#define MAX_PARTS 256u
#define MAX_SIZE ((double)((uint64_t)1 << 50))

struct recipe_in {
    struct recipes *list;
    const char *name; /* of the recipe, for messages */
    struct err *e;
};

static int wrong(const struct recipe_in *r, const char *what)
{
    return err_set(r->e, SHOAL_EFORMAT, "recipe %.80s: %s", r->name ? r->name : "without a name",
                   what);
}

static const char *text(struct recipe_in *r, const cJSON *v, const char *key)
{
    const char *s = cJSON_GetStringValue(json_in_item(v, key));
    return s ? arena_copy(&r->list->arena, s, strlen(s) + 1) : NULL;
}

static bool size_of(const cJSON *v, uint64_t *out)
{
    const cJSON *n = json_in_item(v, "bytes");
    if (!cJSON_IsNumber(n) || !(n->valuedouble >= 1 && n->valuedouble <= MAX_SIZE))
        return false;
    *out = (uint64_t)n->valuedouble;
    return true;
}

static bool hash_of(const cJSON *v, uint8_t out[SHA256_BYTES])
{
    const char *hex = cJSON_GetStringValue(json_in_item(v, "sha256"));
    return hex && strlen(hex) == 2 * SHA256_BYTES && sha256_read_hex(out, hex);
}

/* A part of a URL without surprises. */
static bool plain(const char *s, const char *also)
{
    if (!s || !s[0] || strlen(s) > 200 || strstr(s, ".."))
        return false;
    for (; *s; s++)
        if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') ||
              strchr("._-", *s) || strchr(also, *s)))
            return false;
    return true;
}

static int read_archive(struct recipe_in *r, const cJSON *v, struct recipe_archive *a)
{
    const char *from = cJSON_GetStringValue(json_in_item(v, "from"));
    a->npm = from && strcmp(from, "npm") == 0;
    a->package = text(r, v, "package");
    a->version = text(r, v, "version");
    a->file = text(r, v, "file");
    if (!from || (!a->npm && strcmp(from, "pypi") != 0))
        return wrong(r, "an archive's 'from' must be pypi or npm");
    if (!plain(a->package, "@/") || !plain(a->version, "+!") || !plain(a->file, "+@"))
        return wrong(r, "an archive needs 'package', 'version' and 'file'");
    if (!size_of(v, &a->bytes) || !hash_of(v, a->sha256))
        return wrong(r, "an archive needs 'bytes' and 'sha256'");
    return 0;
}

static int read_part(struct recipe_in *r, const struct recipe *x, const cJSON *v,
                     struct recipe_part *p)
{
    int rc = json_in_u32(v, "archive", 0, x->n_archives - 1, 0, &p->archive, r->e);
    if (rc < 0)
        return err_wrap(r->e, "recipe %.80s", r->name);
    p->member = text(r, v, "member");
    return p->member && p->member[0] && size_of(v, &p->bytes)
               ? 0
               : wrong(r, "a part needs 'member' and 'bytes'");
}

static int read_file(struct recipe_in *r, const struct recipe *x, const cJSON *v,
                     struct recipe_file *f)
{
    const cJSON *parts = json_in_item(v, "parts"), *one;
    int n = cJSON_GetArraySize(parts), rc = 0;
    uint64_t sum = 0;
    f->name = text(r, v, "name");
    if (!f->name || !model_manifest_name_ok(f->name) || strncmp(f->name, "../", 3) == 0)
        return wrong(r, "a file needs a 'name' within the model");
    if (!size_of(v, &f->bytes) || !hash_of(v, f->sha256))
        return wrong(r, "a file needs 'bytes' and 'sha256'");
    if (n < 1 || n > (int)MAX_PARTS)
        return wrong(r, "a file needs 'parts'");
    f->parts = arena_zalloc_n(&r->list->arena, (size_t)n, sizeof(*f->parts));
    if (!f->parts)
        return err_set(r->e, SHOAL_ENOMEM, "recipes");
    cJSON_ArrayForEach(one, parts)
    {
        if (rc == 0)
            rc = read_part(r, x, one, &f->parts[f->n_parts]);
        sum += rc == 0 ? f->parts[f->n_parts++].bytes : 0;
    }
    return rc == 0 && sum != f->bytes ? wrong(r, "the parts do not add up to the file") : rc;
}

static int read_lists(struct recipe_in *r, const cJSON *v, struct recipe *x)
{
    const cJSON *archives = json_in_item(v, "archives"), *files = json_in_item(v, "files"), *one;
    int n_archives = cJSON_GetArraySize(archives), n_files = cJSON_GetArraySize(files), rc = 0;
    if (n_archives < 1 || n_archives > (int)RECIPE_MAX_ARCHIVES)
        return wrong(r, "it needs 'archives'");
    if (n_files < 1 || n_files > (int)RECIPE_MAX_FILES || (!x->folder && n_files != 1))
        return wrong(r, "it needs 'files'; only a folder has several");
    x->archives = arena_zalloc_n(&r->list->arena, (size_t)n_archives, sizeof(*x->archives));
    x->files = arena_zalloc_n(&r->list->arena, (size_t)n_files, sizeof(*x->files));
    if (!x->archives || !x->files)
        return err_set(r->e, SHOAL_ENOMEM, "recipes");
    cJSON_ArrayForEach(one, archives)
    {
        if (rc == 0)
            rc = read_archive(r, one, &x->archives[x->n_archives++]);
    }
    cJSON_ArrayForEach(one, files)
    {
        if (rc == 0)
            rc = read_file(r, x, one, &x->files[x->n_files++]);
    }
    return rc;
}

static int read_recipe(struct recipe_in *r, const cJSON *v, struct recipe *x)
{
    const cJSON *one;
    r->name = x->name = text(r, v, "name");
    x->about = text(r, v, "about");
    x->task = text(r, v, "task");
    x->licence = text(r, v, "licence");
    x->folder = cJSON_IsTrue(json_in_item(v, "folder"));
    if (!plain(x->name, ":/"))
        return wrong(r, "it needs a 'name' of letters, digits and ._:/-");
    cJSON_ArrayForEach(one, json_in_item(v, "also"))
    {
        const char *s = cJSON_GetStringValue(one);
        if (!plain(s, ":/") || x->n_also == RECIPE_MAX_ALSO)
            return wrong(r, "'also' is a short list of names");
        x->also[x->n_also++] = arena_copy(&r->list->arena, s, strlen(s) + 1);
    }
    return read_lists(r, v, x);
}

static int add_list(struct recipes *list, const char *json, size_t n, struct err *e)
{
    struct recipe_in r = {.list = list, .e = e};
    cJSON *root = NULL;
    const cJSON *one;
    int rc = json_in_object(&root, "recipes", json, n, MAX_LIST_BYTES, e);
    const cJSON *all = json_in_item(root, "recipes");
    int count = cJSON_GetArraySize(all);
    if (rc == 0 && (!cJSON_IsArray(all) || count > (int)MAX_RECIPES))
        rc = err_set(e, SHOAL_EFORMAT, "recipes: 'recipes' must be a list");
    struct recipe *v =
        rc == 0 ? arena_zalloc_n(&list->arena, list->n + (size_t)count + 1, sizeof(*v)) : NULL;
    if (rc == 0 && !v)
        rc = err_set(e, SHOAL_ENOMEM, "recipes");
    if (rc == 0) {
        if (list->n)
            memcpy(v, list->v, list->n * sizeof(*v));
        list->v = v;
    }
    cJSON_ArrayForEach(one, all)
    {
        if (rc == 0)
            rc = read_recipe(&r, one, &list->v[list->n]);
        if (rc == 0)
            list->n++;
    }
    cJSON_Delete(root);
    return rc == 0 && list->arena.rc < 0 ? err_set(e, list->arena.rc, "recipes") : rc;
}

static struct recipes *create(struct err *e)
{
    struct recipes *r = mem_zalloc(sizeof(*r));
    if (r)
        arena_init(&r->arena, MAX_ARENA_BYTES);
    else
        err_set(e, SHOAL_ENOMEM, "recipes");
    return r;
}

int recipes_parse(struct recipes **out, const char *json, size_t n, struct err *e)
{
    struct recipes *r = create(e);
    int rc = r ? add_list(r, json, n, e) : SHOAL_ENOMEM;
    *out = rc == 0 ? r : NULL;
    if (rc < 0)
        recipes_close(r);
    return rc;
}

static int add_file(struct recipes *r, const char *path, struct err *e)
{
    struct buf b;
    buf_init(&b, MAX_LIST_BYTES);
    int rc = file_read(path, &b, e);
    if (rc == 0 && add_list(r, buf_str(&b), b.len, e) < 0)
        rc = err_wrap(e, "%s", path);
    buf_fini(&b);
    return rc;
}

static int add_included(struct recipes *r, struct err *e)
{
    struct err none = {0};
    struct pack *p = NULL;
    int rc = pack_open(&p, NULL, &none);
    if (rc == SHOAL_ENOTFOUND)
        return 0; /* installed without models */
    const struct pack_table *t = rc == 0 ? pack_find_table(p, "recipes") : NULL;
    if (rc < 0)
        *e = none;
    if (t)
        rc = pack_verify_table(t, e);
    if (t && rc == 0)
        rc = add_file(r, t->file.path, e);
    pack_close(p);
    return rc;
}

int recipes_open(struct recipes **out, const char *more, struct err *e)
{
    struct recipes *r = create(e);
    int rc = r ? 0 : SHOAL_ENOMEM;
    *out = NULL;
    if (rc == 0 && more)
        rc = add_file(r, more, e);
    if (rc == 0)
        rc = add_included(r, e);
    if (rc < 0)
        recipes_close(r);
    else
        *out = r;
    return rc;
}

void recipes_close(struct recipes *r)
{
    if (!r)
        return;
    arena_fini(&r->arena);
    mem_free(r);
}

const struct recipe *recipes_find(const struct recipes *r, const char *name)
{
    for (uint32_t i = 0; i < r->n; i++) {
        if (strcmp(r->v[i].name, name) == 0)
            return &r->v[i];
        for (uint32_t k = 0; k < r->v[i].n_also; k++)
            if (strcmp(r->v[i].also[k], name) == 0)
                return &r->v[i];
    }
    return NULL;
}
