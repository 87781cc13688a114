/* model_pull.c - see model_pull.h. */
#include "depot/model_pull.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/bytes_text.h"
#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "depot/delta/model_delta.h"
#include "depot/source/intake_fill.h"
#include "depot/store/model_intake.h"
#include "depot/model_place.h"
#include "depot/store/model_put.h"
#include "depot/store/model_refs.h"
#include "depot/store/model_store.h"
#include "depot/source/recipe.h"
#include "depot/source/source_file.h"
#include "depot/source/source_hub.h"
#include "depot/source/source_oci.h"
#include "depot/source/source_package.h"
#include "depot/source/source_url.h"
#include "depot/source/web.h"
#include "engine/model_check.h"
#include "host/pack.h"
#include "supply/trust_policy.h"

/* What a pull works with. */
struct pulling {
    const struct model_source_opts *o;
    const char *what, *as;
    struct model_place place;
    struct recipes *recipes;
    struct model_source *source; /* NULL: the model is on this machine, at `what` */
    struct model_described d;
    struct model_intake *intake;
};

/* ---- names ---- */

static int check_name(const char *name, struct err *e)
{
    struct pack *p = NULL;
    if (!model_refs_is_name(name))
        return err_set(e, SHOAL_EINVAL,
                       "'%.64s' cannot be the name of a model; give it one with --name", name);
    bool taken = pack_open(&p, NULL, NULL) == 0 && pack_find(p, name);
    pack_close(p);
    return taken ? err_set(e, SHOAL_EINVAL,
                           "%.64s is a model that comes with Shoal; give the new one another name "
                           "with --name",
                           name)
                 : 0;
}

/* ---- sources ---- */

static void put_recipes(struct buf *b, const struct recipes *r)
{
    for (uint32_t i = 0; i < r->n && b->len < 300; i++)
        buf_printf(b, "%s%s", i ? ", " : "", r->v[i].name);
}

static int unknown(const struct pulling *p, struct err *e)
{
    struct buf b;
    buf_init(&b, 1024);
    put_recipes(&b, p->recipes);
    int rc = err_set(e, SHOAL_ENOTFOUND,
                     "no recipe for %.64s (there are: %.300s); or say where it is: "
                     "hf.co/ORG/REPO, ollama://%.64s, HOST/PATH:TAG, https://... or a path",
                     p->what, buf_str(&b), p->what);
    buf_fini(&b);
    return rc;
}

static int open_url(struct pulling *p, struct err *e)
{
    static const char mark[] = "#sha256=";
    uint8_t sum[SHA256_BYTES];
    const char *hash = strstr(p->place.name, mark);
    char url[WEB_MAX_URL];
    struct source_url_opts u = {.url = url};
    if (strlen(p->place.name) >= sizeof(url))
        return err_set(e, SHOAL_EINVAL, "the URL is too long");
    snprintf(url, sizeof(url), "%.*s", (int)strcspn(p->place.name, "#"), p->place.name);
    if (hash && (strlen(hash) != sizeof(mark) - 1 + 2 * SHA256_BYTES ||
                 !sha256_read_hex(sum, hash + sizeof(mark) - 1)))
        return err_set(e, SHOAL_EINVAL, "%.100s: #sha256= needs 64 hex digits", p->what);
    u.sha256 = hash ? sum : NULL;
    return source_url_open(&p->source, &u, p->o, e);
}

static int open_recipe(struct pulling *p, struct err *e)
{
    int rc = recipes_open(&p->recipes, p->o->recipes, e);
    if (rc < 0)
        return rc;
    const struct recipe *r = recipes_find(p->recipes, p->place.name);
    return r ? source_package_open(&p->source, r, p->o, e) : unknown(p, e);
}

/* A patch of a model that is in the store: the new version becomes a file without a name, and is
 * taken in as any other source is. */
static int open_patch(struct pulling *p, const struct delta_head *h, struct err *e)
{
    char old[PATH_MAX], made[PATH_MAX], hex[2 * SHA256_BYTES + 1];
    struct model_delta done;
    struct err why = {0};
    sha256_hex(hex, h->old_sum);
    int rc = model_store_find(p->o->store, h->old_sum, old, &why);
    if (rc < 0)
        return err_set(e, rc,
                       "%.200s is a patch of the model %.16s..., which is not in the store: pull "
                       "that first, or the whole new version",
                       p->what, hex);
    int n = snprintf(made, sizeof(made), "%s/patched-%ld", model_store_dir(p->o->store),
                     (long)getpid());
    if (n < 0 || (size_t)n >= sizeof(made))
        return err_set(e, SHOAL_ELIMIT, "the path of the store is too long");
    rc = model_delta_apply(old, p->place.name, made, &done, e);
    if (rc == 0)
        rc = source_file_open(&p->source, made, "model.gguf", h->new_sum, e);
    unlink(made);
    if (rc == 0 && p->o->trust && !p->o->signature) /* beside the patch is that of the model */
        model_manifest_find_signature(&p->d.manifest, p->place.name);
    return rc;
}

static int open_path(struct pulling *p, struct err *e)
{
    struct delta_head h;
    int rc = model_delta_head(&h, p->place.name, e);
    return rc > 0 ? open_patch(p, &h, e) : rc;
}

/* From the place, or by the registry that all names mean. */
static int open_source(struct pulling *p, struct err *e)
{
    if (p->o->registry) {
        snprintf(p->place.stored, sizeof(p->place.stored), "%s", p->what);
        return source_oci_open(&p->source, p->o->registry, p->what, p->o, e);
    }
    int rc = model_place_read(&p->place, p->what, p->o->plain_http, e);
    if (rc < 0)
        return rc;
    if (p->o->allow && !(p->o->allow >> p->place.kind & 1))
        return err_set(e, SHOAL_EINVAL,
                       "this server does not pull from there: add '%s' to store.sources",
                       place_kind_name(p->place.kind));
    switch (p->place.kind) {
    case PLACE_KIND_HUB:
        return source_hub_open(&p->source, p->place.name, p->o, e);
    case PLACE_KIND_OCI:
        return source_oci_open(&p->source, p->place.base, p->place.name, p->o, e);
    case PLACE_KIND_URL:
        return open_url(p, e);
    case PLACE_KIND_PATH:
        return open_path(p, e);
    case PLACE_KIND_RECIPE:
    case PLACE_KIND_N:
        break;
    }
    return open_recipe(p, e);
}

/* ---- the model ---- */

static int check_size(const struct pulling *p, struct err *e)
{
    uint64_t bytes = model_manifest_bytes(&p->d.manifest);
    char has[32], most[32];
    if (p->o->max_bytes == 0 || bytes <= p->o->max_bytes)
        return 0;
    bytes_text(has, (double)bytes);
    bytes_text(most, (double)p->o->max_bytes);
    return err_set(e, SHOAL_ELIMIT, "%.100s has %s, more than the limit of %s", p->what, has, most);
}

static int fetch(struct pulling *p, struct model_pulled *out, struct err *e)
{
    int rc = p->source->ops->describe(p->source, &p->d, e);
    if (rc == 0)
        rc = check_size(p, e);
    if (rc < 0)
        return rc;
    out->bytes = model_manifest_bytes(&p->d.manifest);
    memcpy(out->sha256, p->d.sha256, SHA256_BYTES);
    rc = intake_fill_open(&p->intake, p->o, p->d.sha256, e);
    out->had = rc > 0;
    if (rc == 0)
        rc = intake_fill(p->intake, p->source, &p->d.manifest, p->o, e);
    if (rc == 0)
        rc = model_intake_commit(p->intake, out->path, e);
    return rc < 0 ? rc : 0;
}

static int copy_in(struct pulling *p, struct model_pulled *out, struct err *e)
{
    struct model_manifest m;
    struct err why = {0};
    int rc = access(p->place.name, F_OK) < 0 ? 0 : model_check(p->place.name, &why);
    if (rc < 0)
        return err_set(e, rc,
                       "%s; a model is a GGUF, ONNX or LightGBM file, or a folder "
                       "with config.json",
                       why.msg);
    rc = model_put(p->o->store, p->place.name, NULL, out->sha256, p->o->stop, e);
    model_manifest_init(&m);
    if (rc == 0)
        rc = model_store_manifest(p->o->store, out->sha256, &m, e);
    out->bytes = rc == 0 ? model_manifest_bytes(&m) : 0;
    model_manifest_fini(&m);
    return rc;
}

/* Paths of this machine are written in full, logins are left out: the text is kept and shown. */
static const char *source_text(const struct pulling *p, char full[PATH_MAX])
{
    if (p->d.source)
        return p->d.source;
    if (p->source || !realpath(p->what, full))
        web_without_login(full, PATH_MAX, p->what);
    return full;
}

/* ---- who signed it ---- */

/* Keeps the signature beside the model. */
static int keep_signature(const struct pulling *p, const struct model_pulled *m, const char *from,
                          struct err *e)
{
    char to[PATH_MAX];
    struct buf b;
    int rc = model_store_place(p->o->store, to, m->sha256, false, e);
    size_t n = strlen(to);
    if (rc < 0)
        return rc;
    if (n + sizeof("/signature") > sizeof(to))
        return err_set(e, SHOAL_ELIMIT, "the path of the store is too long");
    snprintf(to + n, sizeof(to) - n, "/signature");
    if (strcmp(to, from) == 0)
        return 0;
    buf_init(&b, OMS_MAX_BYTES);
    rc = file_read(from, &b, e);
    if (rc == 0)
        rc = file_replace(to, buf_str(&b), b.len, e);
    buf_fini(&b);
    return rc;
}

/* path: where it is, on this machine or in the store. found: where its signature is. */
static int check_trust(const struct pulling *p, struct model_pulled *out, const char *path,
                       const char *signature, struct buf *found, struct err *e)
{
    const char *const names[] = {out->name};
    struct signed_by by;
    const struct trust_policy_model m = {
        .names = names, .n_names = 1, .path = path, .signature = signature};
    int rc = trust_policy_check(p->o->trust, &m, p->o->stop, &by, found, e);
    if (rc == 0)
        snprintf(out->signer, sizeof(out->signer), "%s", by.name);
    return rc;
}

/* What has arrived in the store, and its signature. */
static int check_arrived(const struct pulling *p, struct model_pulled *out, const char *signature,
                         struct err *e)
{
    struct buf found;
    buf_init(&found, PATH_MAX);
    int rc = model_store_find(p->o->store, out->sha256, out->path, e);
    if (rc == 0)
        rc = check_trust(p, out, out->path, signature, &found, e);
    if (rc == 0 && out->signer[0])
        rc = keep_signature(p, out, buf_str(&found), e);
    if (rc < 0 && p->source && !out->had) /* it stays if somebody uses it */
        (void)!model_store_remove(p->o->store, out->sha256, NULL);
    buf_fini(&found);
    return rc;
}

static int name_it(struct pulling *p, struct model_pulled *out, struct err *e)
{
    char full[PATH_MAX];
    struct model_ref ref = {.name = out->name,
                            .stored = true,
                            .source = source_text(p, full),
                            .system = p->d.system,
                            .template = p->d.template,
                            .parameters = p->d.parameters,
                            .license = p->d.license,
                            .signer = out->signer[0] ? out->signer : NULL,
                            .messages = p->d.messages,
                            .task = p->d.task};
    memcpy(ref.sha256, out->sha256, SHA256_BYTES);
    int rc = model_refs_put(model_store_dir(p->o->store), &ref, e);
    return rc < 0 ? rc : model_store_find(p->o->store, out->sha256, out->path, e);
}

int model_pull(struct model_pulled *out, const char *what, const char *as,
               const struct model_source_opts *o, struct err *e)
{
    struct pulling p = {.o = o, .what = what, .as = as};
    struct buf signature;
    *out = (struct model_pulled){.bytes = 0};
    buf_init(&signature, PATH_MAX);
    model_manifest_init(&p.d.manifest);
    int rc = as ? check_name(as, e) : 0;
    if (rc == 0)
        rc = open_source(&p, e);
    if (rc == 0 && p.source)
        rc = fetch(&p, out, e);
    if (rc == 0) {
        snprintf(out->name, sizeof(out->name), "%s",
                 as            ? as
                 : p.d.name[0] ? p.d.name
                               : p.place.stored);
        rc = as ? 0 : check_name(out->name, e);
    }
    if (rc == 0 && !p.source && o->trust) /* before anything of it is in the store */
        rc = check_trust(&p, out, p.place.name, o->signature, &signature, e);
    if (rc == 0 && !p.source)
        rc = copy_in(&p, out, e);
    if (rc == 0 && o->trust)
        rc = check_arrived(&p, out, signature.len ? buf_str(&signature) : o->signature, e);
    if (rc == 0)
        rc = name_it(&p, out, e);
    buf_fini(&signature);
    if (p.source)
        p.source->ops->close(p.source);
    model_intake_close(p.intake); /* what arrived stays */
    model_manifest_fini(&p.d.manifest);
    recipes_close(p.recipes);
    return rc;
}
