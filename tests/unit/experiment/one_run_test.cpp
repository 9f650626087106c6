#include "experiment/one_run.hpp"

#include <gmock/gmock.h>

namespace patchbay::experiment::one_run_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

host::Identity identity(const std::string& kind, const std::string& name, const std::string& sha256) {
    return {kind, name, "1", sha256, "", ""};
}

TEST(Changes, AreOfWhatIsLoadedAtTheStartAndOfWhatSwapsBringIn) {
    PreparedVariant then{};
    then.facts.plugins = {identity("scheduler", "fcfs", "a"), identity("sampler", "standard", "b")};
    then.brought_in = {identity("scheduler", "sjf", "c"), identity("model", "a/folder", "d")};
    LoadedParts now{then.facts, then.brought_in};
    EXPECT_THAT(changes(then, now), IsEmpty());
    now.brought_in[0].sha256 = "other";
    EXPECT_THAT(changes(then, now), ElementsAre("scheduler 'sjf' changed during the experiment"));
    now.brought_in[1].sha256 = "another";
    now.facts.plugins[1].sha256 = "new";
    now.facts.model.identity = "other weights";
    EXPECT_THAT(changes(then, now), ElementsAre("the model changed during the experiment",
                                                "sampler 'standard' changed during the experiment",
                                                "scheduler 'sjf' changed during the experiment",
                                                "model 'a/folder' changed during the experiment"));
}

TEST(PluginsJson, HasWhatSwapsBringIn) {
    PreparedVariant v{};
    v.facts.plugins = {identity("scheduler", "fcfs", "a")};
    v.brought_in = {identity("scheduler", "sjf", "c")};
    EXPECT_EQ(plugins_json(v), R"([{"kind":"scheduler","name":"fcfs","version":"1","sha256":"a","build":"","path":""},)"
                               R"({"kind":"scheduler","name":"sjf","version":"1","sha256":"c","build":"","path":""}])");
}

}  // namespace
}  // namespace patchbay::experiment::one_run_test
