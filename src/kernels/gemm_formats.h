/* gemm_formats.h - instantiates a set's inlined gemm_fmt for each integer format except
 * KERN_Q8W, with the format as a constant. Included after the definition of gemm_fmt. Private to
 * src/kernels. */
#define GEMM_OF(FMT)                                                                               \
    static void gemm_##FMT(const struct kern_mat *w, const struct kern_act *a, uint32_t n,         \
                           uint32_t tile0, uint32_t tile1, float *out, size_t out_ld)              \
    {                                                                                              \
        gemm_fmt(w, a, n, tile0, tile1, out, out_ld, FMT);                                         \
    }
GEMM_OF(KERN_Q8)
GEMM_OF(KERN_Q4)
GEMM_OF(KERN_Q4M)
GEMM_OF(KERN_Q5)
GEMM_OF(KERN_Q5M)
GEMM_OF(KERN_Q6)
#undef GEMM_OF
