#!/bin/bash
# A script of arrays, as Megatron-LM's examples are: what is commented out in them does not count.
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-"4"}
MASTER_ADDR=${MASTER_ADDR:-'localhost'}
DATA_PATH=$1 #<a prefix>

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES
    --master_addr $MASTER_ADDR
)

MODEL_ARGS=(
    --num-layers 16
    --hidden-size 2048
    --num-attention-heads 16
    --seq-length 4096 
    --attention-backend auto # flash, fused or unfused
    --swiglu
    --normalization RMSNorm
    --untie-embeddings-and-output-weights
    --disable-bias-linear
)

MOE_ARGS=(
    --num-experts 8
    --moe-router-topk 2
#    --moe-shared-expert-intermediate-size 100
    --expert-model-parallel-size 8
)

TRAINING_ARGS=(
    --micro-batch-size 2
    --global-batch-size 512
    # --global-batch-size 1
    --bf16
	--use-distributed-optimizer
)

LOGGING_ARGS=(
  #  --log-interval 1 \
   # --seq-length 1 \
    --eval-iters 10 \
    #--save "${CHECKPOINTS}/here" \
    --no-load-rng
)

if [ -n "${WANDB_API_KEY}" ]; then
    LOGGING_ARGS+=(
        --wandb-project ${WANDB_PROJECT:-"ours"}
    )
fi

torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${MODEL_ARGS[@]} ${MOE_ARGS[@]} ${TRAINING_ARGS[@]} ${LOGGING_ARGS[@]} --data-path $DATA_PATH
