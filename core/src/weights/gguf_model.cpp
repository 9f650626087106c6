#include "weights/gguf_model.hpp"

#include "base/refusals.hpp"
#include "base/suggest.hpp"

namespace patchbay::weights {
namespace {

class GgufCheckpoint final : public Checkpoint {
  public:
    GgufCheckpoint(GgufFile file, GgufTensors tensors) : file_(std::move(file)), tensors_(std::move(tensors)) {}

    Result<TensorView> tensor(const std::string& name) const override {
        if (const auto at = tensors_.read.find(name); at != tensors_.read.end()) return at->second;
        if (const auto at = tensors_.unread.find(name); at != tensors_.unread.end())
            return unsupported("tensor '" + name + "' in " + file_.gguf.where + " is of type " +
                               gguf_type_name(at->second) + " (" + std::to_string(at->second) +
                               "), which is not supported (supported: F32, F16, BF16, "
                               "Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, MXFP4)");
        return invalid("no tensor '" + name + "' in " + file_.gguf.where + did_you_mean(name, names()));
    }
    bool has(const std::string& name) const override {
        return tensors_.read.contains(name) || tensors_.unread.contains(name);
    }
    void forget(const std::string& name) const override {
        const auto at = tensors_.read.find(name);
        if (at == tensors_.read.end()) return;
        const TensorView& view = at->second;
        MappedFile::forget({view.data, view.bytes});
        if (view.odd_rows) MappedFile::forget({view.odd_rows, view.bytes});
    }
    std::vector<std::string> names() const override {
        std::vector<std::string> out;
        for (const auto& [name, view] : tensors_.read) out.push_back(name);
        for (const auto& [name, type] : tensors_.unread) out.push_back(name);
        return out;
    }

  private:
    GgufFile file_;
    GgufTensors tensors_;
};

}  // namespace

bool is_gguf(const std::filesystem::path& path) {
    std::error_code error;
    return path.extension() == ".gguf" && !std::filesystem::is_directory(path, error);
}

Result<GgufFile> open_gguf(const std::filesystem::path& path) {
    PB_TRY(MappedFile mapping, MappedFile::open(path));
    PB_TRY(GgufHeader header, parse_gguf(mapping.bytes(), path.string()));
    const std::span<const std::byte> bytes = mapping.bytes();
    GgufFile file{std::move(mapping), {path.string(), bytes, std::move(header)}};
    PB_CHECK(open_gguf_parts(path, file));
    return file;
}

Result<std::unique_ptr<Checkpoint>> open_gguf_checkpoint(const std::filesystem::path& path) {
    PB_TRY(GgufFile file, open_gguf(path));
    PB_TRY(GgufTensors tensors, gguf_tensors(file.gguf));
    return std::unique_ptr<Checkpoint>(std::make_unique<GgufCheckpoint>(std::move(file), std::move(tensors)));
}

}  // namespace patchbay::weights
