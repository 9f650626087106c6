#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/json_file.hpp"
#include "base/printable.hpp"
#include "config/document.hpp"

namespace patchbay::config {
namespace {

namespace fs = std::filesystem;

// Whether errors may quote what the file holds. An `include` may name any file, a password file too: only where in it
// something is wrong is said then.
enum class Quoting { kContent, kNothing };

// Leaves yaml-cpp's parser from inside a callback; never leaves parse_yaml().
struct Refusal {
    Origin origin;
    std::string text;
};

// Builds the tree from yaml-cpp's events, because its own tree drops duplicate keys' places and has no limits.
class TreeBuilder final : public YAML::EventHandler {
  public:
    // text: what is parsed; must outlive this.
    TreeBuilder(std::shared_ptr<const std::string> name, std::string_view text, const DocumentLimits& limits,
                Quoting quoting)
        : name_(std::move(name)), text_(text), limits_(limits), quoting_(quoting) {}

    void OnDocumentStart(const YAML::Mark&) override {}
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        Node node;
        node.origin = place(mark);
        finish(std::move(node), anchor);
    }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        Node node = Node::scalar(value, place(mark));
        node.quoted = tag != "?"; // "!" of a quoted one; an explicit tag (!!str) says that it is a text, too
        if (tag == "!") check_end_quote(mark);
        finish(std::move(node), anchor);
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const auto at = anchored_.find(anchor);
        if (at == anchored_.end()) throw Refusal{place(mark), "an alias inside of what it names"};
        count(at->second, place(mark));
        finish(at->second, 0);
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        open(Node::list(place(mark)), anchor);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        open(Node::map(place(mark)), anchor);
    }
    void OnMapEnd() override { close(); }

    Origin place(const YAML::Mark& mark) const {
        // yaml-cpp marks what has no place with -1.
        return {Origin::Kind::kFile, name_, static_cast<uint32_t>(std::max(mark.line, 0) + 1),
                static_cast<uint32_t>(std::max(mark.column, 0) + 1)};
    }
    Node take() { return std::move(root_); }
    const Faults& faults() const { return faults_; }

  private:
    struct Open { // a list or map whose end has not come
        Node node;
        YAML::anchor_t anchor;
        bool has_key = false;
        std::string key;
        Origin key_origin;
    };

    void open(Node node, YAML::anchor_t anchor) {
        const char* const kind = node.kind == NodeKind::kList ? "a list" : "a map"; // what is in it was not read yet
        if (wants_key()) throw Refusal{node.origin, std::string("a key must be a word, this one is ") + kind};
        if (open_.size() >= limits_.depth)
            throw Refusal{node.origin, "nested more than " + std::to_string(limits_.depth) + " levels deep"};
        count_one(node);
        open_.push_back({std::move(node), anchor, false, "", {}});
    }

    void close() {
        Open done = std::move(open_.back());
        open_.pop_back();
        attach(std::move(done.node), done.anchor);
    }

    void finish(Node node, YAML::anchor_t anchor) {
        count_one(node);
        attach(std::move(node), anchor);
    }

    void attach(Node node, YAML::anchor_t anchor) {
        if (anchor != 0) {
            count(node, node.origin);
            anchored_[anchor] = node;
        }
        if (open_.empty()) {
            root_ = std::move(node);
        } else if (Open& parent = open_.back(); parent.node.kind == NodeKind::kList) {
            parent.node.items.push_back(std::move(node));
        } else if (!parent.has_key) {
            take_key(parent, std::move(node));
        } else {
            parent.has_key = false;
            const auto& entries = parent.node.entries;
            const auto first =
                std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.key == parent.key; });
            if (first != entries.end())
                faults_.add(parent.key_origin,
                            (quoting_ == Quoting::kContent ? "key '" + printable(parent.key) + "'" : "a key") +
                                " is given twice, first at line " + std::to_string(first->key_origin.line));
            else
                parent.node.entries.push_back({std::move(parent.key), std::move(parent.key_origin), std::move(node)});
        }
    }

    // yaml-cpp takes a quoted text that the end of the file cuts off for a whole one.
    void check_end_quote(const YAML::Mark& mark) const {
        const size_t begin = static_cast<size_t>(std::max(mark.pos, 0));
        const char quote = begin < text_.size() ? text_[begin] : '\0';
        if (quote != '"' && quote != '\'') return;
        for (size_t i = begin + 1; i < text_.size(); ++i) {
            if (quote == '"' && text_[i] == '\\') ++i;
            else if (text_[i] == quote && quote == '\'' && text_.substr(i + 1, 1) == "'") ++i;
            else if (text_[i] == quote) return;
        }
        throw Refusal{place(mark), "a quoted text that never ends"};
    }

    void take_key(Open& parent, Node key) {
        if (key.kind != NodeKind::kScalar) throw no_word(key);
        if (key.text == "<<" && !key.quoted)
            throw Refusal{key.origin, "merge keys (<<) are not supported, use include"};
        if (parent.node.entries.size() >= limits_.keys)
            throw Refusal{key.origin, "a map of more than " + std::to_string(limits_.keys) + " keys"};
        parent.has_key = true;
        parent.key = std::move(key.text);
        parent.key_origin = std::move(key.origin);
    }

    static Refusal no_word(const Node& key) {
        return {key.origin, "a key must be a word, this one is " + key.describe()}; // a list or a map
    }

    bool wants_key() const {
        return !open_.empty() && open_.back().node.kind == NodeKind::kMap && !open_.back().has_key;
    }

    void count_one(const Node& node) {
        nodes_ += 1;
        bytes_ += node.text.size();
        if (nodes_ > limits_.nodes)
            throw Refusal{node.origin, "more than " + std::to_string(limits_.nodes) + " values, aliases expanded"};
        if (bytes_ > 8 * limits_.bytes)
            throw Refusal{node.origin, "more than " + std::to_string(8 * limits_.bytes) + " bytes, aliases expanded"};
    }

    void count(const Node& node, const Origin& at) { // a copy about to be made
        Node probe;
        probe.origin = at;
        probe.text = node.text;
        count_one(probe);
        for (const Node& item : node.items) count(item, at);
        for (const Entry& entry : node.entries) count(entry.value, at);
        if (open_.size() + depth(node) > limits_.depth)
            throw Refusal{at, "nested more than " + std::to_string(limits_.depth) + " levels deep"};
    }

    static size_t depth(const Node& node) {
        size_t most = 0;
        for (const Node& item : node.items) most = std::max(most, depth(item));
        for (const Entry& entry : node.entries) most = std::max(most, depth(entry.value));
        return most + (node.kind == NodeKind::kList || node.kind == NodeKind::kMap ? 1 : 0);
    }

    std::shared_ptr<const std::string> name_;
    std::string_view text_;
    const DocumentLimits& limits_;
    const Quoting quoting_;
    std::vector<Open> open_;
    std::map<YAML::anchor_t, Node> anchored_;
    Node root_;
    Faults faults_;
    uint64_t nodes_ = 0, bytes_ = 0;
};

// Where the first byte is that is no UTF-8 (RFC 3629: no overlong forms, no surrogates), or npos.
size_t first_not_utf8(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
        const auto byte = [&](size_t k) { return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u; };
        const unsigned lead = byte(0);
        const size_t length = lead < 0x80                   ? 1
                              : lead >= 0xc2 && lead < 0xe0 ? 2
                              : lead >= 0xe0 && lead < 0xf0 ? 3
                              : lead >= 0xf0 && lead < 0xf5 ? 4
                                                            : 0;
        if (length == 0) return i;
        for (size_t k = 1; k < length; ++k)
            if ((byte(k) & 0xc0) != 0x80) return i;
        if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf0 && byte(1) < 0x90) ||
            (lead == 0xf4 && byte(1) > 0x8f))
            return i;
        i += length;
    }
    return text.npos;
}

Result<Node> parse(std::string_view text, const std::string& name, const DocumentLimits& limits, Quoting quoting) {
    const std::string shown = patchbay::printable(name, 1000); // a file that another one includes may have any name
    if (text.size() > limits.bytes)
        return fail(shown + " has " + std::to_string(text.size()) + " bytes, more than the " +
                    std::to_string(limits.bytes) + " of a configuration");
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3); // a byte order mark
    const size_t bad = std::min(text.find('\0'), first_not_utf8(text));
    if (bad != text.npos)
        return fail(
            shown + ":" +
            std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n')) +
            ": this line is not UTF-8 text");
    const auto shared_name = std::make_shared<const std::string>(name);
    TreeBuilder builder(shared_name, text, limits, quoting);
    Faults faults;
    try {
        std::istringstream in{std::string(text)};
        YAML::Parser parser(in);
        if (parser.HandleNextDocument(builder)) {
            faults = builder.faults();
            TreeBuilder second(shared_name, text, limits, quoting);
            if (parser.HandleNextDocument(second))
                faults.add(second.take().origin, "a second document (---), expected one");
        }
    } catch (const Refusal& refusal) {
        faults = builder.faults();
        faults.add(refusal.origin, refusal.text);
    } catch (const YAML::Exception& error) {
        faults.add(builder.place(error.mark),
                   "invalid YAML" + (quoting == Quoting::kContent ? ": " + printable(error.msg) : ""));
    }
    if (faults.any()) return faults.failure();
    Node root = builder.take();
    if (root.origin.kind != Origin::Kind::kFile) root.origin = builder.place(YAML::Mark::null_mark()); // an empty file
    return root;
}

class Loader {
  public:
    explicit Loader(const DocumentLimits& limits) : limits_(limits) {}

    Result<Node> load(const fs::path& path, const Origin* from) {
        const auto refuse = [&](const std::string& text) -> Failure {
            return fail(StatusCode::kInvalid, printable_message(from ? from->text() + ": " + text : text));
        };
        std::error_code error;
        const fs::path real = fs::weakly_canonical(path, error);
        if (std::find(chain_.begin(), chain_.end(), real) != chain_.end())
            return refuse("include '" + path.string() + "' includes itself");
        if (chain_.size() > limits_.includes)
            return refuse("more than " + std::to_string(limits_.includes) + " files that include one another");
        if (files_.size() >= limits_.files) return refuse("more than " + std::to_string(limits_.files) + " files");
        auto text = read_whole_file(path, limits_.bytes);
        if (!text) return refuse(text.error());
        files_.push_back({path, *text});
        const Quoting quoting = from ? Quoting::kNothing : Quoting::kContent;
        PB_TRY(Node root, parse(*text, path.string(), limits_, quoting));
        if (root.kind == NodeKind::kNull) root = Node::map(root.origin);
        if (root.kind != NodeKind::kMap) {
            const bool quotes = quoting == Quoting::kContent || root.kind != NodeKind::kScalar;
            return refuse_at(root.origin, ": the file is " + (quotes ? root.describe() : "a text") +
                                              ", expected a map of keys");
        }
        const Node* include = root.find("include");
        if (!include) return root;

        Node base = Node::map(root.origin);
        chain_.push_back(real);
        std::vector<Node> names = include->kind == NodeKind::kList ? include->items : std::vector<Node>{*include};
        for (const Node& name : names) {
            if (name.kind != NodeKind::kScalar || name.text.empty())
                return refuse_at(name.origin,
                                 ": 'include' is " + name.describe() + ", expected a file or a list of files");
            PB_TRY(const Node included, load((path.parent_path() / name.text).lexically_normal(), &name.origin));
            base = merge(std::move(base), included);
        }
        chain_.pop_back();
        std::erase_if(root.entries, [](const Entry& e) { return e.key == "include"; });
        base = merge(std::move(base), root);
        base.origin = root.origin;
        return base;
    }

    std::vector<SourceFile> take_files() { return std::move(files_); }

  private:
    static Failure refuse_at(const Origin& origin, const std::string& text) {
        return fail(StatusCode::kInvalid, printable_message(origin.text() + text));
    }

    const DocumentLimits& limits_;
    std::vector<fs::path> chain_; // the files being read, outermost first
    std::vector<SourceFile> files_;
};

}  // namespace

Result<Node> parse_yaml(std::string_view text, const std::string& name, const DocumentLimits& limits) {
    return parse(text, name, limits, Quoting::kContent);
}

Result<Document> load_document(const fs::path& path, const DocumentLimits& limits) {
    Loader loader(limits);
    PB_TRY(Node root, loader.load(path, nullptr));
    return Document{std::move(root), loader.take_files()};
}

}  // namespace patchbay::config
