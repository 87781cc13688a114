/* modbus_tag.c - see modbus_tag.h. */
#include "site/modbus/modbus_tag.h"

#include <math.h>
#include <string.h>

#include "config/config_modbus.h"

/* Registers to a number whose highest word is first, or back: the same exchange. */
static void arrange(uint32_t order, const uint16_t *in, uint16_t *out, uint32_t n)
{
    bool words = order == CONFIG_MODBUS_CDAB || order == CONFIG_MODBUS_DCBA;
    bool bytes = order == CONFIG_MODBUS_BADC || order == CONFIG_MODBUS_DCBA;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t w = in[words ? n - 1 - i : i];
        out[i] = (uint16_t)(bytes ? (w & 0xffu) << 8 | w >> 8 : w);
    }
}

static double number_of(uint32_t type, uint64_t bits)
{
    float f;
    double d;
    uint32_t half = (uint32_t)bits;
    switch (type) {
    case CONFIG_MODBUS_INT16:
        return (int16_t)bits;
    case CONFIG_MODBUS_INT32:
        return (int32_t)half;
    case CONFIG_MODBUS_FLOAT32:
        memcpy(&f, &half, sizeof(f));
        return (double)f;
    case CONFIG_MODBUS_FLOAT64:
        memcpy(&d, &bits, sizeof(d));
        return d;
    case CONFIG_MODBUS_BOOL:
        return bits != 0;
    default:
        return (double)bits;
    }
}

double modbus_tag_decode(const struct config_modbus_tag *t, const uint16_t *words)
{
    uint16_t w[MODBUS_TAG_MAX_WORDS];
    uint32_t n = config_modbus_width(t);
    uint64_t bits = 0;
    arrange(t->order, words, w, n);
    for (uint32_t i = 0; i < n; i++)
        bits = bits << 16 | w[i];
    return t->scale * number_of(t->type, bits) + t->offset;
}

/* The range of whole numbers of a type; false: it is no such type. */
static bool range_of(uint32_t type, double *low, double *high)
{
    static const struct {
        double low, high;
    } ranges[] = {
        [CONFIG_MODBUS_INT16] = {INT16_MIN, INT16_MAX},
        [CONFIG_MODBUS_UINT16] = {0, UINT16_MAX},
        [CONFIG_MODBUS_INT32] = {INT32_MIN, INT32_MAX},
        [CONFIG_MODBUS_UINT32] = {0, UINT32_MAX},
        [CONFIG_MODBUS_FLOAT32] = {0, 0},
        [CONFIG_MODBUS_FLOAT64] = {0, 0},
        [CONFIG_MODBUS_BOOL] = {0, 1},
    };
    *low = ranges[type].low;
    *high = ranges[type].high;
    return type != CONFIG_MODBUS_FLOAT32 && type != CONFIG_MODBUS_FLOAT64;
}

int modbus_tag_encode(const struct config_modbus_tag *t, double value,
                      uint16_t words[MODBUS_TAG_MAX_WORDS], struct err *e)
{
    double raw = (value - t->offset) / t->scale, low, high;
    uint16_t w[MODBUS_TAG_MAX_WORDS];
    uint32_t n = config_modbus_width(t), half;
    uint64_t bits = 0;
    float f = (float)raw;
    if (range_of(t->type, &low, &high)) {
        raw = round(raw);
        if (!(raw >= low && raw <= high))
            return err_set(e, SHOAL_EINVAL, "%g does not fit into the registers of %s", value,
                           t->name);
        bits = (uint64_t)(int64_t)raw;
    } else if (!isfinite(raw) || (t->type == CONFIG_MODBUS_FLOAT32 && !isfinite(f))) {
        return err_set(e, SHOAL_EINVAL, "%g does not fit into the registers of %s", value, t->name);
    } else if (t->type == CONFIG_MODBUS_FLOAT32) {
        memcpy(&half, &f, sizeof(half));
        bits = half;
    } else {
        memcpy(&bits, &raw, sizeof(bits));
    }
    for (uint32_t i = 0; i < n; i++)
        w[i] = (uint16_t)(bits >> 16 * (n - 1 - i));
    arrange(t->order, w, words, n);
    return 0;
}
