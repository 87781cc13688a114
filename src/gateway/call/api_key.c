/* api_key.c - see api_key.h. */
#include "gateway/call/api_key.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "net/http.h"

#define PLAIN "openai-insecure-api-key."
#define HEX "shoal-key."

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* n characters of hex; NULL: they are not. */
static const char *from_hex(const char *p, size_t n, char *out)
{
    if (n == 0 || n % 2 != 0 || n / 2 >= API_KEY_MAX)
        return NULL;
    for (size_t i = 0; i < n; i += 2) {
        const int high = digit(p[i]), low = digit(p[i + 1]);
        if (high < 0 || low < 0 || (high | low) == 0)
            return NULL;
        out[i / 2] = (char)(high << 4 | low);
    }
    out[n / 2] = '\0';
    return out;
}

const char *api_key_offered(const char *protocols, char out[API_KEY_MAX])
{
    for (const char *p = protocols; *p;) {
        p += strspn(p, ", \t");
        const size_t n = strcspn(p, ", \t"), plain = strlen(PLAIN), hex = strlen(HEX);
        if (n > plain && n - plain < API_KEY_MAX && strncmp(p, PLAIN, plain) == 0) {
            memcpy(out, p + plain, n - plain);
            out[n - plain] = '\0';
            return out;
        }
        if (n > hex && strncmp(p, HEX, hex) == 0)
            return from_hex(p + hex, n - hex, out);
        p += n;
    }
    return NULL;
}

const char *api_key_of(const struct http_req *r, char out[API_KEY_MAX])
{
    const char *auth = http_header(r, "authorization"), *key = http_header(r, "x-api-key"),
               *protocols = r->websocket ? http_header(r, "sec-websocket-protocol") : NULL;
    if (auth && strncasecmp(auth, "bearer ", 7) == 0)
        return auth + 7;
    if (key)
        return key;
    return protocols ? api_key_offered(protocols, out) : NULL;
}

bool api_key_twice(const struct http_req *r)
{
    uint32_t n_auth = 0, n_keys = 0;
    for (size_t i = 0; i < r->n_headers; i++) {
        n_auth += strcasecmp(r->headers[i].name, "authorization") == 0;
        n_keys += strcasecmp(r->headers[i].name, "x-api-key") == 0;
    }
    return n_auth > 1 || n_keys > 1;
}

int api_key_header(char **out, const struct http_req *r)
{
    char found[API_KEY_MAX];
    const char *key = api_key_of(r, found);
    *out = NULL;
    if (!key)
        return 0;
    const size_t cap = strlen(key) + sizeof("Bearer ");
    *out = mem_zalloc(cap);
    if (!*out)
        return SHOAL_ENOMEM;
    snprintf(*out, cap, "Bearer %s", key);
    return 0;
}
