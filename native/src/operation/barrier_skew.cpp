// The skew with which ranks leave a barrier: how well they start together.
#include "waywiser/operation.hpp"

namespace waywiser {
namespace {

// The ranks measure it as they measure messages: see RankWorkload.
class BarrierSkew final : public Operation {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "barrier-skew",
            .description = "time between the first and the last rank that leaves a barrier",
            .parameters = {},
            .source = "Hoefler & Belli, SC'15 (starting processes together)"};
        return info;
    }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::rank};
    }
    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const OperationCall& call, const Machine& machine) const override {
        if (!call.place.several()) return "a barrier has several ranks, as rank:0-1";
        for (const Place& rank : call.place.each()) {
            if (machine.rank(rank.index) == nullptr) {
                return "there is no " + rank.text() + " in this launch";
            }
        }
        return std::nullopt;
    }
    [[nodiscard]] std::unique_ptr<Trial> prepare(const OperationCall& call, const Machine&,
                                                 OperationTools&) const override {
        throw NotSupported(call.text() + " is measured between ranks");
    }
};

const Registered<Operation, BarrierSkew> registered;

}  // namespace
}  // namespace waywiser
