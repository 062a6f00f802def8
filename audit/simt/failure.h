// Ends a failed run: one line in the report, the same line on stderr, exit status 3.
#pragma once

namespace simt {

// The kinds of `error` lines in the report.
enum class Failure { script, launch, barrier, collective, assertion, memory };

// Sends the following lines of the report to this file and flushes each.
void open_report(const char* path);
void report_line(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Writes `error KIND MESSAGE` and ends the process with status 3. Only the first caller reports; others wait.
[[noreturn]] void fail(Failure kind, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Turns SIGSEGV, SIGBUS, SIGFPE and SIGILL into a `memory` failure that names kernel, block and thread.
void catch_signals();
// Every OS thread that runs blocks needs its own signal stack, because the fiber's stack may have overflowed.
void install_signal_stack();

}  // namespace simt
