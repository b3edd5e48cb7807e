#include "model/training/pricing/tensor_overlap.hpp"

#include <algorithm>
#include <iterator>

#include "model/parallelism/weight_gradients.hpp"

namespace foretrain {

namespace {

using Products = std::vector<Operator>;

bool of_experts(const Operator& op) { return std::get<Matmul>(op.work).batch > 1; }

/// A product over tokens, forward or for the gradients of its inputs; not for those of weights.
bool is_data_product(const Operator& op) { return std::holds_alternative<Matmul>(op.work) && !is_weight_gradient(op); }

OverlappedProducts around_attention(const std::vector<Operator>& pass, bool backward) {
  const auto attention =
      std::ranges::find_if(pass, [](const Operator& op) { return std::holds_alternative<Attention>(op.work); });
  if (attention == pass.end()) return {};
  Products before, after;
  std::copy_if(pass.begin(), attention, std::back_inserter(before), is_data_product);
  std::copy_if(attention, pass.end(), std::back_inserter(after), is_data_product);
  // On the other side of attention: its output, the products into the feed-forward half, and the one out of it.
  Products& others = backward ? before : after;
  const Products& projections = backward ? after : before;
  if (projections.empty() || others.empty()) return {};
  if (backward) std::ranges::reverse(others);  // as in the forward pass
  const Products output{others.front()};
  OverlappedProducts products;
  (backward ? products.scatters : products.gathers) = {projections};
  (backward ? products.gathers : products.scatters) = {output};
  if (others.size() < 3 || std::ranges::any_of(others, of_experts)) return products;
  (backward ? products.scatters : products.gathers).emplace_back(others.begin() + 1, others.end() - 1);
  (backward ? products.gathers : products.scatters).push_back({others.back()});
  return products;
}

}  // namespace

OverlappedProducts overlapped_products(const std::vector<Operator>& pass, bool backward) {
  OverlappedProducts products = around_attention(pass, backward);
  if (!backward) return products;
  products.again = products.scatters;
  // One half of a block: the data gradient of the product that it begins with comes last.
  const auto last = std::find_if(pass.rbegin(), pass.rend(), is_data_product);
  if (products.again.empty() && last != pass.rend()) products.again = {{*last}};
  return products;
}

std::vector<Operator> chunk_of(std::vector<Operator> products, int chunks) {
  for (Operator& op : products) {
    auto& product = std::get<Matmul>(op.work);
    product.m = (product.m + chunks - 1) / chunks;
  }
  return products;
}

}  // namespace foretrain
