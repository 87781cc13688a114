/* doctor_energy.c - see doctor_energy.h. */
#include "cmd/doctor_energy.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/energy.h"
#include "base/sys_file.h"
#include "cmd/cmd.h"
#include "cmd/machine.h"
#include "wire/json_out.h"

#define LOOK_NS 250000000

/* The mean power for this long, while `k` keeps n_cores busy, or nothing does. */
static double mean_watts(struct energy *e, const struct kern_ops *k, uint32_t n_cores,
                         uint64_t each_ns)
{
    const uint64_t from = clock_ns();
    const double before = energy_read(e, from, clock_process_ns());
    uint64_t now = from;
    while (now - from < each_ns) {
        if (k)
            (void)machine_int8_peak(k, n_cores);
        else
            nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        now = clock_ns();
        energy_read(e, now, clock_process_ns());
    }
    return (e->joules - before) / ((double)(now - from) / 1e9);
}

static int put(const struct opts *o, const struct energy *e, double idle, double busy,
               uint32_t n_cores)
{
    const double core = busy > idle ? (busy - idle) / n_cores : 0;
    const char *source = e->n_files ? energy_kind_name(e->kind) : "meter";
    struct buf b;
    buf_init(&b, 4096);
    struct json_out j = json_out_make(&b);
    if (opts_flag(o, "json")) {
        json_out_object(&j);
        json_out_member_str(&j, "source", source);
        json_out_member_num(&j, "idle_watts", idle);
        json_out_member_num(&j, "busy_watts", busy);
        json_out_member_uint(&j, "cores", n_cores);
        json_out_member_num(&j, "core_watts", core);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    } else {
        buf_printf(&b,
                   "# %s: %.2f W idle, %.2f W with %u busy cores\n"
                   "energy: {count: true, idle_watts: %.3f, core_watts: %.3f}\n",
                   source, idle, busy, n_cores, idle, core);
        if (e->n_files)
            buf_puts(&b, "# this machine measures: servers here need only count: true\n");
    }
    const int rc = cmd_print(o->page, &b);
    buf_fini(&b);
    return rc;
}

int doctor_energy(const struct opts *o, const struct kern_ops *k, uint32_t n_cores)
{
    static const struct energy_model none;
    double idle = opts_real(o, "idle-watts"), busy = opts_real(o, "busy-watts");
    const uint64_t each_ns = (uint64_t)(opts_real(o, "seconds") * 1e9);
    struct energy e;
    energy_open(&e, sys_file_root(), &none);
    if (idle > 0 || busy > 0) {
        if (idle <= 0 || busy <= idle)
            return opts_usage(o->page,
                              "--busy-watts must be more than --idle-watts, and both given");
        e.n_files = 0; /* the meter knows better */
        return put(o, &e, idle, busy, n_cores);
    }
    if (e.kind == ENERGY_NONE) {
        fprintf(stderr,
                "this machine measures no energy, or only for root. With a meter at the plug: all "
                "cores are\nbusy now; read it, and again when this ends; then: shoal doctor "
                "--energy --idle-watts W --busy-watts W\n");
        (void)mean_watts(&e, k, n_cores, each_ns);
        return CMD_NOT_WELL;
    }
    idle = mean_watts(&e, NULL, n_cores, each_ns);
    busy = mean_watts(&e, k, n_cores, each_ns);
    return put(o, &e, idle, busy, n_cores);
}
