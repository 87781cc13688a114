/* kern_dispatch.c - chooses the kernel set for this CPU and OS, once at start.
 * Compiled for the baseline machine: it contains no ISA-specific code. */
#include <string.h>

#include "kernels/kern.h"

#define MAYBE_UNUSED __attribute__((unused)) /* a sanitizer build has fewer sets */

/* Which sets were compiled is up to CMakeLists.txt: it defines SHOAL_KERN_NAME for each. */
#if defined(__aarch64__)
#include <sys/auxv.h>
#include <asm/hwcap.h>
extern const struct kern_ops kern_i8mm, kern_dotprod, kern_neon;
MAYBE_UNUSED static int has_i8mm(void)
{
    return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) && (getauxval(AT_HWCAP) & HWCAP_ASIMDDP);
}
MAYBE_UNUSED static int has_dotprod(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}
#elif defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
extern const struct kern_ops kern_amx, kern_avx512, kern_avxvnni, kern_avx2;
MAYBE_UNUSED static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vnni");
}
/* AMX tile state is large: Linux enables it only for a process that requests it. */
MAYBE_UNUSED static int has_amx(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    unsigned a, b, c, d = 0;
    return has_avx512() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & 1u << 24) &&
           (d & 1u << 25) && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}
/* "avx2" implies that the OS saves ymm registers.  Not every compiler knows F16C and AVX-VNNI by
 * name, so these are read with cpuid. */
MAYBE_UNUSED static int has_avx2(void)
{
    unsigned a, b, c = 0, d;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
MAYBE_UNUSED static int has_avxvnni(void)
{
    unsigned a = 0, b, c, d;
    return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4);
}
#endif

static int always(void)
{
    return 1;
}

/* Best first; scalar, the reference, is last and always usable. */
static const struct {
    const struct kern_ops *ops;
    int (*usable)(void);
} table[] = {
#ifdef SHOAL_KERN_AMX
    {&kern_amx, has_amx},
#endif
#ifdef SHOAL_KERN_AVX512
    {&kern_avx512, has_avx512},
#endif
#ifdef SHOAL_KERN_AVXVNNI
    {&kern_avxvnni, has_avxvnni},
#endif
#ifdef SHOAL_KERN_AVX2
    {&kern_avx2, has_avx2},
#endif
#ifdef SHOAL_KERN_I8MM
    {&kern_i8mm, has_i8mm},
#endif
#ifdef SHOAL_KERN_DOTPROD
    {&kern_dotprod, has_dotprod},
#endif
#ifdef SHOAL_KERN_NEON
    {&kern_neon, always}, /* part of Armv8 */
#endif
    {&kern_scalar, always},
};
#define N_SETS (sizeof(table) / sizeof(table[0]))

const struct kern_ops *kern_select(const char *force, struct err *e)
{
    for (size_t i = 0; i < N_SETS; i++)
        if ((!force || !strcmp(force, table[i].ops->name)) && table[i].usable())
            return table[i].ops;
    char names[128] = "";
    for (size_t i = 0; i < N_SETS; i++)
        if (table[i].usable()) {
            strncat(names, names[0] ? ", " : "", sizeof(names) - strlen(names) - 1);
            strncat(names, table[i].ops->name, sizeof(names) - strlen(names) - 1);
        }
    err_set(e, SHOAL_EUNSUPPORTED, "no kernel set named %s can run here; available: %s", force,
            names);
    return NULL;
}

size_t kern_usable(const struct kern_ops **out, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < N_SETS && n < max; i++)
        if (table[i].usable())
            out[n++] = table[i].ops;
    return n;
}

size_t kern_compiled(const struct kern_ops **out, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < N_SETS && n < max; i++)
        out[n++] = table[i].ops;
    return n;
}
