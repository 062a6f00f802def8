#include "script.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "buffers.h"
#include "launch.h"
#include "watchdog.h"

namespace simt {
namespace {

constexpr std::clock_t kRepeating = CLOCKS_PER_SEC / 250;  // after so much processor time no further repetition begins

const char* expected_argument(ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::pointer: return "a pointer, p:NAME+BYTES or p:null";
    case ArgumentKind::i32: return "a signed integer of at most 32 bits, i32:VALUE";
    case ArgumentKind::u32: return "an unsigned integer of at most 32 bits, or a bool, u32:VALUE";
    case ArgumentKind::i64: return "a signed 64-bit integer, i64:VALUE";
    case ArgumentKind::u64: return "an unsigned 64-bit integer, u64:VALUE";
    case ArgumentKind::f32: return "a float, f32:HEX8";
    case ArgumentKind::f64: return "a double, f64:HEX16";
    case ArgumentKind::bytes: return "a struct, or a type of 16 or 8 bits, bytes:HEX";
    case ArgumentKind::word: return "a value of the parameter's size";
  }
  return "";
}

class Script {
 public:
  explicit Script(std::string name) : name_(std::move(name)) {}

  void run_line(const std::string& line) {
    ++number_;
    std::istringstream text(line);
    words_.assign(std::istream_iterator<std::string>(text), std::istream_iterator<std::string>());
    at_ = 0;
    if (number_ == 1) {
      if (line != "kernel-audit-host 1")
        wrong("expected `kernel-audit-host 1` as the first line, but got `" + line + "`");
      return;
    }
    if (words_.empty()) return;
    if (repeats_ > 0 && words_[0] != "end") return repeated_.emplace_back(number_, line), void();
    const std::string command = word("a command");
    if (command == "report") open_report(word("a file").c_str()), report_identity();
    else if (command == "errors") errors();
    else if (command == "threads") threads();
    else if (command == "limit") set_time_limit(number<unsigned>("milliseconds"));
    else if (command == "seed") seed_ = number<std::uint64_t>("a seed");
    else if (command == "buffer") buffer();
    else if (command == "step") report_line("step %s", word("a name").c_str()), ++steps_;
    else if (command == "repeat") repeats_ = number<unsigned>("a count"), repeated_.clear();
    else if (command == "end") repeat();
    else if (command == "fill") fill();
    else if (command == "load") load();
    else if (command == "point") point();
    else if (command == "constant") constant();
    else if (command == "launch") launch();
    else if (command == "save") save();
    else wrong("unknown command `" + command + "`");
    if (at_ != words_.size()) wrong("unexpected `" + words_[at_] + "` after " + command);
  }

  void end() {
    if (number_ == 0) wrong("the script is empty");
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    fail(Failure::script, "%s:%d: %s", name_.c_str(), number_, what.c_str());
  }

  const std::string& word(const char* what) {
    if (at_ == words_.size()) wrong("expected " + std::string(what) + " at the end of the line");
    return words_[at_++];
  }

  template <typename T>
  T parse(const std::string& text, const char* what, int base = 10) const {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size() || text.empty())
      wrong("expected " + std::string(what) + ", but got `" + text + "`");
    return value;
  }

  template <typename T>
  T number(const char* what) {
    return parse<T>(word(what), what);
  }

  template <typename T>
  T hex(const std::string& text, const char* what) const {
    if (text.size() != 2 * sizeof(T)) wrong("expected " + std::string(what) + ", but got `" + text + "`");
    return parse<T>(text, what, 16);
  }

  void errors() {
    const std::string& name = word("a file");
    const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0 || dup2(file, STDERR_FILENO) < 0) wrong("cannot write `" + name + "`: " + std::strerror(errno));
    close(file);
  }

  void threads() {
    const unsigned count = number<unsigned>("a count of threads");
    if (count < 1 || count > 1024) wrong("expected 1 to 1024 threads, but got " + std::to_string(count));
    launcher_ = std::make_unique<Launcher>(count);
  }

  void buffer() {
    const std::string name = word("a name"), file = word("a file");
    const auto offset = number<std::uint64_t>("an offset in bytes");
    const auto bytes = number<std::uint64_t>("a size in bytes");
    if (buffers_.count(name) != 0) wrong("buffer `" + name + "` is declared twice");
    buffers_.emplace(name, map_buffer(file, offset, bytes));
    order_.push_back(name);
  }

  const Buffer& known(const std::string& name) const {
    const auto found = buffers_.find(name);
    if (found == buffers_.end()) wrong("unknown buffer `" + name + "`");
    return found->second;
  }

  void fill() {
    const Buffer& target_buffer = known(word("a buffer"));
    fill_buffer(target_buffer, hex<std::uint64_t>(word("a word"), "a word of 16 hexadecimal digits"));
  }
  void load() {
    const Buffer& target_buffer = known(word("a buffer"));
    load_buffer(target_buffer, word("a file"));
  }
  // constant NAME INDEX: copies a buffer into a variable of the source.
  void constant() {
    const std::string name = word("a buffer");
    const Buffer& source = known(name);
    const auto index = number<unsigned>("a variable's index");
    if (index >= variable_count)
      fail(Failure::arguments, "constant %s: the program was built without this variable", name.c_str());
    const Variable& variable = variables[index];
    if (variable.bytes != source.bytes)
      fail(Failure::arguments, "constant %s: the variable has %lu bytes, but the buffer has %llu", name.c_str(),
           variable.bytes, static_cast<unsigned long long>(source.bytes));
    std::memcpy(variable.address, source.data(), source.bytes);
  }

  // point NAME ADDRESS...: fills a table with addresses in device memory.
  void point() {
    const Buffer& table = known(word("a buffer"));
    for (std::uint64_t at = 0; at < table.bytes; at += sizeof(std::uint64_t)) {
      const std::uint64_t found = device_address(word("an address, INDEX+BYTES or null"));
      write_buffer(table, at, &found, sizeof(found));
    }
  }

  // INDEX+BYTES or null, where INDEX counts the buffers as they were declared.
  std::uint64_t device_address(const std::string& text) const {
    if (text == "null") return 0;
    const std::size_t plus = text.find('+');
    if (plus == std::string::npos) wrong("expected INDEX+BYTES or null, but got `" + text + "`");
    const auto index = parse<std::size_t>(text.substr(0, plus), "a buffer's index");
    if (index >= order_.size()) wrong("there is no buffer " + std::to_string(index));
    const Buffer& buffer = known(order_[index]);
    const auto offset = parse<std::uint64_t>(text.substr(plus + 1), "an offset in bytes");
    if (offset > buffer.bytes)
      fail(Failure::arguments, "%s+%llu is past the %llu bytes of its buffer", order_[index].c_str(),
           static_cast<unsigned long long>(offset), static_cast<unsigned long long>(buffer.bytes));
    return reinterpret_cast<std::uint64_t>(buffer.data() + offset);
  }

  void save() {
    const Buffer& source = known(word("a buffer"));
    save_buffer(source, word("a file"));
  }

  void launch() {
    const auto index = number<unsigned>("a kernel's index");
    if (index >= kernel_count)
      wrong("expected a kernel index below " + std::to_string(kernel_count) + ", but got " + std::to_string(index));
    const Kernel& kernel = kernels[index];
    Grid grid{};
    grid.kernel = &kernel;
    for (uint3* extents : {&grid.blocks, &grid.threads})
      for (unsigned* extent : {&extents->x, &extents->y, &extents->z}) *extent = number<unsigned>("a grid or block size");
    grid.shared_bytes = number<unsigned>("a size of shared memory");
    grid.seed = seed_;
    const auto count = number<unsigned>("a count of arguments");
    if (words_.size() - at_ != count)
      wrong("expected " + std::to_string(count) + " arguments, but got " + std::to_string(words_.size() - at_));
    if (count != kernel.parameter_count)
      fail(Failure::arguments, "kernel %s: expected %u arguments, but the launch has %u", kernel.name,
           kernel.parameter_count, count);
    std::vector<std::uint64_t> values(count);
    structs_.clear();
    for (unsigned i = 0; i < count; ++i) values[i] = argument(kernel, i, words_[at_++]);
    grid.arguments = values.data();

    // Each step and each repetition has another kind than the one before, and the second arm begins with a third.
    grid.poison = ((steps_ > 0 ? steps_ - 1 : 0) + repetition_ + (seed_ != 0 ? 2 : 0)) % kPoisonKinds;

    launcher_->run(grid);
    std::fflush(stdout);
    if (repetition_ > 0) return;
    const unsigned long long blocks = static_cast<unsigned long long>(grid.blocks.x) * grid.blocks.y * grid.blocks.z;
    report_line("launch %u %s %llu %u", index, kernel.name, blocks, grid.threads.x * grid.threads.y * grid.threads.z);
  }

  // Executes the lines since `repeat` so often; what the last time leaves counts. The report has the launches of the
  // first. A repetition that would begin too late is left out.
  void repeat() {
    if (repeats_ == 0) wrong("`end` without `repeat`");
    const unsigned wanted = repeats_;
    const int end = number_;
    const std::clock_t began = std::clock();
    repeats_ = 0;
    do {
      for (const auto& [number, line] : repeated_) {
        number_ = number - 1;
        run_line(line);
      }
    } while (++repetition_ < wanted && std::clock() - began < kRepeating);
    report_line("repeated %u", repetition_);
    repetition_ = 0;
    number_ = end;
    at_ = words_.size();
  }

  std::uint64_t argument(const Kernel& kernel, unsigned position, const std::string& text) {
    const Parameter& parameter = kernel.parameters[position];
    const std::size_t colon = text.find(':');
    const std::string kind = text.substr(0, colon);
    const std::string value = colon == std::string::npos ? "" : text.substr(colon + 1);
    const auto is = [&](ArgumentKind wanted, const char* written) {
      if (parameter.kind == ArgumentKind::word && kind == written)
        return parameter.bytes == 8 ? wanted == ArgumentKind::pointer || kind[1] == '6' : kind[1] != '6' && kind != "p";
      return parameter.kind == wanted && kind == written;
    };
    if (is(ArgumentKind::pointer, "p")) return value == "null" ? 0 : pointer(kernel, position, value);
    if (is(ArgumentKind::pointer, "u64") && value == "0") return 0;  // as on a GPU, where eight bytes are a pointer
    if (is(ArgumentKind::i32, "i32")) return in_range(kernel, position, parse<std::int32_t>(value, "an i32"));
    if (is(ArgumentKind::u32, "u32")) return in_range(kernel, position, parse<std::uint32_t>(value, "a u32"));
    if (is(ArgumentKind::i64, "i64")) return static_cast<std::uint64_t>(parse<std::int64_t>(value, "an i64"));
    if (is(ArgumentKind::u64, "u64")) return parse<std::uint64_t>(value, "a u64");
    if (is(ArgumentKind::f32, "f32")) return hex<std::uint32_t>(value, "a float of 8 hexadecimal digits");
    if (is(ArgumentKind::f64, "f64")) return hex<std::uint64_t>(value, "a double of 16 hexadecimal digits");
    if (is(ArgumentKind::bytes, "bytes")) return bytes(kernel, position, value);
    if (is(ArgumentKind::i32, kind.c_str()) || is(ArgumentKind::u32, kind.c_str())) {
      const bool one = parameter.bytes == 1, two = parameter.bytes == 2, sign = parameter.kind == ArgumentKind::i32;
      if ((one && kind == "bool") || (one && kind == (sign ? "i8" : "u8")) || (two && kind == (sign ? "i16" : "u16")))
        return static_cast<std::uint64_t>(parse<std::int64_t>(value, "an integer"));
    }
    fail(Failure::arguments, "kernel %s, argument %u of %u bytes: expected %s, but got %s", kernel.name, position + 1,
         parameter.bytes, expected_argument(parameter.kind), text.substr(0, 200).c_str());
  }

  // HEX[,BYTE=ADDRESS...]: the bytes of a value, and the addresses that it holds.
  std::uint64_t bytes(const Kernel& kernel, unsigned position, const std::string& text) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::vector<unsigned char> value(comma / 2);
    for (std::size_t at = 0; at < value.size(); ++at)
      value[at] = hex<std::uint8_t>(text.substr(2 * at, 2), "two hexadecimal digits");
    const unsigned expected = kernel.parameters[position].bytes;
    if (value.size() != expected)
      fail(Failure::arguments, "kernel %s, argument %u: expected %u bytes, but got %zu", kernel.name, position + 1, expected,
           value.size());
    for (std::size_t at = comma; at < text.size();) {
      const std::size_t end = std::min(text.find(',', at + 1), text.size()), equal = text.find('=', at);
      if (equal == std::string::npos || equal > end) wrong("expected BYTE=ADDRESS in `" + text + "`");
      const auto byte = parse<std::size_t>(text.substr(at + 1, equal - at - 1), "a byte");
      const std::uint64_t found = device_address(text.substr(equal + 1, end - equal - 1));
      if (byte + sizeof(found) > value.size()) wrong("an address past the end of `" + text + "`");
      std::memcpy(value.data() + byte, &found, sizeof(found));
      at = end;
    }
    structs_.push_back(std::move(value));
    return reinterpret_cast<std::uint64_t>(structs_.back().data());
  }

  // bool, char and short parameters accept i32 and u32 if the value fits.
  template <typename T>
  std::uint64_t in_range(const Kernel& kernel, unsigned position, T value) const {
    const unsigned bits = kernel.parameters[position].bytes * 8;
    const bool fits = bits >= 32 || (std::numeric_limits<T>::is_signed
                                         ? value >= -(T{1} << (bits - 1)) && value < (T{1} << (bits - 1))
                                         : value < (T{1} << bits));
    if (!fits)
      fail(Failure::arguments, "kernel %s, argument %u: %s does not fit in %u bits", kernel.name, position + 1,
           std::to_string(value).c_str(), bits);
    return static_cast<std::uint64_t>(value);
  }

  std::uint64_t pointer(const Kernel& kernel, unsigned position, const std::string& text) const {
    const std::size_t plus = text.rfind('+');
    if (plus == std::string::npos) wrong("expected p:NAME+BYTES, but got `p:" + text + "`");
    const Buffer& buffer = known(text.substr(0, plus));
    const auto offset = parse<std::uint64_t>(text.substr(plus + 1), "an offset in bytes");
    if (offset > buffer.bytes)
      fail(Failure::launch, "kernel %s, argument %u: %s is past the %llu bytes of its buffer", kernel.name,
           position + 1, text.c_str(), static_cast<unsigned long long>(buffer.bytes));
    const auto address = reinterpret_cast<std::uint64_t>(buffer.data()) + offset;
    const unsigned alignment = kernel.parameters[position].alignment;
    if (address % alignment != 0)
      fail(Failure::launch, "kernel %s, argument %u: expected an address aligned to %u bytes, but %s is not",
           kernel.name, position + 1, alignment, text.c_str());
    return address;
  }

  static void report_identity() {
    std::ifstream program("/proc/self/exe", std::ios::binary);
    std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a-64
    std::vector<char> bytes(1 << 16);
    while (program.read(bytes.data(), static_cast<std::streamsize>(bytes.size())) || program.gcount() > 0)
      for (std::streamsize i = 0; i < program.gcount(); ++i)
        hash = (hash ^ static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)])) * 1099511628211ULL;
    report_line("identity %016llx", static_cast<unsigned long long>(hash));
  }

  std::string name_;
  int number_ = 0;
  std::vector<std::string> words_;
  std::size_t at_ = 0;
  std::uint64_t seed_ = 0;
  unsigned steps_ = 0;
  unsigned repeats_ = 0;     // how often the lines that follow will run, up to `end`
  unsigned repetition_ = 0;  // the one that runs
  std::vector<std::pair<int, std::string>> repeated_;
  std::unique_ptr<Launcher> launcher_ = std::make_unique<Launcher>(1);
  std::map<std::string, Buffer> buffers_;
  std::vector<std::string> order_;  // of the buffers, as they were declared
  std::vector<std::vector<unsigned char>> structs_;  // of the arguments of one launch
};

}  // namespace

void run_script(const char* path) {
  std::ifstream file(path);
  if (!file) fail(Failure::script, "cannot open %s: %s", path, std::strerror(errno));
  const std::string whole(path);
  const std::size_t slash = whole.rfind('/');
  if (slash != std::string::npos && chdir(whole.substr(0, slash + 1).c_str()) != 0)
    fail(Failure::script, "cannot enter the folder of %s: %s", path, std::strerror(errno));
  Script script(slash == std::string::npos ? whole : whole.substr(slash + 1));
  for (std::string line; std::getline(file, line);) script.run_line(line);
  script.end();
  report_line("done");
}

}  // namespace simt
