/* model_push.c - see model_push.h. */
#include "depot/model_push.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file_open.h"
#include "base/mem.h"
#include "depot/store/model_store.h"
#include "depot/source/oci_cosign.h"
#include "depot/source/oci_manifest.h"
#include "depot/source/oci_registry.h"
#include "supply/cosign.h"
#include "supply/sign_key.h"

struct pushing {
    const struct model_source_opts *o;
    struct oci_registry *registry;
    struct oci_manifest *manifest;
    struct model_progress progress;
};

static void on_sent(void *ctx, uint64_t bytes)
{
    struct pushing *p = ctx;
    p->progress.done = bytes;
    if (p->o->progress)
        p->o->progress(p->o->ctx, &p->progress);
}

static int refused(const struct pushing *p, long status, const char *what, struct err *e)
{
    return oci_registry_refused(p->registry, status, what, e);
}

/* Where an upload goes: the location that the registry sent, on the registry itself. */
static int upload_url(const struct pushing *p, const char *location, char out[WEB_MAX_URL],
                      struct err *e)
{
    char any[WEB_MAX_URL], origin[256];
    oci_registry_url(p->registry, any, "blobs", "x");
    web_origin(origin, sizeof(origin), any);
    if (!web_is_url(location)) { /* a path */
        /* credentials of the base go with it */
        const char *host = strstr(any, "://") + 3;
        size_t n = (size_t)(host - any) + strcspn(host, "/");
        snprintf(out, WEB_MAX_URL, "%.*s%s%.1500s", (int)(n < 400 ? n : 400), any,
                 location[0] == '/' ? "" : "/", location);
        return 0;
    }
    if (!web_same_origin(location, any))
        return err_set(e, SHOAL_EFORMAT,
                       "%s wants the upload to go to another host, which is refused",
                       web_host(oci_registry_web(p->registry)));
    const char *host = strstr(any, "://") + 3, *path = strstr(location, "://") + 3;
    size_t n = (size_t)(host - any) + strcspn(host, "/");
    path += strcspn(path, "/");
    snprintf(out, WEB_MAX_URL, "%.*s%.1500s", (int)(n < 400 ? n : 400), any, path);
    return 0;
}

/* Sends a blob that the registry does not have yet: bytes of memory, or of a file (fd > 0). */
static int send_blob(struct pushing *p, const struct oci_blob *blob, const char *body, int fd,
                     struct err *e)
{
    char url[WEB_MAX_URL], whole[WEB_MAX_URL + 128];
    struct web_request a = {.method = "HEAD"};
    struct web_reply reply;
    oci_registry_url(p->registry, url, "blobs", blob->digest);
    int rc = oci_registry_ask(p->registry, url, &a, &reply, e);
    if (rc < 0)
        return rc;
    if (reply.status == 200) {
        if (fd > 0)
            on_sent(p, blob->bytes);
        return 0;
    }
    a.method = "POST";
    oci_registry_url(p->registry, url, "blobs", "uploads/");
    rc = oci_registry_ask(p->registry, url, &a, &reply, e);
    if (rc == 0 && (reply.status != 202 || !reply.location[0]))
        rc = refused(p, reply.status, "an upload", e);
    if (rc == 0)
        rc = upload_url(p, reply.location, url, e);
    if (rc < 0)
        return rc;
    snprintf(whole, sizeof(whole), "%s%cdigest=%s", url, strchr(url, '?') ? '&' : '?',
             blob->digest);
    a = (struct web_request){.method = "PUT",
                             .type = "application/octet-stream",
                             .body = body,
                             .fd = fd,
                             .body_bytes = blob->bytes,
                             .sent = fd > 0 ? on_sent : NULL,
                             .ctx = p};
    rc = oci_registry_ask(p->registry, whole, &a, &reply, e);
    return rc == 0 && reply.status != 201 ? refused(p, reply.status, "an upload", e) : rc;
}

static int send_text(struct pushing *p, enum oci_part part, const char *text, struct err *e)
{
    struct oci_blob *blob = &p->manifest->parts[part];
    if (!text || !text[0])
        return 0;
    int rc = oci_manifest_text(blob, text, e);
    return rc < 0 ? rc : send_blob(p, blob, text, 0, e);
}

static int send_file(struct pushing *p, const struct identity_file *f, bool folder, struct err *e)
{
    struct oci_file *to = &p->manifest->files[p->manifest->n_files++];
    char hex[2 * SHA256_BYTES + 1];
    int fd = file_open_regular(f->path, NULL);
    if (fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", f->path, file_open_reason(errno));
    sha256_hex(hex, f->sum);
    snprintf(to->name, sizeof(to->name), "%s", folder ? f->name : "model.gguf");
    snprintf(to->blob.digest, sizeof(to->blob.digest), "sha256:%s", hex);
    to->blob.bytes = f->bytes;
    p->progress = (struct model_progress){
        .what = to->name, .digest = to->blob.digest, .total = to->blob.bytes};
    int rc = send_blob(p, &to->blob, NULL, fd, e);
    close(fd);
    return rc;
}

static int send_files(struct pushing *p, struct model_pushed *out, const char *path, struct err *e)
{
    struct identity_list *l = NULL;
    struct identity_file f;
    struct identity id;
    int rc = identity_list(&l, path, e);
    if (rc == 0)
        rc = identity_read(&id, l, p->o->store ? model_store_memo_dir(p->o->store) : NULL,
                           p->o->stop, e);
    if (rc == 0 && identity_list_n(l) > OCI_MANIFEST_MAX_FILES)
        rc = err_set(e, SHOAL_ELIMIT, "the model has more than %u files", OCI_MANIFEST_MAX_FILES);
    if (rc == 0)
        memcpy(out->sha256, id.sum, SHA256_BYTES);
    p->manifest->folder = rc == 0 && identity_list_is_folder(l);
    for (uint32_t i = 0; rc == 0 && i < identity_list_n(l); i++) {
        identity_list_file(l, i, &f);
        if (strncmp(f.name, "../", 3) == 0)
            rc = err_set(e, SHOAL_EUNSUPPORTED,
                         "a model with files above its folder cannot be pushed: %s", f.name);
        else
            rc = send_file(p, &f, p->manifest->folder, e);
        out->bytes += f.bytes;
    }
    identity_list_free(l);
    return rc;
}

static int put_manifest(struct pushing *p, const char *tag, const char *type, const struct buf *b,
                        struct err *e)
{
    char url[WEB_MAX_URL];
    struct web_reply reply;
    const struct web_request a = {
        .method = "PUT", .type = type, .body = buf_str(b), .body_bytes = b->len};
    oci_registry_url(p->registry, url, "manifests", tag);
    int rc = b->rc < 0 ? err_set(e, b->rc, "out of memory")
                       : oci_registry_ask(p->registry, url, &a, &reply, e);
    return rc == 0 && reply.status != 201 && reply.status != 200
               ? refused(p, reply.status, "a manifest", e)
               : rc;
}

/* "HOST/NAME" without tag and credentials. */
static void reference_of(const struct model_push_opts *a, char *out, size_t cap)
{
    const char *host = strstr(a->base, "://"), *at;
    host = host ? host + 3 : a->base;
    at = strrchr(host, '@');
    const char *slash = strrchr(a->name, '/'), *colon = strchr(slash ? slash : a->name, ':');
    snprintf(out, cap, "%s/%.*s", at ? at + 1 : host,
             (int)(colon ? (size_t)(colon - a->name) : strlen(a->name)), a->name);
}

/* The signature of what was pushed: its payload, an empty configuration, and a manifest of both. */
static int send_signature(struct pushing *p, const struct model_push_opts *a, EVP_PKEY *key,
                          const struct buf *manifest, struct err *e)
{
    struct oci_blob of, payload = {.bytes = 0}, config;
    struct buf text, sig, out;
    char tag[OCI_COSIGN_TAG_BYTES], reference[512];
    buf_init(&text, COSIGN_MAX_PAYLOAD);
    buf_init(&sig, 4096);
    buf_init(&out, OCI_MANIFEST_MAX_BYTES);
    reference_of(a, reference, sizeof(reference));
    int rc = oci_manifest_text(&of, buf_str(manifest), e);
    if (rc == 0)
        rc = cosign_payload(&text, reference, of.digest, e);
    if (rc == 0)
        rc = sign_key_sign_plain(&sig, key, buf_str(&text), text.len, e);
    if (rc == 0)
        rc = oci_manifest_text(&payload, buf_str(&text), e);
    if (rc == 0)
        rc = send_blob(p, &payload, buf_str(&text), 0, e);
    if (rc == 0)
        rc = oci_manifest_text(&config, "{}", e);
    if (rc == 0)
        rc = send_blob(p, &config, "{}", 0, e);
    if (rc == 0) {
        oci_cosign_manifest(&out, &config, &payload, &sig);
        oci_cosign_tag(tag, of.digest);
        rc = put_manifest(p, tag, OCI_MANIFEST_OCI_TYPE, &out, e);
    }
    buf_fini(&text);
    buf_fini(&sig);
    buf_fini(&out);
    return rc;
}

/* The signature comes first: nobody sees the model without it. */
static int send_manifest(struct pushing *p, const struct model_push_opts *a, EVP_PKEY *key,
                         struct err *e)
{
    struct buf b;
    buf_init(&b, OCI_MANIFEST_MAX_BYTES);
    oci_manifest_write(p->manifest, &b);
    int rc = key ? send_signature(p, a, key, &b, e) : 0;
    if (rc == 0)
        rc = put_manifest(p, oci_registry_tag(p->registry), oci_manifest_type(p->manifest), &b, e);
    buf_fini(&b);
    return rc;
}

int model_push(struct model_pushed *out, const struct model_push_opts *a,
               const struct model_source_opts *o, struct err *e)
{
    struct pushing p = {.o = o, .manifest = mem_zalloc(sizeof(*p.manifest))};
    char config[OCI_MANIFEST_CONFIG_BYTES];
    EVP_PKEY *key = NULL;
    *out = (struct model_pushed){.bytes = 0};
    int rc = a->key ? sign_key_private(&key, a->key, e) : 0;
    if (rc == 0)
        rc = p.manifest ? oci_registry_open(&p.registry, a->base, a->name, true, o, e)
                        : err_set(e, SHOAL_ENOMEM, "manifest");
    if (rc == 0)
        rc = send_files(&p, out, a->path, e);
    if (rc == 0)
        rc = send_text(&p, OCI_PART_SYSTEM, a->system, e);
    if (rc == 0)
        rc = send_text(&p, OCI_PART_PARAMETERS, a->parameters, e);
    if (rc == 0)
        rc = send_text(&p, OCI_PART_LICENSE, a->license, e);
    if (rc == 0)
        rc = send_text(&p, OCI_PART_MESSAGES, a->messages, e);
    if (rc == 0) {
        oci_manifest_config(p.manifest, config);
        rc = send_text(&p, OCI_PART_CONFIG, config, e);
    }
    if (rc == 0)
        rc = send_manifest(&p, a, key, e);
    EVP_PKEY_free(key);
    oci_registry_close(p.registry);
    mem_free(p.manifest);
    return rc;
}
