// The probe's child: gives away what it does not need, then runs the library's checks.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

#include "host/probe.hpp"

namespace patchbay::probe {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true; // shadow memory takes terabytes of address space
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// Writes the verdict to `fd`. timeout_s: of processor time, in case the parent cannot end it.
int run_child(int fd, uint32_t timeout_s, const std::filesystem::path& library,
              const std::optional<host::ProbedComponent>& only);

}  // namespace patchbay::probe
