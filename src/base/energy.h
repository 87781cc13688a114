/* energy.h - how much energy the machine has used, from what it measures itself.
 *
 * In this order: counters of the processor (RAPL: psys, or all packages and their memory), counters
 * and sensors of the board (hwmon: INA219 and the like), a battery that discharges; otherwise a
 * model: so many watts when idle, and so many more for each core that this process keeps busy.
 *
 * Thread:    the caller's; energy_read is called often enough for sensors that only know power.
 * Ownership: plain data.
 * Failure:   a source that cannot be read any more adds nothing. */
#ifndef SHOAL_BASE_ENERGY_H
#define SHOAL_BASE_ENERGY_H

#include <stdbool.h>
#include <stdint.h>

enum energy_kind { ENERGY_NONE, ENERGY_RAPL, ENERGY_HWMON, ENERGY_BATTERY, ENERGY_MODEL };
#define ENERGY_MAX_FILES 16u
#define ENERGY_PATH_BYTES 256u

/* Where nothing measures: watts. */
struct energy_model {
    double idle, core; /* core: for each that is busy; both 0: there is no model */
};

struct energy {
    enum energy_kind kind;
    struct energy_model model;
    bool counts; /* files have microjoules; otherwise microwatts */
    uint32_t n_files;
    struct {
        char path[ENERGY_PATH_BYTES];
        double last, wraps_at; /* of a counter */
    } files[ENERGY_MAX_FILES];
    double joules; /* so far */
    double watts;  /* of the last reading */
    uint64_t read_ns, cpu_ns;
};

/* sys: sys_file_root().  Chooses a source. */
void energy_open(struct energy *e, const char *sys, const struct energy_model *m);
/* The joules used since open.  now_ns: clock_ns; cpu_ns: clock_process_ns. */
double energy_read(struct energy *e, uint64_t now_ns, uint64_t cpu_ns);
/* "rapl", "hwmon", "battery", "model", "none" */
const char *energy_kind_name(enum energy_kind k);
/* It is computed, not measured. */
static inline bool energy_is_estimated(const struct energy *e)
{
    return e->kind == ENERGY_MODEL;
}

#endif
