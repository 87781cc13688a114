/* energy.c - see energy.h. */
#include "base/energy.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "base/sys_file.h"

#define MICRO 1e-6

static void add_file(struct energy *e, const char *folder, const char *name, double wraps_at)
{
    double now;
    if (e->n_files == ENERGY_MAX_FILES ||
        !sys_file_number(&now, "%s/%s", folder, name)) /* since 2020 only root may read RAPL */
        return;
    const int n = snprintf(e->files[e->n_files].path, ENERGY_PATH_BYTES, "%s/%s", folder, name);
    if (n <= 0 || (size_t)n >= ENERGY_PATH_BYTES)
        return;
    e->files[e->n_files].last = now;
    e->files[e->n_files++].wraps_at = wraps_at;
}

/* Calls fn for each folder of a pattern below sys. */
static void each(struct energy *e, const char *sys, const char *pattern,
                 void (*fn)(struct energy *e, const char *folder))
{
    char path[ENERGY_PATH_BYTES];
    glob_t g;
    snprintf(path, sizeof(path), "%s/%s", sys, pattern);
    if (glob(path, 0, NULL, &g) != 0)
        return;
    for (size_t i = 0; i < g.gl_pathc; i++)
        fn(e, g.gl_pathv[i]);
    globfree(&g);
}

static bool is_named(const char *folder, const char *name)
{
    char text[64];
    return sys_file_line(text, sizeof(text), "%s/name", folder) &&
           strncmp(text, name, strlen(name)) == 0;
}

static void add_zone(struct energy *e, const char *folder)
{
    double range = 0;
    if (!sys_file_number(&range, "%s/max_energy_range_uj", folder))
        range = 0;
    add_file(e, folder, "energy_uj", range);
}

static void add_psys(struct energy *e, const char *folder)
{
    if (is_named(folder, "psys"))
        add_zone(e, folder);
}

/* Packages contain cores and graphics, but not the memory. */
static void add_package(struct energy *e, const char *folder)
{
    if (is_named(folder, "package") || is_named(folder, "dram"))
        add_zone(e, folder);
}

static void add_counter(struct energy *e, const char *folder)
{
    add_file(e, folder, "energy1_input", 0);
}

static void add_sensor(struct energy *e, const char *folder)
{
    const uint32_t before = e->n_files;
    add_file(e, folder, "power1_input", 0);
    if (e->n_files == before)
        add_file(e, folder, "power1_average", 0);
}

static void add_battery(struct energy *e, const char *folder)
{
    char status[32];
    if (sys_file_line(status, sizeof(status), "%s/status", folder) &&
        strcmp(status, "Discharging") == 0)
        add_file(e, folder, "power_now", 0);
}

void energy_open(struct energy *e, const char *sys, const struct energy_model *m)
{
    static const struct {
        enum energy_kind kind;
        bool counts;
        const char *pattern;
        void (*fn)(struct energy *e, const char *folder);
    } sources[] = {{ENERGY_RAPL, true, "class/powercap/intel-rapl:*", add_psys},
                   {ENERGY_RAPL, true, "class/powercap/intel-rapl:*", add_package},
                   {ENERGY_HWMON, true, "class/hwmon/hwmon*", add_counter},
                   {ENERGY_HWMON, false, "class/hwmon/hwmon*", add_sensor},
                   {ENERGY_BATTERY, false, "class/power_supply/*", add_battery}};
    *e = (struct energy){.model = *m};
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]) && e->n_files == 0; i++) {
        each(e, sys, sources[i].pattern, sources[i].fn);
        e->kind = sources[i].kind;
        e->counts = sources[i].counts;
    }
    if (e->n_files == 0)
        e->kind = m->idle > 0 || m->core > 0 ? ENERGY_MODEL : ENERGY_NONE;
}

/* Microjoules that a counter has grown by, over its end if need be. */
static double grown(struct energy *e, uint32_t i, double now)
{
    double more = now - e->files[i].last;
    if (more < 0)
        more = e->files[i].wraps_at > e->files[i].last
                   ? e->files[i].wraps_at - e->files[i].last + now
                   : 0;
    e->files[i].last = now;
    return more;
}

static double measured(struct energy *e, double seconds)
{
    double joules = 0, now;
    for (uint32_t i = 0; i < e->n_files; i++) {
        if (!sys_file_number(&now, "%s", e->files[i].path))
            continue;
        joules += MICRO * (e->counts ? grown(e, i, now) : now > 0 ? now * seconds : 0);
    }
    return joules;
}

double energy_read(struct energy *e, uint64_t now_ns, uint64_t cpu_ns)
{
    const bool first = e->read_ns == 0;
    const double seconds = first || now_ns < e->read_ns ? 0 : (double)(now_ns - e->read_ns) / 1e9;
    const double busy = first || cpu_ns < e->cpu_ns ? 0 : (double)(cpu_ns - e->cpu_ns) / 1e9;
    const double joules = e->kind == ENERGY_MODEL ? e->model.idle * seconds + e->model.core * busy
                                                  : measured(e, seconds);
    e->joules += joules;
    if (seconds > 0)
        e->watts = joules / seconds;
    e->read_ns = now_ns;
    e->cpu_ns = cpu_ns;
    return e->joules;
}

const char *energy_kind_name(enum energy_kind k)
{
    static const char *const names[] = {"none", "rapl", "hwmon", "battery", "model"};
    return names[k];
}
