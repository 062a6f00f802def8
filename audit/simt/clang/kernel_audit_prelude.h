// What clang reads after its own wrapper and before a source.
#pragma once

#undef __managed__  // clang has managed memory for HIP only; one memory serves both sides here
#define __managed__ __device__
