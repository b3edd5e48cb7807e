// Where samples come from: loaders, data sets, and requests to storage alone.
#include "model/cost/storage.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/workload/data_loader.hpp"

namespace foretrain::keys {

namespace {

constexpr std::string_view per_words[] = {"sample", "batch"};
constexpr std::string_view epoch_words[] = {"cold", "warm"};
constexpr std::string_view decoder_words[] = {"cpu", "gpu"};
constexpr Key loader_keys[] = {
    {"workers", whole, "needed", "Processes that load for one training process; 0: it loads itself.", "",
     "loading processes"},
    {"prefetch", whole, "2", "Batches that each worker may be ahead."},
    {"cores", whole, "the node's, divided", "Cores that the workers of one training process share."},
    {"per_sample", quantity("ms"), "", "All that a worker does for a sample.", "Instead of read to collate."},
    {"per", words(per_words), "sample", "Whether these times are those of a sample or of a batch."},
    {"read", quantity("ms"), "0", "Waiting for storage.", "Instead of dataset."},
    {"decode", quantity("ms"), "0", "Decoding."},
    {"preprocess", quantity("ms"), "0", "Preprocessing."},
    {"augment", quantity("ms"), "0", "Augmentation."},
    {"collate", quantity("ms"), "0", "Putting samples together to a batch."},
    {"dataset", mapping(dataset), "", "What is read from storage.", "Instead of read."},
    {"storage", named(Catalogue::storage, storage), "the node's", "Where the data set lies.", "With dataset."},
    {"epoch", words(epoch_words), "cold", "Whether what fits is in the page cache already.", "With dataset."},
    {"keep_decoded", flag, "false", "Whether decoded samples stay in memory.", "With dataset and decoded."},
    {"decoded", quantity("KB"), "as stored", "Size of a sample as it is copied to the GPU."},
    {"decode_on", words(decoder_words), "cpu", "Who decodes.", "gpu: with device_decode."},
    {"device_decode", quantity("ms"), "0", "What decoding takes on the GPU.", "decode_on: gpu"},
    {"transfer", quantity("ms"), "from decoded", "The copy of a batch to the GPU."},
    {"pinned", flag, "false", "Whether copies leave page-locked memory."},
    {"non_blocking", flag, "false", "Whether copies run beside the step before.", "With pinned."},
    {"persistent", flag, "false", "Whether workers live on from epoch to epoch."},
    {"spread", quantity("%") | number, "0", "Standard deviation of a sample's time over its mean."},
};

constexpr Key dataset_keys[] = {
    {"samples", whole, "more than fit in memory", "How many samples there are."},
    {"sample", quantity("KB"), "needed", "Size of a sample as it is stored."},
    {"layout", word<Dataset::Layout>, "files", "A file for each sample, or archives of many."},
    {"order", word<Dataset::Order>, "shuffled", "In which order samples are read."},
    {"mapped", flag, "false", "Whether files are mapped into memory and read by page faults."},
};

constexpr Key loader_alone_keys[] = {
    {"batch", whole, "needed", "Samples of one batch."},
};

constexpr Key disk_request_keys[] = {
    {"order", word<AccessOrder>, "random", "Whether requests follow each other on the disk."},
    {"block", quantity("KiB"), "4 KiB", "Size of one request."},
    {"queue_depth", whole, "1", "Requests that are under way all the time."},
    {"streams", whole, "1", "Readers of different places, each with its own read-ahead.", "order: sequential"},
    {"zone", number, "0.5", "Where on a disk: 0 the outermost track, 1 the innermost."},
    {"direct", flag, "true", "Whether requests go past the page cache."},
    {"size", quantity("GB"), "block", "All requests together."},
    {"storage", named(Catalogue::storage, storage), "the node's", "What the requests go to."},
};

}  // namespace

constinit const Mapping loader = {"loader", loader_keys};
constinit const Mapping dataset = {"data set", dataset_keys};
constinit const Mapping loader_alone = {"batch of a loader", loader_alone_keys};
constinit const Mapping disk_requests = {"requests to storage", disk_request_keys};

}  // namespace foretrain::keys
