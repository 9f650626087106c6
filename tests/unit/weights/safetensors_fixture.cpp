#include "unit/weights/safetensors_fixture.hpp"

#include <unistd.h>

#include <cstring>
#include <fstream>

namespace patchbay::weights {

std::string u64_bytes(uint64_t n) {
    std::string out;
    for (int i = 0; i < 8; ++i) out += static_cast<char>(n >> (8 * i));
    return out;
}

std::string safetensors(const std::string& header, const std::string& data) {
    return u64_bytes(header.size()) + header + data;
}

std::string safetensors(const std::vector<WrittenTensor>& tensors) {
    std::string header = "{\"__metadata__\":{\"format\":\"pt\"}", data;
    for (const WrittenTensor& t : tensors) {
        std::string shape;
        for (const int64_t n : t.shape) shape += (shape.empty() ? "" : ",") + std::to_string(n);
        header += ",\"" + t.name + "\":{\"dtype\":\"" + t.dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
                  std::to_string(data.size()) + "," + std::to_string(data.size() + t.bytes.size()) + "]}";
        data += t.bytes;
    }
    header += "}";
    header.resize((header.size() + 7) / 8 * 8, ' '); // as writers of the format do
    return safetensors(header, data);
}

std::string f32_bytes(const std::vector<float>& values) {
    std::string out(values.size() * 4, '\0');
    std::memcpy(out.data(), values.data(), out.size());
    return out;
}

std::string u16_bytes(const std::vector<uint16_t>& values) {
    std::string out(values.size() * 2, '\0');
    std::memcpy(out.data(), values.data(), out.size());
    return out;
}

void ModelFolder::SetUp() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder = std::filesystem::temp_directory_path() /
             ("patchbay-" + std::string(test->name()) + "-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
}

void ModelFolder::TearDown() { std::filesystem::remove_all(folder); }

void ModelFolder::write(const std::string& name, const std::string& content) const {
    std::ofstream(folder / name, std::ios::binary) << content;
}

}  // namespace patchbay::weights
