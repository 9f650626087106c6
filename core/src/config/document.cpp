#include "config/document.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace patchbay::config {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kLargestFile = 4u << 20; // bytes
constexpr size_t kMostValues = 100000, kDeepest = 32, kMostIncludes = 16;

std::string at(const std::string& file, const YAML::Mark& mark) {
    return file + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
}

struct Limits {
    size_t values = 0;
};

Result<Node> convert(const YAML::Node& from, const std::string& file, size_t depth, Limits& limits) {
    if (depth > kDeepest) return fail(at(file, from.Mark()) + ": nested deeper than " + std::to_string(kDeepest) + " levels");
    if (++limits.values > kMostValues) return fail(file + ": more than " + std::to_string(kMostValues) + " values");
    Node node;
    node.origin = {file, from.Mark().line + 1, from.Mark().column + 1};
    switch (from.Type()) {
        case YAML::NodeType::Scalar:
            node.kind = Node::Kind::kScalar;
            node.scalar = from.Scalar();
            break;
        case YAML::NodeType::Sequence:
            node.kind = Node::Kind::kList;
            for (const auto& item : from) {
                PB_TRY(Node child, convert(item, file, depth + 1, limits));
                node.list.push_back(std::move(child));
            }
            break;
        case YAML::NodeType::Map:
            node.kind = Node::Kind::kMap;
            for (const auto& item : from) {
                if (!item.first.IsScalar()) return fail(at(file, item.first.Mark()) + ": a key must be a word");
                Node::Entry entry{item.first.Scalar(), {file, item.first.Mark().line + 1, item.first.Mark().column + 1}, {}};
                if (const Node* first = node.find(entry.key))
                    return fail(entry.origin.text() + ": '" + entry.key + "' stands twice (first at line " + std::to_string(first->origin.line) + ")");
                PB_TRY(entry.value, convert(item.second, file, depth + 1, limits));
                node.map.push_back(std::move(entry));
            }
            break;
        default: break;
    }
    return node;
}

Result<std::string> read_file(const fs::path& file) {
    std::error_code error;
    if (!fs::is_regular_file(file, error)) return fail(file.string() + ": no such file");
    if (fs::file_size(file, error) > kLargestFile) return fail(file.string() + ": larger than 4 MiB");
    std::ifstream in(file, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    if (!in) return fail(file.string() + ": cannot be read");
    return std::move(text).str();
}

Result<Node> load_with_includes(const fs::path& file, std::vector<fs::path>& open) {
    const fs::path real = fs::weakly_canonical(file);
    if (std::find(open.begin(), open.end(), real) != open.end()) return fail(file.string() + ": includes itself");
    if (open.size() >= kMostIncludes) return fail(file.string() + ": more than " + std::to_string(kMostIncludes) + " levels of include");
    open.push_back(real);
    PB_TRY(const std::string text, read_file(file));
    PB_TRY(Node own, parse_document(text, file.lexically_normal().string()));
    Node base;
    base.kind = Node::Kind::kMap;
    base.origin = own.origin;
    if (own.kind == Node::Kind::kMap) {
        const auto include = std::find_if(own.map.begin(), own.map.end(), [](const Node::Entry& e) { return e.key == "include"; });
        if (include != own.map.end()) {
            const Node what = include->value;
            own.map.erase(include);
            const std::vector<Node> names = what.kind == Node::Kind::kList ? what.list : std::vector<Node>{what};
            for (const Node& name : names) {
                if (name.kind != Node::Kind::kScalar) return fail(name.origin.text() + ": 'include' takes a path or a list of paths");
                auto included = load_with_includes(file.parent_path() / name.scalar, open);
                if (!included) return fail(name.origin.text() + ": include: " + included.error());
                merge(base, *included);
            }
        }
    }
    merge(base, own);
    open.pop_back();
    return base;
}

// `scheduler: fcfs` as {plugin: fcfs}; of `model`, {path: …}.
Node as_section(const Node& node, std::string_view key) {
    if (node.kind != Node::Kind::kScalar) return node;
    Node section;
    section.kind = Node::Kind::kMap;
    section.origin = node.origin;
    section.map.push_back({key == "model" ? "path" : "plugin", node.origin, node});
    return section;
}

bool is_section(std::string_view key) {
    for (const char* name : {"model", "scheduler", "sampler", "attention", "proposer", "device"})
        if (key == name) return true;
    return false;
}

bool names_another_plugin(const Node& base, const Node& over) {
    const Node *a = base.find("plugin"), *b = over.find("plugin");
    return a && b && a->scalar != b->scalar;
}

}  // namespace

std::string Origin::text() const {
    return line == 0 ? file : file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

const Node* Node::find(std::string_view key) const {
    const auto e = std::find_if(map.begin(), map.end(), [&](const Entry& entry) { return entry.key == key; });
    return e == map.end() ? nullptr : &e->value;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

Node Node::text(std::string scalar, Origin origin) {
    Node n;
    n.kind = Kind::kScalar;
    n.scalar = std::move(scalar);
    n.origin = std::move(origin);
    return n;
}

Result<Node> parse_document(const std::string& text, const std::string& name) {
    if (text.size() > kLargestFile) return fail(name + ": larger than 4 MiB");
    // The parser recurses a level of nesting, so brackets are counted before it sees them.
    size_t depth = 0;
    for (const char c : text) {
        if (c == '[' || c == '{') depth += 1;
        if ((c == ']' || c == '}') && depth > 0) depth -= 1;
        if (depth > 1000) return fail(name + ": nested deeper than " + std::to_string(kDeepest) + " levels");
    }
    try {
        Limits limits;
        return convert(YAML::Load(text), name, 0, limits);
    } catch (const YAML::Exception& e) {
        return fail((e.mark.is_null() ? name : at(name, e.mark)) + ": not valid YAML: " + e.msg);
    }
}

Result<Node> load_document(const fs::path& file) {
    std::vector<fs::path> open;
    return load_with_includes(file, open);
}

void merge(Node& base, const Node& over) {
    if (over.kind == Node::Kind::kNull && base.kind == Node::Kind::kMap) return;
    if (base.kind != Node::Kind::kMap || over.kind != Node::Kind::kMap) {
        base = over;
        return;
    }
    for (const Node::Entry& entry : over.map) {
        Node* there = base.find(entry.key);
        if (!there) {
            base.map.push_back(entry);
            continue;
        }
        if (is_section(entry.key)) {
            Node old = as_section(*there, entry.key), fresh = as_section(entry.value, entry.key);
            if (names_another_plugin(old, fresh)) old = fresh;
            else merge(old, fresh);
            *there = std::move(old);
        } else {
            merge(*there, entry.value);
        }
    }
}

Result<> set_path(Node& root, std::string_view path, Node value) {
    Node patch;
    Node* tip = &patch;
    std::string_view rest = path;
    while (true) {
        const size_t dot = rest.find('.');
        const std::string key(rest.substr(0, dot));
        if (key.empty()) return fail("'" + std::string(path) + "' is not a dotted path such as engine.max_num_seqs");
        tip->kind = Node::Kind::kMap;
        tip->origin = value.origin;
        tip->map.push_back({key, value.origin, {}});
        tip = &tip->map.back().value;
        if (dot == std::string_view::npos) break;
        rest = rest.substr(dot + 1);
    }
    *tip = std::move(value);
    merge(root, patch);
    return {};
}

}  // namespace patchbay::config
