// In CUDA this header declares threadIdx and the other built-in variables; here cuda_runtime.h does.
#pragma once

#include "cuda_runtime.h"
