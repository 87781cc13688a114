/* remote_generate.h - shoal generate with a server: continues a text there.
 *
 * Thread:    the main thread. Returns an exit code, after a message. */
#ifndef SHOAL_CMD_REMOTE_GENERATE_H
#define SHOAL_CMD_REMOTE_GENERATE_H

struct buf;
struct opts;

int remote_generate(const struct opts *o, const struct buf *prompt, int interrupt_fd);

#endif
