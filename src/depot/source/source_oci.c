/* source_oci.c - see source_oci.h. */
#include "depot/source/source_oci.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "depot/source/oci_cosign.h"
#include "depot/source/oci_manifest.h"
#include "depot/source/oci_registry.h"

#define MAX_TEXT_BYTES ((size_t)1 << 20)
#define MAX_MODEL_BYTES ((uint64_t)1 << 50)

struct source_oci {
    struct model_source source; /* first */
    const struct model_source_opts *o;
    struct oci_registry *registry;
    struct oci_manifest manifest;
    char name[MODEL_SOURCE_NAME_BYTES];
};

/* ---- the manifest ---- */

/* text: gets the one that lists the model's blobs. */
static int get_manifest(struct source_oci *s, struct buf *text, struct err *e)
{
    const uint64_t most = s->o->max_bytes ? s->o->max_bytes : MAX_MODEL_BYTES;
    const char *id = oci_registry_tag(s->registry);
    char what[160], digest[OCI_MANIFEST_DIGEST_BYTES];
    int rc;
    snprintf(what, sizeof(what), "model '%.100s'", s->name);
    for (int depth = 0;; depth++) {
        buf_clear(text);
        rc = oci_registry_text(s->registry, "manifests", id, OCI_MANIFEST_ACCEPT, what,
                               strncmp(id, "sha256:", 7) == 0 ? id : NULL, text, e);
        if (rc == 0) {
            rc = oci_manifest_read(&s->manifest, buf_str(text), text->len, most, e);
            rc = web_told(oci_registry_web(s->registry), rc, e);
        }
        if (rc < 0 || !s->manifest.index.digest[0])
            break;
        if (depth > 0) {
            rc = err_set(e, SHOAL_EFORMAT, "an index of the registry lists another index");
            break;
        }
        memcpy(digest, s->manifest.index.digest, sizeof(digest));
        id = digest;
    }
    return rc;
}

/* A small blob as text, in the arena; NULL: none. */
static int get_text(struct source_oci *s, enum oci_part part, struct model_described *d,
                    const char **out, struct err *e)
{
    const char *digest = s->manifest.parts[part].digest;
    struct buf b;
    if (!digest[0])
        return 0;
    buf_init(&b, MAX_TEXT_BYTES);
    int rc = oci_registry_text(s->registry, "blobs", digest, NULL, digest, digest, &b, e);
    if (rc == 0 && memchr(buf_str(&b), 0, b.len))
        rc = err_set(e, SHOAL_EFORMAT, "a text of the model has a zero byte");
    if (rc == 0)
        *out = arena_copy(&d->manifest.arena, buf_str(&b), b.len + 1);
    buf_fini(&b);
    return rc;
}

static int describe(struct model_source *source, struct model_described *d, struct err *e)
{
    struct source_oci *s = (struct source_oci *)(void *)source;
    uint8_t sum[SHA256_BYTES] = {0};
    struct buf text;
    buf_init(&text, OCI_MANIFEST_MAX_BYTES);
    int rc = get_manifest(s, &text, e);
    for (uint32_t i = 0; rc == 0 && i < s->manifest.n_files; i++) {
        const struct oci_file *f = &s->manifest.files[i];
        (void)!sha256_read_hex(sum, f->blob.digest + 7); /* the manifest was checked */
        rc = model_manifest_add(&d->manifest, f->name, f->blob.bytes, sum, e);
    }
    if (rc == 0 && !s->manifest.folder) {
        memcpy(d->sha256, sum, SHA256_BYTES);
        rc = model_manifest_finish(&d->manifest, false, "", sum, e);
    } else if (rc == 0) {
        rc = model_manifest_seal(&d->manifest, d->sha256, e);
    }
    if (rc == 0)
        rc = get_text(s, OCI_PART_SYSTEM, d, &d->system, e);
    if (rc == 0)
        rc = get_text(s, OCI_PART_PARAMETERS, d, &d->parameters, e);
    if (rc == 0)
        rc = get_text(s, OCI_PART_LICENSE, d, &d->license, e);
    if (rc == 0)
        rc = get_text(s, OCI_PART_MESSAGES, d, &d->messages, e);
    if (rc == 0 && s->o->trust && !s->o->signature)
        oci_cosign_get(s->registry, &text, &d->manifest);
    buf_fini(&text);
    return rc;
}

/* ---- files ---- */

static int file(struct model_source *source, const struct model_manifest *m, uint32_t i,
                uint64_t offset, const struct byte_sink *to, struct err *e)
{
    struct source_oci *s = (struct source_oci *)(void *)source;
    char digest[OCI_MANIFEST_DIGEST_BYTES] = "sha256:", url[WEB_MAX_URL];
    struct web_reply reply;
    sha256_hex(digest + 7, m->files[i].sum);
    oci_registry_url(s->registry, url, "blobs", digest);
    int rc = oci_registry_fetch(s->registry, url, offset, m->files[i].bytes, to, &reply, e);
    return rc == 0 && reply.status != 200 && reply.status != 206
               ? oci_registry_refused(s->registry, reply.status, digest, e)
               : rc;
}

static void close_oci(struct model_source *source)
{
    struct source_oci *s = (struct source_oci *)(void *)source;
    oci_registry_close(s->registry);
    mem_free(s);
}

int source_oci_open(struct model_source **out, const char *base, const char *name,
                    const struct model_source_opts *o, struct err *e)
{
    static const struct model_source_ops ops = {describe, file, close_oci};
    struct source_oci *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "source of models");
    s->source.ops = &ops;
    s->o = o;
    snprintf(s->name, sizeof(s->name), "%s", name);
    int rc = oci_registry_open(&s->registry, base, name, false, o, e);
    if (rc < 0)
        close_oci(&s->source);
    else
        *out = &s->source;
    return rc;
}
