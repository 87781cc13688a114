/* image_fit.h - the picture that a model reads, from a file: decoded, upright, resized, cropped.
 *
 * Thread:    any; no state.
 * Ownership: the caller's buffer.
 * Failure:   as image_decode. */
#ifndef SHOAL_IMAGE_IMAGE_FIT_H
#define SHOAL_IMAGE_IMAGE_FIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "image/resample.h"

struct image_fit {
    uint32_t width, height; /* of the result */
    /* Resized to exactly so many pixels; or, shortest not 0, so that its shorter side has as many
     * and its form stays; no side less than the result's, which is the middle of it. */
    uint32_t to_width, to_height, shortest;
    enum resample_filter filter;
};

/* out: [height][width][3] */
SHOAL_MUST_CHECK int image_fit(const struct image_fit *f, uint8_t *out, const void *bytes, size_t n,
                               struct err *e);

#endif
