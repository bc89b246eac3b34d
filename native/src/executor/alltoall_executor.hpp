// What the exchanges of several ranks' memories have in common.
#pragma once

#include "executor/alltoall_plan.hpp"
#include "executor/between_ranks.hpp"

namespace waywiser::alltoall {

class AlltoallExecutor : public BetweenRanks {
public:
    [[nodiscard]] std::optional<std::string> unsupported_reason(const Transfer&,
                                                                const Machine&) const override;
    [[nodiscard]] std::vector<Parameter> parameters(const Transfer&, const Machine&) const override;
    [[nodiscard]] Requirements requirements(const Transfer&, const Machine&) const override;
    [[nodiscard]] std::vector<int> participants(const Transfer&, const Machine&) const override;
    [[nodiscard]] Memory allocated(const Transfer&, const Memory& local,
                                   const Machine&) const override;
    [[nodiscard]] Exchange exchange(const Transfer&, const Machine&) const override;
    [[nodiscard]] std::unique_ptr<Execution> prepare_part(const Transfer&, const Machine&,
                                                          const View& source,
                                                          const View& destination,
                                                          const std::vector<gpu::Stream*>& lanes,
                                                          ranks::Messenger& group) const override;

protected:
    [[nodiscard]] static Traits traits_of_exchanges();
    // Returns the parameters for Info.
    [[nodiscard]] static std::vector<Parameter> common_parameters();

private:
    // Throws NotSupported for counts that are not known.
    [[nodiscard]] virtual Counts counts(const Transfer&, const Machine&,
                                        std::size_t memories) const = 0;
    // Returns the bytes of all messages of one memory: one call sends them together.
    [[nodiscard]] std::size_t message_bytes(const Transfer&, const Machine&) const override;
    // Whether all messages have one size.
    [[nodiscard]] virtual bool equal() const = 0;
    [[nodiscard]] std::optional<std::string> strategy_unsupported_reason(const Transfer&,
                                                                         const Machine&) const;
    [[nodiscard]] Plan plan(const Transfer&, const Machine&) const;
    [[nodiscard]] Strategy strategy(const Transfer&, const Machine&) const;
};

}  // namespace waywiser::alltoall
