/* node_health.c - see node_health.h. */
#include "cluster/machine/node_health.h"

#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/clock_sync.h"
#include "base/heat.h"
#include "base/sys_file.h"
#include "cluster/trust/cert.h"

#define READ_NS 5000000000u
#define THROTTLED_NS 60000000000u

void node_health_init(struct node_health_watch *w)
{
    pthread_mutex_init(&w->lock, NULL);
}

void node_health_fini(struct node_health_watch *w)
{
    pthread_mutex_destroy(&w->lock);
}

/* The folder may not be there yet: then one above it. */
static bool disk_of(const char *folder, struct statvfs *out)
{
    char path[4096];
    char *slash;
    if ((size_t)snprintf(path, sizeof(path), "%s", folder) >= sizeof(path))
        return false;
    while (statvfs(path[0] ? path : "/", out) != 0) {
        slash = strrchr(path, '/');
        if (!slash)
            return statvfs(".", out) == 0;
        *slash = '\0';
    }
    return true;
}

static void read_disks(const struct node_health_watch *w, struct node_health *h)
{
    struct statvfs vfs;
    for (size_t i = 0; i < NODE_HEALTH_FOLDERS; i++) {
        if (!w->folders[i] || !disk_of(w->folders[i], &vfs))
            continue;
        const uint64_t free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
        if (h->disk_bytes > 0 && free_bytes >= h->disk_free)
            continue;
        h->disk_free = free_bytes;
        h->disk_bytes = (uint64_t)vfs.f_blocks * vfs.f_frsize;
    }
}

static void read_heat(struct node_health_watch *w, struct node_health *h, uint64_t now)
{
    struct heat heat;
    heat_read(&heat, sys_file_root());
    if (w->read_ns > 0 && heat.n_throttled > w->n_throttled)
        w->throttled_ns = now;
    w->n_throttled = heat.n_throttled;
    h->celsius = heat.celsius;
    h->celsius_limit = heat_limit(&heat);
    h->throttled = w->throttled_ns > 0 && now - w->throttled_ns < THROTTLED_NS;
}

static void read_all(struct node_health_watch *w, uint64_t now)
{
    struct node_health h = {.clock = clock_is_synchronized() ? NODE_CLOCK_KEPT : NODE_CLOCK_FREE};
    struct cert_info info;
    struct err e = {0};
    if (w->cert && cert_read(&info, w->cert, &e) == 0)
        h.cert_until_s = info.not_after_s;
    read_disks(w, &h);
    read_heat(w, &h, now);
    w->last = h;
    w->read_ns = now;
}

void node_health_get(struct node_health_watch *w, struct node_health *out)
{
    const uint64_t now = clock_ns();
    pthread_mutex_lock(&w->lock);
    if (w->read_ns == 0 || now - w->read_ns >= READ_NS)
        read_all(w, now);
    *out = w->last;
    pthread_mutex_unlock(&w->lock);
    out->clock_ms = clock_unix_ms();
}
