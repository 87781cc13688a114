/* sandbox_stat.c - see sandbox_stat.h. */
#include "cluster/worker/sandbox_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

const int sandbox_stat_calls[] = {
#ifdef SYS_stat
    SYS_stat,       SYS_lstat,     SYS_access,
#endif
    SYS_newfstatat, SYS_faccessat, SYS_faccessat2, -1};

#if defined(__x86_64__)
#define ARG(u, i) ((u)->uc_mcontext.gregs[(const int[]){REG_RDI, REG_RSI, REG_RDX, REG_R10}[i]])
#define RESULT(u) ((u)->uc_mcontext.gregs[REG_RAX])
#elif defined(__aarch64__)
#define ARG(u, i) ((u)->uc_mcontext.regs[i])
#define RESULT(u) ((u)->uc_mcontext.regs[0])
#endif

#ifdef RESULT

/* The result of a system call, as the kernel would return it. */
static long kernel(long rc)
{
    return rc < 0 ? -errno : rc;
}

/* out NULL: only whether it can be read. */
static long ask(int dir, const char *path, struct stat *out, int flags)
{
    const int how = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
                    (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0);
    const long fd = kernel(syscall(SYS_openat, dir, path, how, 0));
    if (fd == -ENOENT && (flags & AT_EMPTY_PATH) && out && path[0] == '\0')
        return kernel(syscall(SYS_fstat, dir, out)); /* the path is readable memory: not EFAULT */
    if (fd < 0)
        return fd;
    const long rc = out ? kernel(syscall(SYS_fstat, (int)fd, out)) : 0;
    close((int)fd);
    return rc;
}

static long answer(int call, ucontext_t *u)
{
    const char *first = (const char *)(uintptr_t)ARG(u, 0);
    const char *second = (const char *)(uintptr_t)ARG(u, 1);
    const int dir = (int)ARG(u, 0);
#ifdef SYS_stat
    if (call == SYS_stat || call == SYS_lstat)
        return ask(AT_FDCWD, first, (struct stat *)(uintptr_t)ARG(u, 1),
                   call == SYS_lstat ? AT_SYMLINK_NOFOLLOW : 0);
    if (call == SYS_access)
        return ask(AT_FDCWD, first, NULL, 0);
#endif
    if (call == SYS_newfstatat)
        return ask(dir, second, (struct stat *)(uintptr_t)ARG(u, 2), (int)ARG(u, 3));
    return call == SYS_faccessat || call == SYS_faccessat2 ? ask(dir, second, NULL, 0) : -ENOSYS;
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
    const int before = errno;
    (void)signal;
    RESULT((ucontext_t *)context) = answer(info->si_syscall, context);
    errno = before;
}

int sandbox_stat_handle(void)
{
    struct sigaction a = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_RESTART};
    return sigaction(SIGSYS, &a, NULL) == 0 ? 0 : SHOAL_EUNSUPPORTED;
}

#else

int sandbox_stat_handle(void)
{
    return SHOAL_EUNSUPPORTED;
}

#endif
