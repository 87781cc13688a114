/* image_read.c - see image_read.h. */
#include "image/image_read.h"

#include <pthread.h>
#include <string.h>

#include "base/mem.h"
#include "image/image_read_int.h"

static const struct format {
    const char *name;
    size_t at; /* of the mark */
    const char *mark;
    size_t n_mark;
    int (*probe)(struct image *m, const uint8_t *bytes, size_t n, struct err *e);
    int (*decode)(struct image *m, const uint8_t *bytes, size_t n, struct err *e);
} formats[] = {
    {"JPEG", 0, "\xff\xd8\xff", 3, image_jpeg_probe, image_jpeg_decode},
    {"PNG", 0, "\x89PNG\r\n\x1a\n", 8, image_png_probe, image_png_decode},
    {"WebP", 8, "WEBP", 4, image_webp_probe, image_webp_decode},
};

static int find(const struct format **out, const uint8_t *bytes, size_t n, struct err *e)
{
    if (n == 0)
        return err_set(e, SHOAL_EFORMAT, "the image is empty");
    if (n > IMAGE_MAX_BYTES)
        return err_set(e, SHOAL_ELIMIT, "the image's file has %zu bytes, at most %zu are read", n,
                       IMAGE_MAX_BYTES);
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        *out = &formats[i];
        if (n >= (*out)->at + (*out)->n_mark &&
            memcmp(bytes + (*out)->at, (*out)->mark, (*out)->n_mark) == 0)
            return 0;
    }
    return err_set(e, SHOAL_EFORMAT, "this is not a JPEG, PNG or WebP image");
}

static int check(const struct image *m, struct err *e)
{
    if (m->width == 0 || m->height == 0)
        return err_set(e, SHOAL_EFORMAT, "the image has no pixels");
    if (m->width > IMAGE_MAX_SIDE || m->height > IMAGE_MAX_SIDE ||
        (uint64_t)m->width * m->height > IMAGE_MAX_PIXELS)
        return err_set(e, SHOAL_ELIMIT,
                       "the image has %u x %u pixels: at most %u megapixels and %u on a side are "
                       "read",
                       m->width, m->height, (unsigned)(IMAGE_MAX_PIXELS >> 20), IMAGE_MAX_SIDE);
    return 0;
}

static int probe(struct image *m, const struct format **f, const uint8_t *bytes, size_t n,
                 struct err *e)
{
    *m = (struct image){.orientation = 1};
    int rc = find(f, bytes, n, e);
    if (rc < 0)
        return rc;
    rc = (*f)->probe(m, bytes, n, e);
    return rc < 0 ? rc : check(m, e);
}

/* ---- memory of all threads ------------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t fewer = PTHREAD_COND_INITIALIZER;
static uint64_t being_decoded; /* pixels */

static void begin(uint64_t pixels)
{
    pthread_mutex_lock(&lock);
    while (being_decoded > 0 && being_decoded + pixels > IMAGE_MAX_PIXELS)
        pthread_cond_wait(&fewer, &lock);
    being_decoded += pixels;
    pthread_mutex_unlock(&lock);
}

static void end(uint64_t pixels)
{
    pthread_mutex_lock(&lock);
    being_decoded -= pixels;
    pthread_cond_broadcast(&fewer);
    pthread_mutex_unlock(&lock);
}

int image_decode(struct image *out, const void *bytes, size_t n, struct err *e)
{
    const struct format *f = NULL;
    int rc = probe(out, &f, bytes, n, e);
    if (rc < 0)
        return rc;
    const uint64_t pixels = (uint64_t)out->width * out->height;
    begin(pixels); /* until image_fini */
    out->rgb = mem_alloc((size_t)pixels * 3);
    if (!out->rgb) {
        end(pixels);
        return err_set(e, SHOAL_ENOMEM, "out of memory for an image of %u x %u pixels", out->width,
                       out->height);
    }
    rc = f->decode(out, bytes, n, e);
    if (rc < 0)
        image_fini(out);
    return rc;
}

void image_fini(struct image *m)
{
    if (!m->rgb)
        return;
    mem_free(m->rgb);
    m->rgb = NULL;
    end((uint64_t)m->width * m->height);
}
