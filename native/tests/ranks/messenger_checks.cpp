#include "ranks/messenger_checks.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <thread>

namespace waywiser::test {
namespace {

using ranks::Messenger;
using ranks::MessengerError;
using ranks::Parts;

constexpr std::byte kUntouched{0xEE};

using Bytes = std::vector<std::byte>;

// The bytes of one message; those of other ranks and of other steps are different.
Bytes pattern(std::size_t bytes, int from, int to, int step) {
    Bytes made(bytes);
    const std::size_t first = 131 * from + 31 * to + 17 * step + 1;
    for (std::size_t at = 0; at < bytes; ++at) {
        made[at] = static_cast<std::byte>(first + 7 * at + 3 * (at >> 8U));
    }
    return made;
}

// Equal, skewed, and sparse with zeros.
std::size_t share(std::size_t bytes, int shape, int from, int to) {
    if (shape == 0) return bytes;
    if (shape == 1) return (from + 2 * to + 1) * bytes % (4 * bytes + 1);
    const int messages = (from + 1) % 2 * to;
    return messages * bytes + (from == to ? 1 : 0);
}

class Checks {
public:
    Checks(Messenger& messenger, bool knows_sizes)
        : messenger_(messenger), knows_sizes_(knows_sizes) {}

    std::vector<std::string> all(std::size_t largest) {
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{7}, largest}) {
            each_pair(bytes);
            started(bytes);
            broadcast(bytes);
            alltoall(bytes);
            parts_from_and_to_each_root(bytes);
            for (int shape = 0; shape < 3; ++shape) alltoallv(bytes, shape);
        }
        order();
        maximum();
        if (knows_sizes_) wrong_size();
        too_large();
        messenger_.barrier();
        return wrong_;
    }

private:
    void expect(const std::string& what, const Bytes& got, const Bytes& expected) {
        if (got == expected) return;
        const auto at = std::ranges::mismatch(got, expected).in1 - got.begin();
        wrong_.push_back("rank " + std::to_string(messenger_.rank()) + ": " + what + " of " +
                         std::to_string(expected.size()) + " bytes: wrong from byte " +
                         std::to_string(at));
    }

    // One byte more than is received shows what is written behind it.
    void expect_received(const std::string& what, const Bytes& got, Bytes expected) {
        expected.push_back(kUntouched);
        expect(what, got, expected);
    }

    void each_pair(std::size_t bytes) {
        for (int from = 0; from < size(); ++from) {
            for (int to = 0; to < size(); ++to) {
                if (from == to) continue;
                if (me() == from) messenger_.send(pattern(bytes, from, to, 1).data(), bytes, to, 5);
                if (me() != to) continue;
                Bytes got(bytes + 1, kUntouched);
                messenger_.receive(got.data(), bytes, from, 5);
                expect_received("send", got, pattern(bytes, from, to, 1));
            }
        }
    }

    void started(std::size_t bytes) {
        const auto messages = messenger_.prepare(2 * static_cast<std::size_t>(size()));
        std::vector<Bytes> out, in(size(), Bytes(bytes + 1, kUntouched));
        for (int peer = 0; peer < size(); ++peer) out.push_back(pattern(bytes, me(), peer, 2));
        for (int peer = 0; peer < size(); ++peer) {
            if (peer == me()) continue;
            messages->receive(in[peer].data(), bytes, peer, 6);
            messages->send(out[peer].data(), bytes, peer, 6);
        }
        if (bytes % 2 == 0) {
            messages->wait();
        } else {
            while (!messages->done()) std::this_thread::yield();
        }
        for (int peer = 0; peer < size(); ++peer) {
            if (peer == me()) continue;
            expect_received("started messages", in[peer], pattern(bytes, peer, me(), 2));
        }
    }

    void broadcast(std::size_t bytes) {
        for (int root = 0; root < size(); ++root) {
            const Bytes expected = pattern(bytes, root, 0, 3);
            Bytes data = me() == root ? expected : Bytes(bytes, kUntouched);
            messenger_.broadcast(data.data(), bytes, root);
            expect("broadcast", data, expected);
        }
    }

    void alltoall(std::size_t bytes) {
        Bytes out, expected, got(bytes * size() + 1, kUntouched);
        for (int peer = 0; peer < size(); ++peer) {
            append(out, pattern(bytes, me(), peer, 4));
            append(expected, pattern(bytes, peer, me(), 4));
        }
        messenger_.alltoall(out.data(), got.data(), bytes);
        expect_received("alltoall", got, expected);
    }

    void alltoallv(std::size_t bytes, int shape) {
        Bytes out, expected;
        std::vector<std::size_t> to, from;
        for (int peer = 0; peer < size(); ++peer) {
            to.push_back(share(bytes, shape, me(), peer));
            from.push_back(share(bytes, shape, peer, me()));
            append(out, pattern(to.back(), me(), peer, 5));
            append(expected, pattern(from.back(), peer, me(), 5));
        }
        Bytes got(expected.size() + 1, kUntouched);
        messenger_.alltoallv(out.data(), Parts::in_order(to), got.data(), Parts::in_order(from));
        expect_received("alltoallv", got, expected);
    }

    void parts_from_and_to_each_root(std::size_t bytes) {
        for (int root = 0; root < size(); ++root) {
            Bytes all;
            std::vector<std::size_t> shares;
            for (int peer = 0; peer < size(); ++peer) {
                shares.push_back(share(bytes, 1, root, peer));
                append(all, pattern(shares.back(), root, peer, 6));
            }
            const Parts parts = me() == root ? Parts::in_order(shares) : Parts{};
            Bytes own(shares[me()] + 1, kUntouched);
            messenger_.scatterv(all.data(), parts, own.data(), shares[me()], root);
            expect_received("scatterv", own, pattern(shares[me()], root, me(), 6));
            Bytes together(me() == root ? all.size() + 1 : 0, kUntouched);
            messenger_.gatherv(own.data(), shares[me()], together.data(), parts, root);
            if (me() == root) expect_received("gatherv", together, all);
        }
    }

    // Messages with equal tags arrive in the order of their start; others are apart.
    void order() {
        const int next = (me() + 1) % size(), before = (me() + size() - 1) % size();
        const auto messages = messenger_.prepare(8);
        std::array<std::array<std::byte, 4>, 4> out{}, in{};
        for (std::size_t each = 0; each < 4; ++each) {
            out[each].fill(static_cast<std::byte>(each));
            messages->send(out[each].data(), 4, next, static_cast<int>(each % 2));
        }
        for (const std::size_t each : {1U, 0U, 3U, 2U}) {
            messages->receive(in[each].data(), 4, before, static_cast<int>(each % 2));
        }
        messages->wait();
        if (in != out) wrong_.push_back("messages in another order than that of their start");
    }

    void maximum() {
        std::array<double, 3> values{me() * 1.5, -me() - 1.0, 0.25};
        messenger_.maximum(values);
        const std::array<double, 3> expected{(size() - 1) * 1.5, -1.0, 0.25};
        if (values != expected) wrong_.push_back("maximum: wrong values");
    }

    void wrong_size() {
        std::byte data{};
        std::array<std::byte, 8> room{};
        const int next = (me() + 1) % size(), before = (me() + size() - 1) % size();
        const auto message = messenger_.prepare(1);
        message->send(&data, 1, next, 7);
        require_error("a message of another size",
                      [&] { messenger_.receive(room.data(), room.size(), before, 7); });
        message->wait();
    }

    void too_large() {
        std::byte data{};
        const std::size_t bytes = ranks::kMostMessageBytes + 1;
        require_error("2 GiB", [&] { messenger_.send(&data, bytes, 0); });
        require_error("2 GiB of parts", [&] {
            const std::array<std::size_t, 2> halves{bytes / 2, bytes / 2};
            static_cast<void>(Parts::in_order(halves));
        });
    }

    static void require_error(const std::string& what, const std::function<void()>& work) {
        try {
            work();
        } catch (const MessengerError&) {
            return;
        }
        throw MessengerError(what + " is no error");
    }

    static void append(Bytes& all, const Bytes& part) {
        all.insert(all.end(), part.begin(), part.end());
    }
    [[nodiscard]] int me() const { return messenger_.rank(); }
    [[nodiscard]] int size() const { return messenger_.size(); }

    Messenger& messenger_;
    bool knows_sizes_;
    std::vector<std::string> wrong_;
};

}  // namespace

std::vector<std::string> check_messenger(Messenger& messenger, std::size_t largest,
                                         bool knows_sizes) {
    std::vector<std::string> wrong = Checks(messenger, knows_sizes).all(largest);
    // The odd ranks in the reverse order; the others need not take part.
    std::vector<int> chosen;
    for (int rank = messenger.size() - 1; rank >= 0; --rank) {
        if (rank % 2 == 1 || rank == 0) chosen.push_back(rank);
    }
    if (std::ranges::find(chosen, messenger.rank()) != chosen.end()) {
        const auto group = messenger.group(chosen);
        for (std::string& line : Checks(*group, knows_sizes).all(largest)) {
            wrong.push_back("in a group: " + std::move(line));
        }
        if (chosen[group->rank()] != messenger.rank()) {
            wrong.emplace_back("a group does not number its ranks in their order");
        }
    }
    return wrong;
}

}  // namespace waywiser::test
