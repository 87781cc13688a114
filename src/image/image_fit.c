/* image_fit.c - see image_fit.h. */
#include "image/image_fit.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "image/image_read.h"

/* Exif's orientations 5 to 8 swap rows and columns. */
static bool is_turned(const struct image *m)
{
    return m->orientation >= 5;
}

/* Pixel x, y of the upright image in the stored one, which has width and height. */
static void stored_at(unsigned orientation, uint32_t width, uint32_t height, uint32_t x, uint32_t y,
                      uint32_t *sx, uint32_t *sy)
{
    const bool turned = orientation >= 5;
    const bool from_right =
        orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const bool from_below =
        orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    const uint32_t a = turned ? y : x, b = turned ? x : y;
    *sx = from_right ? width - 1 - a : a;
    *sy = from_below ? height - 1 - b : b;
}

/* The longer side when the shorter one becomes `to`, as transformers rounds it. */
static uint32_t longer(uint32_t to, uint32_t shortest, uint32_t longest)
{
    const uint64_t n = (uint64_t)to * longest / shortest;
    return (uint32_t)n;
}

/* The size of the upright image after resizing. */
static int target(const struct image_fit *f, const struct image *m, uint32_t *width,
                  uint32_t *height, struct err *e)
{
    const uint32_t w = is_turned(m) ? m->height : m->width;
    const uint32_t h = is_turned(m) ? m->width : m->height;
    *width = f->to_width;
    *height = f->to_height;
    if (f->shortest) {
        *width = w <= h ? f->shortest : longer(f->shortest, h, w);
        *height = w <= h ? longer(f->shortest, w, h) : f->shortest;
        if (*width > IMAGE_MAX_SIDE || *height > IMAGE_MAX_SIDE)
            return err_set(e, SHOAL_ELIMIT,
                           "the image of %u x %u pixels is too narrow: at %u pixels its other side "
                           "would have more than %u",
                           w, h, f->shortest, IMAGE_MAX_SIDE);
    }
    return 0;
}

/* The middle of the resized image, upright. */
static void crop(const struct image_fit *f, uint8_t *out, const uint8_t *resized, unsigned turn,
                 uint32_t width, uint32_t height)
{
    const uint32_t left = (width - f->width) / 2, top = (height - f->height) / 2;
    const bool turned = turn >= 5;
    const uint32_t stored_width = turned ? height : width, stored_height = turned ? width : height;
    for (uint32_t y = 0; y < f->height; y++)
        for (uint32_t x = 0; x < f->width; x++) {
            uint32_t sx, sy;
            stored_at(turn, stored_width, stored_height, x + left, y + top, &sx, &sy);
            memcpy(out + ((size_t)y * f->width + x) * 3,
                   resized + ((size_t)sy * stored_width + sx) * 3, 3);
        }
}

int image_fit(const struct image_fit *f, uint8_t *out, const void *bytes, size_t n, struct err *e)
{
    struct image m;
    uint32_t width = 0, height = 0;
    uint8_t *resized = NULL;
    int rc = image_decode(&m, bytes, n, e);
    if (rc < 0)
        return rc;
    rc = target(f, &m, &width, &height, e);
    if (rc == 0) {
        resized = mem_alloc((size_t)width * height * 3);
        rc = resized ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory to resize an image");
    }
    if (rc == 0) /* the stored image: an upright copy of a large one would take its size again */
        rc = resample(resized, is_turned(&m) ? height : width, is_turned(&m) ? width : height,
                      m.rgb, m.width, m.height, f->filter, e);
    if (rc == 0)
        crop(f, out, resized, m.orientation, width, height);
    mem_free(resized);
    image_fini(&m);
    return rc;
}
