/* bytes_text.h - a number of bytes as people read it: "12.3 MiB".  Thread: any; no state. */
#ifndef SHOAL_BASE_BYTES_TEXT_H
#define SHOAL_BASE_BYTES_TEXT_H

/* Formats into out and returns it. */
const char *bytes_text(char out[32], double bytes);

#endif
