/* score_config.c - see score_config.h. */
#include "score/score_config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_BYTES ((size_t)1 << 20)

static int check_type(const cJSON *j, const char *model_type, struct err *e)
{
    const char *type = cJSON_GetStringValue(json_in_item(j, "model_type"));
    if (json_in_item(j, "tree_info"))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "this is a JSON dump of LightGBM trees: save the model as text");
    if (!type || strcmp(type, model_type) != 0)
        return err_set(e, SHOAL_EFORMAT, "model_type is %s%.60s%s, not %s", type ? "\"" : "",
                       type ? type : "missing", type ? "\"" : "", model_type);
    return 0;
}

/* Gives j to the caller, or deletes it when it is of another type. */
static int take(cJSON **out, cJSON *j, const char *model_type, struct err *e)
{
    int rc = check_type(j, model_type, e);
    if (rc < 0) {
        cJSON_Delete(j);
        j = NULL;
    }
    *out = j;
    return rc;
}

int score_config_parse(cJSON **out, const void *bytes, size_t n, const char *model_type,
                       struct err *e)
{
    int rc = json_in_object(out, "config", bytes, n, MAX_BYTES, e);
    return rc < 0 ? rc : take(out, *out, model_type, e);
}

int score_config_open(cJSON **out, const char *path, const char *model_type, char *dir,
                      size_t dir_cap, struct err *e)
{
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
    int rc = json_in_file(out, "config", file, MAX_BYTES, e);
    if (rc < 0)
        return rc;
    rc = take(out, *out, model_type, e);
    return rc < 0 ? err_wrap(e, "%s", file) : 0;
}
