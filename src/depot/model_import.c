/* model_import.c - see model_import.h. */
#include "depot/model_import.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file_read.h"
#include "base/mem.h"
#include "depot/source/intake_fill.h"
#include "depot/store/model_intake.h"
#include "depot/store/model_put.h"
#include "depot/store/model_refs.h"
#include "depot/store/model_store.h"
#include "depot/source/oci_manifest.h"
#include "depot/source/source_file.h"

#define MAX_TEXT_BYTES ((size_t)1 << 20)
#define MAX_MODEL_BYTES ((uint64_t)1 << 50)
#define MAX_DEPTH 4u

struct importing {
    const struct model_import_opts *o;
    char dir[PATH_MAX - 512];
    struct oci_manifest manifest;
};

/* ---- folders ---- */

static int find_folder(struct importing *x, const char *const *variables, const char *usual,
                       struct err *e)
{
    const char *home = getenv("HOME");
    struct stat st;
    x->dir[0] = '\0';
    if (x->o->dir)
        snprintf(x->dir, sizeof(x->dir), "%s", x->o->dir);
    for (; !x->dir[0] && *variables; variables += 2)
        if (getenv(variables[0]) && getenv(variables[0])[0])
            snprintf(x->dir, sizeof(x->dir), "%.3000s%s", getenv(variables[0]), variables[1]);
    if (!x->dir[0] && home)
        snprintf(x->dir, sizeof(x->dir), "%.3000s/%s", home, usual);
    return stat(x->dir, &st) == 0 && S_ISDIR(st.st_mode)
               ? 0
               : err_set(e, SHOAL_ENOTFOUND, "there is no folder %.200s: say where it is",
                         x->dir[0] ? x->dir : usual);
}

static bool stopped(const struct importing *x, struct err *e)
{
    if (!model_source_stopped((void *)(uintptr_t)x->o->source))
        return false;
    err_set(e, SHOAL_ECANCELLED, "stopped");
    return true;
}

/* Calls fn for every entry of a folder that is not hidden; its path and name. */
static int each_entry(struct importing *x, const char *folder,
                      int (*fn)(struct importing *x, const char *path, const char *name,
                                unsigned depth, struct err *e),
                      unsigned depth, struct err *e)
{
    char path[PATH_MAX];
    int rc = 0;
    DIR *d = opendir(folder);
    if (!d)
        return 0; /* nothing there */
    for (struct dirent *at; rc == 0 && (at = readdir(d));) {
        if (at->d_name[0] == '.' ||
            snprintf(path, sizeof(path), "%s/%s", folder, at->d_name) >= PATH_MAX)
            continue;
        rc = stopped(x, e) ? SHOAL_ECANCELLED : fn(x, path, at->d_name, depth, e);
    }
    closedir(d);
    return rc;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Reports one model; only a cancel ends the import. */
static int tell(struct importing *x, const char *name, int rc, const struct err *why, struct err *e)
{
    if (rc == SHOAL_ECANCELLED) {
        *e = *why;
        return rc;
    }
    x->o->told(x->o->ctx, name, rc, why);
    return 0;
}

/* ---- Ollama ---- */

static bool blob_path(const struct importing *x, char path[PATH_MAX], const char *digest)
{
    int n = snprintf(path, PATH_MAX, "%s/blobs/sha256-%s", x->dir, digest + 7);
    return n > 0 && n < PATH_MAX;
}

static void read_text(struct importing *x, enum oci_part part, struct buf *out)
{
    char path[PATH_MAX];
    const char *digest = x->manifest.parts[part].digest;
    if (digest[0] && blob_path(x, path, digest) && file_read(path, out, NULL) < 0)
        buf_clear(out);
}

/* The model's file into the store. */
static int take_blob(struct importing *x, const struct oci_file *f, uint8_t sum[SHA256_BYTES],
                     struct err *e)
{
    const struct model_source_opts *o = x->o->source;
    struct model_described d = {.sha256 = {0}};
    struct model_intake *k = NULL;
    struct model_source *s = NULL;
    char path[PATH_MAX], there[PATH_MAX];
    model_manifest_init(&d.manifest);
    int rc = blob_path(x, path, f->blob.digest) && sha256_read_hex(sum, f->blob.digest + 7)
                 ? source_file_open(&s, path, f->name, sum, e)
                 : err_set(e, SHOAL_ELIMIT, "a path is too long");
    if (rc == 0)
        rc = s->ops->describe(s, &d, e);
    if (rc == 0)
        rc = intake_fill_open(&k, o, sum, e);
    if (rc == 0)
        rc = intake_fill(k, s, &d.manifest, o, e);
    if (rc == 0 && k)
        rc = model_intake_commit(k, there, e);
    if (s)
        s->ops->close(s);
    model_intake_close(k);
    model_manifest_fini(&d.manifest);
    return rc < 0 ? rc : 0;
}

static int take_manifest(struct importing *x, const char *path, const char *name, struct err *e)
{
    struct buf text, parts[OCI_PART_CONFIG];
    struct model_ref ref = {.name = name, .stored = true, .source = "ollama"};
    buf_init(&text, OCI_MANIFEST_MAX_BYTES);
    for (int i = 0; i < OCI_PART_CONFIG; i++)
        buf_init(&parts[i], MAX_TEXT_BYTES);
    int rc = file_read(path, &text, e);
    if (rc == 0)
        rc = oci_manifest_read(&x->manifest, buf_str(&text), text.len, MAX_MODEL_BYTES, e);
    if (rc == 0 && (x->manifest.n_files != 1 || x->manifest.folder))
        rc = err_set(e, SHOAL_EUNSUPPORTED, "it is not a model of one GGUF file");
    if (rc == 0)
        rc = take_blob(x, &x->manifest.files[0], ref.sha256, e);
    for (int i = 0; rc == 0 && i < OCI_PART_CONFIG; i++)
        read_text(x, (enum oci_part)i, &parts[i]);
    if (parts[OCI_PART_SYSTEM].len)
        ref.system = buf_str(&parts[OCI_PART_SYSTEM]);
    if (parts[OCI_PART_PARAMETERS].len)
        ref.parameters = buf_str(&parts[OCI_PART_PARAMETERS]);
    if (parts[OCI_PART_LICENSE].len)
        ref.license = buf_str(&parts[OCI_PART_LICENSE]);
    if (parts[OCI_PART_MESSAGES].len)
        ref.messages = buf_str(&parts[OCI_PART_MESSAGES]);
    if (rc == 0)
        rc = model_refs_put(model_store_dir(x->o->source->store), &ref, e);
    for (int i = 0; i < OCI_PART_CONFIG; i++)
        buf_fini(&parts[i]);
    buf_fini(&text);
    return rc;
}

/* manifests/HOST/NAMESPACE/NAME/TAG; the host and the namespace of Ollama's own are left out. */
static int on_manifest(struct importing *x, const char *path, const char *file, unsigned depth,
                       struct err *e)
{
    char name[PATH_MAX];
    struct err why = {0};
    (void)file;
    if (is_folder(path))
        return depth < MAX_DEPTH ? each_entry(x, path, on_manifest, depth + 1, e) : 0;
    snprintf(name, sizeof(name), "%s", path + strlen(x->dir) + strlen("/manifests/"));
    char *tag = strrchr(name, '/');
    if (!tag)
        return 0;
    *tag = ':';
    const char *at = name;
    if (strncmp(at, "registry.ollama.ai/", 19) == 0)
        at += 19;
    if (strncmp(at, "library/", 8) == 0)
        at += 8;
    return tell(x, at, take_manifest(x, path, at, &why), &why, e);
}

int model_import_ollama(const struct model_import_opts *o, struct err *e)
{
    static const char *const variables[] = {"OLLAMA_MODELS", "", NULL};
    struct importing *x = mem_zalloc(sizeof(*x));
    char folder[PATH_MAX];
    if (!x)
        return err_set(e, SHOAL_ENOMEM, "import");
    x->o = o;
    int rc = find_folder(x, variables, ".ollama/models", e);
    snprintf(folder, sizeof(folder), "%s/manifests", x->dir);
    if (rc == 0 && !is_folder(folder))
        rc = err_set(e, SHOAL_ENOTFOUND, "%.200s is not a folder of Ollama: it has no manifests",
                     x->dir);
    if (rc == 0)
        rc = each_entry(x, folder, on_manifest, 0, e);
    mem_free(x);
    return rc;
}

/* ---- the cache of Hugging Face's tools ---- */

static int put_path(struct importing *x, const char *path, const char *name, struct err *e)
{
    struct model_ref ref = {.name = name, .stored = true, .source = "hf-cache"};
    int rc = model_put(x->o->source->store, path, NULL, ref.sha256, x->o->source->stop, e);
    return rc < 0 ? rc : model_refs_put(model_store_dir(x->o->source->store), &ref, e);
}

struct hf_snapshot {
    const char *repo; /* "ORG/REPO" */
    uint32_t n_gguf;
    bool config, weights;
};

/* A GGUF file of a snapshot is a model: "hf.co/ORG/REPO:FILE". */
static int take_gguf(struct importing *x, const char *path, const char *file, const char *repo,
                     struct err *e)
{
    char name[PATH_MAX];
    struct err why = {0};
    snprintf(name, sizeof(name), "hf.co/%.120s:%.*s", repo, (int)strlen(file) - 5, file);
    return tell(x, name, put_path(x, path, name, &why), &why, e);
}

static bool ends(const char *text, const char *with)
{
    size_t n = strlen(text), k = strlen(with);
    return n > k && strcasecmp(text + n - k, with) == 0;
}

static int take_snapshot(struct importing *x, const char *folder, const char *repo, struct err *e)
{
    struct hf_snapshot s = {.repo = repo};
    char path[PATH_MAX], name[PATH_MAX];
    struct err why = {0};
    int rc = 0;
    DIR *d = opendir(folder);
    for (struct dirent *at; rc == 0 && d && (at = readdir(d));) {
        s.config |= strcmp(at->d_name, "config.json") == 0;
        s.weights |= ends(at->d_name, ".safetensors");
        if (!ends(at->d_name, ".gguf") || strncasecmp(at->d_name, "mmproj", 6) == 0 ||
            snprintf(path, sizeof(path), "%s/%s", folder, at->d_name) >= PATH_MAX)
            continue;
        s.n_gguf++;
        rc = take_gguf(x, path, at->d_name, repo, e);
    }
    if (d)
        closedir(d);
    if (rc < 0 || s.n_gguf > 0 || !s.config || !s.weights)
        return rc;
    snprintf(name, sizeof(name), "hf.co/%.120s", repo);
    return tell(x, name, put_path(x, folder, name, &why), &why, e);
}

/* models--ORG--REPO, the snapshot of its main branch. */
static int on_repo(struct importing *x, const char *path, const char *file, unsigned depth,
                   struct err *e)
{
    char repo[NAME_MAX + 1], head[PATH_MAX], snapshot[PATH_MAX];
    struct buf b;
    (void)depth;
    if (strncmp(file, "models--", 8) != 0)
        return 0;
    snprintf(repo, sizeof(repo), "%s", file + 8);
    char *dashes = strstr(repo, "--");
    if (!dashes)
        return 0;
    dashes[0] = '/';
    memmove(dashes + 1, dashes + 2, strlen(dashes + 2) + 1);
    buf_init(&b, 256);
    snprintf(head, sizeof(head), "%.4000s/refs/main", path);
    int rc = 0;
    if (file_read(head, &b, NULL) == 0) {
        int n = snprintf(snapshot, sizeof(snapshot), "%s/snapshots/%.*s", path,
                         (int)strcspn(buf_str(&b), "\r\n/. "), buf_str(&b));
        if (n > 0 && n < PATH_MAX && is_folder(snapshot))
            rc = take_snapshot(x, snapshot, repo, e);
    }
    buf_fini(&b);
    return rc;
}

int model_import_hf(const struct model_import_opts *o, struct err *e)
{
    static const char *const variables[] = {"HF_HUB_CACHE", "", "HF_HOME", "/hub", NULL};
    struct importing *x = mem_zalloc(sizeof(*x));
    if (!x)
        return err_set(e, SHOAL_ENOMEM, "import");
    x->o = o;
    int rc = find_folder(x, variables, ".cache/huggingface/hub", e);
    if (rc == 0)
        rc = each_entry(x, x->dir, on_repo, 0, e);
    mem_free(x);
    return rc;
}
