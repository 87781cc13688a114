/* join_token.c - see join_token.h. */
#include "cluster/trust/join_token.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/hash.h"

#define PREFIX "shoal"
#define CHECK_BYTES 3u
#define BYTES (JOIN_TOKEN_SECRET + JOIN_TOKEN_CA + CHECK_BYTES) /* 35: 56 characters */
#define CHARS (BYTES * 8 / 5)
#define GROUP 8u
static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";

int join_token_make(struct join_token *out, const uint8_t ca_sha256[32], struct err *e)
{
    memcpy(out->ca, ca_sha256, JOIN_TOKEN_CA);
    if (getrandom(out->secret, sizeof(out->secret), 0) != (ssize_t)sizeof(out->secret))
        return err_set(e, SHOAL_EIO, "no random bytes for a token");
    return 0;
}

/* Against typing errors only. */
static void put_check(uint8_t bytes[BYTES])
{
    const uint64_t h = hash_bytes(bytes, BYTES - CHECK_BYTES, 0);
    for (unsigned i = 0; i < CHECK_BYTES; i++)
        bytes[BYTES - CHECK_BYTES + i] = (uint8_t)(h >> 8 * i);
}

void join_token_text(char out[JOIN_TOKEN_TEXT], const struct join_token *t)
{
    uint8_t bytes[BYTES];
    size_t n = (size_t)snprintf(out, JOIN_TOKEN_TEXT, "%s", PREFIX);
    memcpy(bytes, t->secret, JOIN_TOKEN_SECRET);
    memcpy(bytes + JOIN_TOKEN_SECRET, t->ca, JOIN_TOKEN_CA);
    put_check(bytes);
    for (unsigned i = 0; i < CHARS; i++) {
        const unsigned bit = i * 5, at = bit / 8;
        const unsigned pair = (unsigned)bytes[at] << 8 | (at + 1 < BYTES ? bytes[at + 1] : 0u);
        if (i % GROUP == 0)
            out[n++] = '-';
        out[n++] = alphabet[pair >> (11 - bit % 8) & 31];
    }
    out[n] = '\0';
}

/* The value of a character; -1: none. */
static int value_of(char c)
{
    const char *at = c ? strchr(alphabet, tolower((unsigned char)c)) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

static bool skipped(char c)
{
    return c == '-' || isspace((unsigned char)c);
}

int join_token_parse(struct join_token *out, const char *text, struct err *e)
{
    uint8_t bytes[BYTES] = {0}, given[CHECK_BYTES];
    unsigned n = 0;
    memset(out, 0, sizeof(*out));
    while (skipped(*text))
        text++;
    if (strncasecmp(text, PREFIX, strlen(PREFIX)) != 0 || !skipped(text[strlen(PREFIX)]))
        return err_set(e, SHOAL_EINVAL,
                       "this is not a token of 'shoal cluster token': it begins "
                       "with " PREFIX "-");
    for (text += strlen(PREFIX); *text; text++) {
        const int v = value_of(*text);
        if (skipped(*text))
            continue;
        if (v < 0 || n >= CHARS)
            return err_set(e, SHOAL_EINVAL,
                           v < 0 ? "the token has a character that no token has"
                                 : "the token is too long");
        for (unsigned k = 0; k < 5; k++)
            if (v >> (4 - k) & 1)
                bytes[(n * 5 + k) / 8] |= (uint8_t)(128u >> (n * 5 + k) % 8);
        n++;
    }
    if (n < CHARS)
        return err_set(e, SHOAL_EINVAL, "the token is too short");
    memcpy(given, bytes + BYTES - CHECK_BYTES, CHECK_BYTES);
    put_check(bytes);
    if (memcmp(given, bytes + BYTES - CHECK_BYTES, CHECK_BYTES) != 0)
        return err_set(e, SHOAL_EINVAL, "the token has a typing error");
    memcpy(out->secret, bytes, JOIN_TOKEN_SECRET);
    memcpy(out->ca, bytes + JOIN_TOKEN_SECRET, JOIN_TOKEN_CA);
    return 0;
}
