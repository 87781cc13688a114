/* image_png.c - PNG, by libpng. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rd.h"
#include "image/exif.h"
#include "image/image_read_int.h"
#include "image/image_libs.h"

#define MAX_CHUNK_BYTES ((size_t)8 << 20) /* of memory for anything besides the pixels */

/* libpng leaves by longjmp when something is wrong: what must survive that is here. */
struct png_file {
    const struct image_lib_png *lib;
    png_structp png;
    png_infop info;
    png_bytep *rows;
    struct rd rd;
    jmp_buf failed;
    char why[128];
};

static void on_error(png_structp png, png_const_charp why)
{
    const struct image_lib_png *lib = NULL;
    (void)!image_libs_png(&lib, NULL); /* it is open: it calls */
    struct png_file *f = lib->error_ptr(png);
    snprintf(f->why, sizeof(f->why), "%s", why);
    longjmp(f->failed, 1);
}

static void on_warning(png_structp png, png_const_charp why)
{
    (void)png;
    (void)why;
}

static void on_read(png_structp png, png_bytep to, size_t n)
{
    const struct image_lib_png *lib = NULL;
    (void)!image_libs_png(&lib, NULL);
    struct png_file *f = lib->io_ptr(png);
    const uint8_t *from = rd_take(&f->rd, n);
    if (!from)
        lib->error(png, "the file is cut off");
    memcpy(to, from, n);
}

static void close_png(struct png_file *f)
{
    if (f->png)
        f->lib->destroy(&f->png, f->info ? &f->info : NULL, NULL);
    mem_free(f->rows);
}

/* Creates the reader; the caller closes it, also after a failure. */
static int open_png(struct png_file *f, const uint8_t *bytes, size_t n, struct err *e)
{
    int rc = image_libs_png(&f->lib, e);
    if (rc < 0)
        return rc;
    f->rd = rd_make(bytes, n);
    f->png = f->lib->create(PNG_LIBPNG_VER_STRING, f, on_error, on_warning);
    f->info = f->png ? f->lib->create_info(f->png) : NULL;
    return f->info ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for a PNG image");
}

/* Up to the pixels.  Leaves by longjmp. */
static void read_header(struct png_file *f, struct image *m)
{
    png_uint_32 width = 0, height = 0, n_exif = 0;
    int bits = 0, colours = 0;
    png_bytep exif = NULL;
    f->lib->set_read_fn(f->png, f, on_read);
    f->lib->set_user_limits(f->png, IMAGE_MAX_SIDE * 2, IMAGE_MAX_SIDE * 2); /* image_read.c's */
    f->lib->set_chunk_malloc_max(f->png, MAX_CHUNK_BYTES);
    f->lib->read_info(f->png, f->info);
    if (!f->lib->get_header(f->png, f->info, &width, &height, &bits, &colours, NULL, NULL, NULL))
        f->lib->error(f->png, "there is no header");
    m->width = width;
    m->height = height;
    m->orientation = 1;
    if (f->lib->get_exif(f->png, f->info, &n_exif, &exif) && exif)
        m->orientation = exif_orientation(exif, n_exif);
}

static int damaged(const struct png_file *f, struct err *e)
{
    return err_set(e, SHOAL_EFORMAT, "the PNG image is damaged: %s", f->why);
}

int image_png_probe(struct image *m, const uint8_t *bytes, size_t n, struct err *e)
{
    struct png_file f = {0};
    int rc = open_png(&f, bytes, n, e);
    if (rc == 0) {
        if (setjmp(f.failed) == 0)
            read_header(&f, m);
        else
            rc = damaged(&f, e);
    }
    close_png(&f);
    return rc;
}

/* The pixels, as red, green and blue of 8 bits.  Leaves by longjmp. */
static void read_rows(struct png_file *f, const struct image *m)
{
    const struct image_lib_png *lib = f->lib;
    lib->palette_to_rgb(f->png);
    lib->expand_gray(f->png);
    lib->strip_16(f->png);
    lib->strip_alpha(f->png);
    lib->gray_to_rgb(f->png);
    (void)lib->interlace(f->png);
    lib->update_info(f->png, f->info);
    if (lib->row_bytes(f->png, f->info) != (size_t)m->width * 3)
        lib->error(f->png, "its rows are not those of its header");
    lib->read_image(f->png, f->rows);
    lib->read_end(f->png, NULL);
}

int image_png_decode(struct image *m, const uint8_t *bytes, size_t n, struct err *e)
{
    struct png_file f = {.rows = mem_zalloc_n(m->height, sizeof(png_bytep))};
    struct image again = {0};
    int rc = f.rows ? open_png(&f, bytes, n, e)
                    : err_set(e, SHOAL_ENOMEM, "out of memory for a PNG image");
    if (rc == 0) {
        for (size_t y = 0; y < m->height; y++)
            f.rows[y] = m->rgb + y * m->width * 3;
        if (setjmp(f.failed) == 0) {
            read_header(&f, &again);
            read_rows(&f, m);
        } else {
            rc = damaged(&f, e);
        }
    }
    close_png(&f);
    return rc;
}
