// A checkpoint writer: 16 shards are written at once, and each is published when it is on disk.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

#include "waywiser/transfer.hpp"

struct Shard {
    std::string name;
    int file = -1;
};

// A shard has its final name only when all of its bytes have reached the disk.
void publish(const Shard& shard) {
    close(shard.file);
    if (std::rename((shard.name + ".part").c_str(), shard.name.c_str()) != 0) {
        throw std::system_error(errno, std::generic_category(), shard.name);
    }
}

int main(int count, char** arguments) {
    const std::string folder = count > 1 ? arguments[1] : ".";
    constexpr std::size_t kShards = 16, kBytes = std::size_t{1} << 20;
    waywiser::Context context;
    std::vector<std::vector<char>> weights(kShards, std::vector<char>(kBytes, 'w'));
    std::vector<Shard> shards;
    std::vector<waywiser::TransferHandle> transfers;
    for (std::size_t i = 0; i < kShards; ++i) {
        Shard shard{folder + "/shard-" + std::to_string(i)};
        shard.file = open((shard.name + ".part").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (shard.file < 0) throw std::system_error(errno, std::generic_category(), shard.name);
        transfers.push_back(context.write_async(shard.file, 0, weights[i].data(), kBytes, {},
                                                {.truncate = true, .sync = true}));
        shards.push_back(shard);
    }
    std::size_t written = 0;
    while (!transfers.empty()) {
        const std::size_t at = waywiser::wait_any(transfers);
        written += transfers[at].result();  // throws what this shard failed with
        publish(shards[at]);
        transfers.erase(transfers.begin() + static_cast<std::ptrdiff_t>(at));
        shards.erase(shards.begin() + static_cast<std::ptrdiff_t>(at));
    }
    std::printf("%zu shards, %zu bytes\n", kShards, written);
    return 0;
}
