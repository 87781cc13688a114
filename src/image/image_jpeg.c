/* image_jpeg.c - JPEG, by libturbojpeg. */
#include "image/exif.h"
#include "image/image_read_int.h"
#include "image/image_libs.h"

/* A progressive file that improves the image in hundreds of steps is an attack, and a damaged one
 * is refused at its first error. */
#define FLAGS (TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS)

static int damaged(const struct image_lib_jpeg *lib, tjhandle j, struct err *e)
{
    return err_set(e, SHOAL_EFORMAT, "the JPEG image is damaged: %.120s", lib->error(j));
}

static int open_jpeg(const struct image_lib_jpeg **lib, tjhandle *j, struct err *e)
{
    int rc = image_libs_jpeg(lib, e);
    if (rc < 0)
        return rc;
    *j = (*lib)->init();
    return *j ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for a JPEG image");
}

int image_jpeg_probe(struct image *m, const uint8_t *bytes, size_t n, struct err *e)
{
    const struct image_lib_jpeg *lib;
    tjhandle j;
    int width = 0, height = 0, samples = 0, colours = 0;
    int rc = open_jpeg(&lib, &j, e);
    if (rc < 0)
        return rc;
    if (lib->header(j, bytes, n, &width, &height, &samples, &colours) < 0)
        rc = damaged(lib, j, e);
    else if (width < 1 || height < 1)
        rc = err_set(e, SHOAL_EFORMAT, "the JPEG image is damaged: it has no header");
    else if (colours == TJCS_CMYK || colours == TJCS_YCCK)
        rc = err_set(e, SHOAL_EUNSUPPORTED,
                     "a JPEG image in the colours of a printer (CMYK) is not read: save it as RGB");
    lib->destroy(j);
    m->width = (uint32_t)width;
    m->height = (uint32_t)height;
    m->orientation = exif_orientation_jpeg(bytes, n);
    return rc;
}

int image_jpeg_decode(struct image *m, const uint8_t *bytes, size_t n, struct err *e)
{
    const struct image_lib_jpeg *lib;
    tjhandle j;
    int rc = open_jpeg(&lib, &j, e);
    if (rc < 0)
        return rc;
    if (lib->decompress(j, bytes, n, m->rgb, (int)m->width, 0, (int)m->height, TJPF_RGB, FLAGS) < 0)
        rc = damaged(lib, j, e);
    lib->destroy(j);
    return rc;
}
