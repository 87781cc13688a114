/* image_read_int.h - the decoders of image_read.c.  Private to src/image.
 *
 * probe fills width, height and orientation; decode fills rgb, which has been reserved for them. */
#ifndef SHOAL_IMAGE_IMAGE_READ_INT_H
#define SHOAL_IMAGE_IMAGE_READ_INT_H

#include "image/image_read.h"

SHOAL_MUST_CHECK int image_jpeg_probe(struct image *m, const uint8_t *bytes, size_t n,
                                      struct err *e);
SHOAL_MUST_CHECK int image_jpeg_decode(struct image *m, const uint8_t *bytes, size_t n,
                                       struct err *e);
SHOAL_MUST_CHECK int image_png_probe(struct image *m, const uint8_t *bytes, size_t n,
                                     struct err *e);
SHOAL_MUST_CHECK int image_png_decode(struct image *m, const uint8_t *bytes, size_t n,
                                      struct err *e);
SHOAL_MUST_CHECK int image_webp_probe(struct image *m, const uint8_t *bytes, size_t n,
                                      struct err *e);
SHOAL_MUST_CHECK int image_webp_decode(struct image *m, const uint8_t *bytes, size_t n,
                                       struct err *e);

#endif
