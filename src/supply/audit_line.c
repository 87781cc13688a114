/* audit_line.c - see audit_line.h. */
#include "supply/audit_line.h"

#include <string.h>

#include "supply/base64.h"
#include "wire/json_in.h"

#define TAIL ",\"chain\":\""

const char *audit_kind_name(enum audit_kind k)
{
    static const char *const names[] = {"request",    "refused", "admin",
                                        "checkpoint", "restart", "lost"};
    return names[k];
}

bool audit_line_chain(uint8_t out[SHA256_BYTES], const uint8_t before[SHA256_BYTES],
                      const void *text, size_t n_covered)
{
    struct sha256 s;
    sha256_begin(&s);
    sha256_add(&s, before, SHA256_BYTES);
    sha256_add(&s, text, n_covered);
    return sha256_end(&s, out);
}

void audit_line_signed(uint8_t out[AUDIT_LINE_SIGNED], const uint8_t chain[SHA256_BYTES])
{
    memcpy(out, "shoal audit\n", AUDIT_LINE_SIGNED - SHA256_BYTES);
    memcpy(out + AUDIT_LINE_SIGNED - SHA256_BYTES, chain, SHA256_BYTES);
}

static bool read_count(uint64_t *out, const cJSON *o, const char *key)
{
    const cJSON *v = json_in_item(o, key);
    if (!cJSON_IsNumber(v) || v->valuedouble < 0 || v->valuedouble > 9e15 ||
        (double)(uint64_t)v->valuedouble != v->valuedouble)
        return false;
    *out = (uint64_t)v->valuedouble;
    return true;
}

static bool read_hex(uint8_t out[SHA256_BYTES], const cJSON *o, const char *key)
{
    const cJSON *v = json_in_item(o, key);
    return cJSON_IsString(v) && strlen(v->valuestring) == 2 * SHA256_BYTES &&
           sha256_read_hex(out, v->valuestring);
}

static bool read_signature(struct audit_line *out, const cJSON *o)
{
    const cJSON *v = json_in_item(o, "signature");
    struct arena a;
    size_t n = 0;
    arena_init(&a, 4096);
    const uint8_t *bytes =
        cJSON_IsString(v) ? base64_read(&a, v->valuestring, strlen(v->valuestring), &n) : NULL;
    bool ok = bytes && n == sizeof(out->signature);
    if (ok)
        memcpy(out->signature, bytes, n);
    arena_fini(&a);
    return ok && read_hex(out->before, o, "before");
}

static int read_members(struct audit_line *out, const cJSON *o, struct err *e)
{
    const cJSON *kind = json_in_item(o, "kind");
    if (!read_count(&out->n, o, "n") || !cJSON_IsString(kind) || !read_hex(out->chain, o, "chain"))
        return err_set(e, SHOAL_EFORMAT, "not a line of an audit log");
    for (out->kind = 0; out->kind < AUDIT_KINDS; out->kind++)
        if (strcmp(kind->valuestring, audit_kind_name(out->kind)) == 0)
            break;
    if (out->kind == AUDIT_KINDS)
        return err_set(e, SHOAL_EFORMAT, "unknown kind '%.20s'", kind->valuestring);
    if (out->kind == AUDIT_CHECKPOINT && !read_signature(out, o))
        return err_set(e, SHOAL_EFORMAT, "a checkpoint without a signature");
    if ((out->kind == AUDIT_RESTART && !read_count(&out->torn, o, "torn")) ||
        (out->kind == AUDIT_LOST && !read_count(&out->lost, o, "lines")))
        return err_set(e, SHOAL_EFORMAT, "a count is missing");
    return 0;
}

int audit_line_read(struct audit_line *out, const char *text, size_t n, struct err *e)
{
    const size_t tail = sizeof(TAIL) - 1 + 2 * SHA256_BYTES + 2; /* and "} */
    cJSON *o = NULL;
    *out = (struct audit_line){.n = 0};
    if (n <= tail || n > AUDIT_LINE_MAX || memcmp(text + n - tail, TAIL, sizeof(TAIL) - 1) != 0 ||
        memcmp(text + n - 2, "\"}", 2) != 0)
        return err_set(e, SHOAL_EFORMAT, "not a whole line of an audit log");
    out->n_covered = n - tail;
    int rc = json_in_object(&o, "line", text, n, AUDIT_LINE_MAX, e);
    if (rc == 0)
        rc = read_members(out, o, e);
    cJSON_Delete(o);
    return rc < 0 ? SHOAL_EFORMAT : 0;
}
