/* plugin_frame.c - see plugin_frame.h. */
#include "site/deeds/plugin_frame.h"

#include "base/utf8.h"

#define MAGIC 0x31677570u /* "pug1" */

static const int codes[] = {0, SHOAL_EIO, SHOAL_ENOTFOUND, SHOAL_EUNSUPPORTED, SHOAL_ELIMIT};
#define N_CODES (sizeof(codes) / sizeof(codes[0]))

static void put_u32(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(v >> (8 * i));
}

static uint32_t get_u32(const uint8_t *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
           (uint32_t)from[3] << 24;
}

void plugin_frame_write(uint8_t out[PLUGIN_FRAME_HEAD_BYTES], const struct plugin_frame_answer *a)
{
    uint32_t code = 0;
    while (code < N_CODES && codes[code] != a->code)
        code++;
    put_u32(out, MAGIC);
    put_u32(out + 4, code < N_CODES ? code : 1); /* any other failure: SHOAL_EIO */
    put_u32(out + 8, a->why_bytes);
    put_u32(out + 12, a->text_bytes);
}

int plugin_frame_read(struct plugin_frame_answer *out, const uint8_t head[PLUGIN_FRAME_HEAD_BYTES],
                      size_t max_text_bytes)
{
    const uint32_t code = get_u32(head + 4);
    *out = (struct plugin_frame_answer){.why_bytes = get_u32(head + 8),
                                        .text_bytes = get_u32(head + 12)};
    if (get_u32(head) != MAGIC || code >= N_CODES || out->why_bytes >= PLUGIN_FRAME_WHY_BYTES ||
        out->text_bytes > PLUGIN_FRAME_MAX_BYTES || out->text_bytes > max_text_bytes ||
        (code != 0 && out->text_bytes > 0))
        return SHOAL_EFORMAT;
    out->code = codes[code];
    return 0;
}

void plugin_frame_clean(char *text, size_t n)
{
    const uint8_t *end = (const uint8_t *)text + n;
    for (size_t i = 0; i < n;) {
        uint32_t cp = 0;
        unsigned len = utf8_decode((const uint8_t *)text + i, end, &cp);
        if (len == 0 || cp < 0x20 || cp == 0x7f)
            text[i] = '?';
        i += len ? len : 1;
    }
}
