// A whole file as read-only memory, for tensors that are too large to copy.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>

#include "base/result.hpp"

namespace patchbay::weights {

class MappedFile {
  public:
    static Result<MappedFile> open(const std::filesystem::path&);
    MappedFile(MappedFile&&) noexcept;
    MappedFile& operator=(MappedFile&&) = delete;
    ~MappedFile();

    std::span<const std::byte> bytes() const { return bytes_; } // valid as long as this object
    // The pages that hold some of these bytes leave this process's memory; reading them brings them back, from the
    // system's cache of the file where it still has them. `some`: a part of bytes().
    static void forget(std::span<const std::byte> some);

  private:
    explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
    std::span<const std::byte> bytes_;
};

}  // namespace patchbay::weights
