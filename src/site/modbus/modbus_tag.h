/* modbus_tag.h - the value of a tag, and the registers that it lies in.
 *
 * Thread:    pure functions.
 * Failure:   encode: SHOAL_EINVAL, the value does not fit. */
#ifndef SHOAL_SITE_MODBUS_MODBUS_TAG_H
#define SHOAL_SITE_MODBUS_MODBUS_TAG_H

#include <stdint.h>

#include "base/err.h"

struct config_modbus_tag;

#define MODBUS_TAG_MAX_WORDS 4u

/* words: [config_modbus_width] registers as they were read; a coil is 0 or 1. */
double modbus_tag_decode(const struct config_modbus_tag *t, const uint16_t *words);
/* The registers to write; whole numbers are rounded. */
SHOAL_MUST_CHECK int modbus_tag_encode(const struct config_modbus_tag *t, double value,
                                       uint16_t words[MODBUS_TAG_MAX_WORDS], struct err *e);

#endif
