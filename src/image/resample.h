/* resample.h - another size for an image: the bits of Pillow's Image.resize.
 *
 * Two passes, rows first, each with weights that are rounded to 22 bits and a result of 8 bits.
 * When an image becomes smaller, the filter becomes wider, so that no pixel is left out.
 *
 * Thread:    any; no state.
 * Ownership: the caller's buffers.
 * Failure:   SHOAL_ENOMEM. */
#ifndef SHOAL_IMAGE_RESAMPLE_H
#define SHOAL_IMAGE_RESAMPLE_H

#include <stdint.h>

#include "base/err.h"

enum resample_filter { RESAMPLE_LANCZOS = 1, RESAMPLE_BILINEAR = 2, RESAMPLE_BICUBIC = 3 };

/* in: [height][width][3]; out: [to_height][to_width][3].  No size is 0. */
SHOAL_MUST_CHECK int resample(uint8_t *out, uint32_t to_width, uint32_t to_height,
                              const uint8_t *in, uint32_t width, uint32_t height,
                              enum resample_filter filter, struct err *e);

#endif
