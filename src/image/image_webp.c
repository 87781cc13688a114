/* image_webp.c - WebP, by libwebp. */
#include "image/exif.h"
#include "image/image_read_int.h"
#include "image/image_libs.h"

int image_webp_probe(struct image *m, const uint8_t *bytes, size_t n, struct err *e)
{
    const struct image_lib_webp *lib;
    WebPBitstreamFeatures f = {0};
    int rc = image_libs_webp(&lib, e);
    if (rc < 0)
        return rc;
    if (lib->features(bytes, n, &f, WEBP_DECODER_ABI_VERSION) != VP8_STATUS_OK || f.width < 0 ||
        f.height < 0)
        return err_set(e, SHOAL_EFORMAT, "the WebP image is damaged: its header cannot be read");
    if (f.has_animation)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "an animated WebP image is not read: take one of its pictures");
    m->width = (uint32_t)f.width;
    m->height = (uint32_t)f.height;
    m->orientation = exif_orientation_webp(bytes, n);
    return 0;
}

int image_webp_decode(struct image *m, const uint8_t *bytes, size_t n, struct err *e)
{
    const struct image_lib_webp *lib;
    const size_t row = (size_t)m->width * 3;
    int rc = image_libs_webp(&lib, e);
    if (rc < 0)
        return rc;
    return lib->decode(bytes, n, m->rgb, row * m->height, (int)row)
               ? 0
               : err_set(e, SHOAL_EFORMAT, "the WebP image is damaged or cut off");
}
