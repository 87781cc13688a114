/* trace_context.c - see trace_context.h. */
#include "trace/trace_context.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/hash.h"

/* Where the fields of "00-<32 id>-<16 span>-<2 flags>" begin. */
enum { AT_ID = 3, AT_SPAN = 36, AT_FLAGS = 53 };

static uint64_t salt[2];

static void make_salt(void)
{
    if (getrandom(salt, sizeof(salt), GRND_NONBLOCK) != (ssize_t)sizeof(salt))
        salt[0] = hash_mix(clock_ns()); /* ids need to differ, not to be secret */
}

/* Another number at every call. */
static uint64_t fresh(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static atomic_uint_least64_t n;
    pthread_once(&once, make_salt);
    const uint64_t at[2] = {atomic_fetch_add(&n, 1), salt[1]};
    const uint64_t id = hash_bytes(at, sizeof(at), salt[0]);
    return id ? id : 1;
}

/* -1: not a lower-case hex digit */
static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_byte(uint8_t *out, const char *p)
{
    const int high = digit(p[0]), low = high < 0 ? -1 : digit(p[1]);
    *out = (uint8_t)(low < 0 ? 0 : high << 4 | low);
    return low >= 0;
}

bool trace_context_read(struct trace_context *out, const char *text)
{
    static const uint8_t none[16];
    uint8_t version, flags, byte;
    *out = (struct trace_context){.span = 0};
    const size_t n = text ? strlen(text) : 0;
    if (n < TRACE_CONTEXT_CHARS || !read_byte(&version, text) || version == 0xff ||
        (version == 0 ? n != TRACE_CONTEXT_CHARS
                      : n > TRACE_CONTEXT_CHARS && text[TRACE_CONTEXT_CHARS] != '-') ||
        text[AT_ID - 1] != '-' || text[AT_SPAN - 1] != '-' || text[AT_FLAGS - 1] != '-' ||
        !read_byte(&flags, text + AT_FLAGS))
        return false;
    for (int i = 0; i < 16; i++)
        if (!read_byte(&out->id[i], text + AT_ID + i * 2))
            return false;
    for (int i = 0; i < 8; i++) {
        if (!read_byte(&byte, text + AT_SPAN + i * 2))
            return false;
        out->span = out->span << 8 | byte;
    }
    out->sampled = flags & 1;
    return out->span != 0 && memcmp(out->id, none, sizeof(none)) != 0;
}

void trace_context_id(char out[33], const struct trace_context *c)
{
    for (int i = 0; i < 16; i++) { /* a ring compares many of them */
        out[i * 2] = "0123456789abcdef"[c->id[i] >> 4];
        out[i * 2 + 1] = "0123456789abcdef"[c->id[i] & 15];
    }
    out[32] = '\0';
}

void trace_context_write(char out[TRACE_CONTEXT_CHARS + 1], const struct trace_context *c)
{
    char id[33], span[17];
    trace_context_id(id, c);
    hash_hex(span, c->span);
    snprintf(out, TRACE_CONTEXT_CHARS + 1, "00-%s-%s-0%c", id, span, c->sampled ? '1' : '0');
}

struct trace_context trace_context_new(void)
{
    struct trace_context c = {.sampled = true};
    const uint64_t id[2] = {fresh(), fresh()};
    memcpy(c.id, id, sizeof(id));
    return c;
}

uint64_t trace_context_new_span(void)
{
    return fresh();
}
