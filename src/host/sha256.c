/* sha256.c - see sha256.h. */
#include "base/ascii.h"
#include "host/sha256.h"

#include <pthread.h>

#include <openssl/evp.h>

/* Fetched once: EVP_sha256() looks the algorithm up again at every use. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static EVP_MD *algorithm;

static void forget_algorithm(void)
{
    EVP_MD_free(algorithm);
    algorithm = NULL;
}

static void fetch_algorithm(void)
{
    algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (algorithm)
        OPENSSL_atexit(forget_algorithm);
}

void sha256_begin(struct sha256 *s)
{
    pthread_once(&once, fetch_algorithm);
    s->md = EVP_MD_CTX_new();
    s->bad = !s->md || !algorithm || EVP_DigestInit_ex(s->md, algorithm, NULL) != 1;
}

void sha256_add(struct sha256 *s, const void *p, size_t n)
{
    if (!s->bad && n > 0)
        s->bad = EVP_DigestUpdate(s->md, p, n) != 1;
}

bool sha256_end(struct sha256 *s, uint8_t out[SHA256_BYTES])
{
    unsigned n = 0;
    bool ok = !s->bad && EVP_DigestFinal_ex(s->md, out, &n) == 1 && n == SHA256_BYTES;
    EVP_MD_CTX_free(s->md);
    s->md = NULL;
    return ok;
}

void sha256_hex(char out[2 * SHA256_BYTES + 1], const uint8_t sum[SHA256_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    for (uint32_t i = 0; i < SHA256_BYTES; i++) {
        out[2 * i] = digits[sum[i] >> 4];
        out[2 * i + 1] = digits[sum[i] & 15];
    }
    out[2 * SHA256_BYTES] = '\0';
}

bool sha256_read_hex(uint8_t out[SHA256_BYTES], const char *hex)
{
    for (uint32_t i = 0; i < SHA256_BYTES; i++) {
        int high = ascii_hex(hex[2 * i]), low = high < 0 ? -1 : ascii_hex(hex[2 * i + 1]);
        if (low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
