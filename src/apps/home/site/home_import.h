/* home_import.h - a home file from the registries of Home Assistant (core.area_registry,
 * core.device_registry, core.entity_registry of its folder .storage).
 *
 * Thread:    any.
 * Ownership: fills the caller's buffer.
 * Failure:   SHOAL_EFORMAT with the reason; SHOAL_ENOMEM. */
#ifndef SHOAL_APPS_HOME_HOME_IMPORT_H
#define SHOAL_APPS_HOME_HOME_IMPORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define HOME_IMPORT_MAX_BYTES ((size_t)64 << 20)

struct home_import_text {
    const char *text; /* NULL: none */
    size_t n;
};

struct home_import {
    struct home_import_text areas, devices, entities; /* entities is required */
};

struct home_import_report {
    uint32_t things; /* of all types but rooms */
    uint32_t rooms;
    uint32_t skipped; /* entities that are disabled, hidden, or not useful here */
};

/* Writes the home file as YAML into out. */
SHOAL_MUST_CHECK int home_import_write(const struct home_import *in, struct buf *out,
                                       struct home_import_report *report, struct err *e);

#endif
