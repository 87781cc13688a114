/* audit_check.c - see audit_check.h. */
#include "supply/audit_check.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supply/audit_log.h"

struct audit_reading {
    struct audit_check *out;
    EVP_PKEY *key;
    uint8_t chain[SHA256_BYTES];
    bool begun;    /* a line was read: its chain is known */
    uint64_t torn; /* bytes of a line that only a restart may follow; 0: none */
    bool was_torn;
    uint64_t head; /* lines that there must be at least; 0: not known */
    void (*each)(void *ctx, const struct audit_line *l, const char *text, size_t n);
    void *ctx;
};

static int bad(const struct audit_reading *r, struct err *e, const char *what)
{
    return err_set(e, SHOAL_EFORMAT, "%s, line %llu: %s", r->out->file,
                   (unsigned long long)r->out->line, what);
}

static bool is_signed(const struct audit_reading *r, const struct audit_line *l)
{
    uint8_t text[AUDIT_LINE_SIGNED];
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    audit_line_signed(text, l->before);
    bool ok = c && EVP_DigestVerifyInit(c, NULL, NULL, NULL, r->key) == 1 &&
              EVP_DigestVerify(c, l->signature, sizeof(l->signature), text, sizeof(text)) == 1;
    EVP_MD_CTX_free(c);
    ERR_clear_error();
    return ok;
}

/* The first line of a log whose older files were removed must be signed. */
static int begin(struct audit_reading *r, const struct audit_line *l, struct err *e)
{
    static const uint8_t zeros[SHA256_BYTES];
    if (r->begun)
        return 0;
    r->begun = true;
    r->out->first = l->n;
    r->out->n = l->n - 1;
    if (l->kind != AUDIT_CHECKPOINT || l->n == 0)
        return bad(r, e, "the log does not begin with a checkpoint: lines before it are lost");
    memcpy(r->chain, l->before, sizeof(r->chain));
    return l->n == 1 && memcmp(l->before, zeros, sizeof(zeros)) != 0
               ? bad(r, e, "the first line continues another log")
               : 0;
}

static int check_order(const struct audit_reading *r, const struct audit_line *l, struct err *e)
{
    char text[160];
    if (l->n == r->out->n + 1)
        return 0;
    if (l->n > r->out->n + 1)
        snprintf(text, sizeof(text),
                 "it has the number %llu, but %llu should follow: lines are lost",
                 (unsigned long long)l->n, (unsigned long long)r->out->n + 1);
    else
        snprintf(text, sizeof(text),
                 "it has the number %llu, but %llu should follow: lines were "
                 "reordered or repeated",
                 (unsigned long long)l->n, (unsigned long long)r->out->n + 1);
    return bad(r, e, text);
}

static int check_line(struct audit_reading *r, const struct audit_line *l, const char *text,
                      struct err *e)
{
    uint8_t chain[SHA256_BYTES];
    if (r->was_torn && !(l->kind == AUDIT_RESTART && l->torn == r->torn)) {
        r->out->line--;
        return bad(r, e, "it was changed");
    }
    int rc = begin(r, l, e);
    if (rc == 0)
        rc = check_order(r, l, e);
    if (rc < 0)
        return rc;
    if (!audit_line_chain(chain, r->chain, text, l->n_covered))
        return err_set(e, SHOAL_ENOMEM, "SHA-256");
    if (memcmp(chain, l->chain, sizeof(chain)) != 0)
        return bad(r, e, "it was changed, or the line before it was");
    if (!r->was_torn && l->kind == AUDIT_RESTART && l->torn > 0)
        return bad(r, e, "it follows a torn line, which is lost");
    if (l->kind == AUDIT_CHECKPOINT && memcmp(l->before, r->chain, sizeof(chain)) != 0)
        return bad(r, e, "the checkpoint is that of another line");
    if (l->kind == AUDIT_CHECKPOINT && !is_signed(r, l))
        return bad(r, e, "the checkpoint is not signed with this key");
    memcpy(r->chain, chain, sizeof(chain));
    return 0;
}

static int take_line(struct audit_reading *r, const char *text, size_t n, bool whole, struct err *e)
{
    struct audit_line l;
    struct err why = {0};
    r->out->line++;
    if (!whole || audit_line_read(&l, text, n, &why) < 0) {
        /* maybe torn: what follows must say so */
        if (r->was_torn || !r->begun)
            return bad(r, e, whole ? why.msg : "it is not whole");
        r->was_torn = true;
        r->torn = n;
        return 0;
    }
    int rc = check_line(r, &l, text, e);
    if (rc < 0)
        return rc;
    r->out->n_torn += r->was_torn;
    r->was_torn = false;
    r->out->n = l.n;
    r->out->n_lines++;
    r->out->n_lost += l.lost;
    r->out->n_unsigned = l.kind == AUDIT_CHECKPOINT ? 0 : r->out->n_unsigned + 1;
    r->out->n_checkpoints += l.kind == AUDIT_CHECKPOINT;
    if (r->each)
        r->each(r->ctx, &l, text, n);
    return 0;
}

static int read_file(struct audit_reading *r, const char *dir, struct err *e)
{
    char path[PATH_MAX], *line = NULL;
    size_t cap = 0;
    ssize_t n;
    int rc = 0;
    snprintf(path, sizeof(path), "%s/%s", dir, r->out->file);
    FILE *f = fopen(path, "re");
    if (!f)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", path, strerror(errno));
    r->out->line = 0;
    while (rc == 0 && (n = getline(&line, &cap, f)) > 0) {
        bool whole = line[n - 1] == '\n';
        rc = n > (ssize_t)AUDIT_LINE_MAX + 1 ? bad(r, e, "it is too long")
                                             : take_line(r, line, (size_t)(n - whole), whole, e);
    }
    if (rc == 0 && ferror(f))
        rc = err_set(e, SHOAL_EIO, "cannot read %s: %s", path, strerror(errno));
    free(line);
    fclose(f);
    return rc;
}

static int is_log(const struct dirent *d)
{
    unsigned number;
    int end = 0;
    return sscanf(d->d_name, "audit-%6u.jsonl%n", &number, &end) == 1 && d->d_name[end] == 0;
}

static int open_key(EVP_PKEY **out, const char *dir, const char *key, struct err *e)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), key ? "%s" : "%s/audit.pub", key ? key : dir);
    FILE *f = fopen(path, "re");
    *out = f ? PEM_read_PUBKEY(f, NULL, NULL, NULL) : NULL;
    if (f)
        fclose(f);
    ERR_clear_error();
    if (*out && EVP_PKEY_get_base_id(*out) == EVP_PKEY_ED25519)
        return 0;
    return err_set(e, f ? SHOAL_EINVAL : SHOAL_ENOTFOUND,
                   "%s is not the public key of an audit log (audit.pub); say --key FILE", path);
}

static void read_head(struct audit_reading *r, const char *dir)
{
    char path[PATH_MAX];
    unsigned long long n = 0;
    snprintf(path, sizeof(path), "%s/head", dir);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%llu", &n) == 1)
        r->head = n;
    if (f)
        fclose(f);
}

static int check_end(struct audit_reading *r, struct err *e)
{
    if (r->was_torn) /* of the process that writes, or of one that was killed */
        r->out->n_torn++;
    if (r->head > r->out->n)
        return err_set(e, SHOAL_EFORMAT,
                       "%s ends at line number %llu, but the log had %llu: its end is lost",
                       r->out->file, (unsigned long long)r->out->n, (unsigned long long)r->head);
    return 0;
}

int audit_check(struct audit_check *out, const char *dir, const char *key,
                void (*each)(void *ctx, const struct audit_line *l, const char *text, size_t n),
                void *ctx, struct err *e)
{
    struct audit_reading r = {.out = out, .each = each, .ctx = ctx};
    struct dirent **names = NULL;
    *out = (struct audit_check){.n = 0};
    int n = scandir(dir, &names, is_log, alphasort);
    int rc = n > 0 ? open_key(&r.key, dir, key, e)
                   : err_set(e, SHOAL_ENOTFOUND, "%s has no audit log", dir);
    read_head(&r, dir);
    for (int i = 0; i < n; i++) {
        if (rc == 0) {
            snprintf(out->file, sizeof(out->file), "%.31s", names[i]->d_name);
            out->n_files++;
            rc = read_file(&r, dir, e);
        }
        free(names[i]);
    }
    free(names);
    if (rc == 0)
        rc = check_end(&r, e);
    EVP_PKEY_free(r.key);
    return rc;
}
