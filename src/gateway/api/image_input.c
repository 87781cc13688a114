/* image_input.c - see image_input.h. */
#include "gateway/api/image_input.h"

#include <string.h>
#include <strings.h>

#include "image/image_read.h"
#include "supply/base64.h"

bool image_input_is(const cJSON *v)
{
    return cJSON_IsObject(v) && (cJSON_GetObjectItemCaseSensitive(v, "image") ||
                                 cJSON_GetObjectItemCaseSensitive(v, "image_url"));
}

/* The text of the image; NULL: it is not one. */
static const char *text_of(const cJSON *v)
{
    const cJSON *image = cJSON_GetObjectItemCaseSensitive(v, "image");
    const cJSON *url = cJSON_GetObjectItemCaseSensitive(v, "image_url");
    if (image)
        return cJSON_GetStringValue(image);
    return cJSON_GetStringValue(cJSON_IsObject(url) ? cJSON_GetObjectItemCaseSensitive(url, "url")
                                                    : url);
}

/* What follows "data:image/...;base64,". */
static int skip_head(const char **text, const char *name, struct fields_error *e)
{
    if (strncasecmp(*text, "data:", 5) == 0) {
        const char *comma = strchr(*text, ',');
        const size_t n = comma ? (size_t)(comma - *text) : 0;
        if (n < 7 || strncasecmp(comma - 7, ";base64", 7) != 0)
            return fields_fail(e, name, "invalid_value",
                               "'%s' has a data URL without ;base64, before its image", name);
        *text = comma + 1;
        return 0;
    }
    if (memchr(*text, ':', strnlen(*text, 64)))
        return fields_fail(e, name, "unsupported_parameter",
                           "'%s' has an image at an address, which is not fetched: send the image "
                           "itself, as data:image/jpeg;base64,...",
                           name);
    return 0;
}

int image_input_take(struct request *r, struct request_input *in, const cJSON *v, const char *name,
                     struct fields_error *e)
{
    const char *text = text_of(v);
    if (r->infer.kind != SHOAL_KIND_CLASSIFY && r->infer.kind != SHOAL_KIND_EMBED)
        return fields_fail(e, name, "invalid_value", "'%s' takes texts, not images", name);
    if (!text)
        return fields_fail(e, name, "invalid_type",
                           "'%s' has an image that is not a text in base64", name);
    int rc = skip_head(&text, name, e);
    if (rc < 0)
        return rc;
    const size_t n = strlen(text);
    if (n / 4 * 3 > IMAGE_MAX_BYTES)
        return fields_fail(e, name, "invalid_value", "'%s' has an image of more than %zu MiB", name,
                           IMAGE_MAX_BYTES >> 20);
    in->image = base64_read(&r->arena, text, n, &in->image_bytes);
    if (request_rc(r) == 0 && (!in->image || in->image_bytes == 0))
        return fields_fail(e, name, "invalid_value", "'%s' has an image that is not base64", name);
    return 0;
}
