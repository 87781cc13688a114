/* tok_spiece.c - see tok_spiece.h. */
#include "text/tokenizer/tok_spiece.h"

#include <string.h>

#include "base/mem.h"
#include "base/rd.h"

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct spiece_field {
    uint64_t number;
    enum wire wire;
    uint64_t value; /* of a varint or of 32 bits */
    struct rd bytes;
};

static uint64_t read_varint(struct rd *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t b = rd_u8(r);
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80))
            return v;
    }
    r->bad = true;
    return 0;
}

/* The next field; false at the end and where the bytes are wrong (r->bad). */
static bool next_field(struct rd *r, struct spiece_field *f)
{
    if (r->bad || rd_left(r) == 0)
        return false;
    uint64_t key = read_varint(r), n;
    const uint8_t *at;
    *f = (struct spiece_field){.number = key >> 3, .wire = (enum wire)(key & 7)};
    switch (f->wire) {
    case WIRE_VARINT:
        f->value = read_varint(r);
        break;
    case WIRE_64:
        f->value = rd_u64(r);
        break;
    case WIRE_32:
        f->value = rd_u32(r);
        break;
    case WIRE_BYTES:
        n = read_varint(r);
        at = rd_take(r, n);
        f->bytes = rd_make(at ? at : (const uint8_t *)"", at ? (size_t)n : 0);
        break;
    default:
        r->bad = true;
    }
    return !r->bad;
}

static struct str text_of(const struct spiece_field *f)
{
    return (struct str){(const char *)f->bytes.p, rd_left(&f->bytes)};
}

static bool read_piece(struct tok_spiece_piece *p, struct rd r)
{
    struct spiece_field f;
    *p = (struct tok_spiece_piece){.text = {"", 0}, .type = TOK_SPIECE_NORMAL};
    while (next_field(&r, &f)) {
        uint32_t bits = (uint32_t)f.value;
        if (f.number == 1 && f.wire == WIRE_BYTES)
            p->text = text_of(&f);
        else if (f.number == 2 && f.wire == WIRE_32)
            memcpy(&p->score, &bits, sizeof(bits));
        else if (f.number == 3 && f.wire == WIRE_VARINT)
            p->type = bits;
    }
    return !r.bad;
}

static bool read_trainer(struct tok_spiece *m, struct rd r, uint64_t *kind)
{
    struct spiece_field f;
    while (next_field(&r, &f)) {
        int32_t v = (int32_t)(uint32_t)f.value;
        if (f.wire != WIRE_VARINT)
            continue;
        switch (f.number) {
        case 3:
            *kind = f.value;
            break;
        case 35:
            m->byte_fallback = f.value != 0;
            break;
        case 40:
            m->unk = v;
            break;
        case 41:
            m->bos = v;
            break;
        case 42:
            m->eos = v;
            break;
        case 43:
            m->pad = v;
            break;
        default:
            break;
        }
    }
    return !r.bad;
}

static bool read_normalizer(struct tok_spiece *m, struct rd r)
{
    struct spiece_field f;
    while (next_field(&r, &f)) {
        if (f.number == 2 && f.wire == WIRE_BYTES)
            m->charsmap = text_of(&f);
        else if (f.number == 3 && f.wire == WIRE_VARINT)
            m->dummy_prefix = f.value != 0;
        else if (f.number == 4 && f.wire == WIRE_VARINT)
            m->remove_extra = f.value != 0;
        else if (f.number == 5 && f.wire == WIRE_VARINT)
            m->escape = f.value != 0;
    }
    return !r.bad;
}

static int count_pieces(struct tok_spiece *m, struct rd r, struct err *e)
{
    struct spiece_field f;
    uint64_t n = 0;
    while (next_field(&r, &f))
        n += f.number == 1 && f.wire == WIRE_BYTES;
    if (r.bad || n == 0 || n > (1u << 24))
        return err_set(e, SHOAL_EFORMAT, "no SentencePiece model, or cut short at byte %zu",
                       rd_pos(&r));
    m->pieces = mem_zalloc_n(n, sizeof(*m->pieces));
    return m->pieces
               ? 0
               : err_set(e, SHOAL_ENOMEM, "out of memory for %llu pieces", (unsigned long long)n);
}

static void check_id(int32_t *id, uint32_t n)
{
    if (*id < 0 || (uint32_t)*id >= n)
        *id = -1;
}

int tok_spiece_read(struct tok_spiece *m, const void *bytes, size_t n, struct err *e)
{
    struct rd r = rd_make(bytes, n);
    struct spiece_field f;
    uint64_t kind = 1;
    bool ok = true;
    *m = (struct tok_spiece){.unk = 0, .bos = 1, .eos = 2, .pad = -1};
    m->dummy_prefix = m->remove_extra = m->escape = true;
    int rc = count_pieces(m, r, e);
    while (rc == 0 && ok && next_field(&r, &f)) {
        if (f.wire != WIRE_BYTES)
            continue;
        if (f.number == 1)
            ok = read_piece(&m->pieces[m->n_pieces++], f.bytes);
        else if (f.number == 2)
            ok = read_trainer(m, f.bytes, &kind);
        else if (f.number == 3)
            ok = read_normalizer(m, f.bytes);
    }
    if (rc == 0 && !ok)
        rc = err_set(e, SHOAL_EFORMAT, "a broken message before byte %zu", rd_pos(&r));
    if (rc == 0 && kind != 1 && kind != 2)
        rc = err_set(e, SHOAL_EUNSUPPORTED, "model type %llu is not supported",
                     (unsigned long long)kind);
    m->bpe = kind == 2;
    check_id(&m->unk, m->n_pieces);
    check_id(&m->bos, m->n_pieces);
    check_id(&m->eos, m->n_pieces);
    check_id(&m->pad, m->n_pieces);
    if (rc < 0)
        tok_spiece_fini(m);
    return rc;
}

void tok_spiece_fini(struct tok_spiece *m)
{
    mem_free(m->pieces);
    m->pieces = NULL;
    m->n_pieces = 0;
}
