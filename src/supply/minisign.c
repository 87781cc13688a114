/* minisign.c - see minisign.h. */
#include "supply/minisign.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file/file_open.h"
#include "supply/base64.h"

#define UNTRUSTED "untrusted comment: "
#define TRUSTED "trusted comment: "
#define KEY_BYTES 42u
#define SIGNATURE_BYTES 74u

bool minisign_is(const void *text, size_t n)
{
    return n > sizeof(UNTRUSTED) - 1 && memcmp(text, UNTRUSTED, sizeof(UNTRUSTED) - 1) == 0;
}

/* The next line, without its end. */
static const char *next_line(const char **at, const char *end, size_t *n)
{
    const char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));
    *at = stop ? stop + 1 : end;
    *n = (size_t)((stop ? stop : end) - line);
    if (*n > 0 && line[*n - 1] == '\r')
        --*n;
    return line;
}

/* A line that is the base64 of exactly want bytes. */
static bool bytes_line(const char **at, const char *end, uint8_t *out, size_t want)
{
    struct arena a;
    size_t n, got = 0;
    const char *line = next_line(at, end, &n);
    char text[256];
    if (n >= sizeof(text))
        return false;
    memcpy(text, line, n);
    text[n] = 0;
    arena_init(&a, 4096);
    const uint8_t *bytes = base64_read(&a, text, n, &got);
    bool ok = bytes && got == want;
    if (ok)
        memcpy(out, bytes, want);
    arena_fini(&a);
    return ok;
}

int minisign_read_key(struct minisign_key *out, const char *text, size_t n, struct err *e)
{
    const char *at = text, *end = text + n;
    uint8_t bytes[KEY_BYTES];
    size_t k;
    if (n > MINISIGN_MAX_BYTES || !minisign_is(text, n))
        return err_set(e, SHOAL_EFORMAT, "not a public key of minisign");
    next_line(&at, end, &k);
    if (!bytes_line(&at, end, bytes, KEY_BYTES) || memcmp(bytes, "Ed", 2) != 0)
        return err_set(e, SHOAL_EFORMAT, "not a public key of minisign: its second line is wrong");
    memcpy(out->id, bytes + 2, sizeof(out->id));
    memcpy(out->key, bytes + 10, sizeof(out->key));
    return 0;
}

int minisign_read(struct minisign *out, const char *text, size_t n, struct err *e)
{
    const char *at = text, *end = text + n;
    uint8_t bytes[SIGNATURE_BYTES];
    size_t k;
    *out = (struct minisign){.comment = ""};
    if (n > MINISIGN_MAX_BYTES || !minisign_is(text, n))
        return err_set(e, SHOAL_EFORMAT, "not a signature of minisign");
    next_line(&at, end, &k);
    if (!bytes_line(&at, end, bytes, SIGNATURE_BYTES))
        return err_set(e, SHOAL_EFORMAT, "not a signature of minisign: its second line is wrong");
    if (memcmp(bytes, "ED", 2) != 0)
        return err_set(e, SHOAL_EFORMAT,
                       "a signature of minisign's old form; sign again without -l");
    memcpy(out->id, bytes + 2, sizeof(out->id));
    memcpy(out->signature, bytes + 10, sizeof(out->signature));
    const char *comment = next_line(&at, end, &k);
    if (k < sizeof(TRUSTED) - 1 || memcmp(comment, TRUSTED, sizeof(TRUSTED) - 1) != 0 ||
        k - (sizeof(TRUSTED) - 1) >= MINISIGN_COMMENT || memchr(comment, 0, k))
        return err_set(e, SHOAL_EFORMAT, "not a signature of minisign: no trusted comment");
    memcpy(out->comment, comment + sizeof(TRUSTED) - 1, k - (sizeof(TRUSTED) - 1));
    if (!bytes_line(&at, end, out->of_comment, sizeof(out->of_comment)) || at != end)
        return err_set(e, SHOAL_EFORMAT,
                       "not a signature of minisign: the signature of its comment is wrong");
    return 0;
}

void minisign_id(char out[17], const uint8_t id[8])
{
    for (int i = 0; i < 8; i++) /* little endian */
        snprintf(out + (size_t)i * 2, 3, "%02X", id[7 - i]);
}

static bool is_signed(const struct minisign_key *k, const uint8_t signature[64], const void *bytes,
                      size_t n)
{
    EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, k->key, sizeof(k->key));
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    bool ok = key && c && EVP_DigestVerifyInit(c, NULL, NULL, NULL, key) == 1 &&
              EVP_DigestVerify(c, signature, 64, bytes, n) == 1;
    EVP_MD_CTX_free(c);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return ok;
}

static int blake2b(uint8_t out[64], const char *path, struct err *e)
{
    uint8_t block[65536];
    ssize_t got = 0;
    int rc = 0, fd = file_open_regular(path, NULL);
    if (fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", path, file_open_reason(errno));
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    bool ok = c && EVP_DigestInit_ex(c, EVP_blake2b512(), NULL) == 1;
    while (ok && (got = read(fd, block, sizeof(block))) > 0)
        ok = EVP_DigestUpdate(c, block, (size_t)got) == 1;
    if (got < 0)
        rc = err_set(e, SHOAL_EIO, "cannot read %s: %s", path, strerror(errno));
    else if (!ok || EVP_DigestFinal_ex(c, out, NULL) != 1)
        rc = err_set(e, SHOAL_ENOMEM, "cannot compute BLAKE2b");
    EVP_MD_CTX_free(c);
    close(fd);
    return rc;
}

int minisign_check(const struct minisign *m, const struct minisign_key *k, const char *path,
                   struct err *e)
{
    uint8_t sum[64], both[64 + MINISIGN_COMMENT];
    char have[17], want[17];
    const size_t n = strlen(m->comment);
    minisign_id(have, m->id);
    minisign_id(want, k->id);
    if (memcmp(m->id, k->id, sizeof(m->id)) != 0)
        return err_set(e, SHOAL_EFORMAT, "it is signed with another key: %s, not %s", have, want);
    memcpy(both, m->signature, 64);
    memcpy(both + 64, m->comment, n);
    if (!is_signed(k, m->of_comment, both, 64 + n))
        return err_set(e, SHOAL_EFORMAT, "the trusted comment or its signature was changed");
    int rc = blake2b(sum, path, e);
    if (rc < 0)
        return rc;
    return is_signed(k, m->signature, sum, sizeof(sum))
               ? 0
               : err_set(e, SHOAL_EFORMAT, "%s or its signature was changed", path);
}
