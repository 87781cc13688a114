/* ca.c - see ca.h. */
#include "cluster/trust/ca.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/mem.h"

#define MAX_HOSTS 32u
#define MAX_ISSUED 100000u
#define MAX_CA_NAME 40u /* with the unique suffix, a common name has at most 64 */

struct ca {
    char folder[CERT_PATH_BYTES];
    int lock;
    struct cert_signer now, before; /* before: of an unfinished rotation, or NULLs */
    X509 *cross;
    X509_CRL *crl, *crl_before;
};

/* ---- files ---- */

static int path_in(char *out, size_t cap, const char *folder, const char *name, struct err *e)
{
    int n = snprintf(out, cap, "%s/%s", folder, name);
    return n > 0 && (size_t)n < cap
               ? 0
               : err_set(e, SHOAL_EINVAL, "the path %.100s... is too long", folder);
}

/* Replaces the file atomically. */
static int write_file(const char *folder, const char *name, mode_t mode, BIO *from, struct err *e)
{
    char path[CERT_PATH_BYTES], next[CERT_PATH_BYTES + 8];
    char *p = NULL;
    long n = BIO_get_mem_data(from, &p);
    int rc = path_in(path, sizeof(path), folder, name, e);
    if (rc < 0)
        return rc;
    snprintf(next, sizeof(next), "%s.new", path);
    (void)unlink(next);
    int fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    bool ok = fd >= 0 && fchmod(fd, mode) == 0;
    for (long at = 0; ok && at < n;) {
        ssize_t k = write(fd, p + at, (size_t)(n - at));
        ok = k > 0 || (k < 0 && errno == EINTR);
        at += k > 0 ? k : 0;
    }
    ok = ok && fsync(fd) == 0;
    int why = errno;
    if (fd >= 0 && close(fd) < 0 && ok) {
        ok = false;
        why = errno;
    }
    if (ok && rename(next, path) < 0) {
        ok = false;
        why = errno;
    }
    if (ok)
        return 0;
    if (fd >= 0)
        (void)unlink(next);
    return err_set(e, SHOAL_EIO, "cannot write %s: %s", path, strerror(why));
}

static int make_folder(const char *folder, const char *name, struct err *e)
{
    char path[CERT_PATH_BYTES];
    int rc = name ? path_in(path, sizeof(path), folder, name, e) : 0;
    if (rc < 0)
        return rc;
    if (!name)
        snprintf(path, sizeof(path), "%s", folder);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_set(e, SHOAL_EIO, "cannot create the folder %s: %s", path, strerror(errno));
    return 0;
}

static int out_of_memory(struct err *e)
{
    ERR_clear_error();
    return err_set(e, SHOAL_ENOMEM, "out of memory for certificates");
}

static int write_certs(const char *folder, const char *name, X509 *first, X509 *second,
                       struct err *e)
{
    BIO *b = BIO_new(BIO_s_mem());
    int rc =
        b && PEM_write_bio_X509(b, first) == 1 && (!second || PEM_write_bio_X509(b, second) == 1)
            ? write_file(folder, name, 0644, b, e)
            : out_of_memory(e);
    BIO_free(b);
    return rc;
}

static int write_key(const char *folder, const char *name, EVP_PKEY *key, struct err *e)
{
    BIO *b = BIO_new(BIO_s_secmem());
    int rc = b && PEM_write_bio_PrivateKey(b, key, NULL, NULL, 0, NULL, NULL) == 1
                 ? write_file(folder, name, 0600, b, e)
                 : out_of_memory(e);
    BIO_free(b);
    return rc;
}

static int write_crls(const struct ca *ca, const char *folder, const char *name, struct err *e)
{
    BIO *b = BIO_new(BIO_s_mem());
    int rc = b && PEM_write_bio_X509_CRL(b, ca->crl) == 1 &&
                     (!ca->crl_before || PEM_write_bio_X509_CRL(b, ca->crl_before) == 1)
                 ? write_file(folder, name, 0644, b, e)
                 : out_of_memory(e);
    BIO_free(b);
    return rc;
}

static int read_signer(struct cert_signer *out, const char *folder, const char *sub, struct err *e)
{
    char cert[CERT_PATH_BYTES], key[CERT_PATH_BYTES], name[64];
    snprintf(name, sizeof(name), "%sca.crt", sub);
    int rc = path_in(cert, sizeof(cert), folder, name, e);
    snprintf(name, sizeof(name), "%sca.key", sub);
    if (rc == 0)
        rc = path_in(key, sizeof(key), folder, name, e);
    if (rc == 0)
        rc = cert_load(&out->cert, cert, e);
    if (rc < 0)
        return rc;
    BIO *in = BIO_new_file(key, "r");
    int why = errno;
    out->key = in ? PEM_read_bio_PrivateKey(in, NULL, NULL, NULL) : NULL;
    if (!in)
        rc = err_set(e, SHOAL_EIO, "cannot open %s: %s", key, strerror(why));
    else if (!out->key || X509_check_private_key(out->cert, out->key) != 1)
        rc = err_set(e, SHOAL_EFORMAT, "%s is not the private key of %s", key, cert);
    BIO_free(in);
    ERR_clear_error();
    return rc;
}

static bool is_by(X509_CRL *crl, const struct cert_signer *s)
{
    return s->cert &&
           X509_NAME_cmp(X509_CRL_get_issuer(crl), X509_get_subject_name(s->cert)) == 0 &&
           X509_CRL_verify(crl, s->key) == 1;
}

/* A CA without its revocation list must not be used: writing a new one would forget the
 * revocations.
 */
static int read_crls(struct ca *ca, struct err *e)
{
    char path[CERT_PATH_BYTES];
    X509_CRL *crl;
    int rc = path_in(path, sizeof(path), ca->folder, "crl.pem", e);
    if (rc < 0)
        return rc;
    BIO *in = BIO_new_file(path, "r");
    while (in && (crl = PEM_read_bio_X509_CRL(in, NULL, NULL, NULL))) {
        X509_CRL **to = is_by(crl, &ca->now)      ? &ca->crl
                        : is_by(crl, &ca->before) ? &ca->crl_before
                                                  : NULL;
        X509_CRL_free(to ? *to : NULL);
        if (to)
            *to = crl;
        else
            X509_CRL_free(crl);
    }
    BIO_free(in);
    ERR_clear_error();
    if (!ca->crl || (ca->before.cert && !ca->crl_before))
        return err_set(e, SHOAL_EFORMAT,
                       "%s is missing or not signed by this CA: restore it from a copy of a member",
                       path);
    return 0;
}

static int take_lock(int *out, const char *folder, struct err *e)
{
    *out = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*out < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s; 'shoal ca init' creates a CA", folder,
                       strerror(errno));
    if (flock(*out, LOCK_EX | LOCK_NB) == 0)
        return 0;
    close(*out);
    *out = -1;
    return err_set(e, SHOAL_EBUSY, "another program works on %s: try again when it is done",
                   folder);
}

/* ---- the CA ---- */

/* Each CA has a name of its own: chains and revocation lists are matched by name. */
static int make_signer(struct cert_signer *out, const char *name, unsigned days, struct err *e)
{
    char common[128];
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    snprintf(common, sizeof(common), "%.40s %lx%03lx", name, (unsigned long)ts.tv_sec,
             (unsigned long)ts.tv_nsec / 1000000u);
    if (name[0] == '\0' || strlen(name) > MAX_CA_NAME)
        return err_set(e, SHOAL_EINVAL, "the name of a CA has 1 to %u bytes", MAX_CA_NAME);
    if (days < 1 || days > CA_MAX_DAYS)
        return err_set(e, SHOAL_EINVAL, "a CA lasts 1 to %u days", CA_MAX_DAYS);
    int rc = cert_make_key(&out->key, e);
    if (rc == 0)
        rc = cert_make_ca(&out->cert, out->key, common, days, NULL, e);
    return rc;
}

static void free_signer(struct cert_signer *s)
{
    X509_free(s->cert);
    EVP_PKEY_free(s->key);
    *s = (struct cert_signer){0};
}

void ca_close(struct ca *ca)
{
    if (!ca)
        return;
    free_signer(&ca->now);
    free_signer(&ca->before);
    X509_free(ca->cross);
    X509_CRL_free(ca->crl);
    X509_CRL_free(ca->crl_before);
    if (ca->lock >= 0)
        close(ca->lock);
    mem_free(ca);
}

static bool exists(const char *folder, const char *name)
{
    char path[CERT_PATH_BYTES];
    return path_in(path, sizeof(path), folder, name, NULL) == 0 && access(path, F_OK) == 0;
}

static int ca_alloc(struct ca **out, const char *folder, struct err *e)
{
    struct ca *ca = mem_zalloc(sizeof(*ca));
    *out = NULL;
    if (!ca)
        return out_of_memory(e);
    ca->lock = -1;
    int rc = strlen(folder) + 100 < sizeof(ca->folder)
                 ? take_lock(&ca->lock, folder, e)
                 : err_set(e, SHOAL_EINVAL, "the path %.100s... is too long", folder);
    if (rc < 0) {
        ca_close(ca);
        return rc;
    }
    memcpy(ca->folder, folder, strlen(folder) + 1);
    *out = ca;
    return 0;
}

/* The certificates that members trust. */
static int write_trust(const struct ca *ca, struct err *e)
{
    int rc = write_certs(ca->folder, "bundle.pem", ca->now.cert, ca->before.cert, e);
    return rc < 0 ? rc : write_crls(ca, ca->folder, "crl.pem", e);
}

static int remove_file(const char *folder, const char *name, struct err *e)
{
    char path[CERT_PATH_BYTES];
    int rc = path_in(path, sizeof(path), folder, name, e);
    if (rc == 0 && unlink(path) < 0 && errno != ENOENT)
        rc = err_set(e, SHOAL_EIO, "cannot remove %s: %s", path, strerror(errno));
    return rc;
}

/* Removes the CA before, its key first. */
static int forget_rotation(const char *folder, struct err *e)
{
    static const char *const names[] = {"previous/ca.key", "previous/ca.crt", "cross.pem"};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(names) / sizeof(names[0]); i++)
        rc = remove_file(folder, names[i], e);
    return rc;
}

int ca_init(const char *folder, const char *name, unsigned days, bool force, struct err *e)
{
    struct ca *ca;
    int rc = make_folder(folder, NULL, e);
    if (rc == 0)
        rc = ca_alloc(&ca, folder, e);
    if (rc < 0)
        return rc;
    if (exists(folder, "ca.key") && !force)
        rc = err_set(e, SHOAL_EINVAL,
                     "%s already holds a CA: use another folder, or --force to replace it and "
                     "invalidate all its certificates",
                     folder);
    if (rc == 0)
        rc = make_signer(&ca->now, name, days, e);
    if (rc == 0)
        rc = cert_make_crl(&ca->crl, &ca->now, NULL, NULL, 0, e);
    if (rc == 0)
        rc = make_folder(folder, "issued", e);
    if (rc == 0)
        rc = make_folder(folder, "members", e);
    if (rc == 0 && force)
        rc = forget_rotation(folder, e);
    if (rc == 0)
        rc = write_key(folder, "ca.key", ca->now.key, e);
    if (rc == 0)
        rc = write_certs(folder, "ca.crt", ca->now.cert, NULL, e);
    if (rc == 0)
        rc = write_trust(ca, e);
    ca_close(ca);
    return rc;
}

int ca_open(struct ca **out, const char *folder, struct err *e)
{
    struct ca *ca;
    char path[CERT_PATH_BYTES];
    *out = NULL;
    int rc = ca_alloc(&ca, folder, e);
    if (rc < 0)
        return rc;
    if (!exists(folder, "ca.key"))
        rc = err_set(e, SHOAL_ENOTFOUND, "%s holds no CA: 'shoal ca init' creates one", folder);
    if (rc == 0)
        rc = read_signer(&ca->now, folder, "", e);
    if (rc == 0 && exists(folder, "previous/ca.key")) {
        rc = read_signer(&ca->before, folder, "previous/", e);
        if (rc == 0)
            rc = path_in(path, sizeof(path), folder, "cross.pem", e);
        if (rc == 0)
            rc = cert_load(&ca->cross, path, e);
    }
    if (rc == 0)
        rc = read_crls(ca, e);
    if (rc < 0) {
        ca_close(ca);
        return rc;
    }
    *out = ca;
    return 0;
}

void ca_current(const struct ca *ca, struct cert_info *out)
{
    cert_describe(out, ca->now.cert);
}

bool ca_previous(const struct ca *ca, struct cert_info *out)
{
    if (ca->before.cert)
        cert_describe(out, ca->before.cert);
    return ca->before.cert != NULL;
}

int ca_member_folder(const struct ca *ca, const char *name, char *out, size_t cap, struct err *e)
{
    char sub[CERT_NAME_BYTES + 16];
    if (!cert_is_name(name))
        return err_set(
            e, SHOAL_EINVAL,
            "'%.80s' is not a valid name for a member: use at most 63 lower-case letters, digits "
            "and hyphens",
            name);
    snprintf(sub, sizeof(sub), "members/%s", name);
    return path_in(out, cap, ca->folder, sub, e);
}

/* ---- issue ---- */

/* Completes the request from the certificate it replaces. */
static int carry_over(struct cert_request *r, const char *folder, bool force, struct cert_info *old,
                      const char **hosts, struct err *e)
{
    char path[CERT_PATH_BYTES], date[40];
    if (!exists(folder, "cert.pem"))
        return 0;
    int rc = path_in(path, sizeof(path), folder, "cert.pem", e);
    if (rc == 0)
        rc = cert_read(old, path, e);
    if (rc < 0)
        return rc;
    cert_date(date, sizeof(date), old->not_after_s);
    if (!force)
        return err_set(e, SHOAL_EINVAL,
                       "%s has a certificate until %s: use --force to replace it and its key",
                       r->name, date);
    if (!r->roles)
        r->roles = old->id.roles;
    if (r->n_hosts == 0) {
        char *rest = NULL;
        for (char *p = strtok_r(old->hosts, " ", &rest); p && r->n_hosts < MAX_HOSTS;
             p = strtok_r(NULL, " ", &rest))
            hosts[r->n_hosts++] = p;
        r->hosts = hosts;
    }
    return 0;
}

static int write_member(const struct ca *ca, const char *folder, X509 *cert, EVP_PKEY *key,
                        struct err *e)
{
    int rc = write_certs(folder, "ca.pem", ca->now.cert, ca->before.cert, e);
    if (rc == 0)
        rc = write_crls(ca, folder, "crl.pem", e);
    if (rc == 0 && key)
        rc = write_key(folder, "key.pem", key, e);
    if (rc == 0 && cert)
        rc = write_certs(folder, "cert.pem", cert, ca->cross, e);
    return rc;
}

static int check_request(const struct ca *ca, const struct cert_request *r, struct err *e)
{
    struct cert_info own;
    char date[40];
    ca_current(ca, &own);
    cert_date(date, sizeof(date), own.not_after_s);
    if (own.not_after_s <= (int64_t)time(NULL))
        return err_set(e, SHOAL_EINVAL, "the CA expired on %s: run shoal ca rotate", date);
    if (r->days < 1 || r->days > CA_MAX_DAYS)
        return err_set(e, SHOAL_EINVAL, "a certificate lasts 1 to %u days", CA_MAX_DAYS);
    if (r->n_hosts > MAX_HOSTS)
        return err_set(e, SHOAL_EINVAL, "a certificate has at most %u hosts", MAX_HOSTS);
    if (!r->roles)
        return err_set(e, SHOAL_EINVAL,
                       "%s needs a role: gateway, node, controller, admin or broker", r->name);
    return 0;
}

int ca_issue(struct ca *ca, const struct cert_request *request, bool force, struct cert_info *out,
             struct err *e)
{
    struct cert_request r = *request;
    struct cert_info old;
    const char *hosts[MAX_HOSTS];
    char folder[CERT_PATH_BYTES], file[80];
    EVP_PKEY *key = NULL;
    X509 *cert = NULL;
    int rc = ca_member_folder(ca, r.name, folder, sizeof(folder), e);
    if (rc == 0)
        rc = carry_over(&r, folder, force, &old, hosts, e);
    if (rc == 0)
        rc = check_request(ca, &r, e);
    if (rc == 0 && !r.key)
        rc = cert_make_key(&key, e);
    if (rc == 0)
        rc = cert_make_member(&cert, r.key ? r.key : key, &r, &ca->now, e);
    if (rc == 0)
        rc = make_folder(folder, NULL, e);
    if (rc == 0) { /* first where revoke finds it, then where it can be used */
        cert_describe(out, cert);
        snprintf(file, sizeof(file), "issued/%s.pem", out->serial);
        rc = write_certs(ca->folder, file, cert, NULL, e);
    }
    if (rc == 0)
        rc = write_member(ca, folder, cert, key, e);
    X509_free(cert);
    EVP_PKEY_free(key);
    return rc;
}

int ca_make_door(struct ca *ca, const char *name, X509 **cert, X509 **own, EVP_PKEY **key,
                 struct err *e)
{
    const struct cert_request r = {.name = name, .days = 1};
    *cert = *own = NULL;
    *key = NULL;
    int rc = cert_make_key(key, e);
    if (rc == 0)
        rc = cert_make_member(cert, *key, &r, &ca->now, e);
    if (rc == 0) {
        *own = ca->now.cert;
        X509_up_ref(*own);
    }
    return rc;
}

/* ---- list and revoke ---- */

static bool is_revoked(X509_CRL *crl, X509 *cert)
{
    X509_REVOKED *r = NULL;
    return crl && X509_CRL_get0_by_cert(crl, &r, cert) == 1;
}

static bool is_signed(X509 *cert, const struct cert_signer *s)
{
    return s->cert && X509_verify(cert, s->key) == 1;
}

static void judge(const struct ca *ca, X509 *cert, struct ca_entry *out)
{
    *out = (struct ca_entry){.state = CA_FOREIGN};
    cert_describe(&out->cert, cert);
    bool now = is_signed(cert, &ca->now);
    out->previous = !now && is_signed(cert, &ca->before);
    ERR_clear_error();
    if (!now && !out->previous)
        return;
    out->state = is_revoked(now ? ca->crl : ca->crl_before, cert) ? CA_REVOKED
                 : out->cert.not_after_s <= (int64_t)time(NULL) ? CA_EXPIRED
                                                                : CA_VALID;
}

int ca_judge(struct ca *ca, const char *path, struct ca_entry *out, struct err *e)
{
    X509 *cert;
    int rc = cert_load(&cert, path, e);
    if (rc == 0)
        judge(ca, cert, out);
    X509_free(cert);
    return rc;
}

/* Calls fn for every certificate in issued/. */
static int each_issued(const struct ca *ca, int (*fn)(void *ctx, X509 *cert, struct err *e),
                       void *ctx, struct err *e)
{
    char folder[CERT_PATH_BYTES], path[CERT_PATH_BYTES];
    struct dirent *d;
    size_t n = 0;
    int rc = path_in(folder, sizeof(folder), ca->folder, "issued", e);
    DIR *dir = rc == 0 ? opendir(folder) : NULL;
    if (rc == 0 && !dir)
        rc = err_set(e, SHOAL_EIO, "cannot open %s: %s", folder, strerror(errno));
    while (rc == 0 && (d = readdir(dir))) {
        X509 *cert;
        size_t k = strlen(d->d_name);
        if (k < 5 || strcmp(d->d_name + k - 4, ".pem") != 0)
            continue;
        if (++n > MAX_ISSUED)
            rc = err_set(e, SHOAL_ELIMIT, "%s has more than %u files: remove expired ones", folder,
                         MAX_ISSUED);
        if (rc == 0)
            rc = path_in(path, sizeof(path), folder, d->d_name, e);
        if (rc == 0)
            rc = cert_load(&cert, path, e);
        if (rc == 0) {
            rc = fn(ctx, cert, e);
            X509_free(cert);
        }
    }
    if (dir)
        closedir(dir);
    return rc;
}

struct listing {
    const struct ca *ca;
    struct ca_entry *list;
    size_t n, room;
};

static int add_to_list(void *ctx, X509 *cert, struct err *e)
{
    struct listing *l = ctx;
    if (l->n == l->room) {
        size_t room = l->room ? l->room * 2 : 16;
        struct ca_entry *more = mem_realloc(l->list, room * sizeof(*more));
        if (!more)
            return out_of_memory(e);
        l->list = more;
        l->room = room;
    }
    judge(l->ca, cert, &l->list[l->n++]);
    return 0;
}

static int compare(const void *pa, const void *pb)
{
    const struct ca_entry *a = pa, *b = pb;
    int by_name = strcmp(a->cert.id.name, b->cert.id.name);
    return by_name                                       ? by_name
           : a->cert.not_before_s < b->cert.not_before_s ? -1
           : a->cert.not_before_s > b->cert.not_before_s ? 1
                                                         : strcmp(a->cert.serial, b->cert.serial);
}

/* Whether members/NAME/cert.pem is this one. */
static bool is_in_use(const struct ca *ca, const struct ca_entry *entry)
{
    char path[CERT_PATH_BYTES], sub[CERT_NAME_BYTES + 32];
    struct cert_info now;
    if (!cert_is_name(entry->cert.id.name))
        return false;
    snprintf(sub, sizeof(sub), "members/%s/cert.pem", entry->cert.id.name);
    return path_in(path, sizeof(path), ca->folder, sub, NULL) == 0 &&
           cert_read(&now, path, NULL) == 0 && strcmp(now.serial, entry->cert.serial) == 0;
}

int ca_list(struct ca *ca, struct ca_entry **out, size_t *n, struct err *e)
{
    struct listing l = {.ca = ca};
    *out = NULL;
    *n = 0;
    int rc = each_issued(ca, add_to_list, &l, e);
    if (rc < 0) {
        mem_free(l.list);
        return rc;
    }
    if (l.n > 0)
        qsort(l.list, l.n, sizeof(*l.list), compare);
    for (size_t i = 0; i < l.n; i++)
        l.list[i].in_use = is_in_use(ca, &l.list[i]);
    *out = l.list;
    *n = l.n;
    return 0;
}

/* Gives every member's folder the present bundle and lists. */
static int refresh_members(const struct ca *ca, struct err *e)
{
    char folder[CERT_PATH_BYTES], path[CERT_PATH_BYTES];
    struct dirent *d;
    int rc = path_in(folder, sizeof(folder), ca->folder, "members", e);
    DIR *dir = rc == 0 ? opendir(folder) : NULL;
    if (rc == 0 && !dir)
        rc = err_set(e, SHOAL_EIO, "cannot open %s: %s", folder, strerror(errno));
    while (rc == 0 && (d = readdir(dir))) {
        if (!cert_is_name(d->d_name))
            continue;
        rc = path_in(path, sizeof(path), folder, d->d_name, e);
        if (rc == 0)
            rc = write_member(ca, path, NULL, NULL, e);
    }
    if (dir)
        closedir(dir);
    return rc;
}

struct revoking {
    struct ca *ca;
    const char *name, *serial;
    size_t n;
};

static int revoke_one(void *ctx, X509 *cert, struct err *e)
{
    struct revoking *r = ctx;
    struct ca_entry entry;
    judge(r->ca, cert, &entry);
    if (strcmp(entry.cert.id.name, r->name) != 0 || entry.state != CA_VALID ||
        (r->serial && strcasecmp(entry.cert.serial, r->serial) != 0))
        return 0;
    const ASN1_INTEGER *serial = X509_get0_serialNumber(cert);
    X509_CRL **crl = entry.previous ? &r->ca->crl_before : &r->ca->crl, *next;
    int rc =
        cert_make_crl(&next, entry.previous ? &r->ca->before : &r->ca->now, *crl, &serial, 1, e);
    if (rc < 0)
        return rc;
    X509_CRL_free(*crl);
    *crl = next;
    r->n++;
    return 0;
}

int ca_revoke(struct ca *ca, const char *name, const char *serial, size_t *n, struct err *e)
{
    struct revoking r = {.ca = ca, .name = name, .serial = serial};
    *n = 0;
    int rc = each_issued(ca, revoke_one, &r, e);
    if (rc == 0 && r.n == 0)
        rc = err_set(e, SHOAL_ENOTFOUND,
                     "%s has no valid certificate%s%s: 'shoal ca list' shows all", name,
                     serial ? " with serial number " : "", serial ? serial : "");
    if (rc == 0)
        rc = write_crls(ca, ca->folder, "crl.pem", e);
    if (rc == 0)
        rc = refresh_members(ca, e);
    *n = r.n;
    return rc;
}

/* ---- rotate ---- */

static int move(const char *folder, const char *from, const char *to, struct err *e)
{
    char a[CERT_PATH_BYTES], b[CERT_PATH_BYTES];
    int rc = path_in(a, sizeof(a), folder, from, e);
    if (rc == 0)
        rc = path_in(b, sizeof(b), folder, to, e);
    if (rc == 0 && rename(a, b) < 0)
        rc = err_set(e, SHOAL_EIO, "cannot rename %s to %s: %s", a, b, strerror(errno));
    return rc;
}

int ca_rotate(struct ca *ca, const char *name, unsigned days, struct err *e)
{
    struct cert_signer next = {0};
    X509 *cross = NULL;
    X509_CRL *crl = NULL;
    struct cert_info info;
    if (ca->before.cert)
        return err_set(e, SHOAL_EINVAL,
                       "a rotation is in progress: issue new certificates and end it with shoal ca "
                       "rotate --finish");
    int rc = make_signer(&next, name, days, e);
    if (rc == 0) {
        cert_describe(&info, next.cert);
        rc = cert_make_ca(&cross, next.key, info.id.name, days, &ca->now, e);
    }
    if (rc == 0)
        rc = cert_make_crl(&crl, &next, NULL, NULL, 0, e);
    if (rc == 0)
        rc = make_folder(ca->folder, "previous", e);
    if (rc == 0)
        rc = write_key(ca->folder, "previous/next.key", next.key, e);
    if (rc == 0)
        rc = write_certs(ca->folder, "previous/next.crt", next.cert, NULL, e);
    if (rc == 0)
        rc = write_certs(ca->folder, "cross.pem", cross, NULL, e);
    if (rc == 0)
        rc = move(ca->folder, "ca.crt", "previous/ca.crt", e);
    if (rc == 0)
        rc = move(ca->folder, "ca.key", "previous/ca.key", e);
    if (rc == 0)
        rc = move(ca->folder, "previous/next.crt", "ca.crt", e);
    if (rc == 0)
        rc = move(ca->folder, "previous/next.key", "ca.key", e);
    if (rc < 0) {
        free_signer(&next);
        X509_free(cross);
        X509_CRL_free(crl);
        return rc;
    }
    ca->before = ca->now;
    ca->now = next;
    ca->cross = cross;
    ca->crl_before = ca->crl;
    ca->crl = crl;
    rc = write_trust(ca, e);
    return rc < 0 ? rc : refresh_members(ca, e);
}

/* The names of members whose certificates the old CA signed, for an error. */
static int find_left(struct ca *ca, char *names, size_t cap, struct err *e)
{
    struct ca_entry *list;
    size_t n, at = 0;
    int rc = ca_list(ca, &list, &n, e);
    names[0] = '\0';
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (list[i].previous && list[i].in_use && list[i].state == CA_VALID && at < cap)
            at += (size_t)snprintf(names + at, cap - at, "%s%s", at ? ", " : "",
                                   list[i].cert.id.name);
    mem_free(list);
    return rc;
}

int ca_rotate_finish(struct ca *ca, bool force, struct err *e)
{
    char names[160];
    struct cert_info old;
    if (!ca_previous(ca, &old))
        return err_set(e, SHOAL_EINVAL,
                       "there is no rotation to finish: shoal ca rotate starts one");
    int rc = find_left(ca, names, sizeof(names), e);
    if (rc == 0 && names[0] && !force)
        rc =
            err_set(e, SHOAL_EINVAL,
                    "the old CA signed the certificates of %s: run shoal ca issue NAME --force for "
                    "each, or --force to shut them out",
                    names);
    if (rc < 0)
        return rc;
    free_signer(&ca->before);
    X509_free(ca->cross);
    X509_CRL_free(ca->crl_before);
    ca->cross = NULL;
    ca->crl_before = NULL;
    rc = write_trust(ca, e);
    if (rc == 0)
        rc = refresh_members(ca, e);
    return rc < 0 ? rc : forget_rotation(ca->folder, e);
}
