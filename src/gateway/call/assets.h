/* assets.h - the files of web/, built into the program (tools/embed_files.c). */
#ifndef SHOAL_GATEWAY_CALL_ASSETS_H
#define SHOAL_GATEWAY_CALL_ASSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;

struct asset {
    const char *path; /* "/index.html" */
    const char *type, *etag;
    const uint8_t *data;
    size_t n;
    const uint8_t *gzip;
    size_t n_gzip; /* 0: compression would not make it smaller */
};

extern const struct asset assets[];
extern const size_t n_assets;

/* Any path: a file of web/, "/" being index.html and "/docs" docs.html; else 404. */
void assets_handle(struct call *c);
bool assets_has(const char *path); /* whether there is a page or file for it */

#endif
