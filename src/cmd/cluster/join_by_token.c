/* join_by_token.c - see join_by_token.h. */
#include "cmd/cluster/join_by_token.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/file/file_read.h"
#include "cluster/trust/cert.h"
#include "cluster/trust/cert_make.h"
#include "cluster/trust/enrol.h"
#include "cmd/cmd.h"
#include "net/mdns_link.h"

#define FIND_MS 10000u
#define MAX_PATH (CERT_PATH_BYTES + 32u)

void join_by_token_name(char out[64])
{
    char host[256] = "";
    size_t n = 0;
    (void)!gethostname(host, sizeof(host) - 1);
    for (const char *p = host; *p && *p != '.' && n < 62; p++) {
        const char c = (char)tolower((unsigned char)*p);
        if (isalnum((unsigned char)c))
            out[n++] = c;
        else if (n > 0 && out[n - 1] != '-')
            out[n++] = '-';
    }
    while (n > 0 && out[n - 1] == '-')
        n--;
    out[n] = '\0';
}

/* ---- the way there ---- */

static int connect_to(int *fd, const char *host, const char *port, struct err *e)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const struct timeval wait = {.tv_sec = ENROL_WAIT_S};
    struct addrinfo *list = NULL;
    int rc = getaddrinfo(host, port, &hints, &list);
    *fd = -1;
    if (rc != 0)
        return err_set(e, SHOAL_EIO, "%.200s: %s", host, gai_strerror(rc));
    for (const struct addrinfo *a = list; a && *fd < 0; a = a->ai_next) {
        *fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (*fd >= 0 && (setsockopt(*fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) < 0 ||
                         connect(*fd, a->ai_addr, a->ai_addrlen) < 0)) {
            rc = errno;
            close(*fd);
            *fd = -1;
        }
    }
    freeaddrinfo(list);
    return *fd >= 0 ? 0
                    : err_set(e, SHOAL_EIO, "%.200s port %s cannot be reached: %s", host, port,
                              strerror(rc));
}

/* "HOST:PORT" or "[ADDRESS]:PORT". */
static int connect_at(int *fd, const char *at, struct err *e)
{
    char host[256];
    const char *colon = strrchr(at, ':');
    size_t n = colon ? (size_t)(colon - at) : 0;
    if (n > 2 && at[0] == '[' && at[n - 1] == ']') {
        at++;
        n -= 2;
    }
    if (n == 0 || n >= sizeof(host) || !colon[1])
        return err_set(e, SHOAL_EINVAL, "--at needs HOST:PORT");
    snprintf(host, sizeof(host), "%.*s", (int)n, at);
    return connect_to(fd, host, colon + 1, e);
}

/* The shoal of the token; others may invite at the same time. */
static bool is_wanted(void *ctx, const struct mdns_service *s)
{
    const struct join_token *t = ctx;
    char hex[2 * JOIN_TOKEN_CA + 4] = "ca=";
    for (size_t i = 0; i < JOIN_TOKEN_CA; i++)
        snprintf(hex + 3 + 2 * i, 3, "%02x", t->ca[i]);
    return strcmp(s->txt, hex) == 0;
}

static int find(int *fd, struct join_token *t, struct err *e)
{
    struct mdns_service s;
    char host[INET_ADDRSTRLEN], port[8];
    int rc = mdns_link_find(&s, ENROL_SERVICE, FIND_MS, is_wanted, t, e);
    if (rc < 0)
        return err_wrap(e, "the shoal of this token is not found (is 'shoal cluster token' still "
                           "running? --at HOST:PORT says where)");
    inet_ntop(AF_INET, s.address, host, sizeof(host));
    snprintf(port, sizeof(port), "%u", s.port);
    fprintf(stderr, "found the shoal at %s:%s\n", host, port);
    return connect_to(fd, host, port, e);
}

/* ---- the folder ---- */

static int write_file(const char *folder, const char *name, const struct buf *b, struct err *e)
{
    char path[MAX_PATH];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const bool ok = fd >= 0 && write(fd, b->data, b->len) == (ssize_t)b->len && fsync(fd) == 0;
    const int error = errno;
    if (fd >= 0)
        close(fd);
    return ok ? 0 : err_set(e, SHOAL_EIO, "cannot write %.400s: %s", path, strerror(error));
}

static int key_text(struct buf *out, EVP_PKEY *key, struct err *e)
{
    char *text = NULL;
    BIO *b = BIO_new(BIO_s_mem());
    const bool ok = b && PEM_write_bio_PrivateKey(b, key, NULL, NULL, 0, NULL, NULL) == 1;
    const long n = ok ? BIO_get_mem_data(b, &text) : 0;
    if (n > 0)
        buf_put(out, text, (size_t)n);
    BIO_free(b);
    return n > 0 && out->rc == 0 ? 0 : err_set(e, SHOAL_EINTERNAL, "the key cannot be written");
}

static int write_folder(const char *folder, EVP_PKEY *key, const struct enrol_files *f,
                        struct err *e)
{
    struct buf secret;
    buf_init(&secret, ENROL_MAX_BYTES);
    const struct {
        const char *name;
        const struct buf *b;
    } files[] = {{"key.pem", &secret},
                 {"ca.pem", &f->ca},
                 {"crl.pem", &f->crl},
                 {"shoal.yaml", &f->config},
                 {"cert.pem", &f->cert}};
    int rc = key_text(&secret, key, e);
    for (size_t i = 0; rc == 0 && i < sizeof(files) / sizeof(files[0]); i++)
        rc = write_file(folder, files[i].name, files[i].b, e);
    OPENSSL_cleanse(secret.data, secret.len);
    buf_fini(&secret);
    return rc;
}

/* Before the token is used up. */
static int make_folder(const char *folder, struct err *e)
{
    if (mkdir(folder, 0700) == 0)
        return 0;
    if (errno == EEXIST)
        return err_set(
            e, SHOAL_EINVAL,
            "%.400s exists: a member's folder is joined without --token, a new one needs "
            "another name",
            folder);
    return err_set(e, SHOAL_EIO, "cannot create %.400s: %s", folder, strerror(errno));
}

/* ---- joining ---- */

static int parse_token(struct join_token *out, const char *text, struct err *e)
{
    struct buf b;
    buf_init(&b, 4096);
    int rc = strcmp(text, "-") == 0 ? file_read("-", &b, e) : 0;
    if (rc == 0)
        rc = join_token_parse(out, b.len > 0 ? buf_str(&b) : text, e);
    if (b.len > 0)
        OPENSSL_cleanse(b.data, b.len);
    buf_fini(&b);
    return rc;
}

static int fill_request(struct enrol_request *r, const struct join_by_token *j, struct err *e)
{
    *r = (struct enrol_request){.key = NULL};
    if (j->name)
        snprintf(r->name, sizeof(r->name), "%s", j->name);
    else
        join_by_token_name(r->name);
    snprintf(r->host, sizeof(r->host), "%s", j->host ? j->host : "");
    if (!cert_is_name(r->name) || (j->name && strlen(j->name) >= sizeof(r->name)))
        return err_set(e, SHOAL_EINVAL,
                       "'%.64s' is not a name for a member: use --name with lower-case letters, "
                       "digits and -",
                       j->name ? j->name : r->name);
    return cert_make_key(&r->key, e);
}

int join_by_token(const struct opts_page *page, const struct join_by_token *j, const char *folder)
{
    struct join_token t;
    struct enrol_request r = {.key = NULL};
    struct enrol_files files;
    struct err e = {0};
    int fd = -1;
    bool made = false;
    enrol_files_init(&files);
    signal(SIGPIPE, SIG_IGN);
    int rc = parse_token(&t, j->token, &e);
    if (rc == 0)
        rc = fill_request(&r, j, &e);
    if (rc == 0)
        made = (rc = make_folder(folder, &e)) == 0;
    if (rc == 0)
        rc = j->at ? connect_at(&fd, j->at, &e) : find(&fd, &t, &e);
    if (rc == 0)
        rc = enrol_join(fd, &t, &r, &files, &e);
    if (rc == 0)
        rc = write_folder(folder, r.key, &files, &e);
    if (fd >= 0)
        close(fd);
    if (rc < 0 && made)
        (void)!rmdir(folder); /* if it is still empty */
    EVP_PKEY_free(r.key);
    enrol_files_fini(&files);
    OPENSSL_cleanse(&t, sizeof(t));
    signal(SIGPIPE, SIG_DFL); /* for what is started next */
    return rc < 0 ? cmd_fail(page, "%s", e.msg) : CMD_OK;
}
