// What ranks say to each other: it comes back as it was, and bytes that mean nothing are refused.
#include "parallel/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kv/block_table.hpp"
#include "parallel/launch.hpp"

namespace patchbay::parallel::session_test {
namespace {

using ::testing::HasSubstr;

TEST(Session, BeginComesBack) {
    const Begin b{"model: x\n", {"/one", "/two"}, 77};
    const auto back = read_begin(bytes_of(b));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->configuration, b.configuration);
    EXPECT_EQ(back->plugin_dirs, b.plugin_dirs);
    EXPECT_EQ(back->connect_ms, 77u);
}

TEST(Session, NamesWhatDiffers) {
    const std::vector<Fact> ours = {{"model", "abc"}, {"plugin device 'cpu'", "123"}};
    EXPECT_EQ(difference(ours, ours), "");
    EXPECT_EQ(difference(ours, {{"model", "def"}, {"plugin device 'cpu'", "123"}}),
              "model is def there, abc on rank 0");
    EXPECT_EQ(difference(ours, {{"model", "abc"}}), "it has no plugin device 'cpu'");
    EXPECT_EQ(difference({}, ours), "it has a model, rank 0 has none");
    const auto back = read_facts(bytes_of(ours));
    ASSERT_TRUE(back);
    EXPECT_EQ(difference(ours, *back), "");
}

struct Step {
    std::vector<int32_t> first = {5, 6, 7}, second = {9};
    kv::BlockTable table{{{3, 1}, {2}}, {}, 0, 0, {}}, more{{{kv::kNoBlock, 2}, {1}}, {}, 0, 0, {}};
    std::vector<int32_t>& pages = table.pages[0];
    uint32_t computed = 14, logits = 1; // of the first row
    std::vector<runner::BatchRow> rows() const { return {{first, computed, logits, table}, {second, 30, 1, more}}; }
};
const std::vector<kv::PageCopy> kCopies = {{3, 0}, {2, 3}};
constexpr StepLimits kLimits{10, 64, 4, {16, 1, 1}};

TEST(Session, AStepComesBack) {
    const Step step;
    StepRows back;
    ASSERT_TRUE(read_step(bytes_of(step.rows(), kCopies), back));
    ASSERT_EQ(back.rows().size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
        EXPECT_TRUE(std::ranges::equal(back.rows()[i].tokens, step.rows()[i].tokens));
        EXPECT_EQ(back.rows()[i].computed, step.rows()[i].computed);
        EXPECT_EQ(back.rows()[i].logit_rows, step.rows()[i].logit_rows);
    }
    EXPECT_EQ(bytes_of(back.rows(), back.copies()), bytes_of(step.rows(), kCopies));
    EXPECT_TRUE(check_step(back.rows(), back.copies(), kLimits));
    ASSERT_EQ(back.copies().size(), 2u);
    EXPECT_EQ(back.copies()[1].to, 2);
    EXPECT_EQ(back.copies()[1].from, 3);
}

TEST(Session, AStepThatIsCutOrTooLongIsRefused) {
    const std::string whole = bytes_of(Step().rows(), kCopies);
    StepRows rows;
    for (size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(read_step(whole.substr(0, n), rows)) << n;
    EXPECT_EQ(read_step(whole + "x", rows).error(), "a step has 1 bytes too many");
    for (size_t at = 0; at < whole.size(); ++at) { // no byte of it leads outside
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ 0x81);
        if (read_step(changed, rows)) (void)check_step(rows.rows(), rows.copies(), kLimits);
    }
}

TEST(Session, ASwapComesBackAndOneThatIsCutOrUnknownIsRefused) {
    RankSwap swap;
    swap.number = 7;
    swap.slot = RankSwap::Slot::kModel;
    swap.verb = RankSwap::Verb::kPrepare;
    swap.candidate = 3;
    swap.plugin = "llama";
    swap.settings = {{"a", "1"}, {"b", ""}};
    swap.identity = "abc";
    const std::string bytes = bytes_of(swap);
    const auto back = read_swap(bytes);
    ASSERT_TRUE(back) << back.error();
    EXPECT_EQ(back->number, 7u);
    EXPECT_EQ(back->slot, RankSwap::Slot::kModel);
    EXPECT_EQ(back->verb, RankSwap::Verb::kPrepare);
    EXPECT_EQ(back->candidate, 3u);
    EXPECT_EQ(back->plugin, "llama");
    EXPECT_EQ(back->settings, swap.settings);
    EXPECT_EQ(back->identity, "abc");
    for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(read_swap(bytes.substr(0, size))) << size;
    EXPECT_FALSE(read_swap(bytes + "x"));
    swap.verb = static_cast<RankSwap::Verb>(9);
    EXPECT_EQ(read_swap(bytes_of(swap)).error(), "a swap is of slot 1 and verb 9");
}

TEST(Session, AStepThatLeadsOutsideIsRefused) {
    const auto fault = [](auto&& change) {
        Step step;
        change(step);
        const auto done = check_step(step.rows(), kCopies, kLimits);
        return done ? std::string() : done.error();
    };
    EXPECT_EQ(fault([](Step&) {}), "");
    const std::vector<kv::PageCopy> outside = {{1, 0}, {4, 1}}, below = {{1, -1}};
    EXPECT_EQ(check_step(Step().rows(), outside, kLimits).error(), "a step copies page 4 of 4");
    EXPECT_EQ(check_step(Step().rows(), below, kLimits).error(), "a step copies page -1 of 4");
    const std::vector<kv::PageCopy> zero = {{1, 1, kv::Way::kZeroPage}}, slot = {{1, 1, kv::Way::kZeroSlot}};
    StepLimits zeroes = kLimits;
    EXPECT_THAT(check_step({}, zero, zeroes).error(), HasSubstr("which zero_freed_blocks does not ask for"));
    EXPECT_THAT(check_step({}, slot, zeroes).error(), HasSubstr("which zero_freed_blocks does not ask for"));
    zeroes.zeroes = true;
    EXPECT_TRUE(check_step({}, zero, zeroes));
    EXPECT_EQ(check_step({}, slot, zeroes).error(), "a step copies page 1 of 0");
    EXPECT_EQ(fault([](Step& s) { s.first[1] = 10; }), "a step computes token 10 of 10");
    EXPECT_EQ(fault([](Step& s) { s.first[1] = -1; }), "a step computes token -1 of 10");
    EXPECT_EQ(fault([](Step& s) { s.pages[1] = 4; }), "a step uses page 4 of 4");
    EXPECT_EQ(fault([](Step& s) { s.pages[0] = kv::kNoBlock; }), "a step uses page -1 of 4"); // tokens 14, 15 go there
    EXPECT_EQ(fault([](Step& s) { s.table.pages[1] = {}; }), "a step has too few pages for its tokens");
    EXPECT_EQ(fault([](Step& s) { s.table.pages.pop_back(); }), "a step has pages of 1 KV groups, here are 2");
    EXPECT_EQ(fault([](Step& s) { s.computed = 62; }), "a step computes position 65 of 64");
    EXPECT_EQ(fault([](Step& s) { s.computed = 30; }), "a step has too few pages for its tokens");
    EXPECT_EQ(fault([](Step& s) { s.logits = 4; }), "a step has a row without tokens");
    EXPECT_EQ(fault([](Step& s) { s.first.clear(); }), "a step has a row without tokens");
}

Environment environment(std::map<std::string, std::string> values) {
    const auto all = std::make_shared<std::map<std::string, std::string>>(std::move(values));
    return [all](const char* name) -> const char* {
        const auto at = all->find(name);
        return at == all->end() ? nullptr : at->second.c_str();
    };
}

TEST(Launched, IsSeenInTheEnvironment) {
    EXPECT_FALSE(*launched(environment({})));
    const auto mpi = launched(environment({{"OMPI_COMM_WORLD_RANK", "1"},
                                           {"OMPI_COMM_WORLD_SIZE", "4"},
                                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                           {"PMIX_NAMESPACE", "77"}}));
    ASSERT_TRUE(mpi && *mpi);
    EXPECT_EQ((*mpi)->rank, 1u);
    EXPECT_EQ((*mpi)->size, 4u);
    EXPECT_EQ((*mpi)->here, 2u);
    EXPECT_EQ((*mpi)->job, "mpirun 77");
    EXPECT_THAT(rendezvous_of(**mpi, "").error(), HasSubstr("PATCHBAY_RENDEZVOUS"));
    EXPECT_EQ(text_of(*rendezvous_of(**mpi, "node1:5000")), "node1:5000");
    EXPECT_TRUE(check_rendezvous(**mpi, {"node1", 5000}, "10.0.0.7"));
    EXPECT_THAT(check_rendezvous(**mpi, {"node1", 5000}, "127.0.1.1").error(), HasSubstr("node1 is 127.0.1.1"));
    std::map<std::string, std::string> slurm = {{"SLURM_PROCID", "0"},
                                                {"SLURM_STEP_ID", "3"},
                                                {"SLURM_JOB_ID", "12"},
                                                {"SLURM_STEP_NUM_TASKS", "2"},
                                                {"SLURM_STEP_NUM_NODES", "2"},
                                                {"SLURM_STEP_NODELIST", "gpu[07-09,12],x"}};
    const auto srun = launched(environment(slurm));
    ASSERT_TRUE(srun && *srun);
    EXPECT_EQ((*srun)->job, "srun 12.3");
    EXPECT_EQ(rendezvous_of(**srun, "")->host, "gpu07");
    slurm.erase("SLURM_STEP_ID"); // a batch script
    EXPECT_FALSE(*launched(environment(slurm)));
    const auto one = launched(environment({{"OMPI_COMM_WORLD_RANK", "0"},
                                           {"OMPI_COMM_WORLD_SIZE", "1"},
                                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}));
    EXPECT_FALSE(*one);
    EXPECT_FALSE(launched(environment({{"OMPI_COMM_WORLD_RANK", "x"}})));
}

TEST(Launched, SaysThatNoRankHasCoresOfItsOwn) {
    const std::pair<const char*, const char*> open_mpi = {"OMPI_MCA_orte_launch", "1"};
    EXPECT_TRUE(leaves_unbound(environment({open_mpi, {"OMPI_MCA_hwloc_base_binding_policy", "none"}})));
    EXPECT_FALSE(leaves_unbound(environment({open_mpi, {"OMPI_MCA_orte_bound_at_launch", "1"}})));
    EXPECT_TRUE(leaves_unbound(environment({{"SLURM_CPU_BIND_TYPE", "none"}})));
    EXPECT_FALSE(leaves_unbound(environment({{"SLURM_CPU_BIND_TYPE", "mask_cpu:"}})));
    EXPECT_FALSE(leaves_unbound(environment({}))) << "it is not known";
}

TEST(Launched, EachRankThatIsStartedHereGetsADeviceOfItsOwn) {
    const std::string variable = "CUDA_VISIBLE_DEVICES";
    const Environment without = environment({});
    EXPECT_EQ(*device_of_rank(without, variable, 1), "1");
    EXPECT_EQ(*device_of_rank(without, variable, 7), "7");
    const Environment chosen = environment({{variable, "4,GPU-8932f937,6"}});
    EXPECT_EQ(*device_of_rank(chosen, variable, 0), "4");
    EXPECT_EQ(*device_of_rank(chosen, variable, 1), "GPU-8932f937");
    EXPECT_EQ(*device_of_rank(chosen, variable, 2), "6");
    const auto more = device_of_rank(chosen, variable, 3);
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error(), "CUDA_VISIBLE_DEVICES is '4,GPU-8932f937,6': rank 3 finds no device of its own there (name "
                            "as many as tensor_parallel_size)");
    EXPECT_FALSE(device_of_rank(environment({{variable, ""}}), variable, 0)) << "none is to be seen";
}

TEST(Launched, RanksOfAHostMeetAtAPortOfTheirJob) {
    const Launched job{config::Launcher::kMpirun, "mpirun 77", 1, 2, 2, ""};
    Launched other = job;
    other.job = "mpirun 78";
    EXPECT_EQ(text_of(*rendezvous_of(job, "")), text_of(*rendezvous_of(job, "")));
    EXPECT_NE(rendezvous_of(job, "")->port, rendezvous_of(other, "")->port);
    EXPECT_EQ(rendezvous_of(job, "")->host, "127.0.0.1");
    EXPECT_THAT(rendezvous_of(job, "nowhere").error(), HasSubstr("is not HOST:PORT"));
    EXPECT_EQ(parse_endpoint("[fe80::1]:29")->host, "fe80::1");
}

}  // namespace
}  // namespace patchbay::parallel::session_test
