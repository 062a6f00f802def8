// The script that a program executes: text with one command a line. All numbers are checked.
//
//   kernel-audit-host 1
//   report NAME
//   errors NAME          redirects standard error to this file
//   threads N
//   seed S
//   buffer NAME FILE OFFSET BYTES
//   step NAME
//   fill NAME HEX16
//   load NAME FILE
//   launch INDEX GX GY GZ BX BY BZ SHARED NARGS ARG...    ARG: p:NAME+BYTES i32: u32: i64: u64: f32:HEX8 f64:HEX16
//   save NAME FILE
//
// The report: identity HEX16, step NAME, launch INDEX ENTRY BLOCKS THREADS (the entry may contain spaces), done, error.
#pragma once

namespace simt {

// Runs the script from its own folder. Ends the process with status 3 at the first error.
void run_script(const char* path);

}  // namespace simt
