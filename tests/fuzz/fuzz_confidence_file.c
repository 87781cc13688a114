/* fuzz_confidence_file.c - any bytes as a calibration file: read or rejected; a result can be
 * used. */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "ensemble/confidence_file.h"
#include "ensemble/drift.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct confidence_calibration c;
    struct drift d;
    uint64_t counts[CONFIDENCE_BINS] = {[4] = DRIFT_WINDOW};
    float p[] = {0.7f, 0.2f, 0.1f, 0};
    struct err e = {0};
    const int rc = confidence_file_parse(&c, "c.json", data, size, &e);
    FUZZ_NOTE("%d %s", rc, e.msg);
    if (rc < 0)
        return 0;
    confidence_scale(p, 4, c.temperature);
    assert(p[0] >= p[1] && p[1] >= p[2] && isfinite(p[0]));
    drift_init(&d, &c);
    (void)drift_look(&d, counts);
    assert(isfinite(d.index));
    FUZZ_NOTE(" %.6g %.6g %.6g", c.temperature, (double)p[0], d.index);
    return 0;
}
