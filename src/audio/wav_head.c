/* wav_head.c - see wav_head.h. */
#include "audio/wav_head.h"

#include <stdint.h>
#include <string.h>

static uint32_t u16(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32(const uint8_t *p)
{
    return u16(p) | u16(p + 2) << 16;
}

static int read_format(const uint8_t *p, uint32_t n, struct pcm_form *f, struct err *e)
{
    if (n < 16)
        return err_set(e, SHOAL_EFORMAT, "the WAV file says nothing about its samples");
    uint32_t kind = u16(p);
    if (kind == 0xfffe && n >= 26) /* extensible: the kind is in its name */
        kind = u16(p + 24);
    const uint32_t bits = u16(p + 14);
    *f = (struct pcm_form){
        .rate = u32(p + 4), .channels = u16(p + 2), .width = bits / 8, .is_float = kind == 3};
    if ((kind != 1 && kind != 3) || bits % 8 != 0)
        return err_set(e, SHOAL_EFORMAT,
                       "the WAV file has samples of kind %u with %u bits; plain ones are expected",
                       kind, bits);
    return 0;
}

int wav_head(const void *bytes, size_t n, struct pcm_form *form, size_t *skip, struct err *e)
{
    const uint8_t *p = bytes;
    size_t at = 12;
    bool known = false;
    if (n < 12)
        return 0;
    if (memcmp(p, "RIFF", 4) != 0 || memcmp(p + 8, "WAVE", 4) != 0)
        return err_set(e, SHOAL_EFORMAT, "this is not a WAV file");
    while (at + 8 <= n) {
        const uint32_t size = u32(p + at + 4);
        if (memcmp(p + at, "data", 4) == 0) {
            *skip = at + 8;
            return known ? 1
                         : err_set(e, SHOAL_EFORMAT, "the WAV file says nothing about its samples");
        }
        if (size > WAV_HEAD_MOST)
            break;
        if (at + 8 + size > n)
            return n < WAV_HEAD_MOST ? 0 : err_set(e, SHOAL_EFORMAT, "the WAV file has no samples");
        if (memcmp(p + at, "fmt ", 4) == 0) {
            const int rc = read_format(p + at + 8, size, form, e);
            if (rc < 0)
                return rc;
            known = true;
        }
        at += 8 + size + (size & 1);
    }
    return at + 8 > n && n < WAV_HEAD_MOST
               ? 0
               : err_set(e, SHOAL_EFORMAT, "the WAV file has no samples");
}
