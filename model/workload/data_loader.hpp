// The input pipeline of a training process: where samples come from and what is done to them.
#pragma once

#include <optional>

#include "model/base/quantity.hpp"
#include "model/hardware/storage.hpp"

namespace foretrain {

/// Layout of the samples in storage.
struct Dataset {
  enum class Layout { files, archives };  ///< one file per sample, or many samples in each file
  enum class Order {
    shuffled,
    sequential
  };                              ///< samples are read so; archives are read on and on in either, unless mapped
  std::optional<double> samples;  ///< without: as many as never fit in memory
  Bytes sample;                   ///< as stored, on average
  Layout layout = Layout::files;
  Order order = Order::shuffled;
  bool mapped = false;  ///< read by page faults, without copies
};

/// Times of the stages, each on one core and for one sample or one batch (DataLoader::per_batch).
struct LoaderStages {
  Seconds read;  ///< waiting for storage, where no dataset says what is read
  Seconds decode, preprocess, augment, collate;
};

/// `workers` processes each prepare whole batches in turn. At most `prefetch` batches per worker are ready or in work;
/// a worker that is as far ahead waits until the training process takes one.
struct DataLoader {
  int workers = 0;     ///< 0: the training process loads its batches itself
  int prefetch = 2;    ///< batches that each worker may be ahead
  Seconds per_sample;  ///< all that one worker does for one sample, where its parts are not stated
  LoaderStages stages;
  std::optional<Dataset> dataset;   ///< read from `storage`
  std::optional<Storage> storage;   ///< the node's, unless it is stated
  Bytes decoded;                    ///< one sample as it is copied to the device
  Seconds device_decode;            ///< one sample's or batch's, as the stages
  std::optional<Seconds> transfer;  ///< a batch's copy to the device, where it is not to follow from `decoded`
  double spread = 0.0;              ///< standard deviation of a sample's time on the worker over its mean
  std::optional<int> cores;         ///< that the workers of one training process share; the node's, divided
  bool per_batch = false;           ///< the stages' times are a batch's
  bool warm = false;                ///< the page cache is full: not the first epoch
  bool keeps_decoded = false;       ///< decoded samples stay in memory: from the second epoch on nothing is decoded
  bool decodes_on_device = false;   ///< the stored sample is copied
  bool pinned = false;              ///< copies leave pinned memory
  bool non_blocking = false;        ///< and run beside the step before
  bool persistent = false;          ///< workers live on from epoch to epoch
};

}  // namespace foretrain
