/* node_gpu.c - see node_gpu.h. */
#include "cluster/machine/node_gpu.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- NVML: the few functions that are needed, as nvml.h declares them ---- */

struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *n);
    int (*handle)(unsigned i, void **device);
    int (*name)(void *device, char *name, unsigned n);
    int (*memory)(void *device, struct nvml_memory *m);
};

static bool open_nvml(struct nvml *v)
{
    const struct {
        const char *name;
        void **to;
    } names[] = {{"nvmlInit_v2", (void **)&v->init},
                 {"nvmlShutdown", (void **)&v->shutdown},
                 {"nvmlDeviceGetCount_v2", (void **)&v->count},
                 {"nvmlDeviceGetHandleByIndex_v2", (void **)&v->handle},
                 {"nvmlDeviceGetName", (void **)&v->name},
                 {"nvmlDeviceGetMemoryInfo", (void **)&v->memory}};
    v->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    bool ok = v->library != NULL;
    for (size_t i = 0; ok && i < sizeof(names) / sizeof(names[0]); i++)
        ok = (*names[i].to = dlsym(v->library, names[i].name)) != NULL;
    return ok && v->init() == 0;
}

static void ask_nvml(struct node_gpu *out)
{
    struct nvml v = {0};
    unsigned n = 0;
    if (!open_nvml(&v)) {
        if (v.library)
            dlclose(v.library);
        return;
    }
    if (v.count(&n) != 0)
        n = 0;
    for (unsigned i = 0; i < n; i++) {
        struct nvml_memory m = {0};
        void *device;
        if (v.handle(i, &device) != 0)
            continue;
        if (!out->name[0] && v.name(device, out->name, sizeof(out->name)) != 0)
            snprintf(out->name, sizeof(out->name), "NVIDIA");
        if (v.memory(device, &m) == 0)
            out->memory_bytes += m.total;
        out->n++;
    }
    (void)v.shutdown();
    dlclose(v.library);
}

/* ---- files ---- */

/* The line of a file that begins with key, without it; key "": the first line. */
static bool read_value(char *out, size_t cap, const char *path, const char *key)
{
    FILE *f = fopen(path, "re");
    char line[256];
    bool found = false;
    while (f && !found && fgets(line, sizeof(line), f)) {
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        const char *v = line + strlen(key);
        v += strspn(v, " \t");
        snprintf(out, cap, "%.*s", (int)strcspn(v, "\r\n"), v);
        found = out[0] != '\0';
    }
    if (f)
        fclose(f);
    return found;
}

static void read_nvidia(struct node_gpu *out, const char *root)
{
    char pattern[PATH_MAX], name[sizeof(out->name)];
    glob_t g;
    snprintf(pattern, sizeof(pattern), "%s/proc/driver/nvidia/gpus/*/information", root);
    if (glob(pattern, 0, NULL, &g) != 0)
        return;
    for (size_t i = 0; i < g.gl_pathc; i++) {
        if (!read_value(name, sizeof(name), g.gl_pathv[i], "Model:"))
            continue;
        if (!out->name[0])
            snprintf(out->name, sizeof(out->name), "%s", name);
        out->n++;
    }
    globfree(&g);
}

static void read_amd(struct node_gpu *out, const char *root)
{
    char pattern[PATH_MAX], text[64], path[PATH_MAX];
    glob_t g;
    snprintf(pattern, sizeof(pattern), "%s/sys/class/drm/card*/device/mem_info_vram_total", root);
    if (glob(pattern, 0, NULL, &g) != 0)
        return;
    for (size_t i = 0; i < g.gl_pathc; i++) {
        if (!read_value(text, sizeof(text), g.gl_pathv[i], ""))
            continue;
        out->memory_bytes += strtoull(text, NULL, 10);
        out->n++;
        snprintf(path, sizeof(path), "%.*s/product_name",
                 (int)(strrchr(g.gl_pathv[i], '/') - g.gl_pathv[i]), g.gl_pathv[i]);
        if (!out->name[0] && !read_value(out->name, sizeof(out->name), path, ""))
            snprintf(out->name, sizeof(out->name), "AMD");
    }
    globfree(&g);
}

void node_gpu_read_below(struct node_gpu *out, const char *root)
{
    *out = (struct node_gpu){.n = 0};
    read_nvidia(out, root);
    if (out->n == 0)
        read_amd(out, root);
}

void node_gpu_read(struct node_gpu *out)
{
    *out = (struct node_gpu){.n = 0};
    ask_nvml(out);
    if (out->n == 0)
        node_gpu_read_below(out, "");
}
