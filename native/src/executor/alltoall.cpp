// Messages of one size from each memory of several ranks to each, by four strategies.
#include "executor/alltoall_executor.hpp"

namespace waywiser {
namespace {

class Alltoall final : public alltoall::AlltoallExecutor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "alltoall",
            .description =
                "each of several ranks sends to each, messages of one size; the bytes "
                "are all that one GPU sends",
            .parameters = common_parameters(),
            .source =
                "Bienz et al., Modeling Data Movement Performance on Heterogeneous "
                "Architectures, sec. III (strategies) and V (duplicate data); OSU "
                "micro-benchmarks (osu_alltoall)"};
        return info;
    }
    [[nodiscard]] Traits traits() const override { return traits_of_exchanges(); }

private:
    [[nodiscard]] alltoall::Counts counts(const Transfer& transfer, const Machine&,
                                          std::size_t memories) const override {
        return alltoall::equal_counts(memories, transfer.bytes);
    }
    [[nodiscard]] bool equal() const override { return true; }
};

const Registered<Executor, Alltoall> registered;

}  // namespace
}  // namespace waywiser
