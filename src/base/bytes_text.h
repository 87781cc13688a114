/* bytes_text.h - formats a number of bytes for people: "12.3 MiB". Thread: any; no state. */
#ifndef SHOAL_BASE_BYTES_TEXT_H
#define SHOAL_BASE_BYTES_TEXT_H

/* Formats into out and returns it. */
const char *bytes_text(char out[32], double bytes);

#endif
