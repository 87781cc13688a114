/* once_record.c - see once_record.h. */
#include "cluster/once/once_record.h"

#include <endian.h>
#include <string.h>

#define FORMAT 1u
#define FIXED_BYTES (1 + 1 + 8 + 32 + 1) /* format, state, until, body, length of the owner */

void once_record_put(struct buf *out, const struct once_record *r)
{
    uint64_t until = htole64(r->until_ms);
    size_t owner = strnlen(r->owner, ONCE_RECORD_MAX_OWNER);
    buf_putc(out, (char)FORMAT);
    buf_putc(out, (char)r->state);
    buf_put(out, &until, sizeof(until));
    buf_put(out, r->body, sizeof(r->body));
    buf_putc(out, (char)owner);
    buf_put(out, r->owner, owner);
    buf_put(out, r->answer, r->n_answer);
}

int once_record_read(struct once_record *r, const uint8_t *p, size_t n, struct err *e)
{
    uint64_t until;
    *r = (struct once_record){.state = ONCE_RECORD_FREE};
    if (n < FIXED_BYTES || p[0] != FORMAT || p[1] > ONCE_RECORD_PARTS ||
        p[FIXED_BYTES - 1] > ONCE_RECORD_MAX_OWNER || n - FIXED_BYTES < p[FIXED_BYTES - 1])
        return err_set(e, SHOAL_EFORMAT, "the record of an idempotency key is not readable");
    size_t owner = p[FIXED_BYTES - 1];
    memcpy(&until, p + 2, sizeof(until));
    r->state = (enum once_record_state)p[1];
    r->until_ms = le64toh(until);
    memcpy(r->body, p + 10, sizeof(r->body));
    for (size_t i = 0; i < owner; i++) { /* it will be printed */
        uint8_t c = p[FIXED_BYTES + i];
        r->owner[i] = c > 0x20 && c < 0x7f ? (char)c : '?';
    }
    r->answer = p + FIXED_BYTES + owner;
    r->n_answer = n - FIXED_BYTES - owner;
    return 0;
}

void once_record_put_about(struct buf *out, const struct once_record_about *a)
{
    uint32_t n[] = {htole32(a->prompt_tokens), htole32(a->cached_tokens),
                    htole32(a->generated_tokens)};
    uint8_t bytes[sizeof(n) + sizeof(a->node)];
    size_t node = strnlen(a->node, sizeof(a->node));
    memcpy(bytes, n, sizeof(n));
    memcpy(bytes + sizeof(n), a->node, node);
    once_record_put_message(out, bytes, sizeof(n) + node);
}

int once_record_read_about(struct once_record_about *a, const uint8_t *p, size_t n, struct err *e)
{
    uint32_t counts[3];
    *a = (struct once_record_about){.prompt_tokens = 0};
    if (n < sizeof(counts) || n - sizeof(counts) >= sizeof(a->node))
        return err_set(e, SHOAL_EFORMAT, "the answer to an idempotency key is not readable");
    memcpy(counts, p, sizeof(counts));
    a->prompt_tokens = le32toh(counts[0]);
    a->cached_tokens = le32toh(counts[1]);
    a->generated_tokens = le32toh(counts[2]);
    for (size_t i = 0; i < n - sizeof(counts); i++) { /* it will be sent as a response header */
        uint8_t c = p[sizeof(counts) + i];
        a->node[i] = c > 0x20 && c < 0x7f ? (char)c : '?';
    }
    return 0;
}

void once_record_put_parts(struct buf *out, const struct once_record_parts *p)
{
    const uint64_t n[] = {htole64(p->run), htole64(p->bytes)};
    buf_put(out, n, sizeof(n));
    buf_put(out, p->sum, sizeof(p->sum));
}

int once_record_read_parts(struct once_record_parts *p, const uint8_t *bytes, size_t n,
                           struct err *e)
{
    uint64_t numbers[2] = {0, 0};
    *p = (struct once_record_parts){.run = 0};
    if (n == sizeof(numbers) + sizeof(p->sum))
        memcpy(numbers, bytes, sizeof(numbers));
    p->run = le64toh(numbers[0]);
    p->bytes = le64toh(numbers[1]);
    if (p->bytes == 0 || p->bytes > ONCE_RECORD_MAX_PARTS * ONCE_RECORD_PART_BYTES)
        return err_set(e, SHOAL_EFORMAT, "the answer to an idempotency key is not readable");
    memcpy(p->sum, bytes + sizeof(numbers), sizeof(p->sum));
    return 0;
}

void once_record_put_message(struct buf *out, const void *p, size_t n)
{
    uint32_t bytes = htole32((uint32_t)n);
    buf_put(out, &bytes, sizeof(bytes));
    buf_put(out, p, n);
}

int64_t once_record_next_message(const uint8_t **p, size_t *n, const uint8_t *from, size_t bytes)
{
    uint32_t length;
    if (bytes == 0)
        return 0;
    if (bytes < sizeof(length))
        return SHOAL_EFORMAT;
    memcpy(&length, from, sizeof(length));
    length = le32toh(length);
    if (length > bytes - sizeof(length))
        return SHOAL_EFORMAT;
    *p = from + sizeof(length);
    *n = length;
    return (int64_t)(sizeof(length) + length);
}
