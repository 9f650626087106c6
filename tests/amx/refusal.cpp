#include "refusal.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace patchbay::amx_by_hand {
namespace {

thread_local const char* name_of_instruction = "";
thread_local const void* at_of_instruction = nullptr;

}  // namespace

void begin_instruction(const char* name, const void* at) {
    name_of_instruction = name;
    at_of_instruction = at;
}

void refuse(const char* format, ...) {
    char reason[256] = {}, line[1024] = {};
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    Dl_info file{};
    const bool found = dladdr(at_of_instruction, &file) != 0 && file.dli_fname;
    const auto offset = static_cast<const char*>(at_of_instruction) - static_cast<const char*>(file.dli_fbase);
    const int length = std::snprintf(line, sizeof line, "amx_by_hand: %s at %p (%s + 0x%tx): %s\n", name_of_instruction,
                                     at_of_instruction, found ? file.dli_fname : "?", found ? offset : 0, reason);
    if (write(STDERR_FILENO, line, std::min(static_cast<size_t>(length), sizeof line - 1)) < 0) std::abort();
    std::abort();
}

}  // namespace patchbay::amx_by_hand
