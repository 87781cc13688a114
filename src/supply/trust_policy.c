/* trust_policy.c - see trust_policy.h. */
#include "supply/trust_policy.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file/file_read.h"
#include "base/mem.h"
#include "host/identity.h"
#include "supply/cosign.h"
#include "supply/minisign.h"
#include "supply/model_signing.h"
#include "supply/sign_key.h"

struct signer {
    char *name;
    struct signer_anchor *anchor;
    char **models;
    size_t n_models;
    int64_t until_s;
};

struct trust_policy {
    struct signer *signers;
    uint32_t n_signers;
    char *signatures;
    char (*revoked)[SIGN_KEY_HINT];
    size_t n_revoked;
    bool require, included;
};

static int add_signer(struct signer *s, const struct trust_policy_signer *from, struct err *e)
{
    const struct signer_anchor_opts o = {
        .key = from->key, .certificates = from->certificates, .subject = from->subject};
    s->until_s = from->until_s;
    s->name = mem_strdup(from->name);
    s->models = mem_zalloc_n(from->n_models + 1, sizeof(s->models[0]));
    if (!s->name || !s->models)
        return err_set(e, SHOAL_ENOMEM, "a signer");
    for (; s->n_models < from->n_models; s->n_models++)
        if (!(s->models[s->n_models] = mem_strdup(from->models[s->n_models])))
            return err_set(e, SHOAL_ENOMEM, "a signer");
    int rc = signer_anchor_open(&s->anchor, &o, e);
    return rc < 0 ? err_wrap(e, "trust.signers, %.64s", from->name) : 0;
}

static bool is_hex(const char *s)
{
    const size_t n = strlen(s);
    return (n == 64 || n == 16) && strspn(s, "0123456789abcdefABCDEF") == n;
}

/* A key or a model by its name, or a key by its file. */
static int add_revoked(char out[SIGN_KEY_HINT], const char *what, struct err *e)
{
    struct signer_anchor *a = NULL;
    const struct signer_anchor_opts o = {.key = what};
    snprintf(out, SIGN_KEY_HINT, "%s", what);
    if (is_hex(what))
        return 0;
    int rc = signer_anchor_open(&a, &o, e);
    if (rc < 0)
        return err_wrap(e, "trust.revoked: neither a SHA-256 nor a public key");
    signer_anchor_key(a, out);
    signer_anchor_close(a);
    return 0;
}

static bool is_revoked(const struct trust_policy *p, const char *id)
{
    for (size_t i = 0; i < p->n_revoked; i++)
        if (strcasecmp(p->revoked[i], id) == 0)
            return true;
    return false;
}

int trust_policy_create(struct trust_policy **out, const struct trust_policy_opts *o, struct err *e)
{
    struct trust_policy *p = mem_zalloc(sizeof(*p));
    int rc = 0;
    *out = NULL;
    if (!p || !(p->signers = mem_zalloc_n(o->n_signers + 1, sizeof(p->signers[0]))) ||
        !(p->revoked = mem_zalloc_n(o->n_revoked + 1, sizeof(p->revoked[0]))) ||
        (o->signatures && !(p->signatures = mem_strdup(o->signatures))))
        rc = err_set(e, SHOAL_ENOMEM, "a trust policy");
    for (uint32_t i = 0; rc == 0 && i < o->n_signers; i++) {
        p->n_signers++;
        rc = add_signer(&p->signers[i], &o->signers[i], e);
    }
    for (; rc == 0 && p->n_revoked < o->n_revoked; p->n_revoked++)
        rc = add_revoked(p->revoked[p->n_revoked], o->revoked[p->n_revoked], e);
    if (rc < 0) {
        trust_policy_destroy(p);
        return rc;
    }
    p->require = o->require;
    p->included = o->included;
    *out = p;
    return 0;
}

void trust_policy_destroy(struct trust_policy *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; i < p->n_signers; i++) {
        struct signer *s = &p->signers[i];
        for (size_t k = 0; k < s->n_models; k++)
            mem_free(s->models[k]);
        mem_free(s->models);
        mem_free(s->name);
        signer_anchor_close(s->anchor);
    }
    mem_free(p->revoked);
    mem_free(p->signers);
    mem_free(p->signatures);
    mem_free(p);
}

static bool may_sign(const struct signer *s, const char *name)
{
    for (size_t i = 0; i < s->n_models; i++)
        if (fnmatch(s->models[i], name, 0) == 0)
            return true;
    return s->n_models == 0;
}

/* ---- where the signature is ---- */

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* ".../HEX/files..." of the store: ".../HEX/signature". */
static bool in_store(char *out, size_t cap, const char *path)
{
    const char *at = strstr(path, "/files");
    for (; at; at = strstr(at + 1, "/files"))
        if (at - path > 64 && at[-65] == '/' && strspn(at - 64, "0123456789abcdef") == 64) {
            int n = snprintf(out, cap, "%.*s/signature", (int)(at - path), path);
            return n > 0 && (size_t)n < cap && is_file(out);
        }
    return false;
}

bool trust_policy_signature(char *out, size_t cap, const char *path)
{
    const char *slash = strrchr(path, '/');
    const int above = slash ? (int)(slash - path) : 0;
    for (int i = 0; i < 4; i++) {
        int n = 0;
        switch (i) {
        case 0:
            n = snprintf(out, cap, "%s.sig", path);
            break;
        case 1:
            n = snprintf(out, cap, "%s.minisig", path);
            break;
        case 2:
            n = snprintf(out, cap, "%s/" MODEL_SIGNING_FILE, path);
            break;
        default:
            n = snprintf(out, cap, "%.*s/" MODEL_SIGNING_FILE, slash ? above : 1,
                         slash ? path : ".");
        }
        if (n > 0 && (size_t)n < cap && is_file(out))
            return true;
    }
    return in_store(out, cap, path);
}

/* The folder of signatures comes first: it is this machine's, the others may have come with the
 * model. */
static bool find_signature(char *out, size_t cap, const struct trust_policy *p, const char *path,
                           const char *hex)
{
    int n = p->signatures ? snprintf(out, cap, "%s/%s.sig", p->signatures, hex) : -1;
    return (n > 0 && (size_t)n < cap && is_file(out)) || trust_policy_signature(out, cap, path);
}

/* ---- checking ---- */

struct checking {
    const struct trust_policy *p;
    const struct trust_policy_model *m;
    struct identity_list *list;
    struct oms_bundle bundle;
    struct minisign minisign;
    bool is_minisign;
    struct signed_by by;
};

static int by_signer(struct checking *c, const struct signer *s, struct err *e)
{
    return c->is_minisign
               ? signer_anchor_check_minisign(s->anchor, &c->minisign, c->m->path, &c->by, e)
               : signer_anchor_check(s->anchor, &c->bundle, &c->by, e);
}

/* 1: nobody of the policy has signed it. */
static int find_signer(struct checking *c, struct err *why, struct err *e)
{
    struct err late = {0};
    for (uint32_t i = 0; i < c->p->n_signers; i++) {
        const struct signer *s = &c->p->signers[i];
        if (signer_anchor_is_minisign(s->anchor) != c->is_minisign || by_signer(c, s, why) < 0)
            continue;
        if (is_revoked(c->p, c->by.key))
            return err_set(e, SHOAL_EINVAL,
                           "it was signed with the key %.16s of %.64s, which trust.revoked names: "
                           "sign it with another one",
                           c->by.key, s->name);
        if (s->until_s && time(NULL) >= s->until_s) {
            err_set(&late, SHOAL_EINVAL, "%.64s is believed no longer: see its `until`", s->name);
            continue; /* the next one may have the same key, and more time */
        }
        snprintf(c->by.name, sizeof(c->by.name), "%s", s->name);
        for (size_t k = 0; k < c->m->n_names; k++)
            if (!may_sign(s, c->m->names[k]))
                return err_set(e, SHOAL_EINVAL,
                               "%.64s may not sign %.64s: add the name to its `models` in "
                               "trust.signers, or let somebody else sign it",
                               s->name, c->m->names[k]);
        return 0;
    }
    if (late.msg[0])
        *why = late;
    c->by = (struct signed_by){.method = SIGNER_NONE};
    return 1;
}

static int compare(struct checking *c, struct err *e)
{
    struct model_signing_report r;
    if (c->is_minisign) /* covers one file, which was read */
        return identity_list_is_folder(c->list)
                   ? err_set(e, SHOAL_EINVAL, "a signature of minisign is for a single file")
                   : 0;
    model_signing_report_init(&r);
    int rc = model_signing_compare_read(&r, &c->bundle, c->list, e);
    model_signing_report_fini(&r);
    return rc;
}

static int read_signature(struct checking *c, const char *path, struct buf *text, struct err *e)
{
    int rc = file_read(path, text, e);
    if (rc < 0)
        return rc;
    c->is_minisign = minisign_is(buf_str(text), text->len);
    rc = c->is_minisign ? minisign_read(&c->minisign, buf_str(text), text->len, e)
         : cosign_is(buf_str(text), text->len)
             ? cosign_read(&c->bundle, buf_str(text), text->len, e)
             : oms_bundle_read(&c->bundle, buf_str(text), text->len, e);
    return rc < 0 ? err_wrap(e, "%.200s", path) : 0;
}

static int unsigned_model(const struct checking *c, const char *why, struct err *e)
{
    const char *name = c->m->n_names ? c->m->names[0] : c->m->path;
    if (!c->p->require || (c->p->included && c->m->included))
        return 0;
    return err_set(e, SHOAL_EINVAL,
                   "%.64s is not signed by anybody in trust.signers (%.200s), and trust.require "
                   "is signed; sign it with 'shoal model sign'",
                   name, why);
}

static int check_found(struct checking *c, const char *path, struct err *e)
{
    struct err why = {0};
    struct buf text;
    buf_init(&text, OMS_MAX_BYTES);
    int rc = read_signature(c, path, &text, &why);
    if (rc == 0)
        rc = find_signer(c, &why, e);
    else if (rc != SHOAL_ENOMEM)
        rc = 1; /* as if there were none */
    if (rc == 1)
        rc = unsigned_model(c, why.msg[0] ? why.msg : "no signer is configured", e);
    else if (rc == 0 && (rc = compare(c, &why)) < 0)
        rc = err_set(e, SHOAL_EINVAL, "%.64s: %.240s", c->m->n_names ? c->m->names[0] : c->m->path,
                     why.msg);
    buf_fini(&text);
    return rc;
}

int trust_policy_check(const struct trust_policy *p, const struct trust_policy_model *m,
                       const _Atomic bool *stop, struct signed_by *by, struct buf *found,
                       struct err *e)
{
    char path[PATH_MAX], hex[2 * SHA256_BYTES + 1];
    struct checking *c = mem_zalloc(sizeof(*c));
    struct identity id;
    *by = (struct signed_by){.method = SIGNER_NONE};
    if (!c)
        return err_set(e, SHOAL_ENOMEM, "a trust policy");
    c->p = p;
    c->m = m;
    oms_bundle_init(&c->bundle);
    int rc = identity_list(&c->list, m->path, e);
    if (rc == 0)
        rc = identity_read(&id, c->list, NULL, stop, e);
    if (rc == 0) {
        sha256_hex(hex, id.sum);
        if (is_revoked(p, hex))
            rc = err_set(e, SHOAL_EINVAL,
                         "%.64s is the version %.12s, which trust.revoked names: load another one",
                         m->n_names ? m->names[0] : m->path, hex);
    }
    if (rc == 0) {
        if (m->signature)
            snprintf(path, sizeof(path), "%s", m->signature);
        bool any = m->signature || find_signature(path, sizeof(path), p, m->path, hex);
        rc = any ? check_found(c, path, e) : unsigned_model(c, "it has no signature", e);
        if (any && found)
            buf_puts(found, path);
    }
    if (rc == 0)
        *by = c->by;
    identity_list_free(c->list);
    oms_bundle_fini(&c->bundle);
    mem_free(c);
    return rc;
}
