// Typed reading of a document: each key is declared once, where it is read, and from that come parsing, errors with
// places and suggestions, the effective values with their origins, and the JSON Schema. All faults of a file are
// collected, so that one run shows them all.
//
//   Reading all;
//   Reader engine = Reader(root, all).section("engine", "limits of the engine");
//   engine.value("max_num_seqs", settings.max_num_seqs, {.min = 1, .max = 65536, .unit = "sequences", .meaning = "…"});
//   …
//   engine.finish();                      // what was not declared is an unknown key
//   if (auto bad = all.faults()) …
//
// The value that the target has before the call is the default. Read an empty document to learn all declarations.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/result.hpp"
#include "config/document.hpp"

namespace patchbay::config {

enum class Type { kBool, kInt, kFloat, kString, kEnum, kBytes, kPath, kList, kMap, kPlugin };

struct Spec { // of a key; leave out what does not apply
    std::optional<double> min = {}, max = {};
    std::vector<std::string> choices = {}; // of an enum
    std::string unit = {}, meaning = {};
};

struct Declared {
    std::string path; // "engine.max_num_seqs"
    Type type;
    std::string fallback;
    Spec spec;
};

struct Effective { // a value in effect, in the order of declaration
    std::string path, value;
    Type type;
    std::string origin;
    std::vector<std::string> list; // of a list
};

struct Fault {
    Origin origin;
    std::string text;
};

class Reading {
  public:
    void fault(const Origin&, std::string text);
    bool ok() const { return faults_.empty(); }
    std::string faults() const; // all, in order of place, one a line
    const std::vector<Fault>& fault_list() const { return faults_; }

    std::vector<Declared> declared;
    std::vector<Effective> effective;

  private:
    std::vector<Fault> faults_;
};

class Reader {
  public:
    Reader(const Node& map, Reading& all, std::string path = ""); // faults if it is neither a map nor empty

    void value(const std::string& key, bool& target, const Spec&);
    void value(const std::string& key, uint32_t& target, const Spec&);
    void value(const std::string& key, uint64_t& target, const Spec&);
    void value(const std::string& key, int32_t& target, const Spec&);
    void value(const std::string& key, double& target, const Spec&);
    void value(const std::string& key, float& target, const Spec&);
    void value(const std::string& key, std::string& target, const Spec&);          // any text
    void choice(const std::string& key, std::string& target, const Spec&);         // one of spec.choices
    void bytes(const std::string& key, uint64_t& target, const Spec&);             // 4096, 256MiB, 1.5GiB, 2GB
    void path(const std::string& key, std::string& target, const Spec&);           // see resolve_path
    void list(const std::string& key, std::vector<std::string>& target, const Spec&);
    template <class Enum>
    void choice(const std::string& key, Enum& target, const std::vector<std::pair<std::string, Enum>>& words, Spec spec);
    template <class T> // an optional: absent stays empty
    void value(const std::string& key, std::optional<T>& target, const Spec& spec);

    bool has(const std::string& key) const { return node(key) != nullptr; }
    Reader section(const std::string& key, const std::string& meaning); // a map of its own; empty if absent
    const Node* raw(const std::string& key, const Spec&, Type = Type::kMap); // for the caller to read; null: absent
    void finish(); // unknown keys become faults

    Reading& all() const { return *all_; }
    const std::string& path() const { return path_; }
    Origin origin() const { return map_.origin; }
    std::string full(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
    void fault(const std::string& key, const std::string& text) const; // at the key, or at the map if it is absent

  private:
    const Node* node(const std::string& key) const;
    const Node* scalar(const std::string& key, Type, std::string fallback, const Spec&);
    template <class T>
    void number(const std::string& key, T& target, Type, const Spec&);

    Node map_;
    Reading* all_;
    std::string path_;
    std::vector<std::string> known_;
};

// A relative path means a place beside the file that names it, if something is there, else one in the current folder.
std::string resolve_path(const Node&);

template <class Enum>
void Reader::choice(const std::string& key, Enum& target, const std::vector<std::pair<std::string, Enum>>& words, Spec spec) {
    std::string word;
    for (const auto& [name, value] : words) {
        spec.choices.push_back(name);
        if (value == target && word.empty()) word = name;
    }
    choice(key, word, spec);
    for (const auto& [name, value] : words)
        if (name == word) target = value;
}

template <class T>
void Reader::value(const std::string& key, std::optional<T>& target, const Spec& spec) {
    T x{};
    if (target) x = *target;
    if (!has(key) && !target) {
        known_.push_back(key);
        const Type type = std::is_same_v<T, bool> ? Type::kBool : std::is_integral_v<T> ? Type::kInt : std::is_floating_point_v<T> ? Type::kFloat : Type::kString;
        all_->declared.push_back({full(key), type, "", spec});
        return;
    }
    value(key, x, spec);
    target = x;
}

}  // namespace patchbay::config
