// Ends a failed run: one line in the report, the same line on stderr, exit status 3.
#pragma once

namespace simt {

// What an `error` line of the report may be about; `room`, `unsupported` and `arguments`, which the declaration gives,
// accuse no kernel;
// `wait` says where threads were when the time was over.
enum class Failure { script, launch, barrier, collective, assertion, memory, room, unsupported, arguments, wait };

// Sends the following lines of the report to this file and flushes each.
void open_report(const char* path);
void report_line(const char* format, ...) __attribute__((format(printf, 1, 2)));

// A system call failed over a file, as errno says: `room` where no kernel is to blame, else `script`.
[[noreturn]] void fail_over(const char* doing, const char* path);

// Writes `error KIND MESSAGE` and ends the process with status 3. The first caller wins; others wait for the end.
[[noreturn]] void fail(Failure kind, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Turns SIGSEGV, SIGBUS, SIGFPE and SIGILL into a `memory` failure that names kernel, block and thread.
void catch_signals();
// Every OS thread that runs blocks needs its own signal stack, because the fiber's stack may have overflowed.
void install_signal_stack();

}  // namespace simt
