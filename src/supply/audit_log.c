/* audit_log.c - see audit_log.h. */
#include "supply/audit_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file_lock.h"
#include "base/file/state_file.h"
#include "base/log.h"
#include "base/mem.h"
#include "supply/base64.h"
#include "wire/json_out.h"

#define MAX_REFUSED_A_SECOND 20u
#define DEFAULT_FILE_BYTES ((size_t)64 << 20)

struct audit_log {
    pthread_mutex_t lock;
    struct audit_log_opts o;
    char *dir;
    int fd, lock_fd;
    uint32_t file; /* its number */
    off_t bytes;   /* of whole lines in it */
    uint64_t n;    /* of the last line */
    uint8_t chain[SHA256_BYTES];
    uint32_t since;             /* lines since the last checkpoint */
    uint64_t refused_s, n_more; /* refusals: of which second, and those beyond the limit */
    uint32_t n_refused;
    uint64_t n_lost; /* lines that could not be written */
    EVP_PKEY *key;
    struct buf line;
};

static int path_of(char out[PATH_MAX], const struct audit_log *a, const char *name, struct err *e)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", a->dir, name);
    return n > 0 && n < PATH_MAX ? 0 : err_set(e, SHOAL_ELIMIT, "the path %s is too long", a->dir);
}

static int open_file(struct audit_log *a, uint32_t number, struct err *e)
{
    char name[32], path[PATH_MAX];
    snprintf(name, sizeof(name), AUDIT_LOG_FILE, number);
    int rc = path_of(path, a, name, e);
    if (rc < 0)
        return rc;
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", path, strerror(errno));
    if (a->fd >= 0)
        close(a->fd);
    a->fd = fd;
    a->file = number;
    return 0;
}

/* ---- the key ---- */

static int write_key(const char *path, EVP_PKEY *key, bool private, struct err *e)
{
    int fd =
        open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, private ? 0600 : 0644);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool ok = f && (private ? PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL)
                            : PEM_write_PUBKEY(f, key)) == 1;
    if (f)
        ok = fclose(f) == 0 && ok;
    return ok ? 0 : err_set(e, SHOAL_EIO, "cannot write %s: %s", path, strerror(errno));
}

static int open_key(struct audit_log *a, struct err *e)
{
    char path[PATH_MAX], public[PATH_MAX];
    struct stat st;
    int rc = path_of(path, a, "audit.key", e);
    if (rc == 0)
        rc = path_of(public, a, "audit.pub", e);
    if (rc < 0)
        return rc;
    FILE *f = fopen(path, "re");
    if (!f && errno == ENOENT) {
        a->key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
        rc = a->key ? write_key(path, a->key, true, e) : err_set(e, SHOAL_ENOMEM, "a key");
        return rc < 0 ? rc : write_key(public, a->key, false, e);
    }
    if (!f)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", path, strerror(errno));
    a->key = PEM_read_PrivateKey(f, NULL, NULL, NULL);
    if (!a->key || EVP_PKEY_get_base_id(a->key) != EVP_PKEY_ED25519)
        rc = err_set(e, SHOAL_EFORMAT, "%s is not a key of an audit log", path);
    else if (fstat(fileno(f), &st) == 0 && (st.st_mode & 077))
        rc = err_set(e, SHOAL_EINVAL, "others can read %s: chmod 600 it, or begin a new log", path);
    fclose(f);
    return rc;
}

static bool sign(struct audit_log *a, uint8_t out[AUDIT_LINE_SIGNATURE])
{
    uint8_t text[AUDIT_LINE_SIGNED];
    size_t n = AUDIT_LINE_SIGNATURE;
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    audit_line_signed(text, a->chain);
    bool ok = c && EVP_DigestSignInit(c, NULL, NULL, NULL, a->key) == 1 &&
              EVP_DigestSign(c, out, &n, text, sizeof(text)) == 1;
    EVP_MD_CTX_free(c);
    return ok;
}

/* ---- lines; under the lock ---- */

static void put_time(struct json_out *j)
{
    struct timespec now;
    struct tm tm;
    char day[32] = "", text[48];
    clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &tm))
        strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text, sizeof(text), "%s.%03ldZ", day, now.tv_nsec / 1000000);
    json_out_member_str(j, "time", text);
}

static struct json_out begin(struct audit_log *a, enum audit_kind kind)
{
    buf_clear(&a->line);
    struct json_out j = json_out_make(&a->line);
    json_out_object(&j);
    json_out_member_uint(&j, "n", a->n + 1);
    put_time(&j);
    json_out_member_str(&j, "kind", audit_kind_name(kind));
    return j;
}

/* Writes the line; on failure the file is as before. */
static bool finish(struct audit_log *a)
{
    uint8_t chain[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];
    if (!audit_line_chain(chain, a->chain, buf_str(&a->line), a->line.len))
        return false;
    sha256_hex(hex, chain);
    if (a->o.syslog)
        syslog(LOG_AUTH | LOG_INFO, "%s,\"chain\":\"%s\"}", buf_str(&a->line), hex);
    buf_printf(&a->line, ",\"chain\":\"%s\"}\n", hex);
    if (a->line.rc)
        return false;
    ssize_t wrote = write(a->fd, a->line.data, a->line.len);
    if (wrote != (ssize_t)a->line.len) {
        if (wrote > 0 && ftruncate(a->fd, a->bytes) < 0)
            log_error("audit", "cannot remove a torn line: %s", strerror(errno));
        if (wrote >= 0)
            errno = ENOSPC;
        return false;
    }
    a->bytes += wrote;
    a->n++;
    memcpy(a->chain, chain, sizeof(chain));
    a->since++;
    return true;
}

/* For those who look for lost lines at the end.  Not synced: it says no more than the log. */
static void write_head(struct audit_log *a)
{
    char path[PATH_MAX], fresh[PATH_MAX], hex[2 * SHA256_BYTES + 1];
    if (path_of(path, a, "head", NULL) < 0 || path_of(fresh, a, "head.new", NULL) < 0)
        return;
    FILE *f = fopen(fresh, "we");
    sha256_hex(hex, a->chain);
    if (!f)
        return;
    bool ok = fprintf(f, "%llu %s\n", (unsigned long long)a->n, hex) > 0;
    if (fclose(f) == 0 && ok)
        (void)!rename(fresh, path);
}

static bool checkpoint(struct audit_log *a)
{
    uint8_t signature[AUDIT_LINE_SIGNATURE];
    char hex[2 * SHA256_BYTES + 1];
    struct json_out j = begin(a, AUDIT_CHECKPOINT);
    sha256_hex(hex, a->chain);
    json_out_member_str(&j, "before", hex);
    if (!sign(a, signature))
        return false;
    json_out_key(&j, "signature");
    buf_putc(&a->line, '"');
    base64_write(&a->line, signature, sizeof(signature));
    buf_putc(&a->line, '"');
    if (!finish(a))
        return false;
    a->since = 0;
    write_head(a);
    return true;
}

static bool report_lost(struct audit_log *a)
{
    if (a->n_lost == 0)
        return true;
    struct json_out j = begin(a, AUDIT_LOST);
    json_out_member_uint(&j, "lines", a->n_lost);
    if (!finish(a))
        return false;
    a->n_lost = 0;
    return true;
}

static void rotate(struct audit_log *a)
{
    char name[32], path[PATH_MAX];
    struct err e = {0};
    if (!checkpoint(a) || open_file(a, a->file + 1, &e) < 0)
        return; /* goes on in this one */
    a->bytes = 0;
    (void)checkpoint(a); /* so that a file can be checked without those before it */
    if (a->o.keep > 0 && a->file > a->o.keep) {
        snprintf(name, sizeof(name), AUDIT_LOG_FILE, a->file - a->o.keep);
        if (path_of(path, a, name, NULL) == 0)
            unlink(path);
    }
}

static void put_hex(struct json_out *j, const char *key, const uint8_t *sum)
{
    char hex[2 * SHA256_BYTES + 1];
    if (!sum)
        return;
    sha256_hex(hex, sum);
    json_out_member_str(j, key, hex);
}

static void put_text(struct json_out *j, const char *key, const char *text)
{
    if (text && text[0])
        json_out_key(j, key), json_out_strn(j, text, strnlen(text, 256));
}

static bool put(struct audit_log *a, const struct audit_entry *x)
{
    struct json_out j = begin(a, x->kind);
    put_text(&j, "client", x->client);
    put_text(&j, "act", x->act);
    put_text(&j, "node", x->node);
    put_text(&j, "model", x->model);
    put_hex(&j, "sha256", x->sum);
    put_text(&j, "signer", x->signer);
    put_hex(&j, "prompt", x->prompt);
    put_hex(&j, "answer", x->answer);
    if (x->kind == AUDIT_REFUSED && a->n_more) {
        json_out_member_uint(&j, "more", a->n_more); /* that were not logged */
        a->n_more = 0;
    }
    if (x->tokens)
        json_out_member_uint(&j, "tokens", x->tokens);
    put_text(&j, "decision", x->decision);
    put_text(&j, "reason", x->reason);
    if (x->took_ns) {
        json_out_key(&j, "ms");
        json_out_rounded(&j, (double)x->took_ns / 1e6, 1);
    }
    return finish(a);
}

/* Whoever has no key must not be able to fill the disk. */
static bool is_flood(struct audit_log *a, const struct audit_entry *x)
{
    const uint64_t now = clock_ns() / 1000000000u;
    if (x->kind != AUDIT_REFUSED)
        return false;
    if (now != a->refused_s) {
        a->refused_s = now;
        a->n_refused = 0;
    }
    if (a->n_refused++ < MAX_REFUSED_A_SECOND)
        return false;
    a->n_more++;
    return true;
}

void audit_log_put(struct audit_log *a, const struct audit_entry *x)
{
    pthread_mutex_lock(&a->lock);
    if (is_flood(a, x)) {
        pthread_mutex_unlock(&a->lock);
        return;
    }
    bool was_well = a->n_lost == 0;
    if (!report_lost(a) || !put(a, x)) {
        a->n_lost++;
        if (was_well)
            log_error("audit", "cannot write the audit log in %s: %s; %s", a->dir, strerror(errno),
                      a->o.serve_when_full ? "requests go on" : "requests are refused");
    } else if ((size_t)a->bytes >= a->o.file_bytes) {
        rotate(a);
    } else if (a->since >= AUDIT_CHECKPOINT_LINES) {
        (void)checkpoint(a); /* or with the next line */
    }
    pthread_mutex_unlock(&a->lock);
}

bool audit_log_ready(struct audit_log *a)
{
    if (a->o.serve_when_full)
        return true;
    pthread_mutex_lock(&a->lock);
    bool ready = report_lost(a);
    pthread_mutex_unlock(&a->lock);
    return ready;
}

/* ---- opening ---- */

static int last_file(const struct audit_log *a, uint32_t *out, struct err *e)
{
    DIR *d = opendir(a->dir);
    unsigned number;
    *out = 0;
    if (!d)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", a->dir, strerror(errno));
    for (struct dirent *x; (x = readdir(d));)
        if (sscanf(x->d_name, "audit-%6u.jsonl", &number) == 1 && number > *out)
            *out = number;
    closedir(d);
    return 0;
}

/* Continues behind the last whole line. torn: bytes of what follows it. */
static int find_end(struct audit_log *a, uint64_t *torn, struct err *e)
{
    char tail[2 * AUDIT_LINE_MAX + 4];
    struct audit_line l;
    off_t size = lseek(a->fd, 0, SEEK_END),
          from = size > (off_t)sizeof(tail) ? size - (off_t)sizeof(tail) : 0;
    ssize_t n = pread(a->fd, tail, sizeof(tail), from);
    if (size < 0 || n < 0)
        return err_set(e, SHOAL_EIO, "cannot read the audit log in %s: %s", a->dir,
                       strerror(errno));
    char *end = memrchr(tail, '\n', (size_t)n);
    *torn = (uint64_t)(end ? tail + n - (end + 1) : n);
    a->bytes = size;
    if (!end)
        return size == 0 || from == 0 ? 0
                                      : err_set(e, SHOAL_EFORMAT,
                                                "the audit log in %s is damaged: "
                                                "'shoal audit verify' says where",
                                                a->dir);
    char *start = memrchr(tail, '\n', (size_t)(end - tail));
    start = start ? start + 1 : tail;
    if (audit_line_read(&l, start, (size_t)(end - start), NULL) < 0)
        return err_set(e, SHOAL_EFORMAT,
                       "the last line of the audit log in %s is damaged: 'shoal audit verify' says "
                       "more; move the folder away to begin a new log",
                       a->dir);
    a->n = l.n;
    memcpy(a->chain, l.chain, sizeof(a->chain));
    return 1;
}

static int resume(struct audit_log *a, struct err *e)
{
    uint64_t torn = 0;
    uint32_t number;
    int rc = last_file(a, &number, e);
    if (rc == 0)
        rc = open_file(a, number ? number : 1, e);
    if (rc == 0)
        rc = find_end(a, &torn, e);
    const uint32_t newest = a->file;
    const off_t bytes = a->bytes;
    if (rc == 0 && newest > 1) { /* it has no whole line yet, and continues the one before it */
        uint64_t none;
        rc = open_file(a, newest - 1, e);
        if (rc == 0)
            rc = find_end(a, &none, e);
        if (rc >= 0 && (rc = open_file(a, newest, e)) == 0)
            a->bytes = bytes;
    } else if (rc == 0 && torn > 0) { /* nothing was ever logged */
        rc = ftruncate(a->fd, 0) < 0 ? err_set(e, SHOAL_EIO, "cannot write %s", a->dir) : 0;
        a->bytes = 0;
        torn = 0;
    }
    if (rc < 0)
        return rc;
    bool ok = true;
    if (torn > 0) {
        ok = write(a->fd, "\n", 1) == 1;
        a->bytes += ok;
    }
    if (ok && a->n > 0) {
        struct json_out j = begin(a, AUDIT_RESTART);
        json_out_member_uint(&j, "torn", torn);
        ok = finish(a);
    }
    return ok && checkpoint(a) ? 0
                               : err_set(e, SHOAL_EIO, "cannot write the audit log in %s: %s",
                                         a->dir, strerror(errno));
}

int audit_log_open(struct audit_log **out, const struct audit_log_opts *o, struct err *e)
{
    char path[PATH_MAX];
    struct audit_log *a = mem_zalloc(sizeof(*a));
    *out = NULL;
    if (!a)
        return err_set(e, SHOAL_ENOMEM, "an audit log");
    a->fd = a->lock_fd = -1;
    a->o = *o;
    a->o.dir = NULL;
    if (a->o.file_bytes == 0)
        a->o.file_bytes = DEFAULT_FILE_BYTES;
    pthread_mutex_init(&a->lock, NULL);
    buf_init(&a->line, AUDIT_LINE_MAX + 1);
    a->dir = mem_strdup(o->dir);
    int rc = a->dir ? path_of(path, a, "audit", e) : err_set(e, SHOAL_ENOMEM, "an audit log");
    if (rc == 0) {
        state_file_folders(path);
        rc = file_lock(&a->lock_fd, path, e);
    }
    if (rc == 0)
        rc = open_key(a, e);
    if (rc == 0)
        rc = resume(a, e);
    if (rc < 0) {
        a->n = 0; /* nothing to sign */
        audit_log_close(a);
        return rc;
    }
    *out = a;
    return 0;
}

void audit_log_close(struct audit_log *a)
{
    if (!a)
        return;
    if (a->n > 0 && report_lost(a))
        (void)checkpoint(a);
    if (a->fd >= 0)
        close(a->fd);
    if (a->lock_fd >= 0)
        close(a->lock_fd);
    EVP_PKEY_free(a->key);
    buf_fini(&a->line);
    pthread_mutex_destroy(&a->lock);
    mem_free(a->dir);
    mem_free(a);
}
