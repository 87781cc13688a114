/* config_paths.c - see config_paths.h. */
#include "config/config_paths.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config_key.h"
#include "config/config_read.h"
#include "config/config_where.h"

enum kind {
    READ_FILE,    /* or a folder: some models are */
    READ_FOLDER,  /* each of a list */
    NAMED_FOLDER, /* each of a list of NAME=FOLDER */
    MADE,         /* by the server, with the folders around it */
};

static const struct {
    const char *key;
    enum kind kind;
} keys[] = {{"home", READ_FILE},
            {"table", READ_FILE},
            {"tls.cert", READ_FILE},
            {"tls.key", READ_FILE},
            {"tls.client_ca", READ_FILE},
            {"models[].path", READ_FILE},
            {"models[].key_file", READ_FILE},
            {"models[].calibration", READ_FILE},
            {"models[].adapters[].path", READ_FILE},
            {"model_dirs", READ_FOLDER},
            {"privacy.key_file", READ_FILE},
            {"flows[].steps[].plugin", READ_FILE},
            {"flows_allow.plugins", READ_FOLDER},
            {"flows_allow.ca", READ_FILE},
            {"deeds_allow.ca", READ_FILE},
            {"trust.signatures", READ_FOLDER},
            {"trust.signers[].key", READ_FILE},
            {"trust.signers[].certificate", READ_FILE},
            {"tracing.ca", READ_FILE},
            {"mqtt.password_file", READ_FILE},
            {"mqtt.ca", READ_FILE},
            {"mqtt.cert", READ_FILE},
            {"mqtt.key", READ_FILE},
            {"machines[].learned", READ_FILE},
            {"alarms.webhooks[].ca", READ_FILE},
            {"alarms.webhooks[].secret_file", READ_FILE},
            {"cluster.certs", READ_FOLDER},
            {"cluster.fetch_ca", READ_FILE},
            {"collections.watch", NAMED_FOLDER},
            {"collections.dir", MADE},
            {"home_state", MADE},
            {"home_schedule", MADE},
            {"store.dir", MADE},
            {"ollama.dir", MADE},
            {"slots.dir", MADE},
            {"audit.dir", MADE},
            {"cache.weights_dir", MADE},
            {"quota.file", MADE},
            {"deferred.file", MADE},
            {"responses.file", MADE},
            {"alarms.file", MADE},
            {"history.file", MADE},
            {"mqtt.queue.file", MADE},
            {"cluster.store", MADE}};

static const char *read_error(const char *path, bool folder)
{
    struct stat st;
    if (stat(path, &st) < 0 || access(path, R_OK) < 0)
        return strerror(errno);
    return folder && !S_ISDIR(st.st_mode) ? strerror(ENOTDIR) : NULL;
}

/* The nearest folder above that exists must be one. */
static const char *make_error(const char *path)
{
    char above[PATH_MAX];
    struct stat st;
    snprintf(above, sizeof(above), "%s", path);
    for (char *slash; (slash = strrchr(above, '/')) && slash != above;) {
        *slash = '\0';
        if (stat(above, &st) == 0)
            return S_ISDIR(st.st_mode) ? NULL : strerror(ENOTDIR);
        if (errno != ENOENT)
            return strerror(errno);
    }
    return NULL;
}

static int check_one(const struct config_where *w, const struct config_setting *s, enum kind kind,
                     const char *path)
{
    const char *name = kind == NAMED_FOLDER ? strchr(path, '=') : NULL;
    path = name ? name + 1 : path;
    const char *why = kind == MADE ? make_error(path) : read_error(path, kind != READ_FILE);
    if (!why)
        return 0;
    return err_set(w->e, SHOAL_EFORMAT, "%s:%u:%u: %s: cannot %s %.200s: %s", w->file, s->line,
                   s->column, s->key->path, kind == MADE ? "make" : "open", path, why);
}

/* A list is kept as one text, joined by ", ". */
static int check_each(const struct config_where *w, const struct config_setting *s, enum kind kind)
{
    char path[PATH_MAX];
    int rc = 0;
    for (const char *p = s->value, *end; rc == 0 && *p; p = *end ? end + 2 : end) {
        end = strstr(p, ", ");
        end = end && kind != READ_FILE && kind != MADE ? end : p + strlen(p);
        snprintf(path, sizeof(path), "%.*s", (int)(end - p), p);
        rc = check_one(w, s, kind, path);
    }
    return rc;
}

int config_paths_check(const struct config_where *w)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < w->set->n; i++) {
        const struct config_setting *s = &w->set->v[i];
        for (size_t k = 0; rc == 0 && k < sizeof(keys) / sizeof(keys[0]); k++)
            if (strcmp(keys[k].key, s->key->path) == 0)
                rc = check_each(w, s, keys[k].kind);
    }
    return rc;
}
