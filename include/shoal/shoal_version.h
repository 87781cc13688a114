/* shoal_version.h - the version of these headers.
 *
 * Versions are MAJOR.MINOR.PATCH.  While MAJOR is 0, a new MINOR may change the interface; from
 * 1.0.0 on only a new MAJOR may.  The build reads the version from here.
 *
 * Example: refuse headers that are too old, and a library that is older than the headers.
 *
 *     #if SHOAL_VERSION_NUMBER < SHOAL_VERSION_OF(0, 1, 0)
 *     #error "this program needs Shoal 0.1 or later"
 *     #endif
 *
 *     static bool library_is_new_enough(void)
 *     {
 *         return shoal_version_number() >= SHOAL_VERSION_NUMBER;
 *     } */
#ifndef SHOAL_SHOAL_VERSION_H
#define SHOAL_SHOAL_VERSION_H

#define SHOAL_VERSION_MAJOR 0
#define SHOAL_VERSION_MINOR 1
#define SHOAL_VERSION_PATCH 0
#define SHOAL_VERSION "0.1.0"

/* One number to compare: SHOAL_VERSION_NUMBER >= SHOAL_VERSION_OF(0, 2, 0). */
#define SHOAL_VERSION_OF(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))
#define SHOAL_VERSION_NUMBER                                                                       \
    SHOAL_VERSION_OF(SHOAL_VERSION_MAJOR, SHOAL_VERSION_MINOR, SHOAL_VERSION_PATCH)

#endif
