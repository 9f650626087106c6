#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "base/json_file.hpp"
#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "base/utf8.hpp"
#include "config/document.hpp"
#include "config/tree_builder.hpp"

namespace patchbay::config {
namespace {

namespace fs = std::filesystem;

// Gives a TreeBuilder what yaml-cpp finds. yaml-cpp's own tree drops the places of duplicate keys and has no limits.
class YamlEvents final : public YAML::EventHandler {
  public:
    // text: what is parsed. Text and tree must outlive this.
    YamlEvents(std::shared_ptr<const std::string> name, std::string_view text, TreeBuilder& tree)
        : name_(std::move(name)), text_(text), tree_(tree) {}

    void OnDocumentStart(const YAML::Mark&) override {}
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        Node node;
        node.origin = place(mark);
        tree_.add(std::move(node), anchor);
    }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        Node node = Node::scalar(value, place(mark));
        node.quoted = tag != "?"; // "!" of a quoted one; an explicit tag (!!str) says that it is a text, too
        if (node.quoted) check_end_quote(mark);
        tree_.add(std::move(node), anchor);
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override { tree_.add_alias(anchor, place(mark)); }
    void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        tree_.open(Node::list(place(mark)), anchor);
    }
    void OnSequenceEnd() override { tree_.close(); }
    void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        tree_.open(Node::map(place(mark)), anchor);
    }
    void OnMapEnd() override { tree_.close(); }

    Origin place(const YAML::Mark& mark) const {
        // yaml-cpp marks what has no place with -1.
        return {Origin::Kind::kFile, name_, static_cast<uint32_t>(std::max(mark.line, 0) + 1),
                static_cast<uint32_t>(std::max(mark.column, 0) + 1)};
    }

  private:
    // Where the value itself begins, after its tag and anchor, which yaml-cpp's mark is before.
    size_t after_properties(size_t at) const {
        constexpr std::string_view kSpace = " \t\r\n";
        while (at < text_.size() && (text_[at] == '!' || text_[at] == '&' || text_[at] == '#')) {
            at = text_.find_first_of(text_[at] == '#' ? "\n" : kSpace, at);
            at = std::min(text_.find_first_not_of(kSpace, at), text_.size());
        }
        return at;
    }
    // yaml-cpp takes a quoted text that the end of the file cuts off for a whole one.
    void check_end_quote(const YAML::Mark& mark) const {
        const size_t begin = after_properties(static_cast<size_t>(std::max(mark.pos, 0)));
        const char quote = begin < text_.size() ? text_[begin] : '\0';
        if (quote != '"' && quote != '\'') return;
        for (size_t i = begin + 1; i < text_.size(); ++i) {
            if (quote == '"' && text_[i] == '\\') ++i;
            else if (text_[i] == quote && quote == '\'' && text_.substr(i + 1, 1) == "'") ++i;
            else if (text_[i] == quote) return;
        }
        throw Refusal{place(mark), "a quoted text that never ends"};
    }

    std::shared_ptr<const std::string> name_;
    std::string_view text_;
    TreeBuilder& tree_;
};

Result<Node> parse(std::string_view text, const std::string& name, const DocumentLimits& limits, Quoting quoting) {
    const std::string shown = patchbay::printable(name, 1000); // a file that another one includes may have any name
    if (text.size() > limits.bytes)
        return invalid(shown + " has " + std::to_string(text.size()) + " bytes, more than the " +
                       std::to_string(limits.bytes) + " of a configuration");
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3); // a byte order mark
    const size_t good = valid_prefix(text), not_utf8 = good < text.size() ? good : text.npos;
    const size_t bad = std::min(text.find('\0'), not_utf8);
    if (bad != text.npos)
        return invalid(
            shown + ":" +
            std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n')) +
            ": this line is not UTF-8 text");
    const auto shared_name = std::make_shared<const std::string>(name);
    TreeBuilder tree(limits, quoting);
    YamlEvents events(shared_name, text, tree);
    Faults faults;
    try {
        std::istringstream in{std::string(text)};
        YAML::Parser parser(in);
        if (parser.HandleNextDocument(events)) {
            faults = tree.faults();
            TreeBuilder second(limits, quoting);
            YamlEvents events_of_second(shared_name, text, second);
            if (parser.HandleNextDocument(events_of_second))
                faults.add(second.take().origin, "a second document (---), expected one");
        }
    } catch (const Refusal& refusal) {
        faults = tree.faults();
        faults.add(refusal.origin, refusal.text);
    } catch (const YAML::Exception& error) {
        faults.add(events.place(error.mark),
                   "invalid YAML" + (quoting == Quoting::kContent ? ": " + printable(error.msg) : ""));
    }
    if (faults.any()) return faults.failure();
    Node root = tree.take();
    if (root.origin.kind != Origin::Kind::kFile) root.origin = events.place(YAML::Mark::null_mark()); // an empty file
    return root;
}

class Loader {
  public:
    explicit Loader(const DocumentLimits& limits) : limits_(limits) {}

    Result<Node> load(const fs::path& path, const Origin* from) {
        const auto refuse = [&](const std::string& text, StatusCode code = StatusCode::kInvalid) -> Failure {
            return fail(code, printable_message(from ? from->text() + ": " + text : text));
        };
        std::error_code error;
        const fs::path real = fs::weakly_canonical(path, error);
        if (std::find(chain_.begin(), chain_.end(), real) != chain_.end())
            return refuse("include '" + path.string() + "' includes itself");
        if (chain_.size() > limits_.includes)
            return refuse("more than " + std::to_string(limits_.includes) + " files that include one another");
        if (files_.size() >= limits_.files) return refuse("more than " + std::to_string(limits_.files) + " files");
        auto text = read_whole_file(path, limits_.bytes);
        if (!text) return refuse(text.error(), text.code());
        files_.push_back({path, *text});
        const Quoting quoting = from ? Quoting::kNothing : Quoting::kContent;
        PB_TRY(Node root, parse(*text, path.string(), limits_, quoting));
        if (root.kind == NodeKind::kNull) root = Node::map(root.origin);
        if (root.kind != NodeKind::kMap) {
            const bool quotes = quoting == Quoting::kContent || root.kind != NodeKind::kScalar;
            return refuse_at(root.origin, ": the file is " + (quotes ? root.describe() : "plain text") +
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
