// Model folders that tests write themselves, right ones and wrong ones.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace patchbay::weights {

struct WrittenTensor {
    std::string name, dtype; // "F32"
    std::vector<int64_t> shape;
    std::string bytes;
};

std::string safetensors(const std::vector<WrittenTensor>&);
std::string safetensors(const std::string& header, const std::string& data); // as given, with a true length

std::string f32_bytes(const std::vector<float>&);
std::string u16_bytes(const std::vector<uint16_t>&);
std::string u64_bytes(uint64_t); // little-endian

class ModelFolder : public testing::Test { // a fresh folder for each test
  protected:
    void SetUp() override;
    void TearDown() override;
    void write(const std::string& name, const std::string& content) const;
    std::filesystem::path folder;
};

}  // namespace patchbay::weights
