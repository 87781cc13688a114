/* kernels.cu - all kernels as one program for nvcc, and for the emulator of the tests. */
#include "step.cu"

#include "one.cu"

#include "many.cu"
