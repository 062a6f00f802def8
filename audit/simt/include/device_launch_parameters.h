// In CUDA the declarations of threadIdx and its kin, for editors; cuda_runtime.h has them.
#pragma once

#include "cuda_runtime.h"
