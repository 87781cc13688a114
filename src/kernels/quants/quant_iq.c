/* quant_iq.c - codebooks of the IQ encodings, and decoding IQ2_XXS.
 *
 * IQ2_XXS names each group of 8 magnitudes by one byte: its place in a list of 256 points of the
 * lattice {8, 25, 43}^8.  The list is part of the format and is kept here as numbers in base 3,
 * first magnitude in the lowest digit. */
#include "kernels/quants/quant_iq.h"

#include <string.h>

#include "kernels/quants/quant_half.h"

const int8_t quant_iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};

static const uint16_t iq2_xxs_points[256] = {
    0,    2,    4,    6,    8,    10,   12,   18,   20,   24,   26,   28,   30,   36,   42,   46,
    48,   54,   56,   62,   74,   82,   84,   90,   94,   108,  138,  150,  162,  164,  182,  218,
    244,  246,  252,  262,  264,  270,  272,  276,  288,  298,  300,  306,  318,  324,  326,  330,
    342,  356,  376,  378,  388,  412,  414,  432,  462,  480,  486,  490,  492,  498,  510,  514,
    516,  522,  524,  546,  570,  594,  650,  660,  730,  732,  738,  748,  756,  774,  786,  792,
    796,  810,  816,  828,  846,  854,  864,  912,  922,  972,  978,  990,  994,  1006, 1026, 1068,
    1100, 1134, 1148, 1216, 1218, 1224, 1242, 1270, 1296, 1300, 1368, 1414, 1458, 1460, 1466, 1488,
    1504, 1512, 1514, 1564, 1572, 1620, 1622, 1702, 1704, 1710, 1728, 1742, 1782, 1810, 1830, 1926,
    1950, 1962, 2010, 2136, 2188, 2190, 2196, 2202, 2206, 2208, 2214, 2220, 2228, 2232, 2242, 2244,
    2250, 2268, 2286, 2314, 2322, 2326, 2350, 2358, 2382, 2390, 2400, 2430, 2436, 2448, 2484, 2500,
    2522, 2532, 2592, 2674, 2676, 2682, 2700, 2704, 2754, 2796, 2800, 2810, 2866, 2898, 2916, 2922,
    2926, 2932, 2934, 2970, 2976, 3000, 3026, 3072, 3142, 3222, 3224, 3248, 3322, 3360, 3402, 3412,
    3418, 3450, 3510, 3570, 3648, 3654, 3672, 3696, 3726, 3766, 3822, 3852, 3888, 3892, 3978, 3980,
    4026, 4160, 4374, 4376, 4382, 4402, 4430, 4458, 4470, 4482, 4546, 4618, 4620, 4626, 4630, 4644,
    4662, 4698, 4730, 4764, 4786, 4806, 4824, 4862, 4944, 5032, 5106, 5112, 5124, 5130, 5176, 5198,
    5238, 5296, 5346, 5366, 5376, 5464, 5644, 5688, 5834, 5868, 5890, 5920, 5994, 6090, 6354, 6402,
};

/* Each 32 values take two words: four list places, then four 7-bit sign sets and a 4-bit scale.
 * The eighth sign of a set is not stored: the number of minus signs is even. */
void quant_iq2_xxs_block(const uint8_t *b, float *y)
{
    static const float levels[3] = {8, 25, 43};
    uint16_t h;
    memcpy(&h, b, sizeof(h));
    float d = quant_f16_to_f32(h);

    b += 2;
    for (int i = 0; i < 8; i++, b += 8) {
        uint32_t packed;
        memcpy(&packed, b + 4, sizeof(packed));
        float db = d * (0.5f + (float)(packed >> 28)) * 0.25f;
        for (int l = 0; l < 4; l++) {
            uint32_t point = iq2_xxs_points[b[l]];
            uint32_t signs = packed >> (7 * l) & 127;
            signs |= (uint32_t)__builtin_parity(signs) << 7;
            for (int j = 0; j < 8; j++, point /= 3)
                *y++ = db * levels[point % 3] * (signs >> j & 1 ? -1.0f : 1.0f);
        }
    }
}
