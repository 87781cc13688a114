/* bench_protocol.h - `shoal bench --peer-protocol`; see bench/PROTOCOL.md. */
#ifndef SHOAL_CMD_MEASURE_BENCH_PROTOCOL_H
#define SHOAL_CMD_MEASURE_BENCH_PROTOCOL_H

/* Serves stdin until it ends; returns the exit code. */
int bench_protocol_run(void);

#endif
