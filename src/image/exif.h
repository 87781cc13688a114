/* exif.h - which way up an image is, from the Exif data of its file.
 *
 * Thread: any; no state.  Failure: none: data that cannot be read says nothing. */
#ifndef SHOAL_IMAGE_EXIF_H
#define SHOAL_IMAGE_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* The orientation, 1 to 8 as Exif numbers them; 1 (upright) if the data does not say.  tiff: begins
 * with "II" or "MM", or with "Exif\0\0" before it. */
unsigned exif_orientation(const uint8_t *tiff, size_t n);
/* The same for a whole JPEG or WebP file, which is searched for its Exif data. */
unsigned exif_orientation_jpeg(const uint8_t *bytes, size_t n);
unsigned exif_orientation_webp(const uint8_t *bytes, size_t n);

#endif
