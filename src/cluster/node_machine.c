/* node_machine.c - see node_machine.h. */
#include "cluster/node_machine.h"

#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys_file.h"
#include "base/thread/crew.h"

#define SAMPLE_NS 1000000000u

static struct {
    char isa[65];
    uint32_t n_cores;
    uint64_t memory_bytes;
} fixed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint64_t meminfo(const char *format)
{
    FILE *f = fopen("/proc/meminfo", "re");
    char line[256];
    unsigned long long kb = 0;
    while (f && kb == 0 && fgets(line, sizeof(line), f))
        if (sscanf(line, format, &kb) != 1)
            kb = 0;
    if (f)
        fclose(f);
    return (uint64_t)kb << 10;
}

static void read_fixed(void)
{
    struct utsname u;
    if (uname(&u) == 0)
        snprintf(fixed.isa, sizeof(fixed.isa), "%s", u.machine);
    fixed.n_cores = crew_cores();
    fixed.memory_bytes = meminfo("MemTotal: %llu kB");
}

/* A machine runs on battery when one discharges. */
static void read_power(struct node_state *s)
{
    glob_t g;
    char text[64];
    char pattern[512];
    snprintf(pattern, sizeof(pattern), "%s/class/power_supply/*", sys_file_root());
    if (glob(pattern, 0, NULL, &g) != 0)
        return;
    for (size_t i = 0; i < g.gl_pathc; i++) {
        if (!sys_file_line(text, sizeof(text), "%s/type", g.gl_pathv[i]) ||
            strcmp(text, "Battery") != 0)
            continue;
        if (sys_file_line(text, sizeof(text), "%s/capacity", g.gl_pathv[i]))
            s->battery_percent = (uint32_t)strtoul(text, NULL, 10);
        if (sys_file_line(text, sizeof(text), "%s/status", g.gl_pathv[i]))
            s->on_battery |= strcmp(text, "Discharging") == 0;
    }
    globfree(&g);
}

/* The busy share of all cores since the last sample that is at least a second old; negative: not
 * known yet. */
static double busy_share(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static unsigned long long idle_was, all_was;
    static uint64_t at_ns;
    static double share = -1;
    uint64_t now = clock_ns();
    pthread_mutex_lock(&lock);
    if (at_ns == 0 || now - at_ns >= SAMPLE_NS) {
        unsigned long long v[8] = {0}, all = 0;
        FILE *f = fopen("/proc/stat", "re");
        bool ok = f && fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2],
                              &v[3], &v[4], &v[5], &v[6], &v[7]) == 8;
        if (f)
            fclose(f);
        for (size_t i = 0; ok && i < 8; i++)
            all += v[i];
        unsigned long long idle = v[3] + v[4]; /* waiting for disks is idle too */
        if (ok && at_ns && all > all_was && idle >= idle_was)
            share = 1.0 - (double)(idle - idle_was) / (double)(all - all_was);
        idle_was = idle;
        all_was = all;
        at_ns = now;
    }
    double result = share;
    pthread_mutex_unlock(&lock);
    return result;
}

void node_machine_fill(struct node_state *s)
{
    pthread_once(&once, read_fixed);
    s->isa = fixed.isa;
    s->n_cores = fixed.n_cores;
    s->memory_bytes = fixed.memory_bytes;
    s->memory_free = meminfo("MemAvailable: %llu kB");
    s->cpu = busy_share();
    read_power(s);
}
