#include "engine/symbols.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>

#include "engine/state.h"

namespace bamtrain::engine {

namespace {

bool of_wrappers(const std::string& line) {
  for (const char* file : {"/device.cuh:", "/engine/calls.h:", "/engine/instrumentation.cpp:"}) {
    if (line.find(file) != std::string::npos) return true;
  }
  return false;
}

bool known(const std::string& line) {
  return !line.empty() && line.find("??:") == std::string::npos &&
         line.find(":?") == std::string::npos;
}

/// The line of the innermost frame at `offset` of `object` that is outside the wrappers.
std::string innermost_frame(const std::string& object, uint64_t offset) {
  const std::string command =
      "addr2line --inlines --exe='" + object + "' " + hex(offset) + " 2>/dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string found;
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) {
    std::string line(buffer.data());
    line.resize(line.find_first_of("\n(") == std::string::npos ? line.size()
                                                               : line.find_first_of("\n("));
    while (!line.empty() && line.back() == ' ') line.pop_back();  // before " (discriminator n)"
    if (found.empty() && known(line) && !of_wrappers(line)) found = line;
  }
  pclose(pipe);
  return found;
}

}  // namespace

std::string source_line(const void* return_address) {
  Dl_info info = {};
  if (dladdr(return_address, &info) == 0) return "code at " + hex(uintptr_t(return_address));
  std::array<char, 4096> path;
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  std::string object = info.dli_fname;
  // dladdr names the main program as it was called, which may be a path that is invalid from here.
  void* own_base = nullptr;
  if (Dl_info own = {}; dladdr(reinterpret_cast<const void*>(&source_line), &own) != 0) {
    own_base = own.dli_fbase;
  }
  if (info.dli_fbase == own_base && length > 0) {
    object.assign(path.data(), static_cast<size_t>(length));
  }
  // Minus one: the call, not the instruction after it.
  const uint64_t offset =
      reinterpret_cast<uintptr_t>(return_address) - reinterpret_cast<uintptr_t>(info.dli_fbase) - 1;
  const std::string line = innermost_frame(object, offset);
  return line.empty() ? object + "+" + hex(offset) : line;
}

bool can_find_source_lines() {
  // One past the first byte, as a return address is past its call.
  const auto* inside = reinterpret_cast<const char*>(&source_line) + 1;
  return source_line(inside).find("symbols.cpp:") != std::string::npos;
}

}  // namespace bamtrain::engine
