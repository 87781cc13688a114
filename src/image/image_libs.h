/* image_libs.h - the functions of libturbojpeg, libpng and libwebp that are used, from the
 * libraries of the system.
 *
 * Each library is opened when the first image of its kind is read, so that one format does not
 * need the library of another.
 *
 * Thread:    any.
 * Ownership: the tables are constant and stay.
 * Failure:   SHOAL_EUNSUPPORTED: the library is not installed; the text names its package. */
#ifndef SHOAL_IMAGE_IMAGE_LIBS_H
#define SHOAL_IMAGE_IMAGE_LIBS_H

#include <png.h>
#include <turbojpeg.h>
#include <webp/decode.h>

#include "base/err.h"

/* Functions with the types of the libraries' headers. */
struct image_lib_jpeg {
    __typeof__(tjInitDecompress) *init;
    __typeof__(tjDecompressHeader3) *header;
    __typeof__(tjDecompress2) *decompress;
    __typeof__(tjGetErrorStr2) *error;
    __typeof__(tjDestroy) *destroy;
};

struct image_lib_png {
    __typeof__(png_create_read_struct) *create;
    __typeof__(png_create_info_struct) *create_info;
    __typeof__(png_destroy_read_struct) *destroy;
    __typeof__(png_get_error_ptr) *error_ptr;
    __typeof__(png_get_io_ptr) *io_ptr;
    __typeof__(png_error) *error;
    __typeof__(png_set_read_fn) *set_read_fn;
    __typeof__(png_set_user_limits) *set_user_limits;
    __typeof__(png_set_chunk_malloc_max) *set_chunk_malloc_max;
    __typeof__(png_read_info) *read_info;
    __typeof__(png_get_IHDR) *get_header;
    __typeof__(png_get_eXIf_1) *get_exif;
    __typeof__(png_set_palette_to_rgb) *palette_to_rgb;
    __typeof__(png_set_expand_gray_1_2_4_to_8) *expand_gray;
    __typeof__(png_set_strip_16) *strip_16;
    __typeof__(png_set_strip_alpha) *strip_alpha;
    __typeof__(png_set_gray_to_rgb) *gray_to_rgb;
    __typeof__(png_set_interlace_handling) *interlace;
    __typeof__(png_read_update_info) *update_info;
    __typeof__(png_get_rowbytes) *row_bytes;
    __typeof__(png_read_image) *read_image;
    __typeof__(png_read_end) *read_end;
};

struct image_lib_webp {
    __typeof__(WebPGetFeaturesInternal) *features;
    __typeof__(WebPDecodeRGBInto) *decode;
};

SHOAL_MUST_CHECK int image_libs_jpeg(const struct image_lib_jpeg **out, struct err *e);
SHOAL_MUST_CHECK int image_libs_png(const struct image_lib_png **out, struct err *e);
SHOAL_MUST_CHECK int image_libs_webp(const struct image_lib_webp **out, struct err *e);

#endif
