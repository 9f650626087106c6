#include "weights/checkpoint.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_file.hpp"
#include "base/refusals.hpp"
#include "base/suggest.hpp"
#include "weights/gguf_model.hpp"
#include "weights/mapped_file.hpp"
#include "weights/safetensors.hpp"
#include "weights/stacked_experts.hpp"

namespace patchbay::weights {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

std::optional<Encoding> encoding_of(std::string_view word) {
    if (word == "F32") return Encoding::kF32;
    if (word == "BF16") return Encoding::kBf16;
    if (word == "F16") return Encoding::kF16;
    if (word == "I32") return Encoding::kI32;
    if (word == "I64") return Encoding::kI64;
    if (word == "I8") return Encoding::kI8;
    if (word == "U8") return Encoding::kU8;
    if (word == "F8_E4M3") return Encoding::kF8_E4M3;
    return std::nullopt;
}

class Safetensors final : public Checkpoint {
  public:
    Result<> add_file(const fs::path& path) {
        PB_TRY(MappedFile file, MappedFile::open(path));
        PB_TRY(SafetensorsHeader header, parse_safetensors(file.bytes(), path.string()));
        for (auto& [name, entry] : header.tensors) {
            const auto [at, added] = places_.try_emplace(name, Place{files_.size(), std::move(entry)});
            if (!added)
                return invalid("tensor '" + name + "' is in both " + files_[at->second.file].path.string() + " and " +
                               path.string());
        }
        files_.push_back({path, std::move(file)});
        return {};
    }

    Result<TensorView> tensor(const std::string& name) const override {
        const auto at = places_.find(name);
        if (at == places_.end()) {
            const auto one = expert(name);
            if (!one) return invalid("no tensor '" + name + "' in the checkpoint" + did_you_mean(name, names()));
            PB_TRY(const TensorView all, tensor(one->tensor));
            return expert_view(*one, all);
        }
        const auto& [file, entry] = at->second;
        const auto encoding = encoding_of(entry.dtype);
        if (!encoding)
            return unsupported("tensor '" + name + "' in " + files_[file].path.string() + " has dtype " + entry.dtype +
                               ", which is not supported (supported: F32, BF16, F16, F8_E4M3, I64, I32, I8, U8)");
        const std::byte* data = files_[file].mapping.bytes().data() + entry.begin;
        return TensorView{*encoding, entry.shape, data, entry.end - entry.begin};
    }

    bool has(const std::string& name) const override { return places_.contains(name) || expert(name).has_value(); }
    void forget(const std::string& name) const override {
        if (!has(name)) return;
        if (const auto view = tensor(name)) MappedFile::forget({view->data, view->bytes});
    }

    std::vector<std::string> names() const override {
        std::vector<std::string> out;
        for (const auto& [name, place] : places_) out.push_back(name);
        return out;
    }

  private:
    // Of an expert that is a part of a tensor here.
    std::optional<StackedExpert> expert(const std::string& name) const {
        auto one = stacked_expert(name);
        const auto at = one ? places_.find(one->tensor) : places_.end();
        return at != places_.end() && has_expert(*one, at->second.entry.shape) ? one : std::nullopt;
    }

    struct File {
        fs::path path;
        MappedFile mapping;
    };
    struct Place {
        size_t file;
        SafetensorsEntry entry;
    };
    std::vector<File> files_;
    std::map<std::string, Place> places_;
};

// The names of the shards, each a plain file name: an index must not reach out of its folder.
Result<std::map<std::string, std::vector<std::string>>> read_index(const fs::path& path) {
    PB_TRY(nlohmann::json index, read_json_file(path, {.bytes = kMaxHeaderBytes, .depth = 8}));
    const EmptiesJson empties(index);
    const auto map = index.is_object() ? index.find("weight_map") : index.end();
    if (map == index.end() || !map->is_object()) return invalid(path.string() + ": no 'weight_map'");
    std::map<std::string, std::vector<std::string>> shards; // file → tensors it must hold
    for (const auto& [tensor, file] : map->items()) {
        if (!file.is_string()) return invalid(path.string() + ": the file of tensor '" + tensor + "' is not a string");
        const auto& name = file.get_ref<const std::string&>();
        if (name.empty() || name == "." || name == ".." ||
            name.find_first_of(std::string_view("/\\\0", 3)) != name.npos)
            return invalid(path.string() + ": '" + name + "' (of tensor '" + tensor + "') is not a plain file name");
        shards[name].push_back(tensor);
    }
    if (shards.empty()) return invalid(path.string() + ": 'weight_map' is empty");
    return shards;
}

// What a folder without safetensors holds instead, for the error.
Failure nothing_to_load(const fs::path& folder) {
    std::string found, others, whole;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string(), kind = entry.path().extension().string();
        if (kind == ".bin" || kind == ".pt" || kind == ".pth" || kind == ".h5" || kind == ".msgpack")
            found += (found.empty() ? "" : ", ") + name;
        else if (kind == ".safetensors")
            others += (others.empty() ? "" : ", ") + name;
        else if (kind == ".gguf")
            whole += (whole.empty() ? "" : ", ") + name;
    }
    std::string text = "no " + std::string(kSingleFile) + " and no " + kIndexFile + " in " + folder.string();
    if (!whole.empty())
        return not_found(text + ", only " + whole + " (a GGUF file is named itself, without its folder)");
    if (!others.empty()) return not_found(text + ", only " + others + " (is the index file missing?)");
    if (!found.empty()) return not_found(text + ", only " + found + " (convert it to safetensors)");
    return not_found(text);
}

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
    std::string out = "(";
    for (const int64_t n : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(n);
    return out + ")";
}

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(const fs::path& folder) {
    std::error_code error;
    if (is_gguf(folder)) return open_gguf_checkpoint(folder);
    if (!fs::is_directory(folder, error)) return not_found("no model folder " + folder.string());
    auto out = std::make_unique<Safetensors>();
    if (fs::exists(folder / kSingleFile, error)) {
        PB_CHECK(out->add_file(folder / kSingleFile));
    } else if (fs::exists(folder / kIndexFile, error)) {
        PB_TRY(const auto shards, read_index(folder / kIndexFile));
        for (const auto& [file, tensors] : shards) {
            if (!fs::exists(folder / file, error))
                return not_found("shard " + (folder / file).string() + " is missing (" + kIndexFile + " places '" +
                                 tensors.front() + "' in it)");
            PB_CHECK(out->add_file(folder / file));
            for (const std::string& tensor : tensors)
                if (!out->has(tensor))
                    return invalid((folder / file).string() + " lacks tensor '" + tensor + "', which " + kIndexFile +
                                   " places in it");
        }
    } else {
        return nothing_to_load(folder);
    }
    return std::unique_ptr<Checkpoint>(std::move(out));
}

}  // namespace patchbay::weights
