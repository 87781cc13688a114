/* image_read.h - JPEG, PNG and WebP files as rows of red, green and blue.
 *
 * What a file says about its size is checked before memory is reserved. Grey becomes three equal
 * values, transparency is dropped, 16 bits become 8, as Pillow's convert("RGB") does.  A file that
 * is cut off or damaged is refused, and so are animations and CMYK.
 *
 * Thread:    any.  Threads that decode at the same time wait when their images have more than
 *            IMAGE_MAX_PIXELS together.
 * Ownership: image_decode gives, image_fini takes back; the file's bytes are borrowed for the call.
 * Failure:   SHOAL_EFORMAT: no image of these kinds, or damaged; SHOAL_ELIMIT: too large;
 *            SHOAL_EUNSUPPORTED: a form that is not read, or the library is missing; SHOAL_ENOMEM.
 */
#ifndef SHOAL_IMAGE_IMAGE_READ_H
#define SHOAL_IMAGE_IMAGE_READ_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define IMAGE_MAX_BYTES ((size_t)64 << 20) /* of a file */
#define IMAGE_MAX_PIXELS ((uint64_t)64 << 20)
#define IMAGE_MAX_SIDE 32768u

struct image {
    uint32_t width, height; /* as stored: see orientation */
    unsigned orientation;   /* as Exif numbers them; 1: upright */
    uint8_t *rgb;           /* [height][width][3] */
};

SHOAL_MUST_CHECK int image_decode(struct image *out, const void *bytes, size_t n, struct err *e);
void image_fini(struct image *m);

#endif
