/* fuzz_machine_file.c - a learned machine. A parsed machine is written back as an equal file,
 * and readings only raise alarms. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "things/joint.h"
#include "things/machine_file.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const double values[] = {0, 1, -1, 1e9, 1e-9, 3};
    struct machine_file *m, *again;
    struct err e;
    struct buf b;
    if (machine_file_parse(&m, (const char *)data, size, &e) < 0) {
        FUZZ_NOTE("%s", e.msg);
        return 0;
    }
    buf_init(&b, (size_t)64 << 20);
    machine_file_write(m, &b);
    FUZZ_NOTE_BYTES(b.data, b.len);
    if (b.rc == 0 && (machine_file_parse(&again, b.data, b.len, &e) < 0 || again->n != m->n))
        abort();
    for (uint32_t i = 0; i < m->n; i++) {
        static struct channel c;
        channel_init(&c, &m->profiles[i], 0, 1000);
        for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++)
            if (!(channel_step(&c, values[k], (int64_t)k * 1000).expected >= 0))
                abort();
    }
    for (size_t k = 0; m->joint && k < sizeof(values) / sizeof(values[0]); k++) {
        double row[JOINT_MAX_CHANNELS];
        uint32_t worst;
        for (uint32_t i = 0; i < m->n; i++)
            row[i] = values[(k + i) % (sizeof(values) / sizeof(values[0]))];
        if (!(joint_step(m->joint, row, 86400, &worst) >= 0) || worst >= m->n)
            abort();
    }
    if (b.rc == 0)
        machine_file_destroy(again);
    machine_file_destroy(m);
    buf_fini(&b);
    return 0;
}
