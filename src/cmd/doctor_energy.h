/* doctor_energy.h - shoal doctor --energy: the power of this machine, idle and with all cores busy,
 * as settings for servers that cannot measure it.
 *
 * Thread:    the main thread; blocks for some seconds. */
#ifndef SHOAL_CMD_DOCTOR_ENERGY_H
#define SHOAL_CMD_DOCTOR_ENERGY_H

#include <stdint.h>

struct kern_ops;
struct opts;

/* An exit code. */
int doctor_energy(const struct opts *o, const struct kern_ops *k, uint32_t n_cores);

#endif
