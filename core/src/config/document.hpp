// A YAML file and what it includes as a tree in which every value knows where it came from. Everything that reads
// YAML (engine configurations, experiments) starts here; config/table.hpp turns the tree into typed structs.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace patchbay::config {

struct Origin {
    enum class Kind { kFile, kDefault, kAutomatic, kFlag };
    Kind kind = Kind::kDefault;
    std::shared_ptr<const std::string> name; // the file, the reason, or the flag with its dashes
    uint32_t line = 0, column = 0;           // 1-based; of a file

    static Origin automatic(std::string reason);
    static Origin flag(std::string flag);
    // "demo.yaml:12:3", "default", "automatic: <reason>" or "command line --threads".
    std::string text() const;
};

enum class NodeKind { kNull, kScalar, kList, kMap };

struct Entry;

struct Node {
    NodeKind kind = NodeKind::kNull;
    std::string text;           // of a scalar
    bool quoted = false;        // a text even if it looks like another type: "8", 'true'
    std::vector<Node> items;    // of a list
    std::vector<Entry> entries; // of a map, in the file's order; keys are unique
    Origin origin;

    static Node scalar(std::string text, Origin = {});
    static Node string(std::string text, Origin = {}); // quoted if necessary
    static Node list(Origin = {});
    static Node map(Origin = {});

    const Node* find(std::string_view key) const;      // in a map; null: absent, or no map
    const Node* at(std::string_view dotted_path) const;
    void set(std::string key, Node value);             // of a map: replaces or appends
    std::string describe() const;                      // for errors: "'8'", "a list", "a map", "empty"
};

struct Entry {
    std::string key;
    Origin key_origin;
    Node value;
};

// All faults of a file: readers add a fault and continue, so that one run shows every fault.
class Faults {
  public:
    void add(const Origin&, std::string text);
    bool any() const { return !faults_.empty(); }
    std::vector<std::string> lines() const; // "configs/engine/demo.yaml:12:3: unknown key …", by file and position
    Failure failure() const;                // the first hundred lines, one below the other

  private:
    struct Fault {
        Origin origin;
        std::string text;
    };
    std::vector<Fault> faults_;
};

struct DocumentLimits {
    uint64_t bytes = 1 << 20;  // of one file; of the texts in the tree, aliases expanded: eight times that
    uint32_t nodes = 200'000;  // aliases expanded
    uint32_t depth = 32;       // of nested lists and maps
    uint32_t keys = 4096;      // of one map
    uint32_t includes = 16;    // of files that include files
    uint32_t files = 256;
};

struct SourceFile {
    std::filesystem::path path;
    std::string text;
};

struct Document {
    Node root;                     // always a map; without `include`
    std::vector<SourceFile> files; // every file that was read, the outermost first: for the record of a run
};

// One file's text, its `include` left in. Refused: duplicate keys, keys that are not words, two documents, an alias
// inside its own anchor, merge keys (<<), anything beyond the limits.
Result<Node> parse_yaml(std::string_view text, const std::string& name, const DocumentLimits& = {});

// The file with its `include: a.yaml` or `include: [a.yaml, b.yaml]` (top level, relative to the including file): the
// first is merged over by the next, and all of them by the file itself. Failures carry file:line:column.
Result<Document> load_document(const std::filesystem::path&, const DocumentLimits& = {});

// `over` on top of `base`: maps merge key by key, anything else is replaced, and an empty section changes nothing,
// except that a slot which may be empty becomes so. In a slot (config/slots.hpp) `x` means `{plugin: x}`, and naming
// another plugin drops the former one's keys, which are those of the default if none was named; `model: x` means
// `{path: x}`, and a path takes the place of a shape.
Node merge(Node base, const Node& over);

// A map whose keys may be dotted paths (`engine.max_num_seqs: 8`) as nested maps; the form in which variants,
// factors and flags change a configuration. Later keys win over earlier ones; those of one section belong together
// whatever their order.
Result<Node> expand_dotted(const Node& map, const DocumentLimits& = {});

// A text as it appears in an error: no control characters, of a readable length.
std::string printable(std::string_view text);

}  // namespace patchbay::config
