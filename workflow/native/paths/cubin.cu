// The kernel alone, compiled to a cubin for the packages that load one (CuPy, cuda.core,
// cuda.bindings).
#include "add.cuh"
