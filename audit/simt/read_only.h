// Reads through the read-only path (__ldg) of memory that the same launch has written: a GPU may give the old value.
//
// Where a program has such reads, its buffers are write-protected at each launch. The first write to a page saves what
// the page held, so that a read can tell whether the launch has changed its bytes.
#pragma once

#include "sanitizers.h"

namespace simt {

#ifdef SIMT_SANITIZED
inline void begin_read_only_tracking() {}
inline void end_read_only_tracking() {}
inline bool admits_write(const void*) { return false; }
#else
// Around a launch.
void begin_read_only_tracking();
void end_read_only_tracking();
// Called by the signal handler: true if the write to this address may now be repeated.
bool admits_write(const void* address);
#endif

}  // namespace simt
