// What the C++ of a translated PTX module includes (audit/ptx/translate.py). Every name is in namespace ptx.
#pragma once

#include "../device.h"
#include "../include/simt_kernel.h"
#include "../include/vector_types.h"

extern __thread const uint3 threadIdx;
extern __thread const uint3 blockIdx;
extern __thread const dim3 blockDim;
extern __thread const dim3 gridDim;

#include "barrier.h"
#include "conversion.h"
#include "floating.h"
#include "functions.h"
#include "integer.h"
#include "memory.h"
#include "tensor.h"
#include "words.h"
