/* json_config.c - see json_config.h. */
#include "wire/json_config.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file_map.h"

enum { MAX_CONFIG_BYTES = 1 << 20 };

const cJSON *json_config_item(const cJSON *object, const char *key)
{
    const cJSON *j = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNull(j) ? NULL : j;
}

int json_config_u32(const cJSON *object, const char *key, int64_t min, int64_t max, int64_t missing,
                    uint32_t *out, struct err *e)
{
    const cJSON *j = json_config_item(object, key);
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

int json_config_parse(cJSON **out, const void *bytes, size_t n, const char *model_type,
                      struct err *e)
{
    int rc = 0;
    *out = NULL;
    if (n > MAX_CONFIG_BYTES)
        return err_set(e, SHOAL_ELIMIT, "a config of %zu bytes is too large: at most %d", n,
                       MAX_CONFIG_BYTES);
    cJSON *j = cJSON_ParseWithLength(bytes, n);
    const char *type = cJSON_GetStringValue(json_config_item(j, "model_type"));
    if (!cJSON_IsObject(j))
        rc = err_set(e, SHOAL_EFORMAT, "config is not a JSON object");
    else if (json_config_item(j, "tree_info"))
        rc = err_set(e, SHOAL_EUNSUPPORTED,
                     "this is a JSON dump of LightGBM trees: save the model as text");
    else if (!type || strcmp(type, model_type) != 0)
        rc = err_set(e, SHOAL_EFORMAT, "model_type is %s%.60s%s, not %s", type ? "\"" : "",
                     type ? type : "missing", type ? "\"" : "", model_type);
    if (rc == 0)
        *out = j;
    else
        cJSON_Delete(j);
    return rc;
}

int json_config_open(cJSON **out, const char *path, const char *model_type, char *dir,
                     size_t dir_cap, struct err *e)
{
    struct file_map map = {0};
    struct stat s;
    char file[4096];
    *out = NULL;
    bool folder = stat(path, &s) == 0 && S_ISDIR(s.st_mode);
    const char *slash = strrchr(path, '/');
    int n = folder ? snprintf(dir, dir_cap, "%s/", path)
                   : snprintf(dir, dir_cap, "%.*s", slash ? (int)(slash + 1 - path) : 0, path);
    if (n < 0 || (size_t)n >= dir_cap || (size_t)n + sizeof("config.json") > sizeof(file))
        return err_set(e, SHOAL_EIO, "%.60s...: the path is too long", path);
    snprintf(file, sizeof(file), "%s%s", path, folder ? "/config.json" : "");
    int rc = file_map_open(&map, file, e);
    if (rc < 0)
        return rc;
    rc = json_config_parse(out, map.bytes, map.n_bytes, model_type, e);
    file_map_close(&map);
    return rc < 0 ? err_wrap(e, "%s", file) : 0;
}
