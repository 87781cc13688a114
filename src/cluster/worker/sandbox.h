/* sandbox.h - confines this process before it reads a model, to contain exploits in model files.
 *
 * No capabilities, also not as root, and no new privileges; files: the model and its key to read,
 * the cache folder to read and write, nothing else (Landlock), and of others not even their size
 * (sandbox_stat.h); system calls: those that computing needs (seccomp), so no sockets, no programs,
 * no other processes; limits of address space, open files and core dumps; CPUs and priority as
 * configured, and not to be changed.  Descriptors that are open stay usable.
 *
 * Thread:    before the process has other threads.
 * Failure:   missing kernel features are listed, not an error; settings that cannot be applied fail
 *            with SHOAL_EINVAL. */
#ifndef SHOAL_CLUSTER_WORKER_SANDBOX_H
#define SHOAL_CLUSTER_WORKER_SANDBOX_H

#include "base/err.h"
#include "host/registry.h"

struct sandbox_opts {
    const char *model;     /* file or folder */
    const char *cache_dir; /* NULL: none */
    const char *key_file;  /* of an encrypted model; NULL: none */
    struct registry_apart_opts limits;
};

/* missing: what this kernel lacks, for people; "": nothing. */
SHOAL_MUST_CHECK int sandbox_enter(const struct sandbox_opts *o, char *missing, size_t cap,
                                   struct err *e);

/* Features of this kernel, without entering: for `shoal doctor`. */
struct sandbox_support {
    int landlock_abi; /* 0: none */
    bool seccomp;
};
struct sandbox_support sandbox_support(void);

#endif
