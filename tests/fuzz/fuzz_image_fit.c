/* fuzz_image_fit.c - files of any bytes as images.  The first byte says how the picture is made of
 * them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image/image_fit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct image_fit fits[] = {{16, 16, 16, 16, 0, RESAMPLE_BILINEAR},
                                            {14, 10, 0, 0, 15, RESAMPLE_BICUBIC},
                                            {40, 24, 50, 30, 0, RESAMPLE_LANCZOS}};
    static uint8_t out[40 * 24 * 3];
    struct err e = {0};
    if (size < 1)
        return 0;
    const struct image_fit *f = &fits[data[0] % 3];
    /* a copy of its exact size, so that AddressSanitizer sees what is read behind it */
    uint8_t *file = malloc(size > 1 ? size - 1 : 1);
    if (!file)
        return 0;
    memcpy(file, data + 1, size - 1);
    if (image_fit(f, out, file, size - 1, &e) < 0 && !e.msg[0])
        abort(); /* an error must have a message */
    free(file);
    return 0;
}
