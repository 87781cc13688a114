/* image_libs.c - see image_libs.h. */
#include "image/image_libs.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct name {
    const char *name;
    void **to;
};

static struct image_lib_jpeg jpeg;
static struct image_lib_png png;
static struct image_lib_webp webp;
static bool jpeg_ready, png_ready, webp_ready;

/* The functions of a library; the list ends with a NULL. */
static bool load(const char *library, const struct name *names)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    bool ok = handle != NULL;
    for (; ok && names->name; names++)
        ok = (*names->to = dlsym(handle, names->name)) != NULL;
    return ok;
}

static void load_jpeg(void)
{
    static const struct name names[] = {{"tjInitDecompress", (void **)&jpeg.init},
                                        {"tjDecompressHeader3", (void **)&jpeg.header},
                                        {"tjDecompress2", (void **)&jpeg.decompress},
                                        {"tjGetErrorStr2", (void **)&jpeg.error},
                                        {"tjDestroy", (void **)&jpeg.destroy},
                                        {NULL, NULL}};
    jpeg_ready = load("libturbojpeg.so.0", names);
}

static void load_png(void)
{
    static const struct name names[] = {
        {"png_create_read_struct", (void **)&png.create},
        {"png_create_info_struct", (void **)&png.create_info},
        {"png_destroy_read_struct", (void **)&png.destroy},
        {"png_get_error_ptr", (void **)&png.error_ptr},
        {"png_get_io_ptr", (void **)&png.io_ptr},
        {"png_error", (void **)&png.error},
        {"png_set_read_fn", (void **)&png.set_read_fn},
        {"png_set_user_limits", (void **)&png.set_user_limits},
        {"png_set_chunk_malloc_max", (void **)&png.set_chunk_malloc_max},
        {"png_read_info", (void **)&png.read_info},
        {"png_get_IHDR", (void **)&png.get_header},
        {"png_get_eXIf_1", (void **)&png.get_exif},
        {"png_set_palette_to_rgb", (void **)&png.palette_to_rgb},
        {"png_set_expand_gray_1_2_4_to_8", (void **)&png.expand_gray},
        {"png_set_strip_16", (void **)&png.strip_16},
        {"png_set_strip_alpha", (void **)&png.strip_alpha},
        {"png_set_gray_to_rgb", (void **)&png.gray_to_rgb},
        {"png_set_interlace_handling", (void **)&png.interlace},
        {"png_read_update_info", (void **)&png.update_info},
        {"png_get_rowbytes", (void **)&png.row_bytes},
        {"png_read_image", (void **)&png.read_image},
        {"png_read_end", (void **)&png.read_end},
        {NULL, NULL}};
    png_ready = load("libpng16.so.16", names);
}

static void load_webp(void)
{
    static const struct name names[] = {{"WebPGetFeaturesInternal", (void **)&webp.features},
                                        {"WebPDecodeRGBInto", (void **)&webp.decode},
                                        {NULL, NULL}};
    webp_ready = load("libwebp.so.7", names);
}

static int missing(const char *kind, const char *library, const char *package, struct err *e)
{
    return err_set(e, SHOAL_EUNSUPPORTED, "%s images need %s: install the package %s", kind,
                   library, package);
}

int image_libs_jpeg(const struct image_lib_jpeg **out, struct err *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_jpeg);
    *out = jpeg_ready ? &jpeg : NULL;
    return jpeg_ready ? 0 : missing("JPEG", "libturbojpeg", "libturbojpeg0", e);
}

int image_libs_png(const struct image_lib_png **out, struct err *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_png);
    *out = png_ready ? &png : NULL;
    return png_ready ? 0 : missing("PNG", "libpng", "libpng16-16", e);
}

int image_libs_webp(const struct image_lib_webp **out, struct err *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_webp);
    *out = webp_ready ? &webp : NULL;
    return webp_ready ? 0 : missing("WebP", "libwebp", "libwebp7", e);
}
