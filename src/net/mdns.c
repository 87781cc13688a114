/* mdns.c - see mdns.h. */
#include "net/mdns.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/rd.h"

#define DOMAIN "local"
#define HEADER 12u
#define MAX_JUMPS 16u
#define MAX_RECORDS 64u
#define TTL_S 120u
#define LEGACY_TTL_S 10u /* for those who do not listen: RFC 6762, 6.7 */
#define IS_ANSWER 0x8000u
#define AUTHORITATIVE 0x0400u
#define FLUSH 0x8000u /* replaces what others remember */
enum { TYPE_A = 1, TYPE_PTR = 12, TYPE_TXT = 16, TYPE_SRV = 33, TYPE_ANY = 255, CLASS_IN = 1 };

/* ---- writing ---- */

static void put_u16(struct buf *b, unsigned v)
{
    buf_putc(b, (char)(v >> 8 & 255));
    buf_putc(b, (char)(v & 255));
}

static void put_u32(struct buf *b, uint32_t v)
{
    put_u16(b, v >> 16);
    put_u16(b, v & 0xffff);
}

static void put_label(struct buf *b, const char *s, size_t n)
{
    buf_putc(b, (char)n);
    buf_put(b, s, n);
}

/* instance "": none.  name: labels, separated by dots. */
static void put_name(struct buf *b, const char *instance, const char *name)
{
    if (instance[0])
        put_label(b, instance, strlen(instance));
    for (const char *p = name; *p;) {
        const size_t n = strcspn(p, ".");
        put_label(b, p, n);
        p += n + (p[n] == '.');
    }
    put_label(b, DOMAIN, strlen(DOMAIN));
    buf_putc(b, 0);
}

static void put_header(struct buf *b, unsigned id, unsigned flags, unsigned questions,
                       unsigned answers, unsigned more)
{
    const unsigned words[] = {id, flags, questions, answers, 0, more};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        put_u16(b, words[i]);
}

int mdns_put_question(struct buf *out, const char *type)
{
    put_header(out, 0, 0, 1, 0, 0);
    put_name(out, "", type);
    put_u16(out, TYPE_PTR);
    put_u16(out, CLASS_IN);
    return out->rc;
}

static void put_record(struct buf *b, unsigned type, bool unique, bool legacy,
                       const struct buf *data)
{
    put_u16(b, type);
    put_u16(b, CLASS_IN | (unique && !legacy ? FLUSH : 0));
    put_u32(b, legacy ? LEGACY_TTL_S : TTL_S);
    put_u16(b, (unsigned)data->len);
    buf_put(b, data->data, data->len);
}

/* The data of one of the records. */
static void put_data(struct buf *b, const struct mdns_service *s, unsigned type)
{
    buf_clear(b);
    if (type == TYPE_PTR) {
        put_name(b, s->instance, s->type);
    } else if (type == TYPE_SRV) {
        put_u32(b, 0); /* priority and weight */
        put_u16(b, s->port);
        put_name(b, s->instance, "");
    } else if (type == TYPE_TXT) {
        put_label(b, s->txt, strlen(s->txt));
    } else {
        buf_put(b, s->address, sizeof(s->address));
    }
}

int mdns_put_answer(struct buf *out, const struct mdns_service *s, uint16_t id)
{
    static const unsigned types[] = {TYPE_PTR, TYPE_SRV, TYPE_TXT, TYPE_A};
    const bool legacy = id != 0;
    struct buf data;
    if (!s->instance[0] || strchr(s->instance, '.') || strlen(s->txt) > 255)
        return SHOAL_EINVAL;
    buf_init(&data, MDNS_MAX_BYTES);
    put_header(out, id, IS_ANSWER | AUTHORITATIVE, legacy ? 1 : 0, 1, 3);
    if (legacy) { /* the question again */
        put_name(out, "", s->type);
        put_u16(out, TYPE_PTR);
        put_u16(out, CLASS_IN);
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        put_data(&data, s, types[i]);
        if (types[i] == TYPE_PTR)
            put_name(out, "", s->type);
        else
            put_name(out, s->instance, types[i] == TYPE_A ? "" : s->type);
        put_record(out, types[i], types[i] != TYPE_PTR, legacy, &data);
    }
    int rc = data.rc < 0 ? data.rc : out->rc;
    buf_fini(&data);
    return rc;
}

/* ---- reading ---- */

static unsigned read_u16(struct rd *r)
{
    const unsigned high = rd_u8(r);
    return high << 8 | rd_u8(r);
}

/* One label after the other; a pointer leads to a name before it, so that there is an end. */
static void read_name(struct rd *r, char out[MDNS_MAX_NAME])
{
    struct rd at = *r;
    size_t len = 0, limit = rd_pos(r);
    bool jumped = false;
    out[0] = '\0';
    for (unsigned jumps = 0;;) {
        const unsigned n = rd_u8(&at);
        if ((n & 0xc0) == 0xc0) {
            const size_t to = (n & 0x3f) << 8 | rd_u8(&at);
            if (!jumped)
                *r = at;
            if (at.bad || to >= limit || ++jumps > MAX_JUMPS) {
                r->bad = true;
                return;
            }
            jumped = true;
            limit = to;
            at.p = at.start + to;
            continue;
        }
        const uint8_t *label = n > 0 && n < 64 ? rd_take(&at, n) : NULL;
        if (n == 0 && !at.bad)
            break;
        if (!label || len + n + 2 > MDNS_MAX_NAME || memchr(label, 0, n) || memchr(label, '.', n)) {
            r->bad = true;
            return;
        }
        if (len > 0)
            out[len++] = '.';
        memcpy(out + len, label, n);
        len += n;
        out[len] = '\0';
    }
    if (!jumped)
        *r = at;
}

struct header {
    unsigned id, flags, questions, records;
};

static struct header read_header(struct rd *r)
{
    struct header h = {.id = read_u16(r)};
    h.flags = read_u16(r);
    h.questions = read_u16(r);
    for (int i = 0; i < 3; i++)
        h.records += read_u16(r);
    return h;
}

static void full_type(char out[MDNS_MAX_NAME], const char *type)
{
    snprintf(out, MDNS_MAX_NAME, "%s." DOMAIN, type);
}

int mdns_read_question(const void *bytes, size_t n, const char *type, uint16_t *id, struct err *e)
{
    struct rd r = rd_make(bytes, n);
    const struct header h = read_header(&r);
    char want[MDNS_MAX_NAME], name[MDNS_MAX_NAME];
    bool asks = false;
    full_type(want, type);
    *id = (uint16_t)h.id;
    if (r.bad || h.questions > MAX_RECORDS)
        return err_set(e, SHOAL_EFORMAT, "the message is damaged");
    for (unsigned i = 0; !(h.flags & IS_ANSWER) && i < h.questions && !r.bad; i++) {
        read_name(&r, name);
        const unsigned kind = read_u16(&r);
        (void)read_u16(&r);
        asks |= !r.bad && (kind == TYPE_PTR || kind == TYPE_ANY) && strcasecmp(name, want) == 0;
    }
    if (r.bad)
        return err_set(e, SHOAL_EFORMAT, "the message is damaged");
    return asks ? 0 : err_set(e, SHOAL_ENOTFOUND, "the message does not ask for %.63s", type);
}

/* What is found of a service, one record after the other. */
struct finding {
    char want[MDNS_MAX_NAME]; /* the full type */
    char instance[MDNS_MAX_NAME], target[MDNS_MAX_NAME];
    unsigned port;
    uint8_t address[4];
    char txt[MDNS_MAX_TXT];
    bool has_srv, has_address;
};

static void read_txt(struct finding *f, struct rd *data)
{
    const unsigned n = rd_u8(data);
    const uint8_t *s = rd_take(data, n);
    if (s && !memchr(s, 0, n) && n < sizeof(f->txt)) {
        memcpy(f->txt, s, n);
        f->txt[n] = '\0';
    }
}

/* data: begins at the record's data, and may lead back into the message. */
static void take_record(struct finding *f, const char *name, unsigned kind, struct rd *data)
{
    char text[MDNS_MAX_NAME];
    if (kind == TYPE_PTR && !f->instance[0] && strcasecmp(name, f->want) == 0) {
        read_name(data, text);
        if (!data->bad)
            memcpy(f->instance, text, sizeof(text));
    } else if (kind == TYPE_SRV && f->instance[0] && strcasecmp(name, f->instance) == 0) {
        (void)rd_take(data, 4);
        const unsigned port = read_u16(data);
        read_name(data, text);
        f->has_srv = !data->bad && port > 0;
        f->port = port;
        if (f->has_srv)
            memcpy(f->target, text, sizeof(text));
    } else if (kind == TYPE_TXT && f->instance[0] && strcasecmp(name, f->instance) == 0) {
        read_txt(f, data);
    } else if (kind == TYPE_A && f->has_srv && strcasecmp(name, f->target) == 0) {
        const uint8_t *a = rd_take(data, 4);
        f->has_address = a != NULL;
        if (a)
            memcpy(f->address, a, 4);
    }
}

/* Later records name earlier ones in our own answers; others may order them as they like. */
static void read_records(struct finding *f, struct rd r, unsigned n)
{
    char name[MDNS_MAX_NAME];
    for (unsigned i = 0; i < n && !r.bad; i++) {
        read_name(&r, name);
        const unsigned kind = read_u16(&r);
        (void)rd_take(&r, 6); /* class and time to live */
        const unsigned len = read_u16(&r);
        struct rd data = r;
        if (!rd_take(&r, len))
            break;
        data.end = r.p;
        take_record(f, name, kind, &data);
    }
}

int mdns_read_answer(struct mdns_service *out, const void *bytes, size_t n, const char *type,
                     struct err *e)
{
    struct rd r = rd_make(bytes, n);
    const struct header h = read_header(&r);
    struct finding f = {.port = 0};
    char name[MDNS_MAX_NAME];
    *out = (struct mdns_service){.port = 0};
    full_type(f.want, type);
    for (unsigned i = 0; i < h.questions && i < MAX_RECORDS && !r.bad; i++) {
        read_name(&r, name);
        (void)rd_take(&r, 4);
    }
    if (r.bad || h.questions > MAX_RECORDS || h.records > MAX_RECORDS)
        return err_set(e, SHOAL_EFORMAT, "the message is damaged");
    for (int again = 0; (h.flags & IS_ANSWER) && again < 3; again++) /* PTR, then SRV, then A */
        read_records(&f, r, h.records);
    const size_t label = strcspn(f.instance, ".");
    if (!f.has_srv || !f.has_address || label == 0 || label >= sizeof(out->instance))
        return err_set(e, SHOAL_ENOTFOUND, "the message does not tell where a %.63s is", type);
    memcpy(out->instance, f.instance, label);
    snprintf(out->type, sizeof(out->type), "%s", type);
    snprintf(out->txt, sizeof(out->txt), "%s", f.txt);
    out->port = (uint16_t)f.port;
    memcpy(out->address, f.address, 4);
    return 0;
}
