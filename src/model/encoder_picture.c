/* encoder_picture.c - what an image becomes before an encoder reads it: size, filter and levels by
 * preprocessor_config.json, and its patches.
 *
 * Settings that are not understood are an error that names them: an image prepared differently
 * would be classified wrongly without a word. */
#include <math.h>
#include <string.h>

#include "model/encoder_int.h"
#include "wire/json_in.h"

#define MAX_JSON_BYTES ((size_t)1 << 20)
#define FILE_NAME "preprocessor_config.json"
#define BILINEAR 2

static double number_or(const cJSON *o, const char *key, double missing)
{
    const cJSON *v = json_in_item(o, key);
    return cJSON_IsNumber(v) ? v->valuedouble : missing;
}

/* Transformers does what is not forbidden. */
static bool wants(const cJSON *o, const char *key, bool missing)
{
    const cJSON *v = json_in_item(o, key);
    return cJSON_IsBool(v) ? cJSON_IsTrue(v) : missing;
}

/* A size: a number, or an object with "height" and "width"; false: neither, or not square. */
static bool square(const cJSON *v, double *out)
{
    const double height = number_or(v, "height", 0), width = number_or(v, "width", 0);
    *out = cJSON_IsNumber(v) ? v->valuedouble : height;
    return *out >= 1 && *out <= 16384 && (cJSON_IsNumber(v) || height == width);
}

/* The side that the model reads follows from resizing and cropping; it must be the model's. */
static int read_size(struct encoder_picture *p, const cJSON *o, struct err *e)
{
    const cJSON *size = json_in_item(o, "size"), *crop = json_in_item(o, "crop_size");
    const bool crops = wants(o, "do_center_crop", false);
    const double shortest = number_or(size, "shortest_edge", 0);
    double to = p->size, side = p->size;
    p->keeps_form = shortest >= 1 && shortest <= 16384;
    if (!wants(o, "do_resize", true))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "do_resize is false, but images of other sizes are always resized here");
    if (p->keeps_form)
        to = shortest;
    else if (size && !square(size, &to))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "size is neither the side of a square nor {\"shortest_edge\": N}");
    if (p->keeps_form && !crops)
        return err_set(e, SHOAL_EUNSUPPORTED, "shortest_edge without do_center_crop is no square");
    if (crops && crop && !square(crop, &side))
        return err_set(e, SHOAL_EUNSUPPORTED, "crop_size is not the side of a square");
    if (!crops)
        side = to;
    if (side != p->size || to < side)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "images become %.0f pixels on a side, but the model reads %u",
                       side < to ? side : to, p->size);
    p->to = (uint32_t)to;
    return 0;
}

static int read_filter(struct encoder_picture *p, const cJSON *o, struct err *e)
{
    const double filter = number_or(o, "resample", BILINEAR);
    if (filter != 1 && filter != 2 && filter != 3)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "resample %g is not supported: 1 (Lanczos), 2 (bilinear), 3 (bicubic)",
                       filter);
    p->filter = (uint32_t)filter;
    return 0;
}

/* A number for all colours, or one for each. */
static int read_colours(float out[3], const cJSON *o, const char *key, float missing, struct err *e)
{
    const cJSON *v = json_in_item(o, key);
    for (int i = 0; i < 3; i++) {
        const cJSON *x = cJSON_IsArray(v) ? cJSON_GetArrayItem(v, i) : v;
        out[i] = cJSON_IsNumber(x) ? (float)x->valuedouble : missing;
        if (!isfinite(out[i]) || (v && !cJSON_IsNumber(x)) ||
            (cJSON_IsArray(v) && cJSON_GetArraySize(v) != 3))
            return err_set(e, SHOAL_EFORMAT, "%s is not three numbers", key);
    }
    return 0;
}

static int read_levels(struct encoder_picture *p, const cJSON *o, struct err *e)
{
    float mean[3], deviation[3];
    const bool rescales = wants(o, "do_rescale", true), norms = wants(o, "do_normalize", true);
    const float factor = rescales ? (float)number_or(o, "rescale_factor", 1.0 / 255) : 1.0f;
    int rc = read_colours(mean, o, "image_mean", 0.5f, e);
    if (rc == 0)
        rc = read_colours(deviation, o, "image_std", 0.5f, e);
    for (int c = 0; rc == 0 && c < 3; c++) {
        if (!(deviation[c] > 1e-6f))
            return err_set(e, SHOAL_EFORMAT, "image_std has a value that is not above 0");
        for (int v = 0; v < 256; v++) {
            const float x = (float)v * factor;
            p->levels[c][v] = norms ? (x - mean[c]) / deviation[c] : x;
            if (!isfinite(p->levels[c][v]))
                return err_set(e, SHOAL_EFORMAT, "rescale_factor is not a finite number");
        }
    }
    return rc;
}

int encoder_picture_read(struct encoder_picture *p, const struct model_file *file, struct err *e)
{
    struct str text;
    cJSON *o = NULL; /* without the file: what ViT's own processor does */
    int rc = 0;
    if (model_file_get_str(file, "huggingface.preprocessor", &text))
        rc = json_in_object(&o, FILE_NAME, text.p, text.n, MAX_JSON_BYTES, e);
    if (rc < 0)
        return rc;
    rc = read_size(p, o, e);
    if (rc == 0)
        rc = read_filter(p, o, e);
    if (rc == 0)
        rc = read_levels(p, o, e);
    cJSON_Delete(o);
    return rc < 0 ? err_wrap(e, FILE_NAME) : 0;
}

void encoder_picture_patch(const struct encoder_picture *p, const uint8_t *image, uint32_t i,
                           float *out)
{
    const uint32_t side = p->size / p->patch, top = i / side * p->patch, left = i % side * p->patch;
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < p->patch; y++) {
            const uint8_t *from = image + ((size_t)(top + y) * p->size + left) * 3 + c;
            for (uint32_t x = 0; x < p->patch; x++)
                *out++ = p->levels[c][from[(size_t)x * 3]];
        }
}
