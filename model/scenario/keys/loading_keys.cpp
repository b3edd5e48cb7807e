// Where samples come from: loaders, data sets, and requests to storage alone.
#include "model/cost/storage.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"
#include "model/workload/data_loader.hpp"

namespace foretrain::keys {

namespace {

constexpr std::string_view per_words[] = {"sample", "batch"};
constexpr std::string_view epoch_words[] = {"cold", "warm"};
constexpr std::string_view decoder_words[] = {"cpu", "gpu"};
constexpr Value a_time = quantity("ms");
constexpr Key loader_keys[] = {
    needed<&DataLoader::workers>("Processes that load for one training process; 0: it loads itself.",
                                 {.title = "loading processes", .range = {0, 10'000}}),
    member<&DataLoader::prefetch>("Batches that each worker may be ahead.", {.range = {1, 10'000}}),
    member<&DataLoader::cores>("Cores that the workers of one training process share.",
                               {.usual = "the node's, divided", .range = {1, 100'000}}),
    member<&DataLoader::per_sample>(
        "All that a worker does for a sample.",
        {.value = a_time, .usual = "its parts", .together = "Instead of read to collate.", .zero = Zero::allowed}),
    member<&DataLoader::per_batch>("Whether these times are those of a sample or of a batch.",
                                   {.name = "per", .value = words(per_words)}),
    member<&LoaderStages::read>("Waiting for storage.",
                                {.value = a_time, .together = "Instead of dataset.", .zero = Zero::allowed}),
    member<&LoaderStages::decode>("Decoding.", {.value = a_time, .zero = Zero::allowed}),
    member<&LoaderStages::preprocess>("Preprocessing.", {.value = a_time, .zero = Zero::allowed}),
    member<&LoaderStages::augment>("Augmentation.", {.value = a_time, .zero = Zero::allowed}),
    member<&LoaderStages::collate>("Putting samples together to a batch.", {.value = a_time, .zero = Zero::allowed}),
    {"dataset", mapping(dataset), "", "What is read from storage.", "Instead of read."},
    {"storage", named(Catalogue::storage, storage), "the node's", "Where the data set lies.", "With dataset."},
    member<&DataLoader::warm>("Whether what fits is in the page cache already.",
                              {.name = "epoch", .value = words(epoch_words), .together = "With dataset."}),
    member<&DataLoader::keeps_decoded>("Whether decoded samples stay in memory.",
                                       {.name = "keep_decoded", .together = "With dataset and decoded."}),
    member<&DataLoader::decoded>("Size of a sample as it is copied to the GPU.",
                                 {.value = quantity("KB"), .usual = "as stored"}),
    member<&DataLoader::decodes_on_device>(
        "Who decodes.", {.name = "decode_on", .value = words(decoder_words), .together = "gpu: with device_decode."}),
    member<&DataLoader::device_decode>("What decoding takes on the GPU.",
                                       {.value = a_time, .together = "decode_on: gpu", .zero = Zero::allowed}),
    member<&DataLoader::transfer>("The copy of a batch to the GPU.",
                                  {.value = a_time, .usual = "from decoded", .zero = Zero::allowed}),
    member<&DataLoader::pinned>("Whether copies leave page-locked memory."),
    member<&DataLoader::non_blocking>("Whether copies run beside the step before.", {.together = "With pinned."}),
    member<&DataLoader::persistent>("Whether workers live on from epoch to epoch."),
    {"spread", quantity("%") | number, "0", "Standard deviation of a sample's time over its mean."},
};

constexpr Key dataset_keys[] = {
    member<&Dataset::samples>("How many samples there are.",
                              {.value = whole, .usual = "more than fit in memory", .range = {1, 1'000'000'000'000}}),
    needed<&Dataset::sample>("KB", "Size of a sample as it is stored."),
    member<&Dataset::layout>("A file for each sample, or archives of many."),
    member<&Dataset::order>("In which order samples are read."),
    member<&Dataset::mapped>("Whether files are mapped into memory and read by page faults."),
};

constexpr Key loader_alone_keys[] = {
    {"batch", whole, "needed", "Samples of one batch."},
};

constexpr Key disk_request_keys[] = {
    member<&DiskPattern::order>("Whether requests follow each other on the disk."),
    member<&DiskPattern::block>("Size of one request.", {.value = quantity("KiB"), .usual = "4 KiB"}),
    member<&DiskPattern::queue_depth>("Requests that are under way all the time.",
                                      {.value = whole, .range = {1, 1'000'000}}),
    member<&DiskPattern::streams>("Readers of different places, each with its own read-ahead.",
                                  {.value = whole, .together = "order: sequential", .range = {1, 1'000'000}}),
    member<&DiskPattern::zone>("Where on a disk: 0 the outermost track, 1 the innermost."),
    member<&DiskPattern::direct>("Whether requests go past the page cache.", {.usual = "true"}),
    {"size", quantity("GB"), "block", "All requests together."},
    {"storage", named(Catalogue::storage, storage), "the node's", "What the requests go to."},
};

}  // namespace

constinit const Mapping loader = {"loader", loader_keys};
constinit const Mapping dataset = {"data set", dataset_keys};
constinit const Mapping loader_alone = {"batch of a loader", loader_alone_keys};
constinit const Mapping disk_requests = {"requests to storage", disk_request_keys};

}  // namespace foretrain::keys
