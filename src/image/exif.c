/* exif.c - see exif.h. */
#include "image/exif.h"

#include <string.h>

#include "base/rd.h"

#define UPRIGHT 1u
#define ORIENTATION 0x0112u /* the tag; its value is a SHORT */
#define MAX_SEGMENTS 256u   /* of a file that are looked at */

static uint32_t swap_if(bool big, uint32_t v, unsigned bytes)
{
    return !big ? v : bytes == 2 ? __builtin_bswap16((uint16_t)v) : __builtin_bswap32(v);
}

unsigned exif_orientation(const uint8_t *tiff, size_t n)
{
    if (n >= 6 && memcmp(tiff, "Exif\0\0", 6) == 0) {
        tiff += 6;
        n -= 6;
    }
    struct rd r = rd_make(tiff, n);
    const uint8_t *order = rd_take(&r, 2);
    if (!order || (memcmp(order, "II", 2) != 0 && memcmp(order, "MM", 2) != 0))
        return UPRIGHT;
    const bool big = order[0] == 'M';
    if (swap_if(big, rd_u16(&r), 2) != 42)
        return UPRIGHT;
    const uint32_t at = swap_if(big, rd_u32(&r), 4);
    if (at > n)
        return UPRIGHT;
    r = rd_make(tiff + at, n - at);
    for (uint32_t left = swap_if(big, rd_u16(&r), 2); left > 0 && !r.bad; left--) {
        const uint32_t tag = swap_if(big, rd_u16(&r), 2), type = swap_if(big, rd_u16(&r), 2);
        const uint32_t count = swap_if(big, rd_u32(&r), 4), value = swap_if(big, rd_u16(&r), 2);
        (void)rd_u16(&r);
        if (!r.bad && tag == ORIENTATION && type == 3 && count == 1 && value >= 1 && value <= 8)
            return value;
    }
    return UPRIGHT;
}

unsigned exif_orientation_jpeg(const uint8_t *bytes, size_t n)
{
    struct rd r = rd_make(bytes, n);
    (void)rd_u16(&r); /* the start of the image */
    for (uint32_t i = 0; i < MAX_SEGMENTS; i++) {
        const uint8_t mark = rd_u8(&r), kind = rd_u8(&r);
        if (r.bad || mark != 0xff || kind == 0xda) /* the data begins */
            return UPRIGHT;
        const uint32_t size = swap_if(true, rd_u16(&r), 2);
        const uint8_t *at = size >= 2 ? rd_take(&r, size - 2) : NULL;
        if (!at)
            return UPRIGHT;
        if (kind == 0xe1 && size >= 8 && memcmp(at, "Exif\0\0", 6) == 0)
            return exif_orientation(at, size - 2);
    }
    return UPRIGHT;
}

unsigned exif_orientation_webp(const uint8_t *bytes, size_t n)
{
    struct rd r = rd_make(bytes, n);
    (void)rd_take(&r, 12); /* RIFF, size, WEBP */
    for (uint32_t i = 0; i < MAX_SEGMENTS && !r.bad; i++) {
        const uint8_t *kind = rd_take(&r, 4);
        const uint32_t size = rd_u32(&r);
        const uint8_t *at = rd_take(&r, size);
        if (at && memcmp(kind, "EXIF", 4) == 0)
            return exif_orientation(at, size);
        if (size % 2 != 0)
            (void)rd_u8(&r);
    }
    return UPRIGHT;
}
