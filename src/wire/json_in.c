/* json_in.c - see json_in.h. */
#include "wire/json_in.h"

#include <math.h>

#include "base/file/file_map.h"

const cJSON *json_in_item(const cJSON *object, const char *key)
{
    const cJSON *j = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNull(j) ? NULL : j;
}

int json_in_u32(const cJSON *object, const char *key, int64_t min, int64_t max, int64_t missing,
                uint32_t *out, struct err *e)
{
    const cJSON *j = json_in_item(object, key);
    if (!j && missing >= min) {
        *out = (uint32_t)missing;
        return 0;
    }
    if (!cJSON_IsNumber(j) || j->valuedouble < (double)min || j->valuedouble > (double)max ||
        floor(j->valuedouble) != j->valuedouble)
        return err_set(e, SHOAL_EFORMAT, "%s is not a whole number from %lld to %lld", key,
                       (long long)min, (long long)max);
    *out = (uint32_t)j->valuedouble;
    return 0;
}

int json_in_object(cJSON **out, const char *what, const void *bytes, size_t n, size_t max_bytes,
                   struct err *e)
{
    *out = NULL;
    if (n > max_bytes)
        return err_set(e, SHOAL_ELIMIT, "a %s of %zu bytes is too large: at most %zu", what, n,
                       max_bytes);
    cJSON *j = cJSON_ParseWithLength(bytes, n);
    if (!cJSON_IsObject(j)) {
        cJSON_Delete(j);
        return err_set(e, SHOAL_EFORMAT, "%s is not a JSON object", what);
    }
    *out = j;
    return 0;
}

int json_in_file(cJSON **out, const char *what, const char *path, size_t max_bytes, struct err *e)
{
    struct file_map map = {0};
    *out = NULL;
    int rc = file_map_open(&map, path, e);
    if (rc < 0)
        return rc;
    rc = json_in_object(out, what, map.bytes, map.n_bytes, max_bytes, e);
    file_map_close(&map);
    return rc < 0 ? err_wrap(e, "%s", path) : 0;
}
